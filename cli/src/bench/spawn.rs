//! `bench spawn`: starting, running, ending and joining threads.
//!
//! - `spawn/one-1w`, `spawn/one-2w`: one thread at a time whose closure returns a value, spawned
//!   and joined by a thread of the same system; one worker against kernel threads on one CPU, two
//!   workers against kernel threads on all CPUs.
//! - `spawn/10k-warm`, `spawn/10k-cold`: 10,000 spawned, then all joined, on one worker against
//!   one CPU; ns for each. Warm: as many have been alive at once in the same process before
//!   ([`crowd`]), and each round follows one that is not counted. Cold is a fresh process each
//!   time, in which no thread has been before but the spawning one.
//! - `spawn/start-signal`, `spawn/start-context`: as `one-1w` with the other ways to begin a
//!   thread: through a signal, and from a converted context.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use reveille::{Runtime, StartMethod};

use super::child;
use super::rivals;
use super::session::{Lane, Session};
use super::system::{Handle, Nptl, Reveille, System};
use crate::args::Measurement;
use crate::output::{NPTL, REVEILLE, Unit};

/// Threads in the `10k` cases.
const MANY: u64 = 10_000;

/// Runs the family.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    if session.wants("spawn/one-1w") {
        let ours = Reveille::workers(1)?;
        one(session, "spawn/one-1w", &ours, &Nptl::ONE_CPU, Some(Measurement::RivalOne))?;
    }
    if session.wants("spawn/one-2w") {
        let ours = Reveille::workers(2)?;
        one(session, "spawn/one-2w", &ours, &Nptl::ANY_CPU, Some(Measurement::RivalTwo))?;
    }
    if session.wants("spawn/10k-warm") {
        let ours = Reveille::workers(1)?;
        ours.inside(|| crowd::<Reveille>(MANY))??;
        Nptl::ONE_CPU.inside(|| crowd::<Nptl>(MANY))??;
        let mut lanes = vec![
            Lane::new(REVEILLE, || Ok(ours.inside(|| many_warm::<Reveille>(MANY))??)),
            Lane::new(NPTL, || Ok(Nptl::ONE_CPU.inside(|| many_warm::<Nptl>(MANY))??)),
        ];
        lanes.extend(rivals::lanes(Measurement::RivalMany, MANY));
        session.measure("spawn/10k-warm", Unit::Ns, lanes)?;
    }
    if session.wants("spawn/10k-cold") {
        let rounds = session.rounds();
        let lane = |system| {
            Lane::new(system, move || Ok(child::measure(Measurement::Cold, system, MANY)?.value))
        };
        let lanes = vec![lane(REVEILLE), lane(NPTL)];
        session.measure_rounds("spawn/10k-cold", Unit::Ns, rounds, false, lanes)?;
    }
    let methods = [
        ("spawn/start-signal", StartMethod::Signal),
        ("spawn/start-context", StartMethod::Context),
    ];
    for (case, method) in methods {
        if session.wants(case) {
            let ours = Reveille::built(Runtime::builder().workers(1).start_method(method))?;
            one(session, case, &ours, &Nptl::ONE_CPU, None)?;
        }
    }
    Ok(())
}

/// A case in which one thread at a time lives.
fn one(
    session: &mut Session,
    case: &str,
    ours: &Reveille,
    theirs: &Nptl,
    rivals: Option<Measurement>,
) -> anyhow::Result<()> {
    let count = session.pick(200_000, 20_000);
    let their_count = session.pick(2_000, 300);
    let mut lanes = vec![
        Lane::new(REVEILLE, || Ok(ours.inside(|| one_by_one::<Reveille>(count))??)),
        Lane::new(NPTL, || Ok(theirs.inside(|| one_by_one::<Nptl>(their_count))??)),
    ];
    if let Some(measurement) = rivals {
        lanes.extend(rivals::lanes(measurement, count));
    }
    session.measure(case, Unit::Ns, lanes)
}

/// Spawns and joins `count` threads one by one; ns for each. To be called inside.
fn one_by_one<S: System>(count: u64) -> io::Result<f64> {
    let start = Instant::now();
    for i in 0..count {
        let thread = S::spawn(move || black_box(i) + 1)?;
        let value = thread.join();
        if value != i + 1 {
            return Err(io::Error::other("a thread returned the wrong value"));
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / count as f64)
}

/// Has `count` threads alive at once, none of which ends before the last one has been spawned.
/// Without this the rounds would warm up for long: while stacks are still made the spawner is
/// preempted, the threads that it has spawned so far end, and their stacks serve the next ones.
/// To be called inside.
fn crowd<S: System>(count: u64) -> io::Result<()> {
    let released = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let released = Arc::clone(&released);
        threads.push(S::spawn(move || {
            while !released.load(Ordering::Acquire) {
                S::park();
            }
        })?);
    }
    released.store(true, Ordering::Release);
    threads.iter().for_each(Handle::unpark);
    threads.into_iter().for_each(Handle::join);
    Ok(())
}

/// As [`many`], right after a run that is not counted: the other system's round has emptied the caches.
fn many_warm<S: System>(count: u64) -> io::Result<f64> {
    many::<S>(count)?;
    many::<S>(count)
}

/// Spawns `count` threads, then joins them all; ns for each. To be called inside.
pub fn many<S: System>(count: u64) -> io::Result<f64> {
    let mut threads = Vec::with_capacity(count as usize);
    let start = Instant::now();
    for i in 0..count {
        threads.push(S::spawn(move || black_box(i) + 1)?);
    }
    let sum: u64 = threads.into_iter().map(Handle::join).sum();
    let took = start.elapsed();
    if sum != count * (count + 1) / 2 {
        return Err(io::Error::other("the threads returned wrong values"));
    }
    Ok(took.as_nanos() as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_pass_the_same_code() {
        assert!(one_by_one::<Nptl>(5).unwrap() > 0.0);
        assert!(many::<Nptl>(20).unwrap() > 0.0);
        crowd::<Nptl>(20).unwrap();
    }
}
