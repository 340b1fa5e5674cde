//! A closure that goes to another thread is Send.

use std::rc::Rc;

fn main() {
    let shared = Rc::new(1u32);
    reveille::thread::spawn(move || *shared);
}
