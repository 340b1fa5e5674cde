//! Waiting, in a reveille thread and on a kernel thread.

use super::waiter::{Waiter, WaitsFor, Woken};
use super::{Bucket, bucket_of};
use crate::sys::clock::Deadline;
use crate::sys::futex;
use crate::tcb::state::After;
use crate::tcb::{Record, current};
use crate::tls::{due, hot};
use crate::worker::{alarm, wait::Leaving};

/// What to wait for, and how long.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub key: usize,
    pub what: WaitsFor,
    pub bits: u32,
    /// Stands before those who wait already.
    pub first: bool,
    /// Kept with the waiter, for who finds it.
    pub aux: usize,
    pub deadline: Option<Deadline>,
}

impl Wait {
    /// For any wake-up of `key`, without a deadline.
    pub(crate) fn on(key: usize, what: WaitsFor) -> Wait {
        Wait { key, what, bits: !0, first: false, aux: 0, deadline: None }
    }

    pub(crate) fn until(self, deadline: Option<Deadline>) -> Wait {
        Wait { deadline, ..self }
    }

    /// # Safety
    /// The bucket of the key is locked; the waiter stays where it is until it has been taken out.
    #[inline(always)]
    unsafe fn enter(&self, bucket: &Bucket, waiter: &Waiter) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.first {
                bucket.queues.push_front(self.key, waiter);
            } else {
                bucket.queues.push(self.key, waiter);
            }
        }
    }
}

/// Waits on `wait.key`, if `validate`, called with the key's queue locked and preemption off, says so.
#[inline]
pub(crate) fn park(wait: Wait, validate: impl FnOnce() -> bool) -> Woken {
    match current::get() {
        Some(me) => park_thread(me, &wait, validate),
        None => park_kernel_thread(&wait, validate, || true),
    }
}

/// Waits until whoever serves the queue of `wait.key` has granted what the caller came for ([`serve`]). `take`, called
/// under the queue's lock, takes it at once if it can. `pass` is called when the caller leaves with nothing: those
/// behind may not have to wait any more. False: the deadline passed.
///
/// [`serve`]: super::serve
pub(crate) fn wait_for_grant(wait: Wait, take: impl Fn() -> bool, pass: impl Fn()) -> bool {
    loop {
        let mut taken = false;
        let woken = park(wait, || {
            taken = take();
            !taken
        });
        if taken || woken == Woken::Unparked(super::GRANTED) {
            return true;
        }
        pass();
        if woken == Woken::TimedOut {
            return false;
        }
    }
}

/// As [`park()`]; `hook` runs after the waiter has been entered and before it rests, with preemption on in a
/// reveille thread. It says whether to wait after all; if not, and nobody has woken it by then, the waiter leaves.
#[inline]
pub(crate) fn park_after(
    wait: Wait,
    validate: impl FnOnce() -> bool,
    hook: impl FnOnce() -> bool,
) -> Woken {
    match current::get() {
        Some(me) => park_thread_after(me, &wait, validate, hook),
        None => park_kernel_thread(&wait, validate, hook),
    }
}

#[inline]
fn park_thread(me: &'static Record, wait: &Wait, validate: impl FnOnce() -> bool) -> Woken {
    let waiter = Waiter::new(wait, me);
    let leaving = Leaving::begin(me);
    let heap = wait.deadline.map(|d| alarm::add(me, &waiter, d));
    let leaving = leaving.choose();
    let bucket = bucket_of(wait.key);
    bucket.lock();
    // From here on only who takes it out of the queue has a say: what `validate` did stands.
    let expired = waiter.expired.get();
    if expired || !validate() {
        bucket.unlock();
        leaving.stay();
        if let Some(heap) = heap {
            alarm::cancel(heap, &waiter);
        }
        return if expired { Woken::TimedOut } else { Woken::Invalid };
    }
    // SAFETY: the bucket is locked; this frame lives until the waiter has been taken out and woken.
    unsafe { wait.enter(bucket, &waiter) };
    me.set_waiter((&raw const waiter).cast());
    leaving.go(After::Wait);
    finish(me, heap, &waiter)
}

