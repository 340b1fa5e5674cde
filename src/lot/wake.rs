//! Waking: taking waiters out of their queues, and moving them to others.

use super::waiter::{Waiter, What, Woken};
use super::{Bucket, bucket_of};
use crate::sys::futex;
use crate::tcb::Record;
use crate::tls::{due, hot};
use crate::worker::ops;

/// What a waker finds, under the bucket's lock.
pub(crate) struct Found<'a> {
    /// The one that will be woken.
    pub waiter: Option<&'a Waiter>,
    /// More wait for the same key.
    pub more: bool,
}

/// Wakes the oldest waiter of `key` that has one of `bits`. `f` is called under the bucket's lock, also when
/// there is none, to change the state that waiters check; what it returns is passed on to the waiter.
#[inline]
pub(crate) fn unpark_one(key: usize, bits: u32, f: impl FnOnce(Found<'_>) -> usize) -> bool {
    hot::off();
    let bucket = bucket_of(key);
    bucket.lock();
    // SAFETY: the bucket is locked.
    let woken = unsafe {
        let w = oldest(bucket, key, bits);
        if let Some(w) = w {
            bucket.queues.remove(w);
        }
        let more = bucket.queues.head(key).is_some();
        let token = f(Found { waiter: w, more });
        w.map(|w| {
            w.woken.set(Woken::Unparked(token));
            core::ptr::from_ref(w)
        })
    };
    bucket.unlock();
    if let Some(w) = woken {
        // SAFETY: it was taken out above, by this caller alone.
        unsafe { wake(w) };
    }
    due::on();
    woken.is_some()
}

/// Wakes up to `n` waiters of `key` that have one of `bits`, oldest first, for which `choose` says so, while it
/// says anything: what it returns is passed on. Returns how many. `done` is called at the end under the lock,
/// with whether more wait.
pub(crate) fn unpark_some(
    key: usize,
    bits: u32,
    mut choose: impl FnMut(&Waiter) -> Option<usize>,
    done: impl FnOnce(bool),
) -> usize {
    hot::off();
    let bucket = bucket_of(key);
    bucket.lock();
    let mut chain = Chain::new();
    // SAFETY: the bucket is locked.
    unsafe {
        while let Some(w) = oldest(bucket, key, bits) {
            let Some(token) = choose(w) else { break };
            bucket.queues.remove(w);
            w.woken.set(Woken::Unparked(token));
            chain.push(w);
        }
        done(bucket.queues.head(key).is_some());
    }
    bucket.unlock();
    let n = chain.wake_all();
    due::on();
    n
}

/// Wakes all waiters of `key`, passing `token` on. Returns how many.
pub(crate) fn unpark_all(key: usize, token: usize) -> usize {
    unpark_some(key, !0, |_| Some(token), |_| {})
}

/// Wakes all waiters of a bucket, whatever they wait for. Preemption is off.
pub(super) fn unpark_bucket(bucket: &Bucket) {
    let mut chain = Chain::new();
    bucket.lock();
    // SAFETY: the bucket is locked.
    unsafe {
        while let Some(w) = bucket.queues.any() {
            bucket.queues.remove(w);
            w.woken.set(Woken::Unparked(0));
            chain.push(w);
        }
    }
    bucket.unlock();
    chain.wake_all();
}

/// What [`requeue`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Requeued {
    pub woken: usize,
    pub moved: usize,
}

/// Moves up to `n` waiters of `from`, oldest first, to the end of the queue of `to`, where they wait on as if
/// they had come for it; or, if `wake_first` says so, wakes the first one. `plan` is called under both locks
/// with the first waiter, if any, and says what to do: how many to wake, how many to move. `done` is called
/// after, under both locks, with what was done.
pub(crate) fn requeue(
    from: usize,
    to: usize,
    plan: impl FnOnce(Option<&Waiter>) -> Requeued,
    done: impl FnOnce(Requeued),
) -> Requeued {
    hot::off();
    let (a, b) = (bucket_of(from), bucket_of(to));
    lock_both(a, b);
    let mut chain = Chain::new();
    let mut did = Requeued::default();
    // SAFETY: both buckets are locked.
    unsafe {
        let todo = plan(a.queues.head(from));
        while did.woken < todo.woken
            && let Some(w) = a.queues.head(from)
        {
            a.queues.remove(w);
            w.woken.set(Woken::Unparked(0));
            chain.push(w);
            did.woken += 1;
        }
        while did.moved < todo.moved
            && let Some(w) = a.queues.head(from)
        {
            let w: *const Waiter = w;
            a.queues.remove(&*w);
            b.queues.push(to, &*w);
            did.moved += 1;
        }
    }
    done(did);
    if !core::ptr::eq(a, b) {
        b.unlock();
    }
    a.unlock();
    chain.wake_all();
    due::on();
    did
}

