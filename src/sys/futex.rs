//! futex(2) wait and wake on a word that this process owns.

use super::clock::{Clock, Deadline};
use super::raw::{syscall4, syscall6};
use core::sync::atomic::AtomicU32;

/// Sleeps while `*word == expected`. Returns on a wake, a signal, or at once if the value differs:
/// callers loop.
pub(crate) fn wait(word: &AtomicU32, expected: u32) {
    let op = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: `word` is a live aligned u32; no timeout is passed.
    unsafe { syscall4(libc::SYS_futex, word.as_ptr() as usize, op, expected as usize, 0) };
}

/// As [`wait`], for at most `timeout`.
pub(crate) fn wait_timeout(word: &AtomicU32, expected: u32, timeout: core::time::Duration) {
    let ts = libc::timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: timeout.subsec_nanos() as i64,
    };
    let op = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let ts = &raw const ts as usize;
    // SAFETY: `word` is a live aligned u32; the timeout outlives the call.
    unsafe { syscall4(libc::SYS_futex, word.as_ptr() as usize, op, expected as usize, ts) };
}

/// As [`wait`], until `deadline` at the latest.
pub(crate) fn wait_until(word: &AtomicU32, expected: u32, deadline: Deadline) {
    let realtime = match deadline.clock {
        Clock::Monotonic => 0,
        Clock::Realtime => libc::FUTEX_CLOCK_REALTIME,
    };
    let op = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | realtime) as usize;
    let ts = deadline.timespec();
    let (word, ts) = (word.as_ptr() as usize, &raw const ts as usize);
    let any = libc::FUTEX_BITSET_MATCH_ANY as u32 as usize;
    // SAFETY: `word` is a live aligned u32; the timeout outlives the call.
    unsafe { syscall6(libc::SYS_futex, [word, op, expected as usize, ts, 0, any]) };
}

/// Wakes at most `n` sleepers of `word`. Async-signal-safe.
pub(crate) fn wake(word: &AtomicU32, n: i32) {
    wake_address(word, n);
}

/// As [`wake`], where the word may be gone already: then sleepers of whatever is there now wake for nothing.
pub(crate) fn wake_address(word: *const AtomicU32, n: i32) {
    let op = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the kernel only uses the address as a key.
    unsafe { syscall4(libc::SYS_futex, word as usize, op, n as usize, 0) };
}
