//! One run of `bench`: who takes turns, how often, and where the values go.

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Bench, Clock};
use crate::output::{self, Record, Unit};

/// Rounds per case unless the command line says otherwise.
const ROUNDS: u32 = 11;
/// The same with `--quick`.
const QUICK_ROUNDS: u32 = 3;

/// One system in a case: its name and what yields one value.
pub struct Lane<'a> {
    system: &'static str,
    measure: Box<dyn FnMut() -> anyhow::Result<f64> + 'a>,
}

impl<'a> Lane<'a> {
    /// A lane of `system`, measured by `measure`.
    pub fn new(system: &'static str, measure: impl FnMut() -> anyhow::Result<f64> + 'a) -> Self {
        Self { system, measure: Box::new(measure) }
    }
}

/// One run of `bench`.
pub struct Session<'a> {
    args: &'a Bench,
    /// What the current family has measured so far.
    family: Vec<Record>,
    /// Remarks printed below the family's table.
    notes: Vec<String>,
    /// How many cases were measured in all.
    cases: usize,
}

impl<'a> Session<'a> {
    /// A run with the options in `args`.
    pub fn new(args: &'a Bench) -> Self {
        Self { args, family: Vec::new(), notes: Vec::new(), cases: 0 }
    }

    /// Whether `case` is to be measured.
    pub fn wants(&self, case: &str) -> bool {
        self.args.only.is_empty() || self.args.only.iter().any(|start| case.starts_with(start))
    }

    /// `full`, or `quick` with `--quick`.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.args.quick { quick } else { full }
    }

    /// The number of rounds: as asked for, else the default.
    pub fn rounds(&self) -> usize {
        self.rounds_or(ROUNDS, QUICK_ROUNDS)
    }

    /// The number of rounds: as asked for, else `full`, or `quick` with `--quick`.
    pub fn rounds_or(&self, full: u32, quick: u32) -> usize {
        self.args.rounds.unwrap_or(self.pick(full, quick)) as usize
    }

    /// The number of threads that was asked for in the memory cases.
    pub fn threads(&self) -> Option<u64> {
        self.args.threads
    }

    /// The clock for CPU-bound work.
    pub fn clock(&self) -> Clock {
        self.args.clock
    }

    /// Measures one case: a warm-up of each lane, then rounds in which the lanes take turns.
    ///
    /// # Errors
    /// A lane fails.
    pub fn measure(&mut self, case: &str, unit: Unit, lanes: Vec<Lane<'_>>) -> anyhow::Result<()> {
        self.measure_rounds(case, unit, self.rounds(), true, lanes)
    }

    /// As [`measure`](Self::measure), with a number of rounds and with or without a warm-up.
    ///
    /// # Errors
    /// A lane fails.
    pub fn measure_rounds(
        &mut self,
        case: &str,
        unit: Unit,
        rounds: usize,
        warm_up: bool,
        mut lanes: Vec<Lane<'_>>,
    ) -> anyhow::Result<()> {
        let names: Vec<&str> = lanes.iter().map(|lane| lane.system).collect();
        let progress = progress(case, &names, rounds);
        let mut values = vec![Vec::with_capacity(rounds); lanes.len()];
        for round in 0..rounds + usize::from(warm_up) {
            for turn in 0..lanes.len() {
                let at = (round + turn) % lanes.len();
                let lane = &mut lanes[at];
                let value =
                    (lane.measure)().with_context(|| format!("{case} on {}", lane.system))?;
                if round > 0 || !warm_up {
                    values[at].push(value);
                }
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        for (lane, values) in lanes.iter().zip(&values) {
            self.record(case, lane.system, unit, values)?;
        }
        Ok(())
    }

    /// A progress bar for a case that makes its rounds itself.
    pub fn progress(&self, case: &str, systems: &[&str], rounds: usize) -> ProgressBar {
        progress(case, systems, rounds)
    }

    /// Keeps the values of one system in one case, and prints them at once if JSON is wanted.
    ///
    /// # Errors
    /// There are no values, one is not a number, or standard output cannot be written.
    pub fn record(
        &mut self,
        case: &str,
        system: &str,
        unit: Unit,
        values: &[f64],
    ) -> anyhow::Result<()> {
        let record = Record::new(case, system, unit, values)
            .with_context(|| format!("{case} on {system} gave no value"))?;
        if self.args.json {
            output::print(&record.json())?;
        }
        self.cases += 1;
        self.family.push(record);
        Ok(())
    }

    /// A remark for the reader of the tables.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Prints the table of the family that has just been measured.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn finish_family(&mut self) -> anyhow::Result<()> {
        if !self.args.json && !self.family.is_empty() {
            output::print(&output::table(&self.family).to_string())?;
            for note in &self.notes {
                output::print(&format!("  {note}"))?;
            }
        }
        self.family.clear();
        self.notes.clear();
        Ok(())
    }

    /// Ends the run.
    ///
    /// # Errors
    /// Nothing was measured, because no case has the name that was asked for.
    pub fn finish(self) -> anyhow::Result<()> {
        ensure!(self.cases > 0, "no case here begins with {}", self.args.only.join(" or "));
        if !self.args.json {
            output::print("Values are medians over rounds in turns, with (smallest – largest).")?;
        }
        Ok(())
    }
}

/// A bar on standard error; one plain line per case where that is not a terminal.
fn progress(case: &str, systems: &[&str], rounds: usize) -> ProgressBar {
    let systems = systems.join(", ");
    if !console::Term::stderr().is_term() {
        eprintln!("{case}: {systems}; {rounds} rounds");
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:28} [{bar:30}] {pos}/{len} rounds  {elapsed}")
        .expect("the template is well-formed");
    // No steady tick: its thread would disturb what is measured.
    ProgressBar::new(rounds as u64).with_style(style).with_message(format!("{case}: {systems}"))
}
