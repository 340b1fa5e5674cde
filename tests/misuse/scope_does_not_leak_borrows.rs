//! What a scope's thread borrows lives longer than the scope.

fn main() {
    reveille::thread::scope(|s| {
        let inside = String::from("gone before the scope ends");
        s.spawn(|| inside.len());
    });
}
