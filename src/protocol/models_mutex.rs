//! Loom models of the mutex's word together with a lot: a locked queue, and a gate for each who rests.

#![allow(unsafe_code)]

use super::models::check;
use super::mutex::{MutexWord, Taking, Unlocked};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::collections::VecDeque;

/// What a waiter is woken with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Handed,
    Coming,
}

/// The queue of one key. An owner's number, shifted like an address.
#[derive(Default)]
struct Lot {
    queue: Mutex<VecDeque<usize>>,
    woken: Mutex<Vec<(usize, Token)>>,
    change: Condvar,
}

impl Lot {
    /// As `lot::park`: the check and the entering are one step for wakers.
    fn park(&self, me: usize, first: bool, validate: impl FnOnce() -> bool) -> Option<Token> {
        let mut queue = self.queue.lock().unwrap();
        if !validate() {
            return None;
        }
        if first {
            queue.push_front(me);
        } else {
            queue.push_back(me);
        }
        drop(queue);
        let mut woken = self.woken.lock().unwrap();
        loop {
            if let Some(i) = woken.iter().position(|w| w.0 == me) {
                return Some(woken.swap_remove(i).1);
            }
            woken = self.change.wait(woken).unwrap();
        }
    }

    /// As `lot::unpark_one`.
    fn unpark_one(&self, token: Token, f: impl FnOnce(usize, bool)) {
        let mut queue = self.queue.lock().unwrap();
        let w = queue.pop_front();
        f(w.unwrap_or(0), !queue.is_empty());
        drop(queue);
        if let Some(w) = w {
            self.wake(w, token);
        }
    }

    fn wake(&self, w: usize, token: Token) {
        self.woken.lock().unwrap().push((w, token));
        self.change.notify_all();
    }

    /// Takes a waiter out whose deadline has passed; false: somebody woke it.
    fn time_out(&self, me: usize) -> bool {
        let mut queue = self.queue.lock().unwrap();
        let here = queue.iter().position(|w| *w == me);
        here.map(|i| queue.remove(i)).is_some()
    }
}

struct World {
    word: MutexWord,
    lot: Lot,
    inside: UnsafeCell<u32>,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World { word: MutexWord::new(), lot: Lot::default(), inside: UnsafeCell::new(0) })
    }

    /// As `sync::raw::mutex`, without spinning.
    fn lock(&self, me: usize, mut coming: bool) {
        if !coming && self.word.try_fast(me) {
            return;
        }
        loop {
            if self.word.try_take(me, coming) == Taking::Taken {
                return;
            }
            match self.lot.park(me, coming, || self.word.enter(coming)) {
                Some(Token::Handed) => return,
                Some(Token::Coming) => coming = true,
                None => {}
            }
        }
    }

    fn unlock(&self, me: usize, hand_over: bool) {
        if self.word.unlock_fast(me) {
            return;
        }
        match self.word.unlock(me, hand_over) {
            Unlocked::Done | Unlocked::GiveWay => {}
            Unlocked::Wake => {
                self.lot.unpark_one(Token::Coming, |w, more| self.word.wake_one(w != 0, more));
            }
            Unlocked::HandOver => {
                self.lot.unpark_one(Token::Handed, |w, more| self.word.pass_to(w, more));
            }
            Unlocked::NotHeld => panic!("not held"),
        }
    }

    fn inside(&self) {
        // SAFETY: this is what the mutex is for; loom checks it.
        self.inside.with_mut(|n| unsafe { *n += 1 });
    }

    fn is_clean(&self) {
        assert_eq!(self.word.owner(), 0);
        assert!(!self.word.has_waiters(), "flags are left though nobody waits");
        assert!(self.lot.queue.lock().unwrap().is_empty());
    }
}

const ME: [usize; 3] = [1 << 6, 2 << 6, 3 << 6];

