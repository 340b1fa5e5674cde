//! Who waits at a channel: records on the waiters' own stacks, queues of them, and the wake-ups that are due once
//! the channel's lock has been let go of.

use crate::lot::{self, Wait, WaitsFor, Woken};
use crate::protocol::offer::Offer;
use crate::sys::clock::Deadline;
use core::cell::Cell;
use core::ptr;
use core::time::Duration;
use std::time::Instant;

/// How long somebody is willing to wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// Not at all.
    Try,
    /// For ever.
    Forever,
    For(Duration),
    Until(Instant),
    /// As computed from one of the others.
    Set(Deadline),
}

impl Patience {
    /// Read the clock now: a wait begins.
    #[inline]
    pub(super) fn start(&mut self) -> Option<Deadline> {
        let deadline = match *self {
            Patience::Try | Patience::Forever => None,
            Patience::For(time) => Deadline::after(time),
            Patience::Until(when) => Deadline::from_instant(when),
            Patience::Set(deadline) => Some(deadline),
        };
        if let Some(deadline) = deadline {
            *self = Patience::Set(deadline);
        } else if !matches!(self, Patience::Try) {
            *self = Patience::Forever;
        }
        deadline
    }

    /// There is no time to wait, as far as can be told without a clock.
    #[inline]
    pub(super) fn is_none(self) -> bool {
        matches!(self, Patience::Try | Patience::For(Duration::ZERO))
    }
}

/// What came of waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The value has been moved; or, for a selecting sender, the channel will take one.
    Done,
    /// The other side is gone.
    Closed,
    /// Whoever was to send a value did not: start over.
    Again,
    /// The time is over, and nothing has happened.
    TimedOut,
}

impl Outcome {
    fn pack(self, index: usize) -> usize {
        index << 2 | self as usize
    }

    fn unpack(word: usize) -> (Outcome, usize) {
        let outcome = match word & 3 {
            0 => Outcome::Done,
            1 => Outcome::Closed,
            2 => Outcome::Again,
            _ => Outcome::TimedOut,
        };
        (outcome, word >> 2)
    }
}

/// A thread that waits, at one channel or at several.
#[derive(Debug)]
pub(super) struct Ticket {
    offer: Offer,
    /// At several: it must be claimed.
    several: bool,
}

impl Ticket {
    pub(super) fn for_one() -> Ticket {
        Ticket { offer: Offer::new(), several: false }
    }

    pub(super) fn for_several() -> Ticket {
        Ticket { offer: Offer::new(), several: true }
    }

    /// Waits, until `deadline` at the latest. `None`: that has passed, and there is no outcome yet.
    #[inline]
    pub(super) fn rest(&self, deadline: Option<Deadline>) -> Option<(Outcome, usize)> {
        let wait = Wait::on(ptr::from_ref(self) as usize, WaitsFor::Channel).until(deadline);
        loop {
            let woken = lot::park(wait, || self.offer.outcome().is_none());
            if let Some(word) = self.offer.outcome() {
                return Some(Outcome::unpack(word));
            }
            if woken == Woken::TimedOut {
                return None;
            }
        }
    }

    /// By itself: nobody else will serve it. False: somebody does.
    #[must_use]
    pub(super) fn give_up(&self) -> bool {
        self.offer.claim()
    }
}

/// A place in a channel's queue. Its cells are touched under the channel's lock, or by who took it out.
#[derive(Debug)]
pub(super) struct Waiter {
    next: Cell<*const Waiter>,
    prev: Cell<*const Waiter>,
    queued: Cell<bool>,
    /// Which of several.
    index: usize,
    ticket: *const Ticket,
    /// Where the value goes, or comes from. Null: a selecting sender, who has none yet.
    place: *mut (),
    /// The receiver that a selecting sender has been given; it waits for that sender alone.
    bound: Cell<*const Waiter>,
    outcome: Cell<Outcome>,
}

impl Waiter {
    pub(super) fn new(ticket: *const Ticket, index: usize, place: *mut ()) -> Waiter {
        Waiter {
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            queued: Cell::new(false),
            index,
            ticket,
            place,
            bound: Cell::new(ptr::null()),
            outcome: Cell::new(Outcome::Done),
        }
    }

    #[inline]
    pub(super) fn place<T>(&self) -> *mut T {
        self.place.cast()
    }

