//! An owned full context: everything that a signal interrupted, kept until it is continued.
//!
//! The memory is allocated when the context is made, so that capturing in a handler and
//! resuming later need none. [`SavedContext::resume`] loads it in `asm/x86_64/setcontext.S`
//! (that file draws the memory it touches) without a system call; the usual way back through
//! `sigreturn` costs one, and needs a frame on the stack.
//!
//! Invariants: `xstate` is as large as this CPU's XSAVE area, and valid if the frame was; what
//! lies beyond the frame's part of it is never loaded, since the header does not claim it.

#![allow(unsafe_code)]

use core::{ops::Range, ptr};

use super::frame::{FrameError, FrameRef, Gregs};
use super::xstate;

/// Bytes below the stack pointer that belong to the interrupted function (System V ABI).
const RED_ZONE: usize = 128;
/// The three words that the resume puts below the red zone: RDI, RFLAGS, RIP.
#[repr(C)]
struct Parting {
    rdi: u64,
    flags: u64,
    rip: u64,
}
/// From the saved stack pointer down to the first of these words.
const ROOM: usize = RED_ZONE + size_of::<Parting>();

/// Byte offset of a register in [`Gregs`].
pub(crate) const fn greg_offset(register: libc::c_int) -> usize {
    register as usize * size_of::<libc::greg_t>()
}

core::arch::global_asm!(
    include_str!("../../asm/x86_64/setcontext.S"),
    R8 = const greg_offset(libc::REG_R8),
    R9 = const greg_offset(libc::REG_R9),
    R10 = const greg_offset(libc::REG_R10),
    R11 = const greg_offset(libc::REG_R11),
    R12 = const greg_offset(libc::REG_R12),
    R13 = const greg_offset(libc::REG_R13),
    R14 = const greg_offset(libc::REG_R14),
    R15 = const greg_offset(libc::REG_R15),
    RDI = const greg_offset(libc::REG_RDI),
    RSI = const greg_offset(libc::REG_RSI),
    RBP = const greg_offset(libc::REG_RBP),
    RBX = const greg_offset(libc::REG_RBX),
    RDX = const greg_offset(libc::REG_RDX),
    RAX = const greg_offset(libc::REG_RAX),
    RCX = const greg_offset(libc::REG_RCX),
    RSP = const greg_offset(libc::REG_RSP),
    RIP = const greg_offset(libc::REG_RIP),
    EFL = const greg_offset(libc::REG_EFL),
    RED_ZONE = const RED_ZONE,
    ROOM = const ROOM,
    AT_FLAGS = const core::mem::offset_of!(Parting, flags),
    AT_RIP = const core::mem::offset_of!(Parting, rip),
    RIP_BELOW = const ROOM - core::mem::offset_of!(Parting, rip),
);

unsafe extern "C" {
    fn reveille_resume(gregs: *const Gregs, xstate: *const u8, components: u64) -> !;
    static reveille_resume_begin: u8;
    static reveille_resume_end: u8;
}

/// Continues a full context from its parts, without a system call.
///
/// # Safety
/// As for [`SavedContext::resume`]; `xstate` is an area that [`xstate::check`] accepts.
#[inline]
pub(crate) unsafe fn resume_raw(gregs: *const Gregs, xstate: *const u8) -> ! {
    // SAFETY: the caller keeps the contract.
    unsafe { reveille_resume(gregs, xstate, xstate::mask()) }
}

/// The addresses of the code which loads a full context.
///
/// A signal handler that finds the interrupted instruction pointer in this range must not
/// switch contexts: some registers already belong to the context being continued, and some
/// do not yet.
///
/// # Examples
/// ```
/// let code = reveille::context::resume_code();
/// assert!(code.start < code.end);
/// ```
#[must_use]
pub fn resume_code() -> Range<usize> {
    (&raw const reveille_resume_begin).addr()..(&raw const reveille_resume_end).addr()
}

/// One piece of an XSAVE area; a slice of them has the alignment that XRSTOR wants.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Piece([u8; xstate::ALIGN]);

/// A full context: general registers, flags, instruction and stack pointer, signal mask and
/// the whole extended state. It says nothing about the stack's *contents*.
#[repr(C, align(64))]
pub struct SavedContext {
    gregs: Gregs,
    mask: u64,
    xstate: Box<[Piece]>,
}

