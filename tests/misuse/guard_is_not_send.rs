//! A guard belongs to the thread whose preemption it switched off.

fn main() {
    let off = reveille::preempt::disable();
    reveille::thread::spawn(move || drop(off));
}
