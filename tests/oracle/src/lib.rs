//! A crate to be named `std`: `extern crate oracle as std`. What reveille offers is reveille's, what else the
//! tests need is std's, each by name, so that nothing is tested against itself by mistake.
#![feature(mapped_lock_guards, test)]
#![allow(clippy::legacy_numeric_constants)] // std's tests import one

pub mod list;
pub mod nonpoison;
pub mod runner;

pub use std::{
    alloc, any, cell, collections, convert, env, ffi, fmt, fs, hash, hint, iter, marker, mem,
};
pub use std::{ops, option, panic, path, process, ptr, rc, result, time, u32};

/// reveille's threads.
pub mod thread {
    pub use reveille::thread::*;
    // These work in any thread.
    pub use std::thread::{LocalKey, panicking};
}

/// reveille's waiting.
pub mod sync {
    pub use reveille::sync::{Barrier, Condvar, LazyLock, Mutex, MutexGuard, Once, OnceLock};
    pub use reveille::sync::{BarrierWaitResult, OnceState, ReentrantLock, ReentrantLockGuard};
    pub use reveille::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
    pub use reveille::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult};
    // Not about waiting.
    pub use std::sync::{Arc, Weak, atomic};
    // Not offered: named by `use` lines, and by tests that the list leaves out.
    pub use std::sync::{MappedMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard};

    /// std's names for what can be poisoned.
    pub mod poison {
        pub use super::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
        pub use super::{LockResult, PoisonError, TryLockError, TryLockResult};
    }

    pub use crate::nonpoison;
    pub use reveille::sync::{mpmc, mpsc};
}
