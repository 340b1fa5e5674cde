//! From a thread to what it waits for: kicking it out, and looking at it.

use super::waiter::{Waiter, WaitsFor, Woken};
use super::wake::wake;
use super::{Bucket, bucket_of};
use crate::tcb::Record;
use crate::tls::{due, hot};

/// What a thread waits for, as it was while its queue was locked.
pub(crate) struct Seen {
    pub what: WaitsFor,
    pub key: usize,
    pub timed: bool,
    name: [u8; 64],
    len: usize,
}

impl Seen {
    /// The thread's name; the first 64 bytes of it.
    pub(crate) fn name(&self) -> Option<String> {
        (self.len != 0).then(|| String::from_utf8_lossy(&self.name[..self.len]).into_owned())
    }
}

/// What the thread of `record` waits for, if it waits in the lot.
pub(crate) fn look(record: &'static Record) -> Option<Seen> {
    hot::off();
    let seen = locked(record, |_, w| {
        let (what, timed) = match w.mutex() {
            Some(_) => (WaitsFor::Mutex, false),
            None => (w.what, w.timed),
        };
        let mut seen = Seen { what, key: w.key(), timed, name: [0; 64], len: 0 };
        // SAFETY: the thread waits and cannot go on while its queue is locked, so it lives.
        if let Some(name) = unsafe { record.identity() }.name() {
            seen.len = name.len().min(seen.name.len());
            seen.name[..seen.len].copy_from_slice(&name.as_bytes()[..seen.len]);
        }
        seen
    });
    due::on();
    seen
}

/// Takes the thread of `record` out of whatever queue it waits in, for `reason`. False if it waits in none.
pub(crate) fn kick(record: &'static Record, reason: u32) -> bool {
    hot::off();
    let kicked = locked(record, |bucket, w| {
        // SAFETY: the bucket is locked and the waiter stands in it.
        unsafe { bucket.queues.remove(w) };
        w.woken.set(Woken::Kicked(reason));
        core::ptr::from_ref(w)
    });
    if let Some(w) = kicked {
        // SAFETY: it was taken out above, by this caller alone.
        unsafe { wake(w) };
    }
    due::on();
    kicked.is_some()
}

/// The mutex that the thread of `record` waits for, without a deadline, and what `f` says of it while it does.
pub(crate) fn mutex_waited_for<R>(
    record: &'static Record,
    f: impl Fn(usize) -> R,
) -> Option<(usize, R)> {
    hot::off();
    let found = locked(record, |_, w| w.mutex().map(|key| (key, f(key))));
    due::on();
    found.flatten()
}

/// Calls `f` with the waiter of `record` and its bucket, locked. Preemption is off.
fn locked<R>(record: &Record, mut f: impl FnMut(&Bucket, &Waiter) -> R) -> Option<R> {
    loop {
        // Stacks are never unmapped (invariant S1), so a stale waiter can be read; it is trusted only when its
        // queue has it.
        let waiter = record.waiter().cast::<Waiter>();
        // SAFETY: as said.
        let key = unsafe { waiter.as_ref() }?.key();
        if key == 0 {
            return None;
        }
        let bucket = bucket_of(key);
        bucket.lock();
        // SAFETY: the bucket is locked.
        let found = unsafe {
            let mut at = bucket.queues.head(key);
            while let Some(w) = at
                && !core::ptr::eq(w, waiter)
            {
                at = bucket.queues.after(w);
            }
            at.filter(|w| core::ptr::eq(w.record, record)).map(|w| &*core::ptr::from_ref(w))
        };
        let result = found.map(|w| f(bucket, w));
        bucket.unlock();
        if result.is_some() || core::ptr::eq(record.waiter().cast(), waiter) {
            return result;
        }
    }
}
