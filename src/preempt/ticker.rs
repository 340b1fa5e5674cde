//! When ticks come. A tick in a virtual machine costs ten times what a preemption costs, so their number
//! is what matters: none while nobody waits, few among hogs, precise ones only while somebody new waits.
//!
//! ```text
//!              somebody waits                          nobody waits for two ticks
//!   OFF  ------------------------->  PRECISE  --------------------------------------> OFF
//!                                      |  ^
//!      only sliced threads wait for    |  |  somebody new arrives
//!      some ticks (adaptive)           v  |
//!                                     HOGS      ticks ride on the scheduler's own (CPU-time timer)
//!
//!      only cooperative threads seen   |  ^
//!      for some ticks (adaptive)       v  |  a thread used up a whole tick
//!                                     COOP      as HOGS, but arrivals do not change it
//! ```
//!
//! Two POSIX timers a worker: PRECISE is CLOCK_MONOTONIC at the time slice; the others are
//! CLOCK_THREAD_CPUTIME_ID, which the kernel serves from its own tick (4 ms where CONFIG_HZ is 250) at
//! next to no cost. It never hits a thread that sleeps in the kernel, so a rare precise tick backs it up.
//!
//! Protocol, so that no wait is forgotten:
//! 1. whoever makes a thread ready publishes it first, then calls [`Ticker::arrival`], which reads the mode
//! 2. the handler that goes to OFF or HOGS sets the timers first, then the mode (a full barrier), then
//!    looks at the queues again, and takes it back if somebody came
//!
//! Either the arrival sees the new mode and arms, or the handler sees the arrival.

use super::handler::{PRECISE_TICK, tagged};
use super::site::{Site, Waits};
use crate::sys::posix_timer::Timer;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use core::time::Duration;
use nix::errno::Errno;

/// Set in modes in which an arrival has to arm the precise timer.
const ARM: u8 = 1;
const OFF: u8 = 2 | ARM;
const HOGS: u8 = 4 | ARM;
const PRECISE: u8 = 8;
const COOP: u8 = 16;

/// Ticks in a row that make a worker change to a rarer kind of tick.
const HABIT: u32 = 4;
/// Ticks with nobody waiting before the timer is disarmed.
const ALONE: u32 = 2;
/// Period of the CPU-time timer; the kernel rounds it up to its own tick.
const RELAXED: Duration = Duration::from_millis(4);

/// In the relaxed modes the precise timer still ticks this often. CPU time does not pass while a worker
/// sleeps in the kernel, and what it sleeps for may be a lock of the C library that a preempted thread
/// holds: without this tick nobody would ever run that thread.
const BACKSTOP: Duration = Duration::from_millis(20);

/// See the module's documentation.
pub(crate) struct Ticker {
    mode: AtomicU8,
    slice: Duration,
    adaptive: bool,
    /// Made by the worker when it starts, and again in a fork child; never freed.
    timers: AtomicPtr<Timers>,
    /// Ticks in a row: with nobody waiting; with only sliced threads; on fresh threads.
    alone: Cell<u32>,
    hogs: Cell<u32>,
    coop: Cell<u32>,
    /// The CPU-time timer is armed; an arrival leaves it so, the next precise tick disarms it.
    relaxed_armed: Cell<bool>,
    /// CPU-time ticks since the last tick of the backstop.
    relaxed_ticks: Cell<u32>,
}

struct Timers {
    precise: Timer,
    relaxed: Timer,
}

impl Ticker {
    pub(crate) fn new(slice: Duration, adaptive: bool) -> Ticker {
        Ticker {
            mode: AtomicU8::new(OFF),
            slice,
            // A slice longer than the relaxed period has nothing to gain.
            adaptive: adaptive && slice < RELAXED,
            timers: AtomicPtr::new(core::ptr::null_mut()),
            alone: Cell::new(0),
            hogs: Cell::new(0),
            coop: Cell::new(0),
            relaxed_armed: Cell::new(false),
            relaxed_ticks: Cell::new(0),
        }
    }

    /// Creates the timers for the calling kernel thread.
    pub(crate) fn start(&self, signal: i32, value: usize) -> Result<(), Errno> {
        let tid = crate::sys::gettid();
        let precise = Timer::new(libc::CLOCK_MONOTONIC, signal, tagged(value | PRECISE_TICK), tid)?;
        let relaxed = Timer::new(libc::CLOCK_THREAD_CPUTIME_ID, signal, tagged(value), tid)?;
        let timers = Box::into_raw(Box::new(Timers { precise, relaxed }));
        self.timers.store(timers, Ordering::Release);
        Ok(())
    }

    /// In a fork child: no timer was inherited. Without new ones there are no ticks.
    pub(crate) fn restart(&self, signal: i32, value: usize) {
        self.timers.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.mode.store(OFF, Ordering::Relaxed);
        let _ = self.start(signal, value);
    }

