//! Takes one test out of a source that rustfmt has formatted: an item begins after an empty line, a brace or the
//! opening line of its module, and ends at a brace of its own depth.

/// std's macro for a test of both kinds of lock, and those of ../suites/std_sync.rs for one kind.
const BOTH: &str = "nonpoison_and_poison_unwrap_test!(";
const HALVES: [(&str, &str); 2] =
    [("poison_", "crate::nonpoison_test!("), ("nonpoison_", "crate::poison_test!(")];

/// Cuts the test `path`, a name in a module of the file or at its root; false if there is none.
pub fn test(text: &mut String, path: &str) -> bool {
    let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
    let lines: Vec<&str> = text.lines().collect();
    let function = format!("fn {name}(");
    let found = (0..lines.len()).find(|&i| {
        let line = lines[i].trim_start();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.starts_with(&function) && module_of(&lines, i) == module
    });
    if let Some(at) = found {
        let (first, last) = item(&lines, at);
        *text = [&lines[..first], &lines[last + 1..]].concat().join("\n") + "\n";
        return true;
    }
    HALVES.iter().any(|(prefix, other)| {
        name.strip_prefix(prefix).is_some_and(|name| half(text, name, prefix, other))
    })
}

/// Cuts one half of a test of both kinds of lock, or what is left of it.
fn half(text: &mut String, name: &str, prefix: &str, other: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let named = format!("name: {name},");
    let Some(at) = lines.iter().position(|l| l.trim() == named) else { return false };
    let mut out: Vec<&str> = lines.clone();
    if lines[at - 1] == BOTH {
        out[at - 1] = other;
    } else if lines[at - 1] == format!("crate::{prefix}test!(") {
        let (first, last) = item(&lines, at - 1);
        out.drain(first..=last);
    } else {
        return false;
    }
    *text = out.join("\n") + "\n";
    true
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The module of a line within its file.
fn module_of(lines: &[&str], at: usize) -> String {
    let mut depth = indent(lines[at]);
    let mut path = Vec::new();
    for line in lines[..at].iter().rev().filter(|l| !l.trim().is_empty()) {
        if indent(line) < depth {
            depth = indent(line);
            let line = line.trim().trim_start_matches("pub ");
            path.extend(line.strip_prefix("mod ").and_then(|m| m.strip_suffix(" {")));
        }
    }
    path.reverse();
    path.join("::")
}

/// First and last line of the item with its head at `at`.
fn item(lines: &[&str], at: usize) -> (usize, usize) {
    let depth = indent(lines[at]);
    let before = |line: &str| {
        let end = indent(line) == depth && (line.ends_with('}') || line.ends_with(';'));
        line.trim().is_empty() || end || indent(line) < depth
    };
    let first = lines[..at].iter().rposition(|l| before(l)).map_or(0, |i| i + 1);
    let closes = |line: &str| indent(line) == depth && ["}", ");"].contains(&line.trim());
    let whole = lines[at].ends_with('}');
    let last = if whole { at } else { at + lines[at..].iter().position(|l| closes(l)).unwrap() };
    (first, last)
}

/// The text without attributes that only a crate's root may have, or that macros of another crate would not heed.
pub fn crate_attributes(text: &str) -> String {
    let ours = |l: &&str| !l.starts_with("#![feature(") && !l.starts_with("#![forbid(");
    text.lines().filter(ours).map(|l| format!("{l}\n")).collect()
}
