//! A seeded simulator: workers with a virtual clock drive the queues and the policy with random threads.
//!
//! What is real: `Ring`, `List`, `flow`, `Turns`. What stands in for `worker` and the handler is here, step
//! by step as they do it. Each thread carries a shadow of where it should be; every way out of a queue checks
//! it, so a thread that is lost, doubled or run twice is noticed at once or when the world is emptied.
//!
//! The bounds, for one stay in one queue with `ahead` entries before it:
//! * ring: [`ring_bound`] choices of its worker
//! * arrivals: [`list_bound`] choices of all workers together
//! * sliced: [`sliced_bound`] slices
//! * a worker that works makes a choice at least every two slices, so these are bounds of time as well
//! * a thread waits for at most [`LAZY`] while a worker sleeps
//!
//! One step is one thing that happens on one worker; `life` has the things.
//!
//! A failure prints its seed; `SIM_SEED=n` runs that one alone.

use super::Linked;
use super::flow;
use super::list::List;
use super::policy::{PATIENCE, Source, TICKS, Turns};
use super::ring::Ring;
use core::cell::Cell;

/// Microseconds.
const SLICE: u64 = 1000;
/// A tick may find the running thread fresh; then the next one takes its place.
const LAZY: u64 = 3 * SLICE;
/// Entries of a ring here: small, so that it overflows.
const SIZE: usize = 8;
const SEEDS: u64 = 3000;
const STEPS: usize = 1500;

/// Of `k` choices of a worker at most `k / PATIENCE + 1` begin with the arrivals and `k / 2 + 1` with the
/// sliced threads.
fn ring_bound(ahead: u64) -> u64 {
    (ahead + 4) * 2 * PATIENCE / (PATIENCE - 2) + 2
}

/// Slices in which the sliced threads get a turn for each that waits. A tick can find the turn of the last one
/// not yet taken.
fn sliced_bound(ahead: u64, workers: usize) -> u64 {
    2 * TICKS * (ahead + 1 + workers as u64)
}

/// Each worker takes from the arrivals first once in [`PATIENCE`] of its choices, and one for each tick.
fn list_bound(ahead: u64, workers: usize) -> u64 {
    2 * PATIENCE * (ahead + 1 + workers as u64)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    New,
    Running(usize),
    Ring(usize),
    Arrivals,
    Sliced,
    Blocked,
    Done,
}

struct Thread {
    link: Cell<*const Thread>,
    id: usize,
    place: Cell<Place>,
    /// When its stay in a queue began, and when it must be over: number of choices, time.
    since: Cell<u64>,
    until: Cell<(u64, u64)>,
    /// Things it will do before it ends, and the time left of the one it is at.
    left: Cell<u32>,
    rest: Cell<u64>,
    hog: bool,
    joiner: Cell<Option<usize>>,
}

impl Linked for Thread {
    fn link(&self) -> &Cell<*const Thread> {
        &self.link
    }
}

struct Worker {
    ring: Ring<Thread, SIZE>,
    turns: Turns,
    switches: u64,
    seen: u64,
    choices: u64,
    running: Option<usize>,
    asleep: bool,
    /// When the running thread does its next thing, and when the next tick comes.
    acts: u64,
    tick: u64,
}

struct World {
    seed: u64,
    random: u64,
    now: u64,
    #[allow(clippy::vec_box)] // the queues hold their addresses
    threads: Vec<Box<Thread>>,
    workers: Vec<Worker>,
    arrivals: List<Thread>,
    sliced: List<Thread>,
    /// Choices of all workers.
    choices: u64,
    /// Since when at least one worker has slept.
    sleepy: Option<u64>,
    closing: bool,
    /// Threads that wait for an unpark.
    parked: Vec<usize>,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SIM_SEED={}", self.seed);
        }
    }
}

impl World {
    fn new(seed: u64) -> World {
        World::with_workers(seed, 1 + seed as usize % 4)
    }

    fn with_workers(seed: u64, workers: usize) -> World {
        let mut world = World {
            seed,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: 0,
            threads: Vec::new(),
            workers: Vec::new(),
            arrivals: List::new(),
            sliced: List::new(),
            choices: 0,
            sleepy: Some(0),
            closing: false,
            parked: Vec::new(),
        };
        for _ in 0..workers {
            let (index, tick) = (world.below(20) as u32, 1 + world.below(SLICE));
            world.workers.push(Worker {
                ring: Ring::starting_at(0u32.wrapping_sub(index)),
                turns: Turns::default(),
                switches: 1,
                seen: 0,
                choices: 0,
                running: None,
                asleep: true,
                acts: 0,
                tick,
            });
        }
        world
    }

