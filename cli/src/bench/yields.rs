//! `bench yield`: 10 threads on one worker that do nothing but yield.
//!
//! - `yield/10x1`: ns per yield. Ten threads wait behind a gate until all exist, then each yields
//!   a fixed number of times; the time from the gate's opening to the last join, divided by all
//!   yields. Kernel threads run the same code confined to one CPU. The column `floor` is one bare
//!   write of the FS base, which any switch between threads with their own TLS contains.
//! - `yield/spread`: the ten count their yields until a flag, which each looks at once per
//!   iteration, is raised; largest count minus smallest. Gate and flag are moved by a kernel
//!   thread outside.
//! - `yield/syscalls`: system calls per million yields, counted by [`syscalls`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::rivals;
use super::session::{Lane, Session};
use super::syscalls;
use super::system::{Handle, Nptl, Reveille, System};
use crate::args::Measurement;
use crate::floor::fs;
use crate::output::{FLOOR, NPTL, REVEILLE, Unit};

/// Threads in the test, as in the year 2000.
pub const THREADS: usize = 10;

/// Runs the family.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    if session.wants("yield/10x1") {
        time(session)?;
    }
    if session.wants("yield/spread") {
        let time = session.pick(Duration::from_secs(1), Duration::from_millis(150));
        let rounds = session.rounds_or(5, 2);
        let ours = Reveille::workers(1)?;
        let lanes = vec![
            Lane::new(REVEILLE, || Ok(spread(&ours, time)?)),
            Lane::new(NPTL, || Ok(spread(&Nptl::ONE_CPU, time)?)),
        ];
        session.measure_rounds("yield/spread", Unit::Iterations, rounds, false, lanes)?;
    }
    if session.wants("yield/syscalls") {
        calls(session)?;
    }
    Ok(())
}

/// `yield/10x1`.
fn time(session: &mut Session) -> anyhow::Result<()> {
    let ours = session.pick(500_000, 50_000);
    let theirs = session.pick(20_000, 2_000);
    let writes = session.pick(2_000_000, 200_000);
    let reveille = Reveille::workers(1)?;
    let mut lanes = vec![
        Lane::new(REVEILLE, || Ok(each(&reveille, ours)?)),
        Lane::new(NPTL, || Ok(each(&Nptl::ONE_CPU, theirs)?)),
    ];
    if fs::allowed() {
        lanes.push(Lane::new(FLOOR, || fs::wrfsbase(writes).context("no wrfsbase here")));
    }
    lanes.extend(rivals::lanes(Measurement::RivalYield, theirs));
    session.measure("yield/10x1", Unit::Ns, lanes)
}

/// `yield/syscalls`.
fn calls(session: &mut Session) -> anyhow::Result<()> {
    let rounds = session.rounds_or(3, 1);
    let ours = session.pick(1_000_000, 200_000);
    let mut seen = syscalls::Counts::default();
    let lanes = vec![
        Lane::new(REVEILLE, || {
            let counts = syscalls::count(REVEILLE, ours)?;
            let value = counts.per_million(ours);
            seen.merge(counts);
            Ok(value)
        }),
        // A stop for each call makes them slow; a few say the same as a million.
        Lane::new(NPTL, || Ok(syscalls::count(NPTL, 5_000)?.per_million(5_000))),
    ];
    session.measure_rounds("yield/syscalls", Unit::Calls, rounds, false, lanes)?;
    if let Some(text) = seen.describe() {
        session.note(format!("system calls seen while reveille threads yielded: {text}"));
    }
    Ok(())
}

/// Ns per yield when [`THREADS`] threads yield `yields` times each.
fn each<S: System>(system: &S, yields: u64) -> io::Result<f64> {
    system.inside(|| storm::<S>(yields, || (), || ()))?
}

/// Lets [`THREADS`] threads yield `yields` times each and returns ns per yield; `begin` and `end`
/// are called right before and after. To be called inside.
pub fn storm<S: System>(yields: u64, begin: impl FnOnce(), end: impl FnOnce()) -> io::Result<f64> {
    let gate = Arc::new(Gate::default());
    let mut threads = Vec::with_capacity(THREADS);
    for _ in 0..THREADS {
        let gate = Arc::clone(&gate);
        threads.push(S::spawn(move || {
            gate.pass::<S>();
            for _ in 0..yields {
                S::yield_now();
            }
        })?);
    }
    while gate.waiting() < THREADS {
        S::yield_now();
    }
    begin();
    let start = Instant::now();
    gate.open();
    for thread in threads {
        thread.join();
    }
    let took = start.elapsed();
    end();
    Ok(took.as_nanos() as f64 / (yields * THREADS as u64) as f64)
}

/// Largest minus smallest number of iterations of [`THREADS`] threads that yield for `time`.
fn spread<S: System>(system: &S, time: Duration) -> io::Result<f64> {
    let gate = Arc::new(Gate::default());
    let stop = Arc::new(AtomicBool::new(false));
    let inside = || -> io::Result<Vec<u64>> {
        let mut threads = Vec::with_capacity(THREADS);
        for _ in 0..THREADS {
            let (gate, stop) = (Arc::clone(&gate), Arc::clone(&stop));
            threads.push(S::spawn(move || {
                gate.pass::<S>();
                let mut count = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    count += 1;
                    S::yield_now();
                }
                count
            })?);
        }
        Ok(threads.into_iter().map(Handle::join).collect())
    };
    let counts = std::thread::scope(|scope| {
        let running = scope.spawn(|| system.inside(inside));
        while gate.waiting() < THREADS && !running.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        gate.open();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })??;
    let (min, max) = (counts.iter().min(), counts.iter().max());
    Ok((max.unwrap_or(&0) - min.unwrap_or(&0)) as f64)
}

/// Lets threads start together: they yield until it is open.
#[derive(Default)]
struct Gate {
    waiting: AtomicUsize,
    open: AtomicBool,
}

impl Gate {
    /// Waits until the gate is open.
    fn pass<S: System>(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        while !self.open.load(Ordering::Acquire) {
            S::yield_now();
        }
    }

    /// How many have come to the gate.
    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Lets all pass, once and for all.
    fn open(&self) {
        self.open.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_pass_the_same_code() {
        assert!(each(&Nptl::ONE_CPU, 50).unwrap() > 0.0);
        assert!(spread(&Nptl::ANY_CPU, Duration::from_millis(20)).unwrap() >= 0.0);
    }
}
