//! `bench condvar`: condition variables among threads of one kind, ours and the kernel's.
//!
//! - `condvar/ring16-held-1w`, `-2w`: sixteen threads in a ring, each notified by the one before, which holds the mutex;
//!   ns for a hop.
//! - `condvar/nobody`: ns for a notification while nobody waits.
//! - `condvar/broadcast16-1w`: ns for each of sixteen waiters, from one notification of all to the next.
//!
//! The table of 2005 is in [`condvar`](super::condvar).

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::kit::{Kit, Ours, Pthread};
use super::locks::each;
use super::session::{Lane, Session};
use super::system::{Handle, Nptl, Reveille, System};
use crate::output::{NPTL, REVEILLE, Unit};

/// Runs the cases.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    for workers in [1, 2] {
        let case = format!("condvar/ring16-held-{workers}w");
        if session.wants(&case) {
            let (ours, theirs) = session.pick((500_000, 20_000), (50_000, 1_000));
            let reveille = Reveille::workers(workers)?;
            let nptl = Nptl::on(workers);
            let lanes = vec![
                Lane::new(REVEILLE, || Ok(ring::<Ours>(&reveille, ours)?)),
                Lane::new(NPTL, || Ok(ring::<Pthread>(&nptl, theirs)?)),
            ];
            session.measure(&case, Unit::Ns, lanes)?;
        }
    }
    if session.wants("condvar/nobody") {
        let n = session.pick(5_000_000, 500_000);
        let reveille = Reveille::workers(1)?;
        let lanes = vec![
            Lane::new(REVEILLE, || Ok(nobody::<Ours>(&reveille, n)?)),
            Lane::new(NPTL, || Ok(nobody::<Pthread>(&Nptl::ONE_CPU, n)?)),
        ];
        session.measure("condvar/nobody", Unit::Ns, lanes)?;
    }
    if session.wants("condvar/broadcast16-1w") {
        let (ours, theirs) = session.pick((30_000, 1_000), (3_000, 100));
        let reveille = Reveille::workers(1)?;
        let lanes = vec![
            Lane::new(REVEILLE, || Ok(broadcast::<Ours>(&reveille, ours)?)),
            Lane::new(NPTL, || Ok(broadcast::<Pthread>(&Nptl::ONE_CPU, theirs)?)),
        ];
        session.measure("condvar/broadcast16-1w", Unit::Ns, lanes)?;
    }
    Ok(())
}

/// Sixteen threads in a ring, `hops` in all: ns for one.
fn ring<K: Kit>(system: &K::Threads, hops: u64) -> io::Result<f64> {
    const RING: usize = 16;
    let condvars: Vec<K::Condvar> = (0..RING).map(|_| K::Condvar::default()).collect();
    let shared = Arc::new((K::Mutex::default(), condvars));
    let start = Instant::now();
    system.inside(|| -> io::Result<()> {
        let threads: io::Result<Vec<_>> = (0..RING)
            .map(|me| {
                let shared = Arc::clone(&shared);
                <K::Threads as System>::spawn(move || {
                    let (mutex, condvars) = &*shared;
                    let mut guard = K::lock(mutex);
                    while *guard < hops {
                        if *guard % RING as u64 == me as u64 {
                            *guard += 1;
                            K::notify_one(&condvars[(me + 1) % RING]);
                        } else {
                            guard = K::wait(&condvars[me], guard);
                        }
                    }
                    condvars.iter().for_each(K::notify_one);
                })
            })
            .collect();
        threads?.into_iter().for_each(Handle::join);
        Ok(())
    })??;
    Ok(start.elapsed().as_nanos() as f64 / hops as f64)
}

/// Notifying nobody.
fn nobody<K: Kit>(system: &K::Threads, n: u64) -> io::Result<f64> {
    system.inside(|| {
        let condvar = K::Condvar::default();
        each(n, || K::notify_one(black_box(&condvar)))
    })
}

/// Sixteen waiters notified together, `rounds` times: ns for each waiter.
fn broadcast<K: Kit>(system: &K::Threads, rounds: u64) -> io::Result<f64> {
    const WAITERS: u64 = 16;
    let shared = Arc::new((
        K::Mutex::default(),
        K::Condvar::default(),
        K::Condvar::default(),
        AtomicUsize::new(0),
    ));
    let start = Instant::now();
    system.inside(|| -> io::Result<()> {
        let threads: io::Result<Vec<_>> = (0..WAITERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                <K::Threads as System>::spawn(move || {
                    let (mutex, go, back, here) = &*shared;
                    let mut guard = K::lock(mutex);
                    for round in 1..=rounds {
                        while *guard < round {
                            guard = K::wait(go, guard);
                        }
                        let arrived = here.load(Ordering::Relaxed) + 1;
                        here.store(arrived, Ordering::Relaxed);
                        if arrived as u64 == WAITERS * round {
                            K::notify_one(back);
                        }
                    }
                })
            })
            .collect();
        let threads = threads?;
        let (mutex, go, back, here) = &*shared;
        let mut guard = K::lock(mutex);
        for round in 1..=rounds {
            *guard = round;
            K::notify_all(go);
            while (here.load(Ordering::Relaxed) as u64) < WAITERS * round {
                guard = K::wait(back, guard);
            }
        }
        drop(guard);
        threads.into_iter().for_each(Handle::join);
        Ok(())
    })??;
    Ok(start.elapsed().as_nanos() as f64 / (rounds * WAITERS) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::kit::Std;
    use super::*;

    #[test]
    fn kernel_threads_pass_the_same_code() {
        assert!(ring::<Std>(&Nptl::ANY_CPU, 100).unwrap() > 0.0);
        assert!(broadcast::<Pthread>(&Nptl::ANY_CPU, 10).unwrap() > 0.0);
        assert!(nobody::<Pthread>(&Nptl::ANY_CPU, 10).unwrap() > 0.0);
    }
}
