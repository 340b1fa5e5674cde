//! Faults that a review found, each with the interleaving that showed it.
//!
//! Cures guarded here: the tick that follows threads taken from the arrivals by a thread that ends; the name
//! that lives until the last destructor; masks changed by handlers; spawning on a runtime that has ended; the
//! identity of a worker's loop.
#![allow(unsafe_code)]

mod support;

use reveille::{Runtime, thread};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use support::*;

/// A worker whose thread ends takes a share of the arrivals into its ring. If it did so without ticks, those
/// behind an endless loop would wait for ever once the other worker had run dry.
#[test]
fn threads_taken_at_an_end_do_not_wait_for_ever() {
    let _alone = alone();
    /// One more than a ring holds: 129 of them go to the arrivals.
    const N: usize = (16 << 10) + 1;
    static GO: AtomicBool = AtomicBool::new(false);
    static STOP: AtomicBool = AtomicBool::new(false);
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let hog = || {
        while !STOP.load(SeqCst) {
            std::hint::spin_loop();
        }
    };
    // None of them shall run before the last has been spawned: slices are long, and no stack is made any more.
    let slice = Duration::from_millis(100);
    let rt = Runtime::builder().workers(2).time_slice(slice).build().unwrap();
    rt.run(|| alive_at_once(N));
    watched(
        "arrivals",
        || format!("{} ran", RAN.load(SeqCst)),
        || {
            static ON: AtomicBool = AtomicBool::new(false);
            let first = rt.spawn(|| {
                ON.store(true, SeqCst);
                while !GO.load(SeqCst) {
                    std::hint::spin_loop();
                }
            });
            while !ON.load(SeqCst) {
                std::thread::yield_now();
            }
            let spawner = rt.spawn(move || {
                for i in 0..N {
                    drop(thread::spawn(move || {
                        // The first to run on the other worker never ends by itself, and neither does the last
                        // but 64 (a share of the arrivals) on this one.
                        if i == 0 || RAN.fetch_add(1, SeqCst) + 1 == N - 65 {
                            hog();
                        }
                    }));
                }
                GO.store(true, SeqCst);
            });
            first.join().unwrap();
            spawner.join().unwrap();
            while RAN.load(SeqCst) < N - 1 {
                std::thread::yield_now();
            }
            STOP.store(true, SeqCst);
            rt.shutdown().unwrap();
        },
    );
}

/// Has `n` threads alive at once: so many stacks there are then.
fn alive_at_once(n: usize) {
    let threads: Vec<_> = (0..n).map(|_| thread::spawn(thread::park)).collect();
    threads.iter().for_each(|t| t.thread().unpark());
    threads.into_iter().for_each(|t| t.join().unwrap());
}

static NAMES: AtomicU64 = AtomicU64::new(0);

/// Asks for the thread's name when it is dropped.
struct AsksWhoItIs;

impl Drop for AsksWhoItIs {
    fn drop(&mut self) {
        // Fills what a name freed too early would have left.
        let junk: Vec<_> = (0..8).map(|_| vec![65u8; 24]).collect();
        assert_eq!(thread::current().name(), Some("a name of some length"));
        drop(junk);
        NAMES.fetch_add(1, SeqCst);
    }
}

thread_local! {
    static LATE: AsksWhoItIs = const { AsksWhoItIs };
}

/// A detached thread's value, and its thread-locals, are dropped in the thread: it has its name still.
#[test]
fn a_detached_thread_has_its_name_to_the_end() {
    on_each("names", |rt| {
        static DETACHED: AtomicUsize = AtomicUsize::new(0);
        NAMES.store(0, SeqCst);
        DETACHED.store(0, SeqCst);
        for i in 0..50 {
            let b = rt.thread_builder().name("a name of some length".to_owned());
            let t = b.spawn(move || {
                while DETACHED.load(SeqCst) <= i {
                    thread::yield_now();
                }
                LATE.with(|_| AsksWhoItIs)
            });
            drop(t.unwrap());
            DETACHED.store(i + 1, SeqCst);
        }
        while NAMES.load(SeqCst) < 100 {
            std::thread::yield_now();
        }
    });
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn changes_masks(_: i32) {
    // SAFETY: all zeroes is an empty set; the calls get live sets.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        let mut old: libc::sigset_t = core::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGUSR2);
        for _ in 0..200 {
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut old);
            libc::pthread_sigmask(libc::SIG_SETMASK, &old, core::ptr::null_mut());
        }
    }
    HANDLED.fetch_add(1, SeqCst);
}

/// A handler may change the mask, on either stack, under ticks: it is not switched away from.
#[test]
fn handlers_may_change_masks() {
    for flags in [libc::SA_ONSTACK, 0] {
        on_each("masks in handlers", |rt| {
            // SAFETY: the handler is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = changes_masks as *const () as usize;
                action.sa_flags = flags | libc::SA_RESTART;
                libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut());
            }
            HANDLED.store(0, SeqCst);
            until_preempted(rt, 4, 20, |_, _| {
                // SAFETY: signals the running kernel thread.
                unsafe { libc::raise(libc::SIGUSR1) };
                (0..1000).for_each(|_| std::hint::spin_loop());
            });
            assert_ne!(HANDLED.load(SeqCst), 0);
        });
    }
}

#[test]
fn a_builder_outlives_its_runtime_in_vain() {
    let _alone = alone();
    let rt = fast(1).build().unwrap();
    let builder = rt.thread_builder();
    rt.shutdown().unwrap();
    let refused = builder.spawn(|| ()).unwrap_err();
    assert!(refused.to_string().contains("shut down"), "{refused}");
}

extern "C" fn asks_who_it_is(_: i32) {
    std::hint::black_box(thread::current().id());
    HANDLED.fetch_add(1, SeqCst);
}

/// The signal finds a worker that sleeps, in its loop.
#[test]
fn a_handler_may_ask_who_it_is_anywhere() {
    let _alone = alone();
    let rt = fast(1).build().unwrap();
    // SAFETY: no arguments.
    let tid = rt.run(|| unsafe { libc::syscall(libc::SYS_gettid) });
    // SAFETY: the handler allocates nothing: the identity of a loop has no name.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = asks_who_it_is as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut());
        for wanted in 1..=100 {
            HANDLED.store(wanted - 1, SeqCst);
            libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1);
            while HANDLED.load(SeqCst) < wanted {
                std::thread::yield_now();
            }
        }
    }
    rt.shutdown().unwrap();
}
