//! `Semaphore`: `protocol::semaphore` with the lot as its queue. std has none; this one follows POSIX' (a handler may
//! post), C++20's (times) and tokio's (many permits, guards, order).

use super::permit::SemaphorePermit;
use crate::lot::{self, Wait, WaitsFor};
use crate::protocol::semaphore::{Added, Entered, MOST, SemaphoreWord};
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;
use std::time::Instant;

/// A number of permits that threads take and give back; who finds too few waits.
///
/// Permits are given in the order in which they were asked for: nobody who waits is passed by one who came later, also
/// not by one who needs fewer. They belong to nobody: one thread may take them and another give them back.
///
/// # Signal handlers
/// [`release`](Semaphore::release), [`try_add_permits`](Semaphore::try_add_permits) and
/// [`try_acquire`](Semaphore::try_acquire) may be called from the program's signal handlers. If the handler has
/// interrupted the runtime itself, waiters are woken as soon as that is done.
///
/// # Examples
/// ```
/// use reveille::{sync::Semaphore, thread};
/// static SEATS: Semaphore = Semaphore::new(2);
/// thread::scope(|s| {
///     for _ in 0..10 {
///         s.spawn(|| {
///             let _seat = SEATS.acquire();
///             thread::yield_now(); // two at a time come here
///         });
///     }
/// });
/// assert_eq!(SEATS.available_permits(), 2);
/// ```
pub struct Semaphore {
    word: SemaphoreWord,
}

/// There would be more than [`Semaphore::MAX_PERMITS`].
///
/// # Examples
/// ```
/// use reveille::sync::Semaphore;
/// let full = Semaphore::new(Semaphore::MAX_PERMITS);
/// assert_eq!(full.try_add_permits(1).unwrap_err().to_string(), "too many permits of a semaphore");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("too many permits of a semaphore")]
#[non_exhaustive]
pub struct TooManyPermits;

impl Semaphore {
    /// The most permits that a semaphore can have.
    pub const MAX_PERMITS: usize = MOST;

    /// With so many permits.
    ///
    /// # Panics
    /// If there are more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    /// ```
    /// static SEMAPHORE: reveille::sync::Semaphore = reveille::sync::Semaphore::new(3);
    /// assert_eq!(SEMAPHORE.available_permits(), 3);
    /// ```
    pub const fn new(permits: usize) -> Semaphore {
        assert!(permits <= MOST, "too many permits of a semaphore");
        Semaphore { word: SemaphoreWord::new(permits) }
    }

    /// Permits that nobody has taken.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(reveille::sync::Semaphore::new(3).available_permits(), 3);
    /// ```
    pub fn available_permits(&self) -> usize {
        self.word.permits()
    }

