//! Channels with one receiver: `std::sync::mpsc`, for reveille threads and kernel threads. The types are those of
//! [`mpmc`] with one restriction less to think about: the receiver stays with one thread at a time.

use super::mpmc;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use std::panic::RefUnwindSafe;
use std::time::{Duration, Instant};

pub use super::mpmc::SendTimeoutError;
pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// The sending side of [`channel`]; see [`std::sync::mpsc::Sender`].
///
/// # Examples
/// ```
/// let (s, r) = reveille::sync::mpsc::channel();
/// s.clone().send(1).unwrap();
/// assert_eq!(r.recv(), Ok(1));
/// ```
pub struct Sender<T>(mpmc::Sender<T>);

/// The sending side of [`sync_channel`]; see [`std::sync::mpsc::SyncSender`].
///
/// # Examples
/// ```
/// let (s, r) = reveille::sync::mpsc::sync_channel(1);
/// s.send(1).unwrap();
/// assert!(s.try_send(2).is_err());
/// assert_eq!(r.recv(), Ok(1));
/// ```
pub struct SyncSender<T>(mpmc::Sender<T>);

/// The receiving side; see [`std::sync::mpsc::Receiver`].
///
/// # Examples
/// ```
/// use reveille::{sync::mpsc, thread};
/// let (s, r) = mpsc::channel();
/// let t = thread::spawn(move || (0..4).for_each(|i| s.send(i).unwrap()));
/// assert_eq!(r.iter().sum::<i32>(), 6);
/// # t.join().unwrap();
/// ```
pub struct Receiver<T>(mpmc::Receiver<T>, PhantomData<Cell<()>>);

impl<T> RefUnwindSafe for Receiver<T> {}

/// A channel that holds any number of messages; see [`std::sync::mpsc::channel`].
///
/// # Examples
/// ```
/// let (s, r) = reveille::sync::mpsc::channel();
/// s.send("x").unwrap();
/// drop(s);
/// assert_eq!(r.iter().count(), 1);
/// ```
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (s, r) = mpmc::channel();
    (Sender(s), Receiver(r, PhantomData))
}

/// A channel that holds at most `bound` messages; see [`std::sync::mpsc::sync_channel`].
///
/// # Examples
/// ```
/// let (s, r) = reveille::sync::mpsc::sync_channel(2);
/// s.send("x").unwrap();
/// assert_eq!(r.recv(), Ok("x"));
/// ```
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (s, r) = mpmc::sync_channel(bound);
    (SyncSender(s), Receiver(r, PhantomData))
}

impl<T> Sender<T> {
    /// Sends `message`; never waits.
    ///
    /// # Errors
    /// If the receiver is gone; the error holds the message.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.send(message)
    }
}

impl<T> SyncSender<T> {
    /// Sends `message`, waiting while the channel is full.
    ///
    /// # Errors
    /// If the receiver is gone; the error holds the message.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.send(message)
    }

    /// Sends `message` if that is possible at once.
    ///
    /// # Errors
    /// If it is not; the error holds the message.
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(message)
    }

    /// As [`send`](SyncSender::send), waiting for at most `timeout`.
    ///
    /// # Errors
    /// If that was not long enough, or the receiver is gone; the error holds the message.
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.0.send_timeout(message, timeout)
    }
}

impl<T> Receiver<T> {
    /// Receives a message, waiting for one if need be.
    ///
    /// # Errors
    /// If there is none and all senders are gone.
    #[inline]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.0.recv()
    }

    /// Receives a message if one is there.
    ///
    /// # Errors
    /// If none is.
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.try_recv()
    }

    /// As [`recv`](Receiver::recv), waiting for at most `timeout`.
    ///
    /// # Errors
    /// If no message came in time, or all senders are gone.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.0.recv_timeout(timeout)
    }

    /// As [`recv`](Receiver::recv), waiting until `deadline` at the latest.
    ///
    /// # Errors
    /// As [`recv_timeout`](Receiver::recv_timeout).
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.0.recv_deadline(deadline)
    }

    /// The messages as they come, until all senders are gone.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// The messages that are there.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender(self.0.clone())
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> SyncSender<T> {
        SyncSender(self.0.clone())
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// Messages as they come; see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T: 'a>(&'a Receiver<T>);

/// Messages that are there; see [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T: 'a>(&'a Receiver<T>);

/// Messages as they come, owning the receiver.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}
