//! Beginnings and ends: of a thread, of a worker's loop, of a worker.

use super::{Shared, Worker, finish, ops, switch};
use crate::context::x86_64::{Next, reveille_body, reveille_entry, reveille_jump, reveille_switch};
use crate::error::Error;
use crate::protocol::join::Value;
use crate::slot::pool;
use crate::sys::{memory, signal};
use crate::tcb::identity::Identity;
use crate::tcb::state::{After, Outcome, State};
use crate::tcb::{Record, current};
use crate::tls::{glibc, hot, reset};
use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// First Rust code of a new context; called by reveille_entry with what the switch carried.
///
/// # Safety
/// As [`finish`] for the two arguments, where `prev` is null at a worker's first switch.
pub(crate) unsafe extern "C" fn reveille_start(prev: *const Record, worker: *const ()) -> Next {
    // SAFETY: the caller's promise.
    let w = unsafe { &*worker.cast::<Worker>() };
    let Some(me) = current::get() else {
        crate::check::violation("a context", "was started without a record")
    };
    if core::ptr::eq(me, w.loop_record()) {
        run_loop(w);
    }
    // SAFETY: the caller's promise.
    unsafe { finish(&*prev, w) };
    thread_main(me)
}

/// A thread from its first slice to its end.
fn thread_main(me: &'static Record) -> Next {
    // As glibc at a thread's start. Not at a reset: setlocale(3) in between sets its caller's tables only, and
    // may free those of the old locale.
    // SAFETY: sets the running thread's character tables after its locale.
    unsafe { (glibc::known().ctype_init)() };
    // SAFETY: preemption is off once, and nothing of the runtime is in use.
    unsafe { hot::begin_slice() };
    // SAFETY: the record is this thread's, its body set by the spawner.
    match catch_unwind(AssertUnwindSafe(|| unsafe { reveille_body(me) })) {
        Ok(0) => me.outcome.set(Outcome::Returned),
        Ok(_) => me.outcome.set(Outcome::Exited),
        Err(payload) => {
            // SAFETY: the joiner reads it only when the thread is done.
            unsafe { *me.payload.get() = Some(payload) };
            me.outcome.set(Outcome::Panicked);
            // Frames of C with cleanup handlers may have been skipped: the next thread registers anew.
            me.stack().registered.set(0);
        }
    }
    let panicked = me.outcome.get() == Outcome::Panicked;
    let plain = me.outcome.get() == Outcome::Returned && me.drop_packet.get().is_none();
    let detached = (!plain || me.named.get()) && settle_value(me);
    if me.stack().keep.get() {
        end_of_process(me);
    }
    // SAFETY: the closure is done and its value is not in TLS.
    unsafe { reset::reset() };
    if let Some((f, arg)) = me.at_end.take() {
        // SAFETY: the scope that set it waits for this call.
        unsafe { f(arg, panicked && detached) };
    }
    // Destructors above may have asked who they are.
    if detached {
        drop_name(me);
    }
    ops::exit(me)
}

/// The thread that forked ends in the child: to POSIX it is the last but the threads started since.
#[cold]
fn end_of_process(me: &'static Record) -> ! {
    // SAFETY: a running thread's runtime; runtimes are never freed.
    let shared = unsafe { &*me.runtime.get().cast::<Shared>() };
    while shared.running() > 1 {
        ops::yield_now();
    }
    std::process::exit(0)
}

/// Decides who drops a value that needs to be dropped: a detached thread its own, here; else whoever
/// has the handle, who finds ENDING or DONE in the word. True if the thread was detached.
#[cold]
fn settle_value(me: &'static Record) -> bool {
    let detached = me.join.settle() == Value::Own;
    if detached {
        drop_value(me);
    }
    detached
}

/// Drops the name in the record of an ended thread. Thread context, preemption on.
pub(crate) fn drop_name(r: &'static Record) {
    if r.named.replace(false) {
        // SAFETY: the caller alone holds the record; a named identity is dropped once.
        unsafe { (*r.identity.get()).assume_init_drop() };
    }
}

/// Drops the value or payload in the record of an ended thread.
pub(crate) fn drop_value(r: &'static Record) {
    match r.outcome.replace(Outcome::Taken) {
        Outcome::Returned => {
            if let Some(f) = r.drop_packet.get() {
                // SAFETY: the packet holds the result, which nobody else will take.
                unsafe { f(r) };
            }
        }
        // SAFETY: the thread has ended and the caller alone holds the record.
        Outcome::Panicked => drop(unsafe { (*r.payload.get()).take() }),
        _ => {}
    }
}

