//! `getcontext`, `setcontext`, `makecontext` and `swapcontext`, in two forms.
//!
//! The plain names make **no system call**: they do not save or restore the signal mask. The
//! names that end in `_mask` do, with one system call each, as POSIX asked for. Both keep the
//! callee-saved registers, MXCSR and the x87 control word. (POSIX.1-2001 defines the four;
//! POSIX.1-2008 dropped them, and the C library still has them.)
//!
//! The structure is the C library's own, so contexts may be passed to and fro:
//!
//! | a context made by | continued by ours | by the C library's `setcontext` |
//! |---|---|---|
//! | the C library | yes | yes |
//! | [`getcontext_mask`](raw::getcontext_mask), [`swapcontext_mask`], and [`makecontext`] on these | yes | yes |
//! | [`getcontext`](raw::getcontext), [`swapcontext`] | yes | no: the mask in it is not set |
//! | the kernel, in a signal handler; [`capture`] | yes, exactly | no: it loses registers, flags, vectors, red zone |
//!
//! What each form finds out about a context, in this order:
//!
//! 1. `fpregs` points to the structure's own floating-point words: it is plain. The kernel puts
//!    its extended state elsewhere, so a frame never looks like this.
//! 2. `uc_flags` says that there is extended state or a stack segment: it is a signal frame,
//!    and is checked in full ([`Checks::Full`]) before it is loaded.
//! 3. `fpregs` is null: never made, refused. Anything else is a copy of a plain context.
//!
//! A refusal is -1 with `errno` = `EINVAL`, before anything has changed.
//!
//! # Rust
//! `getcontext` returns twice, which Rust functions must not be made to do, so it is only in
//! [`raw`], for handing it on to C. From Rust, use [`swapcontext`] (it saves too) and
//! [`makecontext`] (which does not need a `getcontext` first), or [`UserContext`].
//!
//! [`UserContext`]: super::UserContext

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::ucontext_t;

pub use super::convert::{capture, store, xstate_buffer_size};
use super::frame::{self, Checks, FrameError, FrameRef, Gregs};
use super::saved::{greg_offset, resume_raw};
use super::xstate::{self, XstateError};

/// Marks a context, in `uc_flags`, whose signal mask is not set: the `_mask` forms leave the
/// mask alone when they continue it. ("RVL", and none of the kernel's bits.)
pub(crate) const NO_MASK: u64 = 0x5256_4c00;

/// Where the general registers begin.
const GREGS: usize =
    core::mem::offset_of!(ucontext_t, uc_mcontext) + core::mem::offset_of!(libc::mcontext_t, gregs);
/// Where the address of the floating-point state is.
const FPREGS: usize = core::mem::offset_of!(ucontext_t, uc_mcontext)
    + core::mem::offset_of!(libc::mcontext_t, fpregs);
/// The structure's own floating-point words (a private field of libc's type, behind the mask).
pub(crate) const FPMEM: usize =
    core::mem::offset_of!(ucontext_t, uc_sigmask) + size_of::<libc::sigset_t>();
/// MXCSR in it: where FXSAVE has it, and where the C library puts it.
pub(crate) const MXCSR: usize = FPMEM + xstate::MXCSR;
/// An x87 environment, as FNSTENV writes it. The C library loads it with FLDENV.
#[repr(C)]
struct X87Env {
    control: u32,
    status: u32,
    tags: u32,
}
/// "No exception, all registers empty": the state in which functions are called.
const EMPTY_X87: u64 = 0xffff_0000_0000;
/// The asm sends contexts with any of these bits of MXCSR to the check in Rust, which knows
/// the CPU's own mask (some CPUs of AMD's define bit 17).
const MXCSR_RESERVED: u32 = 0xffff_0000;
/// Bytes of the kernel's signal mask; libc's type is larger.
const SIGSET_BYTES: usize = size_of::<u64>();

const fn at(register: libc::c_int) -> usize {
    GREGS + greg_offset(register)
}

core::arch::global_asm!(
    include_str!("../../asm/x86_64/ucontext.S"),
    include_str!("../../asm/x86_64/ucontext_load.S"),
    R8 = const at(libc::REG_R8),
    R9 = const at(libc::REG_R9),
    R12 = const at(libc::REG_R12),
    R13 = const at(libc::REG_R13),
    R14 = const at(libc::REG_R14),
    R15 = const at(libc::REG_R15),
    RDI = const at(libc::REG_RDI),
    RSI = const at(libc::REG_RSI),
    RBP = const at(libc::REG_RBP),
    RBX = const at(libc::REG_RBX),
    RDX = const at(libc::REG_RDX),
    RCX = const at(libc::REG_RCX),
    RSP = const at(libc::REG_RSP),
    RIP = const at(libc::REG_RIP),
    FLAGS = const core::mem::offset_of!(ucontext_t, uc_flags),
    FPREGS = const FPREGS,
    FPMEM = const FPMEM,
    X87_STATUS_AND_TAGS = const FPMEM + core::mem::offset_of!(X87Env, status),
    EMPTY_X87 = const EMPTY_X87,
    MXCSR = const MXCSR,
    MXCSR_RESERVED = const MXCSR_RESERVED,
    NO_MASK = const NO_MASK,
    SIGMASK = const core::mem::offset_of!(ucontext_t, uc_sigmask),
    SIGSET_BYTES = const SIGSET_BYTES,
    SIG_SETMASK = const libc::SIG_SETMASK,
    RT_SIGPROCMASK = const libc::SYS_rt_sigprocmask,
    GET_MASK_REST = sym get_mask_rest,
    SWAP_MASK_REST = sym swap_mask_rest,
    SET_CHECKED = sym set_checked,
);

