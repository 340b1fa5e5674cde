//! The sending handle.

use super::chan::Chan;
use super::error::SendTimeoutError;
use super::state::Side;
use super::waiter::Patience;
use core::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{SendError, TrySendError};
use std::time::{Duration, Instant};

/// The sending side of a channel; see [`channel`](super::channel) and [`sync_channel`](super::sync_channel).
///
/// Any number of threads may use it, through clones or references. When the last clone is dropped, receivers get what
/// has been sent, and then errors.
///
/// # Examples
/// ```
/// use reveille::{sync::mpmc, thread};
/// let (s, r) = mpmc::channel();
/// let threads: Vec<_> = (1..=3)
///     .map(|i| {
///         let s = s.clone();
///         thread::spawn(move || s.send(i).unwrap())
///     })
///     .collect();
/// drop(s);
/// assert_eq!(r.iter().sum::<i32>(), 6);
/// # threads.into_iter().for_each(|t| t.join().unwrap());
/// ```
pub struct Sender<T> {
    pub(super) chan: Arc<Chan<T>>,
}

impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// Sends `message`, waiting while the channel is full.
    ///
    /// # Errors
    /// If all receivers are gone; the error holds the message.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::channel;
    /// let (s, r) = channel();
    /// s.send(1).unwrap();
    /// drop(r);
    /// assert_eq!(s.send(2).unwrap_err().0, 2);
    /// ```
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.chan.send(message, Patience::Forever).map_err(|e| SendError(e.into_inner()))
    }

    /// Sends `message` if that is possible at once: if the channel is not full, or, without capacity, if a receiver
    /// waits.
    ///
    /// # Errors
    /// If it is not possible; the error holds the message.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{TrySendError, sync_channel};
    /// let (s, _r) = sync_channel(1);
    /// assert_eq!(s.try_send(1), Ok(()));
    /// assert_eq!(s.try_send(2), Err(TrySendError::Full(2)));
    /// ```
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.chan.send(message, Patience::Try).map_err(|e| match e {
            SendTimeoutError::Timeout(message) => TrySendError::Full(message),
            SendTimeoutError::Disconnected(message) => TrySendError::Disconnected(message),
        })
    }

    /// As [`send`](Sender::send), waiting for at most `timeout`.
    ///
    /// # Errors
    /// If that was not long enough, or all receivers are gone; the error holds the message.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::sync_channel;
    /// use std::time::Duration;
    /// let (s, _r) = sync_channel(0);
    /// assert!(s.send_timeout(1, Duration::from_millis(1)).unwrap_err().is_timeout());
    /// ```
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.chan.send(message, Patience::For(timeout))
    }

    /// As [`send`](Sender::send), waiting until `deadline` at the latest.
    ///
    /// # Errors
    /// As [`send_timeout`](Sender::send_timeout).
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::sync_channel;
    /// use std::time::{Duration, Instant};
    /// let (s, r) = sync_channel(0);
    /// drop(r);
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// assert!(s.send_deadline(1, soon).unwrap_err().is_disconnected());
    /// ```
    pub fn send_deadline(&self, message: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.chan.send(message, Patience::Until(deadline))
    }

    /// How many messages wait to be received.
    ///
    /// # Examples
    /// ```
    /// let (s, _r) = reveille::sync::mpmc::channel();
    /// s.send('a').unwrap();
    /// assert_eq!((s.len(), s.is_empty(), s.is_full(), s.capacity()), (1, false, false, None));
    /// ```
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// No message waits to be received. A channel without capacity is always empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// There is no room for a message. A channel without capacity is always full.
    pub fn is_full(&self) -> bool {
        self.chan.is_full()
    }

    /// How many messages the channel holds at most; `None`: any number.
    pub fn capacity(&self) -> Option<usize> {
        self.chan.capacity()
    }

    /// Both send to the same channel.
    ///
    /// # Examples
    /// ```
    /// let ((s, _), (t, _)) = (reveille::sync::mpmc::channel::<()>(), reveille::sync::mpmc::channel());
    /// assert!(s.same_channel(&s.clone()) && !s.same_channel(&t));
    /// ```
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.chan.join(Side::Send);
        Sender { chan: Arc::clone(&self.chan) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.chan.part(Side::Send);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Sender { .. }")
    }
}
