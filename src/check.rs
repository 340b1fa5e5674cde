//! Reporting a broken invariant: a message by a plain write(2), then abort. Nothing is allocated.
#![allow(unsafe_code)]

use crate::tcb::current;
use core::sync::atomic::Ordering;

/// Reports that `what` did what the thread was not allowed to, and aborts.
#[cold]
#[inline(never)]
pub(crate) fn violation(what: &str, did: &str) -> ! {
    write("reveille: invariant violated: ");
    write(what);
    write(" ");
    write(did);
    if let Some(r) = current::get() {
        write(" (thread ");
        write_number(r.id.load(Ordering::Relaxed));
        // SAFETY: the running thread's own.
        if let Some(name) = unsafe { r.identity() }.name() {
            write(" '");
            write(name);
            write("'");
        }
        write(")");
    }
    write("\n");
    abort()
}

/// Ends the process at once, by SIGABRT, from any context.
pub(crate) fn abort() -> ! {
    // SAFETY: abort(3) takes no lock before it raises the signal.
    unsafe { libc::abort() }
}

/// Writes to standard error without locks.
pub(crate) fn write(s: &str) {
    // SAFETY: the buffer is live.
    unsafe { libc::write(2, s.as_ptr().cast(), s.len()) };
}

/// Writes a decimal number without allocating.
pub(crate) fn write_number(mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    write(core::str::from_utf8(&digits[at..]).unwrap_or("?"));
}
