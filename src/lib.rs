#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![cfg_attr(loom, allow(dead_code))]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!("reveille runs on x86-64 Linux with glibc");

// Under loom the crate is its pure half: prim, protocol, sched.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod bench_support;
#[cfg(not(loom))]
mod builder;
#[cfg(not(loom))]
mod check;
#[cfg(not(loom))]
pub mod context;
#[cfg(not(loom))]
pub mod doctor;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod dump;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
pub mod lock;
#[cfg(not(loom))]
mod lot;
#[cfg(not(loom))]
pub mod preempt;
mod prim;
mod protocol;
#[cfg(not(loom))]
mod runtime;
mod sched;
#[cfg(not(loom))]
mod slot;
#[cfg(not(loom))]
mod stats;
#[cfg(not(loom))]
pub mod sync;
#[cfg(not(loom))]
mod sys;
#[cfg(not(loom))]
mod tcb;
#[cfg(not(loom))]
pub mod thread;
#[cfg(not(loom))]
mod tls;
#[cfg(not(loom))]
mod trace;
#[cfg(not(loom))]
mod waiting;
#[cfg(not(loom))]
mod worker;

#[cfg(not(loom))]
pub use builder::Builder;
#[cfg(not(loom))]
pub use context::start::StartMethod;
#[cfg(not(loom))]
pub use error::{Error, ShutdownError};
#[cfg(not(loom))]
pub use runtime::Runtime;
#[cfg(not(loom))]
pub use stats::{RuntimeStats, Slice, SliceEnd, WorkerStats};
#[cfg(not(loom))]
pub use waiting::{Waiting, WaitsFor};
