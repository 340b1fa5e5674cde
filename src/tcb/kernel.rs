//! Plain kernel threads, where they take part: parking on a futex.

use crate::protocol::token::{Token, Unparking};
use crate::sys::clock::Deadline;
use crate::sys::futex;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The park token of a kernel thread, and its number among our thread ids.
#[derive(Debug)]
pub(crate) struct KernelThread {
    pub id: u64,
    pub name: Option<Arc<str>>,
    token: Token,
}

impl KernelThread {
    pub(crate) fn park_until(self: &Arc<KernelThread>, deadline: Option<Deadline>) {
        self.token.park_in_kernel(|word, expected| {
            futex::wait_until(word, expected, deadline);
        });
    }

    pub(crate) fn unpark(&self) {
        if self.token.unpark() != Unparking::Stored {
            futex::wake(self.token.word(), 1);
        }
    }
}

/// Calls `f` with the calling kernel thread's entry.
pub(crate) fn current<R>(f: impl FnOnce(&Arc<KernelThread>) -> R) -> R {
    thread_local! {
        static ME: Arc<KernelThread> = Arc::new(KernelThread {
            id: next_id(),
            name: std::thread::current().name().map(Arc::from),
            token: Token::default(),
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
