//! From which queue the next thread comes.
//!
//! New and woken threads (a worker's own ring, then the arrivals from outside) go before threads that
//! used up their slice. So that an endless stream of short threads cannot starve the others, each
//! queue is asked first once in a while:
//! * the arrivals once in [`PATIENCE`] switches: they and the ring's threads are of one kind
//! * the sliced threads when a tick says so ([`Turns::sliced`]), since what they are owed is time: at a tick
//!   that finds threads which give way by themselves, and at every fourth in any case. So hogs and a crowd of
//!   short threads get about as much time as each other.
//!
//! A switch need not be a choice: a thread that ends goes to its joiner directly if the ring is empty. So a turn is due *from*
//! a switch on, not at one: a loop of spawn and join has a choice at every second switch only.
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

/// Every so many switches a worker looks at the arrivals first: the bound on how many threads of its own
/// ring can pass one that waits there.
pub(crate) const PATIENCE: u64 = 32;
/// Of the ticks that take a thread's worker away, every so many are followed by a turn of the sliced threads.
pub(crate) const TICKS: u64 = 4;

const USUAL: [Source; 3] = [Source::Ring, Source::Arrivals, Source::Sliced];
const SLICED_FIRST: [Source; 3] = [Source::Sliced, Source::Ring, Source::Arrivals];
const ARRIVALS_FIRST: [Source; 3] = [Source::Arrivals, Source::Ring, Source::Sliced];

/// Whose turn it is on one worker.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// From this switch on, the next choice does not begin with the ring.
    due: Cell<u64>,
    /// From this switch on, a choice begins with the arrivals.
    arrivals: Cell<u64>,
    /// The next turn is the sliced threads', but not before this switch: they never have two in a row.
    earliest: Cell<u64>,
    sliced: Cell<bool>,
    /// Ticks so far while sliced threads waited.
    ticks: Cell<u64>,
}

impl Turns {
    /// Whether a choice at switch number `n` begins with the ring.
    #[inline(always)]
    pub(crate) fn is_usual(&self, n: u64) -> bool {
        n < self.due.get()
    }

    /// A tick came while sliced threads wait; `fresh`: the running thread has not used up a slice.
    ///
    /// May interrupt [`Turns::order`] on the same worker: a turn can get lost, the next tick makes up for it.
    #[inline]
    pub(crate) fn tick(&self, fresh: bool) {
        self.ticks.set(self.ticks.get() + 1);
        if fresh || self.ticks.get().is_multiple_of(TICKS) {
            self.sliced.set(true);
            self.due.set(self.earliest.get());
        }
    }

    /// The next choice does not begin with the ring: there is something else to look at. Async-signal-safe.
    #[inline]
    pub(crate) fn hurry(&self) {
        self.due.set(0);
    }

    /// The order in which the choice at switch number `n` asks the queues.
    #[inline]
    pub(crate) fn order(&self, n: u64) -> [Source; 3] {
        if self.is_usual(n) {
            return USUAL;
        }
        // Ticks can come faster than choices: arrivals that are long overdue go first.
        let overdue = n >= self.arrivals.get() + PATIENCE;
        if !overdue && self.sliced.replace(false) {
            self.earliest.set(n + 2);
            self.due.set(self.arrivals.get().max(n + 2));
            return SLICED_FIRST;
        }
        self.arrivals.set(n + PATIENCE);
        self.due.set(n + PATIENCE);
        ARRIVALS_FIRST
    }
}
