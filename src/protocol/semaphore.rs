//! A counting semaphore in one word: the permits, and whether somebody waits.
//!
//! Bit 0 is QUEUED, the rest counts permits.
//!
//! 1. whoever finds enough permits, and QUEUED not set, takes them ([`SemaphoreWord::try_take`])
//! 2. whoever does not enters the queue and sets QUEUED, in one step under the queue's lock
//!    ([`SemaphoreWord::enter`])
//! 3. whoever adds permits and sees QUEUED *serves* the queue ([`Added::Serve`]): under its lock, from the oldest
//!    waiter on, each is given its permits ([`SemaphoreWord::grant`]) until they do not suffice; if nobody is left
//!    QUEUED is cleared ([`SemaphoreWord::settle`])
//! 4. whoever leaves the queue with nothing (a deadline, a kick) serves it too
//!
//! So permits go in the order in which they were asked for, and one who needs many is not passed by those who need few.
//! Adding is one atomic step; serving may be done later by somebody else. That is what a signal handler
//! does which interrupted the keeper of the queue.
#![forbid(unsafe_code)]

use crate::prim::{AtomicUsize, Ordering};

const QUEUED: usize = 1;
const PERMIT: usize = 2;

/// The most permits that a semaphore can have.
pub(crate) const MOST: usize = usize::MAX / PERMIT / 4;

/// See the module's documentation.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct SemaphoreWord(AtomicUsize);

/// What adding permits leaves to the caller.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// Nothing.
    Done,
    /// Somebody waits: the caller serves the queue.
    Serve,
    /// There would be more than [`MOST`]: nothing has been changed.
    TooMany,
}

/// What became of an attempt to enter the queue.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// There is no need: the caller has its permits.
    Taken,
    /// The caller waits.
    Waits,
}

impl SemaphoreWord {
    /// With `permits`, at most [`MOST`].
    #[cfg(not(loom))]
    pub(crate) const fn new(permits: usize) -> SemaphoreWord {
        SemaphoreWord(AtomicUsize::new(permits * PERMIT))
    }

    #[cfg(loom)]
    pub(crate) fn new(permits: usize) -> SemaphoreWord {
        SemaphoreWord(AtomicUsize::new(permits * PERMIT))
    }

    /// Permits that nobody has.
    pub(crate) fn permits(&self) -> usize {
        self.0.load(Ordering::Relaxed) / PERMIT
    }

    /// Step 1.
    #[must_use]
    #[inline]
    pub(crate) fn try_take(&self, n: usize) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        while now & QUEUED == 0 && now >= n * PERMIT {
            let (ok, failed) = (Ordering::Acquire, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, now - n * PERMIT, ok, failed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Step 2, under the queue's lock.
    pub(crate) fn enter(&self, n: usize) -> Entered {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let take = now & QUEUED == 0 && now >= n * PERMIT;
            let next = if take { now - n * PERMIT } else { now | QUEUED };
            let (ok, failed) = (Ordering::Acquire, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, next, ok, failed) {
                Ok(_) if take => return Entered::Taken,
                Ok(_) => return Entered::Waits,
                Err(other) => now = other,
            }
        }
    }

    /// Step 3: there are `n` permits more. One atomic step: a signal handler may do it.
    #[inline]
    pub(crate) fn add(&self, n: usize) -> Added {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            if n > MOST || now / PERMIT + n > MOST {
                return Added::TooMany;
            }
            let (ok, failed) = (Ordering::Release, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, now + n * PERMIT, ok, failed) {
                Ok(_) if now & QUEUED == 0 => return Added::Done,
                Ok(_) => return Added::Serve,
                Err(other) => now = other,
            }
        }
    }

    /// For the oldest waiter, who needs `n`, under the queue's lock: true, it has them and is to be woken.
    #[must_use]
    pub(crate) fn grant(&self, n: usize) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        while now >= n * PERMIT {
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, now - n * PERMIT, ok, failed) {
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
}
