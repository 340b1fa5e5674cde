//! A tick at every single instruction of the runtime's own paths.
//!
//! One thread sets the trap flag. The trap handler counts the instructions that follow - the flag stays set
//! through voluntary switches, so those of the worker's loop and of other threads too - and at number k it
//! sends the tick's signal to its own kernel thread. The signal is blocked while the handler runs, so the
//! tick arrives exactly between two instructions, k - 1 and k, as a real one would. `popfq` would end the
//! stepping; the handler sets the flag in the word that it is about to load. So all of switch.S, resume.S
//! and entry.S is stepped, and the paths of yield, spawn, join, park, unpark, exit, guards, malloc.
//!
//! A *sweep* sends one tick a run, before instruction 0, 1, 2, ... A *comb* sends one every so many
//! instructions, and is shifted from run to run until each place has had its tick: a step costs tens of
//! microseconds in a virtual machine, so long paths are combed. What a run computes must be right, always.
//!
//! Cures guarded here: the flag that is one instruction on FS, the resume's window, "pending" at the end of
//! a guard and of a slice, the end of a handler, a switch's `off` in all its parts, the publication of a thread by the other side.
#![allow(unsafe_code)]

mod support;

use reveille::{Runtime, StartMethod, bench_support, preempt, thread};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;
use support::*;

static STEPPING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The tick comes before instruction number AT, and again EVERY instructions later (0: once, and the
/// stepping ends there).
static AT: AtomicU64 = AtomicU64::new(0);
static EVERY: AtomicU64 = AtomicU64::new(0);
static SENT: AtomicU64 = AtomicU64::new(0);

/// Runs on the signal stack, whoever was interrupted: uses no thread-local variable.
extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, uc: *mut c_void) {
    // SAFETY: the kernel's frame.
    unsafe {
        let gregs = stepping::gregs(uc);
        if !STEPPING.load(Relaxed) {
            return stepping::end(gregs);
        }
        let n = COUNT.load(Relaxed);
        COUNT.store(n + 1, Relaxed);
        let (at, every) = (AT.load(Relaxed), EVERY.load(Relaxed));
        if n == at || every != 0 && n > at && (n - at).is_multiple_of(every) {
            SENT.fetch_add(1, Relaxed);
            bench_support::preempt_self();
            if every == 0 {
                STEPPING.store(false, Relaxed);
            }
        }
        stepping::keep_on(gregs);
    }
}

fn install() {
    // SAFETY: the handler is async-signal-safe. The tick's signal waits until it has returned.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaddset(&mut action.sa_mask, libc::SIGALRM);
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()), 0);
    }
}

/// Runs `f` step by step.
#[inline(never)]
fn stepped<R>(f: impl FnOnce() -> R) -> R {
    COUNT.store(0, Relaxed);
    SENT.store(0, Relaxed);
    STEPPING.store(true, SeqCst);
    // SAFETY: the handler is installed.
    unsafe { stepping::begin() };
    let r = f();
    STEPPING.store(false, SeqCst);
    r
}

/// Threads that are always ready, as many as there are workers: they give way all the time, and are
/// themselves preempted every now and then, with room on the stack for their state and without, so that all
/// kinds of contexts are resumed. Runs `f` beside them.
fn beside_others<R: Send>(workers: usize, f: impl FnOnce(&AtomicU64) -> R + Send) -> R {
    let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut ends = [0; 2];
    // SAFETY: a live array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    thread::scope(|s| {
        for _ in 0..workers {
            let other = thread::Builder::new().stack_size(64 << 10);
            let other = other.spawn_scoped(s, || {
                let narrow = end_of_stack(ends[1]) + 2048;
                for n in 0u64.. {
                    if stop.load(SeqCst) {
                        break;
                    }
                    turns.fetch_add(1, SeqCst);
                    match n % 3 {
                        0 => thread::yield_now(),
                        1 => bench_support::preempt_self(),
                        _ => assert!(stepping::tick_at(narrow), "registers have changed"),
                    }
                    turns.fetch_add(1, SeqCst);
                }
            });
            other.unwrap();
        }
        let r = f(&turns);
        stop.store(true, SeqCst);
        r
    })
}

/// How a path is gone through.
#[derive(Clone, Copy)]
enum Way {
    /// A sweep of every instruction, and combs.
    Whole,
    /// Combs.
    Combs,
    /// One wide comb, shifted by more than one: paths of many thousand instructions.
    Wide,
}

static WORKERS: AtomicU64 = AtomicU64::new(0);

