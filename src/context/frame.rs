//! A checked view of a signal frame.
//!
//! The kernel builds a frame before it calls a handler, and the handler gets its address as
//! an `ucontext_t`. The frame is *shorter* than libc's type of that name, and its extended
//! state lies elsewhere, at an address the frame names:
//!
//! ```text
//!   uc  ->  uc_flags | uc_link | uc_stack | gregs, fpregs | uc_sigmask (8 bytes)
//!                                                  |
//!                                                  v  aligned to 64
//!           legacy state (512: the last 48 are the kernel's note) | header | components | MAGIC2
//!                                            |
//!                                            '-> MAGIC1, total size, components, size
//! ```
//!
//! So no reference to a whole `ucontext_t` is ever made here, and none is copied: fields are
//! read and written one by one through raw pointers.
//!
//! Invariant: a [`FrameRef`] made with [`Checks::Full`] can be loaded with `xrstor` and
//! continued without a fault that the frame's *contents* cause. All of this is safe in
//! signal handlers: no allocation, no lock, no panic.

#![allow(unsafe_code)]

use core::ptr;

use libc::ucontext_t;

use super::xstate::{self, XstateError};

/// The general registers in the order of `gregset_t` (indices are [`libc::REG_R8`] and so on).
pub type Gregs = [libc::greg_t; 23];

/// How many of the [`Gregs`] belong to the context: up to the flags. What follows (segments,
/// error code, trap number, old mask, fault address) describes the signal.
pub(crate) const LIVE_GREGS: usize = libc::REG_EFL as usize + 1;

/// `uc_flags`: the frame has extended state.
pub(crate) const UC_FP_XSTATE: u64 = 1;
/// `uc_flags`: the frame has a stack segment. The kernel sets it in every 64-bit frame.
pub(crate) const UC_SIGCONTEXT_SS: u64 = 2;

/// First address past those that a program can use (with four-level and five-level paging).
const USER_END: u64 = 1 << 56;
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
/// Where the kernel's note begins, and where it ends.
const NOTE: usize = 464;
/// Bytes of MAGIC2.
pub(crate) const TAIL: usize = size_of::<u32>();

/// The kernel's note in the unused bytes of the legacy state (`struct _fpx_sw_bytes`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Note {
    magic1: u32,
    extended_size: u32,
    components: u64,
    xstate_size: u32,
    padding: [u32; 7],
}

const _: () = assert!(NOTE + size_of::<Note>() == xstate::LEGACY_SIZE);

/// Why a frame was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame's address is null.
    #[error("no frame")]
    Null,
    /// The frame says that it has no extended state.
    #[error("the frame has no extended state")]
    NoXstate,
    /// The address of the extended state is null.
    #[error("the address of the extended state is null")]
    NullFpstate,
    /// The extended state is not aligned to 64 bytes.
    #[error("the extended state is not aligned to 64 bytes")]
    Misaligned,
    /// The first magic number is wrong.
    #[error("the extended state does not begin with its magic number")]
    Magic1,
    /// The second magic number is wrong: the frame was cut off.
    #[error("the extended state does not end with its magic number")]
    Magic2,
    /// The sizes contradict each other, or exceed what this CPU has.
    #[error("the sizes of the extended state are wrong")]
    Size,
    /// The context is not 64-bit code.
    #[error("the context is not 64-bit code")]
    Segment,
    /// The instruction or stack pointer is not an address of the program.
    #[error("the instruction pointer or stack pointer is not an address of the program")]
    Address,
    /// The extended state would make the CPU fault.
    #[error("bad extended state: {0}")]
    Xstate(#[from] XstateError),
    /// The destination has no room for the extended state, or not all of its components.
    #[error("no room for the extended state")]
    NoRoom,
}

/// How much of a frame is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// The kernel has just delivered this frame: only magic numbers and sizes are checked.
    Delivered,
    /// The frame comes from anywhere: registers and extended state are checked as well.
    Full,
}

/// A view of a signal frame whose layout has been checked. Copying it copies the view only.
#[derive(Debug, Clone, Copy)]
pub struct FrameRef {
    uc: *mut ucontext_t,
    fpstate: *mut u8,
    xstate_len: usize,
}

