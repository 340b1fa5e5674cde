//! The lock for threads and for handlers that can do without: as the process-context lock, and what handlers may call
//! never waits for long.

use super::word;
use crate::prim::pause;
use crate::protocol::owned::Owned;
use crate::tls::due;
use lock_api::GuardNoSend;

const WHAT: &str = "a HandlerLock";
/// Rounds that a handler spins for a holder that runs elsewhere: some microseconds.
const ROUNDS: u32 = 100;

/// The lock without data, for [`lock_api`]. See the [module](super).
#[derive(Debug)]
pub struct RawHandlerLock(Owned);

/// A lock that threads share with signal handlers, which take it by `try_lock` and do without if that says no. See the
/// [module](super) for who may take which where, and what may be done inside.
pub type HandlerLock<T> = lock_api::Mutex<RawHandlerLock, T>;
/// A [`HandlerLock`], held.
pub type HandlerLockGuard<'a, T> = lock_api::MutexGuard<'a, RawHandlerLock, T>;

// SAFETY: the word has one holder at a time (`protocol::owned`, with a loom model).
unsafe impl lock_api::RawMutex for RawHandlerLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api wants it")]
    const INIT: RawHandlerLock = RawHandlerLock(Owned::new());
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        word::lock(&self.0, WHAT);
        GuardNoSend::new()
    }

    /// For handlers and threads: waits for a few microseconds at the most, and not at all where that might be for a
    /// holder that cannot go on meanwhile.
    fn try_lock(&self) -> Option<GuardNoSend> {
        // Else the code that runs, or that the running handler interrupted, may hold a lock of this level.
        if due::at_rest() {
            for round in 1..ROUNDS {
                if self.0.worth_an_attempt(word::me()) {
                    break;
                }
                pause(round);
            }
        }
        word::try_lock(&self.0).then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardNoSend) {
        word::unlock(&self.0, WHAT);
    }

    fn is_locked(&self) -> bool {
        self.0.is_held()
    }
}
