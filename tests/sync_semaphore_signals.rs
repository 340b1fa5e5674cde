//! A storm of signals whose handler releases a semaphore: wherever it comes - in user code, in the runtime with a queue
//! half changed, on a kernel thread inside the lot, on an idle worker - no permit is lost and whoever waits for one
//! gets it.
//!
//! Cures guarded here: `lot::deferred`, what handlers leave on kernel threads (`tls::due`), an alarm that a handler
//! armed while it was being armed (`preempt::alarm`).
#![allow(unsafe_code)]

mod support;

use reveille::sync::Semaphore;
use reveille::{Runtime, thread};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::*;

/// What the handler gives to, in turn: one that is waited for, and one on which the interrupted threads themselves work.
static EVENTS: Semaphore = Semaphore::new(0);
static BUSY: Semaphore = Semaphore::new(2);
/// Events that handlers have given, and that have been taken, since the process began.
static RELEASED: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);

fn take() {
    EVENTS.acquire().forget();
    TAKEN.fetch_add(1, SeqCst);
}

extern "C" fn releases(_: c_int) {
    RELEASED.fetch_add(1, SeqCst);
    EVENTS.release();
    if let Some(permit) = BUSY.try_acquire() {
        drop(permit);
    }
}

fn install(flags: c_int) {
    // SAFETY: a handler of this process's tests alone; it does what the documentation allows.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = releases as *const () as usize;
        action.sa_flags = libc::SA_RESTART | flags;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
}

/// The kernel threads of this process now, this one excepted.
fn kernel_threads() -> Vec<c_int> {
    // SAFETY: no arguments.
    let me = unsafe { libc::syscall(libc::SYS_gettid) } as c_int;
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.map(|t| t.unwrap().file_name().to_str().unwrap().parse().unwrap());
    ids.filter(|id| *id != me).collect()
}

/// Signals all kernel threads in `to`, one after the other, until `left` others have ended.
fn shoot(to: &[c_int], over: &AtomicBool, pause: Duration) {
    let mut n = 0;
    while !over.load(SeqCst) {
        let at = to[n % to.len()];
        n += 1;
        // SAFETY: a signal to one of our threads, or an error.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), at, libc::SIGUSR1) };
        let next = Instant::now() + pause;
        while Instant::now() < next {
            std::hint::spin_loop();
        }
    }
}

/// Threads that wait for events, threads that use the lot all the time, kernel threads that do both; signals to all of
/// them.
fn storm(rt: &Runtime, events: u64) {
    let events = events * factor();
    let (got, over, shot) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let (mine, gate) = (Semaphore::new(1), AtomicUsize::new(0));
    let works = |random: &mut Random| {
        // Its own waiting in the lot, contended, with time-outs.
        let permit = match random.below(3) {
            0 => mine.acquire_timeout(Duration::from_micros(random.below(90) as u64)),
            1 => BUSY.acquire_timeout(Duration::from_micros(random.below(90) as u64)),
            _ => Some(BUSY.acquire()),
        };
        drop(permit);
    };
    let waits = || {
        while got.load(SeqCst) < events {
            if let Some(permit) = EVENTS.acquire_timeout(Duration::from_millis(200)) {
                permit.forget();
                TAKEN.fetch_add(1, SeqCst);
                got.fetch_add(1, SeqCst);
                progress(0);
            }
        }
    };
    std::thread::scope(|kernels| {
        for k in 0..2 {
            let (over, gate, works) = (&over, &gate, &works);
            kernels.spawn(move || {
                gate.fetch_add(1, SeqCst);
                let mut random = Random::new(77 + k);
                while !over.load(SeqCst) {
                    works(&mut random);
                    progress(1);
                }
            });
        }
        kernels.spawn(|| {
            gate.fetch_add(1, SeqCst);
            waits();
        });
        while gate.load(SeqCst) < 3 {
            std::thread::yield_now();
        }
        let (targets, shot) = (kernel_threads(), &shot);
        let shoots = kernels.spawn(move || shoot(&targets, shot, Duration::from_micros(40)));
        rt.run(|| {
            thread::scope(|s| {
                for _ in 0..2 {
                    s.spawn(waits);
                }
                for t in 0..4 {
                    let (over, works) = (&over, &works);
                    s.spawn(move || {
                        let mut random = Random::new(t);
                        while !over.load(SeqCst) {
                            works(&mut random);
                        }
                    });
                }
                s.spawn(|| {
                    while !over.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                });
                while got.load(SeqCst) < events {
                    thread::sleep(Duration::from_micros(300));
                }
                over.store(true, SeqCst);
            });
        });
        shot.store(true, SeqCst);
        shoots.join().unwrap();
    });
    // All that was released has been taken, or is there (the last signals may be on their way); nobody waits.
    while TAKEN.load(SeqCst) != RELEASED.load(SeqCst) {
        while let Some(permit) = EVENTS.try_acquire() {
            permit.forget();
            TAKEN.fetch_add(1, SeqCst);
        }
    }
    assert_eq!((BUSY.available_permits(), mine.available_permits()), (2, 1));
    assert!(BUSY.try_acquire_many(2).is_some(), "somebody still stands in the queue");
}

