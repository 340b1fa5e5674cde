//! Loom models of the waiting protocols: every order of steps that the memory model allows.
//!
//! A blocked thread is a thread of the model that waits at a [`Gate`]; what must not happen shows as a
//! deadlock (lost wake-up), a race on a cell (missing order) or a failed assertion.

#![allow(unsafe_code)]

use super::ends::Ends;
use super::join::{Detaching, Ended, JoinWord, Value, Waiting};
use super::owned::{Attempt, Owned};
use super::spin;
use super::token::{Parking, Token, Unparking};
use crate::prim::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Runs `f` in every order, with at most `preemptions` switches away from a thread that could go on.
pub(crate) fn check(preemptions: Option<usize>, f: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(f);
}

/// Where a thread rests until somebody makes it ready, once.
#[derive(Default)]
pub(super) struct Gate(Mutex<bool>, Condvar);

impl Gate {
    pub(super) fn pass(&self) {
        let mut open = self.0.lock().unwrap();
        while !*open {
            open = self.1.wait(open).unwrap();
        }
        *open = false;
    }

    pub(super) fn open(&self) {
        let mut open = self.0.lock().unwrap();
        assert!(!*open, "made ready twice");
        *open = true;
        self.1.notify_one();
    }
}

/// A futex: comparing and falling asleep is one step with respect to a wake.
#[derive(Default)]
pub(crate) struct Futex(Mutex<()>, Condvar);

impl Futex {
    pub(crate) fn wait(&self, unchanged: impl Fn() -> bool) {
        let lock = self.0.lock().unwrap();
        if unchanged() {
            drop(self.1.wait(lock).unwrap());
        }
    }

    pub(crate) fn wake(&self) {
        let _lock = self.0.lock().unwrap();
        self.1.notify_all();
    }
}

/// A thread that parks until `news` says so; `worker` does what the runtime does around the token.
fn park_until(token: &Token, gate: &Gate, news: impl Fn() -> bool) {
    while !news() {
        if !token.try_take() && token.park() == Parking::Parked {
            gate.pass();
        }
    }
}

fn unpark(token: &Token, gate: &Gate) {
    if token.unpark() == Unparking::Rested {
        gate.open();
    }
}

#[test]
fn loom_park_sees_the_news_of_every_unpark() {
    check(Some(3), || {
        let shared = Arc::new((Token::default(), Gate::default(), AtomicU32::new(0)));
        let others: Vec<_> = [1, 2]
            .map(|bit| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (token, gate, news) = &*shared;
                    news.fetch_add(bit, Relaxed);
                    unpark(token, gate);
                })
            })
            .into();
        let (token, gate, news) = &*shared;
        park_until(token, gate, || news.load(Relaxed) == 3);
        for o in others {
            o.join().unwrap();
        }
    });
}

#[test]
fn loom_each_park_takes_one_token() {
    check(None, || {
        let shared = Arc::new((Token::default(), Gate::default(), AtomicU32::new(0)));
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (token, gate, news) = &*shared;
                for n in 1..=2 {
                    news.store(n, Relaxed);
                    unpark(token, gate);
                }
            }
        });
        let (token, gate, news) = &*shared;
        park_until(token, gate, || news.load(Relaxed) >= 1);
        park_until(token, gate, || news.load(Relaxed) == 2);
        other.join().unwrap();
    });
}

#[test]
fn loom_kernel_thread_parks_on_a_futex() {
    check(Some(3), || {
        let shared = Arc::new((Token::default(), Futex::default(), AtomicU32::new(0)));
        let others = [1, 2].map(|bit| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (token, futex, news) = &*shared;
                news.fetch_add(bit, Relaxed);
                if token.unpark() != Unparking::Stored {
                    futex.wake();
                }
            })
        });
        let (token, futex, news) = &*shared;
        while news.load(Relaxed) != 3 {
            token.park_in_kernel(|word, parked| futex.wait(|| word.load(Relaxed) == parked));
        }
        for o in others {
            o.join().unwrap();
        }
    });
}

/// A plain variable. Loom notices two accesses at once, or without order.
#[derive(Default)]
pub(super) struct Plain(UnsafeCell<u32>);

impl Plain {
    pub(super) fn get(&self) -> u32 {
        // SAFETY: the pointer is live; loom checks the rest.
        self.0.with(|v| unsafe { *v })
    }

    pub(super) fn set(&self, value: u32) {
        // SAFETY: as above.
        self.0.with_mut(|v| unsafe { *v = value });
    }
}

/// A thread that ends, and its slot.
#[derive(Default)]
struct Ending {
    word: JoinWord<Gate>,
    futex: Futex,
    joiner: Gate,
    /// The result; also stands for all else that the joiner reads of the record.
    value: Plain,
    dropped: AtomicU32,
    freed: AtomicU32,
}

