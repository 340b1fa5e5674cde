//! The end of a thread and who waits for it: one word.
//!
//! ```text
//!  RUNNING --a thread joins--> its address --ends--> DONE, joiner made ready
//!          --a kernel thread joins--> KERNEL --ends--> DONE, futex wake
//!          --handle dropped--> DETACHED --ends--> DONE, slot freed by the end itself
//!          --ends, value to drop--> ENDING --(as RUNNING, but the handle cannot be dropped without waiting)
//! ```
//!
//! * There is one handle, so there is one joiner or one detach, never both, never two.
//! * DONE is the last transition and the last access of the side that ends: whoever sees it owns the record.
//! * Who drops a value is settled *before* the end, with preemption on, by [`JoinWord::settle`]: a detached
//!   thread its own; else whoever has the handle.
//! * A joiner enters its address only after it has left its stack, so the end may switch to it at once.
#![forbid(unsafe_code)]

use crate::prim::{AtomicUsize, Ordering};
use core::marker::PhantomData;

const RUNNING: usize = 0;
const DONE: usize = 1;
const DETACHED: usize = 2;
const KERNEL: usize = 3;
const ENDING: usize = 4;
/// Larger values are addresses.
const LAST: usize = ENDING;

/// See the module's documentation. `T` is a joiner. All zeroes is a thread that runs.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct JoinWord<T>(AtomicUsize, PhantomData<fn() -> *const T>);

/// What became of an attempt to wait.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// The end of the thread makes the joiner ready.
    Waits,
    /// The thread has ended: the caller makes the joiner ready.
    Done,
}

/// What became of a dropped handle.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detaching {
    /// The thread frees its slot, and drops its value, by itself.
    Detached,
    /// It has ended or is about to: the caller waits, drops the value and frees the slot.
    Ended,
}

/// Who drops the value of a thread that ends.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// Whoever has the handle.
    Handle,
    /// Nobody has: the thread itself, now.
    Own,
}

/// What is left to do at the very end of a thread.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended<T> {
    /// Nothing: somebody may come, or has, to look.
    Unclaimed,
    /// Free the slot.
    Detached,
    /// Wake the kernel thread that sleeps on the word.
    Kernel,
    /// Make this joiner ready.
    Joiner(*const T),
}

impl<T> Default for JoinWord<T> {
    fn default() -> JoinWord<T> {
        JoinWord(AtomicUsize::new(RUNNING), PhantomData)
    }
}

impl<T> JoinWord<T> {
    /// The word of a thread that nobody knows yet.
    #[inline(always)]
    pub(crate) fn reset(&self) {
        self.0.store(RUNNING, Ordering::Relaxed);
    }

    /// For dumps.
    pub(crate) fn raw(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether the thread has ended; then what it wrote is visible, and its record the handle's.
    #[must_use]
    #[inline(always)]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) == DONE
    }

    /// Enters a joiner that has left its stack. The caller holds the handle.
    #[inline]
    pub(crate) fn wait_as(&self, joiner: *const T) -> Waiting {
        let mut now = self.0.load(Ordering::Relaxed);
        while now == RUNNING || now == ENDING {
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange_weak(now, joiner.expose_provenance(), ok, failed) {
                Ok(_) => return Waiting::Waits,
                Err(other) => now = other,
            }
        }
        Waiting::Done
    }

    /// Waits on a kernel thread: `sleep` is a futex wait while the word's low half has the value given,
    /// and may return early. The caller holds the handle.
    pub(crate) fn wait_in_kernel(&self, mut sleep: impl FnMut(&AtomicUsize, u32)) {
        let mut now = self.0.load(Ordering::Acquire);
        while now != DONE {
            if now == KERNEL {
                sleep(&self.0, KERNEL as u32);
            } else {
                let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
                let _ = self.0.compare_exchange(now, KERNEL, ok, failed);
            }
            now = self.0.load(Ordering::Acquire);
        }
    }

    /// The handle is dropped.
    pub(crate) fn detach(&self) -> Detaching {
        let (ok, failed) = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(RUNNING, DETACHED, ok, failed) {
            Ok(_) => Detaching::Detached,
            Err(_) => Detaching::Ended,
        }
    }

    /// The thread is about to end and leaves something to be dropped.
    pub(crate) fn settle(&self) -> Value {
        let (ok, failed) = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(RUNNING, ENDING, ok, failed) {
            Err(DETACHED) => Value::Own,
            _ => Value::Handle,
        }
    }

    /// The joiner that rests already, when the thread ends: it may be switched to, and then
    /// [`JoinWord::end_for_joiner`] takes the place of [`JoinWord::end`].
    #[must_use]
    #[inline(always)]
    pub(crate) fn joiner(&self) -> Option<*const T> {
        let word = self.0.load(Ordering::Acquire);
        (word > LAST).then_some(core::ptr::with_exposed_provenance(word))
    }

    /// The thread has left its stack for its joiner, who runs this.
    #[inline(always)]
    pub(crate) fn end_for_joiner(&self) {
        self.0.store(DONE, Ordering::Release);
    }

    /// The thread has ended and left its stack. Its record may be gone when this returns.
    #[inline]
    pub(crate) fn end(&self) -> Ended<T> {
        match self.0.swap(DONE, Ordering::AcqRel) {
            RUNNING | ENDING | DONE => Ended::Unclaimed,
            DETACHED => Ended::Detached,
            KERNEL => Ended::Kernel,
            address => Ended::Joiner(core::ptr::with_exposed_provenance(address)),
        }
    }

    /// The word that [`JoinWord::wait_in_kernel`] sleeps on, for the wake.
    pub(crate) fn word(&self) -> &AtomicUsize {
        &self.0
    }
}
