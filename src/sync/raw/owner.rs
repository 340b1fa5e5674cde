//! Who owns a lock: a word for each thread, reveille's or the kernel's.

use crate::protocol::mutex::KERNEL;
use crate::tcb::{Record, current};
use crate::tls::hot;
use core::marker::PhantomData;

/// The proof that this thread holds a lock, kept in the guard; it cannot be sent to another thread.
#[derive(Debug)]
pub struct Held {
    pub(crate) me: usize,
    _not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to it lets nobody do anything. lock_api's guards are to be shared if their data is.
unsafe impl Sync for Held {}

impl Held {
    #[inline(always)]
    pub(crate) fn by(me: usize) -> Held {
        Held { me, _not_send: PhantomData }
    }
}

/// The running thread as an owner: its record, or the block of the kernel thread. Both are aligned to 64 and
/// below 2^47, so that flags and a count fit beside.
#[inline(always)]
pub(crate) fn me() -> usize {
    let record = hot::record() as usize;
    if record == 0 { kernel() } else { record }
}

/// Threads as lock_api's `ReentrantMutex` tells them apart.
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: no two threads that exist are the same owner, and none is zero.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: RawThreadId = RawThreadId;

    fn nonzero_thread_id(&self) -> core::num::NonZeroUsize {
        core::num::NonZeroUsize::new(me()).expect("a thread has a record or a thread pointer")
    }
}

#[cold]
fn kernel() -> usize {
    hot::fs_base() | KERNEL
}

/// The record of an owner, if that is a reveille thread.
pub(crate) fn record(owner: usize) -> Option<&'static Record> {
    if owner == 0 || owner & KERNEL != 0 {
        return None;
    }
    // SAFETY: an owner that is not a kernel thread is a record, which is never freed.
    Some(unsafe { &*(owner as *const Record) })
}

/// Whether it is worth looking on for a moment: the owner runs now, on another worker than this thread.
#[inline]
pub(crate) fn runs_elsewhere(owner: usize) -> bool {
    match record(owner) {
        Some(r) => crate::worker::runs_elsewhere(current::get(), r),
        // The kernel knows; most of the time it does.
        None => owner != 0 && crate::sys::several_processors(),
    }
}
