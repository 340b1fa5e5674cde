//! A thread that runs over the end of its stack: say who, then abort, as std does for its threads.
//!
//! The fault comes on the guard page below the stack; the handler runs on the worker's signal stack and
//! writes without allocating. Any other fault goes to the handler that was there before (std's, which
//! knows the guards of kernel threads).

use super::pass_on::pass_on;
use crate::sys::memory::PAGE;
use crate::tcb::{Record, current};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

static OLD_SEGV: AtomicUsize = AtomicUsize::new(0);
static OLD_BUS: AtomicUsize = AtomicUsize::new(0);

/// Installs the handlers, once.
pub(crate) fn install() -> Result<(), nix::errno::Errno> {
    for (signo, old) in [(libc::SIGSEGV, &OLD_SEGV), (libc::SIGBUS, &OLD_BUS)] {
        super::install::once(signo, on_fault, old)?;
    }
    Ok(())
}

extern "C" fn on_fault(signo: c_int, info: *mut libc::siginfo_t, uc: *mut c_void) {
    // SAFETY: the kernel passes a live siginfo; a fault has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    if let Some(me) = current::get()
        && in_guard(me, address)
    {
        report(me);
    }
    let old = if signo == libc::SIGSEGV { &OLD_SEGV } else { &OLD_BUS };
    pass_on(old, signo, info, uc);
}

fn in_guard(r: &Record, address: usize) -> bool {
    let lo = r.stack().lo.get();
    (lo - PAGE..lo).contains(&address)
}

fn report(me: &Record) -> ! {
    use crate::check::{abort, write, write_number};
    write("\nthread '");
    // SAFETY: the running thread's own.
    write(unsafe { me.identity() }.name().unwrap_or("<unnamed>"));
    write("' (reveille thread ");
    write_number(me.id.load(Ordering::Relaxed));
    write(") has overflowed its stack of ");
    write_number((me.stack().top() - me.stack().lo.get()) as u64);
    write(" bytes\nfatal runtime error: stack overflow, aborting\n");
    abort()
}
