//! `reveille bench`: the same code on reveille threads and on kernel threads, in turns.
//!
//! | part | what it measures |
//! |---|---|
//! | [`yields`] | yield among 10 threads: time, spread, system calls ([`syscalls`] counts them) |
//! | [`spawn`] | spawn, run, exit, join: one by one, 10,000 at once, warm and cold |
//! | [`preempt`] | a preemption's cost; slowdown of CPU-bound work ([`slowdown`]); shares ([`shares`]); the newcomer ([`ninth`]) |
//! | [`memory`] | a million parked threads |
//! | [`locks`] | mutexes alone, among others, to and fro with a condition variable ([`kit`] has their makers) |
//! | [`rings`] | condition variables: rings, broadcasts |
//! | [`condvar`] | the table of 2005: kernel threads and condvars |
//! | [`channel`] | messages from one thread to another |
//! | [`locks_low`] | the lock level, beside blocking signals |
//! | [`rivals`] | other libraries, with the feature of that name |
//!
//! How a value comes about: [`session`] lets the systems of a case take turns, round by round,
//! each round starting with another one, so that whatever drifts on the machine hits all of them;
//! the reported value is the median of the rounds. [`system`] is the interface over which a case
//! is written once. [`child`] is the other side of what needs a process of its own.

mod channel;
pub mod child;
mod condvar;
mod kit;
mod locks;
mod locks_low;
mod memory;
mod ninth;
mod preempt;
mod rings;
#[cfg(feature = "rivals")]
mod rivals;
#[cfg(not(feature = "rivals"))]
#[path = "no_rivals.rs"]
mod rivals;
mod session;
mod shares;
mod slowdown;
mod spawn;
mod syscalls;
mod system;
mod yields;

use crate::args::{Bench, Family};
use session::Session;

/// Runs one family.
type Run = fn(&mut Session) -> anyhow::Result<()>;

/// Runs the families that were asked for.
///
/// # Errors
/// A case could not be measured; what was measured before has been printed.
pub fn run(args: &Bench) -> anyhow::Result<()> {
    let mut session = Session::new(args);
    let all = args.family == Family::All;
    let families: [(Family, Run); 8] = [
        (Family::Yield, yields::run),
        (Family::Spawn, spawn::run),
        (Family::Preempt, preempt::run),
        (Family::Memory, memory::run),
        (Family::Locks, locks::run),
        (Family::Condvar, rings::run),
        (Family::Condvar, condvar::run),
        (Family::Channel, channel::run),
    ];
    for (family, run) in families {
        if all || args.family == family {
            run(&mut session)?;
            session.finish_family()?;
        }
    }
    session.finish()
}
