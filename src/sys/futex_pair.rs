//! futex(2) on two words.

use super::raw::syscall6;
use core::sync::atomic::AtomicU32;

const CMP_REQUEUE: usize = (libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG) as usize;
const WAKE_OP: usize = (libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG) as usize;

/// "Store 0; wake if it was greater than 1", as FUTEX_WAKE_OP encodes it.
const CLEAR_WAKE_IF_ABOVE_ONE: usize =
    ((libc::FUTEX_OP_SET as usize) << 28) | ((libc::FUTEX_OP_CMP_GT as usize) << 24) | 1;

/// If `*from == expected`, moves at most `n` of its sleepers to `to`, waking none.
pub(crate) fn requeue(from: &AtomicU32, expected: u32, n: u32, to: &AtomicU32) {
    let (from, to) = (from.as_ptr() as usize, to.as_ptr() as usize);
    let args = [from, CMP_REQUEUE, 0, n as usize, to, expected as usize];
    // SAFETY: both are live aligned u32.
    unsafe { syscall6(libc::SYS_futex, args) };
}

/// Wakes a sleeper of `word`, stores 0 to `lock`, and wakes a sleeper of that if it was above 1: one step for
/// whoever looks at `lock`. False if the kernel has no such operation; then nothing was done.
pub(crate) fn wake_and_clear(word: &AtomicU32, lock: &AtomicU32) -> bool {
    let (word, lock) = (word.as_ptr() as usize, lock.as_ptr() as usize);
    // SAFETY: both are live aligned u32.
    unsafe { syscall6(libc::SYS_futex, [word, WAKE_OP, 1, 1, lock, CLEAR_WAKE_IF_ABOVE_ONE]) >= 0 }
}
