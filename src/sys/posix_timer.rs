//! A POSIX timer that signals one kernel thread (timer_create(2), SIGEV_THREAD_ID).

use super::clock;
use super::raw::syscall4;
use nix::errno::Errno;
use std::time::Duration;

/// A timer. Its id is valid in the whole process, so any thread may set it.
#[derive(Debug)]
pub(crate) struct Timer {
    id: libc::timer_t,
}

// SAFETY: the id is a number for the kernel, which synchronizes its use.
unsafe impl Send for Timer {}
// SAFETY: as above.
unsafe impl Sync for Timer {}

impl Timer {
    /// Creates a disarmed timer on `clock` whose expiry sends `signal` with `value` to the kernel
    /// thread `tid` of this process.
    pub(crate) fn new(
        clock: libc::clockid_t,
        signal: i32,
        value: usize,
        tid: i32,
    ) -> Result<Timer, Errno> {
        // SAFETY: all-zero is a valid sigevent.
        let mut ev: libc::sigevent = unsafe { core::mem::zeroed() };
        ev.sigev_notify = libc::SIGEV_THREAD_ID;
        ev.sigev_signo = signal;
        ev.sigev_value = libc::sigval { sival_ptr: value as *mut libc::c_void };
        ev.sigev_notify_thread_id = tid;
        let mut id: libc::timer_t = core::ptr::null_mut();
        // SAFETY: both pointers are to live locals.
        Errno::result(unsafe { libc::timer_create(clock, &mut ev, &mut id) })?;
        Ok(Timer { id })
    }

    /// Arms the timer: first after `first`, then every `interval`. Zero `first` disarms.
    /// Async-signal-safe.
    pub(crate) fn set(&self, first: Duration, interval: Duration) {
        let spec = libc::itimerspec { it_interval: timespec(interval), it_value: timespec(first) };
        // glibc's timer_t of a SIGEV_THREAD_ID timer is the kernel's number (2.3 and later).
        let (id, spec) = (self.id as usize, &raw const spec as usize);
        // SAFETY: the id is live, the spec is a local; a valid spec cannot fail.
        unsafe { syscall4(libc::SYS_timer_settime, id, 0, spec, 0) };
    }

    /// Arms the timer: once, when its clock says `at` nanoseconds or more. Zero disarms. Async-signal-safe.
    pub(crate) fn set_at(&self, at: u64) {
        let spec = libc::itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: clock::timespec(at),
        };
        let (id, spec) = (self.id as usize, &raw const spec as usize);
        // SAFETY: as in `set`.
        unsafe { syscall4(libc::SYS_timer_settime, id, libc::TIMER_ABSTIME as usize, spec, 0) };
    }

    /// Disarms the timer. Async-signal-safe.
    pub(crate) fn disarm(&self) {
        self.set(Duration::ZERO, Duration::ZERO);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the id is live and not used after.
        unsafe { libc::timer_delete(self.id) };
    }
}

fn timespec(d: Duration) -> libc::timespec {
    clock::timespec(d.as_nanos() as u64)
}