impl Ending {
    fn drop_value(&self) {
        self.value.set(0);
        self.dropped.fetch_add(1, Relaxed);
    }

    /// As `worker` ends a thread that leaves a value.
    fn end(&self) {
        self.value.set(7);
        if self.word.settle() == Value::Own {
            self.drop_value();
        }
        if let Some(joiner) = self.word.joiner() {
            assert!(core::ptr::eq(joiner, &self.joiner));
            self.word.end_for_joiner();
            return self.joiner.open();
        }
        match self.word.end() {
            Ended::Unclaimed => {}
            Ended::Detached => drop(self.freed.fetch_add(1, Relaxed)),
            Ended::Kernel => self.futex.wake(),
            Ended::Joiner(_) => self.joiner.open(),
        }
    }

    fn wait(&self) {
        while !self.word.is_done() {
            if self.word.wait_as(&self.joiner) == Waiting::Waits {
                self.joiner.pass();
            }
        }
    }

    fn wait_in_kernel(&self) {
        self.word.wait_in_kernel(|word: &AtomicUsize, value| {
            self.futex.wait(|| word.load(Relaxed) == value as usize);
        });
    }

    fn take(&self) {
        assert_eq!(self.value.get(), 7);
        self.drop_value();
        self.freed.fetch_add(1, Relaxed);
    }
}

/// One thread ends while `handle` does something with the handle.
fn ending(handle: fn(&Ending)) {
    check(None, move || {
        let it = Arc::new(Ending::default());
        let thread = thread::spawn({
            let it = Arc::clone(&it);
            move || it.end()
        });
        handle(&it);
        thread.join().unwrap();
        assert_eq!((it.dropped.load(Relaxed), it.freed.load(Relaxed)), (1, 1));
    });
}

#[test]
fn loom_a_thread_joins() {
    ending(|it| {
        it.wait();
        it.take();
    });
}

#[test]
fn loom_a_kernel_thread_joins() {
    ending(|it| {
        it.wait_in_kernel();
        it.take();
    });
}

#[test]
fn loom_a_handle_is_dropped_by_a_thread() {
    ending(|it| {
        if it.word.detach() == Detaching::Ended {
            it.wait();
            it.take();
        }
    });
}

#[test]
fn loom_a_handle_is_dropped_by_a_kernel_thread() {
    ending(|it| {
        if it.word.detach() == Detaching::Ended {
            it.wait_in_kernel();
            it.take();
        }
    });
}

/// Two workers end the last two threads: one of them sees that it was the last.
#[test]
fn loom_the_last_end_is_seen() {
    check(None, || {
        #[derive(Default)]
        struct World {
            counts: [AtomicU32; 2],
            ends: Ends,
            seen: AtomicU32,
        }
        impl World {
            fn end(&self, me: usize) {
                self.counts[me].store(1, Relaxed);
                self.ends.announce();
                if self.counts.iter().map(|c| c.load(Relaxed)).sum::<u32>() == 2 {
                    self.seen.fetch_add(1, Relaxed);
                }
            }
        }
        let world = Arc::new(World::default());
        let other = thread::spawn({
            let world = Arc::clone(&world);
            move || world.end(1)
        });
        world.end(0);
        other.join().unwrap();
        assert_ne!(world.seen.load(Relaxed), 0, "nobody saw the end of all");
        assert_eq!(world.ends.seen(), 2);
    });
}

#[test]
fn loom_spin_lock_excludes() {
    check(None, || {
        let lock = Arc::new((AtomicBool::new(false), Plain::default()));
        let add = |lock: &(AtomicBool, Plain)| {
            spin::acquire(&lock.0);
            lock.1.set(lock.1.get() + 1);
            spin::release(&lock.0);
        };
        let other = thread::spawn({
            let lock = Arc::clone(&lock);
            move || add(&lock)
        });
        add(&lock);
        other.join().unwrap();
        assert_eq!(lock.1.get(), 2);
    });
}

#[test]
fn loom_an_owned_lock_excludes_and_knows_its_holder() {
    check(None, || {
        let shared = Arc::new((Owned::default(), Plain::default()));
        let step = |shared: &(Owned, Plain), me: usize| {
            let (lock, value) = shared;
            while lock.attempt(me) != Attempt::Taken {
                thread::yield_now();
            }
            assert_eq!(lock.attempt(me), Attempt::Own);
            assert!(!lock.release(me + 1), "let go by another");
            value.set(value.get() + 1);
            assert!(lock.release(me));
            assert!(!lock.release(me), "let go twice");
        };
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || step(&shared, 16)
        });
        step(&shared, 32);
        other.join().unwrap();
        assert!(!shared.0.is_held());
        assert_eq!(shared.1.get(), 2);
    });
}
