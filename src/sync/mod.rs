//! Waiting for each other: `std::sync`'s names and meanings, for reveille threads and plain kernel threads on
//! the same object. A reveille thread that waits gives its worker to others; a kernel thread sleeps in the
//! kernel.
#![allow(unsafe_code)]

mod barrier;
mod lazy_lock;
mod once;
mod once_lock;
mod permit;
mod poison;
pub mod raw;
mod rwlock;
mod semaphore;

pub use barrier::{Barrier, BarrierWaitResult};
pub use lazy_lock::LazyLock;
pub use once::{Once, OnceState};
pub use once_lock::OnceLock;
pub use permit::SemaphorePermit;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{Semaphore, TooManyPermits};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
