//! Workers: the only module that sees both halves, the scheduler's and the preemption's.
//!
//! A worker is a kernel thread. Its own pthread block ("home") is kept for glibc's signal handlers; it
//! works in two other contexts: the *loop*, a slot like a thread's with preemption off for good, and
//! the threads it runs. A thread that gives way or blocks switches directly to the next one; the loop
//! runs when there is none, after a preemption, and at the ends of the worker's life.
//!
//! What must happen once a stack has been left (publish it, free it) is done by the side that was
//! switched to: [`finish`].
#![allow(unsafe_code)]

pub(crate) mod alarm;
pub(crate) mod give;
mod glue;
mod idle;
mod life;
pub(crate) mod make;
pub(crate) mod mask;
pub(crate) mod ops;
mod pick;
pub(crate) mod setxid;
pub(crate) mod shared;
pub(crate) mod start;
pub(crate) mod wait;

pub(crate) use life::finish;
pub(crate) use life::reveille_finish;
pub(crate) use shared::Shared;
pub(crate) use start::reveille_start;

use crate::context::x86_64::{Carry, Next, reveille_switch};
use crate::preempt::site::{Count, Site};
use crate::sched::idle::Sleep;
use crate::sched::policy::Turns;
use crate::sched::ring::Ring;
use crate::slot::cache::Cache;
use crate::tcb::Record;
use crate::tcb::stack::Stack;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicPtr, Ordering};

/// See the module's documentation. `site` is first: the handler knows only that part.
#[repr(C)]
pub(crate) struct Worker {
    pub site: Site,
    /// Nobody steals: the runtime has one worker.
    pub sole: Cell<bool>,
    pub ring: &'static Ring<Record>,
    /// Which queue is asked first, and when.
    pub turns: Turns,
    /// Free records.
    pub records: UnsafeCell<Cache<Record>>,
    /// Free stacks of the runtime's own class.
    pub stacks: UnsafeCell<Cache<Stack>>,
    /// When the threads that wait here want to be woken at the latest.
    pub deadlines: alarm::Deadlines,
    /// The thread that runs, or the loop: a hint for other workers.
    pub running: AtomicPtr<Record>,
    pub class: u32,
    /// The next thread id of this worker's block, and the end of the block.
    pub next_id: Cell<u64>,
    pub last_id: Cell<u64>,
    pub shared: Cell<*const Shared>,
    pub index: usize,
    pub sleep: Sleep,
    /// The home context while the worker works.
    pub home_rsp: Cell<usize>,
    /// Its FS base: glibc's own signal handlers must run with it.
    pub home_fs: Cell<usize>,
    /// Threads started from here, and ended here.
    pub started: Count,
    pub ended: Count,
    pub steals: Count,
    /// Recorded slices, if asked for.
    pub trace: crate::trace::Trace,
    /// State of the generator that picks the first victim of a theft.
    pub random: Cell<u32>,
}

// SAFETY: cells are touched on the worker's kernel thread only; the rest is atomic (invariant W1).
unsafe impl Sync for Worker {}
// SAFETY: a worker is built on one kernel thread and used on another, with a start in between.
unsafe impl Send for Worker {}

impl crate::sched::Linked for Record {
    #[inline(always)]
    fn link(&self) -> &Cell<*const Record> {
        &self.next
    }
}

impl Worker {
    /// The runtime.
    #[inline(always)]
    pub(crate) fn shared(&self) -> &'static Shared {
        // SAFETY: set before the worker starts; runtimes are never freed.
        unsafe { &*self.shared.get() }
    }

    /// The record of the loop.
    #[inline(always)]
    pub(crate) fn loop_record(&self) -> &'static Record {
        // SAFETY: set before the first thread runs; slots are never freed.
        unsafe { &*self.site.loop_record.get() }
    }
}

/// The worker that runs the thread of `record`, which is the running one. Stale after any switch.
#[inline(always)]
pub(crate) fn of(record: &Record) -> &'static Worker {
    // SAFETY: set by whoever dispatched the thread; workers are never freed.
    unsafe { &*record.worker.get().cast::<Worker>() }
}

/// Whether `owner` runs now, on another worker than `me` does: a hint.
pub(crate) fn runs_elsewhere(me: Option<&Record>, owner: &Record) -> bool {
    // SAFETY: a live aligned pointer; it is written with the record, by whoever dispatches it.
    let at = unsafe { AtomicPtr::from_ptr(owner.worker.as_ptr().cast::<*mut Worker>()) };
    // SAFETY: null or a worker, which is never freed.
    let Some(w) = (unsafe { at.load(Ordering::Relaxed).as_ref() }) else { return false };
    let runs = core::ptr::eq(w.running.load(Ordering::Relaxed), owner);
    runs && me.is_none_or(|me| !core::ptr::eq(me.worker.get(), core::ptr::from_ref(w).cast()))
}

/// Switches from `prev` to `next` and, when somebody switches back, finishes what was left then.
///
/// # Safety
/// `prev` is the running context with preemption off, its `after` set; `next` is at rest and this
/// worker's to run.
#[inline(always)]
pub(crate) unsafe fn switch(w: &Worker, prev: &Record, next: &Record) {
    dispatch(w, prev, next);
    // SAFETY: the caller's promise; the worker carried over is the one that runs then.
    unsafe {
        let Carry { prev, worker } = reveille_switch(
            prev.rsp.as_ptr(),
            next.rsp.get(),
            next.fs.get(),
            prev,
            core::ptr::from_ref(w).cast(),
        );
        finish(&*prev, &*worker.cast::<Worker>());
    }
}

/// Where a thread that has ended goes: `next`, at rest and this worker's to run. Preemption is off.
#[inline(always)]
pub(crate) fn leave_for(w: &Worker, prev: &Record, next: &Record) -> Next {
    dispatch(w, prev, next);
    Next { record: next, worker: core::ptr::from_ref(w).cast() }
}

#[inline(always)]
fn dispatch(w: &Worker, prev: &Record, next: &Record) {
    if next.rsp.get() == 0 {
        ops::begin(w, next);
    }
    next.worker.set(core::ptr::from_ref(w).cast());
    w.running.store(core::ptr::from_ref(next).cast_mut(), Ordering::Relaxed);
    w.site.switches.bump();
    if w.trace.is_on() {
        trace(w, prev, next);
    }
}

#[cold]
fn trace(w: &Worker, prev: &Record, next: &Record) {
    let idle = core::ptr::eq(next, w.loop_record());
    let id = if idle { 0 } else { next.id.load(Ordering::Relaxed) };
    w.trace.switch(prev.after.get() as u8, id);
}
