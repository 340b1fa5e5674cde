//! Permits of a `Semaphore`, as a guard.

use super::Semaphore;
use core::fmt;
use core::mem;

/// Permits of a [`Semaphore`], given back when this is dropped.
///
/// # Examples
/// ```
/// let semaphore = reveille::sync::Semaphore::new(5);
/// let permits = semaphore.acquire_many(3);
/// assert_eq!((permits.num_permits(), semaphore.available_permits()), (3, 2));
/// ```
#[must_use = "the permits are given back when this is dropped"]
#[clippy::has_significant_drop]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl<'a> SemaphorePermit<'a> {
    /// Permits that have been taken.
    #[inline(always)]
    pub(super) fn of(semaphore: &'a Semaphore, permits: usize) -> SemaphorePermit<'a> {
        SemaphorePermit { semaphore, permits }
    }

    /// Keeps the permits from being given back.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(1);
    /// semaphore.acquire().forget();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// ```
    pub fn forget(self) {
        mem::forget(self);
    }

    /// How many there are.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(reveille::sync::Semaphore::new(1).acquire().num_permits(), 1);
    /// ```
    pub fn num_permits(&self) -> usize {
        self.permits
    }

    /// Takes `n` of them out; `None` if there are fewer.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(3);
    /// let mut three = semaphore.acquire_many(3);
    /// let two = three.split(2).unwrap();
    /// drop(three);
    /// assert_eq!((two.num_permits(), semaphore.available_permits()), (2, 1));
    /// ```
    pub fn split(&mut self, n: usize) -> Option<SemaphorePermit<'a>> {
        self.permits = self.permits.checked_sub(n)?;
        Some(SemaphorePermit::of(self.semaphore, n))
    }

    /// Puts those of `other` to these.
    ///
    /// # Panics
    /// If they are another semaphore's.
    ///
    /// # Examples
    /// ```
    /// let semaphore = reveille::sync::Semaphore::new(3);
    /// let mut permits = semaphore.acquire();
    /// permits.merge(semaphore.acquire_many(2));
    /// assert_eq!(permits.num_permits(), 3);
    /// ```
    #[track_caller]
    pub fn merge(&mut self, mut other: SemaphorePermit<'a>) {
        let same = core::ptr::eq(self.semaphore, other.semaphore);
        assert!(same, "permits of two semaphores cannot be merged");
        self.permits += mem::take(&mut other.permits);
    }
}

impl Drop for SemaphorePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.permits != 0 {
            self.semaphore.add_permits(self.permits);
        }
    }
}

impl fmt::Debug for SemaphorePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit").field("permits", &self.permits).finish_non_exhaustive()
    }
}
