//! Selecting: no message lost or doubled whatever is selected, times out, is given up or panics meanwhile; fair among
//! what is ready; timers.

mod support;

use reveille::sync::mpmc::{
    self, Receiver, RecvError, Select, SendError, Sender, channel, sync_channel,
};
use reveille::{Runtime, select, thread};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};
use support::*;

type Channel = (Sender<Number>, Receiver<Number>);

/// A message that is counted while it lives; too large to be kept inside an operation.
struct Number(u64, [u64; 5]);

static ALIVE: AtomicUsize = AtomicUsize::new(0);

impl Number {
    fn new(n: u64) -> Number {
        ALIVE.fetch_add(1, SeqCst);
        Number(n, [n; 5])
    }

    fn get(&self) -> u64 {
        assert_eq!(self.1, [self.0; 5]);
        self.0
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        self.get();
        self.1 = [!self.0; 5];
        ALIVE.fetch_sub(1, SeqCst);
    }
}

fn channels() -> Vec<Channel> {
    vec![sync_channel(0), sync_channel(0), sync_channel(1), sync_channel(4), channel()]
}

/// One select over some of the channels, in the directions that `random` says. Adds what was sent, and what was
/// received.
fn select_once(all: &[Channel], random: &mut Random, sent: &AtomicU64, got: &AtomicU64) {
    let time = Duration::from_nanos(random.below(30_000) as u64);
    let mut select = Select::new();
    let mut cases = Vec::new();
    for _ in 0..1 + random.below(4) {
        let i = random.below(all.len());
        let sends = random.below(2) == 0;
        let index = if sends { select.send(&all[i].0) } else { select.recv(&all[i].1) };
        assert_eq!(index, cases.len());
        cases.push((i, sends));
    }
    let oper = match random.below(4) {
        0 => select.try_select().ok(),
        _ => select.select_timeout(time).ok(),
    };
    let Some(oper) = oper else { return };
    drop(select);
    if random.below(8) == 0 {
        thread::yield_now();
    }
    let (i, sends) = cases[oper.index()];
    let n = random.next() >> 40;
    if !sends {
        got.fetch_add(oper.recv(&all[i].1).unwrap().get(), SeqCst);
    } else if random.below(16) == 0 {
        // What has been chosen and is not done is as if it had never been chosen.
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _oper = oper;
            std::panic::panic_any(ON_PURPOSE);
        }));
        assert!(dropped.is_err());
    } else {
        sent.fetch_add(n, SeqCst);
        oper.send(&all[i].0, Number::new(n)).unwrap_or_else(|_| panic!("nobody left"));
    }
}

/// Selects in all directions, plain operations with limits beside, on reveille threads and kernel threads.
#[test]
fn nothing_is_lost_or_doubled() {
    quiet_panics();
    on_each("select", |rt| {
        let all = channels();
        let (sent, got) = (AtomicU64::new(0), AtomicU64::new(0));
        let step = |i: usize, n: u64| {
            let mut random = Random::new(i as u64 * 1_000_003 + n);
            let (s, r) = &all[random.below(all.len())];
            let time = Duration::from_nanos(random.below(30_000) as u64);
            match random.below(6) {
                0 => {
                    let n = random.next() >> 40;
                    if s.send_timeout(Number::new(n), time).is_ok() {
                        sent.fetch_add(n, SeqCst);
                    }
                }
                1 => {
                    if let Ok(m) = r.recv_timeout(time) {
                        got.fetch_add(m.get(), SeqCst);
                    }
                }
                _ => select_once(&all, &mut random, &sent, &got),
            }
        };
        std::thread::scope(|t| {
            t.spawn(|| (0..3000 * factor()).for_each(|n| step(100, n)));
            among_hogs(rt, 8, 3000, step);
        });
        let left: u64 = all.iter().flat_map(|(_, r)| r.try_iter()).map(|m| m.get()).sum();
        assert_eq!(sent.load(SeqCst), got.load(SeqCst) + left);
        // No place is still promised: each channel takes as many as it holds.
        for (s, r) in &all {
            let cap = r.capacity().unwrap_or(1000);
            assert!((0..cap).all(|n| s.try_send(Number::new(n as u64)).is_ok()));
            assert!(r.capacity().is_none() || s.try_send(Number::new(0)).is_err());
        }
        drop(all);
        assert_eq!(ALIVE.load(SeqCst), 0);
    });
}

