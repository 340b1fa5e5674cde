//! A mutex in one word: its owner, and what waiters need the owner to know.
//!
//! ```text
//!   63      48 47                                   4   3        2        1        0
//!   [ passed  ][ owner: an address; all zero: free  ][KERNEL][STARVED][ COMING ][QUEUED]
//! ```
//!
//! * QUEUED: somebody waits in the lot
//! * COMING: a waiter has been taken out of the lot and is on its way, so nobody else needs to be woken; it is
//!   that waiter who clears the flag
//! * STARVED: a waiter was on its way and found the mutex taken again: the next unlock hands it over
//! * passed: how often the mutex was let go of since somebody is coming, and he did not get it
//!
//! # The bound
//! Whoever lets go with waiters in the lot wakes the oldest and may take the mutex again meanwhile (that is what
//! makes it fast), but only [`PASS`] times. Then the mutex is *reserved*: only the one who is coming may take
//! it, all others queue. So a waiter with `k` others before it sees at most `(k + 1) * PASS` acquisitions of
//! others once it is in the lot, and the one who is coming at most PASS; plus those of threads that took the
//! mutex before it queued. With hand-over ([`Unlocked::HandOver`]) the bound is `k`.
//!
//! # No waiter is forgotten
//! 1. whoever waits sets QUEUED and enters the lot in one step under its lock, and only while the mutex is owned or
//!    reserved ([`MutexWord::enter`])
//! 2. an owner that lets go and sees QUEUED without COMING wakes one, or hands over, under that lock, and leaves
//!    QUEUED set while others wait ([`MutexWord::pass_to`], [`MutexWord::wake_one`])
//! 3. an owner that lets go and sees COMING leaves the rest to that one: it takes the mutex (and is then an owner
//!    that lets go), or goes back to the head of the queue and sets STARVED, which only an owner or a reservation
//!    allows; if it gives up, it says so ([`MutexWord::give_up`]) and an owner is there to do 2
#![forbid(unsafe_code)]

use crate::prim::{AtomicUsize, Ordering};

const QUEUED: usize = 1;
const COMING: usize = 2;
const STARVED: usize = 4;
/// The owner is a kernel thread; part of the owner.
pub(crate) const KERNEL: usize = 8;
const ONCE: usize = 1 << 48;
const PASSED: usize = !(ONCE - 1);
const OWNER: usize = !(PASSED | QUEUED | COMING | STARVED);

/// How often a mutex may be taken past the waiter who is coming.
pub(crate) const PASS: usize = 32;

/// See the module's documentation. All zero: free.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct MutexWord(AtomicUsize);

/// What an unlock leaves to its caller.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unlocked {
    /// Nothing.
    Done,
    /// It is let go of, and reserved for somebody who is ready to run: give way.
    GiveWay,
    /// Still locked: the caller wakes one waiter with [`MutexWord::wake_one`].
    Wake,
    /// Still locked: the caller hands it to one with [`MutexWord::pass_to`].
    HandOver,
    /// The caller does not hold it.
    NotHeld,
}

/// An attempt to take it.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taking {
    /// It is the caller's.
    Taken,
    /// It has this owner; zero: it is reserved for somebody.
    Owned(usize),
}

impl MutexWord {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> MutexWord {
        MutexWord(AtomicUsize::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> MutexWord {
        MutexWord(AtomicUsize::new(0))
    }

    /// The owner; zero: none.
    #[inline]
    pub(crate) fn owner(&self) -> usize {
        self.0.load(Ordering::Relaxed) & OWNER
    }

    /// Whether somebody waits in the lot, as far as can be seen.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (QUEUED | COMING) != 0
    }

    fn reserved(word: usize) -> bool {
        word & COMING != 0 && word & PASSED >= PASS * ONCE
    }

    fn change(&self, old: usize, new: usize, ok: Ordering) -> bool {
        self.0.compare_exchange_weak(old, new, ok, Ordering::Relaxed).is_ok()
    }