    fn timers(&self) -> Option<&Timers> {
        // SAFETY: null or a leaked allocation.
        unsafe { self.timers.load(Ordering::Acquire).as_ref() }
    }

    /// Somebody new waits for this worker (already published). Any thread may call it.
    #[inline(always)]
    pub(crate) fn arrival(&self) {
        if self.mode.load(Ordering::Relaxed) & ARM != 0 {
            self.arm();
        }
    }

    /// Whether only threads that give way by themselves have been seen for a while.
    pub(crate) fn is_cooperative(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == COOP
    }

    /// How long a slice is now.
    pub(crate) fn length(&self) -> Duration {
        let relaxed = self.mode.load(Ordering::Relaxed) & (HOGS | COOP) & !ARM != 0;
        if relaxed { RELAXED } else { self.slice }
    }

    /// Whether the worker runs without ticks.
    pub(crate) fn is_off(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == OFF
    }

    #[cold]
    #[inline(never)]
    fn arm(&self) {
        let mode = self.mode.load(Ordering::Relaxed);
        if mode & ARM == 0 {
            return;
        }
        if self.mode.compare_exchange(mode, PRECISE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            && let Some(t) = self.timers()
        {
            t.precise.set(self.slice, self.slice);
        }
    }

    /// The worker goes to sleep: no ticks. Worker only, signal handler not running.
    pub(crate) fn idle(&self) {
        if self.mode.load(Ordering::Relaxed) != OFF {
            self.disarm();
            self.mode.store(OFF, Ordering::SeqCst);
        }
    }

    /// The worker ends: no tick comes any more.
    pub(crate) fn stop(&self) {
        if let Some(t) = self.timers() {
            t.precise.disarm();
            t.relaxed.disarm();
        }
    }

    fn disarm(&self) {
        if let Some(t) = self.timers() {
            // Also while OFF: an arrival that set the mode before `idle` took it back may have set the timer
            // after.
            t.precise.disarm();
            if self.relaxed_armed.replace(false) {
                t.relaxed.disarm();
            }
        }
    }

    /// Whether a tick of this kind counts. In the relaxed modes slices are cut by CPU time, and a tick of the
    /// backstop counts only if no CPU time has passed since the last one; in the precise mode a CPU-time tick
    /// is a left-over.
    #[inline]
    pub(crate) fn counts(&self, precise: bool) -> bool {
        let relaxed = self.mode.load(Ordering::Relaxed) & (HOGS | COOP) & !ARM != 0;
        if relaxed && !precise {
            self.relaxed_ticks.set(self.relaxed_ticks.get() + 1);
        }
        relaxed != precise || relaxed && self.relaxed_ticks.replace(0) == 0
    }

    /// The handler, at each tick: keeps the kind of ticks fitting. `fresh`: the running thread is not
    /// the one of the last tick.
    #[inline]
    pub(crate) fn on_tick(&self, site: &Site, waits: Waits, fresh: bool) {
        if !waits.fresh && !waits.sliced {
            self.alone.set(self.alone.get() + 1);
            if self.alone.get() >= ALONE {
                self.change(site, OFF);
            }
            return;
        }
        self.alone.set(0);
        if !self.adaptive {
            return;
        }
        let mode = self.mode.load(Ordering::Relaxed);
        if mode == PRECISE
            && self.relaxed_armed.get()
            && let Some(t) = self.timers()
        {
            self.relaxed_armed.set(false);
            t.relaxed.disarm();
        }
        match mode {
            PRECISE if fresh => {
                self.hogs.set(0);
                self.coop.set(self.coop.get() + 1);
                if self.coop.get() >= HABIT {
                    self.change(site, COOP);
                }
            }
            PRECISE => {
                self.coop.set(0);
                self.hogs.set(if waits.fresh { 0 } else { self.hogs.get() + 1 });
                if self.hogs.get() >= HABIT {
                    self.change(site, HOGS);
                }
            }
            COOP if !fresh => self.change(site, PRECISE),
            _ => {}
        }
    }

    /// Step 2 of the protocol.
    #[cold]
    #[inline(never)]
    fn change(&self, site: &Site, to: u8) {
        let Some(t) = self.timers() else { return };
        self.alone.set(0);
        self.hogs.set(0);
        self.coop.set(0);
        self.disarm();
        match to {
            PRECISE => t.precise.set(self.slice, self.slice),
            HOGS | COOP => {
                t.relaxed.set(RELAXED, RELAXED);
                self.relaxed_armed.set(true);
                t.precise.set(BACKSTOP, BACKSTOP);
            }
            _ => {}
        }
        self.mode.swap(to, Ordering::SeqCst);
        let now = (site.waits)(site);
        if to == OFF && (now.fresh || now.sliced) || to == HOGS && now.fresh {
            self.arm();
        }
    }
}
