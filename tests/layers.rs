//! Who may import whom, read from the `use` lines and paths of `src/`.
//!
//! ```text
//!   5  face        builder runtime thread sync lock stats waiting doctor fork: what a program sees
//!   4  worker lot                                                  the only ones that see both halves
//!   3  sched | preempt                                             pure | the handler's side
//!   2  tcb context slot tls check dump                             threads at rest
//!   1  sys lock::{spin,slow} protocol trace tls::{hot,due}         one concern each
//!   0  prim error                                                  for all
//! ```
//!
//! A module imports from its own layer and from those below, with these limits: `sched` and `preempt` do
//! not know each other; `sched` and `protocol` know only `prim` (so they run under loom and in the
//! simulator: no libc, no assembly, no thread-locals); the handler's side takes no lock of std's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The layer of a module: the longest prefix counts. Names that `lib.rs` re-exports are listed as well.
const LAYERS: &[(&str, u8)] = &[
    ("prim", 0),
    ("error", 0),
    ("Error", 0),
    ("sys", 1),
    ("lock::slow", 1),
    ("lock::spin", 1),
    ("protocol", 1),
    ("trace", 1),
    ("tls::hot", 1),
    ("tls::due", 1),
    ("tcb", 2),
    ("context", 2),
    ("slot", 2),
    ("tls", 2),
    ("check", 2),
    ("dump", 2),
    ("sched", 3),
    ("preempt", 3),
    ("worker", 4),
    ("lot", 4),
    ("builder", 5),
    ("runtime", 5),
    ("Runtime", 5),
    ("thread", 5),
    ("sync", 5),
    ("lock", 5),
    ("stats", 5),
    ("waiting", 5),
    ("Waiting", 5),
    ("doctor", 5),
    ("fork", 5),
    ("bench_support", 5),
    ("lib", 5),
];

/// Modules that import nothing but these of the crate.
const ONLY: &[(&str, &[&str])] =
    &[("prim", &["prim"]), ("protocol", &["protocol", "prim"]), ("sched", &["sched", "prim"])];

/// Modules that do not import these, though their layers would allow it.
const NEVER: &[(&str, &str)] = &[("preempt", "sched")];

/// What the text of a module does not contain.
const WORDS: &[(&str, &[&str])] = &[
    ("sched", &["libc", "asm!", "thread_local", "std::", "Box", "Vec"]),
    ("protocol", &["libc", "asm!", "thread_local", "std::", "Box", "Vec"]),
    ("preempt", &["std::sync", "thread_local", "println", "format!"]),
];

/// What is allowed all the same: file, what it uses, why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "preempt/guard.rs",
    "std::sync",
    "Once: sets the panic hook, in thread context, at a runtime's start",
)];

/// Only compiled for tests: may use what it likes.
const TEST_ONLY: &[&str] = &[
    "sched/models.rs",
    "sched/sim",
    "protocol/models",
    "protocol/condvar2005_models.rs",
    "lot/storm.rs",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// `a/b/mod.rs` is `a::b`; `lib.rs` is `lib`.
fn module_of(file: &str) -> Vec<String> {
    let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
    name.split('/').map(str::to_owned).collect()
}

/// The text without comments, strings, and what follows the first test module.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap();
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => drop(chars.next()),
            '"' => in_string = !in_string,
            // A character that would begin or end a string.
            '\'' if chars.peek() == Some(&'"') => drop((chars.next(), chars.next())),
            '/' if !in_string && chars.peek() == Some(&'/') => {
                for c in chars.by_ref() {
                    if c == '\n' {
                        out.push(c);
                        break;
                    }
                }
            }
            c if !in_string => out.push(c),
            _ => {}
        }
    }
    out
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Every path in the code that begins with `crate` or `super`, with groups taken apart.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for start in ["crate", "super"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|c| !is_name(c) && c != ':') {
                path(&code[at..], &[], &mut out);
            }
        }
    }
    out.retain(|p| p.len() > 1);
    out
}

/// Reads one path at the start of `text`, after `prefix`; returns what follows it.
fn path<'a>(mut text: &'a str, prefix: &[String], out: &mut Vec<Vec<String>>) -> &'a str {
    let mut here = prefix.to_vec();
    loop {
        let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
        if end > 0 {
            here.push(text[..end].to_owned());
        }
        text = &text[end..];
        let Some(rest) = text.strip_prefix("::") else { break };
        text = rest;
        if let Some(mut group) = text.strip_prefix('{') {
            loop {
                group = group.trim_start();
                if let Some(rest) = group.strip_prefix('}') {
                    return rest;
                }
                let rest = path(group, &here, out);
                // Over ` as name` and the comma.
                let next = rest.find([',', '}']).unwrap_or(rest.len());
                group = rest[next..].trim_start_matches(',');
                if group.is_empty() {
                    return group;
                }
            }
        }
    }
    out.push(here);
    text
}

