//! A wake-up that a signal handler may call.
//!
//! A handler of the program's may interrupt this very kernel thread while it has a bucket locked or a queue
//! half changed; then it must not touch either. The count of preemption tells: it is above its resting
//! value wherever the runtime is at work. If so, the key is left in a slot here, and
//! * a reveille thread has a tick pending, and its worker's alarm rings soon; whichever comes first drains the
//!   slots in the scheduler
//! * a kernel thread drains them at the end of its region ([`due::on`])
//!
//! [`due::on`]: crate::tls::due::on

use super::TABLE;
use super::wake::{unpark_all, unpark_bucket};
use crate::tcb::current;
use crate::tls::hot;
use crate::worker::{alarm, of};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Keys that can be pending at once; a key more, and everybody looks for himself whether it was his.
const SLOTS: usize = 256;

static KEYS: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];
/// Some slot is in use.
static ANY: AtomicBool = AtomicBool::new(false);
/// The slots did not suffice.
static OVERFLOW: AtomicBool = AtomicBool::new(false);

/// Wakes all waiters of `key`, now or as soon as what was interrupted is whole. Async-signal-safe.
///
/// The state that the waiters check must have been changed before.
pub(crate) fn unpark_from_handler(key: usize) {
    let me = current::get();
    let resting = u32::from(me.is_none());
    if hot::off_count() == resting {
        unpark_all(key, 0);
        return;
    }
    let free = |slot: &&AtomicUsize| {
        let (ok, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        slot.load(Ordering::Relaxed) == key || slot.compare_exchange(0, key, ok, failed).is_ok()
    };
    if KEYS.iter().find(free).is_none() {
        OVERFLOW.store(true, Ordering::SeqCst);
    }
    ANY.store(true, Ordering::SeqCst);
    hot::set_pending(1);
    if let Some(me) = me {
        // Preemption is off, so this is the worker.
        alarm::soon(of(me));
    }
}

/// Wakes whom handlers could not. Preemption is off, nothing of the runtime half changed.
pub(crate) fn drain() {
    if !ANY.load(Ordering::SeqCst) || !ANY.swap(false, Ordering::SeqCst) {
        return;
    }
    for slot in &KEYS {
        let key = slot.swap(0, Ordering::SeqCst);
        if key != 0 {
            unpark_all(key, 0);
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
