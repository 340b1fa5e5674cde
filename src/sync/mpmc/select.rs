//! Waiting for several operations at once: what a program sees.

use super::case::Case;
use super::error::{ReadyTimeoutError, SelectTimeoutError, TryReadyError, TrySelectError};
use super::operation::Operations;
use super::receiver::Receiver;
use super::selected::SelectedOperation;
use super::sender::Sender;
use super::waiter::Patience;
use core::fmt;
use std::time::{Duration, Instant};

/// Waits for one of several operations, on channels of any types.
///
/// Each of [`send`](Select::send) and [`recv`](Select::recv) adds an operation and returns its index. Then one of the
/// selecting methods chooses an operation that does not have to wait, or waits until there is one, and the
/// [`SelectedOperation`] is completed. Or one of the `ready` methods just says which operation seems ready.
/// If several are ready, one of them is chosen at random. An operation whose channel has lost its other side is ready,
/// and gives an error.
///
/// [`select!`](crate::select) is shorter where the operations are known beforehand.
///
/// # Examples
/// ```
/// use reveille::{sync::mpmc::{self, Select}, thread};
/// let channels: Vec<_> = (0..3).map(|_| mpmc::channel()).collect();
/// let t = thread::spawn({
///     let s = channels[1].0.clone();
///     move || s.send("from the second").unwrap()
/// });
/// let mut select = Select::new();
/// channels.iter().for_each(|(_, r)| _ = select.recv(r));
/// let oper = select.select();
/// let index = oper.index();
/// assert_eq!((index, oper.recv(&channels[index].1)), (1, Ok("from the second")));
/// # t.join().unwrap();
/// ```
#[derive(Clone)]
pub struct Select<'a> {
    operations: Operations<'a>,
}

impl<'a> Select<'a> {
    /// Without operations.
    #[must_use]
    pub fn new() -> Select<'a> {
        Select { operations: Operations::new(false) }
    }

    /// As [`new`](Select::new); of several operations that are ready, the one added first is chosen.
    #[must_use]
    pub fn new_biased() -> Select<'a> {
        Select { operations: Operations::new(true) }
    }

    /// Adds sending to `s`. The message is given to [`SelectedOperation::send`].
    pub fn send<T>(&mut self, s: &'a Sender<T>) -> usize {
        self.operations.add(s as &dyn Case, true)
    }

    /// Adds receiving from `r`.
    pub fn recv<T>(&mut self, r: &'a Receiver<T>) -> usize {
        self.operations.add(r as &dyn Case, false)
    }

    /// Takes the operation with that index out; the others keep theirs.
    ///
    /// # Panics
    /// If there is none.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{Select, channel, never};
    /// let ((_s, r), nothing) = (channel::<()>(), never::<()>());
    /// let mut select = Select::new();
    /// let (a, b) = (select.recv(&r), select.recv(&nothing));
    /// select.remove(a);
    /// assert!(b == 1 && select.try_select().is_err());
    /// ```
    pub fn remove(&mut self, index: usize) {
        self.operations.remove(index);
    }

    /// Chooses an operation that can be done at once.
    ///
    /// # Errors
    /// If there is none.
    pub fn try_select(&mut self) -> Result<SelectedOperation<'a>, TrySelectError> {
        self.operations.select(Patience::Try).ok_or(TrySelectError)
    }

    /// Chooses an operation, waiting until one can be done.
    ///
    /// # Panics
    /// If there are no operations.
    pub fn select(&mut self) -> SelectedOperation<'a> {
        self.operations.must_not_be_empty();
        self.operations.select(Patience::Forever).expect("waited for ever")
    }

    /// As [`select`](Select::select), waiting for at most `timeout`.
    ///
    /// # Errors
    /// If that was not long enough.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{Select, channel};
    /// use std::time::Duration;
    /// let (_s, r) = channel::<()>();
    /// let mut select = Select::new();
    /// select.recv(&r);
    /// assert!(select.select_timeout(Duration::from_millis(1)).is_err());
    /// ```
    pub fn select_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.operations.select(Patience::For(timeout)).ok_or(SelectTimeoutError)
    }

    /// As [`select`](Select::select), waiting until `deadline` at the latest.
    ///
    /// # Errors
    /// If that was not long enough.
    pub fn select_deadline(
        &mut self,
        deadline: Instant,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.operations.select(Patience::Until(deadline)).ok_or(SelectTimeoutError)
    }

    /// The index of an operation that seems ready. Another thread may be faster.
    ///
    /// # Errors
    /// If none is ready.
    pub fn try_ready(&mut self) -> Result<usize, TryReadyError> {
        self.operations.ready(Patience::Try).ok_or(TryReadyError)
    }

    /// The index of an operation that seems ready, waiting for one.
    ///
    /// # Panics
    /// If there are no operations.
    ///
    /// # Examples
    /// ```
    /// use reveille::sync::mpmc::{Select, channel};
    /// let (s, r) = channel();
    /// s.send(1).unwrap();
    /// let mut select = Select::new();
    /// let only = select.recv(&r);
    /// assert_eq!(select.ready(), only);
    /// assert_eq!(r.try_recv(), Ok(1));
    /// ```
    pub fn ready(&mut self) -> usize {
        self.operations.must_not_be_empty();
        self.operations.ready(Patience::Forever).expect("waited for ever")
    }

    /// As [`ready`](Select::ready), waiting for at most `timeout`.
    ///
    /// # Errors
    /// If that was not long enough.
    pub fn ready_timeout(&mut self, timeout: Duration) -> Result<usize, ReadyTimeoutError> {
        self.operations.ready(Patience::For(timeout)).ok_or(ReadyTimeoutError)
    }

    /// As [`ready`](Select::ready), waiting until `deadline` at the latest.
    ///
    /// # Errors
    /// If that was not long enough.
    pub fn ready_deadline(&mut self, deadline: Instant) -> Result<usize, ReadyTimeoutError> {
        self.operations.ready(Patience::Until(deadline)).ok_or(ReadyTimeoutError)
    }
}

impl Default for Select<'_> {
    fn default() -> Self {
        Select::new()
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Select { .. }")
    }
}
