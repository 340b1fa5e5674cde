//! A thread may outlive its spawner, so it cannot borrow from it.

fn main() {
    let text = String::from("short-lived");
    let t = reveille::thread::spawn(|| text.len());
    t.join().unwrap();
}
