//! Preemptive user-level threads for Linux.
