//! Finds the sources of the tests, cuts out what `lists/` leaves out, and writes one file of modules for each
//! suite below `OUT_DIR`. Nothing of them is kept in the repository.

mod cut;
#[path = "../src/list.rs"]
mod list;

use list::List;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=lists");
    let std = library();
    let files = |dir: PathBuf| {
        let all = rust_files(&dir).into_iter().filter(|(module, _)| module != "lib");
        all.map(|(module, path)| Source { module, text: read(&path) }).collect()
    };
    write("std_sync", files(std.join("tests/sync")));
    write(
        "std_thread",
        vec![
            Source { module: "in_std".into(), text: read(&std.join("src/thread/tests.rs")) },
            Source { module: "from_outside".into(), text: read(&std.join("tests/thread.rs")) },
        ],
    );
    // These have their tests at the end of each module, in modules of their own.
    let parking_lot = package("parking_lot");
    let mut sources = files(parking_lot.join("tests"));
    for (module, path) in rust_files(&parking_lot.join("src")) {
        let text = read(&path);
        if let Some(at) = text.find("\n#[cfg(test)]\n") {
            sources.push(Source { module, text: text[at..].into() });
        }
    }
    write("parking_lot", sources);
    let crossbeam = package("crossbeam-channel");
    let mut sources = files(crossbeam.join("tests"));
    for source in &mut sources {
        // A module `select` would hide the macro.
        source.module += "_rs";
        source.text =
            source.text.replace("use crossbeam_utils::thread::scope;", "use crate::scope;");
    }
    // For the macro that its tests of `mpsc` use; `select!` and `select_biased!` are ours.
    let macros = read(&crossbeam.join("src/select_macro.rs"));
    let text = macros.replace("macro_rules! select", "macro_rules! crossbeams_select");
    sources.push(Source { module: "crossbeams_macros".into(), text });
    write("crossbeam_channel", sources);
}

/// A file of tests, and the module that it becomes.
struct Source {
    module: String,
    text: String,
}

fn read(path: &Path) -> String {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn rust_files(dir: &Path) -> Vec<(String, PathBuf)> {
    println!("cargo::rerun-if-changed={}", dir.display());
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let paths = entries.map(|e| e.unwrap().path());
    let rust = paths.filter(|p| p.extension().is_some_and(|e| e == "rs"));
    let mut all: Vec<_> =
        rust.map(|p| (p.file_stem().unwrap().to_str().unwrap().to_owned(), p)).collect();
    all.sort();
    all
}

/// The newest library/std of Debian's rust-web-src that has its tests of `sync` outside of the source.
fn library() -> PathBuf {
    println!("cargo::rerun-if-changed=/usr/src");
    let version = |path: &Path| -> Vec<u32> {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.trim_start_matches("rustc-").split('.').map(|n| n.parse().unwrap_or(0)).collect()
    };
    let sources = fs::read_dir("/usr/src").into_iter().flatten().map(|e| e.unwrap().path());
    let usable = sources.filter(|p| p.join("library/std/tests/sync/lib.rs").is_file());
    let newest = usable.max_by_key(|p| version(p));
    newest.expect("no sources of std with tests/sync: install rust-web-src").join("library/std")
}

/// Where Cargo keeps the sources of a dependency.
fn package(name: &str) -> PathBuf {
    let out = Command::new(env::var("CARGO").unwrap())
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(["--filter-platform", &env::var("TARGET").unwrap()])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let json = String::from_utf8(out.stdout).unwrap();
    let paths = json.split("\"manifest_path\":\"").skip(1).map(|s| s.split('"').next().unwrap());
    let mut dirs = paths.map(|p| Path::new(p).parent().unwrap());
    let is_it = |dir: &&Path| {
        let dir = dir.file_name().unwrap().to_str().unwrap();
        dir.strip_prefix(name)
            .and_then(|v| v.strip_prefix('-'))
            .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
    };
    dirs.find(is_it).unwrap_or_else(|| panic!("cargo metadata knows no {name}")).to_owned()
}

fn write(suite: &str, sources: Vec<Source>) {
    let names = read(Path::new(&format!("lists/{suite}.txt")));
    let list = List::parse(&names);
    let out = PathBuf::from(env::var("OUT_DIR").unwrap()).join(suite);
    fs::create_dir_all(&out).unwrap();
    let mut modules = String::new();
    let mut left_out: Vec<&str> = list.left_out().collect();
    for Source { module, mut text } in sources {
        let whole = format!("{module}::*");
        if left_out.contains(&whole.as_str()) {
            left_out.retain(|n| *n != whole);
            continue;
        }
        left_out.retain(|name| {
            let Some(path) = name.strip_prefix(&format!("{module}::")) else { return true };
            !cut::test(&mut text, path)
        });
        let file = out.join(format!("{module}.rs"));
        fs::write(&file, cut::crate_attributes(&text)).unwrap();
        writeln!(modules, "#[path = {file:?}]\nmod {module};").unwrap();
    }
    assert!(left_out.is_empty(), "lists/{suite}.txt leaves out what is not there: {left_out:?}");
    fs::write(out.join("modules.rs"), modules).unwrap();
}
