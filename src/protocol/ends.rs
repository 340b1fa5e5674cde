//! The ends of threads, for whoever waits for all of them.
//!
//! Each worker counts its own ends, with plain stores. Only while somebody waits it also comes here, after it
//! has counted: of two workers that end the last two threads, the one that comes second sees both counts, and
//! so one of them at least sees that all threads have ended.
#![forbid(unsafe_code)]

use crate::prim::{AtomicU32, Ordering};

/// How many ends were announced; whoever waits sleeps on the word.
#[derive(Default)]
pub(crate) struct Ends(AtomicU32);

impl Ends {
    /// A thread has ended and has been counted. What others have counted before they came here is seen.
    pub(crate) fn announce(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// To be read before the counts are added up: what [`word`](Ends::word) must still be when one sleeps.
    pub(crate) fn seen(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}
