//! `bench preempt`: what preemption costs and what it gives.
//!
//! - `preempt/floor`: one delivery of an empty SA_SIGINFO handler, sent by tgkill to oneself, with
//!   its sigreturn; ns. No preemption by signal can cost less than its delivery.
//! - `preempt/switch`: one whole preemption, ns: two threads on one worker call the library's hook
//!   that sends them the tick's signal by tgkill, as above, and is treated as a tick. A call ends
//!   when the other thread has been preempted in turn, so one call is one delivery, one save, one
//!   decision, one switch and one resume. The empty delivery stands beside it as `floor`, measured
//!   in the same rounds.
//! - `preempt/8x1-*`: see [`slowdown`]. `preempt/share-*`: see [`shares`].
//!   `preempt/ninth`: see [`ninth`].

use std::io;
use std::time::Instant;

use super::session::{Lane, Session};
use super::system::{Handle, Reveille, System};
use super::{ninth, shares, slowdown};
use crate::floor::signal;
use crate::output::{FLOOR, REVEILLE, Unit};

/// Runs the family.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    let deliveries = session.pick(100_000, 10_000);
    if session.wants("preempt/switch") {
        let ours = Reveille::workers(1)?;
        let lanes = vec![
            Lane::new(REVEILLE, || Ok(switch(&ours, deliveries)?)),
            Lane::new(FLOOR, || Ok(signal::delivery(deliveries)?)),
        ];
        session.measure("preempt/switch", Unit::Ns, lanes)?;
    }
    if session.wants("preempt/floor") {
        let lanes = vec![Lane::new(FLOOR, || Ok(signal::delivery(deliveries)?))];
        session.measure("preempt/floor", Unit::Ns, lanes)?;
    }
    slowdown::run(session)?;
    shares::run(session)?;
    ninth::run(session)
}

/// Ns per preemption of two threads on one worker that preempt themselves in turns.
fn switch(ours: &Reveille, times: u32) -> io::Result<f64> {
    let hog = move || {
        for _ in 0..times {
            reveille::bench_support::preempt_self();
        }
    };
    let took = ours.inside(|| -> io::Result<_> {
        let start = Instant::now();
        let threads = [Reveille::spawn(hog)?, Reveille::spawn(hog)?];
        threads.into_iter().for_each(Handle::join);
        Ok(start.elapsed())
    })??;
    Ok(took.as_nanos() as f64 / (2.0 * f64::from(times)))
}
