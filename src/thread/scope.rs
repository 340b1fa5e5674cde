//! Threads that may borrow: all of them end before the scope does.

use super::builder::Builder;
use super::handle::{Thread, current};
use super::join::Joining;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A scope to spawn threads in; see [`std::thread::Scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    data: Data,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

#[derive(Debug)]
struct Data {
    running: AtomicUsize,
    panicked: AtomicBool,
    owner: Thread,
}

/// Owns the right to wait for a scoped thread; see [`std::thread::ScopedJoinHandle`].
pub struct ScopedJoinHandle<'scope, T> {
    inner: Option<Joining<T>>,
    panicked: *const AtomicBool,
    _scope: PhantomData<&'scope ()>,
}

// SAFETY: as `JoinHandle`; the flag outlives the scope's handles.
unsafe impl<T: Send> Send for ScopedJoinHandle<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for ScopedJoinHandle<'_, T> {}

/// Creates a scope whose threads may borrow from the caller; see [`std::thread::scope`].
///
/// # Panics
/// If a thread that nobody joined panicked.
///
/// # Examples
/// ```
/// let mut numbers = [1, 2, 3];
/// reveille::thread::scope(|s| {
///     for n in &mut numbers {
///         s.spawn(move || *n *= 2);
///     }
/// });
/// assert_eq!(numbers, [2, 4, 6]);
/// ```
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        data: Data {
            running: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            owner: current(),
        },
        scope: PhantomData,
        env: PhantomData,
    };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    while scope.data.running.load(Ordering::Acquire) != 0 {
        super::park();
    }
    match result {
        Err(payload) => resume_unwind(payload),
        Ok(_) if scope.data.panicked.load(Ordering::Relaxed) => {
            panic!("a scoped thread panicked")
        }
        Ok(value) => value,
    }
}

/// The last act of a scoped thread: its borrowed value is where it belongs.
///
/// # Safety
/// `data` is the scope's, which waits for this.
unsafe extern "C" fn one_less(data: *const (), unheard_panic: bool) {
    // SAFETY: the scope lives until `running` is zero; the handle is cloned before that.
    unsafe {
        let data = data.cast::<Data>();
        let owner = (*data).owner.clone();
        if unheard_panic {
            (*data).panicked.store(true, Ordering::Relaxed);
        }
        if (*data).running.fetch_sub(1, Ordering::AcqRel) == 1 {
            owner.unpark();
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a thread in the scope; see [`std::thread::Scope::spawn`].
    ///
    /// # Panics
    /// As [`spawn`](super::spawn()).
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Builder::new().spawn_scoped(self, f).expect("failed to spawn thread")
    }
}

impl Builder {
    /// Spawns the thread in a scope.
    ///
    /// # Errors
    /// As [`Builder::spawn`].
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let data = &scope.data;
        data.running.fetch_add(1, Ordering::Relaxed);
        let at_end: super::spawn::AtEnd = Some((one_less, core::ptr::from_ref(data).cast()));
        // SAFETY: the scope does not end before `one_less` has run at the thread's end.
        match unsafe { self.spawn_inner(at_end, f) } {
            Ok(inner) => Ok(ScopedJoinHandle {
                inner: Some(inner),
                panicked: &data.panicked,
                _scope: PhantomData,
            }),
            Err(e) => {
                data.running.fetch_sub(1, Ordering::Relaxed);
                Err(e)
            }
        }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread; see [`JoinHandle::join`](super::JoinHandle::join).
    ///
    /// # Errors
    /// As there.
    pub fn join(mut self) -> super::Result<T> {
        match self.inner.take() {
            Some(inner) => inner.join(),
            None => unreachable!("joined twice"),
        }
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.inner.as_ref().is_none_or(Joining::is_finished)
    }

    /// The thread's handle.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        match &self.inner {
            Some(inner) => inner.thread(),
            None => unreachable!("joined"),
        }
    }
}

impl<T> Drop for ScopedJoinHandle<'_, T> {
    fn drop(&mut self) {
        if let Some(mut inner) = self.inner.take() {
            let panicked = inner.detach();
            core::mem::forget(inner);
            if panicked {
                // SAFETY: the handle lives in the scope, whose flag this is.
                unsafe { (*self.panicked).store(true, Ordering::Relaxed) };
            }
        }
    }
}

impl<T> core::fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}
