//! Threads share workers whatever they do: hogs without calls, and storms of spawn, join, park, unpark,
//! yield and scope across workers, kernel threads and runtimes. Guards: the tick itself, the idle
//! protocol, the join word and the park token; each value must arrive exactly once.
#![allow(unsafe_code)]

mod support;

use reveille::{Runtime, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use support::*;

/// Spins for ever without a call, until told otherwise through `stop`.
fn hog(stop: &AtomicU64, turns: &AtomicU64) {
    // SAFETY: a loop on two live words.
    unsafe {
        std::arch::asm!(
            "2: inc qword ptr [{turns}]",
            "cmp qword ptr [{stop}], 0",
            "je 2b",
            stop = in(reg) stop.as_ptr(), turns = in(reg) turns.as_ptr(), options(nostack)
        );
    }
}

#[test]
fn endless_loops_share() {
    on_each("hogs", |rt| {
        let stop = Arc::new(AtomicU64::new(0));
        let turns: Arc<[AtomicU64; 8]> = Arc::default();
        let hogs: Vec<_> = (0..8)
            .map(|i| {
                let (stop, turns) = (stop.clone(), turns.clone());
                rt.spawn(move || {
                    hog(&stop, &turns[i]);
                    preemptions()
                })
            })
            .collect();
        // A kernel thread sees each go on, fifty times.
        for _ in 0..50 {
            let before: Vec<u64> = turns.iter().map(|t| t.load(SeqCst)).collect();
            for (t, b) in turns.iter().zip(before) {
                while t.load(SeqCst) == b {
                    std::thread::yield_now();
                }
            }
            progress(0);
        }
        stop.store(1, SeqCst);
        for h in hogs {
            assert!(h.join().unwrap() > 0);
        }
    });
}

/// Counts its drops.
struct Dropped(Arc<AtomicUsize>);
impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn results_of_all_kinds_arrive_once() {
    quiet_panics();
    on_each("results", |rt| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let made = AtomicUsize::new(0);
        among_hogs(rt, 6, 150, |i, n| {
            let d = || {
                made.fetch_add(1, SeqCst);
                Dropped(dropped.clone())
            };
            let key = (i as u64) << 32 | n;
            // In the record, larger than it, of no size, on the heap.
            assert_eq!(thread::spawn(move || key).join().unwrap(), key);
            let large = thread::spawn(move || [key; 100]).join().unwrap();
            assert!(large.iter().all(|k| *k == key));
            let captured = [key; 90];
            let sum = thread::spawn(move || captured.iter().fold(0u64, |a, b| a.wrapping_add(*b)));
            assert_eq!(sum.join().unwrap(), key.wrapping_mul(90));
            thread::spawn(|| ()).join().unwrap();
            assert_eq!(thread::spawn(move || key.to_string()).join().unwrap(), key.to_string());
            // With something to drop: joined, detached, panicking, both.
            let (a, b, c) = (d(), d(), d());
            drop(thread::spawn(move || a).join().unwrap());
            drop(thread::spawn(move || b));
            let big = thread::spawn(move || (c, [key; 60]));
            if n % 2 == 0 {
                thread::yield_now();
            }
            drop(big);
            let (a, b) = (d(), d());
            let p = thread::spawn(move || {
                let _a = a;
                std::panic::panic_any(key)
            });
            let payload = p.join().unwrap_err();
            assert_eq!(*payload.downcast::<u64>().unwrap(), key);
            drop(thread::spawn(move || {
                let _b = b;
                if key != 1 {
                    std::panic::panic_any(key);
                }
            }));
            progress(1);
        });
        // Detached threads may still be on their way.
        while dropped.load(SeqCst) != made.load(SeqCst) {
            assert!(dropped.load(SeqCst) <= made.load(SeqCst));
            std::thread::yield_now();
        }
    });
}

#[test]
fn tokens_are_not_lost() {
    on_each("park and unpark", |rt| {
        // Rings of threads hand a token round by unpark alone; hogs see to ticks.
        let turn = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        const RING: usize = 5;
        let ring: Vec<_> = (0..RING)
            .map(|i| {
                let (turn, stop) = (turn.clone(), stop.clone());
                rt.spawn(move || {
                    let mut rounds = 0u64;
                    let mut next: Option<thread::Thread> = None;
                    loop {
                        while turn.load(SeqCst) % RING != i && !stop.load(SeqCst) {
                            thread::park();
                        }
                        if stop.load(SeqCst) {
                            return rounds;
                        }
                        let to = next.get_or_insert_with(|| RING_THREADS.get((i + 1) % RING));
                        rounds += 1;
                        progress(2);
                        turn.fetch_add(1, SeqCst);
                        to.unpark();
                    }
                })
            })
            .collect();
        RING_THREADS.set(ring.iter().map(|h| h.thread().clone()).collect());
        until_preempted(rt, 5, 100, |_, _| std::hint::spin_loop());
        // And for a while with kernel threads that unpark at random, which park allows for.
        let threads: Vec<_> = ring.iter().map(|h| h.thread().clone()).collect();
        std::thread::scope(|s| {
            for k in 0..2 {
                let threads = &threads;
                s.spawn(move || {
                    let mut random = Random::new(k);
                    for _ in 0..20_000 {
                        threads[random.below(RING)].unpark();
                    }
                });
            }
        });
        let seen = turn.load(SeqCst);
        while turn.load(SeqCst) < seen + 1000 {
            std::thread::yield_now();
        }
        stop.store(true, SeqCst);
        for t in &threads {
            t.unpark();
        }
        for h in ring {
            assert!(h.join().unwrap() > 100);
        }
    });
}

