//! What can go wrong when a runtime or a thread is started.

use std::fmt;
use std::io;

/// Why a runtime or a thread could not be started. The text says what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

/// The cases, kept private so that more can be told apart later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Kind {
    #[error("a runtime needs at least one worker; ask for 1 or more, or leave the number out")]
    NoWorkers,
    #[error("{0} workers are more than the {1} that one runtime can have")]
    TooManyWorkers(usize, usize),
    #[error("a time slice of {0:?} is outside the {1:?} to {2:?} that a slice may last")]
    BadSlice(std::time::Duration, std::time::Duration, std::time::Duration),
    #[error(
        "signal {0} cannot carry the tick: {1}; leave the default (SIGALRM) or take a real-time signal"
    )]
    BadSignal(i32, &'static str),
    #[error("a stack of {0} bytes is too small for a thread; the least is {1} bytes")]
    StackTooSmall(usize, usize),
    #[error("a stack of {0} bytes is more than the {1} bytes that a thread may have")]
    StackTooLarge(usize, usize),
    #[error("this system lacks {0}, which reveille needs: {1}")]
    Unsupported(&'static str, &'static str),
    #[error(
        "this C library has no symbol {0}; reveille needs glibc 2.34 or later, dynamically linked"
    )]
    MissingSymbol(&'static str),
    #[error(
        "the C library's thread block is not as expected: {0}; this glibc is not supported yet"
    )]
    UnknownTcb(String),
    #[error(
        "the runtime has no workers in this process, a child made by fork(2); start another one"
    )]
    Forked,
    #[error(
        "the runtime has been shut down or dropped; spawn before that, or from one of its threads"
    )]
    Closed,
    #[error("{0}")]
    Os(&'static str, #[source] io::Error),
}

impl Error {
    pub(crate) fn os(what: &'static str, source: impl Into<io::Error>) -> Error {
        Error(Kind::Os(what, source.into()))
    }

    /// As an I/O error, for the interfaces that std gives one: out of memory stays recognizable.
    pub(crate) fn into_io(self) -> io::Error {
        match self.0 {
            Kind::Os(_, source) => source,
            kind => io::Error::new(io::ErrorKind::InvalidInput, kind),
        }
    }
}

/// Threads that still ran when a runtime was to be shut down.
#[derive(Debug)]
pub struct ShutdownError {
    pub(crate) running: u64,
}

impl ShutdownError {
    /// How many threads still ran.
    pub fn running(&self) -> u64 {
        self.running
    }
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} threads of the runtime still run; join them or tell them to end",
            self.running
        )
    }
}

impl std::error::Error for ShutdownError {}