impl SavedContext {
    /// Makes room for a context. This allocates, so it is not for signal handlers.
    ///
    /// The new context is empty: there is nothing to continue until one is captured.
    ///
    /// # Examples
    /// ```
    /// let saved = reveille::context::SavedContext::new();
    /// assert!(saved.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> SavedContext {
        let len = xstate::size().max(xstate::MIN_SIZE).div_ceil(xstate::ALIGN);
        let mut pieces = vec![Piece([0; xstate::ALIGN]); len].into_boxed_slice();
        let mxcsr = xstate::MXCSR;
        pieces[0].0[mxcsr..mxcsr + 4].copy_from_slice(&xstate::MXCSR_DEFAULT.to_ne_bytes());
        pieces[0].0[..2].copy_from_slice(&xstate::X87_DEFAULT.to_ne_bytes());
        SavedContext { gregs: [0; 23], mask: 0, xstate: pieces }
    }

    /// Has nothing been captured yet?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gregs[libc::REG_RIP as usize] == 0
    }

    /// Copies the context out of a signal frame. Safe in signal handlers.
    #[inline]
    pub fn capture_from_frame(&mut self, frame: &FrameRef) {
        self.gregs = frame.gregs();
        self.mask = frame.sigmask();
        let len = frame.xstate_len().min(self.xstate_len());
        // SAFETY: both areas have `len` bytes, and this one is ours alone. The frame's
        // components fit, because FrameRef refuses what is larger than this CPU's area.
        unsafe {
            ptr::copy_nonoverlapping(frame.fpstate(), self.xstate.as_mut_ptr().cast::<u8>(), len);
        }
    }

    /// Writes the context into a signal frame, so that returning from the handler continues it.
    /// Safe in signal handlers.
    ///
    /// # Errors
    /// [`FrameError::NoRoom`] if the frame cannot hold all of the extended state,
    /// [`FrameError::Address`] if this context is empty. The frame is unchanged then.
    ///
    /// # Safety
    /// As for [`resume`](Self::resume), at the time the handler returns.
    pub unsafe fn store_into_frame(&self, frame: &FrameRef) -> Result<(), FrameError> {
        if self.is_empty() {
            return Err(FrameError::Address);
        }
        // SAFETY: our area is valid; the caller says that continuing this context is sound.
        unsafe {
            frame.write_xstate(self.xstate(), self.xstate_len())?;
            frame.write_gregs(&self.gregs);
            frame.write_mask(self.mask);
        }
        Ok(())
    }

    /// Continues the context exactly where it was interrupted, without a system call. The
    /// signal mask is *not* restored; see [`sigmask`](Self::sigmask).
    ///
    /// # Safety
    /// * The context was captured from a delivered or fully checked frame, is not running and
    ///   is continued once; its stack is intact, with 152 writable bytes below its stack
    ///   pointer of which the lower 24 are overwritten.
    /// * It is continued on a kernel thread, and with a thread-local storage, on which its code
    ///   may run.
    /// * The frames that the current stack holds are abandoned: nothing is dropped.
    #[inline]
    pub unsafe fn resume(&self) -> ! {
        debug_assert!(!self.is_empty());
        // SAFETY: `xstate` is valid (invariant); the rest is the caller's contract.
        unsafe { resume_raw(&raw const self.gregs, self.xstate()) }
    }

    /// The general registers.
    #[inline]
    #[must_use]
    pub fn gregs(&self) -> &Gregs {
        &self.gregs
    }

    /// The general registers, to be changed: the next [`resume`](Self::resume) answers for
    /// what they say.
    #[inline]
    #[must_use]
    pub fn gregs_mut(&mut self) -> &mut Gregs {
        &mut self.gregs
    }

    /// The signals that were blocked in the context: bit `n - 1` is signal `n`.
    #[inline]
    #[must_use]
    pub fn sigmask(&self) -> u64 {
        self.mask
    }

    /// The extended state: a standard-format XSAVE area, aligned to 64 bytes.
    #[inline]
    #[must_use]
    pub fn xstate(&self) -> *const u8 {
        self.xstate.as_ptr().cast()
    }

    /// Bytes of extended state.
    #[inline]
    #[must_use]
    pub fn xstate_len(&self) -> usize {
        self.xstate.len() * xstate::ALIGN
    }
}

impl Default for SavedContext {
    fn default() -> SavedContext {
        SavedContext::new()
    }
}

impl core::fmt::Debug for SavedContext {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SavedContext")
            .field("rip", &format_args!("{:#x}", self.gregs[libc::REG_RIP as usize]))
            .field("rsp", &format_args!("{:#x}", self.gregs[libc::REG_RSP as usize]))
            .field("mask", &format_args!("{:#x}", self.mask))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_context_is_empty_and_valid() {
        let saved = SavedContext::new();
        assert!(saved.is_empty());
        assert_eq!(saved.xstate().addr() % xstate::ALIGN, 0);
        assert!(saved.xstate_len() >= xstate::size());
        // SAFETY: aligned, and of that length.
        let verdict = unsafe { xstate::check(saved.xstate(), saved.xstate_len(), xstate::mask()) };
        assert_eq!(verdict, Ok(()));
    }

    #[test]
    fn resume_code_is_where_the_resume_is() {
        let entry = reveille_resume as *const () as usize;
        assert!(resume_code().contains(&entry));
        assert!(resume_code().len() < 256);
    }
}
