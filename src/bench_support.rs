//! For this project's own benchmarks and tests; not part of the interface.
#![allow(unsafe_code)]

use crate::preempt::handler;
use crate::sys::signal;
use crate::tcb::current;
use crate::tls::hot;
use crate::worker;

/// Sends the tick's signal to the running worker, dressed as a tick of a thread that has used up its
/// slice: one whole preemption, if another thread is ready.
pub fn preempt_self() {
    let Some(me) = current::get() else { return };
    hot::off();
    let w = worker::of(me);
    w.site.seen.set(w.site.switches.get());
    w.site.since.set(0);
    let (signo, value) =
        (w.site.signal, handler::tagged(core::ptr::from_ref(w) as usize | handler::PRECISE_TICK));
    let _due = hot::on();
    // If the thread is moved here, the other worker does not know the value and ignores the signal.
    signal::queue_to_self(signo, libc::SI_TIMER, value);
}

/// Kicks `thread` out of whatever it waits for in the lot, as a cancellation would; false if it does not wait
/// there. What it waits for has to cope: it looks again and waits on, or returns early where that is allowed.
pub fn kick(thread: &crate::thread::Thread) -> bool {
    thread.record().is_some_and(|r| crate::lot::kick(r, 1))
}
