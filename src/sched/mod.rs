//! The scheduler's pure half: queues and choices over plain handles.
//!
//! No libc, no assembly, no thread-locals, no allocation: everything here runs under loom and in the
//! simulator. `worker` is what puts it to use.
#![allow(unsafe_code)]

pub(crate) mod list;
pub(crate) mod policy;
pub(crate) mod ring;

/// Something that can stand in an intrusive list.
pub(crate) trait Linked {
    /// Its link.
    fn link(&self) -> &core::cell::Cell<*const Self>;
}
