//! A lock held for a few instructions: one flag. `lock::spin` adds the data and switches preemption off.
#![forbid(unsafe_code)]

use crate::prim::{AtomicBool, Ordering, pause};

/// Takes the lock.
#[inline(always)]
pub(crate) fn acquire(held: &AtomicBool) {
    if !try_acquire(held) {
        wait(held);
    }
}

#[inline(always)]
fn try_acquire(held: &AtomicBool) -> bool {
    held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

#[cold]
fn wait(held: &AtomicBool) {
    let mut round = 0u32;
    while held.load(Ordering::Relaxed) || !try_acquire(held) {
        round = round.wrapping_add(1);
        pause(round);
    }
}

/// Lets go of the lock, which the caller holds.
#[inline(always)]
pub(crate) fn release(held: &AtomicBool) {
    held.store(false, Ordering::Release);
}
