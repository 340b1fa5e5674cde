//! A spin lock for runtime data shared between workers.
//!
//! Taking it switches preemption off first, so on its own worker nobody can meet it half held; a holder
//! on another worker runs on and lets go after a few instructions. It never sleeps in libc (trap: a
//! futex wait by a worker that holds preemption off could wait for a thread that only it can run), but
//! gives the processor away after a bounded number of rounds, for the case that the kernel has
//! descheduled the holder.

use crate::protocol::spin;
use crate::tls::{due, hot};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// Guards links between thread blocks (`tls::block`).
pub(crate) static LIST: SpinLock<()> = SpinLock::new(());

/// Data behind a spin lock.
pub(crate) struct SpinLock<T> {
    held: AtomicBool,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands the data to one thread at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(crate) const fn new(data: T) -> SpinLock<T> {
        SpinLock { held: AtomicBool::new(false), data: UnsafeCell::new(data) }
    }

    /// Takes the lock; preemption is off until the guard is dropped.
    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_, T> {
        hot::off();
        spin::acquire(&self.held);
        SpinGuard { lock: self, _not_send: core::marker::PhantomData }
    }

    /// The data, without the lock.
    ///
    /// # Safety
    /// As [`reset`](SpinLock::reset).
    pub(crate) unsafe fn peek(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.data.get() }
    }

    /// Forgets the holder and the data: for a fork child, where the holder does not exist any more.
    ///
    /// # Safety
    /// The process has one kernel thread, which does not hold the lock.
    pub(crate) unsafe fn reset(&self, data: T) {
        // SAFETY: nobody else is there. The old data may be half changed: it is not dropped.
        unsafe { self.data.get().write(data) };
        self.held.store(false, Ordering::Release);
    }
}

/// The lock, held. Dropping it lets go, then switches preemption back; a tick that came meanwhile stays
/// pending for the next place that looks.
pub(crate) struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
    _not_send: core::marker::PhantomData<*const ()>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        spin::release(&self.lock.held);
        if hot::on() {
            due::after_spin();
        }
    }
}
