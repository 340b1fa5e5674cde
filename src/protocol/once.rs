//! Something that is done once: one word.
//!
//! ```text
//!   INCOMPLETE --claim--> RUNNING --finish--> COMPLETE, for ever
//!                            |  ^
//!                  (a panic) v  | claim, by who does not mind
//!                         POISONED
//! ```
//!
//! Beside the state there is QUEUED: somebody waits in the lot. It is set under the lock of that queue, and only
//! in a state that will change ([`OnceWord::enter`]). Whoever changes the state for those who wait
//! ([`OnceWord::finish`]) takes QUEUED away in the same step and wakes all of them; each looks again. A claim
//! leaves QUEUED as it is: those who wait for the end wait on.
#![forbid(unsafe_code)]

use crate::prim::{AtomicU32, Ordering};

const INCOMPLETE: u32 = 0;
const POISONED: u32 = 1;
const RUNNING: u32 = 2;
const COMPLETE: u32 = 3;
const STATE: u32 = 3;
const QUEUED: u32 = 4;

/// See the module's documentation. All zero: not done.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct OnceWord(AtomicU32);

/// The state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Incomplete,
    Poisoned,
    Running,
    Complete,
}

/// An attempt to be the one who does it.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// The caller does it; whether an attempt before failed.
    Mine { poisoned: bool },
    /// The caller does not; in this stage.
    Not(Stage),
}

impl Stage {
    fn of(word: u32) -> Stage {
        match word & STATE {
            INCOMPLETE => Stage::Incomplete,
            POISONED => Stage::Poisoned,
            RUNNING => Stage::Running,
            _ => Stage::Complete,
        }
    }
}

impl OnceWord {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> OnceWord {
        OnceWord(AtomicU32::new(INCOMPLETE))
    }

    #[cfg(not(loom))]
    pub(crate) const fn new_complete() -> OnceWord {
        OnceWord(AtomicU32::new(COMPLETE))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> OnceWord {
        OnceWord(AtomicU32::new(INCOMPLETE))
    }

    /// It is done, and what was written for it is visible.
    #[must_use]
    #[inline(always)]
    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Ordering::Acquire) & STATE == COMPLETE
    }

    /// As seen now.
    pub(crate) fn stage(&self) -> Stage {
        Stage::of(self.0.load(Ordering::Acquire))
    }

    /// Becomes the one who does it; also after a failure if `force`.
    pub(crate) fn claim(&self, force: bool) -> Claim {
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            match now & STATE {
                INCOMPLETE => {}
                POISONED if force => {}
                _ => return Claim::Not(Stage::of(now)),
            }
            let (ok, failed) = (Ordering::Acquire, Ordering::Acquire);
            match self.0.compare_exchange_weak(now, now & QUEUED | RUNNING, ok, failed) {
                Ok(_) => return Claim::Mine { poisoned: now & STATE == POISONED },
                Err(other) => now = other,
            }
        }
    }

    /// Enters the queue, under its lock, while the state is one that `waits`: false, it is not any more.
    #[must_use]
    pub(crate) fn enter(&self, waits: impl Fn(Stage) -> bool) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        while waits(Stage::of(now)) {
            let (ok, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, now | QUEUED, ok, failed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// The end of an attempt that was claimed. True: the caller wakes all who wait.
    #[must_use]
    pub(crate) fn finish(&self, complete: bool) -> bool {
        let state = if complete { COMPLETE } else { POISONED };
        self.0.swap(state, Ordering::AcqRel) & QUEUED != 0
    }

    /// The owner of the word makes it as new.
    pub(crate) fn reset(&mut self) {
        *self = OnceWord(AtomicU32::new(INCOMPLETE));
    }
}
