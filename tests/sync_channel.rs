//! Channels under preemption at the fastest slice: every message arrives once and in order, or comes back to its
//! sender; time-outs at the moment of the hand-off, kernel threads and other runtimes beside, handles and messages
//! that are dropped at the wrong moment.

mod support;

use reveille::sync::mpmc::{
    Receiver, RecvError, RecvTimeoutError, SendTimeoutError, Sender, channel, sync_channel,
};
use reveille::sync::mpsc;
use reveille::{Runtime, thread};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};
use support::*;

/// A message that is counted while it lives, with a number and some weight.
struct Message<'a> {
    from: usize,
    number: u64,
    weight: [u64; 5],
    alive: &'a AtomicUsize,
}

impl<'a> Message<'a> {
    fn new(from: usize, number: u64, alive: &'a AtomicUsize) -> Message<'a> {
        alive.fetch_add(1, SeqCst);
        Message { from, number, weight: [number ^ from as u64; 5], alive }
    }

    fn is_whole(&self) -> bool {
        self.weight == [self.number ^ self.from as u64; 5]
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        assert!(self.is_whole(), "dropped twice, or torn");
        self.weight = [!0; 5];
        self.alive.fetch_sub(1, SeqCst);
    }
}

fn make<T>(cap: Option<usize>) -> (Sender<T>, Receiver<T>) {
    cap.map_or_else(channel, sync_channel)
}

const CAPS: [Option<usize>; 5] = [None, Some(0), Some(1), Some(3), Some(100)];

/// What one receiver has seen: from each sender, growing numbers.
#[derive(Default)]
struct InOrder(HashMap<usize, u64>);

impl InOrder {
    fn see(&mut self, m: &Message<'_>) {
        assert!(m.is_whole());
        let last = self.0.insert(m.from, m.number);
        assert!(last.is_none_or(|l| l < m.number), "{last:?} before {} of {}", m.number, m.from);
    }
}

#[test]
fn every_message_arrives_once_and_in_order() {
    on_each("channels", |rt| {
        for cap in CAPS {
            let alive = AtomicUsize::new(0);
            let sum = AtomicU64::new(0);
            let (s, r) = make(cap);
            let seen: Vec<_> = (0..3).map(|_| Mutex::new(InOrder::default())).collect();
            let steps = 6000;
            among_hogs(rt, 6, steps, |i, n| {
                if i < 3 {
                    s.send(Message::new(i, n, &alive)).unwrap_or_else(|_| panic!("no receivers"));
                } else {
                    let m = r.recv().unwrap();
                    seen[i - 3].lock().unwrap().see(&m);
                    sum.fetch_add(m.number, SeqCst);
                }
            });
            let all = steps * factor();
            assert_eq!(sum.load(SeqCst), 3 * all * (all - 1) / 2, "{cap:?}");
            assert_eq!((alive.load(SeqCst), r.len()), (0, 0));
        }
    });
}

/// Both sides are in a hurry of about the time that a hand-off takes.
#[test]
fn time_outs_at_the_moment_of_the_hand_off() {
    on_each("time-outs", |rt| {
        for cap in [Some(0), Some(1), Some(2), None] {
            let (alive, sent, got) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
            let (s, r) = make(cap);
            let late = AtomicU64::new(0);
            among_hogs(rt, 8, 4000, |i, n| {
                let time = Duration::from_nanos((i as u64 * 7919 + n * 104_729) % 40_000);
                if i % 2 == 0 {
                    match s.send_timeout(Message::new(i, n, &alive), time) {
                        Ok(()) => sent.fetch_add(n + 1, SeqCst),
                        Err(SendTimeoutError::Timeout(m)) => {
                            assert!(m.number == n && m.from == i);
                            late.fetch_add(1, SeqCst)
                        }
                        Err(SendTimeoutError::Disconnected(_)) => panic!("nobody left"),
                    };
                } else {
                    match r.recv_timeout(time) {
                        Ok(m) => got.fetch_add(m.number + 1, SeqCst),
                        Err(RecvTimeoutError::Timeout) => late.fetch_add(1, SeqCst),
                        Err(RecvTimeoutError::Disconnected) => panic!("nobody left"),
                    };
                }
            });
            let both = late.load(SeqCst) > 0 && got.load(SeqCst) > 0;
            assert!(both || cap != Some(0), "nobody was late, or nobody was in time");
            got.fetch_add(r.try_iter().map(|m| m.number + 1).sum(), SeqCst);
            assert_eq!(sent.load(SeqCst), got.load(SeqCst), "{cap:?}");
            assert_eq!(alive.load(SeqCst), 0);
        }
    });
}

/// Kernel threads, this runtime and another one, at one channel.
#[test]
fn kernel_threads_and_another_runtime() {
    on_each("all kinds", |rt| {
        let other = fast(1).build().unwrap();
        for cap in [Some(0), Some(2), None] {
            let (alive, got) = (AtomicUsize::new(0), AtomicU64::new(0));
            let (s, r) = make(cap);
            let n = 5000 * factor();
            let send = |from| {
                (0..n).for_each(|i| assert!(s.send(Message::new(from, i, &alive)).is_ok()));
            };
            let recv = || {
                let mut order = InOrder::default();
                for _ in 0..n {
                    let m = r.recv().unwrap();
                    order.see(&m);
                    got.fetch_add(1, SeqCst);
                }
            };
            std::thread::scope(|t| {
                t.spawn(|| send(0));
                t.spawn(recv);
                t.spawn(|| {
                    other.run(|| thread::scope(|t| drop((t.spawn(|| send(1)), t.spawn(recv)))))
                });
                rt.run(|| thread::scope(|t| drop((t.spawn(|| send(2)), t.spawn(recv)))));
            });
            assert_eq!((got.load(SeqCst), alive.load(SeqCst)), (3 * n, 0));
        }
        other.shutdown().unwrap();
    });
}

/// Each round all who wait lose the other side; what they were to send comes back.
#[test]
fn the_last_handle_goes_while_others_wait() {
    on_each("disconnection", |rt| {
        for round in 0..60 * factor() {
            let alive = AtomicUsize::new(0);
            let back = AtomicUsize::new(0);
            rt.run(|| {
                thread::scope(|t| {
                    let (s, r) = make::<Message<'_>>(CAPS[1 + round as usize % 4]);
                    let (q, p) = make::<Message<'_>>(CAPS[round as usize % 5]);
                    for i in 0..50 {
                        let (s, p, alive, back) = (s.clone(), p.clone(), &alive, &back);
                        t.spawn(move || {
                            (0..5).for_each(|n| {
                                if let Err(e) = s.send(Message::new(i, n, alive)) {
                                    assert!(e.0.number == n && e.0.is_whole());
                                    back.fetch_add(1, SeqCst);
                                }
                            });
                        });
                        t.spawn(move || while p.recv().is_ok() {});
                    }
                    drop((s, p));
                    if round % 2 == 0 {
                        thread::yield_now();
                    }
                    let _some = r.recv_timeout(Duration::from_micros(round % 100));
                    q.send(Message::new(0, 0, &alive)).unwrap_or_else(|_| panic!("they wait"));
                    drop((q, r));
                });
            });
            assert_eq!(alive.load(SeqCst), 0);
            assert!(back.into_inner() > 0);
            progress(0);
        }
    });
}

/// A message whose drop uses the very channel that drops it.
#[test]
fn messages_that_send_and_receive_in_their_drop() {
    struct Busy(Option<(Sender<Busy>, Receiver<Busy>)>, &'static AtomicUsize);
    impl Drop for Busy {
        fn drop(&mut self) {
            self.1.fetch_add(1, SeqCst);
            if let Some((s, r)) = self.0.take() {
                let _ = s.try_send(Busy(None, self.1));
                let _ = r.try_recv();
                let _ = s.send_timeout(Busy(None, self.1), Duration::from_micros(20));
            }
        }
    }
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    on_each("busy drops", |rt| {
        for cap in CAPS {
            DROPS.store(0, SeqCst);
            rt.run(|| {
                for _ in 0..200 {
                    let (s, r) = make(cap);
                    let t = {
                        let (s, r) = (s.clone(), r.clone());
                        thread::spawn(move || {
                            let handles = Some((s.clone(), r));
                            let _ =
                                s.send_timeout(Busy(handles, &DROPS), Duration::from_micros(50));
                        })
                    };
                    let _ = r.recv_timeout(Duration::from_micros(50));
                    drop(r);
                    drop(s);
                    t.join().unwrap();
                }
            });
            assert!(DROPS.load(SeqCst) >= 200);
        }
    });
}

/// A panic in a message's drop goes to who dropped the receiver; all others go on.
#[test]
fn a_drop_that_panics() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 {
                std::panic::panic_any(ON_PURPOSE);
            }
        }
    }
    quiet_panics();
    on_each("bombs", |rt| {
        rt.run(|| {
            for cap in [None, Some(2)] {
                let (s, r) = make(cap);
                s.send(Bomb(true)).unwrap_or_else(|_| panic!());
                s.send(Bomb(false)).unwrap_or_else(|_| panic!());
                let waits = cap.map(|_| {
                    let s = s.clone();
                    thread::spawn(move || s.send(Bomb(false)).is_err())
                });
                thread::yield_now();
                let dropped = thread::spawn(move || drop(r)).join();
                assert_eq!(*dropped.unwrap_err().downcast::<&str>().unwrap(), ON_PURPOSE);
                assert!(waits.is_none_or(|t| t.join().unwrap()));
                assert!(s.send(Bomb(false)).is_err());
            }
        });
    });
}

