//! Mutexes: exclusion under preemption at the fastest slice, time-outs, kernel threads beside, the bound on how often
//! a waiter is passed over, misuse, deadlocks.

mod support;

use reveille::sync::raw::{RawFairMutex, RawMutex};
use reveille::sync::{FairMutex, Mutex, MutexGuard};
use reveille::{Runtime, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;
use support::*;

/// Two words that are equal whenever nobody is inside.
#[derive(Default)]
struct Pair(u64, u64);

impl Pair {
    fn step(&mut self) {
        assert_eq!(self.0, self.1, "somebody is inside");
        self.0 += 1;
        std::hint::black_box(&mut *self);
        self.1 += 1;
    }
}

#[test]
fn one_inside_whatever_ticks() {
    on_each("mutex", |rt| {
        let m = Mutex::new(Pair::default());
        // Some hold it for so long that a tick finds them inside: whoever gives way often is not preempted.
        let steps = until_preempted(rt, 8, 4, |i, n| {
            let mut g = m.lock().unwrap();
            g.step();
            if (i as u64 + n).is_multiple_of(64) {
                (0..20_000).for_each(|_| std::hint::spin_loop());
                g.step();
            }
        });
        let m = m.into_inner().unwrap();
        assert!(m.0 == m.1 && m.0 > steps.iter().sum::<u64>());
    });
}

#[test]
fn one_inside_with_hand_over() {
    on_each("fair mutex", |rt| {
        let m = FairMutex::new_fair(Pair::default());
        among_hogs(rt, 6, 30_000, |_, _| m.lock().unwrap().step());
        assert_eq!(m.into_inner().unwrap().0, 6 * 30_000 * factor());
    });
}

/// The holder gives way inside, so that everybody else comes to wait.
#[test]
fn holders_that_give_way_and_sleep() {
    on_each("holders", |rt| {
        let m = Mutex::new(Pair::default());
        among_hogs(rt, 8, 400, |i, n| {
            let mut g = m.lock().unwrap();
            g.step();
            match (i as u64 + n) % 16 {
                0 => thread::sleep(Duration::from_micros(20)),
                1..8 => thread::yield_now(),
                _ => {}
            }
            g.step();
        });
        assert_eq!(m.into_inner().unwrap().0, 2 * 8 * 400 * factor());
    });
}

/// Time-outs that come about when the mutex does: each try ends, and what was taken was held alone.
#[test]
fn time_outs_at_the_moment_of_the_unlock() {
    on_each("time-outs", |rt| {
        let m = Mutex::new(Pair::default());
        let (taken, missed) = (AtomicU64::new(0), AtomicU64::new(0));
        among_hogs(rt, 8, 800, |i, n| {
            let patience = Duration::from_nanos((i as u64 * 7919 + n * 104_729) % 60_000);
            match m.try_lock_for(patience) {
                Ok(mut g) => {
                    g.step();
                    if n % 4 == 0 {
                        thread::yield_now();
                    }
                    taken.fetch_add(1, Relaxed);
                }
                Err(_) => drop(missed.fetch_add(1, Relaxed)),
            }
        });
        assert_eq!(taken.load(Relaxed) + missed.load(Relaxed), 8 * 800 * factor());
        assert_eq!(m.into_inner().unwrap().0, taken.load(Relaxed));
    });
}

/// Kernel threads, threads of this runtime and of another one, at the same mutex.
#[test]
fn kernel_threads_and_another_runtime() {
    on_each("all kinds", |rt| {
        let other = fast(1).build().unwrap();
        let m = Mutex::new(Pair::default());
        let n = 40_000 * factor();
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| (0..n).for_each(|_| m.lock().unwrap().step()));
            }
            s.spawn(|| {
                for i in 0..n {
                    if let Ok(mut g) = m.try_lock_for(Duration::from_micros(i % 50)) {
                        g.step();
                    }
                }
            });
            s.spawn(|| other.run(|| (0..n).for_each(|_| m.lock().unwrap().step())));
            among_hogs(rt, 4, 40_000, |_, _| m.lock().unwrap().step());
        });
        assert!(m.into_inner().unwrap().0 >= (2 + 1 + 4) * n);
        other.shutdown().unwrap();
    });
}

