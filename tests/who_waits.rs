//! Reports of who waits for what, and waits that are kicked.

mod support;

use reveille::bench_support::kick;
use reveille::sync::{Condvar, Mutex};
use reveille::{Runtime, WaitsFor, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Duration;
use support::*;

/// Until everything waits; the report.
fn when_stalled(rt: &Runtime) -> Vec<reveille::Waiting> {
    loop {
        if let Some(waiting) = rt.stalled() {
            return waiting;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_runtime_that_stands_still_says_why() {
    let _alone = alone();
    for workers in 1..=2 {
        let rt = Runtime::builder().workers(workers).build().unwrap();
        watched("stalled", String::new, || {
            assert!(rt.stalled().is_none(), "nobody is there");
            let shared = Arc::new((Mutex::new(false), Condvar::new()));
            let outside = shared.0.lock().unwrap();
            let named = |name: &str, f: fn(Arc<(Mutex<bool>, Condvar)>)| {
                let shared = Arc::clone(&shared);
                rt.thread_builder().name(name.into()).spawn(move || f(shared)).unwrap()
            };
            let locks = named("locks", |s| drop(s.0.lock()));
            let parks = named("parks", |_| thread::park());
            let first = when_stalled(&rt);
            assert_eq!(first.len(), 2);
            let text = first.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert!(text.contains("'locks' waits for the mutex at 0x"), "{text}");
            assert!(text.contains("is parked"), "{text}");
            drop(outside);
            locks.join().unwrap();

            let waits = named("waits", |s| {
                drop(s.1.wait_while(s.0.lock().unwrap(), |done| !*done).unwrap());
            });
            let target = parks.thread().id();
            let joins = rt.spawn(move || parks.join().unwrap());
            let waiting = when_stalled(&rt);
            let of = |what| waiting.iter().find(|w| w.waits_for == what).unwrap();
            assert_eq!(waiting.len(), 3, "{waiting:?}");
            assert_eq!(of(WaitsFor::Condvar).name.as_deref(), Some("waits"));
            assert_eq!(of(WaitsFor::Join).holder, Some(target));
            assert_eq!(of(WaitsFor::Unpark).thread, target);

            // Who has a deadline goes on some time: that is no standstill.
            let sleeps = rt.spawn(|| thread::sleep(Duration::from_secs(3600)));
            while rt.waiting().len() != 4 {
                std::thread::yield_now();
            }
            assert!(rt.stalled().is_none());
            assert!(kick(sleeps.thread()), "it sleeps, but a kick does not end a sleep");
            assert!(!sleeps.is_finished());

            *shared.0.lock().unwrap() = true;
            shared.1.notify_all();
            waits.join().unwrap();
            drop(joins); // and what it joins: still parked when the process ends
        });
    }
}

#[test]
fn a_mutex_names_its_owner() {
    let _alone = alone();
    let rt = Runtime::builder().workers(1).build().unwrap();
    watched("owner", String::new, || {
        let m = Arc::new(Mutex::new(()));
        let (a, b) = (Arc::clone(&m), m);
        let owner = rt.spawn(move || {
            let _g = a.lock().unwrap();
            thread::park();
        });
        while rt.waiting().is_empty() {
            std::thread::yield_now();
        }
        let other = rt.spawn(move || drop(b.lock()));
        let waiting = when_stalled(&rt);
        let mutex = waiting.iter().find(|w| w.waits_for == WaitsFor::Mutex).unwrap();
        assert_eq!(mutex.holder, Some(owner.thread().id()));
        assert_eq!(mutex.thread, other.thread().id());
        owner.thread().unpark();
        owner.join().unwrap();
        other.join().unwrap();
    });
    rt.shutdown().unwrap();
}

/// Everybody is kicked out of every wait, again and again: nothing is lost, nothing is taken twice.
#[test]
fn waits_that_are_kicked_go_on() {
    on_each("kicked", |rt| {
        let m = Mutex::new((0u64, 0u64));
        let cv = Condvar::new();
        let (stop, kicks) = (AtomicBool::new(false), AtomicU64::new(0));
        let round = || {
            thread::scope(|s| {
                let n = 2000 * factor();
                let threads: Vec<_> = (0..6)
                    .map(|i| {
                        let (m, cv) = (&m, &cv);
                        s.spawn(move || {
                            for k in 0..n {
                                let mut g = m.lock().unwrap();
                                if i % 2 == 0 {
                                    g.0 += 1;
                                    cv.notify_one();
                                } else {
                                    while g.0 == g.1 {
                                        let patience = Duration::from_micros(k % 40);
                                        g = cv.wait_timeout(g, patience).unwrap().0;
                                    }
                                    g.1 += 1;
                                }
                                if k % 8 == 0 {
                                    // The others come to wait.
                                    thread::yield_now();
                                }
                                drop(g);
                            }
                        })
                    })
                    .collect();
                let handles: Vec<_> = threads.iter().map(|t| t.thread().clone()).collect();
                let (stop, kicks) = (&stop, &kicks);
                s.spawn(move || {
                    while !stop.load(SeqCst) {
                        for t in &handles {
                            kicks.fetch_add(kick(t).into(), SeqCst);
                        }
                        thread::yield_now();
                    }
                });
                threads.into_iter().for_each(|t| t.join().unwrap());
                stop.store(true, SeqCst);
            });
            stop.store(false, SeqCst);
        };
        while kicks.load(SeqCst) < 100 {
            rt.run(round);
            progress(0);
        }
        let (made, taken) = m.into_inner().unwrap();
        assert_eq!(made, taken);
    });
}
