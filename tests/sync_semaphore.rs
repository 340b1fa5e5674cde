//! `Semaphore`: order, times, storms, misuse. Signal handlers: `sync_semaphore_signals`.

mod support;

use reveille::sync::Semaphore;
use reveille::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::*;

#[test]
fn permits_are_counted() {
    both(|| {
        let s = Semaphore::new(3);
        let mut two = s.acquire_many(2);
        assert_eq!((two.num_permits(), s.available_permits()), (2, 1));
        assert!(s.try_acquire_many(2).is_none());
        let one = s.try_acquire().unwrap();
        assert!(s.try_acquire().is_none());
        two.merge(one);
        drop(two.split(2));
        assert!(two.split(2).is_none());
        assert_eq!((two.num_permits(), s.available_permits()), (1, 2));
        two.forget();
        assert_eq!(s.available_permits(), 2);
        drop(s.acquire_many(0));
        s.release();
        s.add_permits(2);
        assert_eq!(s.available_permits(), 5);
        assert_eq!(format!("{s:?}"), "Semaphore { permits: 5, .. }");
    });
}

#[test]
fn too_many_permits() {
    both(|| {
        let panics = |f: &dyn Fn()| {
            let message = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
            assert!(message.downcast_ref::<String>().unwrap().contains("too many permits"));
        };
        let s = Semaphore::new(Semaphore::MAX_PERMITS);
        panics(&|| s.release());
        panics(&|| s.add_permits(usize::MAX));
        panics(&|| drop(s.acquire_many(usize::MAX)));
        panics(&|| drop(s.try_acquire_many(Semaphore::MAX_PERMITS + 1)));
        assert!(s.try_add_permits(1).is_err());
        drop(s.acquire());
        assert_eq!(s.available_permits(), Semaphore::MAX_PERMITS);
        let other = Semaphore::new(1);
        let merged = catch_unwind(AssertUnwindSafe(|| s.acquire().merge(other.acquire())));
        assert!(merged.is_err());
        assert_eq!(other.available_permits(), 1);
        assert!(catch_unwind(|| Semaphore::new(usize::MAX)).is_err());
    });
}

#[test]
fn time_outs_are_not_early_and_let_those_behind_in() {
    both(|| {
        let s = Semaphore::new(1);
        let (about, wait) = (AtomicBool::new(false), Duration::from_millis(20));
        thread::scope(|scope| {
            scope.spawn(|| {
                let begun = Instant::now();
                about.store(true, SeqCst);
                assert!(s.acquire_many_timeout(2, wait).is_none());
                assert!(begun.elapsed() >= wait);
            });
            while !about.load(SeqCst) || s.try_acquire().is_some() {
                thread::yield_now();
            }
            // Behind the one who needs two: gets the one permit when that one gives up.
            s.acquire().forget();
        });
        assert!(s.acquire_timeout(Duration::ZERO).is_none());
        assert!(s.acquire_until(Instant::now() - Duration::from_millis(1)).is_none());
        s.release();
        assert!(s.acquire_timeout(Duration::ZERO).is_some());
        assert!(s.acquire_until(Instant::now() + wait).is_some());
        assert!(s.acquire_many_until(1, Instant::now()).is_some());
    });
}

/// The bound, by count: those who wait are given permits in the order in which they came, also when one needs many,
/// and who comes later gets none before.
#[test]
fn permits_go_in_order() {
    on_each("permits go in order", |rt| {
        rt.run(|| {
            let s = Semaphore::new(0);
            let order = std::sync::Mutex::new(Vec::new());
            let about = AtomicUsize::new(0);
            std::thread::scope(|kernels| {
                thread::scope(|threads| {
                    for i in 0..12usize {
                        let (s, order, about) = (&s, &order, &about);
                        let wait = move || {
                            about.fetch_add(1, SeqCst);
                            s.acquire_many(1 + i % 3).forget();
                            order.lock().unwrap().push(i);
                            about.fetch_sub(1, SeqCst);
                        };
                        if i % 4 == 3 {
                            kernels.spawn(wait);
                        } else {
                            threads.spawn(wait);
                        }
                        while about.load(SeqCst) <= i {
                            thread::yield_now();
                        }
                        thread::sleep(Duration::from_millis(2));
                    }
                    for i in 0..12 {
                        for n in 0..1 + i % 3 {
                            assert_eq!(about.load(SeqCst), 12 - i, "after {n} permits");
                            s.release();
                        }
                        while about.load(SeqCst) != 11 - i {
                            thread::yield_now();
                        }
                    }
                });
            });
            assert_eq!(order.into_inner().unwrap(), (0..12).collect::<Vec<_>>());
        });
    });
}

fn spin(n: usize) -> usize {
    (0..n).fold(0, |a, b| std::hint::black_box(a ^ b))
}

/// Never more inside than there are permits, none is lost, time-outs just when one is given back.
#[test]
fn storm_of_permits() {
    on_each("storm of permits", |rt| {
        const PERMITS: usize = 3;
        let (s, inside, over) =
            (Semaphore::new(PERMITS), AtomicUsize::new(0), AtomicBool::new(false));
        let step = |random: &mut Random| {
            let n = 1 + random.below(PERMITS);
            let soon = Duration::from_nanos(random.below(60_000) as u64);
            let permit = match random.below(4) {
                0 => s.acquire_many_timeout(n, soon),
                1 => s.acquire_many_until(n, Instant::now() + soon),
                2 => s.try_acquire_many(n),
                _ => Some(s.acquire_many(n)),
            };
            if let Some(permit) = permit {
                assert!(inside.fetch_add(n, SeqCst) + n <= PERMITS);
                std::hint::black_box(spin(random.below(400)));
                inside.fetch_sub(n, SeqCst);
                drop(permit);
            }
        };
        std::thread::scope(|kernels| {
            for k in 0..2 {
                let (step, over) = (&step, &over);
                kernels.spawn(move || {
                    let mut random = Random::new(1000 + k);
                    while !over.load(SeqCst) {
                        step(&mut random);
                        progress(1);
                    }
                });
            }
            among_hogs(rt, 6, 600, |i, n| step(&mut Random::new(i as u64 * 100_000 + n)));
            over.store(true, SeqCst);
        });
        assert_eq!((s.available_permits(), s.try_acquire_many(PERMITS).is_some()), (PERMITS, true));
    });
}
