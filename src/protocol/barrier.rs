//! A barrier in one word: how many have come, and which round it is.
//!
//! The low half counts those who came in this round, the high half counts rounds. The last to come begins the next
//! round in the same step in which it comes ([`Came::Last`]), so nobody can come in between, and wakes those who
//! wait for this one to be over. The number of the round would have to go all the way round while one of them
//! sleeps to fool it: 2^32 rounds that it takes part in none of.
#![forbid(unsafe_code)]

use crate::prim::{AtomicUsize, Ordering};

const ROUND: usize = 1 << 32;
const COUNT: usize = ROUND - 1;

/// See the module's documentation. All zero: nobody has come.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct BarrierWord(AtomicUsize);

/// Somebody has come.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came {
    /// As the last one: the caller wakes all who wait.
    Last,
    /// The caller waits for the end of this round.
    Waits(usize),
}

impl BarrierWord {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> BarrierWord {
        BarrierWord(AtomicUsize::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> BarrierWord {
        BarrierWord(AtomicUsize::new(0))
    }

    /// One more of `n` has come.
    pub(crate) fn come(&self, n: usize) -> Came {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let last = (now & COUNT) + 1 >= n;
            let next = if last { (now & !COUNT).wrapping_add(ROUND) } else { now + 1 };
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, next, ok, failed) {
                Ok(_) if last => return Came::Last,
                Ok(_) => return Came::Waits(now & !COUNT),
                Err(other) => now = other,
            }
        }
    }

    /// The round is over, and what those who came wrote before is visible.
    #[must_use]
    pub(crate) fn is_over(&self, round: usize) -> bool {
        self.0.load(Ordering::Acquire) & !COUNT != round
    }
}
