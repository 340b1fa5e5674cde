//! Runs the binary: help texts, refused input, exit codes, and one short real run of each job.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The command line is wrong.
const USAGE: i32 = 2;
/// Something failed while running.
const FAILED: i32 = 1;

fn reveille(args: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_reveille")).args(args).output();
    command.expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the output is text")
}

/// Runs a command that must be refused with `code` and a message that contains `words`.
fn refused(args: &[&str], code: i32, words: &[&str]) {
    let output = reveille(args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?}: no `{word}` in: {text}");
    }
    assert!(output.stdout.is_empty(), "{args:?} printed something");
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn help_names_jobs_options_and_exit_codes() {
    let help = stdout(&reveille(&["--help"]));
    for word in ["demo", "bench", "doctor", "Exit codes", "--version"] {
        assert!(help.contains(word), "no {word} in:\n{help}");
    }
    assert!(!help.contains("measure"), "the hidden job shows:\n{help}");
    let demo = stdout(&reveille(&["demo", "--help"]));
    for word in ["--threads", "--workers", "--slice", "--seconds", "--html", "--no-html", "1ms"] {
        assert!(demo.contains(word), "no {word} in:\n{demo}");
    }
    let bench = stdout(&reveille(&["bench", "--help"]));
    for word in ["--json", "--quick", "--rounds", "yield", "spawn", "preempt", "memory", "all"] {
        assert!(bench.contains(word), "no {word} in:\n{bench}");
    }
}

#[test]
fn no_job_is_a_usage_error() {
    assert_eq!(reveille(&[]).status.code(), Some(USAGE));
}

#[test]
fn bad_values_are_refused_with_a_reason() {
    refused(&["demo", "--workers", "0"], USAGE, &["--workers", "1..=1024"]);
    refused(&["demo", "--threads", "0"], USAGE, &["--threads", "1..=10000"]);
    refused(&["demo", "--slice", "0ms"], USAGE, &["--slice", "slice of 0"]);
    refused(&["demo", "--slice", "1"], USAGE, &["--slice", "no unit"]);
    refused(&["demo", "--slice", "1h"], USAGE, &["at most 10 s"]);
    refused(&["demo", "--seconds", "0"], USAGE, &["--seconds", "more than 0"]);
    refused(&["demo", "--seconds", "soon"], USAGE, &["not a number"]);
    refused(&["bench", "swim"], USAGE, &["swim", "yield"]);
    refused(&["bench", "yield", "--rounds", "0"], USAGE, &["--rounds"]);
    refused(&["bench", "memory", "--threads", "1"], USAGE, &["--threads"]);
    refused(&["dream"], USAGE, &["dream"]);
}

#[test]
fn a_picture_that_cannot_be_written_is_refused_before_the_run() {
    let path = scratch("no-such-directory").join("picture.html");
    let path = path.to_str().expect("the path is text");
    refused(&["demo", "--html", path, "--seconds", "3600"], FAILED, &["cannot write", path]);
}

#[test]
fn a_case_that_does_not_exist_is_an_error() {
    let output = reveille(&["bench", "yield", "--only", "yield/none"]);
    assert_eq!(output.status.code(), Some(FAILED));
    assert!(stderr(&output).contains("yield/none"));
}

#[test]
fn a_short_demo_draws_a_picture_and_judges() {
    let path = scratch("demo.html");
    let name = path.to_str().expect("the path is text");
    let output = reveille(&["demo", "--seconds", "0.4", "--threads", "3", "--html", name]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("Verdict: ") && text.contains("fair: "), "{text}");
    let page = std::fs::read_to_string(&path).expect("the picture is there");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert_eq!(page.matches("<svg").count(), 2);
}

#[test]
fn json_lines_have_the_agreed_keys() {
    let output = reveille(&[
        "bench",
        "spawn",
        "--quick",
        "--rounds",
        "1",
        "--json",
        "--only",
        "spawn/one-1w",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let systems: Vec<String> = text
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            for key in ["bench", "case", "system", "unit"] {
                assert!(value[key].is_string(), "{key} in {line}");
            }
            for key in ["value", "min", "max", "n"] {
                assert!(value[key].is_number(), "{key} in {line}");
            }
            assert_eq!(value["case"], "spawn/one-1w");
            value["system"].as_str().expect("checked above").to_owned()
        })
        .collect();
    assert!(systems.starts_with(&["reveille".to_owned(), "nptl".to_owned()]), "{text}");
}

#[test]
fn the_doctor_reports_facts_and_costs() {
    let output = reveille(&["doctor", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON");
    }
    assert!(text.contains("\"fact\":\"kernel\""), "{text}");
    assert!(text.contains("\"case\":\"floor/tgkill-sigreturn\""), "{text}");
}
