//! A condition variable for kernel threads, notified in the three ways of 2005. `sync::os` tells the story.
//!
//! The words: `inner`, a lock for the condvar's own state; `seq`, on which waiters sleep, changed by every notify;
//! `waiters`, how many are between entering and leaving; `mutex`, the one they all came with. The last two change
//! under `inner` only.
//!
//! A waiter, who holds the mutex: (1) under `inner`, counts itself and reads `seq`; (2) unlocks the mutex; (3) sleeps
//! on `seq` until it differs from what it read, or time is over; (4) under `inner`, uncounts itself; (5) locks the
//! mutex.
//!
//! A notifier: (a) returns if `waiters` is 0; (b) under `inner`, changes `seq` and wakes, or moves, sleepers.
//!
//! *No wake-up is lost.* Let the notifier have changed what the waiter waits for under the mutex, after 2. By the
//! mutex, 1 comes before a, so a sees the waiter, unless it is at 4 and returns anyway. By `inner`, 1 comes before b,
//! so `seq` is another than the one read at 1. If the waiter sleeps at b, it is one of those from whom the kernel
//! takes the one to wake; if not yet, 3 does not let it sleep. Nobody who comes later can take its place: who enters
//! after b waits for the next change.
//!
//! *Nor one of those who were moved to the mutex's word.* Either the mutex was SLEEPERS after the move, then its
//! holder's unlock, which is still to come, wakes one; or it was not, then the notifier itself wakes one. Whoever is
//! woken finds `moved` set under `inner`, because it is set before the move and cleared by the last to leave, and so
//! locks as one of several sleepers; its unlock wakes the next.
//!
//! *Nor is a notify eaten by a time-out.* The kernel says "time is over" only to a sleeper that no wake has reached,
//! but one that was moved before its time was over has been notified all the same. So a waiter has timed out only
//! if `seq` has not changed either.
#![forbid(unsafe_code)]

use super::futex_lock::{Futex, FutexLock};
use crate::prim::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// The three generations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Wakes under `inner`.
    Plain,
    /// Moves to the mutex if that is held, else to `inner`.
    Requeue,
    /// Moves to the mutex if that is held, else wakes and releases `inner` in one step.
    WakeOp,
}

/// The kernel, and the way to the mutexes.
pub(crate) trait System: Futex {
    /// The mutex at an address that a waiter left, which has not come back from its wait.
    fn mutex(&self, address: *mut FutexLock) -> &FutexLock;
}

/// Waiters of a condvar came with two mutexes.
#[derive(Debug)]
pub(crate) struct TwoMutexes;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct CondWords {
    inner: FutexLock,
    seq: AtomicU32,
    waiters: AtomicU32,
    mutex: AtomicPtr<FutexLock>,
    /// A waiter that has not left yet may sleep on a lock's word without that lock's saying so.
    moved: AtomicBool,
}

impl Default for CondWords {
    fn default() -> CondWords {
        CondWords {
            inner: FutexLock::default(),
            seq: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            mutex: AtomicPtr::new(core::ptr::null_mut()),
            moved: AtomicBool::new(false),
        }
    }
}

impl CondWords {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> CondWords {
        CondWords {
            inner: FutexLock::new(),
            seq: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            mutex: AtomicPtr::new(core::ptr::null_mut()),
            moved: AtomicBool::new(false),
        }
    }

    /// Waits for a notify, or `until`; the caller holds the mutex, before and after. True if it timed out.
    pub(crate) fn wait<K: System>(
        &self,
        kernel: &K,
        mutex: &FutexLock,
        until: Option<K::Deadline>,
    ) -> Result<bool, TwoMutexes> {
        let seen = self.enter(kernel, mutex)?;
        mutex.unlock(kernel);
        let mut over = false;
        while !over && self.seq.load(Ordering::Relaxed) == seen {
            over = kernel.wait(&self.seq, seen, until);
        }
        // A moved waiter may have come from the queue of `inner` itself.
        let moved = self.moved.load(Ordering::Relaxed);
        if moved {
            self.inner.lock_as_woken(kernel)
        } else {
            self.inner.lock(kernel)
        }
        let notified = self.seq.load(Ordering::Relaxed) != seen;
        let moved = self.moved.load(Ordering::Relaxed);
        self.leave(kernel);
        if moved {
            mutex.lock_as_woken(kernel)
        } else {
            mutex.lock(kernel)
        }
        Ok(over && !notified)
    }

