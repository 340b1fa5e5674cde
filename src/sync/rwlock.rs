//! `RwLock`: [`raw::RawRwLock`](super::raw::RawRwLock) with data and poisoning.

use super::poison;
use super::raw::RawRwLock;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use lock_api::GuardNoSend;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, TryLockError, TryLockResult};

/// A reader-writer lock; see [`std::sync::RwLock`]. Readers hold it together, a writer alone.
///
/// # Fairness
/// Those who wait stand in one queue, and nobody comes in past it: once a thread has entered, it waits for those who
/// hold the lock and those who stand before it, and for nobody who comes later. So readers cannot starve
/// writers, nor writers readers. It follows, as with std's, that a thread that reads already must not
/// read again: a writer may have queued in between.
///
/// # Examples
/// ```
/// use reveille::sync::RwLock;
/// static NUMBERS: RwLock<Vec<u32>> = RwLock::new(Vec::new());
/// reveille::thread::spawn(|| NUMBERS.write().unwrap().push(5)).join().unwrap();
/// // A kernel thread reads what a reveille thread wrote.
/// assert_eq!(*NUMBERS.read().unwrap(), [5]);
/// ```
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    poison: poison::Flag,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives the data to one writer at a time, or to readers, who share it.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}
impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

/// Shared access to the data of a [`RwLock`]; dropping it lets go.
///
/// # Examples
/// ```
/// let lock = reveille::sync::RwLock::new(1);
/// let (a, b) = (lock.read().unwrap(), lock.read().unwrap());
/// assert_eq!(*a + *b, 2);
/// ```
#[must_use = "the lock is let go of when the guard is dropped"]
#[clippy::has_significant_drop]
pub struct RwLockReadGuard<'a, T: ?Sized + 'a> {
    // A pointer: the data may be written as soon as the lock is let go of, while a guard that is passed by
    // value is still a live argument.
    data: NonNull<T>,
    raw: &'a RawRwLock,
    _not_send: PhantomData<GuardNoSend>,
}

/// Exclusive access to the data of a [`RwLock`]; dropping it lets go.
///
/// # Examples
/// ```
/// let lock = reveille::sync::RwLock::new(1);
/// *lock.write().unwrap() += 1;
/// assert_eq!(*lock.read().unwrap(), 2);
/// ```
#[must_use = "the lock is let go of when the guard is dropped"]
#[clippy::has_significant_drop]
pub struct RwLockWriteGuard<'a, T: ?Sized + 'a> {
    lock: &'a RwLock<T>,
    entered: poison::Panicking,
    _not_send: PhantomData<GuardNoSend>,
}

