//! Channels whose messages are moments: once, or again and again. Nobody sends; whoever receives looks at the
//! clock, and sleeps until the next message is due.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// There is no further message.
const OVER: u64 = u64::MAX;

/// See the module's documentation. `make` is the identity: only channels of moments have a timer.
#[derive(Debug)]
pub(super) struct Timer<T> {
    start: Instant,
    /// When the next message is due, in nanoseconds since the start.
    next: AtomicU64,
    /// From one to the next.
    period: Option<u64>,
    make: fn(Instant) -> T,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(OVER - 1).min(OVER - 1)
}

impl Timer<Instant> {
    /// One message, at `when`.
    pub(super) fn at(when: Instant) -> Timer<Instant> {
        // What is past is due, and its message is that moment all the same.
        let start = when.min(Instant::now());
        let next = AtomicU64::new(nanos(when.saturating_duration_since(start)));
        Timer { start, next, period: None, make: |when| when }
    }

    /// A message each `period`, the first after one.
    pub(super) fn each(period: Duration) -> Timer<Instant> {
        let ns = nanos(period);
        let next = AtomicU64::new(ns);
        Timer { start: Instant::now(), next, period: Some(ns), make: |when| when }
    }
}

impl<T> Timer<T> {
    /// The message, if one is due.
    pub(super) fn take(&self) -> Option<T> {
        loop {
            let next = self.next.load(Ordering::Acquire);
            if next == OVER {
                return None;
            }
            let now = nanos(self.start.elapsed());
            if now < next {
                return None;
            }
            let then = match self.period {
                // Messages that nobody came for in time are left out.
                Some(period) => now.max(next).saturating_add(period).min(OVER - 1),
                None => OVER,
            };
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            if self.next.compare_exchange(next, then, ok, failed).is_ok() {
                return Some((self.make)(self.start + Duration::from_nanos(next)));
            }
        }
    }

    /// When the next message is due; `None`: never.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.next.load(Ordering::Acquire) {
            OVER => None,
            next => self.start.checked_add(Duration::from_nanos(next)),
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.due().is_some_and(|due| due <= Instant::now())
    }
}