    /// Vigna's xorshift64* ("An experimental exploration of Marsaglia's xorshift generators", 2016).
    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn sole(&self) -> bool {
        self.workers.len() == 1
    }

    fn make(&mut self) -> usize {
        let id = self.threads.len();
        let thread = Thread {
            link: Cell::new(core::ptr::null()),
            id,
            place: Cell::new(Place::New),
            since: Cell::new(0),
            until: Cell::new((0, 0)),
            left: Cell::new(1 + self.below(20) as u32),
            rest: Cell::new(0),
            hog: self.below(8) == 0,
            joiner: Cell::new(None),
        };
        self.threads.push(Box::new(thread));
        id
    }

    /// Thread `id` goes from one place to another.
    fn moves(&self, id: usize, from: Place, to: Place) {
        let was = self.threads[id].place.replace(to);
        assert_eq!(was, from, "thread {id} on its way to {to:?}");
    }

    /// It stands in the queue `place` from now on, behind `ahead` others.
    fn enters(&self, id: usize, from: Place, place: Place, ahead: usize) {
        self.moves(id, from, place);
        let (now, bound) = match place {
            Place::Ring(w) => (self.workers[w].choices, ring_bound(ahead as u64)),
            Place::Sliced => (0, u64::MAX / 2),
            _ => (self.choices, list_bound(ahead as u64, self.workers.len())),
        };
        let slices = match place {
            Place::Sliced => sliced_bound(ahead as u64, self.workers.len()),
            _ => 2 * (bound + 1),
        };
        self.threads[id].since.set(self.now);
        self.threads[id].until.set((now + bound, self.now + SLICE * slices + LAZY));
    }

    /// It leaves that queue.
    fn leaves(&self, entry: *const Thread, place: Place) -> usize {
        // SAFETY: threads live as long as the world.
        let id = unsafe { (*entry).id };
        let choices = match place {
            Place::Ring(w) => self.workers[w].choices,
            _ => self.choices,
        };
        let (last, deadline) = self.threads[id].until.get();
        assert!(choices <= last, "thread {id} in {place:?}: {choices} choices, at most {last}");
        assert!(
            self.now <= deadline,
            "thread {id} in {place:?}: {} us, at most {deadline}",
            self.now
        );
        if let Some(sleepy) = self.sleepy {
            let both = self.now - sleepy.max(self.threads[id].since.get());
            assert!(both <= LAZY, "thread {id} waited {both} us while a worker slept");
        }
        self.moves(id, place, Place::New);
        id
    }

    /// `worker::give::own`.
    fn own(&mut self, w: usize, id: usize, from: Place) {
        let thread: *const Thread = &*self.threads[id];
        let ahead = self.workers[w].ring.len();
        if self.workers[w].ring.push(thread).is_ok() {
            self.enters(id, from, Place::Ring(w), ahead);
        } else {
            // Note who is about to be moved.
            for i in 0..SIZE {
                let entry = self.workers[w].ring.pop(self.sole()).unwrap();
                if i < SIZE / 2 {
                    let old = self.leaves(entry, Place::Ring(w));
                    self.enters(old, Place::New, Place::Arrivals, self.arrivals.len() + i);
                }
                self.workers[w].ring.push(entry).unwrap();
            }
            self.enters(id, from, Place::Arrivals, self.arrivals.len() + SIZE / 2);
            let (sole, ring) = (self.sole(), &self.workers[w].ring);
            // SAFETY: threads live as long as the world.
            unsafe { flow::spill(ring, sole, thread, &mut self.arrivals) };
        }
        if self.workers[w].ring.len() > 1 {
            self.wake_one();
        }
    }

    /// `worker::give::from_outside`.
    fn arrives(&mut self, id: usize, from: Place) {
        self.enters(id, from, Place::Arrivals, self.arrivals.len());
        // SAFETY: threads live as long as the world.
        unsafe { self.arrivals.push(&*self.threads[id]) };
        self.wake_one();
    }

    fn slice_over(&mut self, id: usize, from: Place) {
        self.enters(id, from, Place::Sliced, self.sliced.len());
        // SAFETY: threads live as long as the world.
        unsafe { self.sliced.push(&*self.threads[id]) };
    }

    fn wake_one(&mut self) {
        if let Some(w) = self.workers.iter_mut().find(|w| w.asleep) {
            w.asleep = false;
            w.acts = self.now + 30; // the kernel's latency
        }
    }

