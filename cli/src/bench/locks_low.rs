//! `bench locks`, the lock level: ns to take a lock that nobody holds, and let go.
//!
//! - `locks/process-context`: `lock::ProcessLock`, preemption off by one flag.
//! - `locks/signal-safe`: `lock::HandlerLock`, taken as a handler takes it, by `try_lock`.
//! - `locks/sigprocmask`: with all signals blocked meanwhile: `lock::SignalLock`.
//!
//! The column `reveille` runs on a reveille thread. The column `nptl` is what a program without this crate has: libc's
//! mutex on a kernel thread, for the last case between two calls of `pthread_sigmask`; in the first two cases nothing
//! there keeps a handler or a preemption out, so it is a floor, not an equal.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::time::Instant;

use reveille::lock::{HandlerLock, ProcessLock, SignalLock};

use super::session::{Lane, Session};
use super::system::{Nptl, Reveille, System};
use crate::output::{NPTL, REVEILLE, Unit};

/// ns for one of so many.
type Measure = fn(u64) -> f64;

/// Runs this part of the family.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    let many = session.pick(5_000_000, 500_000);
    let few = session.pick(500_000, 50_000);
    let cases: [(&str, u64, Measure, Measure); 3] = [
        ("locks/process-context", many, process, mutex),
        ("locks/signal-safe", many, handler, mutex),
        ("locks/sigprocmask", few, signal, masked),
    ];
    for (case, times, ours, theirs) in cases {
        if session.wants(case) {
            let reveille = Reveille::workers(1)?;
            let lanes = vec![
                Lane::new(REVEILLE, || Ok(reveille.inside(|| ours(times))?)),
                Lane::new(NPTL, || Ok(Nptl::ONE_CPU.inside(|| theirs(times))?)),
            ];
            session.measure(case, Unit::Ns, lanes)?;
        }
    }
    Ok(())
}

/// ns for one `step`.
fn each(times: u64, mut step: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        step();
    }
    start.elapsed().as_nanos() as f64 / times as f64
}

fn process(times: u64) -> f64 {
    let lock = ProcessLock::new(0_u64);
    each(times, || *black_box(&lock).lock() += 1)
}

fn handler(times: u64) -> f64 {
    let lock = HandlerLock::new(0_u64);
    each(times, || {
        if let Some(mut count) = black_box(&lock).try_lock() {
            *count += 1;
        }
    })
}

fn signal(times: u64) -> f64 {
    let lock = SignalLock::new(0_u64);
    each(times, || *black_box(&lock).lock() += 1)
}

/// libc's mutex and what it guards.
struct Pthread {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    count: UnsafeCell<u64>,
}

impl Pthread {
    fn new() -> Self {
        let mutex = UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER);
        Self { mutex, count: UnsafeCell::new(0) }
    }

    fn step(&self) {
        // SAFETY: an initialised mutex that does not move meanwhile guards the count.
        unsafe {
            libc::pthread_mutex_lock(self.mutex.get());
            *self.count.get() += 1;
            libc::pthread_mutex_unlock(self.mutex.get());
        }
    }
}

fn mutex(times: u64) -> f64 {
    let lock = Pthread::new();
    each(times, || black_box(&lock).step())
}

fn masked(times: u64) -> f64 {
    let lock = Pthread::new();
    // SAFETY: live sets; the mask that was is put back.
    each(times, || unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut was: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut was);
        black_box(&lock).step();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const was, std::ptr::null_mut());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_measured() {
        for ns in [process(100), handler(100), signal(100), mutex(100), masked(100)] {
            assert!(ns > 0.0);
        }
    }
}