#[test]
fn handlers_on_the_signal_stack_release() {
    on_each("handlers on the signal stack release", |rt| {
        install(libc::SA_ONSTACK);
        storm(rt, 3000);
    });
}

#[test]
fn handlers_on_the_threads_own_stack_release() {
    on_each("handlers on the own stack release", |rt| {
        install(0);
        storm(rt, 3000);
    });
}

/// Each event is answered before the next signal comes: one that a handler forgot is not made good by the next. The
/// target works in the lot all the time, so that many handlers find it there.
fn one_by_one(target: &AtomicI32, over: &AtomicBool, signals: usize) {
    while target.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    for i in 0..signals {
        // SAFETY: a signal to one of our threads.
        unsafe {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), target.load(SeqCst), libc::SIGUSR1)
        };
        take();
        std::hint::black_box((0..i * 37 % 2000).fold(0, |a, b| std::hint::black_box(a ^ b)));
        progress(0);
    }
    over.store(true, SeqCst);
}

fn gettid() -> c_int {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as c_int }
}

/// Without any runtime, or beside one that sleeps: nobody else drains what the handler left.
#[test]
fn a_kernel_thread_inside_the_lot_wakes_for_its_handler() {
    let _alone = alone();
    install(libc::SA_ONSTACK);
    watched("a_kernel_thread_inside_the_lot", String::new, || {
        let (target, over) = (AtomicI32::new(0), AtomicBool::new(false));
        let nobody = Semaphore::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                target.store(gettid(), SeqCst);
                while !over.load(SeqCst) {
                    // The deadline has passed: in and out of the bucket.
                    assert!(nobody.acquire_timeout(Duration::from_nanos(1)).is_none());
                }
            });
            one_by_one(&target, &over, 20_000 * factor() as usize);
        });
    });
}

/// As above for a worker whose one thread is in and out of the lot; the waiter is a kernel thread, or a thread of the same
/// worker.
#[test]
fn a_worker_inside_the_lot_wakes_for_its_handler() {
    let _alone = alone();
    install(libc::SA_ONSTACK);
    for inside in [false, true] {
        let rt = fast(1).build().unwrap();
        watched("a_worker_inside_the_lot", String::new, || {
            let (target, over) = (AtomicI32::new(0), AtomicBool::new(false));
            let nobody = Semaphore::new(0);
            let busy = || {
                target.store(gettid(), SeqCst);
                while !over.load(SeqCst) {
                    assert!(nobody.acquire_timeout(Duration::from_nanos(1)).is_none());
                }
            };
            let signals = 5_000 * factor() as usize;
            std::thread::scope(|s| {
                if !inside {
                    s.spawn(|| one_by_one(&target, &over, signals));
                }
                rt.run(|| {
                    thread::scope(|s| {
                        s.spawn(busy);
                        if inside {
                            one_by_one(&target, &over, signals);
                        }
                    });
                });
            });
        });
        rt.shutdown().unwrap();
    }
}

/// A worker that sleeps has its loop's count, so the handler cannot wake anybody itself.
#[test]
fn an_idle_worker_wakes_for_its_handler() {
    let _alone = alone();
    install(libc::SA_ONSTACK);
    let rt = fast(1).build().unwrap();
    watched("an_idle_worker", String::new, || {
        let (target, here) = (AtomicI32::new(0), Semaphore::new(0));
        std::thread::scope(|s| {
            s.spawn(|| {
                for _ in 0..500 * factor() {
                    here.acquire().forget();
                    std::thread::sleep(Duration::from_micros(100));
                    // SAFETY: a signal to one of our threads.
                    unsafe {
                        let at = target.load(SeqCst);
                        libc::syscall(libc::SYS_tgkill, libc::getpid(), at, libc::SIGUSR1)
                    };
                }
            });
            rt.run(|| {
                target.store(gettid(), SeqCst);
                for _ in 0..500 * factor() {
                    here.release();
                    take();
                    progress(0);
                }
            });
        });
    });
    rt.shutdown().unwrap();
}
