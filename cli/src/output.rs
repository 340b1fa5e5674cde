//! How measured values leave the program: one [`Record`] per case and system, as a JSON line or
//! as a row of a table.

use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::stats::Summary;
use crate::units::number;

/// The measured thing is reveille itself.
pub const REVEILLE: &str = "reveille";
/// Kernel threads through std::thread.
pub const NPTL: &str = "nptl";
/// The cheapest thing that any preemption or switch of this kind needs.
pub const FLOOR: &str = "floor";

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Milliseconds.
    Ms,
    /// Percent.
    Percent,
    /// Iterations of a loop.
    Iterations,
    /// System calls per million operations.
    Calls,
    /// Bytes.
    Bytes,
    /// One value by another.
    Ratio,
}

impl Unit {
    /// Whether one value divided by another says how many times better something is.
    fn has_ratio(self) -> bool {
        matches!(self, Unit::Ns | Unit::Ms | Unit::Bytes)
    }

    /// The unit as the tables print it.
    fn label(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Ms => "ms",
            Unit::Percent => "%",
            Unit::Iterations => "iterations",
            Unit::Calls => "calls per million",
            Unit::Bytes => "bytes",
            Unit::Ratio => "ratio",
        }
    }
}

/// What was measured for one system in one case. Its fields are the keys of a JSON line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// The family: yield, spawn, preempt, memory, floor.
    pub bench: String,
    /// The stable name of the case, the family included: `spawn/one-1w`.
    pub case: String,
    /// Who was measured: reveille, nptl, floor, or a rival's crate name.
    pub system: String,
    /// The median over the rounds.
    pub value: f64,
    /// The unit of the three values.
    pub unit: Unit,
    /// The smallest value of a round.
    pub min: f64,
    /// The largest value of a round.
    pub max: f64,
    /// The number of rounds.
    pub n: usize,
}

impl Record {
    /// The record of `values`, one per round; `None` if there are none or one is not a number.
    pub fn new(case: &str, system: &str, unit: Unit, values: &[f64]) -> Option<Self> {
        let Summary { median, min, max, n } = Summary::of(values)?;
        let bench = case.split('/').next().unwrap_or(case).to_owned();
        let system = system.to_owned();
        Some(Self { bench, case: case.to_owned(), system, value: median, unit, min, max, n })
    }

    /// The record as one line of JSON, without the newline.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a record holds only strings and finite numbers")
    }
}

/// Writes `line` and a newline to standard output at once.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// The records of one family as a table: a row per case, a column per system, and how many times
/// less reveille needs than kernel threads.
pub fn table(records: &[Record]) -> Table {
    let mut systems: Vec<&str> = Vec::new();
    let mut cases: Vec<&str> = Vec::new();
    for record in records {
        if !systems.contains(&record.system.as_str()) {
            systems.push(&record.system);
        }
        if !cases.contains(&record.case.as_str()) {
            cases.push(&record.case);
        }
    }
    systems.sort_by_key(|system| {
        [REVEILLE, NPTL, FLOOR].iter().position(|s| s == system).unwrap_or(9)
    });

    let mut table = bare_table();
    let with_ratio = systems.contains(&REVEILLE) && systems.contains(&NPTL);
    let mut header = vec!["case".to_owned(), "unit".to_owned()];
    header.extend(systems.iter().map(|system| (*system).to_owned()));
    if with_ratio {
        header.push("nptl ÷ reveille".to_owned());
    }
    table.set_header(header);
    for case in cases {
        let find = |system: &str| records.iter().find(|r| r.case == case && r.system == system);
        let Some(first) = records.iter().find(|r| r.case == case) else { continue };
        let mut row = vec![Cell::new(case), Cell::new(first.unit.label())];
        row.extend(systems.iter().map(|system| right(find(system).map_or(String::new(), value))));
        if with_ratio {
            row.push(right(ratio(find(REVEILLE), find(NPTL))));
        }
        table.add_row(row);
    }
    table
}

/// A plain table; it wraps its cells only on a terminal that is too narrow.
pub fn bare_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table
}

/// A right-aligned cell.
pub fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// `64.2 (63.1 – 70.0)`: the median and the range it was found in.
fn value(record: &Record) -> String {
    if record.n < 2 || record.min == record.max {
        return number(record.value);
    }
    format!("{} ({} – {})", number(record.value), number(record.min), number(record.max))
}

/// How many times more kernel threads need; empty where a ratio says nothing.
fn ratio(ours: Option<&Record>, theirs: Option<&Record>) -> String {
    match (ours, theirs) {
        (Some(a), Some(b)) if a.unit.has_ratio() && a.value > 0.0 => {
            format!("{} ×", number(b.value / a.value))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(system: &str, values: &[f64]) -> Record {
        Record::new("spawn/one-1w", system, Unit::Ns, values).unwrap()
    }

    #[test]
    fn a_json_line_has_the_agreed_keys_in_order() {
        assert_eq!(
            record(REVEILLE, &[64.5, 66.0, 63.25]).json(),
            "{\"bench\":\"spawn\",\"case\":\"spawn/one-1w\",\"system\":\"reveille\",\
             \"value\":64.5,\"unit\":\"ns\",\"min\":63.25,\"max\":66.0,\"n\":3}"
        );
    }

    #[test]
    fn a_json_line_is_json_on_one_line() {
        let text = record("odd \"name\"\n", &[1.0]).json();
        assert!(!text.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["system"], "odd \"name\"\n");
        assert_eq!(value.as_object().unwrap().len(), 8);
    }

    #[test]
    fn units_have_their_agreed_names() {
        let names: Vec<String> = [
            Unit::Ns,
            Unit::Ms,
            Unit::Percent,
            Unit::Iterations,
            Unit::Calls,
            Unit::Bytes,
            Unit::Ratio,
        ]
        .iter()
        .map(|unit| serde_json::to_string(unit).unwrap())
        .collect();
        let expected = ["ns", "ms", "percent", "iterations", "calls", "bytes", "ratio"];
        assert_eq!(names, expected.map(|name| format!("\"{name}\"")));
    }

    #[test]
    fn nothing_measured_is_no_record() {
        assert_eq!(Record::new("yield/10x1", REVEILLE, Unit::Ns, &[]), None);
        assert_eq!(Record::new("yield/10x1", REVEILLE, Unit::Ns, &[f64::NAN]), None);
    }

    #[test]
    fn the_table_puts_systems_side_by_side_with_their_ratio() {
        let text = table(&[
            record("may", &[774.0]),
            record(NPTL, &[18_900.0]),
            record(REVEILLE, &[63.0, 65.0]),
        ])
        .to_string();
        let header = text.lines().nth(1).unwrap();
        let at = |name| header.find(name).unwrap_or_else(|| panic!("no {name} in {header}"));
        assert!(at("reveille") < at("nptl") && at("nptl") < at("may"));
        assert!(text.contains("295.3 ×"), "{text}");
        assert!(text.contains("64 (63 – 65)"), "{text}");
    }

    #[test]
    fn differences_in_percent_have_no_ratio() {
        let percent = |system, value| {
            Record::new("preempt/8x1-1ms", system, Unit::Percent, &[value]).unwrap()
        };
        let text = table(&[percent(REVEILLE, 2.0), percent(NPTL, 1.0)]).to_string();
        assert!(!text.contains('×'), "{text}");
    }
}
