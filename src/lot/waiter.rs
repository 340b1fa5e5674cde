//! Somebody who waits: a node on its own stack, which lives until it has been woken.

use super::park::Wait;
use super::queue::Links;
use crate::protocol::mutex::KERNEL;
use crate::protocol::waiting::WaitWord;
use crate::sched::heap::Node;
use crate::tcb::Record;
use crate::tls::hot;
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Why somebody who waited goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The check under the queue's lock said that there is nothing to wait for.
    Invalid,
    /// Somebody woke it, and passed this on.
    Unparked(usize),
    /// The deadline has passed.
    TimedOut,
    /// It thought better of it, once it stood in the queue.
    Left,
    /// Kicked out, for this reason.
    Kicked(u32),
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitsFor {
    /// A mutex.
    Mutex,
    /// A reader-writer lock.
    RwLock,
    /// A notification of a condition variable.
    Condvar,
    /// A permit of a semaphore.
    Semaphore,
    /// A message, or room for one.
    Channel,
    /// Somebody else's initialization.
    Once,
    /// Others at a barrier.
    Barrier,
    /// Its deadline.
    Sleep,
    /// To be unparked.
    Unpark,
    /// The end of another thread.
    Join,
    /// Anything else.
    Other,
}

/// See the module's documentation. `timer` is first: the heap knows only that part.
#[repr(C)]
pub(crate) struct Waiter {
    pub timer: Node,
    /// The worker whose heap the deadline is in; null: it has none, or it has been taken out.
    pub timed_by: Cell<*const ()>,
    /// The deadline passed before the waiter was in a queue.
    pub expired: Cell<bool>,
    pub links: Links,
    /// What it waits for; 0 while it stands in no queue. Written under the bucket's lock.
    pub key: AtomicUsize,
    /// A wake-up must have one of these.
    pub bits: u32,
    /// If it is a mutex, the word at the key names the owner (`sync::raw::mutex`).
    pub what: WaitsFor,
    /// For whoever finds it: a condition variable's waiter says which mutex it needs next.
    pub aux: usize,
    /// It was moved to another queue than it came for: it has been notified, and its deadline is no more.
    pub moved: Cell<bool>,
    /// It has a deadline.
    pub timed: bool,
    /// The thread as an owner of locks.
    pub owner: usize,
    pub word: WaitWord,
    /// Written by who takes it out of the queue.
    pub woken: Cell<Woken>,
    /// The thread; null: a kernel thread, which sleeps on the word.
    pub record: *const Record,
}

impl Waiter {
    pub(crate) fn new(wait: &Wait, record: *const Record) -> Waiter {
        Waiter {
            timer: Node::new(),
            timed_by: Cell::new(core::ptr::null()),
            expired: Cell::new(false),
            links: Links::new(),
            key: AtomicUsize::new(0),
            bits: wait.bits,
            what: wait.what,
            aux: wait.aux,
            moved: Cell::new(false),
            timed: wait.deadline.is_some(),
            owner: if record.is_null() { hot::fs_base() | KERNEL } else { record as usize },
            word: WaitWord::new(),
            woken: Cell::new(Woken::Invalid),
            record,
        }
    }

    /// The mutex that it waits for, for as long as it takes.
    pub(crate) fn mutex(&self) -> Option<usize> {
        let is = self.moved.get() || self.what == WaitsFor::Mutex && !self.timed;
        is.then(|| self.key())
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> usize {
        self.key.load(Ordering::Relaxed)
    }
}
