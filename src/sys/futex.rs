//! futex(2) wait and wake on a word that this process owns.

use super::clock::{Clock, Deadline};
use super::raw::{syscall4, syscall6};
use core::sync::atomic::AtomicU32;

/// Sleeps while `*word == expected`. Returns on a wake, a signal, or at once if the value differs:
/// callers loop.
pub(crate) fn wait(word: &AtomicU32, expected: u32) {
    wait_until(word, expected, None);
}

/// As [`wait`], until `deadline` at the latest; true if that has passed and no wake came.
pub(crate) fn wait_until(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> bool {
    let realtime = match deadline.map(|d| d.clock) {
        Some(Clock::Realtime) => libc::FUTEX_CLOCK_REALTIME,
        _ => 0,
    };
    let op = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | realtime) as usize;
    let ts = deadline.map(Deadline::timespec);
    let ts = ts.as_ref().map_or(0, |ts| core::ptr::from_ref(ts) as usize);
    let any = libc::FUTEX_BITSET_MATCH_ANY as u32 as usize;
    let args = [word.as_ptr() as usize, op, expected as usize, ts, 0, any];
    // SAFETY: `word` is a live aligned u32; the time, if any, outlives the call.
    unsafe { syscall6(libc::SYS_futex, args) == -(libc::ETIMEDOUT as isize) }
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