/// The ring's handles, once they are known.
struct RingThreads(std::sync::Mutex<Vec<thread::Thread>>, AtomicUsize);
static RING_THREADS: RingThreads =
    RingThreads(std::sync::Mutex::new(Vec::new()), AtomicUsize::new(0));
impl RingThreads {
    fn set(&self, threads: Vec<thread::Thread>) {
        *self.0.lock().unwrap() = threads;
        self.1.fetch_add(1, SeqCst);
    }
    fn get(&self, i: usize) -> thread::Thread {
        loop {
            // Handles of an earlier round name threads of an ended runtime.
            let me = thread::current().id();
            let known = self.0.lock().unwrap().clone();
            if known.iter().any(|t| t.id() == me) {
                return known[i].clone();
            }
            thread::yield_now();
        }
    }
}

#[test]
fn kernel_threads_join_spawn_and_are_unparked() {
    on_each("kernel threads", |rt| {
        let sum = AtomicU64::new(0);
        std::thread::scope(|s| {
            for k in 0..3u64 {
                let (rt, sum) = (&rt, &sum);
                s.spawn(move || {
                    let mut random = Random::new(k + 7);
                    for i in 0..1500 * factor() {
                        let me = thread::current();
                        let h = rt.spawn(move || {
                            me.unpark();
                            if i % 3 == 0 {
                                thread::yield_now();
                            }
                            i
                        });
                        match random.below(4) {
                            0 => drop(h),
                            1 => {
                                thread::park();
                                assert_eq!(h.join().unwrap(), i);
                            }
                            2 => {
                                // Handed to a thread, which joins what a kernel thread spawned.
                                let j = rt.spawn(move || h.join().unwrap());
                                assert_eq!(j.join().unwrap(), i);
                            }
                            _ => assert_eq!(h.join().unwrap(), i),
                        }
                        sum.fetch_add(1, SeqCst);
                        progress(3);
                    }
                });
            }
        });
        assert_eq!(sum.load(SeqCst), 4500 * factor());
    });
}

#[test]
fn scopes_nest() {
    fn tree(depth: u32, n: &AtomicU64) {
        n.fetch_add(1, SeqCst);
        if depth > 0 {
            thread::scope(|s| {
                s.spawn(|| tree(depth - 1, n));
                let last = s.spawn(|| tree(depth - 1, n));
                tree(depth - 1, n);
                last.join().unwrap();
            });
        }
    }
    on_each("scopes", |rt| {
        among_hogs(rt, 3, 12, |_, _| {
            let n = AtomicU64::new(0);
            tree(4, &n);
            assert_eq!(n.load(SeqCst), 1 + 3 + 9 + 27 + 81);
            progress(4);
        });
    });
}

#[test]
fn two_runtimes_with_different_signals() {
    let _alone = alone();
    for workers in 1..=2 {
        let a = fast(workers).build().unwrap();
        let b = fast(workers).signal(libc::SIGRTMIN() + 3).build().unwrap();
        let both: [&Runtime; 2] = [&a, &b];
        watched(
            "two runtimes",
            || format!("{:?} {:?}", a.stats(), b.stats()),
            || {
                std::thread::scope(|s| {
                    for rt in both {
                        s.spawn(move || until_preempted(rt, 6, 60, |_, _| std::hint::spin_loop()));
                    }
                    // Threads of one join threads of the other, and wake them.
                    s.spawn(|| {
                        for i in 0..2000u64 {
                            let (x, y) = if i % 2 == 0 { (&a, &b) } else { (&b, &a) };
                            let inner = x.spawn(move || {
                                thread::park();
                                i
                            });
                            let wake = inner.thread().clone();
                            let outer = y.spawn(move || {
                                wake.unpark();
                                inner.join().unwrap()
                            });
                            assert_eq!(outer.join().unwrap(), i);
                            progress(5);
                        }
                    });
                });
            },
        );
        a.shutdown().unwrap();
        b.shutdown().unwrap();
    }
}
