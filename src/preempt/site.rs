//! What the handler knows of the worker that it interrupts: the first member of `worker::Worker`.

use super::alarm::Alarm;
use super::ticker::Ticker;
use crate::sys::signal::KernelSet;
use crate::tcb::Record;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

/// Who waits for a worker.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Waits {
    /// Somebody new: spawned, woken, or given way.
    pub fresh: bool,
    /// Somebody who used up a slice before.
    pub sliced: bool,
    /// Another worker sleeps.
    pub idle_worker: bool,
}

/// See the module's documentation. Touched only on the worker's kernel thread, except the ticker's
/// mode and the counters.
#[repr(C)]
pub(crate) struct Site {
    /// Who waits. Async-signal-safe.
    pub waits: fn(&Site) -> Waits,
    /// A tick came while sliced threads wait; whether it found a fresh thread. Async-signal-safe.
    pub turn: fn(&Site, bool),
    /// The running thread used this many us of a slice, and sliced threads wait: whether it lags behind them.
    /// Async-signal-safe.
    pub charge: fn(&Site, &Record, u32) -> bool,
    /// Wakes a sleeping worker. Async-signal-safe.
    pub wake_idle: fn(&Site),
    /// Switches to threads so far: tells whether a thread is still the one of the last tick.
    pub switches: Count,
    /// `switches` as the last tick left it.
    pub seen: Cell<u64>,
    /// The worker's processor time at the last tick in us; 0 if unknown.
    pub since: Cell<u64>,
    /// The context of the worker's loop, where a preempted thread's worker goes on.
    pub loop_record: Cell<*const Record>,
    /// The signal stack. On the way back from handlers too (sigreturn.S).
    pub signal_stack_lo: Cell<usize>,
    pub signal_stack_len: Cell<usize>,
    /// The signal mask of workers.
    pub usual_mask: Cell<KernelSet>,
    /// The tick's signal.
    pub signal: i32,
    pub ticker: Ticker,
    /// Rings for threads that wait with a deadline.
    pub alarm: Alarm,
    /// The alarm rang: the next choice begins with the sleepers, and the worker itself is woken if it sleeps:
    /// true. Async-signal-safe.
    pub rang: fn(&Site) -> bool,
    pub ticks: Count,
    pub preemptions: Count,
}

impl Site {
    /// Whether the address lies in the worker's signal stack.
    #[inline(always)]
    pub(crate) fn on_signal_stack(&self, address: usize) -> bool {
        address.wrapping_sub(self.signal_stack_lo.get()) < self.signal_stack_len.get()
    }
}

/// A counter with one writer and many readers.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// The one writer adds one.
    #[inline(always)]
    pub(crate) fn bump(&self) {
        self.add(1);
    }

    /// The one writer adds `n`.
    #[inline(always)]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// In a fork child.
    pub(crate) fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) const fn starting_at(n: u64) -> Count {
        Count(AtomicU64::new(n))
    }

    pub(crate) const fn new() -> Count {
        Count(AtomicU64::new(0))
    }
}
