//! From which queue the next thread comes.
//!
//! New and woken threads (a worker's own ring, then the arrivals from outside) go before threads that
//! used up their slice. So that an endless stream of short threads cannot starve the others, each
//! queue is asked first once in a while, counted in switches.

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

/// Whether switch number `n` is one of those that do not begin with the ring.
#[inline(always)]
pub(crate) fn unusual(n: u64) -> bool {
    n.is_multiple_of(PATIENCE / 2)
}

/// The order in which switch number `n` looks at the queues.
#[inline]
pub(crate) fn order(n: u64) -> [Source; 3] {
    match n % PATIENCE {
        0 => SLICED_FIRST,
        x if x == PATIENCE / 2 => ARRIVALS_FIRST,
        _ => USUAL,
    }
}
