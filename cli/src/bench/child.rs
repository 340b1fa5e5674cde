//! Measurements in a process of their own: for what a process can do only once.
//!
//! The parent starts its own program again as `reveille measure ...` ([`measure`]); the child
//! ([`run`]) prints one line of JSON.

use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use super::memory;
use super::rivals;
use super::spawn;
use super::syscalls;
use super::system::{Nptl, Reveille, System};
use super::yields;
use crate::args::{self, Measurement};
use crate::output::{self, NPTL, REVEILLE};

/// What a child reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The measured value.
    pub value: f64,
    /// How many threads or yields it was in the end.
    pub count: u64,
    /// For parked threads: nanoseconds to create each.
    pub create: f64,
    /// For parked threads: bytes of page tables for each, which are not resident memory.
    pub page_tables: f64,
}

/// The command that measures `what` in another process.
pub fn command(what: Measurement, system: &str, count: u64) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let what = clap::ValueEnum::to_possible_value(&what).expect("no measurement is skipped");
    command.args(["measure", what.get_name(), "--system", system]);
    command.args(["--count", &count.to_string()]);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Measures `what` in another process.
///
/// # Errors
/// The process cannot be started, fails, or reports nothing.
pub fn measure(what: Measurement, system: &str, count: u64) -> anyhow::Result<Report> {
    let output = command(what, system, count)?.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the measuring process ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("the measuring process reported no value")
}

/// The child's side.
///
/// # Errors
/// The system is unknown or cannot do what is asked for.
pub fn run(args: &args::Measure) -> anyhow::Result<()> {
    let report = match args.system.as_str() {
        REVEILLE => here(&Reveille::workers(1)?, args)?,
        NPTL => here(&Nptl::ONE_CPU, args)?,
        rival => {
            Report { value: rivals::measure(rival, args.what, args.count)?, ..Report::default() }
        }
    };
    output::print(&serde_json::to_string(&report)?)?;
    Ok(())
}

/// Measures on `system` in this process.
fn here<S: System>(system: &S, args: &args::Measure) -> anyhow::Result<Report> {
    let count = args.count;
    match args.what {
        Measurement::Cold => {
            let value = system.inside(|| spawn::many::<S>(count))??;
            Ok(Report { value, count, ..Report::default() })
        }
        Measurement::Parked => Ok(memory::parked(system, count)?),
        Measurement::Yields => {
            let each = count.div_ceil(yields::THREADS as u64);
            let storm = || yields::storm::<S>(each, syscalls::mark_begin, syscalls::mark_end);
            Ok(Report { value: system.inside(storm)??, count, ..Report::default() })
        }
        _ => bail!("{} is not a rival", S::NAME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_pipe() {
        let report = Report { value: 1.5, count: 3, create: 2.0, page_tables: 0.5 };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