fn lock_both(a: &Bucket, b: &Bucket) {
    let (first, second) = if core::ptr::from_ref(a) <= b { (a, b) } else { (b, a) };
    first.lock();
    if !core::ptr::eq(first, second) {
        second.lock();
    }
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

/// What the thread of `record` waits for, if it waits: the kind, the key, and whether it has a deadline.
pub(crate) fn who_waits(record: &'static Record) -> Option<(What, usize, bool)> {
    hot::off();
    let found = locked(record, |_, w| (w.what, w.key(), !w.timed_by.get().is_null()));
    due::on();
    found
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

/// The deadline of `waiter` has passed: takes it out of its queue. The thread that has to be made ready, if
/// that is for the caller to do. Preemption is off.
pub(crate) fn timed_out(waiter: &Waiter) -> Option<&'static Record> {
    loop {
        let key = waiter.key();
        if key == 0 {
            // Not in a queue yet, or woken.
            waiter.expired.set(true);
            return None;
        }
        hot::off();
        let bucket = bucket_of(key);
        bucket.lock();
        let here = waiter.key() == key;
        if here {
            // SAFETY: the bucket is locked and the waiter stands in it.
            unsafe { bucket.queues.remove(waiter) };
            waiter.woken.set(Woken::TimedOut);
        }
        bucket.unlock();
        due::on();
        if here {
            // SAFETY: records are never freed.
            let record = unsafe { waiter.record.as_ref() };
            return if waiter.word.wake() { record } else { None };
        }
    }
}

/// # Safety
/// The bucket is locked.
#[inline(always)]
unsafe fn oldest(bucket: &'static Bucket, key: usize, bits: u32) -> Option<&'static Waiter> {
    // SAFETY: the caller's promise. The lifetime is that of the waiter's stay in the queue.
    unsafe {
        let mut at = bucket.queues.head(key);
        while let Some(w) = at
            && w.bits & bits == 0
        {
            at = bucket.queues.after(w);
        }
        at
    }
}

/// Lets a waiter go on.
///
/// # Safety
/// The caller took it out of its queue and has written what it wakes with. Nobody touches it after.
#[inline(always)]
unsafe fn wake(w: *const Waiter) {
    // SAFETY: it is alive until its word says WOKEN, or until it is made ready.
    unsafe {
        let record = (*w).record.as_ref();
        let (word, _) = (*w).word.sleep_on();
        let word: *const _ = word;
        if (*w).word.wake() {
            match record {
                Some(r) => ops::make_ready(r),
                // The frame may be gone: the kernel only uses the address as a key.
                None => futex::wake_at(word, 1),
            }
        }
    }
}

/// Waiters that have been taken out and not woken yet, linked by `aux`, which nobody needs any more.
struct Chain {
    first: *const Waiter,
    last: *const Waiter,
}

impl Chain {
    fn new() -> Chain {
        Chain { first: core::ptr::null(), last: core::ptr::null() }
    }

    fn push(&mut self, w: &Waiter) {
        w.aux.set(0);
        // SAFETY: the last one has not been woken yet.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.aux.set(core::ptr::from_ref(w) as usize),
            None => self.first = w,
        }
        self.last = w;
    }

    fn wake_all(self) -> usize {
        let mut n = 0;
        let mut at = self.first;
        // SAFETY: each is alive until it is woken, and its link is read before.
        while let Some(w) = unsafe { at.as_ref() } {
            let next = w.aux.get() as *const Waiter;
            // SAFETY: taken out by who made the chain.
            unsafe { wake(w) };
            at = next;
            n += 1;
        }
        n
    }
}
