//! Plain kernel threads, where they take part: parking on a futex.

use crate::sys::futex;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const PARKED: u32 = 2;

/// The park token of a kernel thread, and its number among our thread ids.
#[derive(Debug)]
pub(crate) struct KernelThread {
    pub id: u64,
    pub name: Option<Arc<str>>,
    token: AtomicU32,
}

impl KernelThread {
    pub(crate) fn park(self: &Arc<KernelThread>) {
        if self.token.swap(EMPTY, Ordering::Acquire) == NOTIFIED {
            return;
        }
        let set = self.token.compare_exchange(EMPTY, PARKED, Ordering::AcqRel, Ordering::Acquire);
        if set.is_ok() {
            futex::wait(&self.token, PARKED);
        }
        self.token.swap(EMPTY, Ordering::Acquire);
    }

    pub(crate) fn unpark(&self) {
        if self.token.swap(NOTIFIED, Ordering::AcqRel) == PARKED {
            futex::wake(&self.token, 1);
        }
    }
}

/// Calls `f` with the calling kernel thread's entry.
pub(crate) fn current<R>(f: impl FnOnce(&Arc<KernelThread>) -> R) -> R {
    thread_local! {
        static ME: Arc<KernelThread> = Arc::new(KernelThread {
            id: next_id(),
            name: std::thread::current().name().map(Arc::from),
            token: AtomicU32::new(EMPTY),
        });
    }
    ME.with(f)
}

static NEXT_BLOCK: AtomicU64 = AtomicU64::new(1);

/// Ids that a worker takes at a time.
pub(crate) const ID_BLOCK: u64 = 1024;

/// A thread id from nobody's block.
pub(crate) fn next_id() -> u64 {
    NEXT_BLOCK.fetch_add(1, Ordering::Relaxed)
}

/// A block of ids for a worker: `[start, start + ID_BLOCK)`.
pub(crate) fn id_block() -> u64 {
    NEXT_BLOCK.fetch_add(ID_BLOCK, Ordering::Relaxed)
}
