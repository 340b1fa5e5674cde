//! Models of readers and writers, whose waiters stand in a queue and are served out of it; the queue is also that of
//! [`models_words`](super::models_words).
//!
//! The lot is a list behind a lock, a waiter a gate. Each important step has a twin that leaves it out, and must fail:
//! there, waiters do not block, and at the end somebody is left in the queue who could have had what he needs.

use super::models::{Gate, Plain, check};
use super::rwlock::{Access, Entered, Released, RwWord};
use crate::prim::{AtomicBool, Ordering::*};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use std::collections::VecDeque;

/// Somebody who waits for `need`.
pub(super) struct Waiter<N> {
    need: N,
    gate: Gate,
    got: AtomicBool,
}

/// The queue of one key.
pub(super) struct Lot<N>(Mutex<VecDeque<Arc<Waiter<N>>>>);

impl<N: Copy + PartialEq> Lot<N> {
    pub(super) fn new() -> Lot<N> {
        Lot(Mutex::new(VecDeque::new()))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Waiter<N>>>> {
        self.0.lock().unwrap()
    }

    /// Waits, if `validate` says so; whether it got what it needs.
    pub(super) fn park(
        &self,
        need: N,
        first: bool,
        validate: impl FnOnce() -> bool,
    ) -> Option<bool> {
        let waiter = Arc::new(Waiter { need, gate: Gate::default(), got: AtomicBool::new(false) });
        let mut queue = self.lock();
        if !validate() {
            return None;
        }
        if first {
            queue.push_front(Arc::clone(&waiter));
        } else {
            queue.push_back(Arc::clone(&waiter));
        }
        drop(queue);
        waiter.gate.pass();
        Some(waiter.got.load(Relaxed))
    }

    pub(super) fn unpark_some(&self, grant: impl Fn(N) -> bool, done: impl FnOnce(bool)) {
        let mut woken = Vec::new();
        let mut queue = self.lock();
        while queue.front().is_some_and(|w| grant(w.need)) {
            woken.push(queue.pop_front().unwrap());
        }
        done(!queue.is_empty());
        drop(queue);
        for w in woken {
            w.got.store(true, Relaxed);
            w.gate.open();
        }
    }

    /// A deadline or a kick: takes one with this need out, with nothing, as soon as there is one.
    pub(super) fn expire(&self, need: N) {
        let waiter = loop {
            let mut queue = self.lock();
            if let Some(at) = queue.iter().position(|w| w.need == need) {
                break queue.remove(at).unwrap();
            }
            drop(queue);
            thread::yield_now();
        };
        waiter.gate.open();
    }

    /// For the twins: as `park`, but does not block.
    pub(super) fn stand(&self, need: N, validate: impl FnOnce() -> bool) {
        let mut queue = self.lock();
        if validate() {
            let waiter = Waiter { need, gate: Gate::default(), got: AtomicBool::new(false) };
            queue.push_back(Arc::new(waiter));
        }
    }

    /// For the twins, at the end: nobody may be left who could have what he needs.
    pub(super) fn forgot(&self, could: impl FnOnce(N) -> bool) {
        let first = self.lock().front().map(|w| w.need);
        assert!(!first.is_some_and(could), "a waiter was forgotten");
    }
}

struct Rw {
    word: RwWord,
    lot: Lot<Access>,
    data: Plain,
}

impl Rw {
    fn new() -> Arc<Rw> {
        Arc::new(Rw { word: RwWord::new(), lot: Lot::new(), data: Plain::default() })
    }

    fn serve(&self) {
        self.lot.unpark_some(
            |access| self.word.grant(access),
            |more| {
                if !more {
                    self.word.settle();
                }
            },
        );
    }

    /// False: gave up, as the one whose deadline passed.
    fn take(&self, access: Access) -> bool {
        if self.word.try_take(access) {
            return true;
        }
        let mut taken = false;
        let enter = || {
            taken = self.word.enter(access) == Entered::Taken;
            !taken
        };
        let got = self.lot.park(access, access == Access::Upgrade, enter);
        if got == Some(false) {
            self.serve();
        }
        got != Some(false)
    }

    fn after(&self, released: Released) {
        match released {
            Released::Done => {}
            Released::Serve => self.serve(),
            Released::NotHeld => panic!("not held"),
        }
    }

    fn read(&self) {
        if self.take(Access::Read) {
            self.data.get();
            self.after(self.word.release_read());
        }
    }

    fn write(&self) {
        if self.take(Access::Write) {
            self.data.set(self.data.get() + 1);
            self.after(self.word.release_write());
        }
    }

