//! What the side that was switched to does with the record that was left.

use super::{Worker, give};
use crate::tcb::Record;
use crate::tcb::state::{After, State, join, park};
use core::sync::atomic::{AtomicU32, Ordering};

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
            mark(prev, State::Done);
            prev.join.store(join::DONE, Ordering::Release);
            w.shared().one_ended();
        }
        After::Join => {
            mark(prev, State::Blocked);
            // SAFETY: a thread joins only through a handle, which keeps the target's slot.
            let target = unsafe { &*prev.target.get() };
            let me = prev as *const Record as usize;
            // RUNNING, or ENDING: its value is left to whoever holds the handle, that is, to us.
            let set = target.join.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                (word == join::RUNNING || word == join::ENDING).then_some(me)
            });
            if set.is_err() {
                // Ended meanwhile.
                mark(prev, State::Ready);
                give::own(w, prev);
            }
        }
        After::Park => {
            mark(prev, State::Blocked);
            let token = &prev.token;
            let set = token.compare_exchange(
                park::EMPTY,
                park::PARKED,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if set.is_err() {
                mark(prev, State::Ready);
                give::own(w, prev);
            }
        }
        After::Exit => exited(prev, w),
        After::Sliced => {
            mark(prev, State::Ready);
            give::sliced(w, prev);
        }
        After::Preempted => {
            // Not just the tick's signal: ppoll(2) and its like have a mask of their own in force while
            // they wait, and the frame holds the one that they put back.
            super::mask::leave(w);
            if w.trace.is_on() {
                w.trace.switch(After::Preempted as u8, 0);
            }
            mark(prev, State::Ready);
            give::sliced(w, prev);
        }
    }
}

/// The thread has ended and nobody waited for it when it last looked.
#[cold]
fn exited(prev: &'static Record, w: &Worker) {
    w.ended.bump();
    mark(prev, State::Done);
    // Everything of the record that is needed after the swap must be read before: a joiner may free it.
    match prev.join.swap(join::DONE, Ordering::AcqRel) {
        join::RUNNING | join::ENDING => {}
        join::DETACHED => super::ops::free(w, prev),
        join::KERNEL => wake_kernel_joiner(prev),
        joiner => {
            // SAFETY: an address in the word is that of a blocked joiner's record.
            let joiner = unsafe { &*(joiner as *const Record) };
            give::ready(w, joiner);
        }
    }
    w.shared().one_ended();
}

/// The word is in memory that is never freed, so the wake cannot go astray.
fn wake_kernel_joiner(prev: &Record) {
    crate::sys::futex::wake(join_word(prev), i32::MAX);
}

/// The half of the join word that a kernel thread sleeps on.
pub(crate) fn join_word(r: &Record) -> &AtomicU32 {
    // SAFETY: the low half (little endian) of a live aligned word.
    unsafe { &*r.join.as_ptr().cast::<AtomicU32>() }
}

#[inline(always)]
pub(crate) fn mark(r: &Record, s: State) {
    r.state.store(s as u8, Ordering::Relaxed);
}
