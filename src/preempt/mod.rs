//! Preemption: the tick, the decision, and the user's guard against it.
//!
//! * `site`: what the handler knows of the worker it interrupts
//! * `ticker`: when ticks come
//! * `handler`: the signal handler
//! * `action`: the program's own handlers, and the way back from them
//! * `overflow`: the guard page
//! * `pass_on`: signals that are somebody else's
//! * `decide`: whether to switch, as a pure function
//! * `guard`: [`disable`] and [`checkpoint`]
//!
//! This side imports nothing from the scheduler: it asks the worker through two functions in the site.
//!
#![doc = include_str!("../../docs/preemption.md")]
#![allow(unsafe_code)]

pub(crate) mod action;
pub(crate) mod alarm;
mod decide;
pub(crate) mod floor;
mod guard;
pub(crate) mod handler;
mod install;
pub(crate) mod overflow;
mod pass_on;
pub(crate) mod site;
pub(crate) mod ticker;

pub(crate) use crate::tls::due::set_give_way;
pub(crate) use guard::hook_panics;
pub use guard::{Guard, assert_on, checkpoint, disable, is_disabled};
