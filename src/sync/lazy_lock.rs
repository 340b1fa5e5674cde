//! `LazyLock`: a value that is made when it is first needed.

use super::once::{Made, Once, OnceState};
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A value that is made when it is first needed; see [`std::sync::LazyLock`].
///
/// # Examples
/// ```
/// use reveille::sync::LazyLock;
/// static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| "a b c".split(' ').collect());
/// assert_eq!(reveille::thread::spawn(|| WORDS.len()).join().unwrap(), 3);
/// ```
pub struct LazyLock<T, F = fn() -> T> {
    once: Once,
    data: UnsafeCell<Data<T, F>>,
}

/// Before and after.
union Data<T, F> {
    value: ManuallyDrop<T>,
    make: ManuallyDrop<F>,
}

// SAFETY: the value is made once, by the one whom `once` chose, and shared after; the function is given to that one.
unsafe impl<T: Sync + Send, F: Send> Sync for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// A value that `f` will make.
    ///
    /// # Examples
    /// ```
    /// static FIVE: reveille::sync::LazyLock<u32> = reveille::sync::LazyLock::new(|| 5);
    /// assert_eq!(*FIVE, 5);
    /// ```
    pub const fn new(f: F) -> LazyLock<T, F> {
        let data = UnsafeCell::new(Data { make: ManuallyDrop::new(f) });
        LazyLock { once: Once::new(), data }
    }

    /// The value, made now if it has not been; whoever else needs it meanwhile waits.
    ///
    /// # Panics
    /// If making it panicked before.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::LazyLock;
    /// let lazy = LazyLock::new(|| 5);
    /// assert_eq!(LazyLock::force(&lazy), &5);
    /// ```
    #[inline]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        this.once.call_once_force(|state| this.make(state));
        // SAFETY: made, and only shared since.
        unsafe { &(*this.data.get()).value }
    }

    /// As [`force`](LazyLock::force), for the owner.
    ///
    /// # Panics
    /// If making it panicked before.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::LazyLock;
    /// let mut lazy = LazyLock::new(|| 5);
    /// *LazyLock::force_mut(&mut lazy) += 1;
    /// assert_eq!(*lazy, 6);
    /// ```
    pub fn force_mut(this: &mut LazyLock<T, F>) -> &mut T {
        LazyLock::force(this);
        // SAFETY: made, and the cell is the caller's alone.
        unsafe { &mut this.data.get_mut().value }
    }

    /// Called by the one who makes it.
    fn make(&self, state: &OnceState) {
        if state.is_poisoned() {
            poisoned();
        }
        // SAFETY: `once` lets one in at a time; not poisoned: the function is still there, and is taken out once.
        unsafe {
            let data = &mut *self.data.get();
            let value = ManuallyDrop::take(&mut data.make)();
            data.value = ManuallyDrop::new(value);
        }
    }
}

impl<T, F> LazyLock<T, F> {
    /// The value, if it has been made.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::LazyLock;
    /// let lazy = LazyLock::new(|| 5);
    /// assert_eq!(LazyLock::get(&lazy), None);
    /// let _five = *lazy;
    /// assert_eq!(LazyLock::get(&lazy), Some(&5));
    /// ```
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        // SAFETY: made, and only shared since.
        this.once.is_completed().then(|| unsafe { &*(*this.data.get()).value })
    }

    /// As [`get`](LazyLock::get), for the owner.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::LazyLock;
    /// let mut lazy = LazyLock::new(|| 5);
    /// assert!(LazyLock::get_mut(&mut lazy).is_none());
    /// ```
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        // SAFETY: made, and the cell is the caller's alone.
        this.once.is_completed().then(|| unsafe { &mut *this.data.get_mut().value })
    }
}

#[cold]
#[track_caller]
fn poisoned() -> ! {
    panic!("LazyLock instance has previously been poisoned");
}

impl<T, F> Drop for LazyLock<T, F> {
    fn drop(&mut self) {
        let made = self.once.made();
        let data = self.data.get_mut();
        // SAFETY: the word says which of the two is there; after a failure neither.
        unsafe {
            match made {
                Made::Not => ManuallyDrop::drop(&mut data.make),
                Made::Done => ManuallyDrop::drop(&mut data.value),
                Made::Failed => {}
            }
        }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        LazyLock::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> LazyLock<T> {
        LazyLock::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_tuple("LazyLock");
        match LazyLock::get(self) {
            Some(value) => out.field(value),
            None => out.field(&format_args!("<uninit>")),
        };
        out.finish()
    }
}
