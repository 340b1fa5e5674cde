//! `Once`: `protocol::once` with the lot as its queue.

use crate::lot::{self, Wait, WaitsFor};
use crate::protocol::once::{Claim, OnceWord, Stage};
use core::cell::Cell;
use core::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// Something that is done once, whoever comes first; see [`std::sync::Once`]. The others wait until it is done.
///
/// # Examples
/// ```
/// use reveille::sync::Once;
/// static START: Once = Once::new();
/// for _ in 0..3 {
///     reveille::thread::spawn(|| START.call_once(|| println!("once"))).join().unwrap();
/// }
/// assert!(START.is_completed());
/// ```
pub struct Once {
    word: OnceWord,
}

/// What [`Once::call_once_force`] tells its function.
///
/// # Examples
/// ```
/// let once = reveille::sync::Once::new();
/// once.call_once_force(|state| assert!(!state.is_poisoned()));
/// ```
#[derive(Debug)]
pub struct OnceState {
    poisoned: bool,
}

/// What has become of it, for those who own what is made once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Made {
    Not,
    Failed,
    Done,
}

impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}

impl OnceState {
    /// Whether an attempt before panicked.
    ///
    /// # Examples
    /// ```
    /// let once = reveille::sync::Once::new();
    /// let failing = || once.call_once(|| panic!("on purpose"));
    /// assert!(std::panic::catch_unwind(failing).is_err());
    /// once.call_once_force(|state| assert!(state.is_poisoned()));
    /// ```
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

impl Default for Once {
    fn default() -> Once {
        Once::new()
    }
}

impl Once {
    /// Not done yet.
    ///
    /// # Examples
    /// ```
    /// static ONCE: reveille::sync::Once = reveille::sync::Once::new();
    /// assert!(!ONCE.is_completed());
    /// ```
    pub const fn new() -> Once {
        Once { word: OnceWord::new() }
    }

    /// Done already.
    pub(super) const fn done() -> Once {
        Once { word: OnceWord::new_complete() }
    }

    /// Calls `f` if nobody has; waits if somebody does. When it returns, it has been done.
    ///
    /// A call from within `f` on the same `Once` waits for ever.
    ///
    /// # Panics
    /// If an attempt before panicked.
    ///
    /// # Examples
    /// ```
    /// let once = reveille::sync::Once::new();
    /// let mut n = 0;
    /// once.call_once(|| n += 1);
    /// once.call_once(|| n += 1);
    /// assert_eq!(n, 1);
    /// ```
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if !self.is_completed() {
            let mut f = Some(f);
            self.call(false, &mut |_| f.take().expect("called once")());
        }
    }

    /// As [`call_once`](Once::call_once); tries again if an attempt before panicked.
    ///
    /// # Examples
    /// ```
    /// let once = reveille::sync::Once::new();
    /// let failing = || once.call_once(|| panic!("on purpose"));
    /// assert!(std::panic::catch_unwind(failing).is_err());
    /// once.call_once_force(|_| {});
    /// assert!(once.is_completed());
    /// ```
    #[inline]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        if !self.is_completed() {
            let mut f = Some(f);
            self.call(true, &mut |state| f.take().expect("called once")(state));
        }
    }

    /// Whether it has been done. False while somebody is at it.
    ///
    /// # Examples
    /// ```
    /// let once = reveille::sync::Once::new();
    /// once.call_once(|| assert!(!once.is_completed()));
    /// assert!(once.is_completed());
    /// ```
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.word.is_complete()
    }

    /// Waits until it has been done, without doing it.
    ///
    /// # Panics
    /// If an attempt panicked.
    ///
    /// # Examples
    /// ```
    /// static READY: reveille::sync::Once = reveille::sync::Once::new();
    /// let waits = reveille::thread::spawn(|| READY.wait());
    /// READY.call_once(|| {});
    /// waits.join().unwrap();
    /// ```
    pub fn wait(&self) {
        self.wait_until_done(false);
    }

    /// As [`wait`](Once::wait); waits on if an attempt panicked.
    ///
    /// # Examples
    /// ```
    /// let once = reveille::sync::Once::new();
    /// once.call_once(|| {});
    /// once.wait_force();
    /// ```
    pub fn wait_force(&self) {
        self.wait_until_done(true);
    }

    fn wait_until_done(&self, force: bool) {
        while !self.is_completed() {
            if self.word.stage() == Stage::Poisoned && !force {
                poisoned();
            }
            self.park(|stage| match stage {
                Stage::Incomplete | Stage::Running => true,
                Stage::Poisoned => force,
                Stage::Complete => false,
            });
        }
    }

    fn park(&self, waits: impl Fn(Stage) -> bool) {
        let _why = lot::park(Wait::on(self.key(), WaitsFor::Once), || self.word.enter(waits));
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    #[cold]
    #[track_caller]
    fn call(&self, force: bool, f: &mut dyn FnMut(&OnceState)) {
        loop {
            match self.word.claim(force) {
                Claim::Mine { poisoned } => {
                    let attempt = Attempt { once: self, complete: Cell::new(false) };
                    f(&OnceState { poisoned });
                    attempt.complete.set(true);
                    return;
                }
                Claim::Not(Stage::Complete) => return,
                Claim::Not(Stage::Poisoned) => poisoned(),
                Claim::Not(_) => self.park(|stage| stage == Stage::Running),
            }
        }
    }

    /// What has become of it; nobody else can have it now.
    pub(super) fn made(&mut self) -> Made {
        match self.word.stage() {
            Stage::Complete => Made::Done,
            Stage::Poisoned => Made::Failed,
            // Nobody is at it, or there would be a reference.
            Stage::Incomplete | Stage::Running => Made::Not,
        }
    }

    /// As new.
    pub(super) fn reset(&mut self) {
        self.word.reset();
    }
}

/// Somebody is at it: when this goes, so does he, done or not.
struct Attempt<'a> {
    once: &'a Once,
    complete: Cell<bool>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let key = self.once.key();
        if self.once.word.finish(self.complete.get()) {
            lot::unpark_all(key, 0);
        }
    }
}

#[cold]
#[track_caller]
fn poisoned() -> ! {
    panic!("Once instance has previously been poisoned");
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}
