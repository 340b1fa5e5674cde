//! A scoped handle does not leave its scope.

fn main() {
    let _handle = reveille::thread::scope(|s| s.spawn(|| 1));
}
