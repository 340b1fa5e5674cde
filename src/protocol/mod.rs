//! The words by which threads wait for each other, each with its protocol as a small type.
//!
//! * [`mutex`]: a mutex in one word
//! * [`token`]: park and unpark
//! * [`join`]: the end of a thread, and who waits for it
//! * [`waiting`]: waiting in a queue for anything else
//! * [`rwlock`]: readers and writers
//! * [`once`], [`barrier`], [`semaphore`]: what their names say
//! * [`slots`]: what signal handlers leave for later
//! * [`offer`]: waiting at channels
//! * [`ends`]: the last end of all
//! * [`spin`], [`owned`]: locks held for a few instructions
//! * [`futex_lock`], [`condvar2005`]: mutex and condvar of kernel threads
//!
//! Nothing here blocks or wakes: a transition *says* what its caller has to do (`#[must_use]`), because
//! only `worker` knows how. So everything here runs under loom; `models` are the models.

pub(crate) mod barrier;
pub(crate) mod condvar2005;
#[cfg(all(test, loom))]
mod condvar2005_models;
pub(crate) mod ends;
pub(crate) mod futex_lock;
pub(crate) mod join;
#[cfg(all(test, loom))]
pub(crate) mod models;
#[cfg(all(test, loom))]
mod models_mutex;
#[cfg(all(test, loom))]
mod models_offer;
#[cfg(all(test, loom))]
mod models_queue;
#[cfg(all(test, loom))]
mod models_wait;
#[cfg(all(test, loom))]
mod models_words;
pub(crate) mod mutex;
pub(crate) mod offer;
pub(crate) mod once;
pub(crate) mod owned;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
pub(crate) mod slots;
pub(crate) mod spin;
pub(crate) mod token;
pub(crate) mod waiting;
