//! Between signal frames and `ucontext_t`: out of a frame, and into one.
//!
//! A frame lives on the stack that its handler runs on, and dies when the handler returns.
//! [`capture`] makes a copy that lives as long as its buffers; [`store`] writes any context
//! into a frame, so that *returning from the handler* continues it.

#![allow(unsafe_code)]

use core::ptr;

use libc::ucontext_t;

use super::frame::{FrameError, FrameRef, TAIL};
use super::ucontext::{FPMEM, Kind, MXCSR, classify, has_mask};
use super::xstate;

/// Bytes that [`capture`] needs for the extended state: at least this CPU's XSAVE area and a
/// magic number, rounded up to whole units of 64.
///
/// # Examples
/// ```
/// assert!(reveille::context::ucontext::xstate_buffer_size() >= 576);
/// ```
#[must_use]
pub fn xstate_buffer_size() -> usize {
    (xstate::size().max(xstate::MIN_SIZE) + TAIL).next_multiple_of(xstate::ALIGN)
}

/// Copies a signal frame into a `ucontext_t` and a buffer for its extended state. Every
/// `setcontext` of this module continues the copy exactly where the signal hit. Safe in signal
/// handlers.
///
/// `ucp.uc_link` becomes null. `ucp` refers to `xstate`: they live and die together.
///
/// # Errors
/// [`FrameError::Misaligned`] if the buffer is not aligned to 64 bytes, [`FrameError::NoRoom`]
/// if it is smaller than the frame needs ([`xstate_buffer_size`] is always enough).
///
/// # Safety
/// `ucp` is writable, and so is `xstate` for `len` bytes; neither overlaps the frame.
pub unsafe fn capture(
    ucp: *mut ucontext_t,
    frame: &FrameRef,
    xstate: *mut u8,
    len: usize,
) -> Result<(), FrameError> {
    let needed = frame.xstate_len() + TAIL;
    if xstate.is_null() || !xstate.addr().is_multiple_of(xstate::ALIGN) {
        return Err(FrameError::Misaligned);
    }
    if len < needed {
        return Err(FrameError::NoRoom);
    }
    let from = frame.as_ptr();
    // SAFETY: the frame has `needed` bytes and the fields named; so do the destinations.
    unsafe {
        ptr::copy_nonoverlapping(frame.fpstate(), xstate, needed);
        (*ucp).uc_flags = (*from).uc_flags;
        (*ucp).uc_link = ptr::null_mut();
        (*ucp).uc_stack = (*from).uc_stack;
        (*ucp).uc_mcontext.gregs = (*from).uc_mcontext.gregs;
        (*ucp).uc_mcontext.fpregs = xstate.cast();
        (&raw mut (*ucp).uc_sigmask).cast::<u64>().write(frame.sigmask());
    }
    Ok(())
}

/// Writes the context `ucp`, of any kind, into a signal frame: returning from the handler
/// continues it, with its signal mask if it has one and the frame's otherwise. Safe in signal
/// handlers.
///
/// # Errors
/// What is wrong with `ucp`, or [`FrameError::NoRoom`]. The frame is unchanged then.
///
/// # Safety
/// As for [`setcontext`](super::ucontext::setcontext), when the handler returns.
pub unsafe fn store(frame: &FrameRef, ucp: *const ucontext_t) -> Result<(), FrameError> {
    // SAFETY: the contract is the caller's; classify() has checked what is written.
    unsafe {
        match classify(ucp)? {
            Kind::Full(from) => {
                frame.write_xstate(from.fpstate(), from.xstate_len())?;
                frame.write_gregs(&from.gregs());
            }
            Kind::Plain => store_plain(frame, ucp),
        }
        if has_mask(ucp) {
            frame.write_mask((&raw const (*ucp).uc_sigmask).cast::<u64>().read());
        }
    }
    Ok(())
}

/// A plain context lacks what a frame has: flags and vectors get the values that functions
/// start with, and `getcontext` returns 0.
unsafe fn store_plain(frame: &FrameRef, ucp: *const ucontext_t) {
    /// Interrupts on, and the bit that is always set.
    const FLAGS: i64 = 0x202;
    // SAFETY: a plain context is a whole ucontext_t; the frame's legacy state and header are
    // inside its MIN_SIZE bytes, and aligned.
    unsafe {
        let mut gregs = (&raw const (*ucp).uc_mcontext.gregs).read();
        gregs[libc::REG_RAX as usize] = 0;
        gregs[libc::REG_EFL as usize] = FLAGS;
        frame.write_gregs(&gregs);

        let own = ucp.byte_add(FPMEM).cast::<u8>();
        let to = frame.fpstate();
        to.write_bytes(0, xstate::MXCSR);
        to.cast::<u16>().write(own.cast::<u16>().read());
        to.add(xstate::MXCSR).cast::<u32>().write(ucp.byte_add(MXCSR).cast::<u32>().read());
        let present = to.add(xstate::HEADER).cast::<u64>();
        present.write(present.read() & xstate::PKRU | xstate::LEGACY_COMPONENTS);
    }
}
