//! Preemptions are counted one by one, also those that a guard has put off.
//!
//! Cure guarded here: counting where a remembered tick is honoured (`worker::ops::give_way`).
#![allow(unsafe_code)]

mod support;

use reveille::{Runtime, bench_support, preempt, thread};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use support::*;

const ROUNDS: u64 = 200;

/// Ticks that are sent, on one worker, beside a thread that gives way all the time; none comes by itself.
fn each_round_counts(wanted: u64, round: impl Fn() + Send + Sync) {
    let _alone = alone();
    let b = Runtime::builder().workers(1).time_slice(Duration::from_secs(10));
    let rt = b.adaptive_slices(false).build().unwrap();
    let stop = AtomicBool::new(false);
    let turns = AtomicU64::new(0);
    rt.run(|| {
        thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(SeqCst) {
                    turns.fetch_add(1, SeqCst);
                    thread::yield_now();
                }
            });
            thread::yield_now();
            for n in 0..ROUNDS {
                assert_eq!(preemptions(), n * wanted);
                let before = turns.load(SeqCst);
                round();
                assert_eq!(turns.load(SeqCst), before + wanted, "the other's turns");
                // Its slice has ended with a tick too, so far as the worker is concerned: go on as new.
                thread::yield_now();
            }
            stop.store(true, SeqCst);
        });
    });
    let counted: u64 = rt.stats().workers.iter().map(|w| w.preemptions).sum();
    assert_eq!(counted, ROUNDS * wanted);
    rt.shutdown().unwrap();
}

#[test]
fn a_tick_at_once() {
    each_round_counts(1, bench_support::preempt_self);
}

#[test]
fn ticks_in_a_guard_are_one_at_its_end() {
    each_round_counts(1, || {
        let _off = preempt::disable();
        bench_support::preempt_self();
        bench_support::preempt_self();
    });
}

#[test]
fn a_guard_without_a_tick_is_none() {
    each_round_counts(0, || drop(preempt::disable()));
}

/// Nobody waits, so the tick is not due.
#[test]
fn a_tick_for_nobody_is_none() {
    let _alone = alone();
    let rt = fast(1).build().unwrap();
    rt.run(|| {
        let off = preempt::disable();
        bench_support::preempt_self();
        drop(off);
        assert_eq!(preemptions(), 0);
    });
    assert_eq!(rt.stats().workers[0].preemptions, 0);
    rt.shutdown().unwrap();
}
