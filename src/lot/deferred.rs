//! A wake-up that a signal handler may call.
//!
//! A handler of the program's may interrupt this very kernel thread while it has a bucket locked or a queue
//! half changed; then it must not touch either. The count of preemption tells: it is above its resting
//! value wherever the runtime is at work. If so, the key is left in a slot (`protocol::slots`), and
//! * a reveille thread has a tick pending, and its worker's alarm rings soon; whichever comes first drains the
//!   slots in the scheduler
//! * a kernel thread drains them at the end of its region ([`due::on`], [`due::after_spin`])
//!

use super::wake::{unpark_bucket, unpark_some};
use super::{GRANTED, TABLE, Waiter, WaitsFor};
use crate::protocol::semaphore::SemaphoreWord;
use crate::protocol::slots::Slots;
use crate::tcb::current;
use crate::tls::{due, hot};
use crate::worker::{alarm, of, ops};
use core::cell::Cell;

/// Keys that can be pending at once; a key more, and everybody looks for himself whether it was his.
static LEFT: Slots<256> = Slots::new();

/// Wakes the waiters of `key`, now or as soon as what was interrupted is whole. Async-signal-safe.
///
/// The state that the waiters check must have been changed before, by an atomic read-modify-write. Nothing is
/// read or written at `key` unless somebody waits for it.
pub(crate) fn unpark_from_handler(key: usize) {
    if due::at_rest() {
        return wake(key);
    }
    LEFT.leave(key);
    // Before the first runtime nobody has said so.
    due::set_give_way(ops::give_way_sliced);
    hot::set_pending(1);
    if let Some(me) = current::get() {
        // Preemption is off, so this is the worker.
        alarm::soon(of(me));
    }
}

/// Wakes all waiters of `key`, those of a semaphore as far as its permits go.
fn wake(key: usize) {
    let word: Cell<Option<&SemaphoreWord>> = Cell::new(None);
    let choose = |w: &Waiter| {
        if w.what != WaitsFor::Semaphore {
            return Some(0);
        }
        // SAFETY: the key of such a waiter is the address of the word, which is alive while one waits: until this
        // queue is unlocked.
        let it = unsafe { &*core::ptr::with_exposed_provenance::<SemaphoreWord>(key) };
        word.set(Some(it));
        it.grant(w.aux).then_some(GRANTED)
    };
    unpark_some(key, !0, choose, |more| {
        if !more && let Some(word) = word.get() {
            word.settle();
        }
    });
}

/// Wakes whom handlers could not. Preemption is off, nothing of the runtime half changed.
pub(crate) fn drain() {
    if LEFT.take(wake) {
        everybody();
    }
}

/// Wakes every waiter of the process: each checks what it waits for, and waits on.
#[cold]
fn everybody() {
    TABLE.iter().for_each(unpark_bucket);
}

pub(super) fn after_fork() {
    LEFT.clear();
}