fn some_lock(threads: usize, times: usize, hand_over: bool, bound: usize) {
    check(Some(bound), move || {
        let world = World::new();
        let run = move |world: &World, me: usize| {
            for _ in 0..times {
                world.lock(me, false);
                world.inside();
                world.unlock(me, hand_over);
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|i| {
                let world = Arc::clone(&world);
                thread::spawn(move || run(&world, ME[i]))
            })
            .collect();
        run(&world, ME[0]);
        others.into_iter().for_each(|t| t.join().unwrap());
        world.is_clean();
    });
}

#[test]
fn loom_mutex_two_threads() {
    some_lock(2, 2, false, 3);
}

#[test]
fn loom_mutex_three_threads() {
    some_lock(3, 1, false, 2);
}

#[test]
fn loom_mutex_hand_over() {
    some_lock(3, 1, true, 2);
}

/// A waiter whose deadline passes while it waits, or just when it was woken.
#[test]
fn loom_mutex_time_out() {
    check(Some(3), || {
        let world = World::new();
        world.lock(ME[0], false);
        let timed = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let me = ME[1];
                // One attempt to wait; then the time is over, if nobody has woken it.
                if world.word.try_take(me, false) == Taking::Taken {
                    return world.unlock(me, false);
                }
                let mut queue = world.lot.queue.lock().unwrap();
                let entered = world.word.enter(false);
                if entered {
                    queue.push_back(me);
                }
                drop(queue);
                if !entered || world.lot.time_out(me) {
                    return;
                }
                let token = world.lot.park_again(me);
                let has = token == Token::Handed || world.word.give_up(me);
                if has {
                    world.inside();
                    world.unlock(me, false);
                }
            }
        });
        let waits = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.lock(ME[2], false);
                world.inside();
                world.unlock(ME[2], false);
            }
        });
        world.inside();
        world.unlock(ME[0], false);
        timed.join().unwrap();
        waits.join().unwrap();
        assert_eq!(world.word.owner(), 0);
        assert!(world.lot.queue.lock().unwrap().is_empty(), "a waiter was forgotten");
    });
}

impl Lot {
    /// Rests after somebody has taken the waiter out.
    fn park_again(&self, me: usize) -> Token {
        let mut woken = self.woken.lock().unwrap();
        loop {
            if let Some(i) = woken.iter().position(|w| w.0 == me) {
                return woken.swap_remove(i).1;
            }
            woken = self.change.wait(woken).unwrap();
        }
    }
}

/// A condition variable's waiters are moved to the mutex while another thread takes it.
#[test]
fn loom_mutex_admits_waiters_of_a_condvar() {
    check(Some(3), || {
        let world = World::new();
        let waiters: Vec<_> = [1, 2]
            .map(|i| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let token = world.lot.park_again(ME[i]);
                    if token == Token::Coming {
                        world.lock(ME[i], true);
                    }
                    world.inside();
                    world.unlock(ME[i], false);
                })
            })
            .into_iter()
            .collect();
        let notifier = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let mut queue = world.lot.queue.lock().unwrap();
                let first_comes = world.word.admit(true);
                if !first_comes {
                    queue.push_back(ME[1]);
                }
                queue.push_back(ME[2]);
                drop(queue);
                if first_comes {
                    world.lot.wake(ME[1], Token::Coming);
                }
            }
        });
        world.lock(ME[0], false);
        world.inside();
        world.unlock(ME[0], false);
        notifier.join().unwrap();
        waiters.into_iter().for_each(|t| t.join().unwrap());
        world.is_clean();
    });
}

/// The model can tell: a waiter that enters without a look under the lock is forgotten.
#[test]
#[should_panic(expected = "forgotten")]
fn loom_mutex_forgets_who_enters_unseen() {
    check(Some(3), || {
        let world = World::new();
        world.lock(ME[0], false);
        let waits = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                if world.word.try_take(ME[1], false) != Taking::Taken && world.word.enter(false) {
                    // Not one step with `enter`.
                    world.lot.queue.lock().unwrap().push_back(ME[1]);
                }
            }
        });
        world.unlock(ME[0], false);
        waits.join().unwrap();
        let left = world.lot.queue.lock().unwrap().len();
        assert!(left == 0 || world.word.owner() != 0, "a waiter was forgotten");
    });
}