    fn upgrade(&self) {
        assert!(self.take(Access::Upgradable));
        let before = self.data.get();
        assert!(self.take(Access::Upgrade));
        assert_eq!(self.data.get(), before);
        self.data.set(before + 1);
        self.after(self.word.downgrade());
        assert_eq!(self.data.get(), before + 1);
        self.after(self.word.release_read());
    }
}

/// Runs all of these at once on one lock, and sees that it is free after.
fn rw(preemptions: usize, jobs: &'static [fn(&Rw)]) {
    check(Some(preemptions), move || {
        let lock = Rw::new();
        let others: Vec<_> = jobs[1..]
            .iter()
            .map(|job| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || job(&lock))
            })
            .collect();
        jobs[0](&lock);
        others.into_iter().for_each(|t| t.join().unwrap());
        assert!(lock.word.try_take(Access::Write), "QUEUED or a hold is left");
    });
}

#[test]
fn loom_writers_and_readers() {
    rw(3, &[Rw::write, Rw::write, Rw::read]);
    rw(3, &[Rw::read, Rw::write, Rw::read]);
}

#[test]
fn loom_a_reader_becomes_the_writer() {
    rw(2, &[Rw::upgrade, Rw::write, Rw::read]);
    rw(3, &[Rw::upgrade, Rw::upgrade]);
}

/// A reader holds the lock to the end; a writer waits and gives up, a reader came after it.
#[test]
fn loom_a_writer_gives_up_before_a_reader() {
    check(Some(3), || {
        let lock = Rw::new();
        assert!(lock.take(Access::Read));
        let writer = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                let enter = || lock.word.enter(Access::Write) == Entered::Waits;
                assert_eq!(lock.lot.park(Access::Write, false, enter), Some(false));
                lock.serve();
            }
        });
        let reader = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                assert!(lock.take(Access::Read));
                lock.after(lock.word.release_read());
            }
        });
        lock.lot.expire(Access::Write);
        writer.join().unwrap();
        reader.join().unwrap();
        lock.after(lock.word.release_read());
        assert!(lock.word.try_take(Access::Write));
    });
}

/// A twin of the lock: the writer holds it and lets go while `other` comes.
fn rw_twin(other: fn(&Rw)) {
    check(Some(3), move || {
        let lock = Rw::new();
        assert!(lock.take(Access::Write));
        let other = thread::spawn({
            let lock = Arc::clone(&lock);
            move || other(&lock)
        });
        lock.after(lock.word.release_write());
        other.join().unwrap();
        lock.lot.forgot(|access| lock.word.grant(access));
    });
}

fn is_queued(lock: &Rw, access: Access) -> bool {
    !lock.word.try_take(access) && lock.word.enter(access) == Entered::Waits
}

#[test]
#[should_panic = "forgotten"]
fn loom_twin_enters_before_it_locks_the_queue() {
    rw_twin(|lock| {
        if is_queued(lock, Access::Read) {
            lock.lot.stand(Access::Read, || true);
        }
    });
}

/// The same with the lock held: the twins above and below fail for what they leave out.
#[test]
fn loom_twin_that_leaves_nothing_out() {
    rw_twin(|lock| lock.lot.stand(Access::Read, || is_queued(lock, Access::Read)));
}

#[test]
#[should_panic = "forgotten"]
fn loom_twin_gives_up_and_does_not_serve() {
    check(Some(3), || {
        let lock = Rw::new();
        assert!(lock.take(Access::Read));
        let writer = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                lock.lot.stand(Access::Write, || is_queued(&lock, Access::Write));
                lock.lot.expire(Access::Write);
            }
        });
        lock.lot.stand(Access::Read, || is_queued(&lock, Access::Read));
        writer.join().unwrap();
        lock.lot.forgot(|access| lock.word.grant(access));
    });
}

/// QUEUED stays set although nobody waits: the next one who comes waits for nothing.
#[test]
#[should_panic = "forgotten"]
fn loom_twin_never_settles() {
    check(Some(3), || {
        let lock = Rw::new();
        assert!(lock.take(Access::Write));
        let other = thread::spawn({
            let lock = Arc::clone(&lock);
            move || lock.lot.stand(Access::Read, || is_queued(&lock, Access::Read))
        });
        let released = lock.word.release_write();
        other.join().unwrap();
        if released == Released::Serve {
            lock.lot.unpark_some(|access| lock.word.grant(access), |_| {});
        }
        lock.lot.stand(Access::Read, || is_queued(&lock, Access::Read));
        lock.lot.forgot(|access| lock.word.grant(access));
    });
}
