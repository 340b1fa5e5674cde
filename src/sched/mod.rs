//! The scheduler's pure half: queues and choices over plain handles.
//!
//! No libc, no assembly, no thread-locals, no allocation: everything here runs under loom and in the
//! simulator. `worker` is what puts it to use.
#![allow(unsafe_code)]

pub(crate) mod flow;
pub(crate) mod heap;
pub(crate) mod idle;
pub(crate) mod list;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod policy;
pub(crate) mod random;
pub(crate) mod ring;
pub(crate) mod shares;
#[cfg(all(test, not(loom)))]
mod sim;

/// Something that can stand in an intrusive list.
pub(crate) trait Linked {
    /// Its link.
    fn link(&self) -> &core::cell::Cell<*const Self>;
}
