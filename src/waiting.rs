//! Who waits for what: for reports of threads that wait for each other.
#![allow(unsafe_code)]

use crate::lot;
pub use crate::lot::WaitsFor;
use crate::slot::slab;
use crate::sync::raw::{RawMutex, owner};
use crate::tcb::Record;
use crate::tcb::state::{After, State};
use crate::thread::ThreadId;
use crate::worker::Shared;
use core::fmt;
use core::sync::atomic::Ordering;

/// A thread that waits; see [`Runtime::waiting`](crate::Runtime::waiting).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Waiting {
    /// The thread.
    pub thread: ThreadId,
    /// Its name, if it has one and waits for something with an address.
    pub name: Option<String>,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The address of that.
    pub address: usize,
    /// The thread that it waits for: the owner of the mutex, or the one to be joined. `None` if nobody knows, or if
    /// it is a kernel thread.
    pub holder: Option<ThreadId>,
    /// Whether it waits for a limited time.
    pub timed: bool,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}", self.thread)?;
        if let Some(name) = &self.name {
            write!(f, " '{name}'")?;
        }
        let what = match self.waits_for {
            WaitsFor::Mutex => "the mutex",
            WaitsFor::RwLock => "the reader-writer lock",
            WaitsFor::Condvar => "the condition variable",
            WaitsFor::Semaphore => "the semaphore",
            WaitsFor::Channel => "the channel",
            WaitsFor::Once => "the initialization",
            WaitsFor::Barrier => "the barrier",
            WaitsFor::Sleep => return f.write_str(" sleeps"),
            WaitsFor::Unpark => return f.write_str(" is parked"),
            WaitsFor::Join => {
                f.write_str(" waits for the end of")?;
                return match self.holder {
                    Some(t) => write!(f, " thread {t}"),
                    None => f.write_str(" a thread"),
                };
            }
            WaitsFor::Other => "something",
        };
        write!(f, " waits for {what} at {:#x}", self.address)?;
        if let Some(t) = self.holder {
            write!(f, ", held by thread {t}")?;
        }
        if self.timed { f.write_str(", for a limited time") } else { Ok(()) }
    }
}

/// The threads of `shared` that wait. What one waits for is looked at while it cannot go on, but they are looked at
/// one after the other.
pub(crate) fn of(shared: &Shared) -> Vec<Waiting> {
    let mut all = Vec::new();
    slab::each_record(|r| {
        let blocked = r.state.load(Ordering::Relaxed) == State::Blocked as u8;
        if blocked && core::ptr::eq(r.runtime.get().cast(), shared) {
            all.extend(one(r));
        }
    });
    all
}

fn one(r: &'static Record) -> Option<Waiting> {
    let id = r.id.load(Ordering::Acquire);
    if id == 0 {
        return None;
    }
    let mut waiting = Waiting {
        thread: ThreadId::from_raw(id),
        name: None,
        waits_for: WaitsFor::Unpark,
        address: 0,
        holder: None,
        timed: false,
    };
    if let Some(seen) = lot::look(r) {
        waiting.name = seen.name();
        waiting.waits_for = seen.what;
        (waiting.address, waiting.timed) = (seen.key, seen.timed);
        if seen.what == WaitsFor::Mutex {
            let owner = lot::mutex_waited_for(r, |key| {
                // SAFETY: the thread waits for the mutex at this key, so it lives.
                unsafe { (*(key as *const RawMutex)).word().owner() }
            });
            waiting.holder = owner.and_then(|o| owner::record(o.1)).and_then(id_of);
        }
    } else if r.after.get() == After::Join {
        waiting.waits_for = WaitsFor::Join;
        // SAFETY: null or a record, which is never freed.
        waiting.holder = unsafe { r.target.get().as_ref() }.and_then(id_of);
    } else if r.after.get() != After::Park {
        return None; // it goes on already
    }
    Some(waiting)
}

fn id_of(r: &Record) -> Option<ThreadId> {
    let id = r.id.load(Ordering::Relaxed);
    (id != 0).then(|| ThreadId::from_raw(id))
}
