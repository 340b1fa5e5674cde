//! Contexts: what a thread of execution is while it is not running.
//!
//! There are two kinds. A *plain* context stands at a function call boundary: the calling
//! convention says that only a few registers matter. A *full* context stands at an arbitrary
//! instruction, where a signal interrupted it, and every register, flag and vector matters.
//!
//! Signal handlers see full contexts as frames, that is as an [`ucontext_t`](libc::ucontext_t)
//! followed by an XSAVE area. This module reads such frames, copies contexts out of them and
//! into them, and continues either kind without a system call:
//!
//! ```text
//!   signal frame --capture--> SavedContext ----resume----> running
//!        ^                        |
//!        '---------store----------'        (then return from the handler)
//!
//!   getcontext, makecontext ------> ucontext_t --setcontext--> running
//!   signal frame ------capture----> ucontext_t --setcontext--> running
//! ```
//!
//! * [`FrameRef`]: a checked view of a signal frame.
//! * [`SavedContext`]: an owned full context.
//! * [`ucontext`]: `getcontext` and its family on the platform's own `ucontext_t`.
//! * [`UserContext`]: the same for Rust, with closures.
//!
//! Everything here is independent of the runtime. Nothing but construction allocates, and
//! nothing takes a lock, so all of it may be used in a signal handler.

mod c_api;
mod convert;
mod frame;
mod make;
pub(crate) mod preempted;
mod saved;
pub(crate) mod start;
pub mod ucontext;
mod user;
pub(crate) mod x86_64;
pub(crate) mod xstate;

pub use frame::{Checks, FrameError, FrameRef, Gregs};
pub use saved::{SavedContext, resume_code};
pub use user::UserContext;
pub use xstate::XstateError;

/// Bytes of the largest extended state that this CPU and system can have.
pub(crate) fn xsave_size() -> usize {
    xstate::size().max(xstate::MIN_SIZE).next_multiple_of(8)
}