/// The worker's loop: preemption off for good.
fn run_loop(w: &'static Worker) -> ! {
    let me = w.loop_record();
    me.after.set(After::Loop);
    while let Some(next) = w.find() {
        // SAFETY: preemption is off; `next` came out of a queue.
        unsafe { switch(w, me, next) };
    }
    let (rsp, fs) = (w.home_rsp.get(), w.home_fs.get());
    // SAFETY: the home context rests since the worker began.
    unsafe { reveille_jump(core::ptr::null_mut(), rsp, fs, me, core::ptr::from_ref(w).cast()) }
}

/// What a worker's kernel thread needs before it works, and gives back after.
pub(crate) struct Ready {
    old_stack: libc::stack_t,
}

/// Prepares the calling kernel thread to be the worker `w`.
pub(crate) fn prepare(w: &'static Worker, shared: &'static Shared) -> Result<Ready, Error> {
    w.shared.set(shared);
    let len = (64 << 10) + signal::min_signal_stack().next_multiple_of(memory::PAGE);
    let base = memory::reserve(len + memory::PAGE)
        .map_err(|e| Error::os("no memory for a worker's signal stack", e))?;
    // SAFETY: the first page of a fresh reservation.
    unsafe { memory::guard(&memory::Ranges::one(base as usize, memory::PAGE)) }
        .map_err(|e| Error::os("cannot guard a worker's signal stack", e))?;
    let lo = base as usize + memory::PAGE;
    // SAFETY: the reservation is never freed and only this kernel thread uses it.
    let old_stack = unsafe { signal::set_signal_stack(lo as *mut u8, len) }
        .map_err(|e| Error::os("cannot set a worker's signal stack", e))?;
    w.site.signal_stack_lo.set(lo);
    w.site.signal_stack_len.set(len);
    let loop_record = pool::record()?;
    let stack = pool::stack(shared.class)?;
    // SAFETY: nobody runs on the stack.
    unsafe { loop_record.adopt(stack) };
    loop_record.inherit_control_words();
    // A handler of the program's that interrupts the loop may ask who it is.
    let identity = Identity::Reveille { record: loop_record, id: 0, name: None };
    // SAFETY: the record is free, hence ours.
    unsafe { (*loop_record.identity.get()).write(identity) };
    loop_record.state.store(State::Loop as u8, Ordering::Relaxed);
    loop_record.runtime.set(core::ptr::from_ref(shared).cast());
    loop_record.worker.set(core::ptr::from_ref(w).cast());
    // SAFETY: nobody runs on the slot.
    unsafe { loop_record.prepare(reveille_entry as *const () as usize) };
    w.site.loop_record.set(loop_record);
    signal::change_mask(libc::SIG_UNBLOCK, signal::set_of(w.site.signal));
    w.site.usual_mask.set(signal::current_mask());
    w.site
        .ticker
        .start(w.site.signal, core::ptr::from_ref(w) as usize)
        .map_err(|e| Error::os("cannot create a worker's timer", e))?;
    w.site
        .alarm
        .start(w.site.signal, crate::preempt::handler::alarm_of(core::ptr::from_ref(w) as usize))
        .map_err(|e| Error::os("cannot create a worker's timers", e))?;
    Ok(Ready { old_stack })
}

/// Works until the runtime closes.
pub(crate) fn work(w: &'static Worker, ready: Ready) {
    let to = w.loop_record();
    w.home_fs.set(hot::fs_base());
    // SAFETY: home's hot words have preemption off for good; the loop's context rests.
    unsafe {
        reveille_switch(
            w.home_rsp.as_ptr(),
            to.rsp.get(),
            to.fs.get(),
            core::ptr::null(),
            core::ptr::from_ref(w).cast(),
        );
    }
    w.site.ticker.stop();
    w.site.alarm.stop();
    pool::put_stack(to.stack());
    to.state.store(State::Free as u8, Ordering::Relaxed);
    pool::put_record(to);
    signal::restore_signal_stack(&ready.old_stack);
}

/// First code of a thread whose first context was converted: it was resumed like a preempted one, so its
/// slice has begun already.
pub(crate) unsafe extern "C" fn begin_converted() {
    let Some(me) = current::get() else {
        crate::check::violation("a context", "was started without a record")
    };
    hot::off();
    let next = thread_main(me);
    // SAFETY: the next context rests and is the worker's to run.
    unsafe {
        let to = &*next.record;
        reveille_jump(core::ptr::null_mut(), to.rsp.get(), to.fs.get(), me, next.worker)
    }
}
