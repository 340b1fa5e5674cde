//! Deadlines of the threads that wait: kept by the worker where they began to, in a heap for each clock.
//!
//! A worker's alarm (`preempt::alarm`) rings at the earliest of them, also when no other tick comes. Then the
//! scheduler's next choice is a sleeper whose time has come ([`expire`]).
//!
//! Only the worker itself adds and expires; anybody may take a waiter of his out. Lock order: a heap, then a
//! bucket of the lot.

use super::{Worker, give, life};
use crate::lock::spin::SpinLock;
use crate::lot::{self, Waiter, Woken};
use crate::sched::heap::Heap;
use crate::sys::clock::{Clock, Deadline};
use crate::tcb::Record;
use crate::tcb::state::State;

/// Sleepers that are woken at a time: preemption is off meanwhile.
const BATCH: usize = 32;

/// The deadlines of one worker, by clock.
pub(crate) struct Deadlines([SpinLock<Heap>; 2]);

/// Where a waiter's deadline is.
#[derive(Clone, Copy)]
pub(crate) struct HeapOf(&'static SpinLock<Heap>);

impl Deadlines {
    pub(crate) fn new() -> Deadlines {
        Deadlines([const { SpinLock::new(Heap::new()) }; 2])
    }

    /// # Safety
    /// The process has one kernel thread, which holds none of the locks.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: the caller's promise.
        self.0.iter().for_each(|h| unsafe { h.reset(Heap::new()) });
    }
}

/// Enters the deadline of `waiter`, whose thread `me` runs, with preemption off. The caller takes it out
/// again with [`cancel`] before the waiter goes.
#[cold]
#[inline(never)]
pub(crate) fn add(me: &Record, waiter: &Waiter, deadline: Deadline) -> HeapOf {
    let w = super::of(me);
    let lock = &w.deadlines.0[deadline.clock as usize];
    waiter.timed_by.set(core::ptr::from_ref(lock).cast());
    let mut heap = lock.lock();
    // SAFETY: a fresh waiter; it lives until the caller has taken it out.
    unsafe { heap.insert(&waiter.timer, deadline.at) };
    drop(heap);
    w.site.alarm.ring_at(deadline);
    HeapOf(lock)
}

/// Takes the deadline of `waiter` out if it is still there. From any worker; the thread is awake.
#[cold]
#[inline(never)]
pub(crate) fn cancel(heap: HeapOf, waiter: &Waiter) {
    let mut heap = heap.0.lock();
    if !waiter.timed_by.replace(core::ptr::null()).is_null() {
        // SAFETY: it was entered there, and `expire`, which would have said so, has not taken it out.
        unsafe { heap.remove(&waiter.timer) };
    }
    drop(heap);
    crate::tls::due::look();
}

/// Makes the threads ready whose deadlines have passed, and those whom signal handlers woke; the first of
/// them is the caller's to run. Called by the worker itself, with preemption off, nothing locked.
#[cold]
#[inline(never)]
pub(super) fn expire(w: &Worker) -> Option<&'static Record> {
    lot::drain();
    let mut first = None;
    for (clock, lock) in Clock::ALL.iter().zip(&w.deadlines.0) {
        let mut ready = [core::ptr::null::<Record>(); BATCH];
        let mut n = 0;
        let now = clock.now();
        let mut heap = lock.lock();
        while n < BATCH
            && let Some(node) = heap.pop_due(now)
        {
            // SAFETY: the node is the first member of its waiter, which waits for this lock before it goes.
            let waiter = unsafe { &*node.cast::<Waiter>() };
            waiter.timed_by.set(core::ptr::null());
            if let Some(r) = lot::take_out(waiter, Woken::TimedOut) {
                ready[n] = r;
                n += 1;
            }
        }
        let earliest = heap.earliest();
        drop(heap);
        if n == BATCH {
            hurry(w);
        } else if let Some(at) = earliest {
            w.site.alarm.ring_at(Deadline { clock: *clock, at });
        }
        for r in &ready[..n] {
            // SAFETY: records are never freed; this one rests and was taken out of its queue.
            let r = unsafe { &**r };
            life::mark(r, State::Ready);
            if first.is_none() && core::ptr::eq(r.runtime.get(), w.shared.get().cast()) {
                first = Some(r);
            } else {
                give::own(w, r);
            }
        }
    }
    first
}

/// The next choice begins with the sleepers.
pub(super) fn hurry(w: &Worker) {
    w.site.alarm.set_due();
    w.turns.hurry();
}

/// A signal handler left something to do: the scheduler looks soon. Async-signal-safe; this is the worker.
pub(crate) fn soon(w: &Worker) {
    w.turns.hurry();
    w.site.alarm.again();
}
