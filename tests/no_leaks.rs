//! A million threads through few slots leave nothing behind: counted, by malloc's own figures.
//!
//! Cures guarded here: key destructors (std's handle is freed by one), payloads and boxed results, slots
//! that are pooled and never freed.
#![allow(unsafe_code)]

mod support;

use reveille::thread;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use support::*;

/// Bytes that malloc has given out.
fn in_use() -> usize {
    // SAFETY: takes no argument.
    unsafe { libc::mallinfo2() }.uordblks + unsafe { libc::mallinfo2() }.hblkhd
}

/// Stretches of mapped memory.
fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Repeats `go`, which ends `n` threads each time: what is lost by every thread is lost in every round, what
/// malloc's and the workers' caches keep is not. So the least growth of a round counts.
fn rounds_leak_nothing(n: u64, go: impl Fn(u64)) {
    go(n / 8);
    let maps_before = maps();
    let growth = (0..8).map(|_| {
        let before = in_use();
        go(n / 8);
        in_use().saturating_sub(before)
    });
    let least = growth.min().unwrap() as u64;
    // A round's own first thread may leave a slot with a warm cache behind, some kilobytes.
    assert!(least < n / 8 * 2, "{least} bytes leaked by {} threads", n / 8);
    assert!(maps() <= maps_before + 16, "{maps_before} maps became {}", maps());
}

/// Runs `n` threads of `f` and compares.
fn leaks_nothing(name: &str, n: u64, f: fn(u64)) {
    on_each(name, |rt| {
        rounds_leak_nothing(n, |n| {
            rt.run(|| {
                for i in (0..n).step_by(8) {
                    let crowd: [_; 8] =
                        std::array::from_fn(|k| thread::spawn(move || f(i + k as u64)));
                    for t in crowd {
                        let _ = t.join();
                    }
                    progress(0);
                }
            });
        });
    });
}

#[test]
fn plain_threads() {
    leaks_nothing("plain", 1_000_000, |_| ());
}

thread_local! {
    static OWN: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn threads_with_thread_locals() {
    leaks_nothing("thread_local", 500_000, |i| {
        OWN.with_borrow_mut(|o| o.push(vec![i; 4 + i as usize % 10]));
    });
}

#[test]
fn threads_that_ask_std_who_they_are() {
    leaks_nothing("std::thread::current", 500_000, |_| {
        assert!(std::thread::current().name().is_none());
    });
}

#[test]
fn threads_that_panic() {
    quiet_panics();
    leaks_nothing("panics", 60_000, |i| {
        let text = std::hint::black_box(vec![i; 20]);
        std::panic::panic_any(text[3]);
    });
}

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// A result that is counted out.
struct Counted([u64; 60], Vec<u64>);

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, SeqCst);
    }
}

#[test]
fn threads_with_names_and_large_results() {
    on_each("large", |rt| {
        rounds_leak_nothing(80_000, |n| {
            rt.run(|| {
                for i in 0..n {
                    LIVE.fetch_add(1, SeqCst);
                    let big = [i; 60];
                    let t = thread::Builder::new()
                        .name(format!("thread {i}"))
                        .spawn(move || Counted(big, vec![i; 10]))
                        .unwrap();
                    if i % 2 == 0 {
                        let value = t.join().unwrap();
                        assert_eq!((value.0[59], value.1[9]), (i, i));
                    } else {
                        drop(t);
                    }
                    // Few at a time, so that the slots are soon those that have been used before.
                    while LIVE.load(SeqCst) > 4 {
                        thread::yield_now();
                    }
                }
                while LIVE.load(SeqCst) > 0 {
                    thread::yield_now();
                }
            });
        });
    });
}

#[test]
fn runtimes_come_and_go() {
    let _alone = alone();
    let go = |n: usize| {
        for i in 0..n {
            let rt = fast(1 + i % 3).build().unwrap();
            assert_eq!(rt.run(|| thread::spawn(|| 5).join().unwrap()), 5);
            rt.shutdown().unwrap();
            progress(0);
        }
    };
    watched("come and go", String::new, || {
        go(10);
        let before = maps();
        go(60);
        // Runtimes themselves are kept, signal stacks too; kernel threads' stacks are not.
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().count();
        assert!(tasks < 12, "{tasks} kernel threads are left");
        assert!(maps() < before + 60 * 3 * 4, "maps grow");
    });
}