#[inline]
fn park_thread_after(
    me: &'static Record,
    wait: &Wait,
    validate: impl FnOnce() -> bool,
    hook: impl FnOnce() -> bool,
) -> Woken {
    let waiter = Waiter::new(wait, me);
    let leaving = Leaving::begin(me);
    let heap = wait.deadline.map(|d| alarm::add(me, &waiter, d));
    let bucket = bucket_of(wait.key);
    bucket.lock();
    if !validate() {
        bucket.unlock();
        leaving.stay();
        if let Some(heap) = heap {
            alarm::cancel(heap, &waiter);
        }
        return Woken::Invalid;
    }
    // SAFETY: as in `park_thread`.
    unsafe { wait.enter(bucket, &waiter) };
    me.set_waiter((&raw const waiter).cast());
    bucket.unlock();
    leaving.stay();
    stay_or_leave(&waiter, hook);
    if !waiter.word.is_woken() {
        let leaving = Leaving::begin(me).choose();
        leaving.go(After::Rest);
    }
    finish(me, heap, &waiter)
}

/// The second phase, of a waiter that stands in its queue.
#[inline(always)]
fn stay_or_leave(waiter: &Waiter, hook: impl FnOnce() -> bool) {
    if !hook() {
        // Still on its stack: there is nobody to be made ready.
        let _nobody = super::take_out(waiter, Woken::Left);
    }
}

#[inline(always)]
fn finish(me: &'static Record, heap: Option<alarm::HeapOf>, waiter: &Waiter) -> Woken {
    me.set_waiter(core::ptr::null());
    if let Some(heap) = heap {
        alarm::cancel(heap, waiter);
    }
    waiter.woken.get()
}

/// After [`park()`]'s switch, on the other side: the thread of `prev` rests, and can be found.
///
/// # Safety
/// Called by `worker::finish` for a record with `After::Wait`.
#[inline(always)]
pub(crate) unsafe fn left(prev: &Record) {
    // SAFETY: both were set by `park_thread`; the waiter lives until the bucket is unlocked and longer.
    unsafe {
        let waiter = &*prev.waiter().cast::<Waiter>();
        let bucket = bucket_of(waiter.key());
        waiter.word.rest_locked();
        bucket.unlock();
    }
}

/// After [`park_after`]'s switch: the thread of `prev` rests, unless it has been woken: false.
///
/// # Safety
/// Called by `worker::finish` for a record with `After::Rest`.
#[must_use]
#[inline(always)]
pub(crate) unsafe fn rest(prev: &Record) -> bool {
    // SAFETY: set by `park_thread_after`; the waiter lives until its thread goes on.
    unsafe { (*prev.waiter().cast::<Waiter>()).word.rest() }
}

#[cold]
fn park_kernel_thread(
    wait: &Wait,
    validate: impl FnOnce() -> bool,
    hook: impl FnOnce() -> bool,
) -> Woken {
    let waiter = Waiter::new(wait, core::ptr::null());
    // A handler of the program's that interrupts this kernel thread sees that a bucket is locked.
    hot::off();
    let bucket = bucket_of(wait.key);
    bucket.lock();
    if !validate() {
        bucket.unlock();
        due::on();
        return Woken::Invalid;
    }
    // SAFETY: as in `park_thread`.
    unsafe { wait.enter(bucket, &waiter) };
    bucket.unlock();
    due::on();
    stay_or_leave(&waiter, hook);
    if waiter.word.rest() {
        let (word, parked) = waiter.word.sleep_on();
        let mut deadline = wait.deadline;
        while !waiter.word.is_woken() {
            if deadline.is_some_and(Deadline::is_over) {
                // Either this takes the waiter out, or somebody has, and wakes it some time.
                let _nobody = super::take_out(&waiter, Woken::TimedOut);
                deadline = None;
            }
            futex::wait_until(word, parked, deadline);
        }
    }
    waiter.woken.get()
}
