//! Mutexes over `protocol::mutex` and the lot.

use super::owner::{self, Held};
use crate::lot::{self, Found, Wait, WaitsFor, Woken};
use crate::protocol::mutex::{MutexWord, Taking, Unlocked};
use crate::sys::clock::Deadline;
use core::time::Duration;
use std::time::Instant;

/// Passed on with a wake-up: the mutex is the waiter's; or the waiter is coming for it.
pub(crate) const HANDED: usize = 1;
pub(crate) const COMING: usize = 2;

/// Rounds of looking at a mutex whose owner runs elsewhere, before queueing.
const SPINS: u32 = 40;

/// How a thread locks.
struct How {
    deadline: Option<Deadline>,
    /// It has been woken for it.
    coming: bool,
    /// Panics if it would wait for ever.
    check: bool,
}

/// A mutex of one word. Waiters are served in the order in which they came, but whoever lets go may take it
/// again while the one who comes next is on its way, a bounded number of times: `PASS` of
/// `protocol::mutex`, 32.
///
/// # Panics
/// [`lock_api::RawMutex::lock`] panics if the thread holds the mutex already, and, with invariant checks on,
/// if it waits for a thread that waits for it.
pub type RawMutex = RawMutexOf<false>;

/// As [`RawMutex`], with strict hand-over: an unlock gives it to the oldest waiter. Slower, as each of those is a
/// switch.
pub type RawFairMutex = RawMutexOf<true>;

/// See [`RawMutex`] and [`RawFairMutex`].
#[derive(Debug)]
#[repr(transparent)]
pub struct RawMutexOf<const FAIR: bool>(MutexWord);

impl<const FAIR: bool> RawMutexOf<FAIR> {
    /// A free one.
    pub(crate) const fn new() -> Self {
        RawMutexOf(MutexWord::new())
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// As the usual kind: the word is the same.
    #[inline(always)]
    pub(crate) fn plain(&self) -> &RawMutex {
        // SAFETY: both are transparent wrappers of the word.
        unsafe { &*core::ptr::from_ref(self).cast::<RawMutex>() }
    }

    pub(crate) fn word(&self) -> &MutexWord {
        &self.0
    }

    /// Takes it; false if the deadline passed before.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: usize, how: How) -> bool {
        let mut coming = how.coming;
        let mut spins = 0;
        loop {
            let owner = match self.0.try_take(me, coming) {
                Taking::Taken => return true,
                // The one for whom it is kept was left behind by a fork.
                Taking::Owned(0) if !coming && lot::forked() => {
                    coming = true;
                    continue;
                }
                Taking::Owned(owner) => owner,
            };
            if spins < SPINS && (coming || !self.0.has_waiters()) && owner::runs_elsewhere(owner) {
                spins += 1;
                // Seldom enough that the owner does not lose the cache line at each of its steps.
                (0..spins).for_each(|_| core::hint::spin_loop());
                continue;
            }
            if how.check && owner == me {
                super::deadlock::report_own(self.key(), me);
            }
            let (woken, entered) = self.wait(me, coming, &how);
            match woken {
                Woken::Unparked(HANDED) => return true,
                Woken::Unparked(COMING) => coming = true,
                // The deadline was over before it entered the lot again.
                Woken::TimedOut if coming && !entered => return self.0.give_up(me),
                Woken::TimedOut => return false,
                Woken::Invalid => continue,
                Woken::Unparked(_) | Woken::Kicked(_) | Woken::Left => coming = false,
            }
            spins = 0;
        }
    }

    /// Waits in the lot. Why it goes on, and whether it entered at all.
    fn wait(&self, me: usize, coming: bool, how: &How) -> (Woken, bool) {
        let wait =
            Wait { first: coming, ..Wait::on(self.key(), WaitsFor::Mutex).until(how.deadline) };
        let mut entered = false;
        let enter = || {
            entered = self.0.enter(coming);
            entered
        };
        if !how.check {
            return (lot::park(wait, enter), entered);
        }
        // Looked for once others can see that this one waits: of those that close a circle at the same time, at least
        // one sees it.
        let mut circle = None;
        let woken = lot::park_after(wait, enter, || {
            circle = super::deadlock::find(self.plain(), me);
            circle.is_none()
        });
        if let (Woken::Left, Some(circle)) = (woken, circle) {
            circle.report();
        }
        (woken, entered)
    }

