//! The measured cost floor: medians over a few rounds, each round all primitives in turn.

use std::time::Duration;

use anyhow::Context;

use crate::floor::{self, fs, signal, work::Amount};
use crate::output::{FLOOR, Record, Unit};

/// Rounds.
const ROUNDS: usize = 7;

/// A primitive: its case, what it is, and what measures it once (`None`: not possible here).
type Cost<'a> = (&'static str, &'static str, Box<dyn FnMut() -> anyhow::Result<Option<f64>> + 'a>);

/// Measures all primitives; with each record a description.
///
/// # Errors
/// The kernel refuses a handler or a timer.
pub fn measure() -> anyhow::Result<Vec<(Record, &'static str)>> {
    let work = Amount::lasting(Duration::from_millis(20));
    let mut costs: Vec<Cost> = vec![
        (
            "floor/getppid",
            "the cheapest system call",
            Box::new(|| Ok(Some(floor::getppid(50_000)))),
        ),
        (
            "floor/rt_sigprocmask",
            "changing the signal mask",
            Box::new(|| Ok(Some(floor::sigprocmask(50_000)))),
        ),
        (
            "floor/tgkill-sigreturn",
            "a signal to oneself, an empty handler, and back",
            Box::new(|| Ok(Some(signal::delivery(10_000)?))),
        ),
        (
            "floor/wrfsbase",
            "exchanging the thread-local storage",
            Box::new(|| Ok(fs::wrfsbase(500_000))),
        ),
        (
            "floor/timer_settime",
            "asking for a later tick",
            Box::new(|| Ok(Some(signal::timer_settime(20_000)?))),
        ),
        (
            "floor/timer-tick",
            "a tick of a timer with an empty handler",
            Box::new(|| Ok(signal::tick(work)?)),
        ),
    ];
    let mut values = vec![Vec::with_capacity(ROUNDS); costs.len()];
    for _ in 0..ROUNDS {
        for ((case, _, measure), values) in costs.iter_mut().zip(&mut values) {
            values.extend(measure().with_context(|| format!("cannot measure {case}"))?);
        }
    }
    Ok(costs
        .iter()
        .zip(&values)
        .filter_map(|((case, text, _), values)| {
            Record::new(case, FLOOR, Unit::Ns, values).map(|record| (record, *text))
        })
        .collect())
}
