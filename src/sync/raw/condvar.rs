//! Condition variables that move waiters to the mutex instead of waking them to block again.
//!
//! The word says whether somebody waits, so that a notification of nobody is one load. The waiter:
//! 1. holds the mutex
//! 2. enters the condition variable's queue in the lot, with the mutex's address, and sets the word, under that
//!    queue's lock
//! 3. lets go of the mutex (handing it to its oldest waiter), then rests
//! 4. once awake: has been handed the mutex, or takes it
//!
//! The notifier:
//! a. reads the word: zero, and there is nobody
//! b. takes the oldest waiter out of the queue (clearing the word with the last one)
//! c. under the lock of the *mutex's* queue: while the mutex is owned the waiter enters that queue, as if it had
//!    come for the mutex; else it is woken, as the one who comes for it
//!
//! Notifying all is the same with all of them, of whom one at most is woken.
//!
//! # Why no notification is lost
//! Whoever notifies has made the condition true with the mutex held, before a. If the waiter looked at the
//! condition before that, it let go of the mutex (3) before the notifier took it, and 2 was before 3: so a sees
//! the word set, or a later notifier has taken the waiter out. If it looked after, it does not wait. Between b and c
//! the waiter is in no queue and nobody else can wake it: a deadline that passes there is not seen, which is
//! right, since the waiter *has* been notified; in the mutex's queue it has none.
//!
//! # What two generations of switches this saves
//! Woken by a notifier that holds the mutex, a waiter would block on it at once: two switches for nothing.
//! Here it runs when it has the mutex.

use super::mutex::{COMING, HANDED, RawMutex};
use super::owner::Held;
use crate::lot::{self, Moved, Wait, WaitsFor, Woken};
use crate::sys::clock::Deadline;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A condition variable for [`RawMutex`]. No spurious wake-ups; any number of mutexes.
#[derive(Debug, Default)]
pub struct RawCondvar(AtomicUsize);

impl RawCondvar {
    pub(crate) const fn new() -> RawCondvar {
        RawCondvar(AtomicUsize::new(0))
    }

    #[inline(always)]
    fn key(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// Waits; false if the deadline passed without a notification. The mutex is held by `me` before and after.
    pub(crate) fn wait_deadline(
        &self,
        mutex: &RawMutex,
        me: usize,
        deadline: Option<Deadline>,
    ) -> bool {
        let wait =
            Wait { aux: mutex.key(), ..Wait::on(self.key(), WaitsFor::Condvar).until(deadline) };
        let enter = || {
            self.0.store(1, Ordering::Relaxed);
            true
        };
        let unlock = || {
            mutex.unlock_to_wait(me);
            true
        };
        let woken = lot::park_after(wait, enter, unlock);
        let (notified, coming) = match woken {
            Woken::Unparked(HANDED) => return true,
            Woken::Unparked(COMING) => (true, true),
            Woken::TimedOut => (false, false),
            // Kicked, or in doubt.
            _ => (true, false),
        };
        mutex.lock_again(me, coming);
        notified
    }

    /// Notifies one waiter; false if there was none.
    #[inline]
    pub(crate) fn notify(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0 && self.notify_some(1) != 0
    }

    /// Notifies all; returns how many.
    #[inline]
    pub(crate) fn notify_everybody(&self) -> usize {
        if self.0.load(Ordering::Relaxed) == 0 { 0 } else { self.notify_some(usize::MAX) }
    }

    #[cold]
    #[inline(never)]
    fn notify_some(&self, n: usize) -> usize {
        let emptied = |more: bool| {
            if !more {
                self.0.store(0, Ordering::Relaxed);
            }
        };
        lot::move_waiters(self.key(), n, emptied, |mutex, more| {
            // SAFETY: a waiter of this queue needs this mutex, which lives while somebody waits for it.
            let mutex = unsafe { &*(mutex as *const RawMutex) };
            if mutex.word().admit(more) { Moved::Wake(COMING) } else { Moved::Enter }
        })
    }
}

// SAFETY: enters the queue before it lets go of the mutex, and takes the mutex again before it returns.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawCondvar = RawCondvar::new();

    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, guard: &mut Held) {
        self.wait_deadline(mutex, guard.me, None);
    }

    fn notify_one(&self) -> bool {
        self.notify()
    }

    fn notify_all(&self) -> usize {
        self.notify_everybody()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &core::time::Duration) -> Option<std::time::Instant> {
        std::time::Instant::now().checked_add(*timeout)
    }

    unsafe fn wait_until(
        &self,
        mutex: &RawMutex,
        guard: &mut Held,
        timeout: &std::time::Instant,
    ) -> bool {
        !self.wait_deadline(mutex, guard.me, Deadline::from_instant(*timeout))
    }
}