/// Without limits: as many are sent as received, so every select comes back.
#[test]
fn selects_without_limits_all_come_back() {
    on_each("select for ever", |rt| {
        for make in [|| sync_channel(0), || sync_channel(1), channel] {
            let all: [Channel; 3] = [make(), make(), make()];
            let (sent, got) = (AtomicU64::new(0), AtomicU64::new(0));
            among_hogs(rt, 6, 2000, |i, n| {
                let mut select = Select::new();
                if i % 2 == 0 {
                    all.iter().for_each(|(s, _)| _ = select.send(s));
                    let oper = select.select();
                    let at = oper.index();
                    oper.send(&all[at].0, Number::new(n)).unwrap_or_else(|_| panic!("nobody left"));
                    sent.fetch_add(n, SeqCst);
                } else {
                    all.iter().for_each(|(_, r)| _ = select.recv(r));
                    let oper = select.select();
                    let at = oper.index();
                    got.fetch_add(oper.recv(&all[at].1).unwrap().get(), SeqCst);
                }
            });
            assert_eq!(sent.load(SeqCst), got.load(SeqCst));
            assert_eq!(ALIVE.load(SeqCst), 0);
        }
    });
}

/// Who is told that something is ready finds it, if nobody else is there to take it.
#[test]
fn ready_means_ready() {
    on_each("ready", |rt| {
        let all: Vec<(Sender<u64>, Receiver<u64>)> =
            vec![sync_channel(0), sync_channel(1), channel()];
        let n = 2000 * factor();
        let sum = AtomicU64::new(0);
        rt.run(|| {
            thread::scope(|t| {
                for (s, _) in &all {
                    t.spawn(move || {
                        for i in 0..n {
                            let mut select = Select::new();
                            select.send(s);
                            // Without capacity nothing is ready: the receiver waits for news, not for a message.
                            let _ready = select.ready_timeout(Duration::from_micros(i % 50));
                            s.send(i).unwrap();
                        }
                    });
                }
                t.spawn(|| {
                    let mut select = Select::new();
                    all.iter().for_each(|(_, r)| _ = select.recv(r));
                    let mut left = 3 * n;
                    while left > 0 {
                        if let Ok(m) = all[select.ready()].1.try_recv() {
                            sum.fetch_add(m, SeqCst);
                            left -= 1;
                        }
                    }
                });
            });
        });
        assert_eq!(sum.load(SeqCst), 3 * n * (n - 1) / 2);
    });
}

#[test]
fn each_that_is_ready_has_the_same_chance() {
    let all: Vec<_> = (0..4).map(|_| channel()).collect();
    let mut counts = [0u32; 4];
    for (s, _) in &all[..3] {
        (0..30_000).for_each(|i| s.send(i).unwrap());
    }
    let mut select = Select::new();
    all.iter().for_each(|(_, r)| _ = select.recv(r));
    for _ in 0..30_000 {
        let oper = select.select();
        let i = oper.index();
        assert!(oper.recv(&all[i].1).is_ok());
        counts[i] += 1;
    }
    assert!(counts[3] == 0 && counts[..3].iter().all(|c| c.abs_diff(10_000) < 500), "{counts:?}");
    let mut select = Select::new_biased();
    let only = select.recv(&all[2].1);
    select.recv(&all[0].1);
    for _ in 0..100 {
        let oper = select.select();
        assert_eq!(oper.index(), only);
        assert!(oper.recv(&all[2].1).is_ok());
    }
}