// SAFETY: a shared guard gives shared access only.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    /// A lock that nobody holds.
    ///
    /// # Examples
    /// ```
    /// static LOCK: reveille::sync::RwLock<u32> = reveille::sync::RwLock::new(5);
    /// assert_eq!(*LOCK.read().unwrap(), 5);
    /// ```
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { raw: RawRwLock::new(), poison: poison::Flag::new(), data: UnsafeCell::new(value) }
    }

    /// The data.
    ///
    /// # Errors
    /// If the lock is poisoned; the error has the data.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(reveille::sync::RwLock::new(5).into_inner().unwrap(), 5);
    /// ```
    pub fn into_inner(self) -> LockResult<T> {
        let RwLock { poison, data, .. } = self;
        poison.wrap(data.into_inner())
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes and none who came before waits, and reads.
    ///
    /// # Errors
    /// If the lock is poisoned; the error has the guard.
    ///
    /// # Panics
    /// If there are more readers than can be counted.
    ///
    /// # Examples
    /// ```
    /// let lock = reveille::sync::RwLock::new(5);
    /// assert_eq!(*lock.read().unwrap(), 5);
    /// ```
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.raw.read();
        self.poison.wrap(self.reading())
    }

    /// Reads if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if somebody writes or waits; [`TryLockError::Poisoned`] as
    /// [`read`](RwLock::read).
    ///
    /// # Examples
    /// ```
    /// let lock = reveille::sync::RwLock::new(5);
    /// let writes = lock.write().unwrap();
    /// assert!(lock.try_read().is_err());
    /// drop(writes);
    /// assert!(lock.try_read().is_ok());
    /// ```
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        if self.raw.try_read() {
            Ok(self.poison.wrap(self.reading())?)
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    /// Waits until nobody else has the lock and none who came before waits, and writes.
    ///
    /// # Errors
    /// If the lock is poisoned; the error has the guard.
    ///
    /// # Examples
    /// ```
    /// let lock = reveille::sync::RwLock::new(5);
    /// *lock.write().unwrap() = 6;
    /// assert_eq!(lock.into_inner().unwrap(), 6);
    /// ```
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        self.raw.write();
        self.poison.wrap(self.writing())
    }

    /// Writes if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if somebody has the lock or waits; [`TryLockError::Poisoned`] as
    /// [`write`](RwLock::write).
    ///
    /// # Examples
    /// ```
    /// let lock = reveille::sync::RwLock::new(5);
    /// let reads = lock.read().unwrap();
    /// assert!(lock.try_write().is_err());
    /// drop(reads);
    /// *lock.try_write().unwrap() = 6;
    /// ```
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        if self.raw.try_write() {
            Ok(self.poison.wrap(self.writing())?)
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    /// Whether a writer panicked.
    ///
    /// # Examples
    /// ```
    /// assert!(!reveille::sync::RwLock::new(5).is_poisoned());
    /// ```
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_set()
    }

    /// The data is in order again.
    ///
    /// # Examples
    /// ```
    /// let lock = std::sync::Arc::new(reveille::sync::RwLock::new(5));
    /// let other = std::sync::Arc::clone(&lock);
    /// let failed = reveille::thread::spawn(move || {
    ///     let _writes = other.write().unwrap();
    ///     panic!("in the middle");
    /// });
    /// assert!(failed.join().is_err());
    /// *lock.write().unwrap_err().into_inner() = 6;
    /// lock.clear_poison();
    /// assert_eq!(*lock.read().unwrap(), 6);
    /// ```
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// The data, which nobody else can have now.
    ///
    /// # Errors
    /// If the lock is poisoned; the error has the reference.
    ///
    /// # Examples
    /// ```
    /// let mut lock = reveille::sync::RwLock::new(5);
    /// *lock.get_mut().unwrap() = 6;
    /// assert_eq!(lock.into_inner().unwrap(), 6);
    /// ```
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.poison.wrap(self.data.get_mut())
    }

    /// The guard of a reader; the lock has been taken for it.
    #[inline(always)]
    fn reading(&self) -> RwLockReadGuard<'_, T> {
        // SAFETY: a live place.
        let data = unsafe { NonNull::new_unchecked(self.data.get()) };
        RwLockReadGuard { data, raw: &self.raw, _not_send: PhantomData }
    }

    /// The guard of a writer; the lock has been taken for it.
    #[inline(always)]
    fn writing(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard { lock: self, entered: self.poison.enter(), _not_send: PhantomData }
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Reads on, without letting others write in between; see `std::sync::RwLockWriteGuard::downgrade`.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::{RwLock, RwLockWriteGuard};
    /// let lock = RwLock::new(5);
    /// let mut writes = lock.write().unwrap();
    /// *writes = 6;
    /// let reads = RwLockWriteGuard::downgrade(writes);
    /// assert_eq!(*reads + *lock.read().unwrap(), 12);
    /// ```
    pub fn downgrade(s: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let s = ManuallyDrop::new(s);
        let lock = s.lock;
        lock.poison.leave(&s.entered);
        lock.raw.downgrade_write();
        lock.reading()
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.raw.release_read();
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.poison.leave(&self.entered);
        self.lock.raw.release_write();
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, alone.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => out.field("data", &&*guard),
            Err(TryLockError::Poisoned(e)) => out.field("data", &&**e.get_ref()),
            Err(TryLockError::WouldBlock) => out.field("data", &format_args!("<locked>")),
        };
        out.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
