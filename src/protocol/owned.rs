//! A lock held for a few instructions, like [`spin`](super::spin), that knows who holds it: so it tells a thread that
//! would wait for itself, and one that lets go of what it does not hold.
#![forbid(unsafe_code)]

use crate::prim::{AtomicUsize, Ordering};

/// Holds the number of the holder, or 0.
#[derive(Debug)]
pub(crate) struct Owned(AtomicUsize);

/// What became of an attempt.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    Taken,
    /// Somebody else has it.
    Busy,
    /// The caller has it already: waiting would not end.
    Own,
}

impl Default for Owned {
    fn default() -> Owned {
        Owned(AtomicUsize::new(0))
    }
}

impl Owned {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Owned {
        Owned(AtomicUsize::new(0))
    }

    /// Takes the lock for `me`, which is not 0, if it is free.
    #[inline(always)]
    pub(crate) fn attempt(&self, me: usize) -> Attempt {
        match self.0.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Attempt::Taken,
            Err(holder) if holder == me => Attempt::Own,
            Err(_) => Attempt::Busy,
        }
    }

    /// Whether an attempt has a chance now, or would tell that the lock is the caller's own: cheap to ask often.
    #[must_use]
    #[inline(always)]
    pub(crate) fn worth_an_attempt(&self, me: usize) -> bool {
        let holder = self.0.load(Ordering::Relaxed);
        holder == 0 || holder == me
    }

    /// Lets go for `me`. False: it is not the holder, and nothing was done.
    #[must_use]
    #[inline(always)]
    pub(crate) fn release(&self, me: usize) -> bool {
        // Only the holder itself writes its own number, so nobody changes the word in between if it is `me`'s.
        let held = self.0.load(Ordering::Relaxed) == me;
        if held {
            self.0.store(0, Ordering::Release);
        }
        held
    }

    #[must_use]
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}