impl FrameRef {
    /// Looks at the frame at `uc`, the third argument of a `SA_SIGINFO` handler (or a copy made
    /// by [`ucontext::capture`](super::ucontext::capture)).
    ///
    /// # Errors
    /// Says what is wrong with the frame.
    ///
    /// # Safety
    /// `uc` is null or points to a signal frame: its fields up to the first 8 bytes of the
    /// signal mask are readable, and so is the memory at its `fpregs` for the size named there.
    /// They may hold anything. They stay valid and unchanged while the view is used.
    ///
    /// # Examples
    /// ```
    /// use reveille::context::{Checks, FrameError, FrameRef};
    /// // SAFETY: null is allowed.
    /// let refused = unsafe { FrameRef::new(std::ptr::null(), Checks::Full) };
    /// assert_eq!(refused.unwrap_err(), FrameError::Null);
    /// ```
    #[inline]
    pub unsafe fn new(uc: *const ucontext_t, checks: Checks) -> Result<FrameRef, FrameError> {
        if uc.is_null() {
            return Err(FrameError::Null);
        }
        // SAFETY: the caller says that the fields are readable.
        let (flags, fpstate) =
            unsafe { ((*uc).uc_flags, (&raw const (*uc).uc_mcontext.fpregs).read()) };
        if flags & UC_FP_XSTATE == 0 {
            return Err(FrameError::NoXstate);
        }
        if fpstate.is_null() {
            return Err(FrameError::NullFpstate);
        }
        let fpstate = fpstate.cast::<u8>();
        if fpstate.addr() % xstate::ALIGN != 0 {
            return Err(FrameError::Misaligned);
        }
        // SAFETY: the caller says that the legacy state is readable; it is aligned.
        let note = unsafe { fpstate.add(NOTE).cast::<Note>().read() };
        if note.magic1 != MAGIC1 {
            return Err(FrameError::Magic1);
        }
        let xstate_len = note.xstate_size as usize;
        if xstate_len < xstate::MIN_SIZE
            || xstate_len > xstate::size()
            || (note.extended_size as usize) < xstate_len + TAIL
        {
            return Err(FrameError::Size);
        }
        // SAFETY: inside the size that the frame names, which is at most this CPU's.
        if unsafe { fpstate.add(xstate_len).cast::<u32>().read_unaligned() } != MAGIC2 {
            return Err(FrameError::Magic2);
        }
        let frame = FrameRef { uc: uc.cast_mut(), fpstate, xstate_len };
        if checks == Checks::Full {
            check_registers(&frame.gregs())?;
            // SAFETY: aligned, and MIN_SIZE <= xstate_len bytes are readable.
            unsafe { xstate::check(fpstate, xstate_len, note.components)? };
        }
        Ok(frame)
    }

    /// The general registers, by copy.
    #[inline]
    #[must_use]
    pub fn gregs(&self) -> Gregs {
        // SAFETY: new()'s caller says that the frame stays valid.
        unsafe { (&raw const (*self.uc).uc_mcontext.gregs).read() }
    }

    /// One general register: `which` is [`libc::REG_RIP`] or another of its kind; 0 if there is
    /// no such register.
    #[inline]
    #[must_use]
    pub fn greg(&self, which: libc::c_int) -> u64 {
        match usize::try_from(which) {
            Ok(index) if index < size_of::<Gregs>() / size_of::<libc::greg_t>() => {
                // SAFETY: the index is in range; the frame is valid as new()'s caller says.
                unsafe {
                    let gregs = (&raw const (*self.uc).uc_mcontext.gregs).cast::<libc::greg_t>();
                    gregs.add(index).read() as u64
                }
            }
            _ => 0,
        }
    }

    /// Address of the extended state.
    #[inline]
    #[must_use]
    pub fn fpstate(&self) -> *mut u8 {
        self.fpstate
    }

    /// Bytes of extended state, without the magic number that follows.
    #[inline]
    #[must_use]
    pub fn xstate_len(&self) -> usize {
        self.xstate_len
    }

