//! What `Select` asks of a sender or receiver whose type of messages it does not know.

use super::chan::Chan;
use super::place::Place;
use super::receiver::{Flavor, Receiver};
use super::sender::Sender;
use super::state::{Get, Put, Side};
use super::waiter::{Waiter, Wakes};
use core::sync::atomic::AtomicBool;
use std::time::Instant;

/// What came of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    /// A message is in the waiter's place; or a sender may send.
    Done,
    /// The other side is gone.
    Closed,
    /// The caller would have to wait.
    No,
    /// A selected sender will finish the waiter.
    Bound,
}

/// A side of some channel. "Locked" is the channel of [`lock`](Case::lock), if it has one.
pub(super) trait Case {
    /// The channel's lock. `None`: nobody waits there, see [`due`](Case::due).
    fn lock(&self) -> Option<&AtomicBool>;

    /// When it may be ready without anybody's doing.
    fn due(&self) -> Option<Instant>;

    /// Room for a message that is received.
    fn place(&self) -> Place;

    /// Does it, if it can be done at once.
    ///
    /// # Safety
    /// Locked; `me` has a place of [`place`](Case::place), and stays until it has been finished if it is bound.
    unsafe fn attempt(&self, me: &Waiter, wakes: &mut Wakes) -> Attempt;

    /// Whether it could be done at once.
    ///
    /// # Safety
    /// Locked.
    unsafe fn is_ready(&self) -> bool;

    /// `me` waits; with `watches`, only for news.
    ///
    /// # Safety
    /// Locked; `me` stays until it has left or been finished.
    unsafe fn enter(&self, me: &Waiter, watches: bool, wakes: &mut Wakes);

    /// `me` waits no more.
    ///
    /// # Safety
    /// Not locked; `me` has entered in the same way.
    unsafe fn leave(&self, me: &Waiter, watches: bool);

    /// Drops a message that nobody came for.
    ///
    /// # Safety
    /// It is in the place.
    unsafe fn discard(&self, place: &Place);

    /// A promised place in the buffer is not used.
    fn give_back(&self);
}

impl<T> Case for Sender<T> {
    fn lock(&self) -> Option<&AtomicBool> {
        Some(self.chan.raw_lock())
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn place(&self) -> Place {
        Place::none()
    }

    unsafe fn attempt(&self, me: &Waiter, _: &mut Wakes) -> Attempt {
        // SAFETY: the caller's promise.
        match unsafe { self.chan.state() }.promise(me) {
            Put::Done => Attempt::Done,
            Put::Closed => Attempt::Closed,
            Put::Full | Put::Short => Attempt::No,
        }
    }

    unsafe fn is_ready(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.chan.state() }.is_ready(Side::Send)
    }

    unsafe fn enter(&self, me: &Waiter, watches: bool, wakes: &mut Wakes) {
        // SAFETY: the caller's promise.
        unsafe { enter(&self.chan, Side::Send, me, watches, wakes) };
    }

    unsafe fn leave(&self, me: &Waiter, watches: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.chan.lock().parts().0.leave(Side::Send, watches, me) };
    }

    unsafe fn discard(&self, _: &Place) {}

    fn give_back(&self) {
        let mut locked = self.chan.lock();
        let (state, wakes) = locked.parts();
        state.unpromise();
        state.freed(wakes);
    }
}

impl<T> Receiver<T> {
    fn chan(&self) -> Option<&Chan<T>> {
        match &self.flavor {
            Flavor::Chan(chan) => Some(chan),
            _ => None,
        }
    }
}

impl<T> Case for Receiver<T> {
    fn lock(&self) -> Option<&AtomicBool> {
        self.chan().map(Chan::raw_lock)
    }

    fn due(&self) -> Option<Instant> {
        match &self.flavor {
            Flavor::Timer(timer) => timer.due(),
            _ => None,
        }
    }

    fn place(&self) -> Place {
        Place::of::<T>()
    }

    unsafe fn attempt(&self, me: &Waiter, wakes: &mut Wakes) -> Attempt {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.flavor {
                Flavor::Chan(chan) => match chan.state().get(me, wakes) {
                    Get::Done => Attempt::Done,
                    Get::Closed => Attempt::Closed,
                    Get::Empty => Attempt::No,
                    Get::Bound => Attempt::Bound,
                },
                Flavor::Timer(timer) => match timer.take() {
                    Some(message) => {
                        me.place::<T>().write(message);
                        Attempt::Done
                    }
                    None => Attempt::No,
                },
                Flavor::Never => Attempt::No,
            }
        }
    }

    unsafe fn is_ready(&self) -> bool {
        match &self.flavor {
            // SAFETY: the caller's promise.
            Flavor::Chan(chan) => unsafe { chan.state() }.is_ready(Side::Recv),
            Flavor::Timer(timer) => timer.is_due(),
            Flavor::Never => false,
        }
    }

    unsafe fn enter(&self, me: &Waiter, watches: bool, wakes: &mut Wakes) {
        if let Some(chan) = self.chan() {
            // SAFETY: the caller's promise.
            unsafe { enter(chan, Side::Recv, me, watches, wakes) };
        }
    }

    unsafe fn leave(&self, me: &Waiter, watches: bool) {
        if let Some(chan) = self.chan() {
            // SAFETY: the caller's promise.
            unsafe { chan.lock().parts().0.leave(Side::Recv, watches, me) };
        }
    }

    unsafe fn discard(&self, place: &Place) {
        // SAFETY: the caller's promise.
        unsafe { place.ptr().cast::<T>().drop_in_place() };
    }

    fn give_back(&self) {}
}

/// # Safety
/// As [`Case::enter`].
unsafe fn enter<T>(chan: &Chan<T>, side: Side, me: &Waiter, watches: bool, wakes: &mut Wakes) {
    // SAFETY: the caller's promise.
    unsafe {
        if watches {
            chan.state().watch(side, me);
        } else {
            chan.state().enter(side, me, wakes);
        }
    }
}
