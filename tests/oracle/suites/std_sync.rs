//! library/std/tests/sync.
#![feature(custom_test_frameworks, macro_metavar_expr_concat, mapped_lock_guards, test)]
#![test_runner(crate::run)]
#![allow(warnings)]

extern crate oracle as std;

fn run(tests: &[&test_crate::TestDescAndFn]) {
    std::runner::run(include_str!("../lists/std_sync.txt"), tests);
}

extern crate test as test_crate;

/// A test of the locks without poisoning: `maybe_unwrap` has nothing to do.
macro_rules! nonpoison_test {
    (name: $name:ident, test_body: {$($body:tt)*}) => {
        #[test]
        fn ${concat(nonpoison_, $name)}() {
            use ::std::convert::identity as maybe_unwrap;
            use ::std::sync::nonpoison as locks;
            $($body)*
        }
    };
}

/// A test of those that can be poisoned.
macro_rules! poison_test {
    (name: $name:ident, test_body: {$($body:tt)*}) => {
        #[test]
        fn ${concat(poison_, $name)}() {
            use $crate::unwrap as maybe_unwrap;
            use ::std::sync::poison as locks;
            $($body)*
        }
    };
}

/// Both, by the name that std's tests use.
macro_rules! nonpoison_and_poison_unwrap_test {
    (name: $name:ident, test_body: {$($body:tt)*}) => {
        $crate::nonpoison_test!(name: $name, test_body: {$($body)*});
        $crate::poison_test!(name: $name, test_body: {$($body)*});
    };
}

use {nonpoison_and_poison_unwrap_test, nonpoison_test, poison_test};

fn unwrap<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    result.unwrap()
}

include!(concat!(env!("OUT_DIR"), "/std_sync/modules.rs"));

/// A generator for the tests that want one.
mod common {
    pub fn test_rng() -> rand_xorshift::XorShiftRng {
        use ::std::hash::{BuildHasher as _, RandomState};
        rand::SeedableRng::seed_from_u64(RandomState::new().hash_one(()))
    }
}
