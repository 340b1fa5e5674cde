//! A worker with nothing to do sleeps, and no wake-up is lost.
//!
//! The sleeper ([`Idle::sleep`]):
//! 1. says so: the count of sleepers up, then its word to ASLEEP
//! 2. heavy barrier
//! 3. looks at every queue once more; finds something: takes the word back and goes on
//! 4. futex wait while the word is ASLEEP
//!
//! Whoever makes a thread ready:
//! a. publishes it in a queue
//! b. light barrier ([`Idle::anybody`]; with the heavy one: either the sleeper's 3 sees a, or c sees 1)
//! c. reads the count; not zero: takes one sleeper's word from ASLEEP to AWAKE, count down, futex wake
//!    ([`Idle::wake`])
//!
//! The count goes up before the word and down after it, so it is never less than the number of sleepers: else
//! a worker woken between its two steps would hide another one that sleeps.
//!
//! So after a, either the sleeper does not sleep, or it is woken, or nobody slept.
#![forbid(unsafe_code)]

use crate::prim::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The system calls and barriers that the protocol is made of.
pub(crate) trait Kernel {
    /// Store-load barrier of the frequent side.
    fn light(&self);
    /// Store-load barrier of the rare side; also in every other thread's instruction stream.
    fn heavy(&self);
    /// Sleeps while `*word == expected`; may return early.
    fn wait(&self, word: &AtomicU32, expected: u32);
    /// Wakes whoever sleeps on the word.
    fn wake(&self, word: &AtomicU32);
}

/// The word that a worker sleeps on.
#[derive(Default)]
pub(crate) struct Sleep(AtomicU32);

impl Sleep {
    /// In a fork child, where nobody sleeps.
    pub(crate) fn reset(&self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }

    /// A hint: may be over before the caller looks at the answer.
    pub(crate) fn is_asleep(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASLEEP
    }
}

/// How many workers of a runtime sleep.
#[derive(Default)]
pub(crate) struct Idle(AtomicU32);

impl Idle {
    /// In a fork child, where nobody sleeps.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// A hint: whether somebody sleeps.
    #[inline(always)]
    pub(crate) fn seems_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Steps b and c's first half, after the caller's a: whether somebody sleeps who may have missed it.
    #[must_use]
    #[inline(always)]
    pub(crate) fn anybody(&self, kernel: &impl Kernel) -> bool {
        kernel.light();
        self.seems_any()
    }

    /// Steps 1 to 4. `stay` looks at every queue, and at whatever else a worker is woken for.
    pub(crate) fn sleep(&self, kernel: &impl Kernel, me: &Sleep, stay: impl FnOnce() -> bool) {
        self.0.fetch_add(1, Ordering::SeqCst);
        me.0.store(ASLEEP, Ordering::SeqCst);
        kernel.heavy();
        if stay() {
            if me.0.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
            return;
        }
        while me.0.load(Ordering::Acquire) == ASLEEP {
            kernel.wait(&me.0, ASLEEP);
        }
    }

    /// Wakes this worker if it sleeps; false if it did not. Async-signal-safe.
    #[must_use]
    pub(crate) fn wake(&self, kernel: &impl Kernel, sleeper: &Sleep) -> bool {
        let word = &sleeper.0;
        let mine = word.load(Ordering::Relaxed) == ASLEEP
            && word.compare_exchange(ASLEEP, AWAKE, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if mine {
            self.0.fetch_sub(1, Ordering::SeqCst);
            kernel.wake(word);
        }
        mine
    }
}
