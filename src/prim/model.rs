//! Loom's, which try every order that the memory model allows.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Lets another thread of the model run: a spin of its own would never end.
pub(crate) fn pause(_round: u32) {
    loom::thread::yield_now();
}
