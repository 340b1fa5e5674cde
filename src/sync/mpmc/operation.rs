//! Waiting for several operations at once: how it is done.
//!
//! 1. each channel is locked for itself and its operation tried, in random order; what can be done is done
//! 2. all channels are locked, in the order of their addresses, and all operations tried again. If none can be
//!    done, a waiter enters each queue, with one ticket for all of them
//! 3. all are unlocked, and the thread rests until its ticket is finished or the time is over
//! 4. it leaves the queues that it still stands in
//!
//! Step 2 is one step for everybody else, as all of them are locked; so no change is missed between looking
//! and waiting, and no two selects wait for each other's other half.

use super::case::{Attempt, Case};
use super::chan::until_finished;
use super::place::Place;
use super::selected::{SelectedOperation, Stage};
use super::waiter::{Outcome, Patience, Ticket, Waiter, Wakes};
use crate::protocol::spin;
use crate::sys::clock::Deadline;
use crate::tls::{due, hot};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// One of several.
struct Operation<'a> {
    case: &'a dyn Case,
    index: usize,
    sends: bool,
    place: Place,
    waiter: Waiter,
}

/// See the module's documentation.
pub(super) struct Operations<'a> {
    all: Vec<Operation<'a>>,
    /// The locks in order, each once.
    locks: Vec<&'a AtomicBool>,
    next_index: usize,
    biased: bool,
}

// SAFETY: between the calls of its methods it is a list of references, whose uses need handles that may be used there,
// and of places without a message.
unsafe impl Send for Operations<'_> {}
// SAFETY: as above; a shared one can be cloned and no more.
unsafe impl Sync for Operations<'_> {}

impl Operation<'_> {
    fn new(case: &dyn Case, index: usize, sends: bool) -> Operation<'_> {
        let waiter = Waiter::new(ptr::null(), 0, ptr::null_mut());
        Operation { case, index, sends, place: Place::none(), waiter }
    }
}

impl Clone for Operations<'_> {
    fn clone(&self) -> Self {
        let all = self.all.iter().map(|o| Operation::new(o.case, o.index, o.sends)).collect();
        Operations { all, locks: self.locks.clone(), ..*self }
    }
}

