//! Waking: taking waiters out of their queues, and moving them to others.

use super::waiter::{Waiter, Woken};
use super::{Bucket, GRANTED, bucket_of};
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

/// Wakes the waiters of `key`, oldest first, as far as `grant` gives them what they came for; `settle` if nobody is
/// left. Both are called under the queue's lock.
pub(crate) fn serve(key: usize, grant: impl Fn(&Waiter) -> bool, settle: impl FnOnce()) {
    let choose = |w: &Waiter| grant(w).then_some(GRANTED);
    unpark_some(key, !0, choose, |more| {
        if !more {
            settle();
        }
    });
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

/// What becomes of the first of some waiters that are moved.
pub(crate) enum Moved {
    /// It is woken, with this.
    Wake(usize),
    /// It enters the other queue like the rest.
    Enter,
}

/// Takes up to `n` waiters of `key` out, oldest first, and has them wait on in the queue of the key that each
/// has in `aux`, without their deadlines. `emptied` is called under the lock of the first queue with whether
/// more wait there. `first` is called under the lock of the other queue, for the first of those with the same
/// `aux`, with that and whether more follow. Returns how many.
///
/// The two queues are not locked together: in between the waiters are in none, and nobody else finds them.
pub(crate) fn move_waiters(
    key: usize,
    n: usize,
    emptied: impl FnOnce(bool),
    first: impl Fn(usize, bool) -> Moved,
) -> usize {
    hot::off();
    let bucket = bucket_of(key);
    bucket.lock();
    let mut chain = Chain::new();
    let mut taken = 0;
    // SAFETY: the bucket is locked.
    unsafe {
        while taken < n
            && let Some(w) = bucket.queues.head(key)
        {
            let w = &*core::ptr::from_ref(w);
            bucket.queues.remove(w);
            chain.push(w);
            taken += 1;
        }
        emptied(bucket.queues.head(key).is_some());
    }
    bucket.unlock();
    let mut at = chain.first;
    while !at.is_null() {
        // SAFETY: the rest of the chain above, which is this caller's alone.
        at = unsafe { enter_run(at, &first) };
    }
    due::on();
    taken
}

/// Enters the waiters from `w` on that have the same `aux`; returns the first of the others.
///
/// # Safety
/// They have been taken out by the caller. Preemption is off.
unsafe fn enter_run(w: *const Waiter, first: impl Fn(usize, bool) -> Moved) -> *const Waiter {
    let mut woken = core::ptr::null();
    // SAFETY: the caller's promise; a link is read before its waiter enters a queue.
    unsafe {
        let key = (*w).aux;
        let same = |w: *const Waiter| w.as_ref().is_some_and(|w| w.aux == key);
        let bucket = bucket_of(key);
        bucket.lock();
        let mut at = (*w).links.chained().get();
        match first(key, same(at)) {
            Moved::Wake(token) => {
                (*w).woken.set(Woken::Unparked(token));
                woken = w;
            }
            Moved::Enter => enter_moved(bucket, key, w),
        }
        while same(at) {
            let next = (*at).links.chained().get();
            enter_moved(bucket, key, at);
            at = next;
        }
        bucket.unlock();
        if !woken.is_null() {
            wake(woken);
        }
        at
    }
}

/// # Safety
/// The bucket is locked, the waiter in no queue.
unsafe fn enter_moved(bucket: &Bucket, key: usize, w: *const Waiter) {
    // SAFETY: the caller's promise.
    unsafe {
        (*w).moved.set(true);
        bucket.queues.push(key, &*w);
    }
}

/// Takes `waiter`, whose deadline has passed or which will not wait, out of its queue, to go on with `why`; unless somebody
/// else has taken it out, or moved it, and wakes it some time. The thread that has to be made ready, if that is for
/// the caller to do. The caller keeps the waiter alive.
pub(crate) fn take_out(waiter: &Waiter, why: Woken) -> Option<&'static Record> {
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
        let here = waiter.key() == key && !waiter.moved.get();
        if here {
            // SAFETY: the bucket is locked and the waiter stands in it.
            unsafe { bucket.queues.remove(waiter) };
            waiter.woken.set(why);
        }
        bucket.unlock();
        let moved = waiter.moved.get();
        due::on();
        if here {
            // SAFETY: records are never freed.
            let record = unsafe { waiter.record.as_ref() };
            return if waiter.word.wake() { record } else { None };
        }
        if moved {
            return None;
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
pub(super) unsafe fn wake(w: *const Waiter) {
    // SAFETY: it is alive until its word says WOKEN, or until it is made ready.
    unsafe {
        let record = (*w).record.as_ref();
        let (word, _) = (*w).word.sleep_on();
        let word: *const _ = word;
        if (*w).word.wake() {
            match record {
                Some(r) => ops::make_ready(r),
                // The frame may be gone: the kernel only uses the address as a key.
                None => futex::wake_address(word, 1),
            }
        }
    }
}

/// Waiters that have been taken out and not woken yet.
pub(super) struct Chain {
    first: *const Waiter,
    last: *const Waiter,
}

impl Chain {
    fn new() -> Chain {
        Chain { first: core::ptr::null(), last: core::ptr::null() }
    }

    fn push(&mut self, w: &Waiter) {
        w.links.chained().set(core::ptr::null());
        // SAFETY: the last one has not been woken yet.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.links.chained().set(w),
            None => self.first = w,
        }
        self.last = w;
    }

    fn wake_all(self) -> usize {
        let mut n = 0;
        let mut at = self.first;
        // SAFETY: each is alive until it is woken, and its link is read before.
        while let Some(w) = unsafe { at.as_ref() } {
            let next = w.links.chained().get();
            // SAFETY: taken out by who made the chain.
            unsafe { wake(w) };
            at = next;
            n += 1;
        }
        n
    }
}
