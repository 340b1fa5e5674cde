//! Broken rules are reported, not suffered: a message and an abort, in a child process; or an error.
//!
//! Cures guarded here: the checks at yield, park and join; `preempt::assert_on` for allocators; the guard
//! that a panic drops; the least stack.
#![allow(unsafe_code)]

mod support;

use reveille::{Runtime, preempt, thread};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use support::*;

/// An allocator that checks the rule, as a program's own might.
struct Checking;
static CHECK: AtomicBool = AtomicBool::new(false);

// SAFETY: passes everything on.
unsafe impl GlobalAlloc for Checking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if CHECK.load(SeqCst) {
            preempt::assert_on("the allocator");
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if CHECK.load(SeqCst) {
            preempt::assert_on("the allocator");
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Checking = Checking;

fn overflow(n: u64) -> u64 {
    let room = std::hint::black_box([n; 64]);
    if n == u64::MAX { 0 } else { overflow(n + 1) + room[n as usize % 64] }
}

fn break_a_rule(case: &str) {
    let rt = fast(2).build().unwrap();
    CHECK.store(true, SeqCst);
    let case = case.to_owned();
    let b = rt.thread_builder().name("sinner".to_owned());
    let t = b.spawn(move || {
        if case == "overflow" {
            return overflow(1);
        }
        let other = thread::spawn(|| ());
        let _off = preempt::disable();
        match &case[..] {
            "allocator" => drop(std::hint::black_box(Box::new(5))),
            "yield" => thread::yield_now(),
            "park" => thread::park(),
            "join" => drop(other.join()),
            _ => unreachable!(),
        }
        0
    });
    let _ = t.unwrap().join();
    eprintln!("nothing happened");
}

#[test]
fn broken_rules_abort_with_a_message() {
    if let Some(case) = child_case() {
        return break_a_rule(&case);
    }
    let me = "broken_rules_abort_with_a_message";
    child_aborts(me, "allocator", &["the allocator", "preemption was switched off", "sinner"]);
    child_aborts(me, "yield", &["yield_now", "preemption was switched off", "sinner"]);
    child_aborts(me, "park", &["preemption was switched off", "sinner"]);
    child_aborts(me, "join", &["preemption was switched off", "sinner"]);
    child_aborts(me, "overflow", &["sinner", "overflow"]);
}

#[test]
fn the_runtime_itself_keeps_the_rule() {
    // Every allocation of a whole storm is checked.
    quiet_panics();
    on_each("rule", |rt| {
        CHECK.store(true, SeqCst);
        among_hogs(rt, 4, 150, |i, n| {
            let key = (i as u64) << 32 | n;
            let t = thread::Builder::new().name(format!("{i}/{n}"));
            let t = t.spawn(move || [key; 70]).unwrap();
            if n % 3 == 0 {
                drop(t);
            } else {
                assert_eq!(t.join().unwrap()[69], key);
            }
            let t = thread::spawn(move || std::panic::panic_any(key));
            assert!(t.join().is_err());
            thread::scope(|s| {
                s.spawn(|| thread::spawn(|| vec![1, 2]).join().unwrap());
                let me = thread::current();
                s.spawn(move || me.unpark());
                thread::park();
            });
        });
        std::thread::scope(|s| {
            s.spawn(|| (0..300).for_each(|_| drop(rt.spawn(|| vec![3]).join())));
        });
        CHECK.store(false, SeqCst);
    });
}

#[test]
fn guards_nest_and_a_panic_drops_them() {
    quiet_panics();
    on_each("guards", |rt| {
        among_hogs(rt, 4, 800, |_, n| {
            assert!(!preempt::is_disabled());
            {
                let _a = preempt::disable();
                let _b = preempt::disable();
                assert!(preempt::is_disabled());
                let before = preemptions();
                for _ in 0..n % 512 * 16 {
                    std::hint::spin_loop();
                }
                assert_eq!(preemptions(), before, "preempted inside a guard");
            }
            assert!(!preempt::is_disabled());
            if n % 16 == 0 {
                let t = thread::spawn(|| {
                    let r = std::panic::catch_unwind(|| {
                        let _off = preempt::disable();
                        std::panic::resume_unwind(Box::new(1));
                    });
                    assert!(r.is_err());
                    assert!(!preempt::is_disabled(), "a panic left preemption off");
                    let _off = preempt::disable();
                    std::panic::resume_unwind(Box::new(2));
                });
                assert!(t.join().is_err());
            }
            preempt::checkpoint();
        });
    });
}

#[test]
fn a_guard_makes_its_words_atomic_on_one_worker() {
    let _alone = alone();
    let rt = fast(1).build().unwrap();
    static WORDS: [std::sync::atomic::AtomicU64; 2] =
        [const { std::sync::atomic::AtomicU64::new(0) }; 2];
    watched(
        "words",
        || format!("{:?}", rt.stats()),
        || {
            among_hogs(&rt, 4, 20_000, |_, _| {
                let _off = preempt::disable();
                let seen = WORDS[0].load(SeqCst);
                assert_eq!(WORDS[1].load(SeqCst), seen, "seen half done");
                WORDS[0].store(seen + 1, SeqCst);
                for _ in 0..200 {
                    std::hint::spin_loop();
                }
                WORDS[1].store(seen + 1, SeqCst);
            });
        },
    );
}

#[test]
fn stacks_that_are_too_small_are_refused() {
    for bytes in [0, 1, 1024, 4096, 8192] {
        let e = Runtime::builder().workers(1).stack_size(bytes).build().unwrap_err();
        assert!(e.to_string().contains("stack"), "{e}");
    }
    let _alone = alone();
    let rt = fast(1).build().unwrap();
    rt.run(|| {
        assert!(thread::Builder::new().stack_size(100).spawn(|| ()).is_err());
        // The least that is accepted is enough for everything that the runtime does there.
        let least = (1..64)
            .map(|pages| pages * 4096)
            .find_map(|bytes| thread::Builder::new().stack_size(bytes).spawn(move || bytes).ok())
            .expect("64 pages are enough");
        let least = least.join().unwrap();
        let small = || thread::Builder::new().stack_size(least);
        thread::scope(|s| {
            let long = || {
                while preemptions() < 30 {
                    std::hint::spin_loop();
                }
            };
            let threads: Vec<_> = (0..6).map(|_| small().spawn_scoped(s, long).unwrap()).collect();
            s.spawn(|| {
                let t = small().spawn(|| std::panic::resume_unwind(Box::new(1))).unwrap();
                assert!(t.join().is_err());
            });
            // Company to the end.
            while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
                std::hint::spin_loop();
            }
        });
    });
    rt.shutdown().unwrap();
}
