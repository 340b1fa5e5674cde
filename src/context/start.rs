//! The two dear ways to make a thread's first context, kept so that their costs can be compared.
//!
//! * by context: `makecontext` fills a `ucontext_t`, which is converted to a preempted context and
//!   resumed like one. No system call.
//! * by signal: the portable way of old thread libraries (R. S. Engelschall, "Portable Multithreading:
//!   The Signal Stack Trick For User-Space Thread Creation", USENIX 2000). The new stack is made the
//!   signal stack, a signal is sent to the own kernel thread, and the frame that the kernel pushes there
//!   is converted. Eight system calls, and a delivery.
#![allow(unsafe_code)]

use super::frame::{Checks, FrameRef};
use super::x86_64::{RED_ZONE, RESUME_WORDS, Rest, Saved, target};
use super::{preempted, ucontext, xstate};
use crate::error::Error;
use crate::sys::signal;
use crate::tcb::Record;
use crate::tls::{due, hot};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use std::io;

/// How the first context of a thread is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StartMethod {
    /// Two words on a pooled stack: the fast way.
    #[default]
    Pool,
    /// By `makecontext`, converted to a preempted context.
    Context,
    /// By a signal on a signal stack, whose frame is converted: the portable way of old.
    Signal,
}

/// First function of a context made here.
pub(crate) type Entry = unsafe extern "C" fn();

/// Makes the first context from a `ucontext_t`.
///
/// # Safety
/// The slot is the caller's.
pub(crate) unsafe fn by_context(r: &'static Record, entry: Entry) -> Result<(), Error> {
    let mut uc = MaybeUninit::<libc::ucontext_t>::zeroed();
    let uc = uc.as_mut_ptr();
    // SAFETY: a zeroed structure of our own; the stack is the slot's.
    unsafe {
        (*uc).uc_stack.ss_sp = r.stack().lo.get() as *mut c_void;
        (*uc).uc_stack.ss_size = r.stack().top() - r.stack().lo.get();
        ucontext::makecontext(uc, entry, &[]);
        let greg = |i: i32| (*uc).uc_mcontext.gregs[i as usize] as u64;
        let saved = place(r, greg(libc::REG_RSP) as usize);
        saved.write(Saved { rflags: CLEAN_FLAGS, ..Saved::from_gregs(greg) });
        let state = saved.add(1).cast::<u8>();
        // No component in use: everything starts in its initial state.
        state.write_bytes(0, super::xsave_size());
        state.cast::<u16>().write(xstate::X87_DEFAULT);
        state.add(xstate::MXCSR).cast::<u32>().write(xstate::MXCSR_DEFAULT);
        r.rsp.set(preempted::rest(saved));
    }
    Ok(())
}

/// Interrupts enabled and the bit that is always set.
const CLEAN_FLAGS: u64 = 0x202;

/// Where the preempted context goes: below `rsp` and its red zone.
fn place(r: &Record, rsp: usize) -> *mut Saved {
    debug_assert!(rsp <= r.stack().top());
    let size = preempted::size(super::xsave_size());
    ((rsp - RED_ZONE - RESUME_WORDS - size) & !63) as *mut Saved
}

/// Makes the first context from a signal frame.
///
/// # Safety
/// The slot is the caller's; preemption is on, or the caller is a plain kernel thread.
pub(crate) unsafe fn by_signal(r: &'static Record, signo: i32, entry: Entry) -> Result<(), Error> {
    // The context will lie at the top, the frame that it is made from well below.
    let room = size_of::<Saved>() + super::xsave_size() + 4096;
    let (lo, hi) = (r.stack().lo.get(), (r.stack().top() - room) & !4095);
    r.rsp.set(0);
    hot::off();
    // SAFETY: the slot is the caller's; the old stack is put back below; preemption is off, so this is one
    // kernel thread throughout.
    let done = unsafe {
        signal::set_signal_stack(lo as *mut u8, hi - lo).map(|old| {
            (*hot::of(hot::fs_base())).starting = r.as_ptr().cast_mut().cast();
            let mask = signal::change_mask(libc::SIG_UNBLOCK, signal::set_of(signo));
            let sent = send_until_captured(signo);
            signal::change_mask(libc::SIG_SETMASK, mask);
            (*hot::of(hot::fs_base())).starting = core::ptr::null_mut();
            signal::restore_signal_stack(&old);
            sent
        })
    };
    due::on();
    match done {
        Ok(true) if r.rsp.get() == 0 => {
            let refused = io::Error::from(io::ErrorKind::InvalidData);
            Err(Error::os("cannot start a thread with a signal frame as this one", refused))
        }
        Ok(true) => {
            let saved = (r.rsp.get() + size_of::<Rest>()) as *mut Saved;
            // SAFETY: `capture` has left the context there.
            unsafe { (*saved).rip = entry as *const () as u64 };
            Ok(())
        }
        Ok(false) => Err(Error::os(
            "cannot send a signal to start a thread with",
            io::Error::last_os_error(),
        )),
        Err(e) => Err(Error::os("cannot set a signal stack to start a thread with", e)),
    }
}

/// Sends the signal until its handler has run. A tick that is just pending has the same number, and the
/// kernel keeps one pending signal of a number: ours is dropped then, without an error.
///
/// # Safety
/// `starting` is set; the signal stack is the new thread's.
unsafe fn send_until_captured(signo: i32) -> bool {
    // SAFETY: the running thread's own hot words; the handler writes them on this kernel thread.
    let waiting = || unsafe {
        !core::ptr::read_volatile(&raw const (*hot::of(hot::fs_base())).starting).is_null()
    };
    while waiting() {
        if !signal::queue_to_self(signo, libc::SI_QUEUE, 0) {
            return false;
        }
    }
    true
}

/// Whether the signal is the one that [`by_signal`] sent.
#[inline(always)]
pub(crate) fn is_start(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes a live siginfo; the running thread's own hot words.
    unsafe { (*info).si_code == libc::SI_QUEUE && !(*hot::of(hot::fs_base())).starting.is_null() }
}

/// In the handler, on the new stack: converts the frame.
///
/// # Safety
/// [`is_start`] said so; `uc` is the frame.
pub(crate) unsafe fn capture(uc: *mut libc::ucontext_t) {
    // SAFETY: `starting` is the record that `by_signal` is starting, whose stack this is.
    unsafe {
        let r = &*(*hot::of(hot::fs_base())).starting.cast::<Record>();
        let rsp = r.stack().top() - 8; // as after a call
        let saved = place(r, rsp);
        if let Ok(frame) = FrameRef::new(uc, Checks::Delivered) {
            r.rsp.set(preempted::save(&frame, saved as usize));
            (*saved).rsp = rsp as u64;
            (*saved).rflags = CLEAN_FLAGS;
            (*saved).target = target(rsp as u64);
        }
        (*hot::of(hot::fs_base())).starting = core::ptr::null_mut();
    }
}
