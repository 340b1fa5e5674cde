//! Waiting for each other: `std::sync`'s names and meanings, for reveille threads and plain kernel threads on
//! the same object. A reveille thread that waits gives its worker to others; a kernel thread sleeps in the
//! kernel.
#![allow(unsafe_code)]

mod condvar;
pub mod mpmc;
pub mod mpsc;
mod mutex;
pub mod os;
mod poison;
pub mod raw;
mod reentrant;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{FairMutex, Mutex, MutexGuard};
pub use reentrant::{ReentrantLock, ReentrantLockGuard};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
