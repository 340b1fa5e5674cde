//! The house rules that a machine can check: sizes, headers, and where `unsafe` may stand.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file, without its tests.
const FILE: usize = 400;
/// Lines of an assembly file.
const ASM: usize = 100;
/// Lines of a function, from `fn` to its closing brace.
const FUNCTION: usize = 60;

/// Files that allow `unsafe` for themselves and the modules below. The root denies it.
const UNSAFE: &[&str] = &[
    "src/bench_support.rs",
    "src/check.rs",
    "src/context/c_api.rs",
    "src/context/convert.rs",
    "src/context/frame.rs",
    "src/context/make.rs",
    "src/context/preempted.rs",
    "src/context/saved.rs",
    "src/context/start.rs",
    "src/context/ucontext.rs",
    "src/context/user.rs",
    "src/context/x86_64.rs",
    "src/context/xstate.rs",
    "src/dump.rs",
    "src/fork.rs",
    "src/lock/mod.rs",
    "src/lot/mod.rs",
    "src/preempt/mod.rs",
    "src/protocol/models.rs",
    "src/protocol/models_mutex.rs",
    "src/protocol/models_offer.rs",
    "src/runtime.rs",
    "src/sched/mod.rs",
    "src/slot/mod.rs",
    "src/sync/mod.rs",
    "src/sync/os/mod.rs",
    "src/sys/mod.rs",
    "src/tcb/mod.rs",
    "src/thread/mod.rs",
    "src/tls/mod.rs",
    "src/trace.rs",
    "src/waiting.rs",
    "src/worker/mod.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below `dir` whose names end in `ending`, with their text; names begin at `dir`.
fn files(dir: &str, ending: &str) -> Vec<(String, String)> {
    let (mut todo, mut out): (Vec<PathBuf>, Vec<_>) = (vec![root().join(dir)], Vec::new());
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                out.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!out.is_empty(), "nothing in {dir}");
    out
}

fn rust() -> Vec<(String, String)> {
    let mut all = files("src", ".rs");
    all.extend(files("cli/src", ".rs"));
    all
}

fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn files_are_short() {
    let mut wrong = Vec::new();
    for (name, text) in rust() {
        let lines = text.split("#[cfg(test)]").next().unwrap().lines().count();
        if lines > FILE {
            wrong.push(format!("{name}: {lines} lines, at most {FILE}"));
        }
    }
    for (name, text) in files("asm", ".S") {
        let lines = text.lines().count();
        if lines >= ASM {
            wrong.push(format!("{name}: {lines} lines, fewer than {ASM}"));
        }
    }
    none(wrong);
}

#[test]
fn files_say_what_they_are() {
    let rust = rust().into_iter().filter(|(name, text)| {
        // The root's documentation is the README.
        let root = name == "src/lib.rs" && text.starts_with("#![doc = ");
        !(root || text.starts_with("//! "))
    });
    let asm = files("asm", ".S").into_iter().filter(|(_, text)| !text.starts_with("# "));
    none(rust.chain(asm).map(|(name, _)| format!("{name} does not open with a comment")).collect());
}

/// Names and lengths of the functions in a text that rustfmt has formatted.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let words = line.trim_start();
        let Some(name) = words.split_once("fn ").filter(|(before, _)| {
            let plain = ["pub", "const", "unsafe", "extern", "pub(crate)", "pub(super)"];
            before.split_whitespace().all(|w| plain.contains(&w) || w.starts_with('"'))
        }) else {
            continue;
        };
        let name = name.1.split(['(', '<']).next().unwrap().to_owned();
        // A body ends at a brace of the same depth, a declaration without one.
        let brace = format!("{}}}", &line[..indent(line)]);
        let end = lines[i..].iter().position(|l| {
            l.trim_end() == brace
                || indent(l) == indent(line) && l.ends_with(';')
                || l.ends_with('}') && l.contains("fn ")
        });
        out.push((name, end.unwrap_or(0) + 1));
    }
    out
}

#[test]
fn functions_are_short() {
    let mut wrong = Vec::new();
    for (name, text) in rust() {
        for (function, lines) in functions(&text) {
            if lines >= FUNCTION {
                wrong.push(format!("{name}: {function} has {lines} lines, fewer than {FUNCTION}"));
            }
        }
    }
    none(wrong);
}

#[test]
fn unsafe_is_allowed_by_name() {
    let allowing = |text: &str| text.lines().any(|l| l == "#![allow(unsafe_code)]");
    let mut found: Vec<_> =
        rust().into_iter().filter(|(_, t)| allowing(t)).map(|(name, _)| name).collect();
    found.sort();
    assert_eq!(found, UNSAFE, "the list here and the files differ");
    assert!(
        fs::read_to_string(root().join("src/lib.rs")).unwrap().contains("#![deny(unsafe_code)]")
    );
    // Nor for a single item.
    for (name, text) in rust() {
        assert!(!text.contains("#[allow(unsafe_code)]"), "{name}");
    }
}

#[test]
fn this_test_can_tell() {
    let body = "    x();\n".repeat(70);
    let text = format!(
        "trait T {{\n    fn short();\n}}\n\npub(crate) unsafe fn long<T>(\n    x: T,\n) {{\n{body}}}\nfn one() {{}}\n"
    );
    let found: Vec<_> = functions(&text);
    assert_eq!(found, [("short".to_owned(), 1), ("long".to_owned(), 74), ("one".to_owned(), 1)]);
}
