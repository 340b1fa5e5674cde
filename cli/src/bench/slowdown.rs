//! `preempt/8x1-*`: how much slower CPU-bound work gets by being sliced; in percent.
//!
//! Eight threads on one worker do one piece of work each ([`Amount`]: no calls, no memory). The
//! same eight pieces one after the other on a plain kernel thread are the zero; they are timed
//! before and after each round and the mean is taken, so that drift cancels out. Beside it, as
//! `floor`, the eight pieces one after the other under a POSIX timer of the same interval with an
//! empty handler ([`Twin`]): that is what ticks alone cost here, in a virtual machine most of all.
//! As `nptl`, eight kernel threads on one CPU.
//!
//! - `8x1-1ms`, `8x1-100us`: every slice has that length.
//! - `8x1-default`: the library's default settings, where slices grow while only hogs compete; its
//!   twin ticks at the default slice of 1 ms.
//!
//! All of it, the worker included, runs on the same single CPU. `--clock cpu` reads the CPU time
//! of the whole process instead of the time that passes; on a machine that is busy with other
//! things the former is steadier, but it does not see idling.

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::session::Session;
use super::system::{Handle, Nptl, Reveille, System};
use crate::affinity;
use crate::args::Clock;
use crate::floor::signal::Twin;
use crate::floor::work::Amount;
use crate::output::{FLOOR, NPTL, REVEILLE, Unit};
use crate::stats::mean;

/// Threads, and pieces of work.
const THREADS: u64 = 8;

/// One of the cases.
struct Case {
    name: &'static str,
    /// Slices of this length; `None` for the default settings.
    fixed: Option<Duration>,
    /// The interval of the twin timer.
    tick: Duration,
}

/// All of the cases.
const CASES: [Case; 3] = [
    Case {
        name: "preempt/8x1-1ms",
        fixed: Some(Duration::from_millis(1)),
        tick: Duration::from_millis(1),
    },
    Case {
        name: "preempt/8x1-100us",
        fixed: Some(Duration::from_micros(100)),
        tick: Duration::from_micros(100),
    },
    Case { name: "preempt/8x1-default", fixed: None, tick: Duration::from_millis(1) },
];

/// Runs the cases.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    for case in &CASES {
        if session.wants(case.name) {
            measure(session, case)?;
        }
    }
    Ok(())
}

/// Measures one case.
fn measure(session: &mut Session, case: &Case) -> anyhow::Result<()> {
    const LANES: [&str; 3] = [REVEILLE, FLOOR, NPTL];
    let rounds = session.rounds();
    let piece = session.pick(Duration::from_millis(60), Duration::from_millis(15));
    let clock = session.clock();
    let progress = session.progress(case.name, &LANES, rounds);
    let mut values = LANES.map(|_| Vec::with_capacity(rounds));
    let done = affinity::confined(1, || -> anyhow::Result<()> {
        // Made here, so that its worker inherits the one CPU.
        let ours = match case.fixed {
            Some(slice) => Reveille::fixed(slice)?,
            None => Reveille::workers(1)?,
        };
        let work = Amount::lasting(piece);
        sliced(clock, &ours, work)?; // warm-up
        let mut before = sequential(clock, work)?;
        for round in 0..rounds {
            let mut took = [0.0; LANES.len()];
            for turn in 0..LANES.len() {
                let lane = (round + turn) % LANES.len();
                took[lane] = match LANES[lane] {
                    REVEILLE => sliced(clock, &ours, work)?,
                    FLOOR => ticked(clock, work, case.tick)?,
                    _ => sliced(clock, &Nptl::ONE_CPU, work)?,
                };
            }
            let after = sequential(clock, work)?;
            let undisturbed = mean(&[before, after]);
            for (values, took) in values.iter_mut().zip(took) {
                values.push((took / undisturbed - 1.0) * 100.0);
            }
            before = after;
            progress.inc(1);
        }
        Ok(())
    });
    progress.finish_and_clear();
    done??;
    for (lane, values) in LANES.iter().zip(&values) {
        session.record(case.name, lane, Unit::Percent, values)?;
    }
    Ok(())
}

/// Seconds for all pieces one after the other.
fn sequential(clock: Clock, work: Amount) -> io::Result<f64> {
    timed(clock, || {
        for seed in 0..THREADS {
            std::hint::black_box(work.run(seed));
        }
    })
}

/// Seconds for all pieces one after the other under ticks that do nothing.
fn ticked(clock: Clock, work: Amount, interval: Duration) -> io::Result<f64> {
    let twin = Twin::start(interval)?;
    let took = sequential(clock, work);
    drop(twin);
    took
}

/// Seconds for all pieces on threads of `system`.
fn sliced<S: System>(clock: Clock, system: &S, work: Amount) -> io::Result<f64> {
    system.inside(|| {
        let mut spawned = Ok(());
        let took = timed(clock, || {
            let mut threads = Vec::with_capacity(THREADS as usize);
            for seed in 0..THREADS {
                match S::spawn(move || work.run(seed)) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => spawned = Err(error),
                }
            }
            for thread in threads {
                std::hint::black_box(thread.join());
            }
        });
        spawned.and(took)
    })?
}

/// Seconds that `f` takes by `clock`.
fn timed(clock: Clock, f: impl FnOnce()) -> io::Result<f64> {
    let start = now(clock)?;
    f();
    Ok((now(clock)? - start).as_secs_f64())
}

/// The time by `clock`.
fn now(clock: Clock) -> io::Result<Duration> {
    let id = match clock {
        Clock::Wall => ClockId::CLOCK_MONOTONIC,
        Clock::Cpu => ClockId::CLOCK_PROCESS_CPUTIME_ID,
    };
    Ok(clock_gettime(id)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_takes_time_in_every_lane() {
        let work = Amount::lasting(Duration::from_micros(200));
        for clock in [Clock::Wall, Clock::Cpu] {
            assert!(sequential(clock, work).unwrap() > 0.0);
            assert!(sliced(clock, &Nptl::ONE_CPU, work).unwrap() > 0.0);
        }
    }
}
