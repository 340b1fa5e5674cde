//! The two clocks that deadlines are given by, read without a system call.

use std::time::{Duration, Instant, SystemTime};

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    /// Never set, stands still while the machine is suspended.
    Monotonic,
    /// Time of day; may be set.
    Realtime,
}

/// A point in time, in nanoseconds of its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deadline {
    pub clock: Clock,
    pub at: u64,
}

impl Clock {
    pub(crate) const ALL: [Clock; 2] = [Clock::Monotonic, Clock::Realtime];

    pub(crate) fn id(self) -> libc::clockid_t {
        match self {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::Realtime => libc::CLOCK_REALTIME,
        }
    }

    /// The time in nanoseconds (vDSO: no system call, no lock).
    #[inline]
    pub(crate) fn now(self) -> u64 {
        let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the result is a local.
        unsafe { libc::clock_gettime(self.id(), &mut ts) };
        (ts.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec as u64)
    }
}

impl Deadline {
    /// `wait` from now by the monotonic clock; `None` if that is beyond the end of time: wait for ever.
    pub(crate) fn after(wait: Duration) -> Option<Deadline> {
        let ns = u64::try_from(wait.as_nanos()).ok()?;
        // The kernel's times are signed.
        let at = Clock::Monotonic.now().checked_add(ns).filter(|at| *at <= i64::MAX as u64)?;
        Some(Deadline { clock: Clock::Monotonic, at })
    }

    /// The same moment as `instant`, which std gives no number for.
    pub(crate) fn from_instant(instant: Instant) -> Option<Deadline> {
        Deadline::after(instant.saturating_duration_since(Instant::now()))
    }

    /// A time of day.
    pub(crate) fn from_system_time(time: SystemTime) -> Option<Deadline> {
        let ns = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let at = u64::try_from(ns).ok().filter(|at| *at <= i64::MAX as u64)?;
        Some(Deadline { clock: Clock::Realtime, at })
    }

    /// The first of two by the same clock; `None` is for ever.
    pub(crate) fn first(a: Option<Deadline>, b: Option<Deadline>) -> Option<Deadline> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            _ => a.or(b),
        }
    }

    /// Whether it has passed.
    #[inline]
    pub(crate) fn is_over(self) -> bool {
        self.clock.now() >= self.at
    }

    pub(crate) fn timespec(self) -> libc::timespec {
        timespec(self.at)
    }
}

/// Nanoseconds as the kernel takes them.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
