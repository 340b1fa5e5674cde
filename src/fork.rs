//! fork(2): the child keeps the thread that forked, as POSIX says, on a working runtime with one worker.
//!
//! glibc has done its part when the child handler runs: the forking thread's block is the process's main
//! thread, every other block is off its lists, the worker's pthread stack and block are up for reuse
//! (which is why a worker works on a slot of its own). Here the rest is put in order:
//!
//! 1. locks that other kernel threads may have held are made anew, with empty data: whatever they guarded
//!    belonged to threads that do not exist here
//! 2. the anchors are forgotten (they are off glibc's list); the next slot makes new ones
//! 3. the runtime of the forking thread has one worker left, the one it runs on; its queues are empty
//! 4. timers are not inherited: the worker gets new ones
//! 5. the forking thread's slot is never given to another thread: to glibc it is the main thread
//!
//! Runtimes that the forking thread does not belong to have no workers any more; spawning on them is an
//! error. The default runtime starts anew when it is needed.
#![allow(unsafe_code)]

use crate::sys::membarrier;
use crate::tcb::current;
use crate::worker::{self, Shared};
use crate::{lock, lot, runtime, slot, tls};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Once;

/// All runtimes of the process, newest first, linked by `Shared::older`.
static ALL: AtomicPtr<Shared> = AtomicPtr::new(core::ptr::null_mut());

/// Adds a runtime, and the first time the handler.
pub(crate) fn register(shared: &'static Shared) {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: the handler may run in the child of a fork at any time.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    let new = core::ptr::from_ref(shared).cast_mut();
    let mut head = ALL.load(Ordering::Relaxed);
    loop {
        shared.older.store(head, Ordering::Relaxed);
        match ALL.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

extern "C" fn in_child() {
    membarrier::register();
    // SAFETY: the process has one kernel thread, which is here and holds no lock of ours.
    unsafe {
        lock::spin::LIST.reset(());
        slot::pool::reset();
        lot::after_fork();
    }
    tls::block::forget_anchors();
    runtime::forget_default();
    let own = current::get().map(|me| {
        me.stack().keep.set(true);
        me.join.reset();
        let w = worker::of(me);
        // glibc's own signals look for the main thread's block, which this is now.
        w.home_fs.set(me.fs.get());
        w
    });
    // SAFETY: runtimes are never freed.
    let mut next = unsafe { ALL.load(Ordering::Acquire).as_ref() };
    while let Some(shared) = next {
        let own = own.filter(|w| core::ptr::eq(w.shared(), shared));
        // SAFETY: as above: nobody else is there.
        unsafe { shared.after_fork(own) };
        // SAFETY: runtimes are never freed.
        next = unsafe { shared.older.load(Ordering::Relaxed).as_ref() };
    }
}
