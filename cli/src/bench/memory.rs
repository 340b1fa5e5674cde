//! `bench memory`: a great many threads alive and parked at once.
//!
//! - `memory/parked-1m`: resident bytes for each, all memory of the process included (stack, TLS,
//!   records, the vector of handles); read from /proc/self/statm before the first spawn and when
//!   all are parked.
//! - `memory/create-1m`: ns for each, from the first spawn until the last one has parked.
//!
//! Each round is a process of its own, because memory once used tends to stay. All threads have
//! stacks of 64 KiB. Kernel threads are limited in number and take kernel memory besides, which
//! does not show here; 5,000 of them are measured. In the end all are woken and joined.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{bail, ensure};

use super::child::{self, Report};
use super::session::Session;
use super::system::{Handle, System};
use crate::args::Measurement;
use crate::output::{NPTL, REVEILLE, Unit};
use crate::proc;
use crate::units::{grouped, number};

/// Bytes of stack of each thread.
const STACK: usize = 64 * 1024;
/// Threads in the full measurement.
const FULL: u64 = 1_000_000;
/// Threads with `--quick`.
const QUICK: u64 = 20_000;
/// Kernel threads measured beside.
const KERNEL_THREADS: u64 = 5_000;
/// Bytes of memory that must be free for each thread: what is resident, page tables, some air.
const NEEDED: u64 = 10 * 1024;

/// Runs the family.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    let wanted = [session.wants("memory/parked-1m"), session.wants("memory/create-1m")];
    if wanted == [false, false] {
        return Ok(());
    }
    let threads = threads(session)?;
    let rounds = session.rounds_or(3, 1);
    let progress = session.progress("memory/parked-1m", &[REVEILLE, NPTL], rounds);
    let lanes = [(REVEILLE, threads), (NPTL, threads.min(KERNEL_THREADS))];
    let mut reports = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for ((system, count), reports) in lanes.iter().zip(&mut reports) {
            reports.push(child::measure(Measurement::Parked, system, *count)?);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    if let Some(report) = reports[0].iter().find(|report| report.count < threads) {
        bail!("only {} of {threads} threads could be created", report.count);
    }
    let values = |reports: &[Report], value: fn(&Report) -> f64| -> Vec<f64> {
        reports.iter().map(value).collect()
    };
    if wanted[0] {
        for ((system, _), reports) in lanes.iter().zip(&reports) {
            let bytes = values(reports, |report| report.value);
            session.record("memory/parked-1m", system, Unit::Bytes, &bytes)?;
        }
    }
    if wanted[1] {
        for ((system, _), reports) in lanes.iter().zip(&reports) {
            let ns = values(reports, |report| report.create);
            session.record("memory/create-1m", system, Unit::Ns, &ns)?;
        }
    }
    for ((system, _), reports) in lanes.iter().zip(&reports) {
        if let Some(report) = reports.last() {
            session.note(format!(
                "{system}: {} threads alive at once, page tables {} bytes each besides",
                grouped(report.count as i64),
                number(report.page_tables),
            ));
        }
    }
    Ok(())
}

/// How many threads to make: as asked for, else the standard number if memory suffices.
fn threads(session: &mut Session) -> anyhow::Result<u64> {
    if let Some(threads) = session.threads() {
        return Ok(threads);
    }
    let wanted = session.pick(FULL, QUICK);
    let Some(available) = proc::available() else { return Ok(wanted) };
    let possible = available / NEEDED;
    if possible >= wanted {
        return Ok(wanted);
    }
    let threads = possible / 2;
    ensure!(threads >= 100, "too little memory is free: {available} bytes");
    eprintln!("memory: {available} bytes are free, so {threads} threads instead of {wanted}");
    Ok(threads)
}

/// Creates `count` threads that park at once, measures, and ends them; for a fresh process.
///
/// # Errors
/// Not even 100 threads can be created, or the kernel does not tell the resident memory.
pub fn parked<S: System>(system: &S, count: u64) -> io::Result<Report> {
    system.inside(|| parked_inside::<S>(count))?
}

/// The inner part of [`parked`].
fn parked_inside<S: System>(count: u64) -> io::Result<Report> {
    const FEW: usize = 100;
    let parked = Arc::new(AtomicUsize::new(0));
    let released = Arc::new(AtomicBool::new(false));
    let tables = proc::page_tables();
    let resident = proc::resident()?;
    let start = Instant::now();
    let mut threads = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (parked, released) = (Arc::clone(&parked), Arc::clone(&released));
        let thread = S::spawn_sized(STACK, move || {
            parked.fetch_add(1, Ordering::Relaxed);
            while !released.load(Ordering::Acquire) {
                S::park();
            }
        });
        match thread {
            Ok(thread) => threads.push(thread),
            // A limit of the system; the caller is told how many there were.
            Err(_) if threads.len() >= FEW => break,
            Err(error) => return Err(error),
        }
    }
    let made = threads.len();
    while parked.load(Ordering::Relaxed) < made {
        S::yield_now();
    }
    let took = start.elapsed();
    let grown = proc::resident()?.saturating_sub(resident);
    let tables = proc::page_tables().saturating_sub(tables);
    released.store(true, Ordering::Release);
    for thread in &threads {
        thread.unpark();
    }
    for thread in threads {
        thread.join();
    }
    let each = |total: f64| total / made.max(1) as f64;
    Ok(Report {
        value: each(grown as f64),
        count: made as u64,
        create: each(took.as_nanos() as f64),
        page_tables: each(tables as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::Nptl;

    #[test]
    fn kernel_threads_pass_the_same_code() {
        let report = parked(&Nptl::ANY_CPU, 120).unwrap();
        assert_eq!(report.count, 120);
        assert!(report.create > 0.0);
    }
}