    /// Counts a waiter; returns the number of the last notify.
    fn enter(&self, kernel: &impl Futex, mutex: &FutexLock) -> Result<u32, TwoMutexes> {
        let address = core::ptr::from_ref(mutex).cast_mut();
        self.inner.lock(kernel);
        let waiters = self.waiters.load(Ordering::Relaxed);
        let fits = waiters == 0 || self.mutex.load(Ordering::Relaxed) == address;
        if fits {
            self.mutex.store(address, Ordering::Relaxed);
            self.waiters.store(waiters + 1, Ordering::Relaxed);
        }
        let seen = self.seq.load(Ordering::Relaxed);
        self.inner.unlock(kernel);
        if fits { Ok(seen) } else { Err(TwoMutexes) }
    }

    /// Uncounts a waiter that holds `inner`, and lets go of it.
    fn leave(&self, kernel: &impl Futex) {
        let waiters = self.waiters.load(Ordering::Relaxed) - 1;
        self.waiters.store(waiters, Ordering::Relaxed);
        if waiters == 0 {
            self.moved.store(false, Ordering::Relaxed);
        }
        self.inner.unlock(kernel);
    }

    /// How many threads wait, by now or still.
    pub(crate) fn waiters(&self) -> u32 {
        self.waiters.load(Ordering::Relaxed)
    }

    /// Takes `inner` and changes `seq`; the new value, or nothing if nobody waits.
    #[inline]
    fn announce(&self, kernel: &impl Futex) -> Option<u32> {
        if self.waiters() == 0 {
            return None;
        }
        self.inner.lock(kernel);
        if self.waiters() == 0 {
            self.inner.unlock(kernel);
            return None;
        }
        let seq = self.seq.load(Ordering::Relaxed).wrapping_add(1);
        self.seq.store(seq, Ordering::Relaxed);
        Some(seq)
    }

    pub(crate) fn notify_one(&self, how: How, kernel: &impl System) {
        let Some(seq) = self.announce(kernel) else { return };
        if how == How::Plain {
            return self.wake(kernel, 1);
        }
        let mutex = kernel.mutex(self.mutex.load(Ordering::Relaxed));
        if mutex.announce_sleeper() {
            self.move_to(kernel, seq, 1, mutex);
        } else if how == How::Requeue {
            self.move_to_inner(kernel, seq);
        } else if !kernel.wake_and_release(&self.seq, self.inner.word()) {
            self.wake(kernel, 1);
        }
    }

    pub(crate) fn notify_all(&self, how: How, kernel: &impl System) {
        let Some(seq) = self.announce(kernel) else { return };
        if how == How::Plain {
            return self.wake(kernel, u32::MAX >> 1);
        }
        let mutex = kernel.mutex(self.mutex.load(Ordering::Relaxed));
        let _ = mutex.announce_sleeper();
        self.move_to(kernel, seq, u32::MAX >> 1, mutex);
    }

    /// Wakes under `inner`, which each of the woken wants: on one processor two switches for nothing.
    fn wake(&self, kernel: &impl Futex, n: u32) {
        kernel.wake(&self.seq, n);
        self.inner.unlock(kernel);
    }

    /// Moves sleepers to the mutex's word, and wakes one of them if nobody else will.
    fn move_to(&self, kernel: &impl Futex, seq: u32, n: u32, mutex: &FutexLock) {
        self.moved.store(true, Ordering::Relaxed);
        kernel.requeue(&self.seq, seq, n, mutex.word());
        let unannounced = !mutex.will_wake();
        let word = core::ptr::from_ref(mutex.word());
        self.inner.unlock(kernel);
        // Waiters may have left and dropped the mutex by now: its address is a key, no more.
        if unannounced {
            kernel.wake(word, 1);
        }
    }

    /// Moves a sleeper to `inner`, which the caller holds and whose unlock wakes it.
    fn move_to_inner(&self, kernel: &impl Futex, seq: u32) {
        self.moved.store(true, Ordering::Relaxed);
        let held = self.inner.announce_sleeper();
        debug_assert!(held);
        kernel.requeue(&self.seq, seq, 1, self.inner.word());
        self.inner.unlock(kernel);
    }
}
