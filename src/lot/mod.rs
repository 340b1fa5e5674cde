//! The lot: where threads wait, keyed by an address. Every blocking primitive is a word of state and this.
//!
//! The idea is that of Linux' futex(2) and of WebKit's parking lot: whoever must wait enters a queue found by
//! the address of the word, after a check of the word under that queue's lock; whoever changes the word
//! takes waiters out. Here a waiter may be a reveille thread, which gives its worker up, or a plain kernel
//! thread, which sleeps in the kernel; on the same key.
//!
//! # Waiting
//! Either in one go ([`park()`]):
//! 1. preemption off; the deadline, if any, goes into the worker's heap; the next thread is chosen
//! 2. the bucket is locked, the check made, the waiter entered
//! 3. switch; the side switched to marks the waiter as resting and unlocks the bucket
//!
//! or in two phases ([`park_after`]), where something has to be done between entering and resting (a
//! condition variable lets go of its mutex):
//! 1. as above
//! 2. as above, and the bucket is unlocked
//! 3. the hook runs
//! 4. switch; the side switched to has the waiter rest, unless it has been woken meanwhile
//!
//! Why no wake-up is lost: whoever changes the word does so before it locks the bucket to look for waiters, or
//! under that lock. If it looks before step 2's check, the check sees the changed word; if after, it finds the
//! waiter. What a waker does with one that has not left its stack yet: `protocol::waiting`.
//!
//! # Order of locks
//! A worker's heap of deadlines, then one bucket, then queues of ready threads. Each is a spin lock with preemption
//! off. A bucket is locked across the switch of [`park()`], so nothing on that way
//! may lock another one: the next thread is chosen before.
//!
//! # The end of a wait
//! A waiter lives on its own stack. It is taken out of its queue by who wakes it, under the bucket's lock; of
//! the heap it takes itself out, if its deadline has not.

#![allow(unsafe_code)]

mod deferred;
mod find;
mod park;
mod queue;
#[cfg(test)]
mod storm;
mod waiter;
mod wake;

pub(crate) use deferred::{drain, unpark_from_handler};
pub(crate) use find::{kick, look, mutex_waited_for};
pub(crate) use park::{Wait, left, park, park_after, rest, wait_for_grant};
pub use waiter::WaitsFor;
pub(crate) use waiter::{Waiter, Woken};
pub(crate) use wake::{Found, Moved, move_waiters, serve, take_out, unpark_all, unpark_one};

use crate::protocol::spin;
use crate::tls::hot;
use core::sync::atomic::AtomicBool;
use queue::Queues;

/// A waiter is woken with this if what it waits for has been given to it.
pub(crate) const GRANTED: usize = 1;

/// Buckets: enough that a million threads that wait for a million things are some dozens each.
const BUCKETS: usize = 1 << 14;

/// One bucket: waiters of the keys that are hashed here.
struct Bucket {
    held: AtomicBool,
    queues: Queues,
}

// SAFETY: the queues are touched under the lock only.
unsafe impl Sync for Bucket {}

static TABLE: [Bucket; BUCKETS] =
    [const { Bucket { held: AtomicBool::new(false), queues: Queues::new() } }; BUCKETS];

/// The bucket of a key: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
#[inline(always)]
fn bucket_of(key: usize) -> &'static Bucket {
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[hash >> (usize::BITS - BUCKETS.trailing_zeros())]
}

impl Bucket {
    /// Locks the bucket; preemption is off already.
    #[inline(always)]
    fn lock(&self) {
        debug_assert!(hot::off_count() != 0);
        spin::acquire(&self.held);
    }

    #[inline(always)]
    fn unlock(&self) {
        spin::release(&self.held);
    }
}

/// This process is a fork's child.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a fork's child: words may say that somebody waits or is coming who does not exist here.
#[cold]
pub(crate) fn forked() -> bool {
    FORKED.load(core::sync::atomic::Ordering::Relaxed)
}

/// In a fork child: nobody waits.
///
/// # Safety
/// The process has one kernel thread, which holds no lock of a bucket.
pub(crate) unsafe fn after_fork() {
    FORKED.store(true, core::sync::atomic::Ordering::Relaxed);
    for b in &TABLE {
        // Reads before it writes: most of the table has never been touched.
        if b.held.load(core::sync::atomic::Ordering::Relaxed) {
            b.unlock();
        }
        if !b.queues.is_empty() {
            b.queues.clear();
        }
    }
    deferred::after_fork();
}