    /// `Worker::pick`.
    fn pick(&mut self, w: usize) -> Option<usize> {
        self.choices += 1;
        self.workers[w].choices += 1;
        let (n, sole) = (self.workers[w].switches, self.sole());
        for source in self.workers[w].turns.order(n) {
            let place = match source {
                Source::Ring => Place::Ring(w),
                Source::Arrivals => Place::Arrivals,
                Source::Sliced => Place::Sliced,
            };
            let entry = match source {
                Source::Ring => self.workers[w].ring.pop(sole),
                Source::Arrivals => self.take_arrivals(w),
                Source::Sliced => self.sliced.pop(),
            };
            if let Some(entry) = entry {
                return Some(self.leaves(entry, place));
            }
        }
        None
    }

    fn take_arrivals(&mut self, w: usize) -> Option<*const Thread> {
        let (workers, before) = (self.workers.len(), self.workers[w].ring.len());
        let ring = &self.workers[w].ring;
        // SAFETY: threads live as long as the world.
        let first = unsafe { flow::refill(ring, &mut self.arrivals, workers) };
        if before == 0 {
            self.note_ring(w, Place::Arrivals);
        }
        first
    }

    /// The entries of a ring that was empty came from `from`.
    fn note_ring(&mut self, w: usize, from: Place) {
        for i in 0..self.workers[w].ring.len() {
            let entry = self.workers[w].ring.pop(self.sole()).unwrap();
            let id = self.leaves(entry, from);
            self.enters(id, Place::New, Place::Ring(w), i);
            self.workers[w].ring.push(entry).unwrap();
        }
    }

    /// `Worker::steal`.
    fn steal(&mut self, w: usize) -> Option<usize> {
        let start = self.below(self.workers.len() as u64) as usize;
        for i in 0..self.workers.len() {
            let victim = (start + i) % self.workers.len();
            let (from, to) = (&self.workers[victim].ring, &self.workers[w].ring);
            if victim == w || from.steal_into(to) == 0 {
                continue;
            }
            self.note_ring(w, Place::Ring(victim));
            let entry = self.workers[w].ring.pop(false).unwrap();
            return Some(self.leaves(entry, Place::Ring(w)));
        }
        None
    }

    fn anything(&self) -> bool {
        let lists = self.arrivals.len() + self.sliced.len();
        lists + self.workers.iter().map(|w| w.ring.len()).sum::<usize>() != 0
    }

    /// A switch to `next`, or to the worker's loop.
    fn dispatch(&mut self, w: usize, next: Option<usize>) {
        self.workers[w].switches += 1;
        self.workers[w].running = next;
        let Some(id) = next else { return self.workers[w].acts = self.now };
        self.moves(id, Place::New, Place::Running(w));
        let rest = self.threads[id].rest.replace(0);
        let time = match (rest, self.threads[id].hog) {
            (0, true) => 1 + self.below(4 * SLICE),
            (0, false) => 1 + self.below(20),
            (rest, _) => rest,
        };
        self.workers[w].acts = self.now + time;
    }

    /// As [`World::dispatch`], of a thread that stands in no queue.
    fn dispatch_new(&mut self, w: usize, id: usize) {
        self.workers[w].asleep = false;
        self.dispatch(w, Some(id));
    }

    /// The worker's loop, once.
    fn look(&mut self, w: usize) {
        let found = self.pick(w).or_else(|| if self.sole() { None } else { self.steal(w) });
        match found {
            Some(_) => self.dispatch(w, found),
            None => {
                assert!(!self.anything(), "worker {w} found nothing");
                self.workers[w].asleep = true;
            }
        }
    }

    /// The handler, at a tick.
    fn tick(&mut self, w: usize) {
        let worker = &mut self.workers[w];
        worker.tick = self.now + SLICE;
        let fresh = worker.switches != worker.seen;
        worker.seen = worker.switches;
        let lists = self.arrivals.len() + self.sliced.len();
        if worker.running.is_some() && self.sliced.len() != 0 {
            worker.turns.tick(fresh);
        }
        if worker.running.is_none() || fresh || lists + worker.ring.len() == 0 {
            return;
        }
        let rest = worker.acts - self.now;
        let Some(id) = worker.running.take() else { return };
        worker.seen += 1;
        self.wake_one();
        self.threads[id].rest.set(rest.max(1));
        self.slice_over(id, Place::Running(w));
        self.look(w);
    }
}

mod life;
