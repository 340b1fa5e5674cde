//! Installing handlers for the life of the process, keeping what was there.

use crate::sys::signal::{self, Handler};
use core::sync::atomic::{AtomicUsize, Ordering};
use nix::errno::Errno;

/// Installs `handler` for `signo` unless it is there already; `previous` becomes the address of the action
/// that was in force, which is never freed: a handler may be reading it. It is that of the first time: a handler
/// that came after ours may pass on to us, and must not be passed on to.
pub(crate) fn once(signo: i32, handler: Handler, previous: &AtomicUsize) -> Result<(), Errno> {
    let current = signal::current_action(signo)?;
    if current.sa_sigaction == handler as usize {
        return Ok(());
    }
    if previous.load(Ordering::Acquire) == 0 {
        // Published before the handler can run.
        previous.store(Box::into_raw(Box::new(current)) as usize, Ordering::Release);
    } else if signo == libc::SIGSEGV || signo == libc::SIGBUS {
        // Somebody came after us and is likely to pass on to us: we are in the chain still.
        return Ok(());
    }
    signal::install(signo, handler)?;
    Ok(())
}
