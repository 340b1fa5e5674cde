//! A mutex: `std::sync::Mutex`, over [`raw::RawMutex`](super::raw::RawMutex).

use super::poison::{Flag, Panicking};
use super::raw::{Held, RawFairMutex, RawMutex};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use lock_api::RawMutex as _;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, TryLockError, TryLockResult};
use std::time::{Duration, Instant};

mod sealed {
    pub trait Sealed {}
    impl<const FAIR: bool> Sealed for super::super::raw::mutex::RawMutexOf<FAIR> {}
}

/// A raw mutex of this crate: [`RawMutex`] or [`RawFairMutex`].
pub trait Raw:
    sealed::Sealed
    + lock_api::RawMutexFair<Guard = Held>
    + lock_api::RawMutexTimed<Guard = Held, Duration = Duration, Instant = Instant>
{
    /// The word, whatever its way of letting go.
    #[doc(hidden)]
    fn as_plain(&self) -> &RawMutex;
}

impl<const FAIR: bool> Raw for super::raw::mutex::RawMutexOf<FAIR> {
    fn as_plain(&self) -> &RawMutex {
        self.plain()
    }
}

/// A mutual exclusion lock; see [`std::sync::Mutex`]. A reveille thread that waits gives its worker to others,
/// a kernel thread sleeps.
///
/// One word of state beside the data and the poison flag. Waiters are served in order; whoever unlocks while others
/// wait may take it again before the next one has come, at most 32 times. [`FairMutex`] hands over at each
/// unlock, as does [`MutexGuard::unlock_fair`].
///
/// # Panics
/// Locking it panics if the calling thread holds it already; and, with invariant checks on (the default), if
/// the thread would wait for threads that wait for each other. std's may hang there instead.
///
/// # Examples
/// ```
/// use reveille::{sync::Mutex, thread};
/// static TOTAL: Mutex<u32> = Mutex::new(0);
/// let threads: Vec<_> = (0..10).map(|i| thread::spawn(move || *TOTAL.lock().unwrap() += i)).collect();
/// threads.into_iter().for_each(|t| t.join().unwrap());
/// assert_eq!(*TOTAL.lock().unwrap(), 45);
/// ```
pub struct Mutex<T: ?Sized, R: Raw = RawMutex> {
    raw: R,
    poison: Flag,
    data: UnsafeCell<T>,
}

/// A [`Mutex`] that an unlock hands to the oldest waiter: nobody is passed over, and each contended unlock costs a
/// switch.
///
/// # Examples
/// ```
/// let m = reveille::sync::FairMutex::new_fair(1);
/// *m.lock().unwrap() += 1;
/// assert_eq!(m.into_inner().unwrap(), 2);
/// ```
pub type FairMutex<T> = Mutex<T, RawFairMutex>;

// SAFETY: the lock hands the data to one thread at a time.
unsafe impl<T: ?Sized + Send, R: Raw> Send for Mutex<T, R> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send, R: Raw> Sync for Mutex<T, R> {}
impl<T: ?Sized, R: Raw> UnwindSafe for Mutex<T, R> {}
impl<T: ?Sized, R: Raw> RefUnwindSafe for Mutex<T, R> {}

/// The mutex, held; see [`std::sync::MutexGuard`].
#[must_use = "the mutex is let go of when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized, R: Raw = RawMutex> {
    pub(super) mutex: &'a Mutex<T, R>,
    pub(super) me: usize,
    pub(super) panicking: Panicking,
    _not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared access to the data.
unsafe impl<T: ?Sized + Sync, R: Raw> Sync for MutexGuard<'_, T, R> {}

impl<T> Mutex<T> {
    /// A free mutex with `value` in it.
    #[inline]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { raw: RawMutex::INIT, poison: Flag::new(), data: UnsafeCell::new(value) }
    }
}

impl<T> FairMutex<T> {
    /// A free mutex with `value` in it.
    #[inline]
    pub const fn new_fair(value: T) -> FairMutex<T> {
        Mutex { raw: RawFairMutex::INIT, poison: Flag::new(), data: UnsafeCell::new(value) }
    }
}

