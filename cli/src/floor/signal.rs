//! A signal handler that does nothing, delivered by a call or by a timer.
//!
//! It is the yardstick for a preemption: the kernel's share of a tick - interrupt, signal frame,
//! sigreturn - is all that an empty handler costs. It uses SIGURG, which nobody sends by accident
//! and the library does not use.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libc::{c_int, c_void, siginfo_t};
use nix::sys::signal::{
    SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction,
};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::gettid;

use super::work;

/// The signal of all measurements here.
const SIGNAL: Signal = Signal::SIGURG;

/// How often the counting handler ran.
static TICKS: AtomicU64 = AtomicU64::new(0);

/// A handler as SA_SIGINFO wants it.
type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

extern "C" fn empty(_: c_int, _: *mut siginfo_t, _: *mut c_void) {}

extern "C" fn counting(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    TICKS.fetch_add(1, Ordering::Relaxed);
}

/// Makes `handler` the process's handler for [`SIGNAL`].
fn install(handler: Handler) -> io::Result<()> {
    let flags = SaFlags::SA_SIGINFO | SaFlags::SA_RESTART;
    let action = SigAction::new(SigHandler::SigAction(handler), flags, SigSet::empty());
    // SAFETY: both handlers only touch an atomic, if anything, so they may interrupt any code.
    unsafe { sigaction(SIGNAL, &action) }?;
    Ok(())
}

/// One signal sent by the calling kernel thread to itself and handled by nothing: tgkill,
/// delivery, an empty SA_SIGINFO handler and its sigreturn, in ns.
///
/// # Errors
/// The kernel refuses the handler.
pub fn delivery(times: u32) -> io::Result<f64> {
    install(empty)?;
    let (process, thread) = (std::process::id(), gettid().as_raw());
    Ok(super::ns_each(times, || {
        // SAFETY: the signal goes to the calling thread, where `empty` is its handler.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGNAL as c_int) };
    }))
}

/// A running periodic timer whose every tick interrupts the kernel thread that started it with an
/// empty handler: what [`super::work`] is slowed down by before anybody switches anything. Stops
/// when dropped.
pub struct Twin {
    _timer: Timer,
}

impl Twin {
    /// Starts ticks every `interval` for the calling kernel thread.
    ///
    /// # Errors
    /// The kernel refuses the handler or the timer.
    pub fn start(interval: Duration) -> io::Result<Self> {
        Self::with(empty, ClockId::CLOCK_MONOTONIC, interval)
    }

    fn with(handler: Handler, clock: ClockId, interval: Duration) -> io::Result<Self> {
        install(handler)?;
        let mut timer = timer(clock)?;
        let interval = TimeSpec::from_duration(interval);
        timer.set(Expiration::Interval(interval), TimerSetTimeFlags::empty())?;
        Ok(Self { _timer: timer })
    }
}

/// A timer that signals the calling kernel thread, as a worker's does; not started yet.
fn timer(clock: ClockId) -> io::Result<Timer> {
    let notify =
        SigevNotify::SigevThreadId { signal: SIGNAL, thread_id: gettid().as_raw(), si_value: 0 };
    Ok(Timer::new(clock, SigEvent::new(notify))?)
}

/// Arming a one-shot timer that does not fire, in ns: the price of asking for a later tick.
///
/// # Errors
/// The kernel refuses the timer.
pub fn timer_settime(times: u32) -> io::Result<f64> {
    install(empty)?;
    let mut timer = timer(ClockId::CLOCK_MONOTONIC)?;
    let far = Expiration::OneShot(TimeSpec::from_duration(Duration::from_secs(3600)));
    let mut failed = None;
    let ns = super::ns_each(times, || {
        if let Err(error) = timer.set(far, TimerSetTimeFlags::empty()) {
            failed = Some(error);
        }
    });
    failed.map_or(Ok(ns), |error| Err(error.into()))
}

/// How often a periodic timer of `clock` ticks while the calling kernel thread computes for
/// `time`. Timers of CPU time are often coarser than what they are asked for.
///
/// # Errors
/// The kernel refuses the handler or the timer.
pub fn ticks(clock: ClockId, interval: Duration, time: Duration) -> io::Result<u64> {
    let before = TICKS.load(Ordering::Relaxed);
    let twin = Twin::with(counting, clock, interval)?;
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::black_box(work::mix(1_000, 1));
    }
    drop(twin);
    Ok(TICKS.load(Ordering::Relaxed) - before)
}

/// One tick of a timer with a handler that only counts, in ns: the time that a fixed amount of
/// work takes longer under ticks every 100 us, divided by their number. `None` if no tick came.
///
/// # Errors
/// The kernel refuses the handler or the timer.
pub fn tick(work: work::Amount) -> io::Result<Option<f64>> {
    let quiet = timed(|| work.run(1));
    let before = TICKS.load(Ordering::Relaxed);
    let twin = Twin::with(counting, ClockId::CLOCK_MONOTONIC, Duration::from_micros(100))?;
    let ticked = timed(|| work.run(2));
    drop(twin);
    let ticks = TICKS.load(Ordering::Relaxed) - before;
    if ticks == 0 {
        return Ok(None);
    }
    let quiet = quiet.min(timed(|| work.run(3)));
    let lost = ticked.saturating_sub(quiet);
    Ok(Some(lost.as_nanos() as f64 / ticks as f64))
}

/// How long `f` takes.
fn timed<T>(f: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(f());
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because all of it shares one signal and its handler.
    #[test]
    fn a_delivery_costs_more_than_a_system_call_and_the_twin_ticks() {
        assert!(delivery(2_000).unwrap() > super::super::getppid(2_000));

        let before = TICKS.load(Ordering::Relaxed);
        let twin =
            Twin::with(counting, ClockId::CLOCK_MONOTONIC, Duration::from_millis(1)).unwrap();
        let start = Instant::now();
        while TICKS.load(Ordering::Relaxed) < before + 3 {
            assert!(start.elapsed() < Duration::from_secs(10), "no ticks");
        }
        drop(twin);
    }
}
