//! The lock for data that handlers must reach: signals are really blocked while it is held.

use super::word;
use crate::check;
use crate::protocol::owned::{Attempt, Owned};
use crate::tls::hot;
use crate::worker::mask::{self, Blocked};
use core::marker::PhantomData;

const WHAT: &str = "a SignalLock";

/// The lock without data, for [`lock_api`]. See the [module](super).
#[derive(Debug)]
pub struct RawSignalLock(Owned);

/// A lock that threads share with signal handlers, all of which may wait for it. A holder has signals blocked, really:
/// one system call to take it, one to let go. See the [module](super) for who may take which where.
pub type SignalLock<T> = lock_api::Mutex<RawSignalLock, T>;
/// A [`SignalLock`], held.
pub type SignalLockGuard<'a, T> = lock_api::MutexGuard<'a, RawSignalLock, T>;

/// The mask to be restored, in the guard of a [`SignalLock`].
#[derive(Debug)]
pub struct SignalsBlocked {
    blocked: Blocked,
    _not_send: PhantomData<*const ()>,
}

/// Preemption off, signals blocked.
#[inline]
fn begin() -> SignalsBlocked {
    hot::off();
    SignalsBlocked { blocked: mask::block(), _not_send: PhantomData }
}

/// The mask that was, then preemption.
#[inline]
fn end(state: SignalsBlocked) {
    if hot::off_count() == 0 {
        // A panic switched it on; the mask is restored on the worker that it is changed on.
        hot::off();
    }
    if !mask::restore(state.blocked) {
        check::violation(WHAT, "was held while signals were unblocked");
    }
    word::preemption_on();
}

// SAFETY: the word has one holder at a time (`protocol::owned`, with a loom model).
unsafe impl lock_api::RawMutex for RawSignalLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api wants it")]
    const INIT: RawSignalLock = RawSignalLock(Owned::new());
    type Guard = SignalsBlocked;

    fn lock(&self) -> SignalsBlocked {
        loop {
            let state = begin();
            match self.0.attempt(word::me()) {
                Attempt::Taken => return state,
                Attempt::Own => word::waits_for_itself(WHAT),
                Attempt::Busy => {}
            }
            // The holder may need this worker, and this thread its signals.
            end(state);
            word::await_chance(&self.0);
        }
    }

    fn try_lock(&self) -> Option<SignalsBlocked> {
        let state = begin();
        if self.0.attempt(word::me()) == Attempt::Taken {
            return Some(state);
        }
        end(state);
        None
    }

    unsafe fn unlock(&self, state: SignalsBlocked) {
        word::release(&self.0, WHAT);
        end(state);
    }

    fn is_locked(&self) -> bool {
        self.0.is_held()
    }
}
