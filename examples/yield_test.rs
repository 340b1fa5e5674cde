//! The yield test of libc_r, with which Daniel Eischen showed zero-system-call switching to the
//! FreeBSD developers on 13 October 2000: ten threads do nothing but yield, and the counts show
//! how fast that is and how fair. His were 259,130 or 259,131 each, in ten seconds.
//!
//! `cargo run --release --example yield_test [seconds]`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reveille::{Runtime, thread};

const THREADS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(2.0), |text| text.parse())?;
    let runtime = Runtime::builder().workers(1).build()?;
    let go = Arc::new(AtomicBool::new(false));
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (go, stop) = (Arc::clone(&go), Arc::clone(&stop));
            runtime.spawn(move || {
                while !go.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                let mut iterations = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    iterations += 1;
                    thread::yield_now();
                }
                iterations
            })
        })
        .collect();

    let before = cpu_times();
    let start = Instant::now();
    go.store(true, Ordering::Release);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    stop.store(true, Ordering::Relaxed);
    let counts: Vec<u64> =
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    let real = start.elapsed();
    let after = cpu_times();

    for (place, count) in counts.iter().enumerate() {
        println!("thread {place}: {count} iterations");
    }
    let total: u64 = counts.iter().sum();
    let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    println!("total {total}, least {least}, most {most}: {} apart", most - least);
    println!(
        "real {:.3} s, user {:.3} s, sys {:.3} s: {:.1} ns per yield",
        real.as_secs_f64(),
        (after.0 - before.0).as_secs_f64(),
        (after.1 - before.1).as_secs_f64(),
        real.as_nanos() as f64 / total as f64,
    );
    runtime.shutdown()?;
    Ok(())
}

/// User and system time of this process so far.
fn cpu_times() -> (Duration, Duration) {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return (Duration::ZERO, Duration::ZERO);
    };
    let micros = |time: i64| Duration::from_micros(time.try_into().unwrap_or(0));
    (micros(usage.user_time().num_microseconds()), micros(usage.system_time().num_microseconds()))
}
