//! Preemptive user-level threads for Linux.

pub mod context;
