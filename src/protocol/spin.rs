//! A lock held for a few instructions: one flag. `lock::spin` adds the data and switches preemption off.
#![forbid(unsafe_code)]

use crate::prim::{AtomicBool, Ordering, pause};

/// Takes the lock.
#[inline(always)]
pub(crate) fn acquire(held: &AtomicBool) {
    if held.swap(true, Ordering::Acquire) {
        wait(held);
    }
}

#[cold]
fn wait(held: &AtomicBool) {
    let mut round = 0u32;
    while held.load(Ordering::Relaxed) || held.swap(true, Ordering::Acquire) {
        round = round.wrapping_add(1);
        pause(round);
    }
}

/// Lets go of the lock, which the caller holds.
#[inline(always)]
pub(crate) fn release(held: &AtomicBool) {
    held.store(false, Ordering::Release);
}
