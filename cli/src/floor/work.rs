//! CPU-bound work in exact amounts: the same instructions whoever runs them.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many rounds of the mix make one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(u64);

impl Amount {
    /// The amount that takes about `time` on the calling kernel thread now.
    pub fn lasting(time: Duration) -> Self {
        let mut rounds = 10_000;
        loop {
            let start = Instant::now();
            black_box(mix(rounds, 7));
            let took = start.elapsed();
            if took >= time / 4 || took >= Duration::from_millis(20) {
                let each = took.as_secs_f64() / rounds as f64;
                return Self((time.as_secs_f64() / each).max(1.0) as u64);
            }
            rounds *= 2;
        }
    }

    /// Does the work; the result depends on every round of it.
    pub fn run(self, seed: u64) -> u64 {
        mix(self.0, seed)
    }
}

/// `rounds` rounds of Marsaglia's xorshift64 (Journal of Statistical Software 8(14), 2003): no
/// call, no memory access, no system call, nothing that a compiler can shorten.
#[inline(never)]
pub fn mix(rounds: u64, seed: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_depends_on_rounds_and_seed() {
        assert_ne!(mix(10, 1), mix(11, 1));
        assert_ne!(mix(10, 1), mix(10, 3));
        assert_eq!(mix(0, 2), 3);
    }

    #[test]
    fn more_time_is_more_work() {
        let short = Amount::lasting(Duration::from_micros(200));
        let long = Amount::lasting(Duration::from_millis(20));
        assert!(long.0 > short.0);
    }
}