/// A receiver that was given to a select which then did not send gets the next message.
#[test]
fn a_receiver_is_given_back() {
    let rt = Runtime::builder().workers(1).build().unwrap();
    quiet_panics();
    rt.run(|| {
        let (s, r) = sync_channel(0);
        let t = thread::spawn(move || r.recv());
        thread::yield_now();
        let mut select = Select::new();
        select.send(&s);
        let given_up = thread::scope(|t| {
            let oper = select.try_select().unwrap();
            let _ = t;
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _oper = oper;
                std::panic::panic_any(ON_PURPOSE)
            }))
        });
        assert!(given_up.is_err());
        s.send(5).unwrap();
        assert_eq!(t.join().unwrap(), Ok(5));
        // Dropped without a panic, it panics itself.
        let (s, _r) = sync_channel::<i32>(1);
        let mut select = Select::new();
        select.send(&s);
        let oper = select.select();
        let e = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(oper))).unwrap_err();
        assert!(e.downcast_ref::<&str>().unwrap().contains("without completing"));
        assert_eq!(s.try_send(1), Ok(()));
    });
    rt.shutdown().unwrap();
}

#[test]
#[should_panic(expected = "wasn't selected")]
fn completing_with_another_receiver() {
    let ((s, r), (_t, q)) = (channel::<u8>(), channel::<u8>());
    s.send(1).unwrap();
    let mut select = Select::new();
    select.recv(&r);
    let _message = select.select().recv(&q);
}

#[test]
#[should_panic(expected = "no operations")]
fn waiting_for_nothing() {
    let _never = Select::new().select();
}

/// Goes on when the last handle of either side goes.
#[test]
fn what_is_gone_is_ready() {
    on_each("gone", |rt| {
        rt.run(|| {
            for _ in 0..200 * factor() {
                let ((s, r), (t, q)) = (channel::<u8>(), sync_channel::<u8>(0));
                let waits = thread::spawn(move || {
                    select! {
                        recv(r) -> m => assert_eq!(m, Err(RecvError)),
                        send(t, 1) -> e => assert_eq!(e, Err(SendError(1))),
                    }
                });
                thread::yield_now();
                drop(s);
                drop(q);
                waits.join().unwrap();
            }
        });
    });
}

/// Moments come when they are due, in a select and alone, on one worker among hogs.
#[test]
fn timers() {
    on_each("timers", |rt| {
        among_hogs(rt, 3, 20, |i, _| {
            let (start, time) = (Instant::now(), Duration::from_micros(300 * i as u64));
            let (then, ticks) = (mpmc::after(time), mpmc::tick(Duration::from_micros(200)));
            let (_s, nothing) = sync_channel::<u8>(0);
            let mut count = 0;
            loop {
                select! {
                    recv(then) -> at => break assert!(at.unwrap() >= start + time),
                    recv(ticks) -> _ => count += 1,
                    recv(nothing) -> m => panic!("{m:?}"),
                }
            }
            assert!(start.elapsed() >= time && count <= start.elapsed().as_micros() / 200);
            assert!(
                then.try_recv().is_err() && then.recv_timeout(Duration::from_micros(10)).is_err()
            );
            assert!(ticks.recv().unwrap() >= start);
        });
    });
}

/// A chain of filters that grows: McIlroy's sieve of primes.
#[test]
fn a_sieve_of_primes() {
    on_each("sieve", |rt| {
        let primes = rt.run(|| {
            let (s, mut r) = sync_channel(0);
            drop(thread::spawn(move || (2..).all(|n: u32| s.send(n).is_ok())));
            let mut primes = Vec::new();
            for _ in 0..60 {
                let prime = r.recv().unwrap();
                primes.push(prime);
                let (t, q) = sync_channel(0);
                let from = std::mem::replace(&mut r, q);
                let filter =
                    move || from.iter().filter(|n| n % prime != 0).all(|n| t.send(n).is_ok());
                drop(thread::spawn(filter));
            }
            primes
        });
        assert_eq!((primes[0], primes[59]), (2, 281));
    });
}
