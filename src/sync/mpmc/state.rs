//! What a channel's lock guards: messages, who waits, who is gone; and the steps that change it.
//!
//! Between any two steps:
//! * receivers wait only while there is no message in the buffer
//! * senders wait only while there is no room: as many messages and promised places as the capacity
//! * nobody waits for a side that is gone
//!
//! Without capacity, a sender and a receiver that both wait belong to the same select.

use super::buffer::{Block, Buffer};
use super::waiter::{Outcome, Queue, Waiter, Wakes};
use core::ptr;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct State<T> {
    buffer: Buffer<T>,
    /// `usize::MAX`: unbounded.
    cap: usize,
    /// Places in the buffer that selected senders have been promised.
    promised: usize,
    receivers: Queue,
    senders: Queue,
    /// Selects that want to know when there may be something to receive, or room to send.
    watch_recv: Queue,
    watch_send: Queue,
    no_receivers: bool,
    no_senders: bool,
}

/// What came of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Put {
    Done,
    Full,
    Closed,
    /// The buffer needs a block: give it one and try again.
    Short,
}

/// What came of an attempt to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Get {
    Done,
    Empty,
    Closed,
    /// A selected sender will finish the caller's waiter.
    Bound,
}

/// Which side of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Send,
    Recv,
}

impl<T> State<T> {
    pub(super) fn new(cap: Option<usize>) -> State<T> {
        let buffer = match cap {
            None | Some(0) => Buffer::unbounded(),
            Some(cap) => Buffer::bounded(cap),
        };
        State {
            buffer,
            cap: cap.unwrap_or(usize::MAX),
            promised: 0,
            receivers: Queue::new(),
            senders: Queue::new(),
            watch_recv: Queue::new(),
            watch_send: Queue::new(),
            no_receivers: false,
            no_senders: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    fn has_room(&self) -> bool {
        self.buffer.len() + self.promised < self.cap
    }

    pub(super) fn is_full(&self) -> bool {
        !self.has_room()
    }

    pub(super) fn give(&mut self, block: Block<T>) {
        self.buffer.give(block);
    }

    #[inline]
    pub(super) fn buffer(&mut self) -> &mut Buffer<T> {
        &mut self.buffer
    }

    fn watched(wakes: &mut Wakes, watchers: &mut Queue) {
        if !watchers.is_empty() {
            wakes.take_from(watchers, Outcome::Done, usize::MAX);
        }
    }

    /// Moves the message at `from` to a receiver or into the buffer. Only with `Done` it has been moved.
    ///
    /// # Safety
    /// It is a message, and the caller's.
    #[inline]
    pub(super) unsafe fn put(&mut self, from: *const T, wakes: &mut Wakes) -> Put {
        if self.no_receivers {
            return Put::Closed;
        }
        if let Some(r) = self.receivers.take() {
            // SAFETY: a receiver's place has room, and is the taker's.
            unsafe { hand_over(from, r, wakes) };
            return Put::Done;
        }
        if !self.has_room() {
            return Put::Full;
        }
        if self.buffer.is_short() {
            return Put::Short;
        }
        // SAFETY: the caller's promise, and the checks above.
        unsafe { self.buffer.push(from) };
        Self::watched(wakes, &mut self.watch_recv);
        Put::Done
    }

    /// Moves a message to the place of `me`. Only with `Done` it has been moved.
    ///
    /// # Safety
    /// The place has room. If `me` is bound, it stays until it has been finished.
    #[inline]
    pub(super) unsafe fn get(&mut self, me: &Waiter, wakes: &mut Wakes) -> Get {
        // SAFETY: the caller's promise.
        unsafe {
            if self.buffer.pop(me.place()) {
                self.fill(wakes);
                return Get::Done;
            }
            if self.cap == 0
                && let Some(s) = self.senders.take()
            {
                if (*s).place::<T>().is_null() {
                    (*s).bind(me);
                    wakes.push(s, Outcome::Done);
                    return Get::Bound;
                }
                ptr::copy_nonoverlapping((*s).place::<T>(), me.place(), 1);
                wakes.push(s, Outcome::Done);
                return Get::Done;
            }
        }
        if self.no_senders { Get::Closed } else { Get::Empty }
    }

    /// A place has become free: for whoever waits for one.
    #[inline]
    fn fill(&mut self, wakes: &mut Wakes) {
        while !self.senders.is_empty() && self.has_room() {
            let Some(s) = self.senders.take() else { break };
            // SAFETY: the sender has been taken out; its message is the taker's. A channel where senders wait is
            // bounded, so its buffer is a ring.
            unsafe {
                if (*s).place::<T>().is_null() {
                    self.promised += 1;
                } else if let Some(r) = self.receivers.take() {
                    hand_over((*s).place::<T>(), r, wakes);
                } else {
                    self.buffer.push((*s).place::<T>());
                    Self::watched(wakes, &mut self.watch_recv);
                }
                wakes.push(s, Outcome::Done);
            }
        }
        if self.has_room() {
            Self::watched(wakes, &mut self.watch_send);
        }
    }

    /// A selecting sender `me` gets a place, or a receiver of its own.
    pub(super) fn promise(&mut self, me: &Waiter) -> Put {
        if self.no_receivers {
            return Put::Closed;
        }
        if self.cap == 0 {
            let Some(r) = self.receivers.take() else { return Put::Full };
            me.bind(r);
        } else if self.cap != usize::MAX {
            if !self.has_room() {
                return Put::Full;
            }
            self.promised += 1;
        }
        Put::Done
    }

    /// The promised place is used, or not any more.
    pub(super) fn unpromise(&mut self) {
        self.promised -= usize::from(self.cap != usize::MAX);
    }

    /// A promised place has not been used up: for the next.
    pub(super) fn freed(&mut self, wakes: &mut Wakes) {
        self.fill(wakes);
    }

    /// Whether an attempt of that side would not have to wait.
    pub(super) fn is_ready(&self, side: Side) -> bool {
        match side {
            Side::Recv => {
                self.len() != 0 || self.no_senders || self.cap == 0 && !self.senders.is_empty()
            }
            Side::Send => {
                self.has_room() || self.no_receivers || self.cap == 0 && !self.receivers.is_empty()
            }
        }
    }

    /// `w` waits.
    ///
    /// # Safety
    /// It stays where it is until it has been taken out.
    #[inline]
    pub(super) unsafe fn enter(&mut self, side: Side, w: &Waiter, wakes: &mut Wakes) {
        let (queue, watchers) = match side {
            Side::Send => (&mut self.senders, &mut self.watch_recv),
            Side::Recv => (&mut self.receivers, &mut self.watch_send),
        };
        // SAFETY: the caller's promise.
        unsafe { queue.push(w) };
        if self.cap == 0 {
            Self::watched(wakes, watchers);
        }
    }

    /// `w` wants to know when that side may be ready.
    ///
    /// # Safety
    /// As [`enter`](State::enter).
    pub(super) unsafe fn watch(&mut self, side: Side, w: &Waiter) {
        // SAFETY: the caller's promise.
        unsafe { self.watchers(side).push(w) };
    }

    fn watchers(&mut self, side: Side) -> &mut Queue {
        match side {
            Side::Send => &mut self.watch_send,
            Side::Recv => &mut self.watch_recv,
        }
    }

    /// Takes `w` out, if nobody has: true.
    ///
    /// # Safety
    /// It has entered on that side; `watches`: as a watcher.
    pub(super) unsafe fn leave(&mut self, side: Side, watches: bool, w: &Waiter) -> bool {
        let queued = w.is_queued();
        if queued {
            let queue = match (watches, side) {
                (true, _) => self.watchers(side),
                (false, Side::Send) => &mut self.senders,
                (false, Side::Recv) => &mut self.receivers,
            };
            // SAFETY: the caller's promise.
            unsafe { queue.remove(w) };
        }
        queued
    }

    /// That side is gone: up to `most` of who waits for it go on. True: there may be more.
    pub(super) fn close(&mut self, gone: Side, most: usize, wakes: &mut Wakes) -> bool {
        match gone {
            Side::Send => {
                self.no_senders = true;
                wakes.take_from(&mut self.receivers, Outcome::Closed, most);
                wakes.take_from(&mut self.watch_recv, Outcome::Closed, most);
            }
            Side::Recv => {
                self.no_receivers = true;
                wakes.take_from(&mut self.senders, Outcome::Closed, most);
                wakes.take_from(&mut self.watch_send, Outcome::Closed, most);
            }
        }
        wakes.count() >= most
    }
}

/// Moves the message at `from` to the receiver `r`.
///
/// # Safety
/// It is a message, and the caller's no longer; `r` has been taken out.
#[inline]
unsafe fn hand_over<T>(from: *const T, r: *const Waiter, wakes: &mut Wakes) {
    // SAFETY: the caller's promise: who has been taken out waits until it is told.
    unsafe {
        ptr::copy_nonoverlapping(from, (*r).place::<T>(), 1);
        wakes.push(r, Outcome::Done);
    }
}
