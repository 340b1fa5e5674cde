//! `Once`, `OnceLock`, `LazyLock` and `Barrier`: std's meanings, storms.

mod support;

use reveille::sync::{Barrier, LazyLock, Once, OnceLock};
use reveille::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use support::*;

/// Each body on a kernel thread and in a reveille thread, without the messages of panics.
fn quietly(f: fn()) {
    quiet_panics();
    both(f);
}

fn fails<R>(f: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).err().expect("it should have panicked");
    payload.downcast_ref::<&str>().map_or_else(String::new, |s| (*s).to_owned())
}

fn on_purpose() {
    std::panic::panic_any(ON_PURPOSE)
}

#[test]
fn it_is_done_once() {
    quietly(|| {
        let (once, mut a) = (Once::new(), 0);
        once.call_once(|| a += 1);
        once.call_once(|| a += 1);
        assert_eq!(a, 1);
        assert!(once.is_completed());
        once.wait();
        once.wait_force();
        assert_eq!(format!("{once:?}"), "Once { .. }");
    });
}

#[test]
fn a_failure_poisons_and_force_mends() {
    quietly(|| {
        let once = Once::new();
        assert_eq!(fails(|| once.call_once(on_purpose)), ON_PURPOSE);
        assert!(fails(|| once.call_once(|| {})).contains("poisoned"));
        assert!(fails(|| once.wait()).contains("poisoned"));
        assert!(!once.is_completed());
        // Another failure, then one that mends.
        fails(|| once.call_once_force(|state| on_purpose_if(state.is_poisoned())));
        let mut called = false;
        once.call_once_force(|state| {
            called = true;
            assert!(state.is_poisoned());
        });
        assert!(called);
        once.call_once(|| unreachable!());
        once.call_once_force(|_| unreachable!());
        once.wait();
    });
}

fn on_purpose_if(yes: bool) {
    if yes {
        on_purpose();
    }
}

#[test]
fn those_who_wait_see_the_failure_and_then_the_success() {
    quietly(|| {
        let (once, started) = (Once::new(), AtomicBool::new(false));
        thread::scope(|s| {
            let waits = s.spawn(|| fails(|| once.wait()));
            let forces = s.spawn(|| once.wait_force());
            let fails_first = s.spawn(|| {
                fails(|| {
                    once.call_once_force(|_| {
                        started.store(true, SeqCst);
                        for _ in 0..20 {
                            thread::yield_now();
                        }
                        on_purpose();
                    });
                })
            });
            while !started.load(SeqCst) {
                thread::yield_now();
            }
            let calls = s.spawn(|| fails(|| once.call_once(|| {})));
            assert!(calls.join().unwrap().contains("poisoned"));
            assert!(waits.join().unwrap().contains("poisoned"));
            assert_eq!(fails_first.join().unwrap(), ON_PURPOSE);
            once.call_once_force(|_| {});
            forces.join().unwrap();
        });
    });
}

#[test]
fn a_storm_of_onces() {
    on_each("a storm of onces", |rt| {
        for round in 0..150 * factor() {
            let (once, done, entered) = (Once::new(), AtomicUsize::new(0), AtomicUsize::new(0));
            let job = |i: usize| {
                if i.is_multiple_of(3) {
                    once.wait_force();
                } else {
                    once.call_once_force(|_| {
                        entered.fetch_add(1, SeqCst);
                        let _ = spin_some(round);
                        if entered.load(SeqCst) < 3 {
                            std::panic::panic_any(ON_PURPOSE);
                        }
                        assert_eq!(done.swap(1, SeqCst), 0);
                    });
                }
                assert_eq!(done.load(SeqCst), 1);
            };
            quiet_panics();
            std::thread::scope(|kernels| {
                for i in 0..3 {
                    kernels.spawn(
                        move || {
                            while catch_unwind(AssertUnwindSafe(|| job(i))).is_err() {}
                        },
                    );
                }
                rt.run(|| {
                    thread::scope(|s| {
                        for i in 0..9 {
                            s.spawn(
                                move || {
                                    while catch_unwind(AssertUnwindSafe(|| job(i))).is_err() {}
                                },
                            );
                        }
                    });
                });
            });
            assert_eq!(entered.load(SeqCst), 3);
            progress(0);
        }
    });
}

fn spin_some(n: u64) -> u64 {
    (0..n * 37 % 3000).fold(0, |a, b| std::hint::black_box(a ^ b))
}

#[test]
fn once_lock_has_stds_meanings() {
    quietly(|| {
        let mut cell = OnceLock::new();
        assert!(cell.get().is_none() && cell.get_mut().is_none());
        assert_eq!(format!("{cell:?}"), "OnceLock(<uninit>)");
        assert_eq!(fails(|| cell.get_or_init(|| std::panic::panic_any(ON_PURPOSE))), ON_PURPOSE);
        assert_eq!(cell.get_or_init(|| 92), &92);
        assert_eq!((cell.set(1), cell.get()), (Err(1), Some(&92)));
        *cell.get_mut().unwrap() += 1;
        assert_eq!(*cell.wait(), 93);
        assert_eq!(format!("{cell:?}"), "OnceLock(93)");
        assert_eq!(cell.clone(), cell);
        assert_ne!(cell, OnceLock::new());
        assert_eq!((cell.take(), cell.get()), (Some(93), None));
        assert_eq!(cell.set(5), Ok(()));
        assert_eq!(cell.into_inner(), Some(5));
        assert_eq!(OnceLock::from(3).into_inner(), Some(3));
    });
}