#[test]
fn large_messages_and_those_without_a_size() {
    on_each("sizes", |rt| {
        for cap in CAPS {
            let (large, small) = (make::<[u64; 600]>(cap), make::<()>(cap));
            among_hogs(rt, 4, 300, |i, n| match i {
                0 => large.0.send([n; 600]).unwrap(),
                1 => assert_eq!(large.1.recv(), Ok([n; 600])),
                2 => small.0.send(()).unwrap(),
                _ => small.1.recv().unwrap(),
            });
        }
    });
}

/// The receiver of std's kind, in a thread that computes between the messages.
#[test]
fn one_receiver_of_many_senders() {
    on_each("mpsc", |rt| {
        for bound in [None, Some(0), Some(5)] {
            let total = rt.run(|| {
                let (r, threads): (_, Vec<_>) = match bound {
                    None => {
                        let (s, r) = mpsc::channel();
                        let send = |i: u64| {
                            let s = s.clone();
                            thread::spawn(move || (0..500).for_each(|n| s.send(i * n).unwrap()))
                        };
                        (r, (0..4).map(send).collect())
                    }
                    Some(bound) => {
                        let (s, r) = mpsc::sync_channel(bound);
                        let send = |i: u64| {
                            let s = s.clone();
                            thread::spawn(move || (0..500).for_each(|n| s.send(i * n).unwrap()))
                        };
                        (r, (0..4).map(send).collect())
                    }
                };
                let total =
                    r.iter().inspect(|_| (0..50).for_each(|_| std::hint::spin_loop())).sum::<u64>();
                threads.into_iter().for_each(|t| t.join().unwrap());
                total
            });
            assert_eq!(total, (1 + 2 + 3) * 500 * 499 / 2);
        }
    });
}

