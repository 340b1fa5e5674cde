//! A worker's search for work, and its sleep when there is none. How no wake-up is lost: `sched::idle`.
//!
//! `give::share` leaves a single thread to the worker that made it ready, on purpose: there a busy worker's
//! tick takes the place of the wake-up.

use super::Worker;
use super::shared::Shared;
use crate::sched::idle::Kernel;
use crate::sys::{futex, membarrier};
use crate::tcb::Record;
use core::sync::atomic::AtomicU32;

/// Rounds that a worker looks round before it sleeps: some microseconds.
const SPINS: u32 = 64;

/// What the sleep protocol is made of, here.
pub(crate) struct Linux;

impl Kernel for Linux {
    #[inline(always)]
    fn light(&self) {
        membarrier::light();
    }

    fn heavy(&self) {
        membarrier::heavy();
    }

    fn wait(&self, word: &AtomicU32, expected: u32) {
        futex::wait(word, expected);
    }

    fn wake(&self, word: &AtomicU32) {
        futex::wake(word, 1);
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
        self.site.alarm.is_due()
            || shared.arrivals.any()
            || shared.sliced.any()
            || shared.workers().iter().any(|w| w.ring.len() != 0)
    }

    fn sleep(&self, shared: &Shared) {
        self.site.ticker.idle();
        shared.idle.sleep(&Linux, &self.sleep, || self.anything() || shared.is_over());
    }
}

impl Shared {
    /// Wakes one sleeping worker; false if none slept. Async-signal-safe.
    pub(crate) fn wake_one(&self) -> bool {
        self.workers().iter().any(|w| self.idle.wake(&Linux, &w.sleep))
    }

    /// Wakes `w`; false if it did not sleep. Async-signal-safe.
    pub(crate) fn wake(&self, w: &Worker) -> bool {
        self.idle.wake(&Linux, &w.sleep)
    }

    /// Wakes all sleeping workers.
    pub(crate) fn wake_all(&self) {
        for w in self.workers() {
            let _slept = self.idle.wake(&Linux, &w.sleep);
        }
    }
}
