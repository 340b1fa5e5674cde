//! What a running thread does to itself: give way, park, join, end. And to slots: take one, free one.
//!
//! Each begins by switching preemption off and ends by beginning a slice.

use super::wait::{Leaving, leave_to};
use super::{Worker, of};
use crate::context::x86_64::Next;
use crate::lot::{self, Wait, WaitsFor};
use crate::protocol::token::Unparking;
use crate::slot::pool;
use crate::sys::clock::Deadline;
use crate::tcb::state::{After, State};
use crate::tcb::{Record, current};
use crate::tls::{due, hot};
use core::sync::atomic::Ordering;

/// The running thread gives way to the next ready one, if there is one. False on a kernel thread.
#[inline]
pub(crate) fn yield_now() -> bool {
    let Some(me) = current::get() else { return false };
    give_way(me, After::Yield, "yield_now");
    true
}

/// As [`yield_now`] for a thread whose slice is over: it waits among the sliced ones.
pub(crate) fn give_way_sliced() {
    let Some(me) = current::get() else {
        // A kernel thread: a signal handler could not wake somebody at once. One that comes from here on says so
        // again.
        hot::set_pending(0);
        return crate::lot::drain();
    };
    // In a handler of the program's a tick is not honoured: its stack may be the worker's own, and its
    // sigreturn must happen on this worker. It stays pending.
    let here = 0u8;
    let in_handler = {
        hot::off();
        let site = &of(me).site;
        let known = match me.slow.load(Ordering::Relaxed) {
            0 => site.usual_mask.get(),
            _ => me.mask.get(),
        };
        let in_handler = site.on_signal_stack(&raw const here as usize)
            || crate::sys::signal::current_mask() != known;
        let _due = hot::on();
        in_handler
    };
    if !in_handler {
        give_way(me, After::Sliced, "a tick");
    }
}

#[inline(always)]
fn give_way(me: &'static Record, after: After, what: &'static str) {
    if hot::off_count() != 0 {
        return refuse(me, what);
    }
    hot::off_from_on();
    let w = of(me);
    let Some(next) = w.pick() else {
        // SAFETY: one level of `off`, runtime data no longer in use.
        return unsafe { hot::begin_slice() };
    };
    if matches!(after, After::Sliced) {
        w.site.preemptions.bump();
        me.preemptions.fetch_add(1, Ordering::Relaxed);
    }
    leave_to(w, me, next, after);
}

/// Giving way or blocking with preemption switched off by the user.
#[cold]
#[inline(never)]
fn refuse(me: &Record, what: &'static str) {
    // Preemption is off, so the worker stays the same.
    if of(me).shared().settings.checks {
        crate::check::violation(what, "was called while preemption was switched off");
    }
}

/// Leaves the worker until somebody makes the thread ready; `after` says who.
#[inline(always)]
fn block(me: &'static Record, after: After) {
    Leaving::begin(me).choose().go(after);
}

/// Waits until `target` has ended, in a reveille thread or on a kernel thread. The caller holds the
/// handle, so nobody else joins and the slot stays.
#[inline]
pub(crate) fn wait_for(target: &'static Record) {
    let Some(me) = current::get() else { return wait_on_kernel_thread(target) };
    while !target.join.is_done() {
        me.target.set(target);
        block(me, After::Join);
    }
}

#[cold]
fn wait_on_kernel_thread(target: &'static Record) {
    target.join.wait_in_kernel(|word, expected| {
        crate::sys::futex::wait(super::life::low_half(word), expected);
    });
}

/// Parks the running thread until its token is there; may return early, as std's does.
pub(crate) fn park(me: &'static Record) {
    if !me.token.try_take() {
        block(me, After::Park);
    }
}

/// As [`park`], until `deadline` at the latest.
pub(crate) fn park_until(me: &'static Record, deadline: Option<Deadline>) {
    if !me.token.try_take() {
        let wait = Wait::on(me.token.key(), WaitsFor::Unpark).until(deadline);
        let _why = lot::park(wait, || me.token.enter_lot());
        me.token.leave_lot();
    }
}

/// Makes the token of `r` available. From any thread.
pub(crate) fn unpark(r: &'static Record) {
    match r.token.unpark() {
        Unparking::Stored => {}
        Unparking::Rested => make_ready(r),
        Unparking::InLot => {
            lot::unpark_all(r.token.key(), 0);
        }
    }
}

/// Whether the invariants are checked for the running thread; always on a kernel thread.
pub(crate) fn checks_on() -> bool {
    // SAFETY: a running thread's runtime, which stays the same; runtimes are never freed.
    current::get()
        .is_none_or(|me| unsafe { (*me.runtime.get().cast::<super::Shared>()).settings.checks })
}

