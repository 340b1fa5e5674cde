//! A reader-writer lock in one word: who holds it, and whether somebody waits.
//!
//! ```text
//!   63                     3       2          1          0
//!   [ readers, counted     ][ QUEUED ][UPGRADABLE][ WRITER ]
//! ```
//!
//! * WRITER: one thread has it alone, and there are no readers
//! * UPGRADABLE: one of the readers may become the writer without letting go
//! * QUEUED: somebody waits in the lot; then nobody takes the lock but by a grant out of that queue
//!
//! # Order
//! 1. whoever finds the lock free for what it wants, and QUEUED not set, takes it ([`RwWord::try_take`])
//! 2. whoever does not enters the queue and sets QUEUED, in one step under the queue's lock
//!    ([`RwWord::enter`])
//! 3. whoever lets go of the last hold and sees QUEUED *serves* the queue ([`Released::Serve`]): under its lock,
//!    from the oldest waiter on, each gets what it waits for ([`RwWord::grant`]) until one cannot; if
//!    none is left QUEUED is cleared ([`RwWord::settle`])
//! 4. whoever leaves the queue without having got it (a deadline, a kick) serves it too: those behind may
//!    not have to wait any more, and QUEUED may be stale
//!
//! # The bound
//! Both kinds stand in one queue, and while QUEUED is set nobody comes in past it: who has entered is overtaken
//! by nobody who came after, neither readers by writers nor writers by readers. It waits for those who hold the lock
//! and those who stand before it, no more. (A reader that becomes the writer goes first: all others wait for
//! it anyway.)
//!
//! # No waiter is forgotten
//! QUEUED is set and cleared under the queue's lock only, so whenever that is free somebody waits, or has waited
//! and is about to do 4. A hold that ends after QUEUED was set sees it, since both change one word.
#![forbid(unsafe_code)]

use crate::prim::{AtomicUsize, Ordering};

const WRITER: usize = 1;
const UPGRADABLE: usize = 2;
const QUEUED: usize = 4;
const READER: usize = 8;
const READERS: usize = !(READER - 1);
/// From here on no reader more is let in.
const FULL: usize = 1 << 62;
/// What the subtraction of one reader too many leaves.
const NEGATIVE: usize = 1 << 63;

/// See the module's documentation. All zero: free.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct RwWord(AtomicUsize);

/// A way to hold the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Access {
    Read,
    /// As a reader, who may become the writer.
    Upgradable,
    Write,
    /// The upgradable reader becomes the writer.
    Upgrade,
}

/// What became of an attempt to enter the queue.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// There is no need: the lock is the caller's.
    Taken,
    /// The caller waits.
    Waits,
}

/// What letting go leaves to the caller.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Released {
    /// Nothing.
    Done,
    /// The caller serves the queue.
    Serve,
    /// The caller did not hold it; nothing has been changed.
    NotHeld,
}

impl Access {
    /// From its number.
    #[inline]
    pub(crate) fn from_number(n: usize) -> Access {
        [Access::Read, Access::Upgradable, Access::Write, Access::Upgrade][n]
    }

    /// The word after `now` gave this access; `None` if it cannot.
    #[inline(always)]
    fn given(self, now: usize) -> Option<usize> {
        match self {
            Access::Read if now & WRITER == 0 && now < FULL => Some(now + READER),
            Access::Upgradable if now & (WRITER | UPGRADABLE) == 0 && now < FULL => {
                Some((now + READER) | UPGRADABLE)
            }
            Access::Write if now & !QUEUED == 0 => Some(now | WRITER),
            Access::Upgrade if now & !QUEUED == READER | UPGRADABLE => {
                Some((now & QUEUED) | WRITER)
            }
            _ => None,
        }
    }

    /// Whether those who wait go first.
    #[inline(always)]
    fn queues(self) -> bool {
        self != Access::Upgrade
    }
}

