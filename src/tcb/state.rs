//! The states of a thread.

/// What must be done with a record once its stack has been left, by the side that was switched to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum After {
    /// The worker's own loop: nothing.
    Loop = 0,
    /// It gave way: to the tail of the worker's queue.
    Yield,
    /// It used up its slice, and said so itself: to the queue of sliced threads.
    Sliced,
    /// It was preempted: as above, after the tick's signal is unblocked.
    Preempted,
    /// It was preempted for a sleeper whose time has come: it goes on before others of its kind.
    Interrupted,
    /// It waits for `target` to end.
    Join,
    /// It parked.
    Park,
    /// It waits in the lot, whose bucket stays locked until its stack has been left.
    Wait,
    /// It waits in the lot, and may have been woken before its stack was left.
    Rest,
    /// It has ended.
    Exit,
    /// It has ended and its joiner is the one that runs now.
    ExitToJoiner,
}

/// How a thread's body ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// It has not, yet.
    Running = 0,
    /// The result is in the packet.
    Returned,
    /// The payload is in the record.
    Panicked,
    /// pthread_exit or cancellation.
    Exited,
    /// The result has been taken or dropped.
    Taken,
}

/// Where a thread is, for dumps and invariant checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// The slot has no thread.
    Free = 0,
    /// In a queue.
    Ready,
    /// On a worker.
    Running,
    /// Waiting for something.
    Blocked,
    /// Ended, waiting for its joiner.
    Done,
    /// A worker's loop.
    Loop,
}
