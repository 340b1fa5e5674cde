//! The lowest level of locks: preemption off by one flag, then spin.
#![allow(unsafe_code)]

pub(crate) mod spin;
