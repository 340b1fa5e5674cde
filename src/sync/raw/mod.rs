//! The locks without data, which implement lock_api's traits: `lock_api::RwLock<RawRwLock, T>` and its guards
//! come for free, mapped and fair and timed ones included. The types of [`sync`](super) are made of them.

pub(crate) mod rwlock;

pub use rwlock::RawRwLock;
