//! The lock for threads: preemption off by one flag.

use super::word;
use crate::protocol::owned::Owned;
use lock_api::GuardNoSend;

const WHAT: &str = "a ProcessLock";

/// The lock without data, for [`lock_api`]. See the [module](super).
#[derive(Debug)]
pub struct RawProcessLock(Owned);

/// A lock that threads share, held for a few instructions with preemption off. **Not for handlers.** See the
/// [module](super) for who may take which where, and what may be done inside.
pub type ProcessLock<T> = lock_api::Mutex<RawProcessLock, T>;
/// A [`ProcessLock`], held.
pub type ProcessLockGuard<'a, T> = lock_api::MutexGuard<'a, RawProcessLock, T>;

// SAFETY: the word has one holder at a time (`protocol::owned`, with a loom model).
unsafe impl lock_api::RawMutex for RawProcessLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api wants it")]
    const INIT: RawProcessLock = RawProcessLock(Owned::new());
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        word::lock(&self.0, WHAT);
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
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
