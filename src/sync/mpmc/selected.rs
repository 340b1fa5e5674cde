//! An operation that has been selected, and has to be completed.

use super::case::Case;
use super::place::Place;
use super::receiver::Receiver;
use super::sender::Sender;
use super::state::Put;
use super::waiter::{Outcome, Waiter, finish};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr;
use std::sync::mpsc::{RecvError, SendError};

/// How far an operation has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// The other side is gone.
    Closed,
    /// The message is here.
    Received(Place),
    /// There is a place in the buffer.
    Promised,
    /// This receiver waits for nobody else.
    Bound(*const Waiter),
    /// Completed.
    Over,
}

/// An operation that [`Select`](super::Select) has chosen: complete it with [`send`](SelectedOperation::send) or
/// [`recv`](SelectedOperation::recv) on the same sender or receiver.
///
/// # Panics
/// If it is dropped instead. Nothing is left waiting then: a place that was promised is given back, a message that was
/// received is dropped.
///
/// # Examples
/// ```
/// use reveille::sync::mpmc::{Select, channel};
/// let ((s, r), (_t, q)) = (channel(), channel::<()>());
/// s.send(7).unwrap();
/// let mut select = Select::new();
/// let (first, _) = (select.recv(&r), select.recv(&q));
/// let oper = select.select();
/// assert_eq!(oper.index(), first);
/// assert_eq!(oper.recv(&r), Ok(7));
/// ```
#[must_use = "a selected operation has to be completed"]
pub struct SelectedOperation<'a> {
    pub(super) index: usize,
    pub(super) case: &'a dyn Case,
    pub(super) stage: Stage,
}

impl SelectedOperation<'_> {
    /// Which one it is: what [`Select::recv`](super::Select::recv) or [`Select::send`](super::Select::send)
    /// returned.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    fn is(&self, handle: *const ()) -> bool {
        ptr::eq(ptr::from_ref(self.case).cast(), handle)
    }

    /// Sends `message`. Does not wait.
    ///
    /// # Errors
    /// If all receivers are gone; the error holds the message.
    ///
    /// # Panics
    /// If another sender was selected.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{Select, sync_channel};
    /// let (s, r) = sync_channel(1);
    /// let mut select = Select::new();
    /// select.send(&s);
    /// select.select().send(&s, 'x').unwrap();
    /// assert_eq!(r.recv(), Ok('x'));
    /// ```
    pub fn send<T>(mut self, s: &Sender<T>, message: T) -> Result<(), SendError<T>> {
        assert!(self.is(ptr::from_ref(s).cast()), "passed a sender that wasn't selected");
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Bound(r) => {
                // SAFETY: it waits for this sender, for a message of this type: the channel is the one of `s`.
                unsafe {
                    (*r).place::<T>().write(message);
                    finish(r, Outcome::Done);
                }
                Ok(())
            }
            Stage::Promised if s.capacity().is_none() => s.send(message),
            Stage::Promised => {
                let message = ManuallyDrop::new(message);
                let mut locked = s.chan.lock();
                let (state, wakes) = locked.parts();
                state.unpromise();
                // SAFETY: moved, or taken back below. There is room: the promised place.
                let put = unsafe { state.put(&raw const *message, wakes) };
                state.freed(wakes);
                drop(locked);
                match put {
                    Put::Done => Ok(()),
                    _ => Err(SendError(ManuallyDrop::into_inner(message))),
                }
            }
            _ => Err(SendError(message)),
        }
    }

    /// The message that has been received. Does not wait.
    ///
    /// # Errors
    /// If there is none, and all senders are gone.
    ///
    /// # Panics
    /// If another receiver was selected.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{RecvError, Select, channel};
    /// let (s, r) = channel::<()>();
    /// drop(s);
    /// let mut select = Select::new();
    /// select.recv(&r);
    /// assert_eq!(select.select().recv(&r), Err(RecvError));
    /// ```
    pub fn recv<T>(mut self, r: &Receiver<T>) -> Result<T, RecvError> {
        assert!(self.is(ptr::from_ref(r).cast()), "passed a receiver that wasn't selected");
        match core::mem::replace(&mut self.stage, Stage::Over) {
            // SAFETY: a message of this type is there, as the receiver is the same.
            Stage::Received(place) => Ok(unsafe { place.ptr().cast::<T>().read() }),
            _ => Err(RecvError),
        }
    }
}

impl Drop for SelectedOperation<'_> {
    fn drop(&mut self) {
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Closed => {}
            // SAFETY: a message is there.
            Stage::Received(place) => unsafe { self.case.discard(&place) },
            Stage::Promised => self.case.give_back(),
            // SAFETY: it waits for this operation.
            Stage::Bound(r) => unsafe { finish(r, Outcome::Again) },
        }
        if !std::thread::panicking() {
            panic!("dropping `SelectedOperation` without completing the operation");
        }
    }
}

impl fmt::Debug for SelectedOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("SelectedOperation { .. }")
    }
}