/// Never early; late by less than two slices among threads that compute.
#[test]
fn waits_with_a_limit_are_not_short() {
    let rt = Runtime::builder().workers(2).build().unwrap();
    rt.run(|| {
        let (_s, r) = channel::<()>();
        let (t, _q) = sync_channel::<()>(0);
        for us in [0, 1, 50, 3000] {
            let time = Duration::from_micros(us);
            let start = Instant::now();
            assert_eq!(r.recv_timeout(time), Err(RecvTimeoutError::Timeout));
            assert_eq!(t.send_timeout((), time), Err(SendTimeoutError::Timeout(())));
            assert!(start.elapsed() >= 2 * time);
            let when = Instant::now() + time;
            assert_eq!(r.recv_deadline(when), Err(RecvTimeoutError::Timeout));
            assert!(Instant::now() >= when);
        }
    });
    rt.shutdown().unwrap();
}

/// The oldest of several that wait is served first.
#[test]
fn first_come_first_served() {
    let rt = Runtime::builder().workers(1).build().unwrap();
    rt.run(|| {
        let (s, r) = sync_channel(0);
        let got = Mutex::new(Vec::new());
        thread::scope(|t| {
            for i in 0..20 {
                let (r, got) = (&r, &got);
                t.spawn(move || {
                    let n = r.recv().unwrap();
                    got.lock().unwrap().push((i, n));
                });
                thread::yield_now();
            }
            (0..20).for_each(|n| s.send(n).unwrap());
        });
        assert!(got.into_inner().unwrap().iter().all(|(i, n)| i == n));
        drop(s);
        assert_eq!(r.recv(), Err(RecvError));
    });
    rt.shutdown().unwrap();
}

/// A report of who waits names the channel.
#[test]
fn reports_say_that_it_is_a_channel() {
    let rt = Runtime::builder().workers(1).build().unwrap();
    let (s, r) = sync_channel::<u8>(0);
    let t = rt.spawn(move || r.recv());
    watched("a report", String::new, || {
        while !rt.waiting().iter().any(|w| w.waits_for == reveille::WaitsFor::Channel) {
            std::thread::yield_now();
        }
    });
    s.send(1).unwrap();
    assert_eq!(t.join().unwrap(), Ok(1));
    rt.shutdown().unwrap();
}