/// Goes through `round` on 1 and 2 workers.
fn at_each(name: &str, way: Way, method: StartMethod, round: fn(&AtomicU64)) {
    let _alone = alone();
    install();
    for workers in 1..=2 {
        WORKERS.store(workers as u64, SeqCst);
        // No ticks but those that are sent.
        let b = Runtime::builder().workers(workers).time_slice(Duration::from_secs(10));
        let rt = b.adaptive_slices(false).start_method(method).build().unwrap();
        let name = format!("{name} on {workers} workers");
        let report =
            || format!("tick at {AT:?} every {EVERY:?}, {COUNT:?} steps: {:?}", rt.stats());
        watched(&name, report, || {
            let sent = rt.run(|| {
                beside_others(workers, |turns| {
                    // Everything that is bound or made at first use.
                    round(turns);
                    // One worker shows every place there is; two add the other's interference.
                    let mut sent = if matches!(way, Way::Whole) && workers == 1 {
                        sweep(|| round(turns))
                    } else {
                        0
                    };
                    // A resume itself takes two steps before it gets anywhere, so 1 and 2 would stand still.
                    let combs: &[(u64, usize)] = match way {
                        Way::Wide => &[(97, 12)],
                        _ => &[(5, 1), (17, 1)],
                    };
                    for &(every, shift) in combs {
                        EVERY.store(every, SeqCst);
                        for at in (0..every).step_by(shift) {
                            AT.store(at, SeqCst);
                            stepped(|| round(turns));
                            sent += SENT.load(SeqCst);
                            progress(1);
                        }
                    }
                    sent
                })
            });
            assert!(sent > 50, "{name}: hardly any tick was sent");
            let preempted: u64 = rt.stats().workers.iter().map(|w| w.preemptions).sum();
            assert!(preempted > 50, "{name}: hardly any tick did anything");
        });
        rt.shutdown().unwrap();
    }
}

/// One tick a run, until some runs in a row were over before their tick.
fn sweep(round: impl Fn()) -> u64 {
    let (mut k, mut missed) = (0, 0);
    EVERY.store(0, SeqCst);
    while missed < 8 {
        AT.store(k, SeqCst);
        stepped(&round);
        missed = if SENT.load(SeqCst) == 0 { missed + 1 } else { 0 };
        k += 1;
        progress(0);
    }
    assert!(k > 40, "nothing was stepped");
    k
}

#[test]
fn yield_now() {
    at_each("yield", Way::Whole, StartMethod::Pool, |turns| {
        let before = turns.load(SeqCst);
        // The other may be on another worker: give way until it had a turn.
        while turns.load(SeqCst) == before {
            thread::yield_now();
        }
        thread::yield_now();
    });
}

fn spawn_and_join(_: &AtomicU64) {
    let a = 5u64;
    let t = thread::spawn(move || a + 1);
    assert_eq!(t.join().unwrap(), 6);
}

#[test]
fn spawn_join_and_exit() {
    at_each("spawn", Way::Whole, StartMethod::Pool, spawn_and_join);
}

#[test]
fn spawn_by_context() {
    at_each("context", Way::Combs, StartMethod::Context, spawn_and_join);
}

#[test]
fn spawn_through_a_signal() {
    at_each("signal", Way::Combs, StartMethod::Signal, spawn_and_join);
}

#[test]
fn detached_with_a_value() {
    static LIVE: AtomicI32 = AtomicI32::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, SeqCst);
        }
    }
    at_each("detached", Way::Combs, StartMethod::Pool, |_| {
        LIVE.fetch_add(1, SeqCst);
        let c = Counted;
        drop(thread::spawn(move || c));
        loop {
            match LIVE.load(SeqCst) {
                0 => break,
                n => assert_eq!(n, 1, "dropped twice"),
            }
            thread::yield_now();
        }
    });
}

#[test]
fn park_and_unpark() {
    at_each("park", Way::Whole, StartMethod::Pool, |_| {
        let me = thread::current();
        let woken = AtomicBool::new(false);
        thread::scope(|s| {
            s.spawn(|| {
                woken.store(true, SeqCst);
                me.unpark();
            });
            while !woken.load(SeqCst) {
                thread::park();
            }
        });
    });
}