    /// The signals that were blocked in the interrupted context: bit `n - 1` is signal `n`.
    #[inline]
    #[must_use]
    pub fn sigmask(&self) -> u64 {
        // SAFETY: the first 8 bytes are part of every frame.
        unsafe { (&raw const (*self.uc).uc_sigmask).cast::<u64>().read() }
    }

    /// The frame's `uc_flags`.
    #[inline]
    #[must_use]
    pub fn uc_flags(&self) -> u64 {
        // SAFETY: new()'s caller says that the frame stays valid.
        unsafe { (*self.uc).uc_flags }
    }

    /// The frame itself.
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> *mut ucontext_t {
        self.uc
    }

    /// Replaces the general registers and the flags; what describes the signal is kept.
    ///
    /// # Safety
    /// Returning from the handler continues with these registers: that must be sound.
    #[inline]
    pub unsafe fn write_gregs(&self, gregs: &Gregs) {
        // SAFETY: the frame is valid; both sides have at least LIVE_GREGS words.
        unsafe {
            let to = (&raw mut (*self.uc).uc_mcontext.gregs).cast::<libc::greg_t>();
            ptr::copy_nonoverlapping(gregs.as_ptr(), to, LIVE_GREGS);
        }
    }

    /// Replaces the extended state by the `len` bytes at `from`. The kernel's note stays.
    ///
    /// # Errors
    /// [`FrameError::NoRoom`] if this frame cannot hold a component that `from` has,
    /// [`FrameError::Size`] if `len` is too short. The frame is unchanged then.
    ///
    /// # Safety
    /// `from` is a valid, 64-byte aligned XSAVE area of `len` bytes in the standard format.
    pub unsafe fn write_xstate(&self, from: *const u8, len: usize) -> Result<(), FrameError> {
        if len < xstate::MIN_SIZE {
            return Err(FrameError::Size);
        }
        // SAFETY: the header is inside MIN_SIZE; the note inside the frame. Both are aligned.
        let (present, note) = unsafe {
            (
                from.add(xstate::HEADER).cast::<u64>().read(),
                self.fpstate.add(NOTE).cast::<Note>().read(),
            )
        };
        let extent = xstate::extent(present);
        if present & !note.components != 0 || extent > self.xstate_len {
            return Err(FrameError::NoRoom);
        }
        if extent > len {
            return Err(FrameError::Size);
        }
        let rest = len.min(self.xstate_len) - xstate::HEADER;
        // SAFETY: both areas are valid for NOTE bytes, and for `rest` bytes from the header on.
        unsafe {
            ptr::copy(from, self.fpstate, NOTE);
            ptr::copy(from.add(xstate::HEADER), self.fpstate.add(xstate::HEADER), rest);
        }
        Ok(())
    }

    /// Replaces the signal mask which the return from the handler will set.
    ///
    /// # Safety
    /// As for [`write_gregs`](Self::write_gregs).
    #[inline]
    pub unsafe fn write_mask(&self, mask: u64) {
        // SAFETY: the first 8 bytes are part of every frame.
        unsafe { (&raw mut (*self.uc).uc_sigmask).cast::<u64>().write(mask) }
    }
}

/// Can these registers be continued at all?
fn check_registers(gregs: &Gregs) -> Result<(), FrameError> {
    let at = |register: libc::c_int| gregs[register as usize] as u64;
    if at(libc::REG_CSGSFS) as u16 != code_segment() {
        return Err(FrameError::Segment);
    }
    check_addresses(at(libc::REG_RIP), at(libc::REG_RSP))
}

/// The selector of the code that runs now, which is 64-bit code.
fn code_segment() -> u16 {
    let selector: u64;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, cs", out(reg) selector, options(nomem, nostack, preserves_flags));
    }
    selector as u16
}

/// Refuses null and what only a kernel can use.
pub(crate) fn check_addresses(rip: u64, rsp: u64) -> Result<(), FrameError> {
    if (1..USER_END).contains(&rip) && (1..USER_END).contains(&rsp) {
        Ok(())
    } else {
        Err(FrameError::Address)
    }
}
