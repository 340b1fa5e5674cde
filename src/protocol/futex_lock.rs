//! The futex mutex of three states: free, held, held and somebody may sleep.
//!
//! 1. `lock` turns FREE into HELD. If it cannot, it swaps SLEEPERS in until it finds FREE, and sleeps in
//!    between while the word is SLEEPERS. So whoever has slept holds the lock as SLEEPERS: others may still sleep.
//! 2. `unlock` swaps FREE in, and wakes one sleeper if it found SLEEPERS.
//!
//! Whoever sleeps is thus followed by a wake: either the word is SLEEPERS, and its holder's unlock wakes one, or
//! somebody has been woken who will swap SLEEPERS in before it can rest. A thread that is put to sleep on the word by
//! others ([`condvar2005`](super::condvar2005)) keeps this if it takes the lock by [`FutexLock::lock_as_woken`].
#![forbid(unsafe_code)]

use crate::prim::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const SLEEPERS: u32 = 2;

/// futex(2), or its model. Words that are only keys are passed by address: they may be gone already.
pub(crate) trait Futex {
    /// A time at which a sleep ends.
    type Deadline: Copy;

    /// Sleeps while the word has the value expected. May return early. True: the time is over, and no wake was for
    /// this sleeper.
    fn wait(&self, word: &AtomicU32, expected: u32, until: Option<Self::Deadline>) -> bool;
    /// Wakes at most `n` sleepers.
    fn wake(&self, word: *const AtomicU32, n: u32);
    /// If the word `from` has the value expected, moves at most `n` of its sleepers to `to` without waking them.
    fn requeue(&self, from: &AtomicU32, expected: u32, n: u32, to: &AtomicU32);
    /// In one step: wakes a sleeper of `word`, stores 0 to `lock`, and wakes a sleeper of that if it was above 1.
    /// False: the kernel cannot, and nothing was done.
    #[must_use]
    fn wake_and_release(&self, word: &AtomicU32, lock: &AtomicU32) -> bool;
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct FutexLock(AtomicU32);

impl Default for FutexLock {
    fn default() -> FutexLock {
        FutexLock(AtomicU32::new(FREE))
    }
}

impl FutexLock {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> FutexLock {
        FutexLock(AtomicU32::new(FREE))
    }

    #[must_use]
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub(crate) fn lock(&self, kernel: &impl Futex) {
        if !self.try_lock() {
            self.lock_as_woken(kernel);
        }
    }

    /// Takes the lock where others may sleep on its word without its saying so.
    pub(crate) fn lock_as_woken(&self, kernel: &impl Futex) {
        let taken = self.lock_until(kernel, None);
        debug_assert!(taken);
    }

    /// As [`lock_as_woken`](FutexLock::lock_as_woken) until a point in time. False if it is over.
    #[must_use]
    pub(crate) fn lock_until<K: Futex>(&self, kernel: &K, until: Option<K::Deadline>) -> bool {
        let mut over = false;
        while self.0.swap(SLEEPERS, Ordering::Acquire) != FREE {
            if over {
                // Leaves SLEEPERS behind: one wake too many at the most.
                return false;
            }
            over = kernel.wait(&self.0, SLEEPERS, until);
        }
        true
    }

    #[inline]
    pub(crate) fn unlock(&self, kernel: &impl Futex) {
        if self.0.swap(FREE, Ordering::Release) == SLEEPERS {
            kernel.wake(&self.0, 1);
        }
    }

    #[must_use]
    pub(crate) fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != FREE
    }

    /// Has whoever holds the lock wake somebody when it lets go. False if nobody holds it.
    #[must_use]
    pub(crate) fn announce_sleeper(&self) -> bool {
        match self.0.compare_exchange(HELD, SLEEPERS, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(now) => now == SLEEPERS,
        }
    }

    /// Whether a sleeper that is on the word now will be woken by the holder's unlock.
    #[must_use]
    pub(crate) fn will_wake(&self) -> bool {
        self.0.load(Ordering::SeqCst) == SLEEPERS
    }

    /// What threads sleep on.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}
