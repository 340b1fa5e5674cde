//! `bench locks`: what a lock costs alone, among others, and with a condition variable to and fro.
//!
//! - `locks/uncontended`: ns for lock and unlock, nobody else there. Beside ours those of std, parking_lot and
//!   glibc.
//! - `locks/rw-read`: the same for reading, with a reader-writer lock.
//! - `locks/contended-4x2`, `locks/contended-4x1`: four threads on two workers (CPUs), or one, that lock, add one and
//!   unlock for two seconds: ns for each such operation of any of them.
//! - `locks/share-4x2`, `locks/share-4x1`: from the same run, the count of the thread that came in most
//!   often by that of the one that came in least often.
//! - `locks/pingpong-1w`, `locks/pingpong-2w`: ns for a round trip of two threads that wait for each other with a
//!   mutex and a condition variable.
//!
//! The lock level's cases are in [`locks_low`](super::locks_low).

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::kit::{Kit, Ours, Pthread, Std};
use super::session::{Lane, Session};
use super::system::{Handle, Nptl, Reveille, System};
use crate::output::{NPTL, REVEILLE, Unit};

/// The cases of `bench locks`.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    if session.wants("locks/uncontended") {
        uncontended(session)?;
    }
    if session.wants("locks/rw-read") {
        rw_read(session)?;
    }
    for workers in [2, 1] {
        contended(session, workers)?;
    }
    for workers in [1, 2] {
        let case = format!("locks/pingpong-{workers}w");
        if session.wants(&case) {
            let (ours, theirs) = session.pick((200_000, 10_000), (20_000, 500));
            let reveille = Reveille::workers(workers)?;
            let nptl = Nptl::on(workers);
            let lanes = vec![
                Lane::new(REVEILLE, || Ok(ping_pong::<Ours>(&reveille, ours)?)),
                Lane::new(NPTL, || Ok(ping_pong::<Pthread>(&nptl, theirs)?)),
                Lane::new(Std::NAME, || Ok(ping_pong::<Std>(&nptl, theirs)?)),
            ];
            session.measure(&case, Unit::Ns, lanes)?;
        }
    }
    super::locks_low::run(session)
}

/// Ns for one call of `f`.
pub fn each(n: u64, mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..n {
        f();
    }
    start.elapsed().as_nanos() as f64 / n as f64
}

/// `locks/uncontended`: each kind in a thread of its own system.
fn uncontended(session: &mut Session) -> anyhow::Result<()> {
    fn one<K: Kit>(system: &K::Threads, n: u64) -> io::Result<f64> {
        system.inside(|| {
            let m = K::Mutex::default();
            each(n, || *K::lock(black_box(&m)) += 1)
        })
    }
    let n = session.pick(2_000_000, 200_000);
    let ours = Reveille::workers(1)?;
    let lanes = vec![
        Lane::new(REVEILLE, || Ok(one::<Ours>(&ours, n)?)),
        Lane::new(NPTL, || Ok(one::<Pthread>(&Nptl::ONE_CPU, n)?)),
        Lane::new(Std::NAME, || Ok(one::<Std>(&Nptl::ONE_CPU, n)?)),
        Lane::new("parking_lot", || {
            let m = parking_lot::Mutex::new(0_u64);
            Ok(each(n, || *black_box(&m).lock() += 1))
        }),
    ];
    session.measure("locks/uncontended", Unit::Ns, lanes)
}

/// `locks/rw-read`.
fn rw_read(session: &mut Session) -> anyhow::Result<()> {
    let n = session.pick(2_000_000, 200_000);
    let ours = Reveille::workers(1)?;
    let lanes = vec![
        Lane::new(REVEILLE, || {
            Ok(ours.inside(|| {
                let m = reveille::sync::RwLock::new(0_u64);
                each(n, || drop(black_box(black_box(&m).read())))
            })?)
        }),
        Lane::new(Std::NAME, || {
            let m = std::sync::RwLock::new(0_u64);
            Ok(each(n, || drop(black_box(black_box(&m).read()))))
        }),
        Lane::new("parking_lot", || {
            let m = parking_lot::RwLock::new(0_u64);
            Ok(each(n, || drop(black_box(black_box(&m).read()))))
        }),
    ];
    session.measure("locks/rw-read", Unit::Ns, lanes)
}

