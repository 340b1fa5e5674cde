//! setuid(2) and its like on a process with reveille threads: see `asm/x86_64/setxid.S`.
//!
//! libc's sigaction refuses signal 33, so the handler is changed by the system call itself; glibc has
//! installed its own by then, at the first pthread_create. Its flags are kept and SA_ONSTACK is added: a
//! frame is three kilobytes, which a small stack may not have.

use crate::sys::signal::{self, KernelAction};
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

const SIGSETXID: i32 = 33;

/// glibc's handler.
static REAL: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn reveille_setxid();
}

core::arch::global_asm!(
    include_str!("../../asm/x86_64/setxid.S"),
    real = sym REAL,
    RECORD = const offset_of!(crate::tls::hot::HotWords, record),
    WORKER = const offset_of!(crate::tcb::Record, worker),
    HOME_FS = const offset_of!(super::Worker, home_fs),
);

/// Puts our handler before glibc's, once. After the first pthread_create.
pub(crate) fn wrap() {
    let ours = reveille_setxid as *const () as usize;
    // SAFETY: asks only.
    let Ok(action) = (unsafe { signal::kernel_action(SIGSETXID, None) }) else { return };
    if action.handler == ours || action.handler <= 1 {
        return;
    }
    REAL.store(action.handler, Ordering::SeqCst);
    // All signals wait: one whose handler ran in the middle would find the kernel thread's block in place of the
    // thread's. A tick would be taken for nobody's, and an alarm must not be lost.
    let new = KernelAction {
        handler: ours,
        flags: action.flags | libc::SA_ONSTACK as u64,
        mask: !0,
        ..action
    };
    // SAFETY: the handler's asm keeps the convention of a handler; the rest is glibc's own.
    let _ = unsafe { signal::kernel_action(SIGSETXID, Some(&new)) };
}