/// Makes a blocked thread ready; the caller took it out of what it waited for.
pub(crate) fn make_ready(r: &'static Record) {
    match current::get() {
        Some(me) => {
            hot::off();
            super::give::ready(of(me), r);
            due::on();
        }
        None => {
            super::life::mark(r, State::Ready);
            // SAFETY: a live thread's runtime; runtimes are never freed.
            let shared = unsafe { &*r.runtime.get().cast::<super::Shared>() };
            super::give::from_outside(shared, r);
        }
    }
}

/// The running thread ends: preemption goes off for good, and the caller goes to what is returned. Its TLS
/// has been reset; its outcome is in the record.
#[inline]
pub(crate) fn exit(me: &'static Record) -> Next {
    hot::off();
    let w = of(me);
    if me.slow.load(Ordering::Relaxed) != 0 {
        super::mask::leave(me, w);
        me.slow.store(0, Ordering::Relaxed);
    }
    me.masks_tick.set(false);
    // Among others that wait the joiner takes its place behind them: it then finds the threads that it joins
    // next ended, which saves a switch for each.
    if w.ring.len() == 0
        && let Some(joiner) = me.join.joiner()
    {
        // SAFETY: a joiner in the word is the record of a blocked thread.
        let joiner = unsafe { &*joiner };
        if core::ptr::eq(joiner.runtime.get(), w.shared.get().cast()) {
            me.after.set(After::ExitToJoiner);
            super::life::mark(joiner, State::Running);
            return super::leave_for(w, me, joiner);
        }
    }
    me.after.set(After::Exit);
    let next = w.pick().unwrap_or_else(|| w.loop_record());
    super::leave_for(w, me, next)
}

/// A free record with a stack of the worker's class, without allocation, if there is one. Preemption off.
#[inline(always)]
pub(crate) fn take_pair(w: &Worker) -> Option<&'static Record> {
    // SAFETY: both are touched on the worker's kernel thread only, with preemption off.
    let (records, stacks) = unsafe { (&mut *w.records.get(), &mut *w.stacks.get()) };
    let stack = stacks.take(w.class)?;
    match records.take(w.class) {
        Some(r) => {
            r.stack.set(stack);
            Some(r)
        }
        None => {
            stacks.give(w.class, stack);
            None
        }
    }
}

/// A thread is dispatched for the first time: it gets the stack that was left last, which is warm in the
/// cache, in exchange for the one that it came with. Preemption is off.
#[inline(always)]
pub(crate) fn begin(w: &Worker, r: &Record) {
    /// Switches after which the stack that the thread came with is no longer the warmest.
    const WARM: u32 = 4;
    let mut stack = r.stack();
    let age = (w.site.switches.get() as u32).wrapping_sub(r.spawned.get());
    if age >= WARM && r.usual_stack.get() {
        // SAFETY: as in `take_pair`.
        let stacks = unsafe { &mut *w.stacks.get() };
        if let Some(warm) = stacks.hot() {
            stacks.give(w.class, stack);
            stack = warm;
        }
    }
    if let Some(next) = w.ring.peek() {
        crate::context::x86_64::prefetch(next);
    }
    // SAFETY: the stack is free, hence the thread's.
    unsafe {
        r.adopt(stack);
        r.prepare(crate::context::x86_64::reveille_entry as *const () as usize);
    }
}

/// The thread has ended and left its stack. Preemption is off.
#[inline(always)]
pub(crate) fn free_stack(w: &Worker, r: &Record) {
    let stack = r.stack();
    r.stack.set(core::ptr::null());
    if stack.keep.get() {
        return;
    }
    if u32::from(stack.class.get()) != w.class || r.outside.get() {
        return pool::put_stack(stack);
    }
    // SAFETY: as in `take_pair`.
    unsafe { (*w.stacks.get()).give(w.class, stack) };
}

/// Frees the record of a thread that has ended. Preemption is off.
#[inline(always)]
pub(crate) fn free(w: &Worker, r: &'static Record) {
    r.id.store(0, Ordering::Relaxed);
    super::life::mark(r, State::Free);
    // SAFETY: as in `take_pair`.
    unsafe { (*w.records.get()).give(w.class, r) };
}

/// Frees the record from any thread.
pub(crate) fn free_from_anywhere(r: &'static Record) {
    let Some(me) = current::get() else {
        r.id.store(0, Ordering::Relaxed);
        super::life::mark(r, State::Free);
        return pool::put_record(r);
    };
    hot::off();
    free(of(me), r);
    due::on();
}
