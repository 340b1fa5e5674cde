//! `preempt/share-*`: how equal the shares of endless loops are; the largest deviation from the
//! fair share, in percent of it.
//!
//! Slices have a fixed length of 1 ms: with slices that adapt, hogs get 4 ms at a time, and 2 s hold only
//! some 62 slices for each of eight, so that one more or less is 1.6 % already.
//!
//! - `share-8x1`: eight on one worker; kernel threads on one CPU beside.
//! - `share-3x2`: three on two workers, where two thirds of a worker each are only possible if
//!   threads move; kernel threads on two CPUs beside.
//!
//! Each thread counts its iterations in a cache line of its own. When all have begun, a kernel
//! thread reads the counters, sleeps, and reads them again; the differences are the shares. It is
//! work that is compared, not what the scheduler says about itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use reveille::Runtime;

use super::session::{Lane, Session};
use super::system::{Handle, Nptl, Reveille, System};
use crate::affinity;
use crate::output::{NPTL, REVEILLE, Unit};
use crate::stats::largest_deviation;

/// Runs the cases.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    for (case, hogs, workers) in [("preempt/share-8x1", 8, 1), ("preempt/share-3x2", 3, 2)] {
        if !session.wants(case) {
            continue;
        }
        let time = session.pick(Duration::from_secs(2), Duration::from_millis(400));
        let rounds = session.rounds_or(5, 1);
        let fixed = Runtime::builder().workers(workers).adaptive_slices(false);
        let ours = Reveille::built(fixed.time_slice(Duration::from_millis(1)))?;
        let theirs = Nptl::on(workers.min(affinity::allowed()?.len()));
        let lanes = vec![
            Lane::new(REVEILLE, || deviation(&ours, hogs, time)),
            Lane::new(NPTL, || deviation(&theirs, hogs, time)),
        ];
        session.measure_rounds(case, Unit::Percent, rounds, false, lanes)?;
    }
    Ok(())
}

/// What the hogs and their observer share.
struct Shared {
    counters: Vec<CachePadded<AtomicU64>>,
    stop: AtomicBool,
}

/// The largest deviation from the fair share among `hogs` endless loops, in percent.
fn deviation<S: System>(system: &S, hogs: usize, time: Duration) -> anyhow::Result<f64> {
    let shared = Arc::new(Shared {
        counters: (0..hogs).map(|_| CachePadded::default()).collect(),
        stop: AtomicBool::new(false),
    });
    let inside = || -> io::Result<()> {
        let mut threads = Vec::with_capacity(hogs);
        for at in 0..hogs {
            let shared = Arc::clone(&shared);
            threads.push(S::spawn(move || hog(&shared, at))?);
        }
        threads.into_iter().for_each(Handle::join);
        Ok(())
    };
    let work = std::thread::scope(|scope| -> io::Result<Vec<f64>> {
        let running = scope.spawn(|| system.inside(inside));
        while shared.counts().contains(&0) && !running.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = shared.counts();
        std::thread::sleep(time);
        let after = shared.counts();
        shared.stop.store(true, Ordering::Relaxed);
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))??;
        Ok(before.iter().zip(after).map(|(before, after)| (after - before) as f64).collect())
    })?;
    let (_, percent) =
        largest_deviation(&work).ok_or_else(|| anyhow::anyhow!("no thread made progress"))?;
    Ok(percent.abs())
}

/// Counts until told to stop: it never yields, blocks or calls anything.
fn hog(shared: &Shared, at: usize) {
    let counter = &shared.counters[at];
    let mut count = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        count += 1;
        counter.store(count, Ordering::Relaxed);
    }
}

impl Shared {
    /// What the counters say now.
    fn counts(&self) -> Vec<u64> {
        self.counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_hog_has_all_there_is() {
        let percent = deviation(&Nptl::ANY_CPU, 1, Duration::from_millis(10)).unwrap();
        assert_eq!(percent, 0.0);
    }
}
