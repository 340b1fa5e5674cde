//! `OnceLock`: a value that is written once.

use super::once::{Made, Once};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A value that is written once and read by all; see [`std::sync::OnceLock`].
///
/// # Examples
/// ```
/// use reveille::sync::OnceLock;
/// static NAME: OnceLock<String> = OnceLock::new();
/// let name = reveille::thread::spawn(|| NAME.get_or_init(|| "a".to_owned())).join().unwrap();
/// assert_eq!(name, NAME.get().unwrap());
/// ```
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<MaybeUninit<T>>,
    /// Dropping it drops a value.
    _owns: PhantomData<T>,
}

// SAFETY: the value is written once, by the one whom `once` chose, and shared after.
unsafe impl<T: Sync + Send> Sync for OnceLock<T> {}
// SAFETY: it owns the value.
unsafe impl<T: Send> Send for OnceLock<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}
impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Without a value.
    ///
    /// # Examples
    /// ```
    /// static EMPTY: reveille::sync::OnceLock<u32> = reveille::sync::OnceLock::new();
    /// assert!(EMPTY.get().is_none());
    /// ```
    pub const fn new() -> OnceLock<T> {
        OnceLock {
            once: Once::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            _owns: PhantomData,
        }
    }

    /// The value, if it has been written.
    ///
    /// # Examples
    /// ```
    /// let cell = reveille::sync::OnceLock::from(5);
    /// assert_eq!(cell.get(), Some(&5));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: written, and only shared since.
        self.once.is_completed().then(|| unsafe { self.written() })
    }

    /// The value, to be changed by the owner of the cell.
    ///
    /// # Examples
    /// ```
    /// let mut cell = reveille::sync::OnceLock::from(5);
    /// *cell.get_mut().unwrap() += 1;
    /// assert_eq!(cell.get(), Some(&6));
    /// ```
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: written, and the cell is the caller's alone.
        self.once.is_completed().then(|| unsafe { self.value.get_mut().assume_init_mut() })
    }

    /// Waits until somebody has written the value.
    ///
    /// # Examples
    /// ```
    /// static CELL: reveille::sync::OnceLock<u32> = reveille::sync::OnceLock::new();
    /// let waits = reveille::thread::spawn(|| *CELL.wait());
    /// CELL.set(5).unwrap();
    /// assert_eq!(waits.join().unwrap(), 5);
    /// ```
    pub fn wait(&self) -> &T {
        // An attempt that failed leaves the cell empty, for the next one.
        self.once.wait_force();
        // SAFETY: written, and only shared since.
        unsafe { self.written() }
    }

    /// Writes the value.
    ///
    /// # Errors
    /// With the value, if there is one already, also if somebody else was faster.
    ///
    /// # Examples
    /// ```
    /// let cell = reveille::sync::OnceLock::new();
    /// assert_eq!(cell.set(5), Ok(()));
    /// assert_eq!(cell.set(6), Err(6));
    /// ```
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("called once"));
        value.map_or(Ok(()), Err)
    }

    /// The value, which `f` makes if there is none. Only one such `f` runs at a time; if it panics the cell stays
    /// empty.
    ///
    /// # Examples
    /// ```
    /// let cell = reveille::sync::OnceLock::new();
    /// assert_eq!(cell.get_or_init(|| 5), &5);
    /// assert_eq!(cell.get_or_init(|| unreachable!()), &5);
    /// ```
    #[inline]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        if !self.once.is_completed() {
            self.init(f);
        }
        // SAFETY: written, and only shared since.
        unsafe { self.written() }
    }

    #[cold]
    fn init<F: FnOnce() -> T>(&self, f: F) {
        self.once.call_once_force(|_| {
            let value = f();
            // SAFETY: `once` lets one in at a time, and nobody reads before it is done.
            unsafe { (*self.value.get()).write(value) };
        });
    }

    /// The value; the cell is used up.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(reveille::sync::OnceLock::from(5).into_inner(), Some(5));
    /// ```
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// Takes the value out; the cell is as new.
    ///
    /// # Examples
    /// ```
    /// let mut cell = reveille::sync::OnceLock::from(5);
    /// assert_eq!((cell.take(), cell.take()), (Some(5), None));
    /// ```
    pub fn take(&mut self) -> Option<T> {
        let made = self.once.made();
        self.once.reset();
        // SAFETY: written, and forgotten in the line above.
        (made == Made::Done).then(|| unsafe { self.value.get_mut().assume_init_read() })
    }

    /// # Safety
    /// It has been written.
    #[inline]
    unsafe fn written(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { (*self.value.get()).assume_init_ref() }
    }
}

impl<T> Drop for OnceLock<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> OnceLock<T> {
        OnceLock {
            once: Once::done(),
            value: UnsafeCell::new(MaybeUninit::new(value)),
            _owns: PhantomData,
        }
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> OnceLock<T> {
        self.get().map_or_else(OnceLock::new, |value| OnceLock::from(value.clone()))
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &OnceLock<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_tuple("OnceLock");
        match self.get() {
            Some(value) => out.field(value),
            None => out.field(&format_args!("<uninit>")),
        };
        out.finish()
    }
}
