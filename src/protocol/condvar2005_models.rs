//! Loom models of the kernel threads' mutex and condvar, in all three generations, over a model of futex(2) that
//! moves sleepers and lets their time run out. A lost wake-up is a deadlock of the model.

use super::condvar2005::{CondWords, How, System};
use super::futex_lock::{Futex, FutexLock};
use super::models::check;
use crate::prim::{AtomicU32, Ordering::*};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A thread that sleeps in the kernel.
struct Sleeper {
    id: usize,
    word: usize,
    timed: bool,
}

#[derive(Default)]
struct Queues {
    sleepers: Vec<Sleeper>,
    /// Those whose time was over.
    over: Vec<usize>,
    /// From now on no time is left.
    late: bool,
    next: usize,
}

/// The kernel: sleepers of all words in the order in which they came.
#[derive(Default)]
struct Kernel(Mutex<Queues>, Condvar);

fn key(word: *const AtomicU32) -> usize {
    word.addr()
}

impl Kernel {
    fn wake_some(&self, queues: &mut Queues, word: usize, n: usize) {
        let mut left = n;
        queues.sleepers.retain(|s| {
            let wakes = s.word == word && left > 0;
            left -= usize::from(wakes);
            !wakes
        });
        self.1.notify_all();
    }

    /// The time of all who have one is over.
    fn time_is_over(&self) {
        let mut queues = self.0.lock().unwrap();
        queues.late = true;
        let (over, asleep): (Vec<_>, Vec<_>) = queues.sleepers.drain(..).partition(|s| s.timed);
        queues.sleepers = asleep;
        queues.over.extend(over.iter().map(|s| s.id));
        self.1.notify_all();
    }

    fn nobody_sleeps(&self) -> bool {
        self.0.lock().unwrap().sleepers.is_empty()
    }
}

impl Futex for Kernel {
    type Deadline = ();

    fn wait(&self, word: &AtomicU32, expected: u32, until: Option<()>) -> bool {
        let mut queues = self.0.lock().unwrap();
        if word.load(SeqCst) != expected {
            return false;
        }
        if queues.late && until.is_some() {
            return true;
        }
        let id = queues.next;
        queues.next += 1;
        queues.sleepers.push(Sleeper { id, word: key(word), timed: until.is_some() });
        while queues.sleepers.iter().any(|s| s.id == id) {
            queues = self.1.wait(queues).unwrap();
        }
        queues.over.contains(&id)
    }

    fn wake(&self, word: *const AtomicU32, n: u32) {
        self.wake_some(&mut self.0.lock().unwrap(), key(word), n as usize);
    }

    fn requeue(&self, from: &AtomicU32, expected: u32, n: u32, to: &AtomicU32) {
        let mut queues = self.0.lock().unwrap();
        if from.load(SeqCst) == expected {
            let moved = queues.sleepers.iter_mut().filter(|s| s.word == key(from));
            moved.take(n as usize).for_each(|s| s.word = key(to));
        }
    }

    fn wake_and_release(&self, word: &AtomicU32, lock: &AtomicU32) -> bool {
        let mut queues = self.0.lock().unwrap();
        let old = lock.swap(0, SeqCst);
        self.wake_some(&mut queues, key(word), 1);
        if old > 1 {
            self.wake_some(&mut queues, key(lock), 1);
        }
        true
    }
}

/// All that the threads of a model share. `tokens` is what the mutex guards.
#[derive(Default)]
struct Shared {
    kernel: Kernel,
    mutex: FutexLock,
    condvar: CondWords,
    tokens: AtomicU32,
    holders: AtomicU32,
}

/// The model's mutex is found where the waiters left it.
struct With<'a>(&'a Shared);

impl Futex for With<'_> {
    type Deadline = ();

    fn wait(&self, word: &AtomicU32, expected: u32, until: Option<()>) -> bool {
        self.0.kernel.wait(word, expected, until)
    }

    fn wake(&self, word: *const AtomicU32, n: u32) {
        self.0.kernel.wake(word, n);
    }

    fn requeue(&self, from: &AtomicU32, expected: u32, n: u32, to: &AtomicU32) {
        self.0.kernel.requeue(from, expected, n, to);
    }

    fn wake_and_release(&self, word: &AtomicU32, lock: &AtomicU32) -> bool {
        self.0.kernel.wake_and_release(word, lock)
    }
}