#[test]
fn values_are_dropped_once() {
    quietly(|| {
        struct Counts(Arc<AtomicUsize>);
        impl Drop for Counts {
            fn drop(&mut self) {
                self.0.fetch_add(1, SeqCst);
            }
        }
        let n = Arc::new(AtomicUsize::new(0));
        let one = || Counts(Arc::clone(&n));
        let cell = OnceLock::new();
        assert!(cell.set(one()).is_ok());
        assert!(cell.set(one()).is_err()); // 1: the refused one
        drop(cell); // 2
        drop(OnceLock::<Counts>::new());
        assert_eq!(n.load(SeqCst), 2);
        // A function that was never called, one that was, one that failed.
        let (a, b, c) = (one(), one(), one());
        drop(LazyLock::new(move || drop(a))); // 3
        let lazy = LazyLock::new(move || b);
        assert_eq!(n.load(SeqCst), 3);
        LazyLock::force(&lazy);
        assert_eq!(n.load(SeqCst), 3);
        drop(lazy); // 4
        let lazy = LazyLock::new(move || {
            let _c = c;
            on_purpose();
        });
        fails(|| LazyLock::force(&lazy)); // 5
        drop(lazy);
        assert_eq!(n.load(SeqCst), 5);
    });
}

#[test]
fn lazy_lock_has_stds_meanings() {
    quietly(|| {
        static CALLED: AtomicUsize = AtomicUsize::new(0);
        CALLED.store(0, SeqCst);
        let mut lazy = LazyLock::new(|| {
            CALLED.fetch_add(1, SeqCst);
            92
        });
        assert_eq!(format!("{lazy:?}"), "LazyLock(<uninit>)");
        assert!(LazyLock::get(&lazy).is_none() && LazyLock::get_mut(&mut lazy).is_none());
        assert_eq!((*lazy, *lazy, CALLED.load(SeqCst)), (92, 92, 1));
        *lazy += 1;
        *LazyLock::force_mut(&mut lazy) += 1;
        assert_eq!(format!("{lazy:?}"), "LazyLock(94)");
        let bad: LazyLock<u32> = LazyLock::new(|| std::panic::panic_any(ON_PURPOSE));
        assert_eq!(fails(|| *bad), ON_PURPOSE);
        assert_eq!(fails(|| *bad), "LazyLock instance has previously been poisoned");
        assert_eq!(*LazyLock::<u32>::default(), 0);
    });
}

#[test]
fn statics_before_any_runtime_and_threads_of_both_kinds() {
    static CELL: OnceLock<Vec<u32>> = OnceLock::new();
    static LAZY: LazyLock<Vec<u32>> = LazyLock::new(|| vec![1, 2, 3]);
    watched("statics", String::new, || {
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    assert_eq!(CELL.wait().len(), 2);
                    assert_eq!(LAZY.len(), 3);
                });
            }
            let rt = fast(2).build().unwrap();
            rt.run(|| {
                let waits: Vec<_> = (0..4).map(|_| thread::spawn(|| CELL.wait().len())).collect();
                CELL.set(vec![4, 5]).unwrap();
                waits.into_iter().for_each(|t| assert_eq!(t.join().unwrap(), 2));
            });
            rt.shutdown().unwrap();
        });
    });
}

#[test]
fn a_barrier_has_one_leader_a_round_and_nobody_runs_ahead() {
    on_each("a barrier", |rt| {
        const N: usize = 8;
        let barrier = Barrier::new(N);
        let (arrived, leaders) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let rounds = 300 * factor() as usize;
        let work = || {
            for round in 0..rounds {
                arrived.fetch_add(1, SeqCst);
                if barrier.wait().is_leader() {
                    leaders.fetch_add(1, SeqCst);
                    progress(0);
                }
                let here = arrived.load(SeqCst);
                assert!((N * (round + 1)..=N * (round + 2)).contains(&here), "{here} in {round}");
            }
        };
        std::thread::scope(|kernels| {
            kernels.spawn(work);
            kernels.spawn(work);
            rt.run(|| {
                thread::scope(|s| {
                    for _ in 0..N - 2 {
                        s.spawn(work);
                    }
                });
            });
        });
        assert_eq!(leaders.into_inner(), rounds);
    });
}

#[test]
fn small_barriers() {
    quietly(|| {
        for n in 0..2 {
            let barrier = Barrier::new(n);
            assert!(barrier.wait().is_leader() && barrier.wait().is_leader());
            assert_eq!(format!("{barrier:?}"), "Barrier { .. }");
        }
        let result = Barrier::new(1).wait();
        assert_eq!(format!("{result:?}"), "BarrierWaitResult { is_leader: true }");
    });
}
