//! From a signal frame to a preempted context at rest: `Rest`, `Saved` and the extended state, in one piece.
//!
//! ```text
//!   at - size_of::<Rest>()  ->  Rest      control words, where the switch goes on: reveille_unpreempt
//!   at (64-aligned)         ->  Saved     general registers, flags, where the resume writes
//!                               XSAVE     the extended state, as the kernel saved it
//! ```
//!
//! The way back is resume.S. Nothing here calls libc, not even memcpy: its symbol may be bound lazily, under
//! the loader's lock, and this runs in the tick's handler.
#![allow(unsafe_code)]

use super::frame::FrameRef;
use super::x86_64::{Rest, Saved, reveille_unpreempt};
use super::xstate;
use core::arch::asm;

/// Bytes from `at` on for an extended state of `xstate_len` bytes.
#[inline(always)]
pub(crate) fn size(xstate_len: usize) -> usize {
    size_of::<Saved>() + xstate_len.next_multiple_of(8)
}

/// Writes the context that resumes what `frame` interrupted; returns its stack pointer.
///
/// # Safety
/// `at` is a multiple of 64, with [`size`] bytes of room from there and a `Rest` below; nobody uses them.
#[inline(always)]
pub(crate) unsafe fn save(frame: &FrameRef, at: usize) -> usize {
    let saved = at as *mut Saved;
    // SAFETY: the caller's promise; the frame has been checked. FXSAVE's area begins with the x87 word.
    unsafe {
        saved.write(Saved::from_gregs(|which| frame.greg(which)));
        copy(frame.fpstate(), saved.add(1).cast(), frame.xstate_len().div_ceil(8));
        rest(saved)
    }
}

/// Writes the `Rest` of a saved context whose extended state is complete; returns its stack pointer.
///
/// # Safety
/// As [`save`].
#[inline(always)]
pub(crate) unsafe fn rest(saved: *mut Saved) -> usize {
    let at = saved as usize - size_of::<Rest>();
    let rest = at as *mut Rest;
    // SAFETY: the caller's promise. The switch compares control words before the resume loads the whole
    // state: give it the thread's own, which lie at fixed places of the legacy area.
    unsafe {
        let xstate = saved.add(1).cast::<u8>();
        (&raw mut (*rest).rip).write(reveille_unpreempt as *const () as usize);
        (&raw mut (*rest).x87).write(xstate.cast::<u16>().read());
        (&raw mut (*rest).mxcsr).write(xstate.add(xstate::MXCSR).cast::<u32>().read());
    }
    at
}

/// Copies `words` times eight bytes.
///
/// # Safety
/// As memcpy(3). The frame goes on after its state, by the second magic number: a last word may be read.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, words: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "rep movsq",
            inout("rcx") words => _, inout("rsi") from => _, inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}
