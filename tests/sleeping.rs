//! Sleep and time-outs: never early, beside threads that only compute, a hundred thousand at once.

mod support;

use reveille::{Runtime, thread};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::watched;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

#[test]
fn sleeps_are_not_short_and_come_back() {
    watched("sleeps_are_not_short_and_come_back", String::new, || {
        for workers in 1..=2 {
            let rt = runtime(workers);
            rt.run(|| {
                let sleepers: Vec<_> = (0..200u64)
                    .map(|i| {
                        thread::spawn(move || {
                            let dur = Duration::from_micros(i * 37 % 5000);
                            let start = Instant::now();
                            thread::sleep(dur);
                            assert!(start.elapsed() >= dur);
                        })
                    })
                    .collect();
                sleepers.into_iter().for_each(|t| t.join().unwrap());
            });
            rt.shutdown().unwrap();
        }
    });
}

/// Without the alarm the sleepers would wait until somebody else's tick; one hog alone has none.
#[test]
fn a_sleeper_wakes_beside_hogs_that_nobody_else_waits_for() {
    watched("a_sleeper_wakes_beside_hogs_that_nobody_else_waits_for", String::new, || {
        for hogs in 1..=3 {
            let rt = runtime(1);
            let stop = AtomicBool::new(false);
            rt.run(|| {
                thread::scope(|s| {
                    for _ in 0..hogs {
                        s.spawn(|| {
                            while !stop.load(Ordering::Relaxed) {
                                std::hint::spin_loop();
                            }
                        });
                    }
                    for _ in 0..50 {
                        thread::sleep(Duration::from_micros(300));
                    }
                    stop.store(true, Ordering::Relaxed);
                });
            });
            rt.shutdown().unwrap();
        }
    });
}

#[test]
fn a_hundred_thousand_sleepers() {
    watched("a_hundred_thousand_sleepers", String::new, || {
        let rt = runtime(2);
        let woken = AtomicUsize::new(0);
        rt.run(|| {
            thread::scope(|s| {
                for i in 0..100_000u64 {
                    let woken = &woken;
                    s.spawn(move || {
                        thread::sleep(Duration::from_millis(1 + i % 50));
                        woken.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        });
        assert_eq!(woken.into_inner(), 100_000);
        rt.shutdown().unwrap();
    });
}

#[test]
fn a_parked_thread_times_out_or_is_unparked_and_never_stays() {
    watched("a_parked_thread_times_out_or_is_unparked_and_never_stays", String::new, || {
        let rt = runtime(2);
        rt.run(|| {
            for round in 0..2000u64 {
                let t = thread::spawn(|| thread::park_timeout(Duration::from_micros(50)));
                if round % 2 == 0 {
                    for _ in 0..round % 64 {
                        std::hint::spin_loop();
                    }
                    t.thread().unpark();
                }
                t.join().unwrap();
            }
            // An unpark that came first is not lost, nor is the time-out waited for.
            let start = Instant::now();
            thread::current().unpark();
            thread::park_timeout(Duration::from_secs(30));
            assert!(start.elapsed() < Duration::from_secs(20));
        });
        rt.shutdown().unwrap();
    });
}

#[test]
fn kernel_threads_park_for_a_limited_time() {
    watched("kernel_threads_park_for_a_limited_time", String::new, || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {
            thread::park_timeout(Duration::from_millis(5));
        }
        thread::current().unpark();
        thread::park_timeout(Duration::from_secs(1000));
        thread::sleep(Duration::from_millis(1));
        thread::sleep_until(Instant::now() + Duration::from_millis(1));
    });
}

/// The end of time is for ever, not an overflow.
#[test]
fn the_longest_time_out() {
    watched("the_longest_time_out", String::new, || {
        let rt = runtime(1);
        rt.run(|| {
            let t = thread::spawn(|| thread::park_timeout(Duration::MAX));
            thread::yield_now();
            t.thread().unpark();
            t.join().unwrap();
        });
        rt.shutdown().unwrap();
    });
}
