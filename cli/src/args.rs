//! The command line: every option with its unit, its default and its check.
//!
//! What is wrong is refused here, before anything is started; clap ends the program with exit
//! code 2 then.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::units;

/// What the exit codes mean, at the end of every help text.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  something failed while running
  2  the command line is wrong; nothing was started
  3  `demo --check`: the shares were unfair";

/// Preemptive user-level threads: watch them, measure them, examine the machine.
#[derive(Debug, Parser)]
#[command(name = "reveille", version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The main jobs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch CPU-bound threads that never yield share a few workers
    Demo(Demo),
    /// Measure yield, spawn, preemption and memory against kernel threads in the same run
    Bench(Bench),
    /// Show what this machine offers, what is used of it, and what its primitives cost
    Doctor(Doctor),
    /// One measurement in a process of its own, for `bench`
    #[command(hide = true)]
    Measure(Measure),
}

/// `reveille demo`.
///
/// Starts threads that compute in an endless loop and never yield, block or call anything. Shows
/// each one's share while it runs, and at the end the time slices of each worker as a picture and
/// a verdict on fairness.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES, verbatim_doc_comment)]
pub struct Demo {
    /// Number of CPU-bound threads, 1 to 10000
    #[arg(long, short, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub threads: u32,

    /// Number of workers, which are kernel threads, 1 to 1024
    #[arg(long, short, value_name = "M", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: u32,

    /// Time slice with its unit: us, ms or s; at most 10s
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::slice)]
    pub slice: Duration,

    /// How long the threads run, in seconds; fractions are allowed, at most 3600
    #[arg(long, short, value_name = "S", default_value = "3", value_parser = units::seconds)]
    pub seconds: Duration,

    /// Let slices grow beyond --slice while only CPU-bound threads compete, as the library does by
    /// default; otherwise every slice has the length of --slice
    #[arg(long)]
    pub adaptive: bool,

    /// The file for the picture; an existing one is overwritten
    #[arg(long, value_name = "FILE", default_value = "reveille-demo.html")]
    pub html: PathBuf,

    /// Write no picture
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,

    /// How much of the end of the run the picture shows slice by slice, with its unit
    #[arg(long, value_name = "TIME", default_value = "60ms", value_parser = units::window)]
    pub window: Duration,

    /// Exit with code 3 if the shares were unfair
    #[arg(long)]
    pub check: bool,
}

/// `reveille bench`.
///
/// Prints medians over rounds in which the systems take turns; kernel threads (NPTL, through
/// std::thread) are always measured beside. Progress goes to standard error.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES, verbatim_doc_comment)]
pub struct Bench {
    /// What to measure
    #[arg(value_enum)]
    pub family: Family,

    /// Print one JSON object a line instead of tables: keys bench, case, system, value (the
    /// median), unit, min, max, n (the number of rounds)
    #[arg(long)]
    pub json: bool,

    /// Measure briefly: seconds instead of minutes, with less exact figures
    #[arg(long)]
    pub quick: bool,

    /// Rounds per case, 1 to 1000 [default: 11, or 3 with --quick; memory 3, or 1 with --quick]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,

    /// Only cases whose name begins with this, such as `spawn/one`; may be given more than once
    #[arg(long, value_name = "CASE")]
    pub only: Vec<String>,

    /// Threads alive at once in the memory cases, 100 to 10000000
    /// [default: 1000000, or 20000 with --quick; fewer if memory does not suffice]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub threads: Option<u64>,

    /// The clock of the preempt/8x1 cases
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = Clock::Wall)]
    pub clock: Clock,
}

/// The families of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// 10 threads that do nothing but yield: time, fairness, system calls
    Yield,
    /// Starting, running, ending and joining threads
    Spawn,
    /// What a preemption costs, how fair the shares are, how soon a newcomer runs
    Preempt,
    /// A great many parked threads
    Memory,
    /// Locks: what taking and giving one costs
    Locks,
    /// Condition variables: the table of 2005 anew
    Condvar,
    /// Channels: messages between two threads
    Channel,
    /// All of them, one after the other
    All,
}

/// What time is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    /// The time that passes
    Wall,
    /// The CPU time of the whole process, for a machine that others use as well
    Cpu,
}

/// `reveille doctor`.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub struct Doctor {
    /// Print one JSON object a line: facts with keys bench, fact, value, state; costs with the
    /// keys of `bench --json`
    #[arg(long)]
    pub json: bool,
}

/// `reveille measure`: hidden, started by `bench` for what needs a fresh process.
#[derive(Debug, ClapArgs)]
pub struct Measure {
    /// What to measure
    #[arg(value_enum)]
    pub what: Measurement,

    /// On which system: reveille, nptl or a rival
    #[arg(long)]
    pub system: String,

    /// How many threads or yields
    #[arg(long)]
    pub count: u64,
}

/// What a process of its own measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Measurement {
    /// Threads spawned and joined where none have been before
    Cold,
    /// Threads alive and parked
    Parked,
    /// Yields between two marks, for the counter of system calls
    Yields,
    /// A rival's yield among 10
    RivalYield,
    /// A rival's spawn and join of one thread on one worker
    RivalOne,
    /// The same on two workers
    RivalTwo,
    /// A rival's 10,000 threads, spawned and then joined
    RivalMany,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_option_says_what_it_is() {
        for sub in Args::command().get_subcommands() {
            for arg in sub.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", sub.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn demo_defaults() {
        let args = Args::try_parse_from(["reveille", "demo"]).unwrap();
        let Command::Demo(demo) = args.command else { panic!("not a demo") };
        assert_eq!((demo.threads, demo.workers), (5, 2));
        assert_eq!(demo.slice, Duration::from_millis(1));
        assert_eq!(demo.seconds, Duration::from_secs(3));
        assert!(!demo.no_html && !demo.adaptive && !demo.check);
    }

    #[test]
    fn no_html_excludes_a_file() {
        assert!(Args::try_parse_from(["reveille", "demo", "--no-html"]).is_ok());
        let both = ["reveille", "demo", "--no-html", "--html", "x.html"];
        assert!(Args::try_parse_from(both).is_err());
    }
}
