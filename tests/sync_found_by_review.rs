//! Faults that a review of the locks found, each with the interleaving that showed it.

mod support;

use reveille::sync::Mutex;
use reveille::thread;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Duration;
use support::*;

/// A waiter that has been woken, and is coming, finds that it would wait for ever, and panics: the mutex is not kept for
/// it. On one worker: T holds L and waits for m; R lets go of m (T comes), takes it again and waits for L.
#[test]
fn one_that_comes_and_panics_leaves_the_mutex() {
    let _alone = alone();
    let rt =
        reveille::Runtime::builder().workers(1).time_slice(Duration::from_secs(5)).build().unwrap();
    watched("coming", String::new, || {
        let (m, l) = (Mutex::new(0), Mutex::new(0));
        rt.run(|| {
            thread::scope(|s| {
                let first = m.lock().unwrap();
                let t = s.spawn(|| {
                    let _l = l.lock().unwrap_or_else(|e| e.into_inner());
                    let _m = m.lock().unwrap_or_else(|e| e.into_inner());
                });
                thread::yield_now();
                drop(first);
                let again = m.lock().unwrap();
                let waits = l.lock();
                drop(waits);
                drop(again);
                assert!(t.join().is_err(), "a deadlock that is not reported");
            });
            for _ in 0..200 {
                let _m = m.lock().unwrap_or_else(|e| e.into_inner());
            }
        });
    });
    rt.shutdown().unwrap();
}

/// A chain of waiters is read link by link; one whose first owner has let go meanwhile is none.
#[test]
fn no_deadlock_is_seen_where_there_is_none() {
    on_each("no deadlock", |rt| {
        let (m1, m3) = (Mutex::new(0u64), Mutex::new(0u64));
        until_preempted(rt, 4, 10, |i, _| {
            if i % 2 == 0 {
                // Holds one, then the other, never both.
                *m1.lock().unwrap() += 1;
                *m3.lock().unwrap() += 1;
            } else {
                // Always in this order.
                let _outer = m3.lock().unwrap();
                *m1.lock().unwrap() += 1;
            }
        });
    });
}

/// setgid(2) runs a handler on each worker with the kernel thread's own block in place; an alarm that rings then must not
/// be lost, or the sleepers of that worker never wake.
#[test]
fn alarms_beside_setgid() {
    let _alone = alone();
    let rt = reveille::Runtime::builder().workers(2).build().unwrap();
    watched(
        "setgid",
        || format!("{:?}", rt.stats()),
        || {
            let (stop, sets) = (AtomicBool::new(false), AtomicU64::new(0));
            std::thread::scope(|s| {
                s.spawn(|| {
                    while !stop.load(SeqCst) {
                        // SAFETY: the group that it has already.
                        assert_eq!(unsafe { libc::setgid(libc::getgid()) }, 0);
                        sets.fetch_add(1, SeqCst);
                    }
                });
                rt.run(|| {
                    thread::scope(|s| {
                        for i in 0..4u64 {
                            let sets = &sets;
                            s.spawn(move || {
                                let mut slept = 0u64;
                                while slept < 5000 * factor() || sets.load(SeqCst) < 2000 {
                                    thread::sleep(Duration::from_micros(20 + i));
                                    slept += 1;
                                    progress(0);
                                }
                            });
                        }
                    });
                });
                stop.store(true, SeqCst);
            });
        },
    );
    rt.shutdown().unwrap();
}
