//! The C names: everything that `include/reveille.h` declares is exported here and nowhere else.
//!
//! Four of them cannot be Rust functions, because they return twice, save their caller's
//! registers or take any number of arguments. They jump to the asm that does it.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use libc::ucontext_t;

use super::frame::{Checks, FrameError, FrameRef};
use super::ucontext::{self, raw};

macro_rules! export {
    ($($name:literal => $target:path),* $(,)?) => {$(
        core::arch::global_asm!(
            concat!(".pushsection .text.", $name, ", \"ax\", @progbits"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "jmp {target}",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            target = sym $target,
        );
    )*};
}

export! {
    "rvl_getcontext" => raw::getcontext,
    "rvl_getcontext_mask" => raw::getcontext_mask,
    "rvl_setcontext" => raw::set,
    "rvl_swapcontext" => raw::swap,
    "rvl_swapcontext_mask" => raw::swap_mask,
    "rvl_makecontext" => raw::make,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rvl_setcontext_mask(ucp: *const ucontext_t) -> c_int {
    // SAFETY: the C caller keeps the contract.
    unsafe { ucontext::setcontext_mask(ucp) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rvl_set_thread_end(end: Option<ucontext::ThreadEnd>) {
    // SAFETY: the C caller keeps the contract.
    unsafe { ucontext::set_thread_end(end.unwrap_or(libc::pthread_exit)) };
}

#[unsafe(no_mangle)]
extern "C" fn rvl_xstate_buffer_size() -> usize {
    ucontext::xstate_buffer_size()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rvl_capturecontext(
    ucp: *mut ucontext_t,
    frame: *const c_void,
    xstate: *mut c_void,
    len: usize,
) -> c_int {
    // SAFETY: the C caller keeps the contract.
    status(unsafe {
        FrameRef::new(frame.cast(), Checks::Full)
            .and_then(|frame| ucontext::capture(ucp, &frame, xstate.cast(), len))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rvl_storecontext(frame: *mut c_void, ucp: *const ucontext_t) -> c_int {
    // SAFETY: the C caller keeps the contract.
    status(unsafe {
        FrameRef::new(frame.cast::<ucontext_t>(), Checks::Full)
            .and_then(|frame| ucontext::store(&frame, ucp))
    })
}

fn status(result: Result<(), FrameError>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(_) => ucontext::refuse(),
    }
}
