//! Compiles `tests/c/ucontext.c` against the static library and `include/reveille.h`, with
//! warnings as errors; runs each case in
//! a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The static library that cargo built together with the one this test links to.
fn static_library() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    let mut found = Vec::new();
    for folder in me.ancestors().skip(1).take(2) {
        for entry in folder.read_dir().unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("libreveille") && name.ends_with(".a") {
                found.push((entry.metadata().unwrap().modified().unwrap(), entry.path()));
            }
        }
    }
    found.into_iter().max().expect("cargo has built a static library").1
}

fn compile(optimise: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ucontext_c{optimise}"));
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type", "-g"])
        .args(["-frounding-math", optimise])
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("tests/c/ucontext.c"))
        .arg(static_library())
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"])
        .arg(&program)
        .output()
        .expect("there is a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run_all(optimise: &str) {
    let program = compile(optimise);
    let list = Command::new(&program).output().unwrap();
    let cases = String::from_utf8(list.stdout).unwrap();
    assert!(cases.lines().count() >= 13);
    let failed: Vec<_> = cases
        .lines()
        .filter_map(|case| {
            let output = Command::new(&program).arg(case).output().unwrap();
            (!output.status.success()).then(|| {
                format!("{case}: {} {}", output.status, String::from_utf8_lossy(&output.stderr))
            })
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn c_program_unoptimised() {
    run_all("-O0");
}

#[test]
fn c_program_optimised() {
    run_all("-O2");
}
