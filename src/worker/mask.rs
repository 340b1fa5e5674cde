//! A thread's own signal mask.
//!
//! The kernel keeps a mask for the kernel thread, that is, for the worker. A thread that changes its mask
//! and then blocks or gives way would leave it on the worker and stop ticks for everybody. So a thread
//! whose mask differs from the usual one is marked `slow`, its switches put the usual mask in force and
//! its return restores its own. Threads that never touch their mask pay one test.

use super::Worker;
use crate::sys::signal;
use crate::tcb::Record;

/// Puts the worker's usual mask in force; the thread's own is in its record. Preemption is off.
#[cold]
pub(crate) fn leave(_me: &Record, w: &Worker) {
    signal::change_mask(libc::SIG_SETMASK, w.site.usual_mask.get());
}

/// The thread runs again: its own mask. Preemption is off.
#[cold]
pub(crate) fn come_back(me: &Record) {
    signal::change_mask(libc::SIG_SETMASK, me.mask.get());
}
