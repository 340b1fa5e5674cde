//! What a runtime tells of itself: counters, and recorded time slices.

use crate::tcb::state::After;
use crate::thread::ThreadId;
use crate::trace::Entry;
use core::time::Duration;

/// Counters of a runtime since its start.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RuntimeStats {
    /// One for each worker.
    pub workers: Vec<WorkerStats>,
}

/// Counters of a worker since its start.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Switches, voluntary or not.
    pub switches: u64,
    /// Threads preempted by a tick.
    pub preemptions: u64,
    /// Ticks.
    pub ticks: u64,
    /// Successful thefts from other workers.
    pub steals: u64,
}

/// One stretch of time for which a worker ran a thread.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Slice {
    /// Index of the worker.
    pub worker: usize,
    /// The thread.
    pub thread: ThreadId,
    /// Begin, since the runtime's start.
    pub start: Duration,
    /// End, since the runtime's start.
    pub end: Duration,
    /// Why it ended.
    pub end_reason: SliceEnd,
}

/// Why a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceEnd {
    /// A tick.
    Preempted,
    /// The thread gave way.
    Yielded,
    /// The thread waited for something.
    Blocked,
    /// The thread ended.
    Exited,
}

impl Slice {
    pub(crate) fn new(worker: usize, e: Entry, begun: u64) -> Slice {
        let since = |t: u64| Duration::from_nanos(t.saturating_sub(begun));
        let reason = |after: u8| match after {
            x if x >= After::Sliced as u8 && x <= After::Interrupted as u8 => SliceEnd::Preempted,
            x if x == After::Yield as u8 => SliceEnd::Yielded,
            x if x == After::Exit as u8 || x == After::ExitToJoiner as u8 => SliceEnd::Exited,
            _ => SliceEnd::Blocked,
        };
        Slice {
            worker,
            thread: ThreadId::from_raw(e.thread),
            start: since(e.start),
            end: since(e.end),
            end_reason: reason(e.after),
        }
    }
}
