//! may: user-level threads without preemption, with workers of their own.

use std::hint::black_box;
use std::time::Instant;

use may::coroutine::{self, JoinHandle};
use may::go;

use super::YIELDERS;
use crate::args::Measurement;

/// Machine words of stack: 64 KiB.
const STACK: usize = 8 * 1024;

/// Ns for each.
pub fn measure(what: Measurement, count: u64) -> Option<f64> {
    let workers = if what == Measurement::RivalTwo { 2 } else { 1 };
    let pool = if what == Measurement::RivalMany { count as usize + 10 } else { 100 };
    may::config().set_workers(workers).set_stack_size(STACK).set_pool_capacity(pool);
    let body: fn(u64) -> f64 = match what {
        Measurement::RivalYield => yields,
        Measurement::RivalOne | Measurement::RivalTwo => one_by_one,
        Measurement::RivalMany => many,
        _ => return None,
    };
    let inside = go!(move || {
        body(count.min(1_000)); // warm-up
        if what == Measurement::RivalMany {
            body(count);
        }
        body(count)
    });
    Some(inside.join().expect("the measurement does not panic"))
}

/// Ns per yield among [`YIELDERS`].
fn yields(each: u64) -> f64 {
    let start = Instant::now();
    let all: Vec<JoinHandle<()>> = (0..YIELDERS)
        .map(|_| {
            go!(move || {
                for _ in 0..each {
                    coroutine::yield_now();
                }
            })
        })
        .collect();
    for one in all {
        one.join().expect("it does not panic");
    }
    start.elapsed().as_nanos() as f64 / (each * YIELDERS) as f64
}

/// Ns per thread spawned and joined one by one.
fn one_by_one(count: u64) -> f64 {
    let start = Instant::now();
    for i in 0..count {
        let one = go!(move || black_box(i) + 1);
        black_box(one.join().expect("it does not panic"));
    }
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Ns per thread when `count` are spawned and then joined.
fn many(count: u64) -> f64 {
    let start = Instant::now();
    let all: Vec<_> = (0..count).map(|i| go!(move || black_box(i) + 1)).collect();
    for one in all {
        black_box(one.join().expect("it does not panic"));
    }
    start.elapsed().as_nanos() as f64 / count as f64
}