/// The bound of `protocol::mutex`, counted: while a thread waits alone, another takes the mutex at most
/// PASS times (32) once it is on its way, and once more for the unlock that sends it. On one worker and without
/// ticks, nothing but the mutex makes the other thread run.
#[test]
fn a_waiter_is_passed_over_a_bounded_number_of_times() {
    const BOUND: u64 = 32 + 2;
    let _alone = alone();
    let rt = Runtime::builder().workers(1).time_slice(Duration::from_secs(5)).build().unwrap();
    watched("bound", String::new, || {
        let m = Mutex::new(());
        let (passed, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let (waits, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        rt.run(|| {
            thread::scope(|s| {
                s.spawn(|| {
                    while !stop.load(SeqCst) {
                        let g = m.lock().unwrap();
                        if waits.load(SeqCst) {
                            passed.fetch_add(1, SeqCst);
                        } else {
                            // Else the waiter would find it free: it must queue.
                            thread::yield_now();
                        }
                        drop(g);
                    }
                });
                s.spawn(|| {
                    for _ in 0..2000 {
                        passed.store(0, SeqCst);
                        waits.store(true, SeqCst);
                        let g = m.lock().unwrap();
                        waits.store(false, SeqCst);
                        most.fetch_max(passed.load(SeqCst), SeqCst);
                        drop(g);
                    }
                    stop.store(true, SeqCst);
                });
            });
        });
        let most = most.into_inner();
        assert!(most > 0 && most <= BOUND, "passed over {most} times");
    });
    rt.shutdown().unwrap();
}

/// With hand-over, `k` threads take turns exactly.
#[test]
fn a_fair_mutex_goes_round() {
    let _alone = alone();
    let rt = Runtime::builder().workers(1).build().unwrap();
    watched("round", String::new, || {
        const THREADS: usize = 5;
        let m = FairMutex::new_fair(Vec::new());
        let here = AtomicUsize::new(0);
        rt.run(|| {
            thread::scope(|s| {
                for i in 0..THREADS {
                    let (m, here) = (&m, &here);
                    s.spawn(move || {
                        here.fetch_add(1, SeqCst);
                        let mut g = m.lock().unwrap();
                        while here.load(SeqCst) < THREADS {
                            thread::yield_now();
                        }
                        for _ in 0..200 {
                            g.push(i);
                            drop(g);
                            g = m.lock().unwrap();
                        }
                    });
                }
            });
        });
        let order = m.into_inner().unwrap();
        // At the beginning and at the end not everybody is there.
        for turn in order[THREADS..order.len() - THREADS].chunks_exact(THREADS).take(190) {
            let mut seen = turn.to_vec();
            seen.sort_unstable();
            assert_eq!(seen, (0..THREADS).collect::<Vec<_>>(), "not everybody had a turn");
        }
    });
    rt.shutdown().unwrap();
}

#[test]
fn a_panic_poisons_and_lets_go() {
    let _alone = alone();
    let rt = fast(2).build().unwrap();
    let m = Arc::new(Mutex::new(1));
    let other = Arc::clone(&m);
    let died = rt.spawn(move || {
        let _g = other.lock().unwrap();
        panic!("as planned");
    });
    assert!(died.join().is_err());
    assert!(m.is_poisoned() && m.try_lock().is_err());
    let g: MutexGuard<'_, i32> = m.lock().unwrap_err().into_inner();
    assert_eq!(*g, 1);
    drop(g);
    m.clear_poison();
    assert_eq!(*m.lock().unwrap(), 1);
    rt.shutdown().unwrap();
}

fn message(e: Box<dyn std::any::Any + Send>) -> String {
    e.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn locking_twice_says_so() {
    let _alone = alone();
    for on_runtime in [false, true] {
        let f = || {
            let m = Mutex::new(0);
            let _g = m.lock();
            let _again = m.lock();
        };
        let e = if on_runtime {
            thread::Builder::new().name("twice".into()).spawn(f).unwrap().join().unwrap_err()
        } else {
            std::panic::catch_unwind(f).unwrap_err()
        };
        let text = message(e);
        assert!(text.contains("deadlock") && text.contains("which it holds"), "{text}");
        assert!(!on_runtime || text.contains("'twice'"), "{text}");
    }
}

/// A waits for B's, B for C's, C for A's: the last one to wait is told, with names, and its panic lets the others go on.
#[test]
fn a_circle_of_waiters_is_reported() {
    let _alone = alone();
    for workers in 1..=2 {
        let rt = fast(workers).build().unwrap();
        watched("circle", String::new, || {
            let locks: Arc<Vec<Mutex<()>>> = Arc::new((0..3).map(|_| Mutex::new(())).collect());
            let here = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = ["anna", "ben", "cleo"]
                .iter()
                .enumerate()
                .map(|(i, name)| {
                    let (locks, here) = (Arc::clone(&locks), Arc::clone(&here));
                    let f = move || {
                        let _own = locks[i].lock();
                        here.fetch_add(1, SeqCst);
                        while here.load(SeqCst) < 3 {
                            thread::yield_now();
                        }
                        let _next = locks[(i + 1) % 3].lock();
                    };
                    rt.thread_builder().name((*name).into()).spawn(f).unwrap()
                })
                .collect();
            let failed: Vec<String> =
                threads.into_iter().filter_map(|t| t.join().err()).map(message).collect();
            // Two may close the circle at the same time, and both are told.
            assert!(!failed.is_empty() && failed.len() < 3, "{failed:?}");
            for name in ["anna", "ben", "cleo"] {
                assert!(failed[0].contains(name), "{failed:?}");
            }
        });
        rt.shutdown().unwrap();
    }
}

/// A kernel thread closes the circle: it is told as well.
#[test]
fn a_kernel_thread_in_a_circle_is_told() {
    let _alone = alone();
    let rt = fast(1).build().unwrap();
    watched("circle", String::new, || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let own = locks.0.lock().unwrap();
        let t = rt.spawn(move || {
            let _own = other.1.lock().unwrap();
            drop(other.0.lock());
        });
        while rt.waiting().is_empty() {
            std::thread::yield_now();
        }
        let second = std::panic::AssertUnwindSafe(|| drop(locks.1.lock()));
        let text = message(std::panic::catch_unwind(second).unwrap_err());
        assert!(text.contains("deadlock") && text.contains("a kernel thread"), "{text}");
        drop(own);
        t.join().unwrap();
    });
    rt.shutdown().unwrap();
}

/// lock_api's guards come for free.
#[test]
fn lock_api_takes_the_raw_types() {
    let _alone = alone();
    let m = lock_api::Mutex::<RawMutex, _>::new((1, 2));
    let part = lock_api::MutexGuard::map(m.lock(), |p| &mut p.1);
    assert_eq!(*part, 2);
    assert!(m.try_lock_for(Duration::from_micros(10)).is_none());
    drop(part);
    let f = lock_api::Mutex::<RawFairMutex, _>::new(0);
    lock_api::MutexGuard::unlock_fair(f.lock());
    let mut g = f.lock();
    lock_api::MutexGuard::bump(&mut g);
    *g += 1;
    assert_eq!(size_of::<RawMutex>(), size_of::<usize>());
}

#[test]
fn unlocking_what_is_not_held_panics() {
    let _alone = alone();
    use lock_api::RawMutex as _;
    let m = RawMutex::INIT;
    let held = m.lock();
    // SAFETY: held.
    unsafe { m.unlock(held) };
    let other = RawMutex::INIT;
    let other = other.lock();
    // SAFETY: not held: that is what is tested; nothing is guarded by it.
    let e = std::panic::catch_unwind(|| unsafe { m.unlock(other) }).unwrap_err();
    let text = e.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(text.contains("does not hold"), "{text}");
}

#[test]
fn a_reentrant_lock_is_its_owners() {
    use reveille::sync::ReentrantLock;
    use std::cell::Cell;
    on_each("reentrant", |rt| {
        let lock = ReentrantLock::new((Cell::new(0u64), Cell::new(0u64)));
        among_hogs(rt, 6, 5000, |i, n| {
            let outer = lock.lock();
            outer.0.set(outer.0.get() + 1);
            if (i as u64 + n).is_multiple_of(8) {
                thread::yield_now();
            }
            let inner = lock.try_lock().expect("it is this thread's");
            drop(outer);
            inner.1.set(inner.1.get() + 1);
            assert_eq!(inner.0.get(), inner.1.get(), "somebody is inside");
        });
        assert_eq!(lock.into_inner().0.get(), 6 * 5000 * factor());
    });
}
