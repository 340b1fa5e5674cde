//! A lock for rare, long work in thread context with preemption on: making slots, rebuilding tables.
//!
//! The holder may be preempted, sleep, or fork; waiters give way until it is done. A fork child finds the
//! lock free: it remembers which process took it, so nothing has to be reset by name.

use core::sync::atomic::{AtomicU32, Ordering};

/// See the module's documentation. Holds the process id of the holder.
pub(crate) struct SlowLock(AtomicU32);

/// The lock, held.
pub(crate) struct SlowGuard<'a>(&'a SlowLock);

impl SlowLock {
    pub(crate) const fn new() -> SlowLock {
        SlowLock(AtomicU32::new(0))
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> SlowGuard<'_> {
        let me = std::process::id();
        let mut rounds = 0u32;
        loop {
            let holder = self.0.load(Ordering::Relaxed);
            if (holder == 0 || holder != me)
                && self.0.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return SlowGuard(self);
            }
            // A reveille thread is preempted while it waits; a kernel thread gives its processor away.
            rounds += 1;
            if rounds.is_multiple_of(16) {
                std::thread::yield_now();
            } else {
                core::hint::spin_loop();
            }
        }
    }
}

impl Drop for SlowGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}
