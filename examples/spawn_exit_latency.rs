//! What it takes to start a thread, run it, end it and join it: reveille on one worker beside
//! std::thread, in turns, with the same code.
//!
//! `cargo run --release --example spawn_exit_latency [seconds]`

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use reveille::{Runtime, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(2.0), |text| text.parse())?;
    let runtime = Runtime::builder().workers(1).build()?;
    let round =
        |count| runtime.run(|| each(count, |i| thread::spawn(move || black_box(i) + 1).join()));
    let kernel_round = |count| each(count, |i| std::thread::spawn(move || black_box(i) + 1).join());

    round(1_000); // warm-up
    kernel_round(100);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while ours.is_empty() || Instant::now() < end {
        ours.push(round(20_000));
        theirs.push(kernel_round(500));
    }
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!("spawn + run + exit + join, one at a time, median of rounds");
    println!("reveille     {ours:>10.1} ns");
    println!("std::thread  {theirs:>10.1} ns");
    println!("             {:>10.1} times faster", theirs / ours);
    runtime.shutdown()?;
    Ok(())
}

/// Ns for each of `count` threads that `one` starts and joins.
fn each(count: u64, one: impl Fn(u64) -> std::thread::Result<u64>) -> f64 {
    let start = Instant::now();
    for i in 0..count {
        assert_eq!(one(i).expect("no panic"), i + 1);
    }
    start.elapsed().as_nanos() as f64 / count as f64
}

/// The middle value.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
