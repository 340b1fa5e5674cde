//! Sleeping, and parking for a limited time.

use crate::lot::{self, Wait, WaitsFor};
use crate::sys::clock::Deadline;
use crate::tcb::{current, kernel};
use crate::worker::ops;
use core::time::Duration;
use std::time::{Instant, SystemTime};

/// Sleeps for at least `dur`; see [`std::thread::sleep`]. In a reveille thread the worker runs others
/// meanwhile, and the sleeper goes before threads that only compute when its time has come.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let start = Instant::now();
/// reveille::thread::spawn(|| reveille::thread::sleep(Duration::from_millis(2))).join().unwrap();
/// assert!(start.elapsed() >= Duration::from_millis(2));
/// ```
pub fn sleep(dur: Duration) {
    if current::get().is_none() {
        return std::thread::sleep(dur);
    }
    if dur.is_zero() {
        return super::yield_now();
    }
    until(Deadline::after(dur));
}

/// Sleeps until `deadline` has passed; see `std::thread::sleep_until`.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let next = Instant::now() + Duration::from_millis(1);
/// reveille::thread::sleep_until(next);
/// assert!(Instant::now() >= next);
/// ```
pub fn sleep_until(deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    if current::get().is_none() {
        return std::thread::sleep(left);
    }
    if !left.is_zero() {
        until(Deadline::after(left));
    }
}

/// Sleeps until the clock of the system says `time` or more; if it is set meanwhile, that counts. std has only
/// [`sleep_until`], by a clock that is never set.
///
/// # Examples
/// ```
/// use std::time::{Duration, SystemTime};
/// let next = SystemTime::now() + Duration::from_millis(1);
/// reveille::thread::sleep_until_time(next);
/// assert!(SystemTime::now() >= next);
/// ```
pub fn sleep_until_time(time: SystemTime) {
    until(Deadline::from_system_time(time));
}

/// Waits for nothing but the deadline; `None`: for ever.
fn until(deadline: Option<Deadline>) {
    // Nobody else knows this address.
    let nobody = 0u64;
    let wait = Wait::on(&raw const nobody as usize, WaitsFor::Sleep).until(deadline);
    while deadline.is_none_or(|d| !d.is_over()) {
        let _why = lot::park(wait, || true);
    }
}

/// As [`park`](super::park()), for at most `dur`; see [`std::thread::park_timeout`].
///
/// # Examples
/// ```
/// use std::time::Duration;
/// // Nobody unparks: returns when the time is over, or early.
/// reveille::thread::park_timeout(Duration::from_millis(1));
/// ```
pub fn park_timeout(dur: Duration) {
    let deadline = Deadline::after(dur);
    match current::get() {
        Some(me) => ops::park_until(me, deadline),
        None => kernel::current(|k| k.park_until(deadline)),
    }
}