impl RwWord {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> RwWord {
        RwWord(AtomicUsize::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> RwWord {
        RwWord(AtomicUsize::new(0))
    }

    /// Step 1, once, for a reader. May fail without a reason.
    #[must_use]
    #[inline(always)]
    pub(crate) fn try_read(&self) -> bool {
        let now = self.0.load(Ordering::Relaxed);
        let (ok, failed) = (Ordering::Acquire, Ordering::Relaxed);
        now & (WRITER | QUEUED) == 0
            && now < FULL
            && self.0.compare_exchange_weak(now, now + READER, ok, failed).is_ok()
    }

    /// Step 1, once, for a writer. May fail without a reason.
    #[must_use]
    #[inline(always)]
    pub(crate) fn try_write(&self) -> bool {
        self.0.compare_exchange_weak(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Step 1.
    #[must_use]
    #[inline(always)]
    pub(crate) fn try_take(&self, access: Access) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        while now & QUEUED == 0 || !access.queues() {
            let Some(next) = access.given(now) else { return false };
            let (ok, failed) = (Ordering::Acquire, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, next, ok, failed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Step 2, under the queue's lock.
    pub(crate) fn enter(&self, access: Access) -> Entered {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let first = now & QUEUED == 0 || !access.queues();
            let given = if first { access.given(now) } else { None };
            let next = given.unwrap_or(now | QUEUED);
            let (ok, failed) = (Ordering::Acquire, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, next, ok, failed) {
                Ok(_) if given.is_some() => return Entered::Taken,
                Ok(_) => return Entered::Waits,
                Err(other) => now = other,
            }
        }
    }

    /// Step 3, for the oldest waiter, under the queue's lock: true, it has the lock and is to be woken.
    #[must_use]
    pub(crate) fn grant(&self, access: Access) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        while let Some(next) = access.given(now) {
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, next, ok, failed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Nobody is left in the queue, whose lock the caller holds.
    pub(crate) fn settle(&self) {
        self.0.fetch_and(!QUEUED, Ordering::Relaxed);
    }

    /// A reader lets go.
    #[inline(always)]
    pub(crate) fn release_read(&self) -> Released {
        let old = self.0.fetch_sub(READER, Ordering::Release);
        // One test: nobody waits, and there was a reader.
        if old.wrapping_sub(READER) & (QUEUED | NEGATIVE) == 0 {
            return Released::Done;
        }
        self.released(old)
    }

    /// The upgradable reader lets go.
    pub(crate) fn release_upgradable(&self) -> Released {
        if self.0.load(Ordering::Relaxed) & UPGRADABLE == 0 {
            return Released::NotHeld;
        }
        let old = self.0.fetch_sub(READER | UPGRADABLE, Ordering::Release);
        match old & QUEUED {
            0 => Released::Done,
            // Another upgradable reader may wait, however many readers are left.
            _ => Released::Serve,
        }
    }

    /// After a reader has been subtracted from `old`.
    #[cold]
    fn released(&self, old: usize) -> Released {
        if old < READER {
            self.0.fetch_add(READER, Ordering::Relaxed);
            return Released::NotHeld;
        }
        let left = old - READER;
        let last = left & READERS == 0 || left & READERS == READER && left & UPGRADABLE != 0;
        if last { Released::Serve } else { Released::Done }
    }

    /// The writer lets go.
    #[inline(always)]
    pub(crate) fn release_write(&self) -> Released {
        let (ok, failed) = (Ordering::Release, Ordering::Relaxed);
        if self.0.compare_exchange(WRITER, 0, ok, failed).is_ok() {
            return Released::Done;
        }
        self.change_writer(0)
    }

    /// The writer becomes a reader.
    pub(crate) fn downgrade(&self) -> Released {
        self.change_writer(READER)
    }

    /// The writer becomes the upgradable reader.
    pub(crate) fn downgrade_to_upgradable(&self) -> Released {
        self.change_writer(READER | UPGRADABLE)
    }

    /// The upgradable reader becomes a plain one.
    pub(crate) fn downgrade_upgradable(&self) -> Released {
        if self.0.load(Ordering::Relaxed) & UPGRADABLE == 0 {
            return Released::NotHeld;
        }
        let old = self.0.fetch_and(!UPGRADABLE, Ordering::Release);
        if old & QUEUED == 0 { Released::Done } else { Released::Serve }
    }

    /// The writer has `to` instead.
    #[cold]
    fn change_writer(&self, to: usize) -> Released {
        if self.0.load(Ordering::Relaxed) & WRITER == 0 {
            return Released::NotHeld;
        }
        // Only QUEUED can be changed by others.
        let old = self.0.fetch_add(to.wrapping_sub(WRITER), Ordering::Release);
        if old & QUEUED == 0 { Released::Done } else { Released::Serve }
    }

    /// No reader more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= FULL
    }

    /// Somebody holds it.
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (READERS | WRITER) != 0
    }

    /// The writer holds it.
    pub(crate) fn is_written(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WRITER != 0
    }

    /// Somebody waits.
    pub(crate) fn is_queued(&self) -> bool {
        self.0.load(Ordering::Relaxed) & QUEUED != 0
    }

    /// A word with as many readers as there can be.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn full() -> RwWord {
        RwWord(AtomicUsize::new(FULL))
    }
}
