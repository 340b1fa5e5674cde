//! Mutexes and condition variables of several makers behind one interface, for the cases of [`locks`](super::locks)
//! and the condition variables' ([`rings`](super::rings)).
//!
//! [`Ours`] on reveille threads; [`Pthread`], glibc's, and [`Std`] on kernel threads.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use super::system::{Nptl, Reveille, System};

/// A maker of mutexes over a counter, and of condition variables.
pub trait Kit: 'static {
    /// The name in the reports.
    const NAME: &'static str;
    /// Who runs the threads.
    type Threads: System;
    /// A mutex with a counter in it.
    type Mutex: Default + Sync + Send;
    /// A condition variable.
    type Condvar: Default + Sync + Send;
    /// The mutex, held.
    type Guard<'a>: DerefMut<Target = u64>;

    /// Takes the mutex.
    fn lock(mutex: &Self::Mutex) -> Self::Guard<'_>;
    /// Waits for a notification.
    fn wait<'a>(condvar: &Self::Condvar, guard: Self::Guard<'a>) -> Self::Guard<'a>;
    /// Notifies one.
    fn notify_one(condvar: &Self::Condvar);
    /// Notifies all.
    fn notify_all(condvar: &Self::Condvar);
}

/// A kit of types with std's names: `$sync` is where they are.
macro_rules! like_std {
    ($(#[$doc:meta])* $kit:ident, $name:expr, $threads:ty, $($sync:ident)::+) => {
        $(#[$doc])*
        pub struct $kit;

        impl Kit for $kit {
            const NAME: &'static str = $name;
            type Threads = $threads;
            type Mutex = $($sync)::+::Mutex<u64>;
            type Condvar = $($sync)::+::Condvar;
            type Guard<'a> = $($sync)::+::MutexGuard<'a, u64>;

            #[inline]
            fn lock(mutex: &Self::Mutex) -> Self::Guard<'_> {
                mutex.lock().expect("nobody panics")
            }

            #[inline]
            fn wait<'a>(condvar: &Self::Condvar, guard: Self::Guard<'a>) -> Self::Guard<'a> {
                condvar.wait(guard).expect("nobody panics")
            }

            #[inline]
            fn notify_one(condvar: &Self::Condvar) {
                condvar.notify_one();
            }

            #[inline]
            fn notify_all(condvar: &Self::Condvar) {
                condvar.notify_all();
            }
        }
    };
}

like_std!(
    /// This library's.
    Ours,
    crate::output::REVEILLE,
    Reveille,
    reveille::sync
);
like_std!(
    /// The standard library's, on kernel threads.
    Std,
    "std",
    Nptl,
    std::sync
);

/// glibc's, on kernel threads.
pub struct Pthread;

/// A pthread_mutex_t with a counter.
pub struct PthreadMutex(UnsafeCell<libc::pthread_mutex_t>, UnsafeCell<u64>);

/// A pthread_cond_t.
pub struct PthreadCond(UnsafeCell<libc::pthread_cond_t>);

/// The mutex, held.
pub struct PthreadGuard<'a>(&'a PthreadMutex);

// SAFETY: the mutex hands the counter to one thread at a time.
unsafe impl Sync for PthreadMutex {}
// SAFETY: it is moved only before it is used.
unsafe impl Send for PthreadMutex {}
// SAFETY: made for several threads.
unsafe impl Sync for PthreadCond {}
// SAFETY: as above.
unsafe impl Send for PthreadCond {}

impl Default for PthreadMutex {
    fn default() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), UnsafeCell::new(0))
    }
}

impl Default for PthreadCond {
    fn default() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER))
    }
}

impl Deref for PthreadGuard<'_> {
    type Target = u64;
    #[inline]
    fn deref(&self) -> &u64 {
        // SAFETY: the guard holds the mutex.
        unsafe { &*self.0.1.get() }
    }
}

impl DerefMut for PthreadGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut u64 {
        // SAFETY: the guard holds the mutex.
        unsafe { &mut *self.0.1.get() }
    }
}

impl Drop for PthreadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: held by this thread.
        unsafe { libc::pthread_mutex_unlock(self.0.0.get()) };
    }
}

impl Kit for Pthread {
    const NAME: &'static str = crate::output::NPTL;
    type Threads = Nptl;
    type Mutex = PthreadMutex;
    type Condvar = PthreadCond;
    type Guard<'a> = PthreadGuard<'a>;

    #[inline]
    fn lock(mutex: &Self::Mutex) -> Self::Guard<'_> {
        // SAFETY: a live mutex.
        unsafe { libc::pthread_mutex_lock(mutex.0.get()) };
        PthreadGuard(mutex)
    }

    #[inline]
    fn wait<'a>(condvar: &Self::Condvar, guard: Self::Guard<'a>) -> Self::Guard<'a> {
        // SAFETY: both are live, and the mutex is held.
        unsafe { libc::pthread_cond_wait(condvar.0.get(), guard.0.0.get()) };
        guard
    }

    #[inline]
    fn notify_one(condvar: &Self::Condvar) {
        // SAFETY: a live condition variable.
        unsafe { libc::pthread_cond_signal(condvar.0.get()) };
    }

    #[inline]
    fn notify_all(condvar: &Self::Condvar) {
        // SAFETY: a live condition variable.
        unsafe { libc::pthread_cond_broadcast(condvar.0.get()) };
    }
}
