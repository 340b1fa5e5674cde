//! Models of a wait in the lot itself: a waiter in two phases against whoever takes it out - a wake-up, a deadline, a
//! kick, a move to another queue - and the keys that signal handlers leave for later.

use super::models::{Gate, Plain, check};
use super::slots::Slots;
use super::waiting::WaitWord;
use crate::prim::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::sync::atomic as ghost;

/// One waiter, and the queues that it may stand in: 0 is none.
struct World {
    word: WaitWord,
    gate: Gate,
    /// The queue that the waiter stands in, under that queue's lock; both locks are one here.
    queue: Mutex<u32>,
    /// Written by who takes it out.
    woken: Plain,
    /// Stands for the waiter's stack: its own until it rests, the next worker's after.
    stack: Plain,
    twin: bool,
    /// What an observer knows; not part of the model.
    left: ghost::AtomicBool,
    bad: ghost::AtomicBool,
}

impl World {
    fn new(twin: bool) -> Arc<World> {
        Arc::new(World {
            word: WaitWord::new(),
            gate: Gate::default(),
            queue: Mutex::new(0),
            woken: Plain::default(),
            stack: Plain::default(),
            twin,
            left: ghost::AtomicBool::new(false),
            bad: ghost::AtomicBool::new(false),
        })
    }

    /// Whoever wants to end the wait, for the reason `why`: false, there was nothing to end.
    fn take_out(&self, why: u32) -> bool {
        let mut queue = self.queue.lock().unwrap();
        if *queue == 0 {
            return false;
        }
        *queue = 0;
        self.woken.set(why);
        drop(queue);
        if self.word.wake() {
            self.stack.set(self.stack.get() + 1);
            self.gate.open();
        } else if self.twin && !self.left.load(SeqCst) {
            // Does not ask whether the waiter has left its stack.
            self.bad.store(true, SeqCst);
        }
        true
    }

    /// The waiter, in two phases. What it was woken with.
    fn park_after(&self, hook: impl FnOnce()) -> u32 {
        *self.queue.lock().unwrap() = 1;
        hook();
        self.stack.set(self.stack.get() + 1);
        if !self.word.is_woken() && self.word.rest() {
            self.left.store(true, SeqCst);
            self.gate.pass();
        }
        self.woken.get()
    }
}

/// The waiter's hook says that it has entered; two others try to end the wait, a third moves it.
fn two_phases(twin: bool) {
    check(Some(2), move || {
        let world = World::new(twin);
        let ended = Arc::new(AtomicU32::new(0));
        let others: Vec<_> = [5, 6]
            .map(|why| {
                let (world, ended) = (Arc::clone(&world), Arc::clone(&ended));
                thread::spawn(move || {
                    if world.take_out(why) {
                        ended.fetch_add(why, Relaxed);
                    }
                })
            })
            .into();
        let hooked = {
            let world = Arc::clone(&world);
            move || {
                // Moved to another queue.
                let mut queue = world.queue.lock().unwrap();
                if *queue == 1 {
                    *queue = 2;
                }
            }
        };
        let mover = thread::spawn(hooked);
        // Somebody ends it for sure, after the two may have come too early.
        let woken = world.park_after(|| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.take_out(7));
        });
        for o in others {
            o.join().unwrap();
        }
        mover.join().unwrap();
        let ended = ended.load(Relaxed);
        assert!(!world.bad.load(SeqCst), "made ready on its stack");
        assert!(woken == ended || woken == 7 && ended == 0, "{woken} {ended}");
    });
}

#[test]
fn loom_two_phases_end_once() {
    two_phases(false);
}

#[test]
#[should_panic = "made ready on its stack"]
fn loom_twin_made_ready_on_its_stack() {
    two_phases(true);
}

/// Resting under the queue's lock: whoever finds the waiter finds it at rest.
#[test]
fn loom_one_phase() {
    check(None, || {
        let world = World::new(false);
        let other = thread::spawn({
            let world = Arc::clone(&world);
            move || world.take_out(5)
        });
        let mut queue = world.queue.lock().unwrap();
        *queue = 1;
        world.stack.set(1);
        world.word.rest_locked();
        drop(queue);
        if !world.take_out(6) {
            assert!(other.join().unwrap());
        } else {
            assert!(!other.join().unwrap());
        }
        world.gate.pass();
        assert!(world.word.is_woken());
        assert_eq!(world.stack.get(), 2);
    });
}

/// Two handlers change a state and leave one key; whoever takes the last of it sees both changes.
fn slots(leave: impl Fn(&Slots<1>, &AtomicUsize, usize) + Copy + Send + Sync + 'static) {
    check(None, move || {
        let it = Arc::new((
            Slots::<1>::new(),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicBool::new(false),
        ));
        let handlers = [1usize, 2].map(|n| {
            let it = Arc::clone(&it);
            thread::spawn(move || leave(&it.0, &it.1, n))
        });
        let look = |it: &(Slots<1>, AtomicUsize, AtomicUsize, AtomicBool)| {
            let full = it.0.take(|_| {
                it.2.fetch_max(it.1.load(Relaxed), Relaxed);
            });
            assert!(!full);
        };
        look(&it);
        for h in handlers {
            h.join().unwrap();
        }
        look(&it);
        assert_eq!(it.2.load(Relaxed), 3, "a change that nobody saw");
    });
}

#[test]
fn loom_what_handlers_leave_is_seen() {
    slots(|slots, state, n| {
        state.fetch_add(n, Relaxed);
        slots.leave(8);
    });
}

#[test]
#[should_panic = "a change that nobody saw"]
fn loom_twin_the_change_comes_after() {
    slots(|slots, state, n| {
        slots.leave(8);
        state.fetch_add(n, Relaxed);
    });
}

/// More keys than slots: all are meant.
#[test]
fn loom_too_many_keys_are_reported() {
    check(None, || {
        let slots = Arc::new(Slots::<1>::new());
        let other = thread::spawn({
            let slots = Arc::clone(&slots);
            move || slots.leave(8)
        });
        slots.leave(16);
        other.join().unwrap();
        let mut seen = Vec::new();
        let full = slots.take(|key| seen.push(key));
        assert!(full && seen.len() == 1);
        assert!(!slots.take(|_| unreachable!()));
    });
}

/// Two keys for one slot, while somebody looks: each is seen, or it is said that some could not be kept.
#[test]
fn loom_no_key_is_dropped_silently() {
    check(None, || {
        let slots = Arc::new(Slots::<1>::new());
        let handlers = [8, 16].map(|key| {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots.leave(key))
        });
        let mut seen = Vec::new();
        let mut full = slots.take(|key| seen.push(key));
        for h in handlers {
            h.join().unwrap();
        }
        full |= slots.take(|key| seen.push(key));
        assert!(full || seen.contains(&8) && seen.contains(&16), "{seen:?}");
    });
}
