//! What the three locks have in common: a word that knows its holder, taken and let go with preemption off.

use crate::check;
use crate::prim::pause;
use crate::protocol::owned::{Attempt, Owned};
use crate::tls::{due, hot};

/// The running thread, by its thread block: the same in the handlers that interrupt it, and wherever it moves to.
#[inline(always)]
pub(super) fn me() -> usize {
    hot::fs_base()
}

/// Leaves one level of preemption off. It may be on already: a panic switches it on.
#[inline(always)]
pub(super) fn preemption_on() {
    if hot::off_count() != 0 {
        due::on();
    }
}

/// Takes the lock; preemption is off then. `what` is the lock's name.
#[inline(always)]
pub(super) fn lock(word: &Owned, what: &'static str) {
    hot::off();
    if word.attempt(me()) != Attempt::Taken {
        wait(word, what);
    }
}

/// Waits with preemption as it was before: the holder may be a thread of this worker that panicked, was preempted,
/// and needs a turn to let go.
#[cold]
fn wait(word: &Owned, what: &'static str) {
    loop {
        preemption_on();
        await_chance(word);
        hot::off();
        match word.attempt(me()) {
            Attempt::Taken => return,
            Attempt::Busy => {}
            Attempt::Own => waits_for_itself(what),
        }
    }
}

/// Until an attempt is worth it.
pub(super) fn await_chance(word: &Owned) {
    let mut round = 0u32;
    while !word.worth_an_attempt(me()) {
        round = round.wrapping_add(1);
        pause(round);
    }
}

/// Tries once; preemption is off if it was taken, else as before.
#[inline]
pub(super) fn try_lock(word: &Owned) -> bool {
    hot::off();
    let taken = word.attempt(me()) == Attempt::Taken;
    if !taken {
        preemption_on();
    }
    taken
}

/// Lets go of the lock, and switches preemption back.
#[inline(always)]
pub(super) fn unlock(word: &Owned, what: &'static str) {
    release(word, what);
    preemption_on();
}

/// Lets go of the lock.
#[inline(always)]
pub(super) fn release(word: &Owned, what: &'static str) {
    if !word.release(me()) {
        check::violation(what, "was unlocked by a thread that does not hold it");
    }
}

#[cold]
pub(super) fn waits_for_itself(what: &'static str) -> ! {
    check::violation(
        what,
        "was locked by the thread that holds it, or by a handler that interrupted the holder",
    )
}
