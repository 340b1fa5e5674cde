//! library/std/src/thread/tests.rs and library/std/tests/thread.rs.
#![feature(custom_test_frameworks, test)]
#![test_runner(crate::run)]
#![allow(warnings)]

extern crate oracle as std;
extern crate test as test_crate;

fn run(tests: &[&test_crate::TestDescAndFn]) {
    std::runner::run(include_str!("../lists/std_thread.txt"), tests);
}

// The first file is a part of std, and finds its parents here.
pub use std::thread::sleep;
pub use std::{any, ffi, iter, panic, result, sync, thread, time};

include!(concat!(env!("OUT_DIR"), "/std_thread/modules.rs"));
