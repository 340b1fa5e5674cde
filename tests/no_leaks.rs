//! A million threads through few slots leave nothing behind: counted, by malloc's own figures.
//!
//! Cures guarded here: key destructors (std's handle is freed by one), payloads and boxed results, slots
//! that are pooled and never freed.
#![allow(unsafe_code)]

mod support;

use reveille::thread;
use std::cell::RefCell;
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

/// Runs `n` threads of `f` after some to warm up, and compares.
fn leaks_nothing(name: &str, n: u64, f: fn(u64)) {
    on_each(name, |rt| {
        let go = |n: u64| {
            rt.run(|| {
                for i in (0..n).step_by(8) {
                    let crowd: [_; 8] = std::array::from_fn(|k| thread::spawn(move || f(i + k as u64)));
                    crowd.map(|t| drop(t.join()));
                    progress(0);
                }
            });
        };
        go(2000);
        let (before, maps_before) = (in_use(), maps());
        go(n);
        let (after, maps_after) = (in_use(), maps());
        // Caches of malloc and of workers differ by some kilobytes; one byte a thread would be far more.
        let grown = after.saturating_sub(before) as u64;
        assert!(grown < 64 * 1024.max(n / 16), "{grown} bytes leaked by {n} threads");
        assert!(grown < n / 2 + 16_384, "{grown} bytes leaked by {n} threads");
        assert!(maps_after <= maps_before + 16, "{maps_before} maps became {maps_after}");
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
        let text = vec![i; 20];
        std::panic::panic_any(text[3]);
    });
}

#[test]
fn threads_with_names_and_large_results() {
    on_each("large", |rt| {
        let go = |n: u64| {
            rt.run(|| {
                for i in 0..n {
                    let big = [i; 60];
                    let t = thread::Builder::new()
                        .name(format!("thread {i}"))
                        .spawn(move || (big, vec![i; 10]))
                        .unwrap();
                    if i % 2 == 0 {
                        assert_eq!(t.join().unwrap().0[59], i);
                    } else {
                        drop(t);
                    }
                }
            });
        };
        go(500);
        // Let the detached ones end.
        let settle = || rt.run(|| (0..100).for_each(|_| thread::yield_now()));
        settle();
        let before = in_use();
        go(40_000);
        settle();
        let grown = in_use().saturating_sub(before);
        assert!(grown < 40_000, "{grown} bytes leaked");
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
