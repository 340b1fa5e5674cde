//! From which queue the next thread comes.
//!
//! New and woken threads (a worker's own ring, then the arrivals from outside) go before threads that
//! used up their slice. So that an endless stream of short threads cannot starve the others, each
//! queue is asked first once in a while, counted in switches.
//!
//! A switch need not be a choice: a thread that ends goes to its joiner directly. So a turn is due *from*
//! a switch on, not at one: a loop of spawn and join has a choice at every second switch only.
//!
//! The bound: among any [`PATIENCE`] choices of a worker there is one that asks the sliced threads first and
//! one that asks the arrivals first. All others ask the ring first.
#![forbid(unsafe_code)]

use core::cell::Cell;

/// A queue that a worker may take from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The worker's own ring.
    Ring,
    /// Threads spawned or woken from outside the runtime's workers.
    Arrivals,
    /// Threads that used up their slice.
    Sliced,
}

/// Every so many switches a worker looks at the sliced threads first, and half way between at the
/// arrivals: the bound on how many newer threads can pass one that waits.
pub(crate) const PATIENCE: u64 = 64;

const USUAL: [Source; 3] = [Source::Ring, Source::Arrivals, Source::Sliced];
const SLICED_FIRST: [Source; 3] = [Source::Sliced, Source::Ring, Source::Arrivals];
const ARRIVALS_FIRST: [Source; 3] = [Source::Arrivals, Source::Ring, Source::Sliced];

/// Whose turn it is on one worker.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// From this switch on, the next choice does not begin with the ring.
    due: Cell<u64>,
    /// It begins with the arrivals.
    arrivals: Cell<bool>,
}

impl Turns {
    /// Whether a choice at switch number `n` begins with the ring.
    #[inline(always)]
    pub(crate) fn is_usual(&self, n: u64) -> bool {
        n < self.due.get()
    }

    /// The order in which the choice at switch number `n` asks the queues.
    #[inline]
    pub(crate) fn order(&self, n: u64) -> [Source; 3] {
        if self.is_usual(n) {
            return USUAL;
        }
        self.due.set(n + PATIENCE / 2);
        if self.arrivals.replace(!self.arrivals.get()) { ARRIVALS_FIRST } else { SLICED_FIRST }
    }
}
