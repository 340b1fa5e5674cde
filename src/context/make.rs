//! `makecontext`: a context that will call a function on a stack of its own.
//!
//! The picture of that stack is in `asm/x86_64/makecontext.S`, which has the C entry and the
//! code that runs after the function. The layout of the bottom (the address of the link word
//! in RBX) is like the C library's, so that its `setcontext` may start our contexts.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use libc::ucontext_t;

use super::ucontext::{NO_MASK, raw};
use super::xstate;

/// Registers that the calling convention passes arguments in, in order.
const ARGUMENTS: [c_int; 6] =
    [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_RCX, libc::REG_R8, libc::REG_R9];
/// Of these, the ones that still carry arguments of `makecontext` itself, after its first three.
const IN_REGISTERS: usize = 3;
const WORD: usize = size_of::<u64>();
/// Alignment of the stack at a call.
const STACK_ALIGN: usize = 16;
/// Room that is left for the function and what it calls: below this nothing can work.
const LEAST: usize = 512;

/// Makes `ucp` call `func` with `args` when it is continued, on the stack that `ucp.uc_stack`
/// names; when `func` returns, the context `ucp.uc_link` is continued, or the thread ends if
/// that is null (see [`set_thread_end`](super::ucontext::set_thread_end)).
///
/// Unlike POSIX's, this needs no `getcontext` first: if there was none, the context starts with
/// the current MXCSR and x87 control word, and without a signal mask. C's `int` arguments are
/// passed on as whole words. A stack that is null or too small leaves `ucp` in a state that
/// every way to continue it refuses.
///
/// # Safety
/// `ucp` is writable, with `uc_stack` and `uc_link` set; the stack is writable memory that
/// outlives the context; `func` takes `args.len()` integer arguments and does not unwind.
///
/// # Examples
/// ```
/// use reveille::context::ucontext::{makecontext, swapcontext};
/// use std::mem;
///
/// extern "C" fn add(a: i32, b: i32) {
///     assert_eq!(a + b, 5);
/// }
///
/// let mut stack = vec![0u8; 64 * 1024];
/// // SAFETY: zero is valid for this C structure.
/// let (mut main, mut context): (libc::ucontext_t, libc::ucontext_t) = unsafe { mem::zeroed() };
/// context.uc_stack.ss_sp = stack.as_mut_ptr().cast();
/// context.uc_stack.ss_size = stack.len();
/// context.uc_link = &raw mut main;
/// // SAFETY: the stack lives on; `add` takes two integers; it returns to `main`, saved here.
/// unsafe {
///     let add: unsafe extern "C" fn() = mem::transmute(add as extern "C" fn(i32, i32));
///     makecontext(&raw mut context, add, &[2, 3]);
///     assert_eq!(swapcontext(&raw mut main, &raw const context), 0);
/// }
/// ```
pub unsafe fn makecontext(ucp: *mut ucontext_t, func: unsafe extern "C" fn(), args: &[u64]) {
    // SAFETY: the caller's contract.
    unsafe { build(ucp, func, args.len(), |i| args[i]) }
}

/// The C entry: the first three arguments are at `registers`, the others at `stack`.
pub(crate) unsafe extern "C" fn make(
    ucp: *mut ucontext_t,
    func: unsafe extern "C" fn(),
    argc: c_int,
    registers: *const u64,
    stack: *const u64,
) {
    // SAFETY: the asm passes addresses of its caller's arguments; C's caller says how many.
    let argument = |i| unsafe {
        if i < IN_REGISTERS { registers.add(i).read() } else { stack.add(i - IN_REGISTERS).read() }
    };
    let argc = usize::try_from(argc).unwrap_or(usize::MAX);
    // SAFETY: the contract of makecontext.
    unsafe { build(ucp, func, argc, argument) }
}

