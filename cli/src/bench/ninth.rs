//! `preempt/ninth`: how soon a short thread is done that is spawned among eight endless loops on
//! one worker with slices of 1 ms; in ms. The largest value is the worst case seen.
//!
//! A plain kernel thread spawns it at random moments. The clock runs from right before the spawn
//! until the end of the short thread's work, read in the short thread itself, so that waking the
//! spawner does not count. Beside it the same with kernel threads only, all on one CPU.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reveille::Runtime;

use super::session::Session;
use super::system::{Handle, Nptl, Reveille, System};
use crate::floor::work;
use crate::output::{NPTL, REVEILLE, Unit};
use crate::units::ms;

/// Endless loops.
const HOGS: usize = 8;
/// The time slice.
const SLICE: Duration = Duration::from_millis(1);
/// Rounds of mixing that a short thread does: a few microseconds.
const SHORT: u64 = 1_000;

/// Runs the case.
///
/// # Errors
/// It could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    const CASE: &str = "preempt/ninth";
    if !session.wants(CASE) {
        return Ok(());
    }
    let times = session.pick(200, 25);
    let progress = session.progress(CASE, &[REVEILLE, NPTL], 2);
    let ours = Reveille::built(Runtime::builder().workers(1).time_slice(SLICE))?;
    let our_values = latencies(&ours, times)?;
    progress.inc(1);
    let their_values = latencies(&Nptl::ONE_CPU, times)?;
    progress.finish_and_clear();
    session.record(CASE, REVEILLE, Unit::Ms, &our_values)?;
    session.record(CASE, NPTL, Unit::Ms, &their_values)
}

/// The latencies of `times` short threads, in ms.
fn latencies<S: System>(system: &S, times: usize) -> io::Result<Vec<f64>> {
    system.outside(|system| -> io::Result<Vec<f64>> {
        let stop = Stop::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let mut hogs = Vec::with_capacity(HOGS);
        for _ in 0..HOGS {
            let (stop, begun) = (Arc::clone(&stop.0), Arc::clone(&begun));
            hogs.push(system.spawn_outside(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                while !stop.load(Ordering::Relaxed) {
                    std::hint::black_box(work::mix(SHORT, 1));
                }
            })?);
        }
        while begun.load(Ordering::Relaxed) < HOGS {
            std::thread::sleep(Duration::from_millis(1));
        }
        let values = (0..times).map(|time| short(system, time as u64)).collect();
        drop(stop);
        hogs.into_iter().for_each(Handle::join);
        values
    })?
}

/// Tells the endless loops to end, also when an error ends the case.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Spawns one short thread after a random pause; ms until it is done.
fn short<S: System>(system: &S, seed: u64) -> io::Result<f64> {
    // 3 to 13 ms, never in step with the slices.
    let random = work::mix(3, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % 10_000;
    std::thread::sleep(Duration::from_micros(3_000 + random));
    let start = Instant::now();
    let thread = system.spawn_outside(move || {
        std::hint::black_box(work::mix(SHORT, seed));
        Instant::now()
    })?;
    Ok(ms(thread.join() - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_thread_gets_done() {
        let values = latencies(&Nptl::ANY_CPU, 2).unwrap();
        assert_eq!(values.len(), 2);
        assert!(values.iter().all(|ms| *ms > 0.0));
    }
}
