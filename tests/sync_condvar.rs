//! Condition variables: no notification is lost, none wakes two, whoever notifies from wherever.

mod support;

use reveille::sync::raw::RawCondvar;
use reveille::sync::{Condvar, FairMutex, Mutex};
use reveille::{Runtime, thread};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};
use support::*;

/// A bounded buffer of tokens: each that is put in is taken once.
struct Buffer {
    inside: Mutex<(usize, u64, u64)>,
    not_empty: Condvar,
    not_full: Condvar,
}

impl Buffer {
    const ROOM: usize = 3;

    fn new() -> Buffer {
        Buffer {
            inside: Mutex::new((0, 0, 0)),
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        }
    }

    fn put(&self, outside: bool) {
        let mut g =
            self.not_full.wait_while(self.inside.lock().unwrap(), |b| b.0 == Self::ROOM).unwrap();
        g.0 += 1;
        g.1 += 1;
        if outside {
            drop(g);
            self.not_empty.notify_one();
        } else {
            self.not_empty.notify_one();
        }
    }

    /// With time-outs that are about as long as the wait.
    fn take(&self, patience: Duration) {
        let mut g = self.inside.lock().unwrap();
        while g.0 == 0 {
            g = self.not_empty.wait_timeout(g, patience).unwrap().0;
        }
        g.0 -= 1;
        g.2 += 1;
        self.not_full.notify_one();
    }
}

#[test]
fn a_bounded_buffer_loses_nothing() {
    on_each("buffer", |rt| {
        let b = Buffer::new();
        among_hogs(rt, 8, 1500, |i, n| {
            if i % 2 == 0 {
                b.put(n % 2 == 0);
            } else {
                b.take(if n % 3 == 0 { Duration::from_micros(n % 70) } else { Duration::MAX });
            }
        });
        let (left, put, taken) = b.inside.into_inner().unwrap();
        assert_eq!((left, put, taken), (0, 6000 * factor(), 6000 * factor()));
    });
}

#[test]
fn kernel_threads_take_part() {
    on_each("buffer with kernel threads", |rt| {
        let b = Buffer::new();
        let n = 1500 * factor();
        std::thread::scope(|s| {
            s.spawn(|| (0..n).for_each(|i| b.put(i % 2 == 0)));
            s.spawn(|| (0..n).for_each(|i| b.take(Duration::from_micros(i % 90))));
            among_hogs(rt, 4, 1500, |i, n| {
                if i % 2 == 0 { b.put(n % 2 == 1) } else { b.take(Duration::from_millis(1)) }
            });
        });
        let (left, put, taken) = b.inside.into_inner().unwrap();
        assert_eq!((left, put, taken), (0, 3 * n, 3 * n));
    });
}

/// Everybody waits for the next round, again and again; the notifier holds the mutex or not.
#[test]
fn notify_all_reaches_all() {
    on_each("rounds", |rt| {
        const WAITERS: u64 = 7;
        let rounds = 400 * factor();
        let m = FairMutex::new_fair((0u64, 0u64));
        let (go, back) = (Condvar::new(), Condvar::new());
        rt.run(|| {
            thread::scope(|s| {
                for _ in 0..WAITERS {
                    s.spawn(|| {
                        let mut g = m.lock().unwrap();
                        for round in 1..=rounds {
                            g = go.wait_while(g, |x| x.0 < round).unwrap();
                            g.1 += 1;
                            if g.1 == WAITERS * round {
                                back.notify_one();
                            }
                        }
                    });
                }
                for round in 1..=rounds {
                    let mut g = m.lock().unwrap();
                    g.0 = round;
                    if round % 2 == 0 {
                        go.notify_all();
                    } else {
                        drop(g);
                        go.notify_all();
                        g = m.lock().unwrap();
                    }
                    drop(back.wait_while(g, |x| x.1 < WAITERS * round).unwrap());
                    progress(0);
                }
            });
        });
        assert_eq!(m.into_inner().unwrap(), (rounds, WAITERS * rounds));
    });
}

