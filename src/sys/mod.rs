//! The only users of system calls and libc beyond thread-local storage: thin, typed, without policy.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod futex;
pub(crate) mod futex_pair;
pub(crate) mod membarrier;
pub(crate) mod memory;
pub(crate) mod posix_timer;
pub(crate) mod raw;
pub(crate) mod signal;

use core::sync::atomic::{AtomicI64, Ordering};

/// The kernel's id of the calling kernel thread.
pub(crate) fn gettid() -> i32 {
    // SAFETY: no arguments, no memory.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Whether user code may write the FS base (AT_HWCAP2 bit 1, set by the kernel since 5.9).
pub(crate) fn has_fsgsbase() -> bool {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    // SAFETY: getauxval reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}

/// Whether kernel threads can run side by side here.
pub(crate) fn several_processors() -> bool {
    static COUNT: AtomicI64 = AtomicI64::new(0);
    let mut n = COUNT.load(Ordering::Relaxed);
    if n == 0 {
        // SAFETY: no memory is involved.
        n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1);
        COUNT.store(n, Ordering::Relaxed);
    }
    n > 1
}

/// The calling kernel thread's processor time in microseconds. Async-signal-safe.
pub(crate) fn cpu_time() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a local. This clock needs the system call in any case.
    unsafe {
        raw::syscall4(
            libc::SYS_clock_gettime,
            libc::CLOCK_THREAD_CPUTIME_ID as usize,
            &raw mut t as usize,
            0,
            0,
        );
    }
    t.tv_sec as u64 * 1_000_000 + t.tv_nsec as u64 / 1000
}