core::arch::global_asm!(
    include_str!("../../asm/x86_64/makecontext.S"),
    MAKE = sym super::make::make,
    SET_MASK = sym setcontext_mask,
    THREAD_END = sym THREAD_END,
);

/// The functions as C sees them.
pub mod raw {
    use core::ffi::c_int;
    use libc::ucontext_t;

    unsafe extern "C" {
        /// Fills in `ucp` so that continuing it returns from this call once more, with 0.
        ///
        /// # Safety
        /// Must not be *called* from Rust, because it returns twice. `ucp` is writable.
        #[link_name = "reveille_uctx_get"]
        pub fn getcontext(ucp: *mut ucontext_t) -> c_int;

        /// [`getcontext`], and keeps the signal mask.
        ///
        /// # Safety
        /// As for [`getcontext`].
        #[link_name = "reveille_uctx_get_mask"]
        pub fn getcontext_mask(ucp: *mut ucontext_t) -> c_int;

        #[link_name = "reveille_uctx_swap"]
        pub(crate) fn swap(oucp: *mut ucontext_t, ucp: *const ucontext_t) -> c_int;
        #[link_name = "reveille_uctx_swap_mask"]
        pub(crate) fn swap_mask(oucp: *mut ucontext_t, ucp: *const ucontext_t) -> c_int;
        #[link_name = "reveille_uctx_set"]
        pub(crate) fn set(ucp: *const ucontext_t) -> c_int;
        #[link_name = "reveille_uctx_load"]
        pub(crate) fn load(ucp: *const ucontext_t) -> !;
        #[link_name = "reveille_uctx_load_mask"]
        pub(crate) fn load_mask(ucp: *const ucontext_t, old: *mut libc::sigset_t) -> !;
        #[link_name = "reveille_uctx_make"]
        pub(crate) fn make(ucp: *mut ucontext_t, func: unsafe extern "C" fn(), argc: c_int, ...);
        #[link_name = "reveille_uctx_start"]
        pub(crate) safe fn start() -> !;
    }
}

/// What a context turned out to be.
pub(crate) enum Kind {
    /// It stands at a function call.
    Plain,
    /// It stands anywhere.
    Full(FrameRef),
}

/// Finds out what `ucp` is, and checks it: see the steps at the head of this file.
pub(crate) unsafe fn classify(ucp: *const ucontext_t) -> Result<Kind, FrameError> {
    if ucp.is_null() {
        return Err(FrameError::Null);
    }
    // SAFETY: the caller passes a ucontext_t or a signal frame; both have these fields.
    let (flags, fpregs) = unsafe { ((*ucp).uc_flags, (*ucp).uc_mcontext.fpregs) };
    let own = ucp.wrapping_byte_add(FPMEM).cast::<c_void>();
    if fpregs.cast::<c_void>().cast_const() != own {
        if flags & (frame::UC_FP_XSTATE | frame::UC_SIGCONTEXT_SS) != 0 {
            // SAFETY: the caller's contract is FrameRef's.
            return unsafe { FrameRef::new(ucp, Checks::Full) }.map(Kind::Full);
        }
        if fpregs.is_null() {
            return Err(FrameError::NullFpstate);
        }
    }
    // SAFETY: it is not a frame, so it is a whole ucontext_t.
    let mxcsr = unsafe { ucp.byte_add(MXCSR).cast::<u32>().read() };
    if mxcsr & !xstate::mxcsr_mask() != 0 {
        return Err(XstateError::Mxcsr.into());
    }
    // SAFETY: as above.
    let gregs: Gregs = unsafe { (&raw const (*ucp).uc_mcontext.gregs).read() };
    frame::check_addresses(
        gregs[libc::REG_RIP as usize] as u64,
        gregs[libc::REG_RSP as usize] as u64,
    )?;
    Ok(Kind::Plain)
}

/// Continues a context that has been checked.
unsafe fn go(kind: &Kind, ucp: *const ucontext_t) -> ! {
    match kind {
        // SAFETY: checked; the rest is the caller's contract.
        Kind::Plain => unsafe { raw::load(ucp) },
        // SAFETY: as above.
        Kind::Full(frame) => unsafe {
            resume_raw(&raw const (*ucp).uc_mcontext.gregs, frame.fpstate())
        },
    }
}

/// What a refusal looks like in C.
pub(crate) fn refuse() -> c_int {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() = libc::EINVAL };
    -1
}