    /// Takes it, waiting until the deadline at the latest, which is asked for if need be.
    fn try_until(&self, deadline: impl FnOnce() -> Option<Deadline>) -> Option<Held> {
        let me = owner::me();
        let slow = || How { deadline: deadline(), coming: false, check: false };
        (self.0.try_fast(me) || self.lock_slow(me, slow())).then(|| Held::by(me))
    }

    /// Takes it, whatever happens: a guard that exists depends on it. `coming`: the caller has been woken for
    /// it.
    #[inline]
    pub(crate) fn lock_again(&self, me: usize, coming: bool) {
        if coming || !self.0.try_fast(me) {
            self.lock_slow(me, How { deadline: None, coming, check: false });
        }
    }

    /// Lets go; `hand_over` to the oldest waiter, if there is one.
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self, me: usize, hand_over: bool, may_give_way: bool) {
        match self.0.unlock(me, hand_over) {
            Unlocked::Done => {}
            Unlocked::GiveWay => {
                if may_give_way && crate::tls::hot::off_count() == 0 {
                    crate::worker::ops::yield_now();
                }
            }
            Unlocked::Wake => {
                lot::unpark_one(self.key(), !0, |Found { waiter, more }| {
                    self.0.wake_one(waiter.is_some(), more);
                    COMING
                });
            }
            Unlocked::HandOver => {
                lot::unpark_one(self.key(), !0, |Found { waiter, more }| {
                    self.0.pass_to(waiter.map_or(0, |w| w.owner), more);
                    HANDED
                });
            }
            Unlocked::NotHeld => panic!("a mutex was unlocked by a thread that does not hold it"),
        }
    }

    /// Lets go, since the caller is about to wait for something else: to the oldest waiter, if there is one.
    #[inline]
    pub(crate) fn unlock_to_wait(&self, me: usize) {
        if !self.0.unlock_fast(me) {
            self.unlock_slow(me, true, false);
        }
    }
}

// SAFETY: the word has one owner at a time; Held is neither Send nor Sync.
unsafe impl<const FAIR: bool> lock_api::RawMutex for RawMutexOf<FAIR> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = RawMutexOf::new();

    type Guard = Held;

    #[inline]
    fn lock(&self) -> Held {
        let me = owner::me();
        if !self.0.try_fast(me) {
            self.lock_slow(me, How { deadline: None, coming: false, check: true });
        }
        Held::by(me)
    }

    #[inline]
    fn try_lock(&self) -> Option<Held> {
        let me = owner::me();
        let taken = self.0.try_fast(me) || self.0.try_take(me, false) == Taking::Taken;
        taken.then(|| Held::by(me))
    }

    #[inline]
    unsafe fn unlock(&self, held: Held) {
        if !self.0.unlock_fast(held.me) {
            self.unlock_slow(held.me, FAIR, true);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.owner() != 0
    }
}

// SAFETY: as above; the oldest waiter becomes the owner.
unsafe impl<const FAIR: bool> lock_api::RawMutexFair for RawMutexOf<FAIR> {
    #[inline]
    unsafe fn unlock_fair(&self, held: Held) {
        if !self.0.unlock_fast(held.me) {
            self.unlock_slow(held.me, true, true);
        }
    }

    #[inline]
    unsafe fn bump(&self, held: &mut Held) {
        if self.0.has_waiters() {
            self.unlock_slow(held.me, true, true);
            self.lock_again(held.me, false);
        }
    }
}

// SAFETY: as above.
unsafe impl<const FAIR: bool> lock_api::RawMutexTimed for RawMutexOf<FAIR> {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<Held> {
        self.try_until(|| Deadline::after(timeout))
    }

    fn try_lock_until(&self, timeout: Instant) -> Option<Held> {
        self.try_until(|| Deadline::from_instant(timeout))
    }
}
