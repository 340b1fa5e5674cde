//! `sync::os` on kernel threads: mutex and condvar in all three generations. Whatever is notified is counted:
//! a token for each, and every token must be taken; a wake-up that is lost shows as a hang, which the watchdog
//! reports.
#![allow(unsafe_code)]

mod support;

use reveille::sync::os::{Condvar, Generation, Mutex, MutexGuard, Plain, Requeue, WakeOp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use support::*;

/// Runs the same test on each generation, watched.
macro_rules! on_all_generations {
    ($($test:ident)*) => {
        $(mod $test {
            use super::*;

            #[test]
            fn plain() {
                watched(stringify!($test), String::new, crate::$test::<Plain>);
            }
            #[test]
            fn requeue() {
                watched(stringify!($test), String::new, crate::$test::<Requeue>);
            }
            #[test]
            fn wake_op() {
                watched(stringify!($test), String::new, crate::$test::<WakeOp>);
            }
        })*
    };
}

mod each {
    use super::*;

    on_all_generations! {
        every_token_is_taken notify_all_reaches_all waits_end_on_time timeouts_race_with_notify
        two_mutexes_are_refused handlers_interrupt_waits
    }
}

/// What the mutex guards: tokens given, tokens taken, waiters that are inside.
#[derive(Default)]
struct State {
    tokens: u64,
    taken: u64,
    inside: u64,
    done: bool,
}

fn shared<G: Generation>() -> (Mutex<State>, Condvar<G>) {
    (Mutex::new(State::default()), Condvar::new())
}

/// Notifies one, with the mutex held or after it.
fn notify<G: Generation>(condvar: &Condvar<G>, state: MutexGuard<'_, State>, held: bool) {
    let kept = if held { Some(state) } else { None };
    condvar.notify_one();
    drop(kept);
}

fn every_token_is_taken<G: Generation>() {
    let each = 20_000 * factor();
    for held in [false, true] {
        let (mutex, condvar) = shared::<G>();
        thread::scope(|s| {
            let takers: Vec<_> = (0..3)
                .map(|_| {
                    s.spawn(|| {
                        loop {
                            let mut state = mutex.lock();
                            condvar.wait_while(&mut state, |s| s.tokens == 0 && !s.done);
                            if state.tokens == 0 {
                                break;
                            }
                            state.tokens -= 1;
                            state.taken += 1;
                        }
                    })
                })
                .collect();
            let givers: Vec<_> = (0..2)
                .map(|_| {
                    s.spawn(|| {
                        for i in 0..each {
                            let mut state = mutex.lock();
                            state.tokens += 1;
                            notify(&condvar, state, held);
                            // Lets the takers run dry now and then, so that they sleep.
                            if i % 16 == 0 {
                                while mutex.lock().tokens > 0 {
                                    thread::yield_now();
                                }
                            }
                        }
                    })
                })
                .collect();
            givers.into_iter().for_each(|g| g.join().unwrap());
            // No further notify: each token has had its own.
            while mutex.lock().tokens > 0 {
                thread::yield_now();
            }
            mutex.lock().done = true;
            condvar.notify_all();
            takers.into_iter().for_each(|t| t.join().unwrap());
        });
        assert_eq!(mutex.lock().taken, 2 * each);
    }
}

fn notify_all_reaches_all<G: Generation>() {
    const WAITERS: u64 = 8;
    let rounds = 2_000 * factor();
    for held in [false, true] {
        let mutex = Mutex::new((0u64, 0u64));
        let (go, arrived) = (Condvar::<G>::new(), Condvar::<G>::new());
        thread::scope(|s| {
            for _ in 0..WAITERS {
                s.spawn(|| {
                    for round in 1..=rounds {
                        let mut at = mutex.lock();
                        at.1 += 1;
                        arrived.notify_one();
                        go.wait_while(&mut at, |at| at.0 < round);
                    }
                });
            }
            for round in 1..=rounds {
                let mut at = mutex.lock();
                arrived.wait_while(&mut at, |at| at.1 < WAITERS * round);
                at.0 = round;
                if held {
                    go.notify_all();
                    drop(at);
                } else {
                    drop(at);
                    go.notify_all();
                }
            }
        });
    }
}

fn waits_end_on_time<G: Generation>() {
    let (mutex, condvar) = shared::<G>();
    let mut state = mutex.lock();
    let begun = Instant::now();
    for ms in [0, 1, 20] {
        let deadline = Instant::now() + Duration::from_millis(ms);
        assert!(condvar.wait_until(&mut state, deadline).timed_out());
        assert!(Instant::now() >= deadline, "too early");
    }
    assert!(condvar.wait_for(&mut state, Duration::ZERO).timed_out());
    assert!(begun.elapsed() >= Duration::from_millis(21));
    assert!(mutex.try_lock().is_none(), "the wait gave the mutex back");
    drop(state);
    // A time that cannot be told is none.
    thread::scope(|s| {
        s.spawn(|| {
            let mut state = mutex.lock();
            while !state.done {
                let _ = condvar.wait_for(&mut state, Duration::MAX);
            }
        });
        mutex.lock().done = true;
        condvar.notify_one();
    });
    // And the mutex's own time limits.
    let held = mutex.lock();
    thread::scope(|s| {
        s.spawn(|| {
            let begun = Instant::now();
            assert!(mutex.try_lock_for(Duration::from_millis(5)).is_none());
            assert!(begun.elapsed() >= Duration::from_millis(5));
        });
    });
    drop(held);
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
}

/// Takers that give up when their time is over, against notifies that come just then. A notify must not go to one
/// who gives up: the last taker waits without a limit, and would sleep for ever.
fn timeouts_race_with_notify<G: Generation>() {
    let timeouts = AtomicU64::new(0);
    let rounds = 2_000 * factor();
    for held in [false, true] {
        let (mutex, condvar) = shared::<G>();
        let over = AtomicBool::new(false);
        thread::scope(|s| {
            for n in 0..2u64 {
                let (mutex, condvar, over, timeouts) = (&mutex, &condvar, &over, &timeouts);
                s.spawn(move || {
                    let mut micros = 0;
                    while !over.load(SeqCst) {
                        let mut state = mutex.lock();
                        micros = (micros + 7 + n) % 90;
                        let waited = condvar.wait_for(&mut state, Duration::from_micros(micros));
                        if waited.timed_out() {
                            timeouts.fetch_add(1, SeqCst);
                        } else if state.tokens > 0 {
                            // Notified, or so it says, of what it does not want: passed on.
                            drop(state);
                            condvar.notify_one();
                        }
                    }
                });
            }
            s.spawn(|| {
                loop {
                    let mut state = mutex.lock();
                    state.inside += 1;
                    condvar.wait_while(&mut state, |s| s.tokens == 0 && !s.done);
                    if state.done {
                        break;
                    }
                    state.tokens -= 1;
                    state.inside -= 1;
                }
            });
            let (mut round, before) = (0, timeouts.load(SeqCst));
            while round < rounds || timeouts.load(SeqCst) - before < rounds / 10 {
                round += 1;
                while mutex.lock().inside == 0 {
                    thread::yield_now();
                }
                let mut state = mutex.lock();
                state.tokens += 1;
                notify(&condvar, state, held);
                while mutex.lock().tokens > 0 {
                    thread::yield_now();
                }
            }
            over.store(true, SeqCst);
            mutex.lock().done = true;
            condvar.notify_all();
        });
    }
}

fn two_mutexes_are_refused<G: Generation>() {
    let (one, condvar) = shared::<G>();
    let two = Mutex::new(0);
    thread::scope(|s| {
        let waiter = s.spawn(|| {
            let mut state = one.lock();
            state.inside = 1;
            condvar.wait_while(&mut state, |s| !s.done);
        });
        while one.lock().inside == 0 {
            thread::yield_now();
        }
        let other = s.spawn(|| condvar.wait(&mut two.lock()));
        let panic = other.join().unwrap_err();
        assert!(panic.downcast_ref::<&str>().unwrap().contains("two mutexes"));
        assert!(two.try_lock().is_some(), "the panic left the mutex locked");
        one.lock().done = true;
        condvar.notify_all();
        waiter.join().unwrap();
    });
    // Free again, for another mutex.
    let _ = condvar.wait_for(&mut two.lock(), Duration::from_micros(1));
}

/// Signals end the kernel's waits early; nobody notices.
fn handlers_interrupt_waits<G: Generation>() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: a handler that does nothing, without SA_RESTART.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
    }
    let (mutex, condvar) = shared::<G>();
    let waiter_id = AtomicU64::new(0);
    thread::scope(|s| {
        let waiter = s.spawn(|| {
            // SAFETY: asks only.
            waiter_id.store(unsafe { libc::pthread_self() }, SeqCst);
            let mut state = mutex.lock();
            state.inside = 1;
            let deadline = Instant::now() + Duration::from_millis(30);
            while !condvar.wait_until(&mut state, deadline).timed_out() {}
            assert!(Instant::now() >= deadline, "a signal ended the wait too early");
            condvar.wait_while(&mut state, |s| !s.done);
        });
        while mutex.lock().inside == 0 {
            thread::yield_now();
        }
        for _ in 0..500 {
            // SAFETY: the thread waits for `done`, so it is there.
            assert_eq!(unsafe { libc::pthread_kill(waiter_id.load(SeqCst), libc::SIGUSR2) }, 0);
            thread::sleep(Duration::from_micros(100));
        }
        mutex.lock().done = true;
        condvar.notify_one();
        waiter.join().unwrap();
    });
}
