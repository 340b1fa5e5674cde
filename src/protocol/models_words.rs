//! Models of the other words whose waiters stand in a queue: permits, things done once, rounds of a barrier. With
//! twins that leave a step out and must fail, as in [`models_queue`](super::models_queue).

use super::barrier::{BarrierWord, Came};
use super::models::{Plain, check};
use super::models_queue::Lot;
use super::once::{Claim, OnceWord, Stage};
use super::semaphore::{self, Added, SemaphoreWord};
use crate::prim::{AtomicU32, Ordering::*};
use loom::sync::Arc;
use loom::thread;

struct Sem {
    word: SemaphoreWord,
    lot: Lot<usize>,
}

impl Sem {
    fn serve(&self) {
        self.lot.unpark_some(
            |n| self.word.grant(n),
            |more| {
                if !more {
                    self.word.settle();
                }
            },
        );
    }

    fn acquire(&self, n: usize) -> bool {
        if self.word.try_take(n) {
            return true;
        }
        let enter = || self.word.enter(n) == semaphore::Entered::Waits;
        let got = self.lot.park(n, false, enter);
        if got == Some(false) {
            self.serve();
        }
        got != Some(false)
    }

    fn release(&self, n: usize) {
        match self.word.add(n) {
            Added::Done => {}
            Added::Serve => self.serve(),
            Added::TooMany => panic!(),
        }
    }
}

/// One who needs two, one who needs one, and two permits that come one by one.
#[test]
fn loom_semaphore_loses_no_permit_and_no_waiter() {
    check(Some(3), || {
        let sem = Arc::new(Sem { word: SemaphoreWord::new(0), lot: Lot::new() });
        let others = [1, 2].map(|n| {
            let sem = Arc::clone(&sem);
            thread::spawn(move || {
                assert!(sem.acquire(n));
                sem.release(n);
            })
        });
        sem.release(1);
        sem.release(1);
        others.into_iter().for_each(|t| t.join().unwrap());
        assert!(sem.word.try_take(2), "permits or QUEUED");
    });
}

/// One who needs two gives up: whoever stands behind and needs one gets it.
#[test]
fn loom_semaphore_serves_when_one_gives_up() {
    check(Some(3), || {
        let sem = Arc::new(Sem { word: SemaphoreWord::new(1), lot: Lot::new() });
        let two = thread::spawn({
            let sem = Arc::clone(&sem);
            move || assert!(!sem.acquire(2))
        });
        let one = thread::spawn({
            let sem = Arc::clone(&sem);
            move || {
                assert!(sem.acquire(1));
                sem.release(1);
            }
        });
        sem.lot.expire(2);
        two.join().unwrap();
        one.join().unwrap();
        assert!(sem.word.try_take(1), "permits or QUEUED");
    });
}

#[test]
#[should_panic = "forgotten"]
fn loom_twin_permits_without_serving() {
    check(Some(3), || {
        let sem = Arc::new(Sem { word: SemaphoreWord::new(0), lot: Lot::new() });
        let adds = thread::spawn({
            let sem = Arc::clone(&sem);
            move || {
                let _serve = sem.word.add(1);
            }
        });
        sem.lot.stand(1, || sem.word.enter(1) == semaphore::Entered::Waits);
        adds.join().unwrap();
        sem.lot.forgot(|n| sem.word.grant(n));
    });
}

/// Somebody does it, the first attempt fails, others wait for the success.
#[test]
fn loom_once_is_done_once_and_seen_by_all() {
    check(Some(3), || {
        let it = Arc::new((OnceWord::new(), Lot::new(), Plain::default(), AtomicU32::new(0)));
        let call = |it: &(OnceWord, Lot<()>, Plain, AtomicU32)| loop {
            match it.0.claim(true) {
                Claim::Mine { poisoned } => {
                    it.3.fetch_add(1, Relaxed);
                    if poisoned {
                        it.2.set(7);
                    }
                    if it.0.finish(poisoned) {
                        it.1.unpark_some(|()| true, |_| {});
                    }
                }
                Claim::Not(Stage::Complete) => break,
                Claim::Not(_) => {
                    let _ = it.1.park((), false, || it.0.enter(|s| s == Stage::Running));
                }
            }
        };
        let other = thread::spawn({
            let it = Arc::clone(&it);
            move || call(&it)
        });
        let waits = thread::spawn({
            let it = Arc::clone(&it);
            move || {
                while !it.0.is_complete() {
                    let _ = it.1.park((), false, || it.0.enter(|s| s != Stage::Complete));
                }
                assert_eq!(it.2.get(), 7);
            }
        });
        call(&it);
        assert_eq!(it.2.get(), 7);
        other.join().unwrap();
        waits.join().unwrap();
        assert_eq!(it.3.load(Relaxed), 2);
    });
}

#[test]
#[should_panic = "forgotten"]
fn loom_twin_once_enters_before_it_locks_the_queue() {
    check(Some(3), || {
        let it = Arc::new((OnceWord::new(), Lot::new()));
        let other = thread::spawn({
            let it = Arc::clone(&it);
            move || {
                if it.0.enter(|s| s != Stage::Complete) {
                    it.1.stand((), || true);
                }
            }
        });
        let _mine = it.0.claim(false);
        if it.0.finish(true) {
            it.1.unpark_some(|()| true, |_| {});
        }
        other.join().unwrap();
        it.1.forgot(|()| it.0.is_complete());
    });
}

#[test]
fn loom_barrier_rounds_do_not_mix() {
    check(Some(3), || {
        let it = Arc::new((BarrierWord::new(), Lot::new(), AtomicU32::new(0)));
        let meet = |it: &(BarrierWord, Lot<()>, AtomicU32)| match it.0.come(2) {
            Came::Last => {
                it.2.fetch_add(1, Relaxed);
                it.1.unpark_some(|()| true, |_| {});
            }
            Came::Waits(round) => {
                while !it.0.is_over(round) {
                    let _ = it.1.park((), false, || !it.0.is_over(round));
                }
            }
        };
        let other = thread::spawn({
            let it = Arc::clone(&it);
            move || {
                meet(&it);
                meet(&it);
            }
        });
        meet(&it);
        meet(&it);
        other.join().unwrap();
        assert_eq!(it.2.load(Relaxed), 2);
    });
}