/// Notifications are counted: as many waiters come back without a time-out as were notified.
#[test]
fn each_notification_wakes_one_that_did_not_time_out() {
    use lock_api::{RawCondvar as _, RawMutex as _};
    on_each("counted", |rt| {
        static CV: RawCondvar = RawCondvar::INIT;
        static M: reveille::sync::raw::RawMutex = reveille::sync::raw::RawMutex::INIT;
        let (notified, came, timed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        among_hogs(rt, 6, 600, |i, n| {
            // SAFETY: locked and unlocked in pairs.
            unsafe {
                if i < 4 {
                    let mut held = M.lock();
                    let patience = Duration::from_nanos((n * 7919) % 80_000);
                    let out = lock_api::RawCondvarTimed::wait_for(&CV, &M, &mut held, &patience);
                    if out { &timed } else { &came }.fetch_add(1, SeqCst);
                    M.unlock(held);
                } else {
                    let inside = (n % 2 == 0).then(|| M.lock());
                    let woken = if n % 5 == 0 { CV.notify_all() } else { CV.notify_one().into() };
                    notified.fetch_add(woken as u64, SeqCst);
                    if let Some(held) = inside {
                        M.unlock(held);
                    }
                    thread::yield_now();
                }
            }
        });
        assert_eq!(came.load(SeqCst), notified.load(SeqCst), "timed out: {}", timed.load(SeqCst));
        assert_eq!(came.load(SeqCst) + timed.load(SeqCst), 4 * 600 * factor());
    });
}

/// Notified from a destructor, at the end of a thread, and while it panics.
#[test]
fn notified_from_drop() {
    struct Tells<'a>(&'a Mutex<u32>, &'a Condvar);
    impl Drop for Tells<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap_or_else(|e| e.into_inner()) += 1;
            self.1.notify_all();
        }
    }
    on_each("from drop", |rt| {
        let (m, cv) = (Mutex::new(0), Condvar::new());
        rt.run(|| {
            thread::scope(|s| {
                let waiter = s.spawn(|| *cv.wait_while(m.lock().unwrap(), |n| *n < 20).unwrap());
                for i in 0..20 {
                    let tells = Tells(&m, &cv);
                    let t = s.spawn(move || {
                        let _tells = tells;
                        if i % 4 == 0 {
                            std::panic::resume_unwind(Box::new(()));
                        }
                    });
                    let _ = t.join();
                }
                assert_eq!(waiter.join().unwrap(), 20);
            });
        });
    });
}

/// Not early; and beside hogs not for ever.
#[test]
fn time_outs_are_not_early() {
    let _alone = alone();
    for workers in 1..=2 {
        let rt = Runtime::builder().workers(workers).build().unwrap();
        watched("not early", String::new, || {
            let (m, cv) = (Mutex::new(()), Condvar::new());
            among_hogs(&rt, 4, 50, |i, n| {
                let dur = Duration::from_micros((i as u64 * 131 + n * 17) % 900);
                let start = Instant::now();
                let (_g, out) = cv.wait_timeout(m.lock().unwrap(), dur).unwrap();
                assert!(out.timed_out() && start.elapsed() >= dur);
            });
        });
        rt.shutdown().unwrap();
    }
}

/// One condition variable, several mutexes: each waiter comes back with its own.
#[test]
fn several_mutexes() {
    on_each("several mutexes", |rt| {
        let ms: Vec<Mutex<u64>> = (0..3).map(|_| Mutex::new(0)).collect();
        let cv = Condvar::new();
        let rounds = 200 * factor();
        rt.run(|| {
            thread::scope(|s| {
                let waiters: Vec<_> = ms
                    .iter()
                    .map(|m| {
                        s.spawn(|| {
                            let mut g = m.lock().unwrap();
                            for round in 1..=rounds {
                                g = cv.wait_while(g, |n| *n < round).unwrap();
                            }
                        })
                    })
                    .collect();
                for round in 1..=rounds {
                    for m in &ms {
                        *m.lock().unwrap() = round;
                        cv.notify_all();
                    }
                }
                waiters.into_iter().for_each(|t| t.join().unwrap());
            });
        });
    });
}
