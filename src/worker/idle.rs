//! A worker with nothing to do sleeps, and no wake-up is lost.
//!
//! The sleeper:
//! 1. says so: its word to ASLEEP, `idle` up
//! 2. heavy barrier
//! 3. looks at every queue once more; finds something: takes the word back and goes on
//! 4. futex wait while the word is ASLEEP
//!
//! Whoever makes a thread ready:
//! a. publishes it in a queue
//! b. light barrier (with the heavy one: either the sleeper's 3 sees a, or c sees 1)
//! c. reads `idle`; not zero: takes one sleeper's word from ASLEEP to AWAKE, `idle` down, futex wake
//!
//! So after a, either the sleeper does not sleep, or it is woken, or a busy worker's tick comes while the
//! thread waits (`give::share` leaves a single thread to its worker on purpose).

use super::Worker;
use super::shared::Shared;
use crate::sys::{futex, membarrier};
use crate::tcb::Record;
use core::sync::atomic::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Rounds that a worker looks round before it sleeps: some microseconds.
const SPINS: u32 = 64;

/// The word that a worker sleeps on.
pub(crate) struct Sleep(AtomicU32);

impl Sleep {
    pub(crate) const fn new() -> Sleep {
        Sleep(AtomicU32::new(AWAKE))
    }

    /// In a fork child.
    pub(crate) fn reset(&self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASLEEP
    }
}

impl Worker {
    /// The next thread, sleeping until there is one; `None` when the runtime closes. Loop only.
    pub(super) fn find(&self) -> Option<&'static Record> {
        loop {
            if let Some(r) = self.look() {
                return Some(r);
            }
            if !self.sole.get() {
                for _ in 0..SPINS {
                    core::hint::spin_loop();
                    if self.anything() {
                        break;
                    }
                }
                if let Some(r) = self.look() {
                    return Some(r);
                }
            }
            let shared = self.shared();
            if shared.is_over() {
                return None;
            }
            self.sleep(shared);
        }
    }

    /// A thread from anywhere; sees to ticks if more wait.
    fn look(&self) -> Option<&'static Record> {
        let r = self.pick().or_else(|| if self.sole.get() { None } else { self.steal() })?;
        if self.site.ticker.is_off() && self.anything_for_me() {
            self.site.ticker.arrival();
        }
        Some(r)
    }

    fn anything_for_me(&self) -> bool {
        let shared = self.shared();
        self.ring.len() != 0 || shared.arrivals.any() || shared.sliced.any()
    }

    fn anything(&self) -> bool {
        let shared = self.shared();
        shared.arrivals.any()
            || shared.sliced.any()
            || shared.workers().iter().any(|w| w.ring.len() != 0)
    }

    fn sleep(&self, shared: &Shared) {
        self.site.ticker.idle();
        self.sleep.0.store(ASLEEP, Ordering::SeqCst);
        shared.idle.fetch_add(1, Ordering::SeqCst);
        membarrier::heavy();
        if self.anything() || shared.is_over() {
            let mine = self.sleep.0.swap(AWAKE, Ordering::SeqCst);
            if mine == ASLEEP {
                shared.idle.fetch_sub(1, Ordering::SeqCst);
            }
            return;
        }
        while self.sleep.0.load(Ordering::Acquire) == ASLEEP {
            futex::wait(&self.sleep.0, ASLEEP);
        }
    }
}

impl Shared {
    /// Wakes one sleeping worker; false if none slept. Async-signal-safe.
    pub(crate) fn wake_one(&self) -> bool {
        for w in self.workers() {
            if self.wake(w) {
                return true;
            }
        }
        false
    }

    /// Wakes all sleeping workers.
    pub(crate) fn wake_all(&self) {
        for w in self.workers() {
            self.wake(w);
        }
    }

    fn wake(&self, w: &Worker) -> bool {
        let word = &w.sleep.0;
        let mine = word.load(Ordering::Relaxed) == ASLEEP
            && word.compare_exchange(ASLEEP, AWAKE, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if mine {
            self.idle.fetch_sub(1, Ordering::SeqCst);
            futex::wake(word, 1);
        }
        mine
    }
}
