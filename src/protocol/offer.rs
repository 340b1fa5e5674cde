//! The word of somebody who waits at one channel or at several at once: who serves it, and what came of it.
//!
//! ```text
//!   WAITING --claim--> CLAIMED --finish--> an outcome
//!   WAITING -----------finish------------> an outcome        at one channel only
//! ```
//!
//! A waiter stands in the queue of each channel that it waits at. Whoever takes it out of such a queue, under
//! that channel's lock, serves it: moves the value, then says so with [`Offer::finish`].
//! * At one channel, being taken out of the queue is all: the lock lets one do it. A waiter whose time is over
//!   takes itself out, under the same lock, or finds that it has been taken and will be finished.
//! * At several, two may take it out of two queues at once. [`Offer::claim`] lets one of them; the other passes it
//!   over. A waiter whose time is over claims itself.
//!
//! # Nothing is lost
//! 1. the value is moved after the claim and before the outcome, so it is moved once, and the waiter, which
//!    looks at its place only after the outcome ([`Offer::outcome`] acquires what `finish` releases), sees all of it
//! 2. who has claimed finishes, and a waiter leaves only after the outcome or its own claim; so whoever serves finds
//!    the waiter's frame alive, up to `finish`, which is its last access
//! 3. a waiter rests only while there is no outcome, as a check under the lot's lock; `finish` is called under
//!    that lock. So either the check sees the outcome or the waker finds the waiter
#![forbid(unsafe_code)]

use crate::prim::{AtomicUsize, Ordering};

const WAITING: usize = 0;
const CLAIMED: usize = 1;
/// Outcomes begin here.
const FIRST: usize = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Offer(AtomicUsize);

impl Offer {
    pub(crate) fn new() -> Offer {
        Offer(AtomicUsize::new(WAITING))
    }

    /// The caller alone serves the waiter from here on; or, called by itself, nobody does.
    #[must_use]
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        self.0.compare_exchange(WAITING, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// By who serves it: this is the outcome. The waiter may be gone after that.
    #[inline]
    pub(crate) fn finish(&self, outcome: usize) {
        self.0.store(outcome + FIRST, Ordering::Release);
    }

    /// What came of it, if it is finished; what was written before is visible.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<usize> {
        self.0.load(Ordering::Acquire).checked_sub(FIRST)
    }
}
