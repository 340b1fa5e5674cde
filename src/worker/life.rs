//! What the side that was switched to does with the record that was left.

use super::{Worker, give};
use crate::protocol::{join, token};
use crate::tcb::Record;
use crate::tcb::state::{After, State};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Called by the resume of a preempted thread (resume.S).
///
/// # Safety
/// As [`finish`]; `worker` is the worker carried over.
pub(crate) unsafe extern "C" fn reveille_finish(prev: *const Record, worker: *const ()) {
    // SAFETY: the caller's promise.
    unsafe { finish(&*prev, &*worker.cast::<Worker>()) };
    // The running thread is the one that is being resumed.
    if let Some(me) = crate::tcb::current::get()
        && me.slow.load(Ordering::Relaxed) != 0
    {
        super::mask::come_back(me);
    }
}

/// Completes the switch away from `prev`, whose stack has been left.
///
/// # Safety
/// Runs right after a switch, on the worker `w`, with preemption off; `prev` is what the switch carried.
#[inline(always)]
pub(crate) unsafe fn finish(prev: &'static Record, w: &Worker) {
    match prev.after.get() {
        After::Yield => {
            mark(prev, State::Ready);
            give::own(w, prev);
        }
        // SAFETY: as this function.
        _ => unsafe { finish_rare(prev, w) },
    }
}

/// # Safety
/// As [`finish`].
#[inline]
unsafe fn finish_rare(prev: &'static Record, w: &Worker) {
    match prev.after.get() {
        After::Loop | After::Yield => {}
        After::ExitToJoiner => {
            w.ended.bump();
            super::ops::free_stack(w, prev);
            mark(prev, State::Done);
            prev.join.end_for_joiner();
            w.shared().one_ended();
        }
        After::Join => {
            mark(prev, State::Blocked);
            // SAFETY: a thread joins only through a handle, which keeps the target's slot.
            let target = unsafe { &*prev.target.get() };
            if target.join.wait_as(prev) == join::Waiting::Done {
                mark(prev, State::Ready);
                give::own(w, prev);
            }
        }
        After::Park => {
            mark(prev, State::Blocked);
            if prev.token.park() == token::Parking::Notified {
                mark(prev, State::Ready);
                give::own(w, prev);
            }
        }
        After::Wait => {
            mark(prev, State::Blocked);
            // SAFETY: its stack has been left, on this worker.
            unsafe { crate::lot::left(prev) };
        }
        After::Rest => {
            mark(prev, State::Blocked);
            // SAFETY: as above.
            if !unsafe { crate::lot::rest(prev) } {
                mark(prev, State::Ready);
                give::own(w, prev);
            }
        }
        After::Exit => exited(prev, w),
        After::Sliced => {
            mark(prev, State::Ready);
            give::sliced(w, prev);
        }
        After::Preempted | After::Interrupted => preempted(prev, w),
    }
}

/// A tick took the worker away from the thread.
#[inline]
fn preempted(prev: &'static Record, w: &Worker) {
    // Not just the tick's signal: ppoll(2) and its like have a mask of their own in force while
    // they wait, and the frame holds the one that they put back.
    super::mask::usual(w);
    let after = prev.after.get();
    if w.trace.is_on() {
        w.trace.switch(after as u8, 0);
    }
    mark(prev, State::Ready);
    if after == After::Interrupted {
        give::interrupted(w, prev);
    } else {
        give::sliced(w, prev);
    }
}

/// The thread has ended and nobody waited for it when it last looked.
#[cold]
fn exited(prev: &'static Record, w: &Worker) {
    w.ended.bump();
    super::ops::free_stack(w, prev);
    mark(prev, State::Done);
    // Nothing of the record is read after this: a joiner may free it.
    match prev.join.end() {
        join::Ended::Unclaimed => {}
        join::Ended::Detached => super::ops::free(w, prev),
        // The word is in memory that is never freed, so the wake cannot go astray.
        join::Ended::Kernel => crate::sys::futex::wake(low_half(prev.join.word()), i32::MAX),
        // SAFETY: a joiner in the word is the record of a blocked thread.
        join::Ended::Joiner(joiner) => give::ready(w, unsafe { &*joiner }),
    }
    w.shared().one_ended();
}

/// The half of a join word that a kernel thread sleeps on.
pub(crate) fn low_half(word: &AtomicUsize) -> &AtomicU32 {
    // SAFETY: the low half (little endian) of a live aligned word.
    unsafe { &*word.as_ptr().cast::<AtomicU32>() }
}

#[inline(always)]
pub(crate) fn mark(r: &Record, s: State) {
    r.state.store(s as u8, Ordering::Relaxed);
}