    /// Takes the mutex that nobody owns or waits for.
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_fast(&self, me: usize) -> bool {
        self.0.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes it if it is free; `coming`: the caller has been woken for it.
    #[inline]
    pub(crate) fn try_take(&self, me: usize, coming: bool) -> Taking {
        loop {
            let w = self.0.load(Ordering::Relaxed);
            if w & OWNER != 0 {
                return Taking::Owned(w & OWNER);
            }
            if !coming && Self::reserved(w) {
                return Taking::Owned(0);
            }
            let left = if coming { w & !(COMING | PASSED) } else { w };
            if self.change(w, left | me, Ordering::Acquire) {
                return Taking::Taken;
            }
        }
    }

    /// Lets go of the mutex that nobody waits for.
    #[inline(always)]
    #[must_use]
    pub(crate) fn unlock_fast(&self, me: usize) -> bool {
        self.0.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Lets go of it, if that is all there is to do. `hand_over`: to the oldest waiter in any case.
    #[inline]
    pub(crate) fn unlock(&self, me: usize, hand_over: bool) -> Unlocked {
        loop {
            let w = self.0.load(Ordering::Relaxed);
            if w & OWNER != me {
                return Unlocked::NotHeld;
            }
            if w & QUEUED != 0 && (hand_over || w & STARVED != 0) {
                return Unlocked::HandOver;
            }
            if w & COMING != 0 {
                let passed = (w & PASSED).saturating_add(ONCE) & PASSED;
                let new = w & (QUEUED | COMING) | passed;
                if self.change(w, new, Ordering::Release) {
                    let full = Self::reserved(new);
                    return if full { Unlocked::GiveWay } else { Unlocked::Done };
                }
            } else if w & QUEUED != 0 {
                return Unlocked::Wake;
            } else if self.change(w, 0, Ordering::Release) {
                return Unlocked::Done;
            }
        }
    }

    /// Under the lot's lock: the caller is about to enter it. False: the mutex is free for it. `coming`: the
    /// caller had been woken for it, and goes to the head.
    #[must_use]
    pub(crate) fn enter(&self, coming: bool) -> bool {
        loop {
            let w = self.0.load(Ordering::Relaxed);
            if w & OWNER == 0 && (coming || !Self::reserved(w)) {
                return false;
            }
            let new = if coming { w & !(COMING | PASSED) | QUEUED | STARVED } else { w | QUEUED };
            if w == new || self.change(w, new, Ordering::Relaxed) {
                return true;
            }
        }
    }

    /// The caller, who is coming, will not wait. True: it has the mutex all the same.
    #[must_use]
    pub(crate) fn give_up(&self, me: usize) -> bool {
        loop {
            let w = self.0.load(Ordering::Relaxed);
            if w & OWNER == 0 {
                if self.change(w, w & !(COMING | PASSED) | me, Ordering::Acquire) {
                    return true;
                }
            } else if self.change(w, w & !(COMING | PASSED), Ordering::Relaxed) {
                return false;
            }
        }
    }

    /// Under the lot's lock, by the owner: the mutex goes to `next`, who has been taken out (zero: nobody was
    /// there); `more` are left.
    pub(crate) fn pass_to(&self, next: usize, more: bool) {
        loop {
            let w = self.0.load(Ordering::Relaxed);
            let mut new = next | if more { QUEUED } else { 0 };
            if w & COMING != 0 {
                // He will find it taken, and be passed over once.
                new |= COMING | w & PASSED;
            }
            if self.change(w, new, Ordering::AcqRel) {
                return;
            }
        }
    }

    /// Under the lot's lock, by the owner: lets go; `coming` is whether a waiter has been taken out, who is
    /// woken next.
    pub(crate) fn wake_one(&self, coming: bool, more: bool) {
        let new = if coming { COMING | if more { QUEUED } else { 0 } } else { 0 };
        loop {
            let w = self.0.load(Ordering::Relaxed);
            if self.change(w, new, Ordering::Release) {
                return;
            }
        }
    }

    /// Under the lot's lock: somebody else's waiters are about to enter. True: the mutex is free and nobody is
    /// coming, so the first of them shall come, and is not entered; `more` are.
    #[must_use]
    pub(crate) fn admit(&self, more: bool) -> bool {
        loop {
            let w = self.0.load(Ordering::Relaxed);
            let first_comes = w & (OWNER | COMING) == 0;
            let queued = if first_comes && !more { 0 } else { QUEUED };
            let new = w | queued | if first_comes { COMING } else { 0 };
            if w == new || self.change(w, new, Ordering::Relaxed) {
                return first_comes;
            }
        }
    }
}
