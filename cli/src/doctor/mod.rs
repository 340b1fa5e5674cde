//! `reveille doctor`: what this machine offers, what is used of it, what it costs.
//!
//! [`machine`] asks kernel, CPU and C library; the library itself says what its runtime makes of
//! it ([`reveille::doctor`]); [`costs`] measures the primitives of [`crate::floor`].

mod costs;
mod machine;

use comfy_table::Cell;
use serde::Serialize;

use crate::args::Doctor;
use crate::output::{self, Record, bare_table, right};
use crate::units::number;

/// Whether something is there, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Only for information.
    Info,
    /// There, and used.
    Used,
    /// Not there; something else is used instead.
    Fallback,
    /// Not there, and nothing can be used instead.
    Missing,
}

/// One thing found out about the machine. Its fields are the keys of a JSON line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Always `doctor`, as in the lines of `bench`.
    bench: &'static str,
    /// What was looked at.
    fact: String,
    /// What was found.
    value: String,
    /// What follows.
    state: State,
}

impl Fact {
    /// A fact; `state` says what follows from it.
    pub fn new(fact: impl Into<String>, value: impl Into<String>, state: State) -> Self {
        Self { bench: "doctor", fact: fact.into(), value: value.into(), state }
    }

    /// A fact from which nothing follows.
    pub fn info(fact: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(fact, value, State::Info)
    }
}

/// Examines the machine and prints what it found.
///
/// # Errors
/// A cost cannot be measured, or standard output cannot be written.
pub fn run(args: &Doctor) -> anyhow::Result<()> {
    let mut facts = machine::facts();
    facts.extend(library());
    if args.json {
        for fact in &facts {
            output::print(&serde_json::to_string(fact)?)?;
        }
    } else {
        output::print(&facts_table(&facts))?;
    }
    let costs = costs::measure()?;
    if args.json {
        for (cost, _) in &costs {
            output::print(&cost.json())?;
        }
        return Ok(());
    }
    output::print(&costs_table(&costs))?;
    output::print(verdict(&facts))?;
    Ok(())
}

/// What the library says it uses.
fn library() -> Vec<Fact> {
    reveille::doctor::report()
        .into_iter()
        .map(|found| {
            let state = match found.state {
                reveille::doctor::State::Used => State::Used,
                reveille::doctor::State::Fallback => State::Fallback,
                reveille::doctor::State::Missing => State::Missing,
                _ => State::Info,
            };
            Fact::new(found.name, found.value, state)
        })
        .collect()
}

/// The facts as a table.
fn facts_table(facts: &[Fact]) -> String {
    let mut table = bare_table();
    table.set_header(["this machine", "found", ""]);
    for fact in facts {
        let state = match fact.state {
            State::Info => "",
            State::Used => "used",
            State::Fallback => "fallback",
            State::Missing => "MISSING",
        };
        table.add_row([&fact.fact, &fact.value, state]);
    }
    table.to_string()
}

/// The costs as a table.
fn costs_table(costs: &[(Record, &str)]) -> String {
    let mut table = bare_table();
    table.set_header(["cost floor", "ns", "smallest – largest", "what it is"]);
    for (cost, text) in costs {
        let name = cost.case.split_once('/').map_or(cost.case.as_str(), |(_, name)| name);
        let range = format!("{} – {}", number(cost.min), number(cost.max));
        table.add_row([Cell::new(name), right(number(cost.value)), right(range), Cell::new(text)]);
    }
    table.to_string()
}

/// The last line: does it work here?
fn verdict(facts: &[Fact]) -> &'static str {
    let any = |state| facts.iter().any(|fact| fact.state == state);
    if any(State::Missing) {
        "Something that reveille needs is missing here; see above."
    } else if any(State::Fallback) {
        "reveille runs here; where it says fallback, it does so less directly."
    } else {
        "reveille runs here and can use everything it knows how to use."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_one_json_object() {
        let fact = Fact::new("FSGSBASE", "yes", State::Used);
        assert_eq!(
            serde_json::to_string(&fact).unwrap(),
            "{\"bench\":\"doctor\",\"fact\":\"FSGSBASE\",\"value\":\"yes\",\"state\":\"used\"}"
        );
    }

    #[test]
    fn the_verdict_names_the_worst() {
        let fact = |state| Fact::new("x", "y", state);
        assert!(verdict(&[fact(State::Used), fact(State::Missing)]).contains("missing"));
        assert!(verdict(&[fact(State::Used), fact(State::Fallback)]).contains("fallback"));
        assert!(verdict(&[fact(State::Used), fact(State::Info)]).contains("everything"));
    }
}
