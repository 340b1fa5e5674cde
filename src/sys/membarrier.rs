//! The heavy half of an asymmetric fence: membarrier(2), expedited and private.
//!
//! The frequent side pays a compiler fence, the rare side one system call which makes every running
//! kernel thread of the process execute a full barrier. Without kernel support both sides use a
//! full fence.

use core::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

const QUERY: i32 = 0;
const PRIVATE_EXPEDITED: i32 = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

/// 0 unknown, 1 the kernel has it and we are registered, 2 fences on both sides.
static MODE: AtomicU8 = AtomicU8::new(0);

fn call(cmd: i32) -> i64 {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_membarrier, cmd, 0, 0) }
}

/// Registers the process; must run before the first fence. Repeating it does no harm (and is needed
/// in a fork child on old kernels).
pub(crate) fn register() {
    let cmds = call(QUERY);
    let ok = cmds > 0
        && cmds & i64::from(PRIVATE_EXPEDITED) != 0
        && call(REGISTER_PRIVATE_EXPEDITED) == 0;
    MODE.store(if ok { 1 } else { 2 }, Ordering::SeqCst);
}

/// Whether the cheap form is in use (for the doctor).
pub(crate) fn available() -> bool {
    MODE.load(Ordering::Relaxed) == 1
}

/// Store-load barrier of the frequent side.
#[inline(always)]
pub(crate) fn light() {
    if MODE.load(Ordering::Relaxed) == 1 {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Store-load barrier of the rare side.
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    if MODE.load(Ordering::Relaxed) == 1 {
        call(PRIVATE_EXPEDITED);
    }
}
