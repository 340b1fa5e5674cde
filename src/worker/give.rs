//! Giving a ready thread to somebody who will run it, and seeing to it that somebody does.

use super::idle::Linux;
use super::{Shared, Worker};
use crate::sched::flow;
use crate::tcb::Record;
use core::sync::atomic::Ordering;

/// To the tail of this worker's own queue. Preemption is off.
#[inline(always)]
pub(crate) fn own(w: &Worker, r: &'static Record) {
    if w.ring.push(r).is_err() {
        overflow(w, r);
    }
    w.site.ticker.arrival();
    if !w.sole.get() {
        share(w);
    }
}

/// The ring is full: its oldest threads and the new thread go to the shared list.
#[cold]
#[inline(never)]
fn overflow(w: &Worker, r: &'static Record) {
    let shared = w.shared();
    let mut arrivals = shared.arrivals.list.lock();
    // SAFETY: the ring is this worker's own; `r` is not in a queue yet; records are never freed.
    unsafe { flow::spill(w.ring, w.sole.get(), r, &mut arrivals) };
    shared.arrivals.len.store(arrivals.len(), Ordering::Release);
}

/// Work beyond the next thread: wake a sleeping worker for it. One thread alone is left to the worker
/// that made it ready, which is about to run it; if it is not, its next tick wakes somebody.
#[inline]
fn share(w: &Worker) {
    let shared = w.shared();
    if shared.idle.anybody(&Linux) && w.ring.len() > 1 {
        shared.wake_one();
    }
}

/// To the queue of threads that used up their slice. Preemption is off.
pub(crate) fn sliced(w: &Worker, r: &'static Record) {
    w.shared().sliced.push(r);
    see_to_ticks(w);
}

/// As [`sliced`], to the head: somebody urgent came in the middle of its slice.
pub(crate) fn interrupted(w: &Worker, r: &'static Record) {
    w.shared().sliced.push_front(r);
    see_to_ticks(w);
}

fn see_to_ticks(w: &Worker) {
    let shared = w.shared();
    if !w.sole.get() {
        // While such threads wait, every busy worker must tick, or its thread would get more.
        for other in shared.workers().iter().filter(|o| o.site.ticker.is_off()) {
            if !other.sleep.is_asleep() {
                other.site.ticker.arrival();
            }
        }
    }
}

/// To its own runtime, from a worker of any runtime. Preemption is off.
#[inline]
pub(crate) fn ready(w: &Worker, r: &'static Record) {
    super::life::mark(r, crate::tcb::state::State::Ready);
    if core::ptr::eq(r.runtime.get(), w.shared.get().cast()) {
        own(w, r);
    } else {
        // SAFETY: a live thread's runtime; runtimes are never freed.
        from_outside(unsafe { &*r.runtime.get().cast::<Shared>() }, r);
    }
}

/// To a runtime from anywhere else.
pub(crate) fn from_outside(shared: &Shared, r: &'static Record) {
    shared.arrivals.push(r);
    if shared.idle.anybody(&Linux) && shared.wake_one() {
        return;
    }
    // Nobody sleeps: one busy worker must look soon. They take turns.
    let workers = shared.workers();
    if workers.is_empty() {
        return; // a fork child: the runtime is over (spawning said so)
    }
    let n = shared.turn.fetch_add(1, Ordering::Relaxed) as usize;
    workers[n % workers.len()].site.ticker.arrival();
}
