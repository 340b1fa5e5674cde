#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!("reveille runs on x86-64 Linux with glibc");

#[doc(hidden)]
pub mod bench_support;
mod builder;
mod check;
pub mod context;
pub mod doctor;
#[doc(hidden)]
pub mod dump;
mod error;
mod fork;
mod lock;
pub mod preempt;
mod prim;
mod runtime;
mod sched;
mod slot;
mod stats;
mod sys;
mod tcb;
pub mod thread;
mod tls;
mod trace;
mod worker;

pub use builder::{Builder, StartMethod};
pub use error::{Error, ShutdownError};
pub use runtime::Runtime;
pub use stats::{RuntimeStats, Slice, SliceEnd, WorkerStats};
