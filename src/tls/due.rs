//! What happens when preemption comes back on and a tick is due: the thread gives its worker up. A kernel
//! thread, which no tick comes for, does what a signal handler left to it (`lot::deferred`).
//!
//! How it does is `worker`'s business, far above: it leaves a function here at the first start.

use super::hot;
use core::sync::atomic::{AtomicPtr, Ordering};

static GIVE_WAY: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Tells how a thread gives its worker up at a remembered tick.
pub(crate) fn set_give_way(f: fn()) {
    GIVE_WAY.store(f as *mut (), Ordering::Release);
}

/// Honours what came while preemption was off: a tick, or a wake-up that a signal handler could not do. The
/// thread is at rest.
#[cold]
#[inline(never)]
pub(crate) fn honour_pending() {
    let f = GIVE_WAY.load(Ordering::Acquire);
    if f.is_null() {
        return;
    }
    // SAFETY: only `set_give_way` writes it.
    let f: fn() = unsafe { core::mem::transmute::<*mut (), fn()>(f) };
    f();
}

/// Whether nothing of the runtime is half changed by the running thread. A kernel thread rests with a count of
/// one: it has preemption off for good.
#[inline(always)]
pub(crate) fn at_rest() -> bool {
    hot::off_count() == u32::from(hot::record().is_null())
}

/// Honours what is due, if the thread is at rest. One load when nothing is.
#[inline(always)]
pub(crate) fn look() {
    if hot::pending() && at_rest() {
        honour_pending();
    }
}

/// Leaves one level of [`hot::off`], and honours what is due if it was the last.
#[inline(always)]
pub(crate) fn on() {
    if hot::on() && at_rest() {
        honour_pending();
    }
}

/// After a spin lock has been let go of and something was found due: a thread has better places to give way,
/// a kernel thread may come by no other.
#[cold]
pub(crate) fn after_spin() {
    if hot::record().is_null() && at_rest() {
        honour_pending();
    }
}