impl System for With<'_> {
    fn mutex(&self, address: *mut FutexLock) -> &FutexLock {
        assert!(core::ptr::eq(address, &self.0.mutex), "the mutex of a waiter that has left");
        &self.0.mutex
    }
}

impl Shared {
    fn lock(&self) {
        self.mutex.lock(&With(self));
        self.locked();
    }

    fn locked(&self) {
        assert_eq!(self.holders.fetch_add(1, Relaxed), 0, "held twice");
    }

    fn unlock(&self) {
        self.holders.fetch_sub(1, Relaxed);
        self.mutex.unlock(&With(self));
    }

    /// True if it timed out. The mutex is held.
    fn wait(&self, until: Option<()>) -> bool {
        self.holders.fetch_sub(1, Relaxed);
        let over = self.condvar.wait(&With(self), &self.mutex, until).unwrap();
        self.locked();
        over
    }

    /// Takes a token, however long it takes.
    fn take(&self) {
        self.lock();
        while self.tokens.load(Relaxed) == 0 {
            self.wait(None);
        }
        self.tokens.fetch_sub(1, Relaxed);
        self.unlock();
    }

    fn give(&self, how: How, n: u32, held: bool) {
        self.lock();
        self.tokens.fetch_add(n, Relaxed);
        if !held {
            self.unlock();
        }
        if n == 1 {
            self.condvar.notify_one(how, &With(self));
        } else {
            self.condvar.notify_all(how, &With(self));
        }
        if held {
            self.unlock();
        }
    }
}

const ALL: [How; 3] = [How::Plain, How::Requeue, How::WakeOp];

fn each(preemptions: usize, f: impl Fn(&Arc<Shared>, How, bool) + Send + Sync + Copy + 'static) {
    for how in ALL {
        for held in [false, true] {
            check(Some(preemptions), move || {
                let shared = Arc::new(Shared::default());
                f(&shared, how, held);
                assert!(shared.kernel.nobody_sleeps());
                assert!(!shared.mutex.is_locked());
                assert_eq!(shared.condvar.waiters(), 0);
            });
        }
    }
}

fn spawn(shared: &Arc<Shared>, f: impl FnOnce(&Shared) + 'static) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || f(&shared))
}

#[test]
fn loom_the_mutex_excludes_and_wakes() {
    check(Some(3), || {
        let shared = Arc::new(Shared::default());
        let others = [(); 2].map(|()| {
            spawn(&shared, |s| {
                s.lock();
                s.tokens.store(s.tokens.load(Relaxed) + 1, Relaxed);
                s.unlock();
            })
        });
        for o in others {
            o.join().unwrap();
        }
        shared.lock();
        assert_eq!(shared.tokens.load(Relaxed), 2);
        shared.unlock();
    });
}

#[test]
fn loom_one_notify_one_waiter() {
    each(4, |shared, how, held| {
        let taker = spawn(shared, Shared::take);
        shared.give(how, 1, held);
        taker.join().unwrap();
    });
}

#[test]
fn loom_two_notifies_two_waiters() {
    each(2, |shared, how, held| {
        let takers = [(); 2].map(|()| spawn(shared, Shared::take));
        shared.give(how, 1, held);
        shared.give(how, 1, held);
        for t in takers {
            t.join().unwrap();
        }
    });
}

#[test]
fn loom_a_broadcast_reaches_all() {
    each(2, |shared, how, held| {
        let takers = [(); 2].map(|()| spawn(shared, Shared::take));
        shared.give(how, 2, held);
        for t in takers {
            t.join().unwrap();
        }
    });
}

#[test]
fn loom_a_timeout_does_not_eat_a_notify() {
    each(2, |shared, how, held| {
        // Gives up when its time is over; if it was notified instead, it passes that on. So the other gets the
        // token in any case, unless a notify went to one who gave up.
        let fickle = spawn(shared, move |s| {
            s.lock();
            while s.tokens.load(Relaxed) == 0 {
                if s.wait(Some(())) {
                    return s.unlock();
                }
            }
            s.unlock();
            s.condvar.notify_one(how, &With(s));
        });
        let patient = spawn(shared, Shared::take);
        let clock = spawn(shared, |s| s.kernel.time_is_over());
        shared.give(how, 1, held);
        for t in [fickle, patient, clock] {
            t.join().unwrap();
        }
    });
}
