//! What happens when preemption comes back on and a tick is due: the thread gives its worker up.
//!
//! How it does is `worker`'s business, far above: it leaves a function here at the first start.

use super::hot;
use core::sync::atomic::{AtomicPtr, Ordering};

static GIVE_WAY: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Tells how a thread gives its worker up at a remembered tick.
pub(crate) fn set_give_way(f: fn()) {
    GIVE_WAY.store(f as *mut (), Ordering::Release);
}

/// Honours a tick that came while preemption was off. Preemption is on.
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

/// Honours a tick that is due, if preemption is on. One load when none is.
#[inline(always)]
pub(crate) fn look() {
    if hot::pending() && hot::off_count() == 0 {
        honour_pending();
    }
}

/// Leaves one level of [`hot::off`], and honours a due tick if it was the last.
#[inline(always)]
pub(crate) fn on() {
    if hot::on() && hot::off_count() == 0 {
        honour_pending();
    }
}
