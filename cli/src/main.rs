//! The `reveille` command: see preemptive user-level threads at work, and measure them.
//!
//! | part | what it does |
//! |---|---|
//! | [`args`] | the command line, its help texts and its checks |
//! | [`demo`] | CPU-bound threads that never yield share a few workers; table, picture, verdict |
//! | [`mod@bench`] | yield, spawn, preempt and memory against kernel threads, in one and the same run |
//! | [`doctor`] | what this machine offers, what is used of it, and what its primitives cost |
//! | [`floor`] | those costs: system calls, signals, timer ticks, the FS base |
//!
//! Exit codes: 0 done; 1 something failed while running; 2 the command line is wrong (nothing was
//! started); 3 `demo --check` found the shares unfair.

mod affinity;
mod args;
mod bench;
mod demo;
mod doctor;
mod floor;
mod output;
mod proc;
mod stats;
mod units;

use std::process::ExitCode;

use clap::Parser;

/// Something failed while running.
const FAILED: u8 = 1;
/// `demo --check`, and the shares were not fair.
const UNFAIR: u8 = 3;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let done = match args.command {
        args::Command::Demo(demo) => demo::run(&demo),
        args::Command::Bench(bench) => bench::run(&bench).map(|()| true),
        args::Command::Doctor(doctor) => doctor::run(&doctor).map(|()| true),
        args::Command::Measure(child) => bench::child::run(&child).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(UNFAIR),
        Err(error) => {
            eprintln!("reveille: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}
