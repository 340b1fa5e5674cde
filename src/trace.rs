//! Recording the time slices of each worker, for pictures. Off unless asked for.
//!
//! The buffer is made before the worker starts; recording writes one entry, with preemption off, and
//! drops entries when the buffer is full. Reading swaps nothing and stops nobody: a reader takes the
//! entries that are complete.
#![allow(unsafe_code)]

use crate::sys::clock::Clock;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// One slice as the worker records it: times by the monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub thread: u64,
    pub start: u64,
    pub end: u64,
    pub after: u8,
}

/// A worker's buffer: one writer; readers take turns.
pub(crate) struct Trace {
    entries: Box<[UnsafeCell<Entry>]>,
    written: AtomicUsize,
    taken: AtomicUsize,
    /// Start of the running slice and its thread; the writer's own.
    open: UnsafeCell<(u64, u64)>,
}

// SAFETY: entries below `written` and not yet taken are read only; the one above is the writer's.
unsafe impl Sync for Trace {}

impl Trace {
    pub(crate) fn new(capacity: usize) -> Trace {
        Trace {
            entries: (0..capacity).map(|_| UnsafeCell::new(Entry::default())).collect(),
            written: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            open: UnsafeCell::new((0, 0)),
        }
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The worker switches from the slice it recorded the start of, if any, to `thread` (0: none).
    /// Writer only.
    pub(crate) fn switch(&self, after: u8, thread: u64) {
        let now = Clock::Monotonic.now();
        // SAFETY: the writer's own.
        let open = unsafe { &mut *self.open.get() };
        let (was, start) = core::mem::replace(open, (thread, now));
        if was == 0 {
            return;
        }
        let n = self.written.load(Ordering::Relaxed);
        if n - self.taken.load(Ordering::Acquire) >= self.entries.len() {
            return;
        }
        // SAFETY: this entry is not among those that readers may read.
        unsafe {
            *self.entries[n % self.entries.len()].get() =
                Entry { thread: was, start, end: now, after };
        }
        self.written.store(n + 1, Ordering::Release);
    }

    /// Hands every complete entry to `f` and makes room. Readers hold a lock among themselves.
    pub(crate) fn take(&self, mut f: impl FnMut(Entry)) {
        let (from, to) = (self.taken.load(Ordering::Relaxed), self.written.load(Ordering::Acquire));
        for n in from..to {
            // SAFETY: complete, and not written again before `taken` passes it.
            f(unsafe { *self.entries[n % self.entries.len()].get() });
        }
        self.taken.store(to, Ordering::Release);
    }
}
