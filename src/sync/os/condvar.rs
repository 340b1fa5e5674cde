//! The condition variable, generic over its generation.

use super::kernel::Linux;
use super::mutex::RawMutex;
use crate::protocol::condvar2005::{CondWords, How};
use crate::sys::clock::Deadline;
use core::fmt;
use core::marker::PhantomData;
use lock_api::GuardNoSend;
use std::time::{Duration, Instant};

mod sealed {
    /// How a generation notifies.
    pub trait Notifies {
        const HOW: crate::protocol::condvar2005::How;
    }
}

/// How a [`Condvar`] notifies: [`Plain`], [`Requeue`] or [`WakeOp`]. See the [module](super).
pub trait Generation: sealed::Notifies {
    /// The name in tables.
    const NAME: &'static str;
}

macro_rules! generation {
    ($(#[$doc:meta])* $name:ident, $text:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl sealed::Notifies for $name {
            const HOW: How = How::$name;
        }

        impl Generation for $name {
            const NAME: &'static str = $text;
        }
    };
}

generation!(
    /// FUTEX_WAKE under the condvar's own lock: the oldest way.
    Plain,
    "plain"
);
generation!(
    /// FUTEX_CMP_REQUEUE to the lock that the woken thread would run into.
    Requeue,
    "requeue"
);
generation!(
    /// FUTEX_WAKE_OP: wake and release in one system call.
    WakeOp,
    "wake-op"
);

/// A condition variable for kernel threads, for [`lock_api`]. See the [module](super). Waits may end without a
/// reason, so the notifying methods do not tell whether somebody waited.
pub struct RawCondvar<G> {
    words: CondWords,
    generation: PhantomData<fn(G)>,
}

/// A condition variable for kernel threads and the [`Mutex`](super::Mutex). See the [module](super).
///
/// Its `wait` panics when another thread waits with another mutex.
pub type Condvar<G> = lock_api::Condvar<RawCondvar<G>>;

impl<G: Generation> RawCondvar<G> {
    fn wait_on(&self, mutex: &RawMutex, until: Option<Deadline>) -> bool {
        match self.words.wait(&Linux, mutex.words(), until) {
            Ok(timed_out) => timed_out,
            Err(_) => panic!("a condvar was used with two mutexes at once"),
        }
    }
}

// SAFETY: a waiter enters under the condvar's lock before it unlocks the mutex, so a notify after the unlock finds
// it (the protocol in the module's documentation). It panics only before it unlocks.
unsafe impl<G: Generation> lock_api::RawCondvar for RawCondvar<G> {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api wants it")]
    const INIT: RawCondvar<G> = RawCondvar { words: CondWords::new(), generation: PhantomData };
    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, _: &mut GuardNoSend) {
        self.wait_on(mutex, None);
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.words.notify_one(G::HOW, &Linux);
        false
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.words.notify_all(G::HOW, &Linux);
        0
    }
}

// SAFETY: as above; the kernel's sleeps do not end before their time is over without being begun anew.
unsafe impl<G: Generation> lock_api::RawCondvarTimed for RawCondvar<G> {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, _: &mut GuardNoSend, timeout: &Instant) -> bool {
        self.wait_on(mutex, Deadline::from_instant(*timeout))
    }
}

impl<G: Generation> fmt::Debug for RawCondvar<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiters = self.words.waiters();
        let mut out = f.debug_struct("RawCondvar");
        out.field("generation", &G::NAME).field("waiters", &waiters).finish()
    }
}
