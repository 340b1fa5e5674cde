//! Loom models of the queues and of the sleep protocol.

use super::idle::{Idle, Kernel, Sleep};
use super::ring::Ring;
use crate::prim::{AtomicU32, Ordering::*};
use crate::protocol::models::{Futex, check};
use core::ptr::without_provenance;
use loom::sync::Arc;
use loom::sync::atomic::fence;
use loom::thread;

/// Entries are numbers dressed as addresses; nothing reads them.
type Small<const N: usize> = Ring<u64, N>;

fn entry(n: usize) -> *const u64 {
    without_provenance(n)
}

fn drain<const N: usize>(ring: &Small<N>, sole: bool) -> Vec<usize> {
    core::iter::from_fn(|| ring.pop(sole).map(<*const u64>::addr)).collect()
}

/// Thieves take from a ring while its owner pushes `1..=pushes` and takes `pops`; what does not fit goes to
/// a list, as in the runtime. Every entry must come out once.
fn nothing_lost_or_doubled<const N: usize>(start: u32, pushes: usize, pops: usize, thieves: usize) {
    check(Some(3), move || {
        let ring = Arc::new(Small::<N>::starting_at(start));
        ring.push(entry(1)).unwrap();
        let thieves: Vec<_> = (0..thieves)
            .map(|_| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let own = Small::<N>::starting_at(start.wrapping_add(1));
                    let n = ring.steal_into(&own);
                    let got = drain(&own, false);
                    assert_eq!(got.len(), n);
                    assert!(got.is_sorted(), "oldest first");
                    got
                })
            })
            .collect();
        let mut all = Vec::new();
        for n in 2..=pushes {
            all.extend(ring.push(entry(n)).err().map(<*const u64>::addr));
        }
        all.extend((0..pops).filter_map(|_| ring.pop(false)).map(<*const u64>::addr));
        for t in thieves {
            all.extend(t.join().unwrap());
        }
        all.extend(drain(&ring, false));
        all.sort_unstable();
        assert!(all.iter().copied().eq(1..=pushes), "{all:?} of 1..={pushes}");
    });
}

#[test]
fn loom_ring_with_a_thief() {
    nothing_lost_or_doubled::<4>(0, 3, 2, 1);
}

#[test]
fn loom_ring_that_fills_up() {
    nothing_lost_or_doubled::<2>(0, 4, 1, 1);
}

#[test]
fn loom_ring_whose_numbers_wrap() {
    nothing_lost_or_doubled::<2>(u32::MAX, 3, 1, 1);
}

#[test]
fn loom_ring_with_two_thieves() {
    nothing_lost_or_doubled::<2>(0, 3, 1, 2);
}

/// The kernel's part, with the barriers as given.
struct Model {
    futex: Futex,
    light: bool,
    heavy: bool,
}

impl Kernel for Model {
    fn light(&self) {
        if self.light {
            fence(SeqCst);
        }
    }

    fn heavy(&self) {
        if self.heavy {
            fence(SeqCst);
        }
    }

    fn wait(&self, word: &AtomicU32, expected: u32) {
        self.futex.wait(|| word.load(Relaxed) == expected);
    }

    fn wake(&self, _word: &AtomicU32) {
        self.futex.wake();
    }
}

/// One sleeper's world: how many threads are ready, who sleeps.
struct World {
    kernel: Model,
    idle: Idle,
    sleeps: [Sleep; 2],
    ready: AtomicU32,
}

impl World {
    fn new(light: bool, heavy: bool) -> World {
        World {
            kernel: Model { futex: Futex::default(), light, heavy },
            idle: Idle::default(),
            sleeps: Default::default(),
            ready: AtomicU32::new(0),
        }
    }

    /// Steps a to c.
    fn give(&self) {
        self.ready.fetch_add(1, Relaxed);
        if self.idle.anybody(&self.kernel) {
            let _ = self.sleeps.iter().any(|s| self.idle.wake(&self.kernel, s));
        }
    }

    /// A worker that looks for one thread to run.
    fn find(&self, me: usize) {
        let any = || self.ready.load(Relaxed) != 0;
        while self.ready.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_err() {
            self.idle.sleep(&self.kernel, &self.sleeps[me], any);
        }
    }
}

fn one_sleeper(light: bool, heavy: bool) {
    check(None, move || {
        let world = Arc::new(World::new(light, heavy));
        let giver = thread::spawn({
            let world = Arc::clone(&world);
            move || world.give()
        });
        world.find(0);
        giver.join().unwrap();
        assert!(!world.idle.seems_any(), "the count of sleepers is wrong");
    });
}

#[test]
fn loom_no_wake_up_is_lost() {
    one_sleeper(true, true);
}

/// The model can tell: without the frequent side's barrier the worker sleeps for ever.
#[test]
#[should_panic(expected = "deadlock")]
fn loom_wake_up_is_lost_without_the_light_barrier() {
    one_sleeper(false, true);
}

/// As above, for the rare side's.
#[test]
#[should_panic(expected = "deadlock")]
fn loom_wake_up_is_lost_without_the_heavy_barrier() {
    one_sleeper(true, false);
}

#[test]
fn loom_two_sleepers_two_threads() {
    check(Some(2), || {
        let world = Arc::new(World::new(true, true));
        let sleepers = [0, 1].map(|me| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.find(me))
        });
        world.give();
        world.give();
        for s in sleepers {
            s.join().unwrap();
        }
        assert!(!world.idle.seems_any(), "the count of sleepers is wrong");
    });
}