    /// It stands in the queue, under the lock.
    #[inline]
    pub(super) fn is_queued(&self) -> bool {
        self.queued.get()
    }

    pub(super) fn bound(&self) -> *const Waiter {
        self.bound.get()
    }

    /// The receiver `r` waits for this selecting sender from now on, which has been taken out.
    pub(super) fn bind(&self, r: *const Waiter) {
        self.bound.set(r);
    }
}

/// Tells a waiter what came of it.
///
/// # Safety
/// The caller has taken it out of its queue, and claimed it if it waits at several.
#[inline]
pub(super) unsafe fn finish(w: *const Waiter, outcome: Outcome) {
    // SAFETY: it waits until it is finished (invariant K2); after that only the key is used.
    unsafe {
        let ticket = (*w).ticket;
        let word = outcome.pack((*w).index);
        lot::unpark_one(ticket as usize, !0, |_| {
            (*ticket).offer.finish(word);
            0
        });
    }
}

/// Waiters of one kind at one channel, oldest first. Touched under the channel's lock.
#[derive(Debug)]
pub(super) struct Queue {
    first: *const Waiter,
    last: *const Waiter,
}

impl Queue {
    pub(super) const fn new() -> Queue {
        Queue { first: ptr::null(), last: ptr::null() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// # Safety
    /// `w` stands in no queue, and stays where it is until it has been taken out.
    #[inline]
    pub(super) unsafe fn push(&mut self, w: &Waiter) {
        w.next.set(ptr::null());
        w.prev.set(self.last);
        w.queued.set(true);
        // SAFETY: who stands in a queue is alive (invariant K2).
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(w),
            None => self.first = w,
        }
        self.last = w;
    }

    /// # Safety
    /// `w` stands in this queue.
    #[inline]
    pub(super) unsafe fn remove(&mut self, w: &Waiter) {
        let (next, prev) = (w.next.get(), w.prev.get());
        // SAFETY: as in `push`.
        unsafe {
            match prev.as_ref() {
                Some(prev) => prev.next.set(next),
                None => self.first = next,
            }
            match next.as_ref() {
                Some(next) => next.prev.set(prev),
                None => self.last = prev,
            }
        }
        w.queued.set(false);
    }

    /// Takes out the oldest that nobody else serves. It is the caller's, who finishes it.
    #[inline]
    pub(super) fn take(&mut self) -> Option<*const Waiter> {
        while !self.first.is_null() {
            let w = self.first;
            // SAFETY: it stands in this queue, so it is alive, and its ticket is.
            unsafe {
                self.remove(&*w);
                let ticket = &*(*w).ticket;
                if !ticket.several || ticket.offer.claim() {
                    return Some(w);
                }
            }
        }
        None
    }
}

/// Waiters that have been taken out, to be told after the lock has been let go of.
#[derive(Debug)]
pub(super) struct Wakes {
    first: *const Waiter,
    last: *const Waiter,
    count: usize,
}

impl Wakes {
    pub(super) const fn new() -> Wakes {
        Wakes { first: ptr::null(), last: ptr::null(), count: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// # Safety
    /// As [`finish`].
    #[inline]
    pub(super) unsafe fn push(&mut self, w: *const Waiter, outcome: Outcome) {
        // SAFETY: who has been taken out and not told is alive (invariant K2).
        unsafe {
            (*w).outcome.set(outcome);
            (*w).next.set(ptr::null());
            match self.last.as_ref() {
                Some(last) => last.next.set(w),
                None => self.first = w,
            }
        }
        self.last = w;
        self.count += 1;
    }

    /// All of `queue` go on with `outcome`, at most `most` of them.
    pub(super) fn take_from(&mut self, queue: &mut Queue, outcome: Outcome, most: usize) {
        while self.count < most
            && let Some(w) = queue.take()
        {
            // SAFETY: just taken.
            unsafe { self.push(w, outcome) };
        }
    }

    /// Tells them.
    #[inline]
    pub(super) fn run(&mut self) {
        let mut at = core::mem::replace(self, Wakes::new()).first;
        while !at.is_null() {
            // SAFETY: taken out by who made the list; the link is read before its owner goes on.
            unsafe {
                let next = (*at).next.get();
                finish(at, (*at).outcome.get());
                at = next;
            }
        }
    }
}
