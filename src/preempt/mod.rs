//! Preemption: the tick, the decision, and the user's guard against it.
//!
//! * [`site`]: what the handler knows of the worker it interrupts
//! * [`ticker`]: when ticks come
//! * [`handler`]: the signal handler
//! * [`overflow`]: the guard page
//! * [`decide`]: whether to switch, as a pure function
//! * [`guard`]: [`disable`] and [`checkpoint`]
//!
//! This side imports nothing from the scheduler: it asks the worker through two functions in the site.
#![allow(unsafe_code)]

mod decide;
pub(crate) mod floor;
mod guard;
pub(crate) mod handler;
mod install;
pub(crate) mod overflow;
pub(crate) mod site;
pub(crate) mod ticker;

pub(crate) use guard::hook_panics;
pub use guard::{Guard, assert_on, checkpoint, disable, is_disabled};

use core::sync::atomic::{AtomicPtr, Ordering};

/// What gives way when a remembered tick is honoured; set by `worker`, which is above this module.
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