/// The path from the root of the crate.
fn resolve(path: &[String], module: &[String]) -> Vec<String> {
    let mut at = module.to_vec();
    let mut rest = path;
    if path[0] == "crate" {
        at.clear();
        rest = &path[1..];
    }
    while rest.first().is_some_and(|p| p == "super") {
        at.pop();
        rest = &rest[1..];
    }
    at.extend(rest.iter().filter(|p| *p != "self").cloned());
    at
}

fn layer(module: &[String]) -> Option<u8> {
    let name = module.join("::");
    let fits = |m: &str| name == m || name.starts_with(&format!("{m}::"));
    LAYERS.iter().filter(|(m, _)| fits(m)).max_by_key(|(m, _)| m.len()).map(|(_, l)| *l)
}

/// What is wrong with one file: what it uses, and the rule.
fn complaints(file: &str, text: &str) -> Vec<(String, String)> {
    let module = module_of(file);
    let top = module[0].as_str();
    let Some(own) = layer(&module) else {
        return vec![(file.to_owned(), "is in no layer: put it into one".to_owned())];
    };
    let mut wrong = Vec::new();
    let code = code(text);
    for used in paths(&code).iter().map(|p| resolve(p, &module)).collect::<BTreeSet<_>>() {
        let (name, to) = (used.join("::"), used[0].as_str());
        let mut say = |rule: String| wrong.push((name.clone(), rule));
        // Macros and items of the root that have no layer are none of our business.
        let Some(theirs) = layer(&used) else { continue };
        if theirs > own {
            say(format!("layer {theirs} from layer {own}"));
        }
        if ONLY.iter().any(|(m, only)| *m == top && !only.contains(&to)) {
            say(format!("{top} is self-contained"));
        }
        if NEVER.contains(&(top, to)) {
            say(format!("{top} does not know {to}"));
        }
    }
    for (_, words) in WORDS.iter().filter(|(m, _)| *m == top) {
        for word in words.iter().filter(|w| code.contains(**w)) {
            wrong.push(((*word).to_owned(), format!("not in {top}")));
        }
    }
    wrong
}

#[test]
fn imports_go_down() {
    let (mut all, mut wrong, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
    files(&source(), &mut all);
    assert!(all.len() > 40, "where are the files?");
    for path in all {
        let file = path.strip_prefix(source()).unwrap().to_str().unwrap().to_owned();
        if TEST_ONLY.iter().any(|t| file.starts_with(t)) {
            continue;
        }
        for (what, rule) in complaints(&file, &fs::read_to_string(&path).unwrap()) {
            match EXCEPTIONS.iter().position(|(f, w, _)| *f == file && *w == what) {
                Some(i) => drop(used.insert(i)),
                None => wrong.push(format!("{file}: {what} ({rule})")),
            }
        }
    }
    assert!(wrong.is_empty(), "imports against the layers:\n{}", wrong.join("\n"));
    for (i, (file, what, _)) in EXCEPTIONS.iter().enumerate() {
        assert!(used.contains(&i), "the exception for {what} in {file} is not needed any more");
    }
}

#[test]
fn this_test_can_tell() {
    let found = |file, text| complaints(file, text).into_iter().map(|c| c.0).collect::<Vec<_>>();
    assert_eq!(
        found("tcb/mod.rs", "use crate::{sys, worker::{self, ops as o}};"),
        ["worker", "worker::ops"]
    );
    assert_eq!(found("slot/pool.rs", "fn f() { super::super::preempt::g() }"), ["preempt::g"]);
    assert_eq!(found("lock/spin.rs", "use crate::tls::{block, hot};"), ["tls::block"]);
    assert_eq!(found("preempt/handler.rs", "use crate::sched::ring::Ring;"), ["sched::ring::Ring"]);
    assert_eq!(found("sched/ring.rs", "use crate::sys::futex; // crate::worker"), ["sys::futex"]);
    assert_eq!(found("sched/ring.rs", "use libc::c_int; const A: &str = \"asm!\";"), ["libc"]);
    assert_eq!(found("preempt/handler.rs", "static L: std::sync::Mutex<()> = X;"), ["std::sync"]);
    assert_eq!(found("worker/x.rs", "use crate::{prim, sched}; use super::ops;"), [""; 0]);
    assert_eq!(found("fresh/mod.rs", "")[0], "fresh/mod.rs");
}
