//! Equal shares for threads that use up their slices.
//!
//! They take turns, so each gets as many slices as the others; but slices are not equal. A tick comes late, or the
//! kernel lets another process have the processor in the middle of one. Such differences would add up to some percent
//! within seconds. So each thread's processor time is counted, and one that has come to lag behind the others by more
//! than half a slice at its tick stays for another one, if nobody new waits.
//!
//! What counts is the distance from the one that has had most ([`Shares`]). Nobody is further behind than
//! [`LAG`] slices when it begins, so a thread that had too much (its tick could not be honoured for long) makes
//! the others stay for so long and no longer.
#![forbid(unsafe_code)]

use crate::prim::{AtomicU32, Ordering};

/// Slices that a thread can be behind.
const LAG: i32 = 8;
/// Longer slices count as this long: so many of them fit the arithmetic.
const LONGEST: u32 = 1 << 27;

/// The processor time of the thread that has had most, in microseconds; only differences mean something.
pub(crate) struct Shares(AtomicU32);

impl Shares {
    pub(crate) fn new() -> Shares {
        Shares(AtomicU32::new(0))
    }

    /// A thread has used `used` us of a slice of `slice` us. `had` is what it had before, as this function told;
    /// `None`: nothing, it is new among the others. Returns what it has had now, and whether it lags.
    #[inline]
    pub(crate) fn charge(&self, had: Option<u32>, used: u32, slice: u32) -> (u32, bool) {
        let slice = slice.min(LONGEST) as i32;
        let most = self.0.load(Ordering::Relaxed);
        let before = match had {
            Some(had) => (most.wrapping_sub(had) as i32).clamp(0, LAG * slice),
            None => slice / 2,
        };
        let behind = before - used.min(LAG as u32 * slice as u32) as i32;
        let has = most.wrapping_add_signed(-behind);
        if behind < 0 {
            // Another worker may do the same: either is right.
            self.0.store(has, Ordering::Relaxed);
        }
        (has, behind > slice / 2)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SLICE: u32 = 1000;

    /// Marsaglia's xorshift64.
    fn next(state: &mut u64) -> u32 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 16) as u32
    }

    /// Hogs in turns whose slices are cut short at random, and are three times too long now and then.
    #[test]
    fn unequal_slices_even_out() {
        for seed in 1..200 {
            let (shares, mut random) = (Shares::new(), seed);
            let mut had = [None; 8];
            let mut total = [0; 8];
            for _ in 0..200 {
                for (had, total) in had.iter_mut().zip(&mut total) {
                    for stays in 0.. {
                        let used = match next(&mut random) % 64 {
                            0 => 3 * SLICE,
                            n if n < 16 => next(&mut random) % SLICE,
                            _ => SLICE,
                        };
                        *total += used;
                        let (now, lags) = shares.charge(*had, used, SLICE);
                        *had = Some(now);
                        if !lags {
                            break;
                        }
                        assert!(stays < 16, "it stays for ever");
                    }
                }
            }
            let spread = total.iter().max().unwrap() - total.iter().min().unwrap();
            assert!(spread < 6 * SLICE, "{spread} of {total:?}");
        }
    }

    #[test]
    fn a_new_thread_gives_way_at_its_first_tick() {
        let shares = Shares::new();
        let (old, _) = shares.charge(None, 100 * SLICE, SLICE);
        assert!(!shares.charge(None, 0, SLICE).1);
        assert!(!shares.charge(Some(old), 0, SLICE).1);
        assert!(shares.charge(Some(old - 2 * SLICE), 0, SLICE).1);
    }
}
