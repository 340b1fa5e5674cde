//! The locks without data, which implement lock_api's traits: `lock_api::Mutex<RawMutex, T>` and its guards
//! come for free, mapped and fair and timed ones included. The types of [`sync`](super) are made of them.

pub(crate) mod condvar;
pub(crate) mod deadlock;
pub(crate) mod mutex;
pub(crate) mod owner;
pub(crate) mod rwlock;

pub use condvar::RawCondvar;
pub use mutex::{RawFairMutex, RawMutex};
pub use owner::{Held, RawThreadId};
pub use rwlock::RawRwLock;
