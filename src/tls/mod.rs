//! Thread-local storage that travels with the thread.
//!
//! A reveille thread owns a complete TLS block with a glibc thread control block in it, and a switch
//! writes the FS base. To glibc, to the compiler and to every library the thread is then a thread
//! like any other: malloc's cache, `errno`, `thread_local!`, stdio's lock owners, the stack canary.
//!
//! * [`hot`]: the words of our own that live in that storage
//! * [`due`]: what happens when they say that a tick is due
//! * [`glibc`]: what is found by symbol in the C library
//! * [`harvest`]: a block made by glibc itself, from a kernel thread that leaves it behind; two of
//!   them are the reference ([`template`]) and the anchors on glibc's list
//! * [`block`]: blocks made by hand after that reference and linked between the anchors
//! * [`modules`], [`reset`]: making a block as good as new when a thread ends
//!
//! A block is never freed (invariant S1): malloc's per-thread structures hang off it.
#![allow(unsafe_code)]

pub(crate) mod block;
pub(crate) mod due;
pub(crate) mod glibc;
pub(crate) mod harvest;
pub(crate) mod hot;
pub(crate) mod keys;
pub(crate) mod modules;
pub(crate) mod reset;
pub(crate) mod template;

core::arch::global_asm!(include_str!("../../asm/x86_64/tls.S"));
