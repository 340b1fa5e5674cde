//! The words by which threads wait for each other, each with its protocol as a small type.
//!
//! * [`token`]: park and unpark
//! * [`join`]: the end of a thread, and who waits for it
//! * [`ends`]: the last end of all
//! * [`spin`]: a lock held for a few instructions
//!
//! Nothing here blocks or wakes: a transition *says* what its caller has to do (`#[must_use]`), because
//! only `worker` knows how. So everything here runs under loom; `models` are the models.

pub(crate) mod ends;
pub(crate) mod join;
#[cfg(all(test, loom))]
pub(crate) mod models;
pub(crate) mod spin;
pub(crate) mod token;
