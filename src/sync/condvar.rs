//! A condition variable: `std::sync::Condvar`, over [`raw::RawCondvar`](super::raw::RawCondvar).

use super::mutex::{MutexGuard, Raw};
use super::raw::RawCondvar;
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError};

/// Whether a wait with a time-out ended by it; see [`std::sync::WaitTimeoutResult`].
#[derive(Debug, PartialEq, Eq, Copy, Clone)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// The time was over before a notification came.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// A condition variable; see [`std::sync::Condvar`].
///
/// A notified waiter does not run before it has its mutex: while the notifier holds it, the waiter moves to the
/// mutex's queue. Notifying nobody is one load. There are no spurious wake-ups, but do not count on it. It may
/// be used with any number of mutexes.
///
/// # Examples
/// ```
/// use reveille::{sync::{Condvar, Mutex}, thread};
/// static READY: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
/// let t = thread::spawn(|| {
///     let mut ready = READY.0.lock().unwrap();
///     while !*ready {
///         ready = READY.1.wait(ready).unwrap();
///     }
/// });
/// *READY.0.lock().unwrap() = true;
/// READY.1.notify_one();
/// t.join().unwrap();
/// ```
#[derive(Default)]
pub struct Condvar(RawCondvar);

impl UnwindSafe for Condvar {}
impl RefUnwindSafe for Condvar {}

impl Condvar {
    /// One that nobody waits for.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar(RawCondvar::new())
    }

    /// Lets go of the mutex, waits for a notification, and takes the mutex again; see
    /// [`std::sync::Condvar::wait`].
    ///
    /// # Errors
    /// If the mutex is poisoned when it has been taken again.
    pub fn wait<'a, T: ?Sized, R: Raw>(
        &self,
        guard: MutexGuard<'a, T, R>,
    ) -> LockResult<MutexGuard<'a, T, R>> {
        self.wait_deadline(guard, None).map(|r| r.0).map_err(|e| PoisonError::new(e.into_inner().0))
    }

    /// Waits while `condition` says so; see [`std::sync::Condvar::wait_while`].
    ///
    /// # Errors
    /// As [`wait`](Condvar::wait).
    pub fn wait_while<'a, T: ?Sized, R: Raw>(
        &self,
        mut guard: MutexGuard<'a, T, R>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T, R>> {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// As [`wait`](Condvar::wait), for at most `dur`; see [`std::sync::Condvar::wait_timeout`].
    ///
    /// # Errors
    /// As [`wait`](Condvar::wait).
    pub fn wait_timeout<'a, T: ?Sized, R: Raw>(
        &self,
        guard: MutexGuard<'a, T, R>,
        dur: Duration,
    ) -> LockResult<(MutexGuard<'a, T, R>, WaitTimeoutResult)> {
        self.wait_deadline(guard, Deadline::after(dur))
    }

    /// As [`wait_while`](Condvar::wait_while), for at most `dur`; see
    /// [`std::sync::Condvar::wait_timeout_while`].
    ///
    /// # Errors
    /// As [`wait`](Condvar::wait).
    pub fn wait_timeout_while<'a, T: ?Sized, R: Raw>(
        &self,
        mut guard: MutexGuard<'a, T, R>,
        dur: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T, R>, WaitTimeoutResult)> {
        let deadline = Deadline::after(dur);
        loop {
            if !condition(&mut *guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            if deadline.is_some_and(Deadline::is_over) {
                return Ok((guard, WaitTimeoutResult(true)));
            }
            guard = self.wait_deadline(guard, deadline)?.0;
        }
    }

    fn wait_deadline<'a, T: ?Sized, R: Raw>(
        &self,
        guard: MutexGuard<'a, T, R>,
        deadline: Option<Deadline>,
    ) -> LockResult<(MutexGuard<'a, T, R>, WaitTimeoutResult)> {
        let notified = self.0.wait_deadline(guard.mutex.raw().as_plain(), guard.me, deadline);
        let poisoned = guard.mutex.is_poisoned();
        let result = (guard, WaitTimeoutResult(!notified));
        if poisoned { Err(PoisonError::new(result)) } else { Ok(result) }
    }

    /// Notifies one waiter, the oldest; see [`std::sync::Condvar::notify_one`].
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify();
    }

    /// Notifies all waiters; see [`std::sync::Condvar::notify_all`].
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_everybody();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
