//! tokio: tasks, which are state machines without stacks.

use std::hint::black_box;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::task;

use super::YIELDERS;
use crate::args::Measurement;

/// Ns for each.
pub fn measure(what: Measurement, count: u64) -> Option<f64> {
    let workers = if what == Measurement::RivalTwo { 2 } else { 1 };
    let runtime = Builder::new_multi_thread().worker_threads(workers).build().ok()?;
    let body: fn(&Runtime, u64) -> f64 = match what {
        Measurement::RivalYield => yields,
        Measurement::RivalOne | Measurement::RivalTwo => one_by_one,
        Measurement::RivalMany => many,
        _ => return None,
    };
    body(&runtime, count); // warm-up
    Some(body(&runtime, count))
}

/// Runs `future` on a worker, not on the calling kernel thread.
fn on_worker<F>(runtime: &Runtime, future: F) -> f64
where
    F: Future<Output = f64> + Send + 'static,
{
    runtime.block_on(runtime.spawn(future)).expect("the measurement does not panic")
}

/// Ns per yield among [`YIELDERS`].
fn yields(runtime: &Runtime, each: u64) -> f64 {
    on_worker(runtime, async move {
        let start = Instant::now();
        let all: Vec<_> = (0..YIELDERS)
            .map(|_| {
                task::spawn(async move {
                    for _ in 0..each {
                        task::yield_now().await;
                    }
                })
            })
            .collect();
        for one in all {
            one.await.expect("it does not panic");
        }
        start.elapsed().as_nanos() as f64 / (each * YIELDERS) as f64
    })
}

/// Ns per task spawned and awaited one by one.
fn one_by_one(runtime: &Runtime, count: u64) -> f64 {
    on_worker(runtime, async move {
        let start = Instant::now();
        for i in 0..count {
            let one = task::spawn(async move { black_box(i) + 1 });
            black_box(one.await.expect("it does not panic"));
        }
        start.elapsed().as_nanos() as f64 / count as f64
    })
}

/// Ns per task when `count` are spawned and then awaited.
fn many(runtime: &Runtime, count: u64) -> f64 {
    on_worker(runtime, async move {
        let start = Instant::now();
        let all: Vec<_> =
            (0..count).map(|i| task::spawn(async move { black_box(i) + 1 })).collect();
        for one in all {
            black_box(one.await.expect("it does not panic"));
        }
        start.elapsed().as_nanos() as f64 / count as f64
    })
}