impl<T, R: Raw> Mutex<T, R> {
    /// The data, without the mutex.
    ///
    /// # Errors
    /// If the mutex is poisoned; the error holds the data.
    pub fn into_inner(self) -> LockResult<T> {
        let poison = self.poison;
        poison.wrap(self.data.into_inner())
    }
}

impl<T: ?Sized, R: Raw> Mutex<T, R> {
    /// Takes the mutex, waiting until it is free; see [`std::sync::Mutex::lock`].
    ///
    /// # Errors
    /// If another thread panicked while it held the mutex; the error holds the guard.
    ///
    /// # Panics
    /// If this would wait for ever; see [`Mutex`].
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T, R>> {
        self.held(self.raw.lock())
    }

    /// Takes the mutex if it is free; see [`std::sync::Mutex::try_lock`].
    ///
    /// # Errors
    /// If it is not, or if it is poisoned.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T, R>> {
        self.tried(self.raw.try_lock())
    }

    /// Takes the mutex, waiting for at most `timeout`.
    ///
    /// # Errors
    /// As [`try_lock`](Mutex::try_lock).
    pub fn try_lock_for(&self, timeout: Duration) -> TryLockResult<MutexGuard<'_, T, R>> {
        self.tried(self.raw.try_lock_for(timeout))
    }

    /// Takes the mutex, waiting until `deadline` at the latest.
    ///
    /// # Errors
    /// As [`try_lock`](Mutex::try_lock).
    pub fn try_lock_until(&self, deadline: Instant) -> TryLockResult<MutexGuard<'_, T, R>> {
        self.tried(self.raw.try_lock_until(deadline))
    }

    #[inline]
    fn held(&self, held: Held) -> LockResult<MutexGuard<'_, T, R>> {
        let panicking = self.poison.enter();
        let guard = MutexGuard { mutex: self, me: held.me, panicking, _not_send: PhantomData };
        self.poison.wrap(guard)
    }

    #[inline]
    fn tried(&self, held: Option<Held>) -> TryLockResult<MutexGuard<'_, T, R>> {
        match held {
            Some(held) => Ok(self.held(held)?),
            None => Err(TryLockError::WouldBlock),
        }
    }

    /// Whether a thread panicked while it held the mutex.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_set()
    }

    /// The data is in order again: the mutex is no longer poisoned.
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// The data; the borrow proves that nobody holds the mutex.
    ///
    /// # Errors
    /// If the mutex is poisoned; the error holds the reference.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.poison.wrap(self.data.get_mut())
    }

    pub(super) fn raw(&self) -> &R {
        &self.raw
    }
}

impl<T: ?Sized, R: Raw> MutexGuard<'_, T, R> {
    /// Lets go of the mutex, and hands it to the oldest waiter if there is one.
    pub fn unlock_fair(this: Self) {
        let this = core::mem::ManuallyDrop::new(this);
        this.mutex.poison.leave(&this.panicking);
        // SAFETY: the guard holds the mutex, and is not dropped.
        unsafe { this.mutex.raw.unlock_fair(Held::by(this.me)) };
    }
}

impl<T: ?Sized, R: Raw> Deref for MutexGuard<'_, T, R> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the mutex.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized, R: Raw> DerefMut for MutexGuard<'_, T, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the mutex.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized, R: Raw> Drop for MutexGuard<'_, T, R> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.poison.leave(&self.panicking);
        // SAFETY: the guard holds the mutex.
        unsafe { self.mutex.raw.unlock(Held::by(self.me)) };
    }
}

impl<T: ?Sized + fmt::Debug, R: Raw> fmt::Debug for Mutex<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut d = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => d.field("data", &&*guard),
            Err(TryLockError::Poisoned(e)) => d.field("data", &&**e.get_ref()),
            Err(TryLockError::WouldBlock) => d.field("data", &format_args!("<locked>")),
        };
        d.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug, R: Raw> fmt::Debug for MutexGuard<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display, R: Raw> fmt::Display for MutexGuard<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}
