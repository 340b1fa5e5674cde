//! The receiving handle.

use super::chan::Chan;
use super::iter::{IntoIter, Iter, TryIter};
use super::state::Side;
use super::timer::Timer;
use super::waiter::{Patience, Ticket};
use crate::sys::clock::Deadline;
use core::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{RecvError, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

/// The receiving side of a channel; see [`channel`](super::channel) and [`sync_channel`](super::sync_channel).
///
/// Any number of threads may use it, through clones or references; each message goes to one of them. When the last
/// clone is dropped, so are the messages that wait, and senders get errors.
///
/// # Examples
/// ```
/// use reveille::{sync::mpmc, thread};
/// let (s, r) = mpmc::sync_channel(2);
/// let threads: Vec<_> = (0..3)
///     .map(|_| {
///         let r = r.clone();
///         thread::spawn(move || r.into_iter().sum::<i32>())
///     })
///     .collect();
/// (1..=10).for_each(|i| s.send(i).unwrap());
/// drop(s);
/// assert_eq!(threads.into_iter().map(|t| t.join().unwrap()).sum::<i32>(), 55);
/// ```
pub struct Receiver<T> {
    pub(super) flavor: Flavor<T>,
}

/// Where the messages come from.
#[derive(Debug)]
pub(super) enum Flavor<T> {
    Chan(Arc<Chan<T>>),
    Timer(Arc<Timer<T>>),
    Never,
}

impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    #[inline]
    fn get(&self, patience: Patience) -> Result<T, RecvTimeoutError> {
        match &self.flavor {
            Flavor::Chan(chan) => chan.recv(patience),
            Flavor::Timer(timer) => sleep(Some(timer), patience),
            Flavor::Never => sleep(None, patience),
        }
    }

    /// Receives a message, waiting for one if need be.
    ///
    /// # Errors
    /// If there is none and all senders are gone.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{RecvError, channel};
    /// let (s, r) = channel();
    /// s.send(1).unwrap();
    /// drop(s);
    /// assert_eq!((r.recv(), r.recv()), (Ok(1), Err(RecvError)));
    /// ```
    #[inline]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.get(Patience::Forever).map_err(|_| RecvError)
    }

    /// Receives a message if one is there; without capacity, if a sender waits.
    ///
    /// # Errors
    /// If none is there.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{TryRecvError, channel};
    /// let (s, r) = channel::<()>();
    /// assert_eq!(r.try_recv(), Err(TryRecvError::Empty));
    /// drop(s);
    /// assert_eq!(r.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.get(Patience::Try).map_err(|e| match e {
            RecvTimeoutError::Timeout => TryRecvError::Empty,
            RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
        })
    }

    /// As [`recv`](Receiver::recv), waiting for at most `timeout`.
    ///
    /// # Errors
    /// If no message came in time, or all senders are gone.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{RecvTimeoutError, channel};
    /// use std::time::Duration;
    /// let (_s, r) = channel::<()>();
    /// assert_eq!(r.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
    /// ```
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.get(Patience::For(timeout))
    }

    /// As [`recv`](Receiver::recv), waiting until `deadline` at the latest.
    ///
    /// # Errors
    /// As [`recv_timeout`](Receiver::recv_timeout).
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::channel;
    /// use std::time::{Duration, Instant};
    /// let (s, r) = channel();
    /// s.send(1).unwrap();
    /// assert_eq!(r.recv_deadline(Instant::now() + Duration::from_secs(1)), Ok(1));
    /// ```
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.get(Patience::Until(deadline))
    }

    /// The messages as they come, until all senders are gone.
    ///
    /// # Examples
    /// ```
    /// let (s, r) = reveille::sync::mpmc::channel();
    /// (1..4).for_each(|i| s.send(i).unwrap());
    /// drop(s);
    /// assert_eq!(r.iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// ```
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// The messages that are there.
    ///
    /// # Examples
    /// ```
    /// let (s, r) = reveille::sync::mpmc::channel();
    /// (1..4).for_each(|i| s.send(i).unwrap());
    /// assert_eq!(r.try_iter().count(), 3);
    /// ```
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }

    /// How many messages are there.
    ///
    /// # Examples
    /// ```
    /// let (s, r) = reveille::sync::mpmc::sync_channel(1);
    /// s.send('a').unwrap();
    /// assert_eq!((r.len(), r.is_empty(), r.is_full(), r.capacity()), (1, false, true, Some(1)));
    /// ```
    pub fn len(&self) -> usize {
        match &self.flavor {
            Flavor::Chan(chan) => chan.len(),
            Flavor::Timer(timer) => usize::from(timer.is_due()),
            Flavor::Never => 0,
        }
    }

    /// No message is there. A channel without capacity is always empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// There is no room for another message. A channel without capacity is always full.
    pub fn is_full(&self) -> bool {
        match &self.flavor {
            Flavor::Chan(chan) => chan.is_full(),
            Flavor::Timer(timer) => timer.is_due(),
            Flavor::Never => true,
        }
    }

    /// How many messages the channel holds at most; `None`: any number.
    pub fn capacity(&self) -> Option<usize> {
        match &self.flavor {
            Flavor::Chan(chan) => chan.capacity(),
            Flavor::Timer(_) => Some(1),
            Flavor::Never => Some(0),
        }
    }

    /// Both receive from the same channel.
    ///
    /// # Examples
    /// ```
    /// let (_s, r) = reveille::sync::mpmc::channel::<()>();
    /// assert!(r.same_channel(&r.clone()));
    /// ```
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        match (&self.flavor, &other.flavor) {
            (Flavor::Chan(a), Flavor::Chan(b)) => Arc::ptr_eq(a, b),
            (Flavor::Timer(a), Flavor::Timer(b)) => Arc::ptr_eq(a, b),
            (Flavor::Never, Flavor::Never) => true,
            _ => false,
        }
    }
}

/// Receives from a timer, or from nobody.
#[cold]
fn sleep<T>(timer: Option<&Timer<T>>, mut patience: Patience) -> Result<T, RecvTimeoutError> {
    let deadline = patience.start();
    loop {
        if let Some(message) = timer.and_then(Timer::take) {
            return Ok(message);
        }
        if patience.is_none() || deadline.is_some_and(|d| d.is_over()) {
            return Err(RecvTimeoutError::Timeout);
        }
        let due = timer.and_then(Timer::due).and_then(|due| Patience::Until(due).start());
        let _nobody = Ticket::for_one().rest(Deadline::first(due, deadline));
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        let flavor = match &self.flavor {
            Flavor::Chan(chan) => {
                chan.join(Side::Recv);
                Flavor::Chan(Arc::clone(chan))
            }
            Flavor::Timer(timer) => Flavor::Timer(Arc::clone(timer)),
            Flavor::Never => Flavor::Never,
        };
        Receiver { flavor }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Flavor::Chan(chan) = &self.flavor {
            chan.part(Side::Recv);
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Receiver { .. }")
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
        IntoIter { receiver: self }
    }
}