/// `locks/contended-4xN` and `locks/share-4xN`.
fn contended(session: &mut Session, workers: usize) -> anyhow::Result<()> {
    let (case, share) =
        (format!("locks/contended-4x{workers}"), format!("locks/share-4x{workers}"));
    if !session.wants(&case) && !session.wants(&share) {
        return Ok(());
    }
    let time = session.pick(Duration::from_secs(2), Duration::from_millis(100));
    let rounds = session.rounds_or(5, 2);
    let (reveille, nptl) = (Reveille::workers(workers)?, Nptl::on(workers));
    let names = [REVEILLE, NPTL, Std::NAME];
    let progress = session.progress(&case, &names, rounds);
    let mut values = [const { (Vec::new(), Vec::new()) }; 3];
    for _ in 0..rounds {
        let runs = [
            compete::<Ours>(&reveille, time)?,
            compete::<Pthread>(&nptl, time)?,
            compete::<Std>(&nptl, time)?,
        ];
        for (value, (ns, ratio)) in values.iter_mut().zip(runs) {
            value.0.push(ns);
            value.1.push(ratio);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    for (case, unit, second) in [(case, Unit::Ns, false), (share, Unit::Ratio, true)] {
        if session.wants(&case) {
            for (name, value) in names.iter().zip(&values) {
                session.record(&case, name, unit, if second { &value.1 } else { &value.0 })?;
            }
        }
    }
    Ok(())
}

/// Four threads at one mutex for `time`: ns for an operation, and most by least.
fn compete<K: Kit>(system: &K::Threads, time: Duration) -> io::Result<(f64, f64)> {
    let shared = Arc::new((K::Mutex::default(), AtomicBool::new(false)));
    let start = Instant::now();
    let counts = std::thread::scope(|s| {
        let clock = Arc::clone(&shared);
        s.spawn(move || {
            std::thread::sleep(time);
            clock.1.store(true, Ordering::Relaxed);
        });
        system.inside(|| {
            let threads: io::Result<Vec<_>> = (0..4)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    <K::Threads as System>::spawn(move || {
                        let mut count = 0_u64;
                        while !shared.1.load(Ordering::Relaxed) {
                            *K::lock(&shared.0) += 1;
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            threads.map(|t| t.into_iter().map(Handle::join).collect::<Vec<u64>>())
        })
    })??;
    let ns = start.elapsed().as_nanos() as f64 / counts.iter().sum::<u64>() as f64;
    let (min, max) = (counts.iter().min(), counts.iter().max());
    Ok((ns, *max.unwrap_or(&1) as f64 / (*min.unwrap_or(&1)).max(1) as f64))
}

/// Two threads take turns, `rounds` each: ns for a round trip.
fn ping_pong<K: Kit>(system: &K::Threads, rounds: u64) -> io::Result<f64> {
    let shared = Arc::new((K::Mutex::default(), K::Condvar::default()));
    let start = Instant::now();
    system.inside(|| -> io::Result<()> {
        let threads: io::Result<Vec<_>> = (0..2)
            .map(|me| {
                let shared = Arc::clone(&shared);
                <K::Threads as System>::spawn(move || {
                    let (mutex, condvar) = &*shared;
                    let mut guard = K::lock(mutex);
                    for _ in 0..rounds {
                        while *guard % 2 != me {
                            guard = K::wait(condvar, guard);
                        }
                        *guard += 1;
                        K::notify_one(condvar);
                    }
                })
            })
            .collect();
        threads?.into_iter().for_each(Handle::join);
        Ok(())
    })??;
    Ok(start.elapsed().as_nanos() as f64 / rounds as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_pass_the_same_code() {
        assert!(ping_pong::<Pthread>(&Nptl::ANY_CPU, 50).unwrap() > 0.0);
        let (ns, ratio) = compete::<Std>(&Nptl::ANY_CPU, Duration::from_millis(5)).unwrap();
        assert!(ns > 0.0 && ratio >= 1.0);
    }
}
