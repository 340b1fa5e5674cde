//! The reader-writer lock without data: `protocol::rwlock` with the lot as its queue.

use crate::lot::{self, Wait, WaitsFor};
use crate::protocol::rwlock::{Access, Entered, Released, RwWord};
use crate::sys::clock::Deadline;
use crate::tcb::current;
use core::cell::Cell;
use core::time::Duration;
use lock_api::GuardNoSend;
use std::time::Instant;

/// Rounds that a kernel thread looks whether the lock is let go of before it sleeps: some microseconds.
const SPINS: u32 = 100;

/// A reader-writer lock of one word, for [`lock_api::RwLock`]. Fair: who waits is overtaken by nobody who came
/// later.
///
/// # Examples
/// ```
/// type Lock<T> = lock_api::RwLock<reveille::sync::raw::RawRwLock, T>;
/// static NUMBERS: Lock<Vec<u32>> = Lock::new(Vec::new());
/// let reads = NUMBERS.upgradable_read();
/// if reads.is_empty() {
///     lock_api::RwLockUpgradableReadGuard::upgrade(reads).push(1);
/// }
/// assert_eq!(*NUMBERS.read(), [1]);
/// ```
#[derive(Debug)]
pub struct RawRwLock {
    word: RwWord,
}

impl RawRwLock {
    pub(crate) const fn new() -> RawRwLock {
        RawRwLock { word: RwWord::new() }
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    #[inline(always)]
    fn take(&self, access: Access) {
        if !self.word.try_take(access) {
            self.wait(access, None);
        }
    }

    #[cold]
    #[inline(never)]
    fn contended(&self, access: Access) {
        self.take(access);
    }

    /// False if the deadline passed.
    #[inline]
    fn take_until(&self, access: Access, deadline: Option<Deadline>) -> bool {
        self.word.try_take(access) || self.wait(access, deadline)
    }

    fn take_for(&self, access: Access, timeout: Duration) -> bool {
        self.word.try_take(access) || self.wait(access, Deadline::after(timeout))
    }

    #[inline(always)]
    fn try_take(&self, access: Access) -> bool {
        self.word.try_take(access) || self.refuse(access)
    }

    #[cold]
    fn refuse(&self, access: Access) -> bool {
        if matches!(access, Access::Read | Access::Upgradable) {
            assert!(!self.word.is_full(), "too many readers of a RwLock");
        }
        false
    }

    /// Waits in the queue. False if the deadline passed.
    #[cold]
    #[inline(never)]
    fn wait(&self, access: Access, deadline: Option<Deadline>) -> bool {
        self.refuse(access);
        if current::get().is_none() && self.spin(access) {
            return true;
        }
        let wait = Wait {
            aux: access as usize,
            first: access == Access::Upgrade,
            ..Wait::on(self.key(), WaitsFor::RwLock).until(deadline)
        };
        let take = || self.word.enter(access) == Entered::Taken;
        lot::wait_for_grant(wait, take, || self.serve(true))
    }

    /// Waits a moment on the processor, while nobody else waits.
    fn spin(&self, access: Access) -> bool {
        for _ in 0..SPINS {
            if self.word.try_take(access) {
                return true;
            }
            if self.word.is_queued() {
                break;
            }
            core::hint::spin_loop();
        }
        false
    }

    /// Gives the lock to those who wait, oldest first, as far as it goes.
    ///
    /// Unless the caller keeps the lock's memory (`kept`), somebody else may have the lock by now, let go of it and
    /// free it. Only a waiter that is found keeps the word; without one there is nothing to be done, for the last
    /// that left settles it. (In a fork's child it may not exist.)
    #[cold]
    #[inline(never)]
    fn serve(&self, kept: bool) {
        let kept = Cell::new(kept || lot::forked());
        let grant = |w: &lot::Waiter| {
            kept.set(true);
            self.word.grant(Access::from_number(w.aux))
        };
        lot::serve(self.key(), grant, || {
            if kept.get() {
                self.word.settle();
            }
        });
    }

    #[inline(always)]
    fn after(&self, released: Released) {
        match released {
            Released::Done => {}
            Released::Serve => self.serve(false),
            Released::NotHeld => not_held(),
        }
    }

    /// A reader lets go.
    #[inline(always)]
    pub(crate) fn release_read(&self) {
        self.after(self.word.release_read());
    }

    /// The writer lets go.
    #[inline(always)]
    pub(crate) fn release_write(&self) {
        self.after(self.word.release_write());
    }

    /// Takes it as a reader.
    #[inline(always)]
    pub(crate) fn read(&self) {
        if !self.word.try_read() {
            self.contended(Access::Read);
        }
    }

    /// Takes it as the writer.
    #[inline(always)]
    pub(crate) fn write(&self) {
        if !self.word.try_write() {
            self.contended(Access::Write);
        }
    }

    #[inline(always)]
    pub(crate) fn try_read(&self) -> bool {
        self.try_take(Access::Read)
    }

    #[inline(always)]
    pub(crate) fn try_write(&self) -> bool {
        self.try_take(Access::Write)
    }

    /// The writer becomes a reader.
    pub(crate) fn downgrade_write(&self) {
        self.after(self.word.downgrade());
    }
}

#[cold]
fn not_held() -> ! {
    panic!("a RwLock was unlocked that was not held in this way");
}

const HELD: GuardNoSend = GuardNoSend::new();

// SAFETY: `RwWord::given` lets a writer in alone, and readers while there is none; `wait` returns true only with
// a grant or after `Entered::Taken`.
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawRwLock = RawRwLock::new();

    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    fn lock_shared(&self) -> GuardNoSend {
        self.read();
        HELD
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.try_read().then_some(HELD)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _: GuardNoSend) {
        self.release_read();
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardNoSend {
        self.write();
        HELD
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.try_write().then_some(HELD)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _: GuardNoSend) {
        self.release_write();
    }

    fn is_locked(&self) -> bool {
        self.word.is_held()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.word.is_written()
    }
}

// SAFETY: as above. Each unlock is fair: those who wait are served, and nobody passes them.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self, _: GuardNoSend) {
        self.release_read();
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, _: GuardNoSend) {
        self.release_write();
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, _: GuardNoSend) -> GuardNoSend {
        self.downgrade_write();
        HELD
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.take_for(Access::Read, timeout).then_some(HELD)
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.take_until(Access::Read, Deadline::from_instant(timeout)).then_some(HELD)
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.take_for(Access::Write, timeout).then_some(HELD)
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.take_until(Access::Write, Deadline::from_instant(timeout)).then_some(HELD)
    }
}

