//! Poisoning, as std has it: a lock whose holder panicked says so to the next.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LockResult, PoisonError};

/// Whether somebody panicked while holding the lock.
#[derive(Debug)]
pub(crate) struct Flag(AtomicBool);

/// Whether the thread was panicking when it took the lock.
#[derive(Debug)]
pub(crate) struct Panicking(bool);

impl Flag {
    pub(crate) const fn new() -> Flag {
        Flag(AtomicBool::new(false))
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// The lock has been taken.
    #[inline]
    pub(crate) fn enter(&self) -> Panicking {
        Panicking(std::thread::panicking())
    }

    /// The lock is about to be let go of: poisoned, if a panic began meanwhile.
    #[inline]
    pub(crate) fn leave(&self, entered: &Panicking) {
        if !entered.0 && std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// `value`, as an error if the lock is poisoned.
    #[inline]
    pub(crate) fn wrap<T>(&self, value: T) -> LockResult<T> {
        if self.is_set() { Err(PoisonError::new(value)) } else { Ok(value) }
    }
}
