//! Passing a signal on that is not ours: what the kernel would have done with the action that was there before.
//!
//! Our handler runs with its own signal blocked, and its return puts the interrupted mask back in force. So
//! what is left to do is to block and unblock the rest, and to forget a handler that is good for once only.
//! The one difference that remains is the stack: ours is the signal stack, whatever the action asked for.

use crate::sys::signal;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The default action, in place of one that is used up.
// SAFETY: all-zero is a valid sigaction.
static DEFAULT: libc::sigaction = unsafe { core::mem::zeroed() };

/// Hands a signal to the action whose address is in `previous`, null or never freed.
#[cold]
pub(super) fn pass_on(
    previous: &AtomicUsize,
    signo: c_int,
    info: *mut libc::siginfo_t,
    uc: *mut c_void,
) {
    // SAFETY: as said.
    let Some(old) = (unsafe { taken(previous).as_ref() }) else { return };
    match old.sa_sigaction {
        libc::SIG_IGN => {}
        // The default action of these two is to do nothing: our handler stays.
        libc::SIG_DFL if signo == libc::SIGURG || signo == libc::SIGWINCH => {}
        libc::SIG_DFL => {
            let _ = signal::restore(signo, &DEFAULT);
            // SAFETY: sends the signal again; it is delivered, with the default action, on return.
            unsafe { libc::raise(signo) };
        }
        f => {
            // SAFETY: the kernel's set is the first word of libc's.
            let mask = unsafe { (&raw const old.sa_mask).cast::<signal::KernelSet>().read() };
            signal::change_mask(libc::SIG_BLOCK, mask);
            if old.sa_flags & libc::SA_NODEFER != 0 && mask & signal::set_of(signo) == 0 {
                signal::change_mask(libc::SIG_UNBLOCK, signal::set_of(signo));
            }
            call(f, old.sa_flags, signo, info, uc);
        }
    }
}

/// The action to take now; of one that is good for once, only one signal gets it.
fn taken(previous: &AtomicUsize) -> *const libc::sigaction {
    let at = previous.load(Ordering::Acquire);
    // SAFETY: null or a saved action, which is never freed.
    let once = unsafe { (at as *const libc::sigaction).as_ref() }
        .is_some_and(|a| a.sa_flags & libc::SA_RESETHAND != 0 && a.sa_sigaction > libc::SIG_IGN);
    let default = &raw const DEFAULT;
    let lost = || {
        let (new, order) = (default as usize, Ordering::AcqRel);
        previous.compare_exchange(at, new, order, Ordering::Acquire).is_err()
    };
    if once && lost() { default } else { at as *const libc::sigaction }
}

/// Calls a handler as it was installed.
fn call(f: usize, flags: c_int, signo: c_int, info: *mut libc::siginfo_t, uc: *mut c_void) {
    if flags & libc::SA_SIGINFO != 0 {
        // SAFETY: with SA_SIGINFO the handler has this type.
        let f: signal::Handler = unsafe { core::mem::transmute::<usize, signal::Handler>(f) };
        f(signo, info, uc);
    } else {
        // SAFETY: without SA_SIGINFO the handler has this type.
        let f: extern "C" fn(c_int) =
            unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(f) };
        f(signo);
    }
}