// SAFETY: as above; there is one upgradable reader, and it becomes the writer when no other reader is left.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = GuardNoSend;

    fn lock_upgradable(&self) -> GuardNoSend {
        self.take(Access::Upgradable);
        HELD
    }

    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        self.try_take(Access::Upgradable).then_some(HELD)
    }

    unsafe fn unlock_upgradable(&self, _: GuardNoSend) {
        self.after(self.word.release_upgradable());
    }

    unsafe fn upgrade(&self, _: GuardNoSend) -> GuardNoSend {
        self.take(Access::Upgrade);
        HELD
    }

    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        if self.try_take(Access::Upgrade) { Ok(HELD) } else { Err(guard) }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, _: GuardNoSend) -> GuardNoSend {
        self.after(self.word.downgrade_upgradable());
        HELD
    }

    unsafe fn downgrade_to_upgradable(&self, _: GuardNoSend) -> GuardNoSend {
        self.after(self.word.downgrade_to_upgradable());
        HELD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_api::RawRwLock as _;

    #[test]
    #[should_panic = "too many readers"]
    fn one_reader_too_many() {
        RawRwLock { word: RwWord::full() }.lock_shared();
    }

    #[test]
    #[should_panic = "too many readers"]
    fn one_reader_too_many_tries() {
        let _ = RawRwLock { word: RwWord::full() }.try_lock_shared();
    }
}
