//! A lock that its owner may take again: `std::sync::ReentrantLock`, over [`raw::RawMutex`](super::raw::RawMutex),
//! whose word says who the owner is.

use super::raw::{Held, RawMutex, owner};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use lock_api::RawMutex as _;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A lock that the thread which holds it may take again, and that gives shared access only; see
/// `std::sync::ReentrantLock`. It is never poisoned.
///
/// # Examples
/// ```
/// use reveille::sync::ReentrantLock;
/// use std::cell::Cell;
/// let lock = ReentrantLock::new(Cell::new(1));
/// let outer = lock.lock();
/// lock.lock().set(outer.get() + 1);
/// assert_eq!(outer.get(), 2);
/// ```
pub struct ReentrantLock<T: ?Sized> {
    raw: RawMutex,
    /// How often the owner holds it beyond the first time.
    again: Cell<u32>,
    data: T,
}

// SAFETY: one thread at a time has access to the data and the count.
unsafe impl<T: ?Sized + Send> Send for ReentrantLock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for ReentrantLock<T> {}
impl<T: ?Sized + UnwindSafe> UnwindSafe for ReentrantLock<T> {}
impl<T: ?Sized + RefUnwindSafe> RefUnwindSafe for ReentrantLock<T> {}

/// The lock, held; see `std::sync::ReentrantLockGuard`.
#[must_use = "the lock is let go of when the guard is dropped"]
pub struct ReentrantLockGuard<'a, T: ?Sized> {
    lock: &'a ReentrantLock<T>,
    _not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared access to the data.
unsafe impl<T: ?Sized + Sync> Sync for ReentrantLockGuard<'_, T> {}

impl<T> ReentrantLock<T> {
    /// A free lock with `value` in it.
    pub const fn new(value: T) -> ReentrantLock<T> {
        ReentrantLock { raw: RawMutex::INIT, again: Cell::new(0), data: value }
    }

    /// The data, without the lock.
    pub fn into_inner(self) -> T {
        self.data
    }
}

impl<T: ?Sized> ReentrantLock<T> {
    /// Takes the lock, waiting until no other thread holds it.
    ///
    /// # Panics
    /// If the thread holds it 2^32 times; or, with invariant checks on, if it would wait for threads that wait
    /// for each other.
    pub fn lock(&self) -> ReentrantLockGuard<'_, T> {
        if !self.is_mine() {
            let _held = self.raw.lock();
        }
        self.guard()
    }

    /// Takes the lock if no other thread holds it. (std's is not stable yet, and has no name of its own.)
    pub fn try_lock(&self) -> Option<ReentrantLockGuard<'_, T>> {
        (self.is_mine() || self.raw.try_lock().is_some()).then(|| self.guard())
    }

    fn is_mine(&self) -> bool {
        let mine = self.raw.word().owner() == owner::me();
        if mine {
            let again = self.again.get().checked_add(1);
            self.again.set(again.expect("a reentrant lock is held too often"));
        }
        mine
    }

    fn guard(&self) -> ReentrantLockGuard<'_, T> {
        ReentrantLockGuard { lock: self, _not_send: PhantomData }
    }

    /// The data; the borrow proves that nobody holds the lock.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.data
    }
}

impl<T: ?Sized> Deref for ReentrantLockGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.lock.data
    }
}

impl<T: ?Sized> Drop for ReentrantLockGuard<'_, T> {
    fn drop(&mut self) {
        match self.lock.again.get().checked_sub(1) {
            Some(again) => self.lock.again.set(again),
            // SAFETY: this thread holds it, for the last time.
            None => unsafe { self.lock.raw.unlock(Held::by(owner::me())) },
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ReentrantLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut d = f.debug_struct("ReentrantLock");
        match self.try_lock() {
            Some(guard) => d.field("data", &&*guard),
            None => d.field("data", &format_args!("<locked>")),
        };
        d.finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ReentrantLockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for ReentrantLockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Default> Default for ReentrantLock<T> {
    fn default() -> ReentrantLock<T> {
        ReentrantLock::new(T::default())
    }
}

impl<T> From<T> for ReentrantLock<T> {
    fn from(value: T) -> ReentrantLock<T> {
        ReentrantLock::new(value)
    }
}