    /// Takes a permit; waits for one.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(1);
    /// let permit = semaphore.acquire();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// drop(permit);
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    #[inline]
    pub fn acquire(&self) -> SemaphorePermit<'_> {
        self.acquire_many(1)
    }

    /// Takes `n` permits at once; waits for them.
    ///
    /// # Panics
    /// If `n` is more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS): that would be for ever.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(3);
    /// assert_eq!(semaphore.acquire_many(2).num_permits(), 2);
    /// ```
    #[inline]
    pub fn acquire_many(&self, n: usize) -> SemaphorePermit<'_> {
        check(n);
        if !self.word.try_take(n) {
            self.wait(n, None);
        }
        self.permit(n)
    }

    /// Takes a permit if there is one and nobody waits. Async-signal-safe.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(1);
    /// let permit = semaphore.try_acquire();
    /// assert!(permit.is_some() && semaphore.try_acquire().is_none());
    /// ```
    #[inline]
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if they are there and nobody waits.
    ///
    /// # Panics
    /// As [`acquire_many`](Semaphore::acquire_many).
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(3);
    /// assert!(semaphore.try_acquire_many(4).is_none());
    /// ```
    #[inline]
    pub fn try_acquire_many(&self, n: usize) -> Option<SemaphorePermit<'_>> {
        check(n);
        self.word.try_take(n).then(|| self.permit(n))
    }

    /// As [`acquire`](Semaphore::acquire), for at most `timeout`.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(0);
    /// assert!(semaphore.acquire_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn acquire_timeout(&self, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_timeout(1, timeout)
    }

    /// As [`acquire`](Semaphore::acquire), until `deadline` at the latest.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let semaphore = reveille::sync::Semaphore::new(1);
    /// assert!(semaphore.acquire_until(Instant::now() + Duration::from_millis(1)).is_some());
    /// ```
    pub fn acquire_until(&self, deadline: Instant) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_until(1, deadline)
    }

    /// As [`acquire_many`](Semaphore::acquire_many), for at most `timeout`.
    ///
    /// # Panics
    /// As [`acquire_many`](Semaphore::acquire_many).
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(1);
    /// assert!(semaphore.acquire_many_timeout(2, std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn acquire_many_timeout(&self, n: usize, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        check(n);
        let got = self.word.try_take(n) || self.wait(n, Deadline::after(timeout));
        got.then(|| self.permit(n))
    }

    /// As [`acquire_many`](Semaphore::acquire_many), until `deadline` at the latest.
    ///
    /// # Panics
    /// As [`acquire_many`](Semaphore::acquire_many).
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(2);
    /// assert!(semaphore.acquire_many_until(2, std::time::Instant::now()).is_some());
    /// ```
    pub fn acquire_many_until(&self, n: usize, deadline: Instant) -> Option<SemaphorePermit<'_>> {
        check(n);
        let got = self.word.try_take(n) || self.wait(n, Deadline::from_instant(deadline));
        got.then(|| self.permit(n))
    }

    /// Gives a permit back, or a new one. Async-signal-safe.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    /// ```
    /// use reveille::{sync::Semaphore, thread};
    /// static EVENT: Semaphore = Semaphore::new(0);
    /// let waits = thread::spawn(|| EVENT.acquire().forget());
    /// EVENT.release();
    /// waits.join().unwrap();
    /// assert_eq!(EVENT.available_permits(), 0);
    /// ```
    #[inline]
    pub fn release(&self) {
        self.add_permits(1);
    }

    /// Gives `n` permits back, or new ones. Async-signal-safe.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(0);
    /// semaphore.add_permits(3);
    /// assert_eq!(semaphore.available_permits(), 3);
    /// ```
    #[inline]
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        if self.try_add_permits(n).is_err() {
            too_many();
        }
    }

    /// Gives `n` permits back, or new ones. Async-signal-safe.
    ///
    /// # Errors
    /// If there would be more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS); then nothing has been done.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(0);
    /// assert!(semaphore.try_add_permits(usize::MAX).is_err());
    /// assert!(semaphore.try_add_permits(3).is_ok());
    /// ```
    #[inline]
    pub fn try_add_permits(&self, n: usize) -> Result<(), TooManyPermits> {
        let key = self.key();
        match self.word.add(n) {
            Added::Done => Ok(()),
            Added::Serve => {
                // Not through `self`: somebody may have got the permits already, and dropped the semaphore.
                lot::unpark_from_handler(key);
                Ok(())
            }
            Added::TooMany => Err(TooManyPermits),
        }
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(&self.word) as usize
    }

    #[inline(always)]
    fn permit(&self, permits: usize) -> SemaphorePermit<'_> {
        SemaphorePermit::of(self, permits)
    }

    /// Waits for `n` permits in the queue. False if the deadline passed.
    #[cold]
    #[inline(never)]
    fn wait(&self, n: usize, deadline: Option<Deadline>) -> bool {
        let wait = Wait { aux: n, ..Wait::on(self.key(), WaitsFor::Semaphore).until(deadline) };
        let take = || self.word.enter(n) == Entered::Taken;
        // Those behind may need fewer.
        let pass = || lot::serve(self.key(), |w| self.word.grant(w.aux), || self.word.settle());
        lot::wait_for_grant(wait, take, pass)
    }
}

#[inline(always)]
#[track_caller]
fn check(n: usize) {
    if n > MOST {
        too_many();
    }
}

#[cold]
#[track_caller]
fn too_many() -> ! {
    panic!("{TooManyPermits}");
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("permits", &self.available_permits())
            .finish_non_exhaustive()
    }
}
