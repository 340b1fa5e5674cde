//! The kernel's side of the protocols: futex(2) itself.

use crate::prim::AtomicU32;
use crate::protocol::condvar2005::System;
use crate::protocol::futex_lock::{Futex, FutexLock};
use crate::sys::clock::Deadline;
use crate::sys::{futex, futex_pair};

/// This machine's kernel.
pub(crate) struct Linux;

impl Futex for Linux {
    type Deadline = Deadline;

    fn wait(&self, word: &AtomicU32, expected: u32, until: Option<Deadline>) -> bool {
        futex::wait_until(word, expected, until)
    }

    fn wake(&self, word: *const AtomicU32, n: u32) {
        futex::wake_address(word, n.min(i32::MAX as u32) as i32);
    }

    fn requeue(&self, from: &AtomicU32, expected: u32, n: u32, to: &AtomicU32) {
        futex_pair::requeue(from, expected, n, to);
    }

    fn wake_and_release(&self, word: &AtomicU32, lock: &AtomicU32) -> bool {
        futex_pair::wake_and_clear(word, lock)
    }
}

impl System for Linux {
    fn mutex(&self, address: *mut FutexLock) -> &FutexLock {
        // SAFETY: the protocol asks for it under the inner lock while a waiter is counted, and a counted waiter
        // borrows its mutex (docs/invariants.md, "Condvars of kernel threads").
        unsafe { &*address }
    }
}
