//! The word of somebody who waits in the lot: whether its stack has been left when it is woken.
//!
//! The waiter enters a queue under that queue's lock with the word QUEUED. Then one of
//! * it rests before the lock is let go: the word is PARKED for everybody who can find it
//!   ([`WaitWord::rest_locked`])
//! * it lets the lock go, does something else (lets go of a mutex, say) and rests after:
//!   QUEUED becomes PARKED ([`WaitWord::rest`]), unless it has been woken meanwhile
//!
//! Whoever takes it out of the queue, under the lock, is the only one who wakes it ([`WaitWord::wake`]):
//! * PARKED: the waiter rests; the caller makes it ready (or wakes it in the kernel)
//! * QUEUED becomes WOKEN: the waiter is still on its stack; step "rest" sees it and does not rest
//!
//! So a thread is made ready once, after its stack has been left, or goes on by itself.
#![forbid(unsafe_code)]

use crate::prim::{AtomicU32, Ordering};

const QUEUED: u32 = 0;
const PARKED: u32 = 1;
const WOKEN: u32 = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct WaitWord(AtomicU32);

impl WaitWord {
    pub(crate) fn new() -> WaitWord {
        WaitWord(AtomicU32::new(QUEUED))
    }

    /// The waiter rests; its queue is locked since it entered, so nobody has found it yet.
    #[inline(always)]
    pub(crate) fn rest_locked(&self) {
        self.0.store(PARKED, Ordering::Relaxed);
    }

    /// The waiter rests, unless it has been woken: false.
    #[must_use]
    #[inline]
    pub(crate) fn rest(&self) -> bool {
        self.0.compare_exchange(QUEUED, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// By who took the waiter out of its queue. True: it rests, and the caller makes it ready; the waiter may
    /// be gone as soon as that is done. False: it may be gone already.
    #[must_use]
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        // A waiter that rests is changed by nobody else, so no read-modify-write is needed. Acquire: what was saved
        // when its stack was left is visible to whom the caller gives it.
        if self.0.load(Ordering::Acquire) == QUEUED {
            let (ok, failed) = (Ordering::AcqRel, Ordering::Acquire);
            if self.0.compare_exchange(QUEUED, WOKEN, ok, failed).is_ok() {
                return false;
            }
        }
        self.0.store(WOKEN, Ordering::Release);
        true
    }

    /// Whether it has been woken; what the waker wrote before is visible.
    #[inline(always)]
    pub(crate) fn is_woken(&self) -> bool {
        self.0.load(Ordering::Acquire) == WOKEN
    }

    /// The word and the value that a kernel thread sleeps on after [`WaitWord::rest`].
    pub(crate) fn sleep_on(&self) -> (&AtomicU32, u32) {
        (&self.0, PARKED)
    }
}
