//! A channel: its state behind a spin lock, and sending and receiving as a whole.

use super::buffer::{Block, Buffer};
use super::error::SendTimeoutError;
use super::state::{Get, Put, Side, State};
use super::waiter::{Outcome, Patience, Ticket, Waiter, Wakes};
use crate::protocol::spin;
use crate::tls::{due, hot};
use core::cell::UnsafeCell;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;

/// Waiters that are woken at a time when a side goes: preemption is off meanwhile.
const BATCH: usize = 32;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Chan<T> {
    held: AtomicBool,
    state: UnsafeCell<State<T>>,
    cap: Option<usize>,
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

// SAFETY: the state is touched under the lock; messages go from one thread to another.
unsafe impl<T: Send> Sync for Chan<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Chan<T> {}

/// The channel, locked, with preemption off. Dropping it lets go, tells whom it must, and frees what was emptied.
pub(super) struct Locked<'a, T> {
    chan: &'a Chan<T>,
    pub(super) wakes: Wakes,
}

impl<T> Locked<'_, T> {
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut State<T>, &mut Wakes) {
        // SAFETY: this holds the lock.
        (unsafe { &mut *self.chan.state.get() }, &mut self.wakes)
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let dead = self.parts().0.buffer().take_dead();
        spin::release(&self.chan.held);
        self.wakes.run();
        due::on();
        drop(dead);
    }
}

impl<T> Chan<T> {
    /// With one sender and one receiver.
    pub(super) fn new(cap: Option<usize>) -> Chan<T> {
        Chan {
            held: AtomicBool::new(false),
            state: UnsafeCell::new(State::new(cap)),
            cap,
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(1),
        }
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        self.cap
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_, T> {
        hot::off();
        spin::acquire(&self.held);
        Locked { chan: self, wakes: Wakes::new() }
    }

    /// The lock, for who locks several: the state is [`state`](Chan::state).
    pub(super) fn raw_lock(&self) -> &AtomicBool {
        &self.held
    }

    /// # Safety
    /// The caller holds the lock, and no other reference.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn state(&self) -> &mut State<T> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.state.get() }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().parts().0.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.lock().parts().0.is_full()
    }

    /// Sends, waiting as long as `patience` says; `Timeout` if that was not long enough.
    #[inline]
    pub(super) fn send(
        &self,
        message: T,
        mut patience: Patience,
    ) -> Result<(), SendTimeoutError<T>> {
        let message = ManuallyDrop::new(UnsafeCell::new(message));
        loop {
            let mut locked = self.lock();
            let (state, wakes) = locked.parts();
            // SAFETY: the message is moved if this says `Done`, and then it is not used here.
            let put = unsafe { state.put(message.get(), wakes) };
            let outcome = match put {
                Put::Done => Outcome::Done,
                Put::Closed => Outcome::Closed,
                Put::Full if patience.is_none() => Outcome::TimedOut,
                Put::Full => self.wait(locked, Side::Send, message.get().cast(), &mut patience),
                Put::Short => {
                    drop(locked);
                    let block = Block::new();
                    self.lock().parts().0.give(block);
                    Outcome::Again
                }
            };
            match outcome {
                Outcome::Done => return Ok(()),
                Outcome::Again => {}
                Outcome::Closed => return Err(SendTimeoutError::Disconnected(own(message))),
                Outcome::TimedOut => return Err(SendTimeoutError::Timeout(own(message))),
            }
        }
    }

    /// Receives, waiting as long as `patience` says.
    #[inline]
    pub(super) fn recv(&self, mut patience: Patience) -> Result<T, RecvTimeoutError> {
        let place = UnsafeCell::new(MaybeUninit::<T>::uninit());
        loop {
            let mut locked = self.lock();
            let ticket = Ticket::for_one();
            let me = Waiter::new(&ticket, 0, place.get().cast());
            let (state, wakes) = locked.parts();
            // SAFETY: the place has room; if the waiter is bound, it is waited for.
            let got = unsafe { state.get(&me, wakes) };
            let outcome = match got {
                Get::Done => Outcome::Done,
                Get::Closed => Outcome::Closed,
                Get::Empty if patience.is_none() => Outcome::TimedOut,
                Get::Empty => self.wait(locked, Side::Recv, place.get().cast(), &mut patience),
                Get::Bound => {
                    drop(locked);
                    until_finished(&ticket).0
                }
            };
            match outcome {
                // SAFETY: moved there.
                Outcome::Done => return Ok(unsafe { place.into_inner().assume_init() }),
                Outcome::Again => {}
                Outcome::Closed => return Err(RecvTimeoutError::Disconnected),
                Outcome::TimedOut => return Err(RecvTimeoutError::Timeout),
            }
        }
    }

    /// Enters the queue of that side and waits.
    #[cold]
    #[inline(never)]
    fn wait(
        &self,
        mut locked: Locked<'_, T>,
        side: Side,
        place: *mut (),
        patience: &mut Patience,
    ) -> Outcome {
        let ticket = Ticket::for_one();
        let me = Waiter::new(&ticket, 0, place);
        let (state, wakes) = locked.parts();
        // SAFETY: it stays here until it has been finished or has left.
        unsafe { state.enter(side, &me, wakes) };
        drop(locked);
        if let Some((outcome, _)) = ticket.rest(patience.start()) {
            return outcome;
        }
        // SAFETY: entered above.
        if unsafe { self.lock().parts().0.leave(side, false, &me) } {
            return Outcome::TimedOut;
        }
        until_finished(&ticket).0
    }

    /// Another handle of that side.
    pub(super) fn join(&self, side: Side) {
        // As many as half the addresses only by leaking them, which would overflow the count in the end.
        if self.count(side).fetch_add(1, Ordering::Relaxed) > isize::MAX as usize {
            std::process::abort();
        }
    }

    /// A handle of that side less. With the last one the other side is told; messages that nobody can receive any
    /// more are dropped.
    pub(super) fn part(&self, side: Side) {
        if self.count(side).fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        loop {
            let mut locked = self.lock();
            let (state, wakes) = locked.parts();
            if !state.close(side, BATCH, wakes) {
                break;
            }
        }
        if side == Side::Recv {
            let rest = {
                let mut locked = self.lock();
                core::mem::replace(locked.parts().0.buffer(), Buffer::unbounded())
            };
            drop(rest);
        }
    }

    fn count(&self, side: Side) -> &AtomicUsize {
        match side {
            Side::Send => &self.senders,
            Side::Recv => &self.receivers,
        }
    }
}

fn own<T>(message: ManuallyDrop<UnsafeCell<T>>) -> T {
    ManuallyDrop::into_inner(message).into_inner()
}

/// Somebody serves the waiter already.
#[cold]
pub(super) fn until_finished(ticket: &Ticket) -> (Outcome, usize) {
    loop {
        if let Some(finished) = ticket.rest(None) {
            return finished;
        }
    }
}
