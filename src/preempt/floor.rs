//! How short a slice may be: ticks that come faster than they can be served stop all progress.
//!
//! At the first start of a runtime a timer ticks for a moment at a high rate while this kernel thread
//! counts; the handler does nothing for it. What a tick costs is what the count falls behind by, and a
//! slice is never shorter than a few times that. In virtual machines a timer tick costs many times what
//! the signal does, so the signal alone would say too little.

use crate::sys::clock::Clock;
use crate::sys::posix_timer::Timer;
use crate::sys::signal;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// A slice lasts at least so many times as long as its tick costs: ticks get a third at the very most.
const TIMES: u32 = 3;
/// Never shorter than this, whatever was measured.
const LEAST: Duration = Duration::from_micros(30);
/// Never longer: a measurement that was disturbed must not make slices useless.
const MOST: Duration = Duration::from_micros(100);
/// How long each half of the measurement lasts.
const HALF: Duration = Duration::from_micros(500);
const PERIOD: Duration = Duration::from_micros(50);

static SHORTEST: AtomicU64 = AtomicU64::new(0);

/// The result; [`LEAST`] before there is one.
pub(crate) fn shortest_slice() -> Duration {
    Duration::from_nanos(SHORTEST.load(Ordering::Relaxed)).max(LEAST)
}

/// Measures, once in the life of the process. The handler for `signo` is installed.
pub(crate) fn measure(signo: i32) {
    if SHORTEST.load(Ordering::Relaxed) != 0 {
        return;
    }
    let old = signal::change_mask(libc::SIG_UNBLOCK, signal::set_of(signo));
    let cost = cost(signo).unwrap_or(MOST);
    signal::change_mask(libc::SIG_SETMASK, old);
    let slice = (cost * TIMES).clamp(LEAST, MOST);
    SHORTEST.store(slice.as_nanos() as u64, Ordering::Relaxed);
}

/// What one tick costs, if a timer can be had.
fn cost(signo: i32) -> Option<Duration> {
    // The value belongs to no worker: the handler lets the tick pass.
    let timer =
        Timer::new(libc::CLOCK_MONOTONIC, signo, super::handler::tagged(0), crate::sys::gettid())
            .ok()?;
    let alone = count();
    timer.set(PERIOD, PERIOD);
    let ticked = count();
    drop(timer);
    let lost = 1.0 - ticked as f64 / alone as f64;
    Some(PERIOD.mul_f64(lost.clamp(0.0, 1.0)))
}

/// Rounds of a small loop in one half.
fn count() -> u64 {
    let end = Clock::Monotonic.now() + HALF.as_nanos() as u64;
    let mut n = 0;
    while Clock::Monotonic.now() < end {
        n += 1;
    }
    n.max(1)
}
