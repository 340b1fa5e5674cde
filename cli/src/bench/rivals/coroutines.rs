//! corosensei: coroutines resumed in turns by a loop; no scheduler, no worker, no join.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::YIELDERS;
use crate::args::Measurement;

/// Bytes of stack.
const STACK: usize = 64 * 1024;

/// Ns for each; `None` for two workers.
pub fn measure(what: Measurement, count: u64) -> Option<f64> {
    match what {
        Measurement::RivalYield => Some(yields(count)),
        Measurement::RivalOne => Some(one_by_one(count)),
        Measurement::RivalMany => Some(many(count)),
        _ => None,
    }
}

fn stack() -> DefaultStack {
    DefaultStack::new(STACK).expect("a stack can be mapped")
}

/// Ns per suspend and resume among [`YIELDERS`].
fn yields(each: u64) -> f64 {
    let mut queue: VecDeque<Coroutine<(), (), ()>> = (0..YIELDERS)
        .map(|_| {
            Coroutine::with_stack(stack(), move |yielder, ()| {
                for _ in 0..each {
                    yielder.suspend(());
                }
            })
        })
        .collect();
    let start = Instant::now();
    while let Some(mut next) = queue.pop_front() {
        if let CoroutineResult::Yield(()) = next.resume(()) {
            queue.push_back(next);
        }
    }
    start.elapsed().as_nanos() as f64 / (each * YIELDERS) as f64
}

/// Ns per coroutine made on a used stack, run and ended.
fn one_by_one(count: u64) -> f64 {
    let mut stack = stack();
    let start = Instant::now();
    for i in 0..count {
        let mut one = Coroutine::<(), (), u64>::with_stack(stack, move |_, ()| black_box(i) + 1);
        black_box(one.resume(()).as_return());
        stack = one.into_stack();
    }
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Ns per coroutine when `count` are made on used stacks and then run.
fn many(count: u64) -> f64 {
    let mut stacks: Vec<DefaultStack> = (0..count).map(|_| stack()).collect();
    let mut each = 0.0;
    for _warm_up_first in 0..2 {
        let start = Instant::now();
        let made: Vec<_> = stacks
            .drain(..)
            .enumerate()
            .map(|(i, stack)| {
                Coroutine::<(), (), usize>::with_stack(stack, move |_, ()| black_box(i) + 1)
            })
            .collect();
        for mut one in made {
            black_box(one.resume(()).as_return());
            stacks.push(one.into_stack());
        }
        each = start.elapsed().as_nanos() as f64 / count as f64;
    }
    each
}
