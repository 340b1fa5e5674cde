//! Handles of threads: identity, name, unpark.

use crate::tcb::identity::Identity;
use crate::tcb::{current as running, kernel};
use crate::worker::ops;
use core::fmt;
use core::num::NonZeroU64;
use core::sync::atomic::Ordering;

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
#[repr(transparent)]
pub struct Thread(Identity);

impl Thread {
    pub(crate) fn from_identity(identity: &Identity) -> &Thread {
        // SAFETY: Thread is a transparent wrapper.
        unsafe { &*core::ptr::from_ref(identity).cast::<Thread>() }
    }

    /// The thread's number.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        ThreadId::from_raw(self.0.id())
    }

    /// The thread's name, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.name()
    }

    /// Makes the thread's token available: it returns from [`park`](super::park), now or when it next
    /// calls it. Does nothing if the thread has ended.
    pub fn unpark(&self) {
        match &self.0 {
            // The slot may have gone to another thread: one that is woken for nothing at the worst, which
            // park allows.
            Identity::Reveille { record, id, .. } => {
                if record.id.load(Ordering::Acquire) == *id {
                    ops::unpark(record);
                }
            }
            Identity::Kernel(k) => k.unpark(),
        }
    }

    /// The record of a reveille thread that has not ended; stale at once.
    pub(crate) fn record(&self) -> Option<&'static crate::tcb::Record> {
        match &self.0 {
            Identity::Reveille { record, id, .. } => {
                (record.id.load(Ordering::Acquire) == *id).then_some(*record)
            }
            Identity::Kernel(_) => None,
        }
    }

    /// How often the thread has been preempted so far; 0 for kernel threads and ended ones.
    #[must_use]
    pub fn preemptions(&self) -> u64 {
        match &self.0 {
            Identity::Reveille { record, id, .. } => {
                let n = record.preemptions.load(Ordering::Relaxed);
                if record.id.load(Ordering::Acquire) == *id { n } else { 0 }
            }
            Identity::Kernel(_) => 0,
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
        // SAFETY: the running thread's own.
        Some(me) => Thread(unsafe { me.identity() }.clone()),
        None => kernel::current(|k| Thread(Identity::Kernel(k.clone()))),
    }
}
