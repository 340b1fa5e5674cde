//! Waiting for a thread's end and taking its value.

use super::handle::Thread;
use super::packet::take_result;
use crate::protocol::join::Detaching;
use crate::tcb::Record;
use crate::tcb::state::Outcome;
use crate::worker::{ops, start};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;

/// The payload that [`JoinHandle::join`] finds if glibc ended the thread, by pthread_exit(3) or
/// cancellation: there is no value then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exited;

/// Owns the right to wait for a thread; see [`std::thread::JoinHandle`]. Dropping it detaches the thread.
#[must_use = "the thread is detached if the handle is dropped"]
pub struct JoinHandle<T> {
    pub(crate) inner: Joining<T>,
}

/// WaitsFor plain and scoped handles have in common: one word.
pub(crate) struct Joining<T> {
    record: &'static Record,
    _value: PhantomData<T>,
}

// SAFETY: the handle gives its owner the thread's value, no more.
unsafe impl<T: Send> Send for Joining<T> {}
// SAFETY: a shared handle gives only what is atomic.
unsafe impl<T> Sync for Joining<T> {}

impl<T> Joining<T> {
    /// # Safety
    /// The caller has just spawned the thread with a result of type `T` and makes its only handle.
    #[inline(always)]
    pub(crate) unsafe fn new(record: &'static Record) -> Joining<T> {
        Joining { record, _value: PhantomData }
    }

    pub(crate) fn thread(&self) -> &Thread {
        // SAFETY: this is the thread's handle.
        Thread::from_identity(unsafe { self.record.identity() })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.record.join.is_done()
    }

    #[inline]
    pub(crate) fn join(self) -> super::Result<T> {
        let r = ManuallyDrop::new(self).record;
        ops::wait_for(r);
        if r.named.get() {
            start::drop_name(r);
        }
        // SAFETY: the thread has ended and this was its only handle.
        let result = unsafe {
            match r.outcome.replace(Outcome::Taken) {
                Outcome::Returned => Ok(take_result::<T>(r)),
                Outcome::Panicked => match (*r.payload.get()).take() {
                    Some(p) => Err(p),
                    None => Err(Box::new(Exited) as _),
                },
                _ => Err(Box::new(Exited) as _),
            }
        };
        ops::free_from_anywhere(r);
        result
    }

    /// Lets the thread run on by itself; a value that it has left already is dropped here. True if that
    /// was a panic.
    pub(crate) fn detach(&mut self) -> bool {
        let r = self.record;
        if r.join.detach() == Detaching::Detached {
            return false;
        }
        // It has ended, or is ending and has left the value to us.
        ops::wait_for(r);
        let panicked = r.outcome.get() == Outcome::Panicked;
        start::drop_name(r);
        start::drop_value(r);
        ops::free_from_anywhere(r);
        panicked
    }
}

impl<T> Drop for Joining<T> {
    fn drop(&mut self) {
        self.detach();
    }
}

impl<T> JoinHandle<T> {
    /// Waits for the thread to end and returns its value, or the payload of its panic.
    ///
    /// From a reveille thread the worker goes on with other threads meanwhile; a kernel thread sleeps.
    ///
    /// # Errors
    /// The payload that the thread panicked with, or [`Exited`].
    ///
    /// # Panics
    /// Aborts the process if called with preemption switched off.
    ///
    /// # Examples
    /// ```
    /// let t = reveille::thread::spawn(|| 1 + 1);
    /// assert_eq!(t.join().unwrap(), 2);
    /// let t = reveille::thread::spawn(|| panic!("no"));
    /// assert!(t.join().is_err());
    /// ```
    #[inline]
    pub fn join(self) -> super::Result<T> {
        self.inner.join()
    }

    /// Whether the thread has ended, so that [`join`](JoinHandle::join) would not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    /// The thread's handle.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.inner.thread()
    }
}

impl<T> core::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("JoinHandle").field("thread", self.thread()).finish_non_exhaustive()
    }
}
