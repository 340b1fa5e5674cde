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
use crate::sched::random;
use crate::sys::clock::Deadline;
use crate::tls::{due, hot};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// One of several; small, since they are shuffled.
#[derive(Clone)]
struct Operation<'a> {
    case: &'a dyn Case,
    index: usize,
    sends: bool,
    /// Where in `seats` its own is: as many were added before, and are there.
    seat: usize,
}

/// Where an operation waits.
struct Seat {
    place: Place,
    waiter: Waiter,
}

/// See the module's documentation.
pub(super) struct Operations<'a> {
    all: Vec<Operation<'a>>,
    seats: Vec<Seat>,
    /// The locks in order, each once; made when they are needed first.
    locks: Option<Vec<&'a AtomicBool>>,
    next_index: usize,
    biased: bool,
}

// SAFETY: between the calls of its methods it is a list of references, whose uses need handles that may be used there,
// and of places without a message.
unsafe impl Send for Operations<'_> {}
// SAFETY: as above; a shared one can be cloned and no more.
unsafe impl Sync for Operations<'_> {}

impl Clone for Operations<'_> {
    fn clone(&self) -> Self {
        Operations { all: self.all.clone(), seats: Vec::new(), locks: None, ..*self }
    }
}

impl<'a> Operations<'a> {
    pub(super) fn new(biased: bool) -> Operations<'a> {
        Operations { all: Vec::new(), seats: Vec::new(), locks: None, next_index: 0, biased }
    }

    pub(super) fn must_not_be_empty(&self) {
        assert!(!self.all.is_empty(), "no operations have been added to `Select`");
    }

    pub(super) fn add(&mut self, case: &'a dyn Case, sends: bool) -> usize {
        let index = self.next_index;
        self.next_index += 1;
        self.all.push(Operation { case, index, sends, seat: self.all.len() });
        self.locks = None;
        index
    }

    pub(super) fn remove(&mut self, index: usize) {
        let at = self.all.iter().position(|o| o.index == index);
        let gone = self.all.remove(at.expect("no operation with this index"));
        if gone.seat < self.seats.len() {
            self.seats.remove(gone.seat);
        }
        self.all.iter_mut().filter(|o| o.seat > gone.seat).for_each(|o| o.seat -= 1);
        self.locks = None;
    }

    /// Finds out the order of the locks: memory may be needed, so nothing is locked yet.
    fn order_locks(&mut self) {
        if self.locks.is_none() {
            let mut locks: Vec<_> = self.all.iter().filter_map(|o| o.case.lock()).collect();
            locks.sort_unstable_by_key(|l| ptr::from_ref(*l));
            locks.dedup_by_key(|l| ptr::from_ref(*l));
            self.locks = Some(locks);
        }
    }

    fn lock_all(&self) -> LockedAll<'_> {
        LockedAll::new(self.locks.as_deref().unwrap_or_default())
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
            let waits = !patience.is_none();
            if !waits && self.all.len() < 2 {
                return None;
            }
            self.order_locks();
            let deadline = patience.start();
            let (outcome, i) = match self.attempt_all(waits) {
                Some((Attempt::Done, i)) => (Outcome::Done, i),
                Some((Attempt::Closed, i)) => (Outcome::Closed, i),
                Some((_, i)) => (until_finished(&ticket).0, i),
                None if !waits => return None,
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
            let waits = !patience.is_none();
            if !waits && self.all.len() < 2 {
                return None;
            }
            self.order_locks();
            let deadline = patience.start();
            let (outcome, i) = match self.look_at_all(waits) {
                Some(i) => (Outcome::Done, i),
                None if !waits => return None,
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
        let none =
            || Seat { place: Place::none(), waiter: Waiter::new(ticket, 0, ptr::null_mut()) };
        self.seats.resize_with(self.all.len(), none);
        for (i, o) in self.all.iter().enumerate() {
            let seat = &mut self.seats[o.seat];
            if !o.sends && !seat.place.is_made() {
                seat.place = o.case.place();
            }
            let place = if o.sends { ptr::null_mut() } else { seat.place.ptr().as_ptr() };
            seat.waiter = Waiter::new(ticket, i, place);
        }
    }

    /// The operations, each with its waiter.
    fn waiters(&self) -> impl Iterator<Item = (&'a dyn Case, &Waiter)> {
        self.all.iter().map(|o| (o.case, &self.seats[o.seat].waiter))
    }

    fn attempt_alone(&self, i: usize) -> Attempt {
        let o = &self.all[i];
        let lock = o.case.lock();
        let mut locked = LockedAll::new(lock.as_slice());
        // SAFETY: locked; the waiter stays until it is finished, as `select` waits for that.
        unsafe { o.case.attempt(&self.seats[o.seat].waiter, &mut locked.wakes) }
    }

    /// Step 2 of waiting. `None`: at one moment, none could be done; entered everywhere if it `waits`. Who does not wait
    /// needs that too: one by one, a message can go from a channel not yet looked at to one that was empty.
    fn attempt_all(&self, waits: bool) -> Option<(Attempt, usize)> {
        let mut locked = self.lock_all();
        // SAFETY: all are locked; the waiters stay, as `select` has them leave or finish (invariant K2).
        unsafe {
            for (i, (case, waiter)) in self.waiters().enumerate() {
                match case.attempt(waiter, &mut locked.wakes) {
                    Attempt::No => {}
                    attempt => return Some((attempt, i)),
                }
            }
            if waits {
                for (case, waiter) in self.waiters() {
                    case.enter(waiter, false, &mut locked.wakes);
                }
            }
        }
        None
    }

    /// As [`attempt_all`](Self::attempt_all), for news.
    fn look_at_all(&self, waits: bool) -> Option<usize> {
        let mut locked = self.lock_all();
        // SAFETY: as there.
        unsafe {
            let ready = self.all.iter().position(|o| o.case.is_ready());
            if waits && ready.is_none() {
                for (case, waiter) in self.waiters() {
                    case.enter(waiter, true, &mut locked.wakes);
                }
            }
            ready
        }
    }

    /// Waits, until the deadline or the first timer is due, and leaves all queues.
    fn rest(&self, ticket: &Ticket, deadline: Option<Deadline>, watches: bool) -> (Outcome, usize) {
        let due = self.all.iter().filter_map(|o| o.case.due()).min();
        let due = due.and_then(|due| Patience::Until(due).start());
        let outcome = match ticket.rest(Deadline::first(due, deadline)) {
            Some(outcome) => outcome,
            None if ticket.give_up() => (Outcome::TimedOut, 0),
            None => until_finished(ticket),
        };
        for (case, waiter) in self.waiters() {
            // SAFETY: entered before.
            unsafe { case.leave(waiter, watches) };
        }
        outcome
    }

    fn selected(&mut self, i: usize, outcome: Outcome) -> SelectedOperation<'a> {
        let Operation { case, index, sends, seat } = self.all[i];
        let Seat { place, waiter } = &mut self.seats[seat];
        let stage = match outcome {
            Outcome::Done if !sends => Stage::Received(core::mem::replace(place, Place::none())),
            Outcome::Done if waiter.bound().is_null() => Stage::Promised,
            Outcome::Done => Stage::Bound(waiter.bound()),
            _ => Stage::Closed,
        };
        SelectedOperation { index, case, stage }
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

/// A number below `n`. Threads that come at once may get the same, which does no harm.
fn random(n: usize) -> usize {
    static SEED: AtomicU32 = AtomicU32::new(0x9e37_79b9);
    let x = random::after(SEED.load(Ordering::Relaxed));
    SEED.store(x, Ordering::Relaxed);
    ((u64::from(x) * n as u64) >> 32) as usize
}
