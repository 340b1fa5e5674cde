//! A value that comes back from another thread is Send.

use std::rc::Rc;

fn main() {
    let rt = reveille::Runtime::new().unwrap();
    rt.run(|| Rc::new(1));
}