/// One `rt_sigprocmask`, with the kernel's size of a mask: `set` may be null.
unsafe fn change_mask(set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    let call = libc::SYS_rt_sigprocmask;
    // SAFETY: the masks are null, or valid for SIGSET_BYTES.
    unsafe { libc::syscall(call, libc::SIG_SETMASK, set, old, SIGSET_BYTES) as c_int }
}

/// Does the context say which signals are blocked?
pub(crate) unsafe fn has_mask(ucp: *const ucontext_t) -> bool {
    // SAFETY: not null, so it is a context.
    !ucp.is_null() && unsafe { (*ucp).uc_flags } != NO_MASK
}

/// Second half of `getcontext_mask`.
unsafe extern "C" fn get_mask_rest(ucp: *mut ucontext_t) -> c_int {
    // SAFETY: the asm has just written to `ucp`.
    unsafe { change_mask(ptr::null(), &raw mut (*ucp).uc_sigmask) }
}

/// Second half of `swapcontext_mask`: `oucp` has everything but the mask.
unsafe extern "C" fn swap_mask_rest(oucp: *mut ucontext_t, ucp: *const ucontext_t) -> c_int {
    // SAFETY: the contract of swapcontext_mask.
    unsafe { go_with_mask(ucp, &raw mut (*oucp).uc_sigmask) }
}

/// Checks `ucp` and continues it, with its signal mask if it has one. `old` may be null.
unsafe fn go_with_mask(ucp: *const ucontext_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the contract of setcontext; the fields are inside what was passed.
    unsafe {
        let Ok(kind) = classify(ucp) else { return refuse() };
        let set = if has_mask(ucp) { &raw const (*ucp).uc_sigmask } else { ptr::null() };
        match kind {
            Kind::Plain if !set.is_null() => raw::load_mask(ucp, old),
            _ if set.is_null() && old.is_null() => {}
            _ if change_mask(set, old) == 0 => {}
            _ => return -1,
        }
        go(&kind, ucp)
    }
}

/// `setcontext` for what the asm did not recognise.
unsafe extern "C" fn set_checked(ucp: *const ucontext_t) -> c_int {
    // SAFETY: the contract of setcontext.
    unsafe {
        match classify(ucp) {
            Ok(kind) => go(&kind, ucp),
            Err(_) => refuse(),
        }
    }
}

/// Continues `ucp`, without touching the signal mask and without a system call.
///
/// Returns only if `ucp` is refused: -1, with `errno` set to `EINVAL`. Safe in signal handlers;
/// a context captured in a handler usually wants [`setcontext_mask`], because the signal is
/// blocked while its handler runs.
///
/// # Safety
/// `ucp` was filled in by one of the functions of this module, by the C library's or by the
/// kernel (it may also lie, as far as the module's steps find that out), its stack is intact,
/// and this kernel thread may run it. The frames of the current stack are abandoned.
#[inline]
pub unsafe fn setcontext(ucp: *const ucontext_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe { raw::set(ucp) }
}

/// [`setcontext`], and sets the signal mask that the context was saved with, if it has one.
///
/// A signal which that mask lets in arrives on the stack of a plain context, after the current
/// stack has been left. With a full context it arrives on the current stack: if its handler may
/// switch away, it must be able to tell (by the interrupted stack pointer) that this stack is
/// being left.
///
/// # Safety
/// As for [`setcontext`].
pub unsafe extern "C" fn setcontext_mask(ucp: *const ucontext_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe { go_with_mask(ucp, ptr::null_mut()) }
}

/// Saves the current context in `oucp` and continues `ucp`, without a system call.
///
/// Returns 0 when `oucp` is continued, -1 with `errno` = `EINVAL` if `ucp` is refused.
///
/// # Safety
/// As for [`setcontext`]; `oucp` is writable.
#[inline]
pub unsafe fn swapcontext(oucp: *mut ucontext_t, ucp: *const ucontext_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe { raw::swap(oucp, ucp) }
}

/// [`swapcontext`], and saves and sets the signal mask with one system call.
///
/// # Safety
/// As for [`swapcontext`].
#[inline]
pub unsafe fn swapcontext_mask(oucp: *mut ucontext_t, ucp: *const ucontext_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe { raw::swap_mask(oucp, ucp) }
}

pub use super::make::makecontext;

/// What ends a thread whose function returned with no `uc_link`. Called by the asm.
static THREAD_END: AtomicPtr<c_void> = AtomicPtr::new(libc::pthread_exit as *mut c_void);

/// A function that ends the calling thread: `pthread_exit`, or something of its kind.
pub type ThreadEnd = unsafe extern "C" fn(*mut c_void) -> !;

/// Replaces what ends a thread when a context's function returns and `uc_link` was null
/// (at first `pthread_exit`). It is called on the context's stack, with a null argument.
///
/// # Safety
/// `end` may be called in any thread of the process that lets such a function return.
pub unsafe fn set_thread_end(end: ThreadEnd) {
    THREAD_END.store(end as *mut c_void, Ordering::Relaxed);
}