#[test]
fn the_end_of_a_guard_forgets_no_tick() {
    at_each("guard", Way::Whole, StartMethod::Pool, |turns| {
        let (before, begun, ended);
        let preempted = preemptions();
        {
            let _off = preempt::disable();
            let _nested = preempt::disable();
            before = turns.load(SeqCst);
            begun = COUNT.load(SeqCst);
            std::hint::black_box(turns);
            std::hint::black_box(begun);
            if WORKERS.load(SeqCst) == 1 {
                assert_eq!(turns.load(SeqCst), before, "preempted inside a guard");
            }
            ended = COUNT.load(SeqCst);
        }
        // One worker: a tick inside takes effect at the guard's end. (That the other thread has counted its turn
        // says nothing: the next tick of a comb may come before it could.)
        let inside = begun < AT.load(SeqCst) && AT.load(SeqCst) < ended;
        if WORKERS.load(SeqCst) == 1 && inside && SENT.load(SeqCst) != 0 {
            assert_ne!(preemptions(), preempted, "a tick was forgotten");
            progress(2);
        }
    });
}

/// Handles an `ud2`: goes on behind it. The way back is stepped.
extern "C" fn on_ud2(_: c_int, _: *mut libc::siginfo_t, uc: *mut c_void) {
    // SAFETY: the kernel's frame; the trap's handler is installed.
    unsafe {
        *stepping::gregs(uc).add(libc::REG_RIP as usize) += 2;
        stepping::begin();
    }
}

/// Handlers on the thread's own stack, with the usual mask: wherever the tick comes on their way back
/// (sigreturn.S), no worker is left with another one's signal stack.
#[test]
fn the_return_of_a_handler() {
    /// Each kernel thread's signal stack, by its id.
    static KNOWN: [(AtomicU64, AtomicU64); 64] =
        [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 64];
    // SAFETY: the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_ud2 as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        assert_eq!(libc::sigaction(libc::SIGILL, &action, std::ptr::null_mut()), 0);
    }
    at_each("handler", Way::Whole, StartMethod::Pool, |_| {
        // SAFETY: the handler steps over the instruction.
        unsafe { std::arch::asm!("ud2") };
        let (tid, stack) = {
            let _off = preempt::disable();
            // SAFETY: asks only; zeroes are a valid stack_t.
            unsafe {
                let mut now: libc::stack_t = std::mem::zeroed();
                libc::syscall(libc::SYS_sigaltstack, 0usize, &raw mut now, 0usize, 0usize);
                (libc::syscall(libc::SYS_gettid) as u64, now.ss_sp as u64)
            }
        };
        let own = KNOWN.iter().find(|(of, _)| {
            of.compare_exchange(0, tid, SeqCst, SeqCst).is_ok() || of.load(SeqCst) == tid
        });
        let own = &own.expect("few workers").1;
        let _ = own.compare_exchange(0, stack, SeqCst, SeqCst);
        assert_eq!(own.load(SeqCst), stack, "a worker has another one's signal stack");
    });
}

#[test]
fn malloc_beside_malloc() {
    at_each("malloc", Way::Combs, StartMethod::Pool, |_| {
        thread::scope(|s| {
            let t = s.spawn(|| {
                let v: Vec<Box<u64>> = (0..6).map(Box::new).collect();
                thread::yield_now();
                v.iter().map(|b| **b).sum::<u64>()
            });
            let v: Vec<Vec<u8>> = (1..6).map(|n| vec![n as u8; n * 90]).collect();
            for (i, v) in v.iter().enumerate() {
                assert!(v.iter().all(|b| *b as usize == i + 1));
            }
            drop(v);
            assert_eq!(t.join().unwrap(), 15);
        });
    });
}

#[test]
fn thread_local_destructors() {
    use std::cell::RefCell;
    static LIVE: AtomicI32 = AtomicI32::new(0);
    struct Counted(u64);
    impl Drop for Counted {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, SeqCst);
        }
    }
    thread_local! {
        static OWN: RefCell<Option<Counted>> = const { RefCell::new(None) };
    }
    at_each("thread_local", Way::Combs, StartMethod::Pool, |_| {
        let t = thread::spawn(|| {
            OWN.with_borrow(|o| assert!(o.is_none(), "not as new"));
            LIVE.fetch_add(1, SeqCst);
            OWN.set(Some(Counted(9)));
            OWN.with_borrow(|o| o.as_ref().unwrap().0)
        });
        assert_eq!(t.join().unwrap(), 9);
        assert_eq!(LIVE.load(SeqCst), 0, "destructors");
    });
}

#[test]
fn panics() {
    quiet_panics();
    at_each("panic", Way::Wide, StartMethod::Pool, |_| {
        let t = thread::spawn(|| {
            if !std::thread::panicking() {
                std::panic::panic_any(17u64);
            }
        });
        assert_eq!(*t.join().unwrap_err().downcast::<u64>().unwrap(), 17);
    });
}
