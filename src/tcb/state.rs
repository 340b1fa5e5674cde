//! The states of a thread and the words that carry them.

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
    /// It waits for `target` to end.
    Join,
    /// It parked.
    Park,
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

/// Values of `Record::join` that are not the address of a joiner's record.
///
/// ```text
///  RUNNING --a thread joins--> address --ends--> DONE
///          --a kernel thread joins--> KERNEL --ends--> DONE, futex wake
///          --handle dropped--> DETACHED --ends--> (slot free)
///          --ends, value to drop--> ENDING --> DONE
/// ```
pub(crate) mod join {
    pub(crate) const RUNNING: usize = 0;
    pub(crate) const DONE: usize = 1;
    pub(crate) const DETACHED: usize = 2;
    pub(crate) const KERNEL: usize = 3;
    pub(crate) const ENDING: usize = 4;
    /// Larger values are addresses.
    pub(crate) const LAST: usize = ENDING;
}

/// Values of the park token.
pub(crate) mod park {
    pub(crate) const EMPTY: u32 = 0;
    pub(crate) const NOTIFIED: u32 = 1;
    pub(crate) const PARKED: u32 = 2;
}
