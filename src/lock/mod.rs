//! The lowest level of locks: [`spin`], with preemption off, for a few instructions; [`slow`], with it on,
//! for rare long work.
#![allow(unsafe_code)]

pub(crate) mod slow;
pub(crate) mod spin;
