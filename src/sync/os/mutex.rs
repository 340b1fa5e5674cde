//! The mutex: lock_api's guards over the futex lock of three states.

use super::kernel::Linux;
use crate::protocol::futex_lock::FutexLock;
use crate::sys::clock::Deadline;
use lock_api::GuardNoSend;
use std::time::{Duration, Instant};

/// The lock without data, for [`lock_api`]: one word. See the [module](super).
#[derive(Debug)]
pub struct RawMutex(FutexLock);

/// A mutex for kernel threads. See the [module](super); it has no poisoning.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// A [`Mutex`], held.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

impl RawMutex {
    /// The words that a condvar knows.
    pub(super) fn words(&self) -> &FutexLock {
        &self.0
    }
}

// SAFETY: the three states exclude each other (`protocol::futex_lock`, with a loom model).
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api wants it")]
    const INIT: RawMutex = RawMutex(FutexLock::new());
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        self.0.lock(&Linux);
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.0.try_lock().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardNoSend) {
        self.0.unlock(&Linux);
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above; a lock that was not taken in time is not held.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.try_until(Deadline::after(timeout))
    }

    fn try_lock_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.try_until(Deadline::from_instant(timeout))
    }
}

impl RawMutex {
    /// `None`: later than time can tell.
    fn try_until(&self, until: Option<Deadline>) -> Option<GuardNoSend> {
        (self.0.try_lock() || self.0.lock_until(&Linux, until)).then(GuardNoSend::new)
    }
}
