//! Waiting for each other: `std::sync`'s names and meanings, for reveille threads and plain kernel threads on
//! the same object. A reveille thread that waits gives its worker to others; a kernel thread sleeps in the
//! kernel.
#![allow(unsafe_code)]

mod barrier;
mod condvar;
mod lazy_lock;
pub mod mpmc;
pub mod mpsc;
mod mutex;
mod once;
mod once_lock;
pub mod os;
mod permit;
mod poison;
pub mod raw;
mod reentrant;
mod rwlock;
mod semaphore;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use lazy_lock::LazyLock;
pub use mutex::{FairMutex, Mutex, MutexGuard};
pub use once::{Once, OnceState};
pub use once_lock::OnceLock;
pub use permit::SemaphorePermit;
pub use reentrant::{ReentrantLock, ReentrantLockGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{Semaphore, TooManyPermits};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
