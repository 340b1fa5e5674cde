//! The processor's own.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Waits a moment in round number `round` of a spin. Now and then it gives the processor away, in case
/// the kernel has descheduled whoever is waited for (sched_yield(2): no lock, no allocation).
pub(crate) fn pause(round: u32) {
    /// Rounds between two of these.
    const OFTEN: u32 = 128;
    if round.is_multiple_of(OFTEN) {
        std::thread::yield_now();
    } else {
        core::hint::spin_loop();
    }
}