impl<'a> Operations<'a> {
    pub(super) fn new(biased: bool) -> Operations<'a> {
        Operations { all: Vec::new(), locks: Vec::new(), next_index: 0, biased }
    }

    pub(super) fn must_not_be_empty(&self) {
        assert!(!self.all.is_empty(), "no operations have been added to `Select`");
    }

    pub(super) fn add(&mut self, case: &'a dyn Case, sends: bool) -> usize {
        let index = self.next_index;
        self.next_index += 1;
        self.all.push(Operation::new(case, index, sends));
        if let Some(lock) = case.lock() {
            let at = self.locks.partition_point(|l| ptr::from_ref(*l) < ptr::from_ref(lock));
            if !self.locks.get(at).is_some_and(|l| ptr::eq(*l, lock)) {
                self.locks.insert(at, lock);
            }
        }
        index
    }

    pub(super) fn remove(&mut self, index: usize) {
        let at = self.all.iter().position(|o| o.index == index);
        let gone = self.all.remove(at.expect("no operation with this index"));
        if let Some(lock) = gone.case.lock() {
            let same = |l: &AtomicBool| ptr::eq(l, lock);
            if !self.all.iter().any(|o| o.case.lock().is_some_and(same)) {
                self.locks.retain(|l| !same(l));
            }
        }
    }

    /// The operation that is chosen, if `patience` lasts.
    pub(super) fn select(&mut self, mut patience: Patience) -> Option<SelectedOperation<'a>> {
        'again: loop {
            self.shuffle();
            let ticket = Ticket::for_several();
            self.prepare(&ticket);
            for i in 0..self.all.len() {
                match self.attempt_alone(i) {
                    Attempt::No => {}
                    Attempt::Done => return Some(self.selected(i, Outcome::Done)),
                    Attempt::Closed => return Some(self.selected(i, Outcome::Closed)),
                    Attempt::Bound => match until_finished(&ticket).0 {
                        Outcome::Again => continue 'again,
                        outcome => return Some(self.selected(i, outcome)),
                    },
                }
            }
            if patience.is_none() {
                return None;
            }
            let deadline = patience.start();
            let (outcome, i) = match self.attempt_all_or_enter() {
                Some((Attempt::Done, i)) => (Outcome::Done, i),
                Some((Attempt::Closed, i)) => (Outcome::Closed, i),
                Some((_, i)) => (until_finished(&ticket).0, i),
                None => self.rest(&ticket, deadline, false),
            };
            match outcome {
                Outcome::Done | Outcome::Closed => return Some(self.selected(i, outcome)),
                Outcome::TimedOut if deadline.is_some_and(Deadline::is_over) => return None,
                // A timer is due, or somebody has not sent what he was to send.
                Outcome::TimedOut | Outcome::Again => {}
            }
        }
    }

    /// The index of an operation that seems ready, if `patience` lasts.
    pub(super) fn ready(&mut self, mut patience: Patience) -> Option<usize> {
        loop {
            self.shuffle();
            let ticket = Ticket::for_several();
            self.prepare(&ticket);
            for o in &self.all {
                let lock = o.case.lock();
                let _locked = LockedAll::new(lock.as_slice());
                // SAFETY: locked.
                if unsafe { o.case.is_ready() } {
                    return Some(o.index);
                }
            }
            if patience.is_none() {
                return None;
            }
            let deadline = patience.start();
            let (outcome, i) = match self.ready_or_watch() {
                Some(i) => (Outcome::Done, i),
                None => self.rest(&ticket, deadline, true),
            };
            match outcome {
                Outcome::Done | Outcome::Closed => return Some(self.all[i].index),
                Outcome::TimedOut if deadline.is_some_and(Deadline::is_over) => return None,
                Outcome::TimedOut | Outcome::Again => {}
            }
        }
    }

    /// Makes the waiters anew, with places for what is received.
    fn prepare(&mut self, ticket: &Ticket) {
        for (i, o) in self.all.iter_mut().enumerate() {
            if o.sends {
                o.waiter = Waiter::new(ticket, i, ptr::null_mut());
                continue;
            }
            if !o.place.is_made() {
                o.place = o.case.place();
            }
            o.waiter = Waiter::new(ticket, i, o.place.ptr().as_ptr());
        }
    }

    fn attempt_alone(&self, i: usize) -> Attempt {
        let o = &self.all[i];
        let lock = o.case.lock();
        let mut locked = LockedAll::new(lock.as_slice());
        // SAFETY: locked; the waiter stays until it is finished, as `select` waits for that.
        unsafe { o.case.attempt(&o.waiter, &mut locked.wakes) }
    }

    /// Steps 1 and 2 of waiting. `None`: entered everywhere.
    fn attempt_all_or_enter(&self) -> Option<(Attempt, usize)> {
        let mut locked = LockedAll::new(&self.locks);
        // SAFETY: all are locked; the waiters stay, as `select` has them leave or finish.
        unsafe {
            for (i, o) in self.all.iter().enumerate() {
                match o.case.attempt(&o.waiter, &mut locked.wakes) {
                    Attempt::No => {}
                    attempt => return Some((attempt, i)),
                }
            }
            for o in &self.all {
                o.case.enter(&o.waiter, false, &mut locked.wakes);
            }
        }
        None
    }

    /// As [`attempt_all_or_enter`](Self::attempt_all_or_enter), for news.
    fn ready_or_watch(&self) -> Option<usize> {
        let mut locked = LockedAll::new(&self.locks);
        // SAFETY: as there.
        unsafe {
            let ready = self.all.iter().position(|o| o.case.is_ready());
            if ready.is_none() {
                for o in &self.all {
                    o.case.enter(&o.waiter, true, &mut locked.wakes);
                }
            }
            ready
        }
    }

    /// Waits, until the deadline or the first timer is due, and leaves all queues.
    fn rest(&self, ticket: &Ticket, deadline: Option<Deadline>, watches: bool) -> (Outcome, usize) {
        let due = self.all.iter().filter_map(|o| o.case.due()).min();
        let due = due.and_then(|due| Patience::Until(due).start());
        let first = match (due, deadline) {
            (Some(due), Some(deadline)) if deadline.at < due.at => Some(deadline),
            _ => due.or(deadline),
        };
        let outcome = match ticket.rest(first) {
            Some(outcome) => outcome,
            None if ticket.give_up() => (Outcome::TimedOut, 0),
            None => until_finished(ticket),
        };
        for o in &self.all {
            // SAFETY: entered before.
            unsafe { o.case.leave(&o.waiter, watches) };
        }
        outcome
    }

    fn selected(&mut self, i: usize, outcome: Outcome) -> SelectedOperation<'a> {
        let o = &mut self.all[i];
        let stage = match outcome {
            Outcome::Done if !o.sends => {
                Stage::Received(core::mem::replace(&mut o.place, Place::none()))
            }
            Outcome::Done if o.waiter.bound().is_null() => Stage::Promised,
            Outcome::Done => Stage::Bound(o.waiter.bound()),
            _ => Stage::Closed,
        };
        SelectedOperation { index: o.index, case: o.case, stage }
    }

    /// Puts the operations into random order, so that each that is ready has the same chance.
    fn shuffle(&mut self) {
        if self.biased {
            return;
        }
        for i in 1..self.all.len() {
            self.all.swap(i, random(i + 1));
        }
    }
}

/// Channels that are locked, with preemption off.
struct LockedAll<'a> {
    locks: &'a [&'a AtomicBool],
    wakes: Wakes,
}

impl<'a> LockedAll<'a> {
    /// `locks`: in the order of their addresses, each once.
    fn new(locks: &'a [&'a AtomicBool]) -> LockedAll<'a> {
        hot::off();
        locks.iter().for_each(|l| spin::acquire(l));
        LockedAll { locks, wakes: Wakes::new() }
    }
}

impl Drop for LockedAll<'_> {
    fn drop(&mut self) {
        self.locks.iter().for_each(|l| spin::release(l));
        self.wakes.run();
        due::on();
    }
}

/// A number below `n`: Marsaglia's xorshift32. Threads that come at once may get the same, which does no harm.
fn random(n: usize) -> usize {
    static SEED: AtomicU32 = AtomicU32::new(0x9e37_79b9);
    let mut x = SEED.load(Ordering::Relaxed);
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    SEED.store(x, Ordering::Relaxed);
    ((u64::from(x) * n as u64) >> 32) as usize
}
