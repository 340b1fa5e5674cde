//! A wake-up that a signal handler may call.
//!
//! A handler of the program's may interrupt this very kernel thread while it has a bucket locked or a queue
//! half changed; then it must not touch either. The count of preemption tells: it is above its resting
//! value wherever the runtime is at work. If so, the key is left in a slot here, and
//! * a reveille thread has a tick pending, and its worker's alarm rings soon; whichever comes first drains the
//!   slots in the scheduler
//! * a kernel thread drains them at the end of its region ([`due::on`], [`due::after_spin`])
//!

use super::wake::{unpark_bucket, unpark_some};
use super::{GRANTED, TABLE, Waiter, What};
use crate::protocol::semaphore::SemaphoreWord;
use crate::tcb::current;
use crate::tls::{due, hot};
use crate::worker::{alarm, of, ops};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Keys that can be pending at once; a key more, and everybody looks for himself whether it was his.
const SLOTS: usize = 256;

static KEYS: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];
/// Some slot is in use.
static ANY: AtomicBool = AtomicBool::new(false);
/// The slots did not suffice.
static OVERFLOW: AtomicBool = AtomicBool::new(false);

/// Wakes the waiters of `key`, now or as soon as what was interrupted is whole. Async-signal-safe.
///
/// The state that the waiters check must have been changed before, by an atomic read-modify-write. Nothing is
/// read or written at `key` unless somebody waits for it.
pub(crate) fn unpark_from_handler(key: usize) {
    if due::at_rest() {
        return wake(key);
    }
    let mine = |slot: &&AtomicUsize| {
        let (ok, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        // Writes also where the key is already: whoever takes it from there sees what this caller did before.
        slot.compare_exchange(0, key, ok, failed).is_ok()
            || slot.compare_exchange(key, key, ok, failed).is_ok()
    };
    if KEYS.iter().find(mine).is_none() {
        OVERFLOW.store(true, Ordering::SeqCst);
    }
    ANY.store(true, Ordering::SeqCst);
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
        if w.what != What::Semaphore {
            return Some(0);
        }
        // SAFETY: the key of such a waiter is the address of the word, which is alive while one waits: until this
        // queue is unlocked.
        let it = unsafe { &*core::ptr::with_exposed_provenance::<SemaphoreWord>(key) };
        word.set(Some(it));
        it.grant(w.aux.get()).then_some(GRANTED)
    };
    unpark_some(key, !0, choose, |more| {
        if !more && let Some(word) = word.get() {
            word.settle();
        }
    });
}

/// Wakes whom handlers could not. Preemption is off, nothing of the runtime half changed.
pub(crate) fn drain() {
    if !ANY.load(Ordering::SeqCst) || !ANY.swap(false, Ordering::SeqCst) {
        return;
    }
    for slot in &KEYS {
        let key = slot.swap(0, Ordering::SeqCst);
        if key != 0 {
            wake(key);
        }
    }
    if OVERFLOW.swap(false, Ordering::SeqCst) {
        everybody();
    }
}

/// Wakes every waiter of the process: each checks what it waits for, and waits on.
#[cold]
fn everybody() {
    TABLE.iter().for_each(unpark_bucket);
}

pub(super) fn after_fork() {
    for slot in &KEYS {
        slot.store(0, Ordering::Relaxed);
    }
    ANY.store(false, Ordering::Relaxed);
    OVERFLOW.store(false, Ordering::Relaxed);
}
