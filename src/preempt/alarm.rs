//! A worker's alarm: a timer on each clock that rings at the earliest deadline of its sleepers.
//!
//! What rings is the tick's signal, with the kind of the timer in its value. The handler makes a note
//! ([`Alarm::is_due`]) and takes the worker away from whoever runs, so that the sleeper goes first; if that
//! cannot be, now, it has the alarm ring again after [`AGAIN`]. An idle worker wakes up.
//!
//! Touched on the worker's kernel thread only, with preemption off or in the handler.

use crate::sys::clock::{Clock, Deadline};
use crate::sys::posix_timer::Timer;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering};
use nix::errno::Errno;

/// After what time the alarm rings again if the worker could not be taken away, in nanoseconds.
const AGAIN: u64 = 200_000;

/// Not armed.
const NEVER: u64 = u64::MAX;

/// See the module's documentation.
pub(crate) struct Alarm {
    timers: AtomicPtr<[Timer; 2]>,
    /// For each clock, when it rings next, at the latest.
    armed: [Cell<u64>; 2],
    /// It has rung, and nobody has looked at the sleepers since.
    due: Cell<bool>,
}

impl Alarm {
    pub(crate) fn new() -> Alarm {
        Alarm {
            timers: AtomicPtr::new(core::ptr::null_mut()),
            armed: [const { Cell::new(NEVER) }; 2],
            due: Cell::new(false),
        }
    }

    /// Creates the timers for the calling kernel thread; `value` is what the handler knows them by.
    pub(crate) fn start(&self, signal: i32, value: usize) -> Result<(), Errno> {
        let tid = crate::sys::gettid();
        let [mono, real] = Clock::ALL.map(|c| Timer::new(c.id(), signal, value, tid));
        let timers = Box::into_raw(Box::new([mono?, real?]));
        self.timers.store(timers, Ordering::Release);
        Ok(())
    }

    /// In a fork child: no timer was inherited, nobody sleeps.
    pub(crate) fn restart(&self, signal: i32, value: usize) {
        self.timers.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.armed.iter().for_each(|a| a.set(NEVER));
        self.due.set(false);
        let _ = self.start(signal, value);
    }

    /// The worker ends.
    pub(crate) fn stop(&self) {
        // SAFETY: null or a leaked allocation.
        if let Some(timers) = unsafe { self.timers.load(Ordering::Acquire).as_ref() } {
            timers.iter().for_each(Timer::disarm);
        }
        self.armed.iter().for_each(|a| a.set(NEVER));
    }

    /// Sees to it that it rings at `deadline`, or before.
    #[inline]
    pub(crate) fn ring_at(&self, deadline: Deadline) {
        let armed = &self.armed[deadline.clock as usize];
        if deadline.at < armed.get() {
            self.arm(deadline);
        }
    }

    #[cold]
    #[inline(never)]
    fn arm(&self, deadline: Deadline) {
        let armed = &self.armed[deadline.clock as usize];
        armed.set(deadline.at);
        // SAFETY: null or a leaked allocation.
        if let Some(timers) = unsafe { self.timers.load(Ordering::Acquire).as_ref() } {
            let mut at = deadline.at;
            loop {
                // Zero would disarm it.
                timers[deadline.clock as usize].set_at(at.max(1));
                // A handler came in between and armed it, earlier; the line above took that back.
                let now = armed.get();
                if now >= at {
                    break;
                }
                at = now;
            }
        }
    }

    /// The handler: it rang. (Which clock's timer it was does not matter.)
    pub(crate) fn rang(&self) {
        self.armed.iter().for_each(|a| a.set(NEVER));
        self.due.set(true);
    }

    /// The worker could not be taken away: again, soon. Async-signal-safe.
    pub(crate) fn again(&self) {
        self.due.set(true);
        self.ring_at(Deadline { clock: Clock::Monotonic, at: Clock::Monotonic.now() + AGAIN });
    }

    /// Whether the sleepers have to be looked at.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        self.due.get()
    }

    /// The caller looks at the sleepers now. True if that was due.
    #[inline(always)]
    pub(crate) fn take_due(&self) -> bool {
        self.due.get() && self.due.replace(false)
    }

    /// Some sleepers had to be left for the next time.
    pub(crate) fn set_due(&self) {
        self.due.set(true);
    }
}
