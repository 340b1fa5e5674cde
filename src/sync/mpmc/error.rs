//! The errors that std does not have.

use core::fmt;
use std::error::Error;
use std::sync::mpsc::SendError;

/// A message that could not be sent in time, or at all; from [`send_timeout`](super::Sender::send_timeout) and
/// [`send_deadline`](super::Sender::send_deadline).
///
/// # Examples
/// ```
/// use reveille::sync::mpmc::{SendTimeoutError, sync_channel};
/// use std::time::Duration;
/// let (s, _r) = sync_channel(1);
/// s.send(1).unwrap();
/// assert_eq!(s.send_timeout(2, Duration::from_millis(1)), Err(SendTimeoutError::Timeout(2)));
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum SendTimeoutError<T> {
    /// The channel stayed full.
    Timeout(T),
    /// All receivers are gone.
    Disconnected(T),
}

impl<T> SendTimeoutError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout(message) | SendTimeoutError::Disconnected(message) => message,
        }
    }

    /// The time was over.
    pub fn is_timeout(&self) -> bool {
        matches!(self, SendTimeoutError::Timeout(_))
    }

    /// All receivers are gone.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, SendTimeoutError::Disconnected(_))
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "Timeout(..)",
            SendTimeoutError::Disconnected(_) => "Disconnected(..)",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "timed out waiting on send operation",
            SendTimeoutError::Disconnected(_) => "sending on a disconnected channel",
        })
    }
}

impl<T> Error for SendTimeoutError<T> {}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(e: SendError<T>) -> SendTimeoutError<T> {
        SendTimeoutError::Disconnected(e.0)
    }
}

/// Defines an error without contents.
macro_rules! nothing {
    ($(#[$doc:meta])* $name:ident, $text:literal) => {
        $(#[$doc])*
        #[derive(PartialEq, Eq, Clone, Copy, Debug)]
        pub struct $name;

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)
            }
        }

        impl Error for $name {}
    };
}

nothing! {
    /// No operation could be done at once; from [`Select::try_select`](super::Select::try_select).
    TrySelectError, "all operations in select would block"
}
nothing! {
    /// No operation could be done in time; from [`Select::select_timeout`](super::Select::select_timeout).
    SelectTimeoutError, "timed out waiting on select"
}
nothing! {
    /// No operation was ready; from [`Select::try_ready`](super::Select::try_ready).
    TryReadyError, "all operations in select would block"
}
nothing! {
    /// No operation became ready in time; from [`Select::ready_timeout`](super::Select::ready_timeout).
    ReadyTimeoutError, "timed out waiting on select"
}
