//! The atomics of the pure half: the processor's, or loom's under `--cfg loom`.
//!
//! `protocol` and `sched` take theirs from here, so that what runs and what the models check is the same
//! code. With `--cfg loom` the crate consists of those two modules.

#[cfg(loom)]
#[path = "prim/model.rs"]
mod chosen;
#[cfg(not(loom))]
#[path = "prim/real.rs"]
mod chosen;

pub(crate) use chosen::*;