unsafe fn build(
    ucp: *mut ucontext_t,
    func: unsafe extern "C" fn(),
    argc: usize,
    argument: impl Fn(usize) -> u64,
) {
    // SAFETY: `ucp` is a whole ucontext_t that the caller may write; only fields are touched.
    unsafe {
        let stack = (&raw const (*ucp).uc_stack).read();
        let on_stack = argc.saturating_sub(ARGUMENTS.len());
        let Some((link, sp)) = lay_out(stack.ss_sp.addr(), stack.ss_size, on_stack) else {
            (&raw mut (*ucp).uc_mcontext.fpregs).write(core::ptr::null_mut());
            (*ucp).uc_flags = NO_MASK;
            return;
        };
        init_float(ucp);
        let gregs = (&raw mut (*ucp).uc_mcontext.gregs).cast::<i64>();
        for (i, register) in ARGUMENTS.iter().enumerate().take(argc) {
            gregs.add(*register as usize).write(argument(i) as i64);
        }
        let word = |address: usize| stack.ss_sp.with_addr(address).cast::<u64>();
        for i in 0..on_stack {
            word(sp + (1 + i) * WORD).write(argument(ARGUMENTS.len() + i));
        }
        word(sp).write(raw::start as *const () as u64);
        word(link).write((*ucp).uc_link as u64);
        gregs.add(libc::REG_RBX as usize).write(link as i64);
        gregs.add(libc::REG_RBP as usize).write(0);
        gregs.add(libc::REG_RSP as usize).write(sp as i64);
        gregs.add(libc::REG_RIP as usize).write(func as *const () as i64);
    }
}

/// Where the link word and the return address go: `None` if the stack is too small.
fn lay_out(base: usize, size: usize, on_stack: usize) -> Option<(usize, usize)> {
    let top = base.checked_add(size).filter(|_| base != 0)?;
    let link = top.checked_sub(WORD)? & !(STACK_ALIGN - 1);
    let arguments = link.checked_sub(on_stack.checked_mul(WORD)?)? & !(STACK_ALIGN - 1);
    let sp = arguments.checked_sub(WORD)?;
    (sp >= base.checked_add(LEAST)?).then_some((link, sp))
}

/// Gives the context MXCSR and an x87 environment, unless a `getcontext` has.
unsafe fn init_float(ucp: *mut ucontext_t) {
    let own = ucp.wrapping_byte_add(super::ucontext::FPMEM).cast::<c_void>();
    // SAFETY: `ucp` is a whole ucontext_t; the words lie inside it and are aligned to 4.
    unsafe {
        let fpregs = &raw mut (*ucp).uc_mcontext.fpregs;
        if fpregs.read().cast::<c_void>() == own {
            return;
        }
        fpregs.write(own.cast());
        (*ucp).uc_flags = NO_MASK;
        let environment = own.cast::<u32>();
        environment.write(u32::from(current_x87_word()));
        environment.add(1).write(0);
        environment.add(2).write(0xffff);
        own.byte_add(xstate::MXCSR).cast::<u32>().write(current_mxcsr());
    }
}

fn current_mxcsr() -> u32 {
    let mut word = 0u32;
    // SAFETY: stores a register into a local variable.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack, preserves_flags))
    };
    word
}

fn current_x87_word() -> u16 {
    let mut word = 0u16;
    // SAFETY: stores a register into a local variable.
    unsafe {
        core::arch::asm!("fnstcw [{}]", in(reg) &mut word, options(nostack, preserves_flags))
    };
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_is_aligned_for_any_number_of_arguments() {
        for on_stack in 0..20 {
            for skew in 0..32 {
                let (link, sp) = lay_out(0x10000 + skew, 0x4000, on_stack).unwrap();
                assert_eq!(link % 16, 0);
                assert_eq!(sp % 16, 8, "as after a call");
                assert!(sp + WORD + on_stack * WORD <= link);
                assert!(link + WORD <= 0x14000 + skew);
            }
        }
    }

    #[test]
    fn impossible_stacks_are_refused() {
        assert_eq!(lay_out(0, 0x4000, 0), None);
        assert_eq!(lay_out(0x10000, 0, 0), None);
        assert_eq!(lay_out(0x10000, 256, 0), None);
        assert_eq!(lay_out(0x10000, 0x4000, 0x1000), None);
        assert_eq!(lay_out(0x10000, 0x4000, usize::MAX - 6), None);
        assert_eq!(lay_out(usize::MAX - 8, 0x4000, 0), None);
    }
}
