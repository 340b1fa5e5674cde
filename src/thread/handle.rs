//! Handles of threads: identity, name, unpark.

use super::kernel::{self, KernelThread};
use crate::tcb::{Record, current as running};
use crate::worker::ops;
use core::fmt;
use core::num::NonZeroU64;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// A number that no other thread of the process has or had; see [`std::thread::ThreadId`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ThreadId(pub(crate) NonZeroU64);

impl ThreadId {
    pub(crate) fn from_raw(id: u64) -> ThreadId {
        ThreadId(NonZeroU64::new(id).unwrap_or(NonZeroU64::MIN))
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A handle to a thread, reveille's or the kernel's; see [`std::thread::Thread`].
#[derive(Clone)]
pub struct Thread(Inner);

#[derive(Clone)]
enum Inner {
    Reveille { record: &'static Record, id: ThreadId, name: Option<Arc<str>> },
    Kernel(Arc<KernelThread>),
}

// SAFETY: the record is used through its atomics only; it is never freed.
unsafe impl Send for Thread {}
// SAFETY: as above.
unsafe impl Sync for Thread {}

impl Thread {
    pub(crate) fn of(record: &'static Record, id: u64, name: Option<Arc<str>>) -> Thread {
        Thread(Inner::Reveille { record, id: ThreadId::from_raw(id), name })
    }

    /// The record, of a reveille thread.
    pub(crate) fn record(&self) -> Option<&'static Record> {
        match self.0 {
            Inner::Reveille { record, .. } => Some(record),
            Inner::Kernel(_) => None,
        }
    }

    /// The thread's number.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        match &self.0 {
            Inner::Reveille { id, .. } => *id,
            Inner::Kernel(k) => ThreadId::from_raw(k.id),
        }
    }

    /// The thread's name, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Inner::Reveille { name, .. } => name.as_deref(),
            Inner::Kernel(k) => k.name.as_deref(),
        }
    }

    /// Makes the thread's token available: it returns from [`park`](super::park), now or when it next
    /// calls it. Does nothing if the thread has ended.
    pub fn unpark(&self) {
        match &self.0 {
            // The slot may have gone to another thread: one that is woken for nothing at the worst, which
            // park allows.
            Inner::Reveille { record, id, .. } => {
                if record.id.load(Ordering::Acquire) == id.0.get() {
                    ops::unpark(record);
                }
            }
            Inner::Kernel(k) => k.unpark(),
        }
    }

    /// How often the thread has been preempted so far; 0 for kernel threads and ended ones.
    #[must_use]
    pub fn preemptions(&self) -> u64 {
        match &self.0 {
            Inner::Reveille { record, id, .. } => {
                let n = record.preemptions.load(Ordering::Relaxed);
                if record.id.load(Ordering::Acquire) == id.0.get() { n } else { 0 }
            }
            Inner::Kernel(_) => 0,
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("id", &self.id()).field("name", &self.name()).finish()
    }
}

/// A handle to the calling thread.
///
/// # Examples
/// ```
/// let t = reveille::thread::spawn(|| reveille::thread::current().id());
/// let id = t.thread().id();
/// assert_eq!(t.join().unwrap(), id);
/// ```
#[must_use]
pub fn current() -> Thread {
    match running::get() {
        Some(me) => {
            // SAFETY: the name is written before the thread starts and taken at its end.
            let name = unsafe { (*me.name.get()).clone() };
            Thread::of(me, me.id.load(Ordering::Relaxed), name)
        }
        None => kernel::current(|k| Thread(Inner::Kernel(Arc::clone(k)))),
    }
}
