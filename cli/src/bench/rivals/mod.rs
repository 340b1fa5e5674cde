//! Other libraries of user-level threads and tasks, as further columns of `yield` and `spawn`.
//!
//! None of them preempts or gives a thread its own TLS. Each value comes from a process of its
//! own, because some can be set up only once in a process; the child warms up first.

mod coroutines;
mod may_threads;
mod tokio_tasks;

use anyhow::bail;

use super::child;
use super::session::Lane;
use crate::args::Measurement;

/// Threads or tasks in the yield case.
const YIELDERS: u64 = super::yields::THREADS as u64;

/// What a rival measures; `None` where it has nothing of the kind.
type Measure = fn(Measurement, u64) -> Option<f64>;

/// The rivals by their crates' names.
const RIVALS: [(&str, Measure); 3] = [
    ("corosensei", coroutines::measure),
    ("may", may_threads::measure),
    ("tokio", tokio_tasks::measure),
];

/// One lane per rival that has something of the kind.
pub fn lanes(what: Measurement, count: u64) -> Vec<Lane<'static>> {
    let able = |name: &str| !(name == "corosensei" && what == Measurement::RivalTwo);
    RIVALS
        .iter()
        .filter(|(name, _)| able(name))
        .map(|(name, _)| Lane::new(name, move || Ok(child::measure(what, name, count)?.value)))
        .collect()
}

/// Measures one rival in this process.
///
/// # Errors
/// There is no such rival, or it has nothing of the kind.
pub fn measure(name: &str, what: Measurement, count: u64) -> anyhow::Result<f64> {
    let Some((_, measure)) = RIVALS.iter().find(|(rival, _)| *rival == name) else {
        bail!("there is no rival `{name}`");
    };
    match measure(what, count) {
        Some(value) => Ok(value),
        None => bail!("{name} has nothing like {what:?}"),
    }
}
