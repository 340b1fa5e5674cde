//! `sigaction` and its kin, defined in place of libc's: every handler of the program comes back through
//! `asm/x86_64/sigreturn.S`.
//!
//! A handler without SA_ONSTACK runs on the stack of the thread that it interrupted. One whose mask is that of
//! ordinary code (SA_NODEFER; or it unblocked its signal itself) cannot be told from it, is preempted like it,
//! and may end on another worker. The frame that it returns through names the signal stack of the kernel thread
//! where it began. So the way back is ours: it writes the running worker's into the frame.
//!
//! The kernel keeps the address of the way back with the action, `sa_restorer`; libc's functions set their own.
//! That is all that differs: handlers, flags and masks go to the kernel as the program gave them. There is no
//! state but what siginterrupt(3) asked for, and no lock: all of this may be called from handlers, anywhere.

use super::site::Site;
use crate::sys::signal::{self, KernelAction, KernelSet};
use core::ffi::c_int;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

unsafe extern "C" {
    fn reveille_sigreturn();
    static reveille_sigreturn_end: u8;
}

core::arch::global_asm!(
    include_str!("../../asm/x86_64/sigreturn.S"),
    RECORD = const offset_of!(crate::tls::hot::HotWords, record),
    WORKER = const offset_of!(crate::tcb::Record, worker),
    LO = const offset_of!(Site, signal_stack_lo),
    LEN = const offset_of!(Site, signal_stack_len),
    SP = const offset_of!(libc::ucontext_t, uc_stack) + offset_of!(libc::stack_t, ss_sp),
    SIZE = const offset_of!(libc::ucontext_t, uc_stack) + offset_of!(libc::stack_t, ss_size),
    FLAGS = const offset_of!(libc::ucontext_t, uc_stack) + offset_of!(libc::stack_t, ss_flags),
);

/// Whether `rip` is on the way back from a handler.
#[inline(always)]
pub(super) fn is_returning(rip: u64) -> bool {
    let to = &raw const reveille_sigreturn_end as u64;
    (reveille_sigreturn as *const () as u64..to).contains(&rip)
}

/// The kernel uses `restorer` (asm/signal.h; libc does not tell).
const SA_RESTORER: u64 = 0x0400_0000;

/// Signals for which siginterrupt(3) asked that [`signal()`] does not restart calls.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

/// Puts `new` in force, if given, with our way back; returns what was, or an error number.
fn change(signo: c_int, new: Option<KernelAction>) -> Result<KernelAction, c_int> {
    // As libc: 32 and 33 are its own.
    if !(1..=64).contains(&signo) || signo == 32 || signo == 33 {
        return Err(libc::EINVAL);
    }
    let new = new.map(|a| KernelAction {
        flags: a.flags | SA_RESTORER,
        restorer: reveille_sigreturn as *const () as usize,
        ..a
    });
    // SAFETY: the way back does what libc's does; handler, flags and mask are the program's.
    unsafe { signal::kernel_action(signo, new.as_ref()) }
}

/// -1, with `errno` set.
fn fail(error: c_int) -> c_int {
    // SAFETY: the running thread's errno.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// See sigaction(2).
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signo: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    let new = unsafe { new.as_ref() }.map(|a| KernelAction {
        handler: a.sa_sigaction,
        flags: u64::from(a.sa_flags as u32),
        restorer: 0,
        // SAFETY: the kernel's set is the first word of libc's.
        mask: unsafe { (&raw const a.sa_mask).cast::<KernelSet>().read() },
    });
    match change(signo, new) {
        Err(e) => fail(e),
        Ok(was) => {
            // SAFETY: the caller's promise. As libc's, this leaves the rest of the longer set alone.
            if let Some(old) = unsafe { old.as_mut() } {
                old.sa_sigaction = was.handler;
                old.sa_flags = was.flags as c_int;
                // SAFETY: null, or the address of code that the kernel jumps to.
                old.sa_restorer =
                    unsafe { core::mem::transmute::<usize, Option<extern "C" fn()>>(was.restorer) };
                // SAFETY: the set's first word.
                unsafe { (&raw mut old.sa_mask).cast::<KernelSet>().write(was.mask) };
            }
            0
        }
    }
}

/// Installs `handler`, if given. The old one, or SIG_ERR with `errno` set.
pub(crate) fn replace(
    signo: c_int,
    handler: Option<usize>,
    flags: c_int,
    mask: KernelSet,
) -> usize {
    if handler == Some(libc::SIG_ERR) {
        return fail(libc::EINVAL) as usize;
    }
    let new = |handler| KernelAction { handler, flags: flags as u32 as u64, restorer: 0, mask };
    match change(signo, handler.map(new)) {
        Ok(was) => was.handler,
        Err(e) => fail(e) as usize,
    }
}

/// See signal(2): the handler stays, its signal is blocked while it runs, calls are restarted.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signo: c_int, handler: usize) -> usize {
    if !(1..=64).contains(&signo) {
        return fail(libc::EINVAL) as usize;
    }
    let set = signal::set_of(signo);
    let restart = INTERRUPTS.load(Ordering::Relaxed) & set == 0;
    replace(signo, Some(handler), if restart { libc::SA_RESTART } else { 0 }, set)
}

/// Another name of [`signal()`].
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(signo: c_int, handler: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { signal(signo, handler) }
}

/// Another name of [`signal()`].
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ssignal(signo: c_int, handler: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { signal(signo, handler) }
}

/// See sysv_signal(3): the handler is good for once, and nothing is blocked while it runs.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysv_signal(signo: c_int, handler: usize) -> usize {
    replace(signo, Some(handler), libc::SA_RESETHAND | libc::SA_NODEFER, 0)
}

/// What `signal` is in programs that ask for strict standards only.
///
/// # Safety
/// As signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(signo: c_int, handler: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { sysv_signal(signo, handler) }
}

/// See siginterrupt(3).
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn siginterrupt(signo: c_int, interrupt: c_int) -> c_int {
    let changed = change(signo, None).and_then(|mut action| {
        let set = signal::set_of(signo);
        let restart = libc::SA_RESTART as u64;
        if interrupt != 0 {
            INTERRUPTS.fetch_or(set, Ordering::Relaxed);
            action.flags &= !restart;
        } else {
            INTERRUPTS.fetch_and(!set, Ordering::Relaxed);
            action.flags |= restart;
        }
        change(signo, Some(action))
    });
    match changed {
        Ok(_) => 0,
        Err(e) => fail(e),
    }
}
