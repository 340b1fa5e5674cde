//! The cost floor: what the primitives cost that preemption is made of, on this machine, now.
//!
//! Each function measures one primitive in a tight loop and returns nanoseconds for one; nothing
//! of the library is involved. [`signal`] has the handler that does nothing and its timer,
//! [`fs`] the instruction that exchanges the TLS base, [`work`] the work that ticks interrupt.

pub mod fs;
pub mod signal;
pub mod work;

use std::hint::black_box;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getres};

/// Runs `f` `times` times and returns the nanoseconds of one.
pub fn ns_each(times: u32, mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        f();
    }
    start.elapsed().as_nanos() as f64 / f64::from(times.max(1))
}

/// The cheapest real system call, in ns.
pub fn getppid(times: u32) -> f64 {
    ns_each(times, || {
        // SAFETY: getppid takes no arguments and changes nothing.
        black_box(unsafe { libc::syscall(libc::SYS_getppid) });
    })
}

/// Reading the signal mask by the raw system call, as unblocking a signal costs, in ns.
pub fn sigprocmask(times: u32) -> f64 {
    const MASK_BYTES: usize = 8;
    let mut old = 0_u64;
    ns_each(times, || {
        // SAFETY: with a null new mask nothing changes; the old one goes to 8 writable bytes.
        let done = unsafe {
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_BLOCK,
                std::ptr::null::<u64>(),
                &raw mut old,
                MASK_BYTES,
            )
        };
        black_box(done);
    })
}

/// The resolution of the monotonic clock and its timers; `None` if the kernel does not say.
pub fn timer_resolution() -> Option<Duration> {
    clock_getres(ClockId::CLOCK_MONOTONIC).ok().map(Duration::from)
}
