//! The lock level under the fastest ticks, with a handler of the program's that shares the data: what a lock guards is
//! always whole, a signal mask is what it was, a panic lets go, and misuse aborts with a message.
//!
//! Cures guarded here: signals really blocked under a `SignalLock`; the mask made the thread's own (a holder that
//! panics can be preempted); waiters that spin with preemption on; no tick honoured in a handler.
#![allow(unsafe_code)]

mod support;

use reveille::lock::{HandlerLock, ProcessLock, SignalLock};
use reveille::{Runtime, preempt, thread};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use support::*;

/// Two numbers that are equal, except while somebody changes them.
#[derive(Default)]
struct Pair(u64, u64);

impl Pair {
    const fn new() -> Pair {
        Pair(0, 0)
    }

    #[track_caller]
    fn step(&mut self) {
        assert_eq!(self.0, self.1, "seen half changed");
        self.0 += 1;
        for _ in 0..20 {
            spin_loop();
        }
        self.1 += 1;
    }
}

static PROCESS: ProcessLock<Pair> = ProcessLock::new(Pair::new());
static HANDLER: HandlerLock<Pair> = HandlerLock::new(Pair::new());
static SIGNAL: SignalLock<Pair> = SignalLock::new(Pair::new());
/// How often the handler began and ended, and how often it did without the lock that it can do without.
static HANDLED: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU64 = AtomicU64::new(0);
static WITHOUT: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_usr1(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    HANDLED.fetch_add(1, SeqCst);
    SIGNAL.lock().step();
    match HANDLER.try_lock() {
        Some(mut pair) => pair.step(),
        None => drop(WITHOUT.fetch_add(1, SeqCst)),
    }
    FINISHED.fetch_add(1, SeqCst);
}

/// Handlers so far and the steps that `SIGNAL` has seen, at a time when no handler runs.
fn at_rest() -> (u64, u64) {
    loop {
        let (finished, begun) = (FINISHED.load(SeqCst), HANDLED.load(SeqCst));
        let steps = SIGNAL.lock().0;
        if finished == begun && HANDLED.load(SeqCst) == begun {
            return (begun, steps);
        }
        std::thread::yield_now();
    }
}

fn install(handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void), flags: c_int) {
    // SAFETY: a handler of this process's tests alone.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | flags;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
}

/// A timer that sends SIGUSR1 to a kernel thread.
struct Storm(libc::timer_t);

// SAFETY: the id of a timer is good in the whole process.
unsafe impl Send for Storm {}

impl Storm {
    fn on(tid: i32) -> Storm {
        // SAFETY: live places; valid values.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_notify_thread_id = tid;
            event.sigev_signo = libc::SIGUSR1;
            let mut timer = std::ptr::null_mut();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            let often = libc::timespec { tv_sec: 0, tv_nsec: 70_000 };
            let spec = libc::itimerspec { it_interval: often, it_value: often };
            assert_eq!(libc::timer_settime(timer, 0, &spec, std::ptr::null_mut()), 0);
            Storm(timer)
        }
    }

    /// On each worker of a runtime, and on the calling kernel thread.
    fn everywhere(rt: &Runtime, workers: usize) -> Vec<Storm> {
        let tids = Mutex::new(BTreeSet::from([tid()]));
        while tids.lock().unwrap().len() < workers + 1 {
            until_preempted(rt, 4, 1, |_, _| {
                tids.lock().unwrap().insert(tid());
            });
        }
        tids.into_inner().unwrap().into_iter().map(Storm::on).collect()
    }
}

fn tid() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // SAFETY: made above.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// The kernel's own mask, not the library's idea of it.
fn raw_mask() -> u64 {
    let mut mask = 0u64;
    let none = std::ptr::null::<u64>();
    // SAFETY: asks only.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut mask, 8) };
    mask
}

const fn bit(signo: c_int) -> u64 {
    1 << (signo - 1)
}

/// Every signal that has a handler here or could have one, in the kernel's set.
fn is_all(mask: u64, except: u64) -> bool {
    let internal = bit(32) | bit(33) | bit(libc::SIGKILL) | bit(libc::SIGSTOP);
    mask | internal | except == u64::MAX && mask & except == 0
}

fn storm_with_handlers(flags: c_int, name: &str) {
    let workers = AtomicU64::new(0);
    on_each(name, |rt| {
        install(on_usr1, flags);
        let workers = workers.fetch_add(1, SeqCst) as usize + 1;
        let (handled, before) = at_rest();
        let (steps, over) = (AtomicU64::new(0), AtomicU64::new(0));
        let step = || {
            PROCESS.lock().step();
            HANDLER.lock().step();
            SIGNAL.lock().step();
            if let Some(mut pair) = SIGNAL.try_lock() {
                pair.step();
                steps.fetch_add(1, SeqCst);
            }
            steps.fetch_add(1, SeqCst);
        };
        std::thread::scope(|s| {
            s.spawn(|| {
                let _storm = Storm::everywhere(rt, workers);
                while over.load(SeqCst) == 0 {
                    step();
                    assert_eq!(raw_mask(), 0, "a mask was left on a kernel thread");
                }
            });
            while HANDLED.load(SeqCst) < handled + 100 * factor() {
                until_preempted(rt, 6, 40, |_, _| {
                    step();
                    assert_eq!(raw_mask(), 0, "a mask was left on a thread");
                    assert!(!preempt::is_disabled(), "preemption was left off");
                });
            }
            over.store(1, SeqCst);
        });
        // Each handler had its turn with the lock that it cannot do without.
        let (handled, pair) = (at_rest().0 - handled, at_rest().1);
        assert_eq!(pair - before, steps.load(SeqCst) + handled);
        assert!(WITHOUT.load(SeqCst) < HANDLED.load(SeqCst), "no handler ever got its lock");
    });
}

#[test]
fn storm_with_handlers_on_the_signal_stack() {
    storm_with_handlers(libc::SA_ONSTACK, "locks and handlers on the signal stack");
}

#[test]
fn storm_with_handlers_on_the_threads_stack() {
    storm_with_handlers(0, "locks and handlers on the thread's stack");
}

#[test]
fn a_tick_is_not_starved_by_a_thread_that_always_holds_a_lock() {
    // A tick comes while the signal is blocked or preemption off, nearly always; it counts all the same.
    on_each("always holding", |rt| {
        let steps = [const { AtomicU64::new(0) }; 4];
        let turns = [const { AtomicU64::new(0) }; 4];
        let all = || steps.iter().map(|s| s.load(SeqCst)).sum::<u64>();
        let step = |i: usize| match i {
            0 | 1 => SIGNAL.lock().step(),
            2 => PROCESS.lock().step(),
            _ => HANDLER.lock().step(),
        };
        rt.run(|| {
            thread::scope(|s| {
                for i in 0..4 {
                    let (steps, turns, all, step) = (&steps, &turns, &all, &step);
                    s.spawn(move || {
                        while turns.iter().any(|t| t.load(SeqCst) < 40 * factor()) {
                            let before = all();
                            step(i);
                            // Others made steps since the last look: this thread was away.
                            turns[i].fetch_add(u64::from(all() != before), SeqCst);
                            steps[i].fetch_add(1, SeqCst);
                        }
                    });
                }
            });
        });
        // With one worker somebody always waits: the second tick of a slice ends it at the latest, if it counts.
        if let [worker] = &rt.stats().workers[..] {
            assert!(worker.ticks < 5 * worker.switches, "ticks without effect: {worker:?}");
        }
    });
}

/// Nesting, with what is checked on any thread; `tick` is never really blocked on a reveille thread.
fn nesting(usual: u64, except: u64) {
    let other = SignalLock::new(0);
    assert_eq!(raw_mask(), usual);
    {
        let a = SIGNAL.lock();
        let within = raw_mask();
        assert!(is_all(within, except), "{within:x}");
        {
            let _b = other.lock();
            let _c = PROCESS.lock();
            assert_eq!(raw_mask(), within);
        }
        assert!(other.try_lock().is_some());
        assert_eq!(raw_mask(), within, "the inner lock unblocked");
        assert!(SIGNAL.try_lock().is_none() && SIGNAL.is_locked());
        assert_eq!(raw_mask(), within, "a try that failed unblocked");
        drop(a);
    }
    assert_eq!(raw_mask(), usual);
}

/// Blocks SIGUSR2 in the calling thread, or unblocks it.
fn usr2(how: c_int) {
    // SAFETY: live sets.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGUSR2);
        assert_eq!(libc::pthread_sigmask(how, &set, std::ptr::null_mut()), 0);
    }
}

#[test]
fn locks_nest_and_the_mask_comes_back() {
    on_each("nesting", |rt| {
        let tick = bit(libc::SIGALRM);
        among_hogs(rt, 4, 200, |_, _| {
            nesting(0, tick);
            usr2(libc::SIG_BLOCK);
            nesting(bit(libc::SIGUSR2), tick);
            let _ = spin_until_preempted();
            nesting(bit(libc::SIGUSR2), tick);
            usr2(libc::SIG_UNBLOCK);
        });
        std::thread::spawn(|| {
            nesting(0, 0);
            usr2(libc::SIG_BLOCK);
            nesting(bit(libc::SIGUSR2), 0);
        })
        .join()
        .unwrap();
        assert!(!SIGNAL.is_locked() && !PROCESS.is_locked());
    });
}

#[test]
fn a_panic_lets_go() {
    quiet_panics();
    on_each("panics", |rt| {
        let preempted = [const { AtomicU64::new(0) }; 3];
        // The hook runs with the lock held and preemption on; others want the lock meanwhile.
        among_hogs(rt, 6, 60, |i, n| {
            let panics = n % 3 == 0;
            let r = std::panic::catch_unwind(|| {
                let (mut p, mut h, mut s);
                let pair: &mut Pair = match i % 3 {
                    0 => {
                        p = PROCESS.lock();
                        &mut p
                    }
                    1 => {
                        h = HANDLER.lock();
                        &mut h
                    }
                    _ => {
                        s = SIGNAL.lock();
                        &mut s
                    }
                };
                pair.step();
                if panics {
                    // Stays in the hook's place for some ticks, as printing might.
                    let _slow = Slow(&preempted[i % 3]);
                    std::panic::panic_any(ON_PURPOSE);
                }
            });
            assert_eq!(r.is_err(), panics);
            assert!(!preempt::is_disabled(), "a panic left preemption off");
            assert_eq!(raw_mask(), 0, "a panic left signals blocked");
        });
        assert!(!PROCESS.is_locked() && !HANDLER.is_locked() && !SIGNAL.is_locked());
        let preempted = preempted.map(|p| p.load(SeqCst));
        assert!(preempted.iter().all(|p| *p > 0), "holders that panic: preempted {preempted:?}");
    });
}

/// Takes its time when it is dropped: allocates, and waits to be preempted; counts if it was.
struct Slow<'a>(&'a AtomicU64);

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        drop(std::hint::black_box(vec![1; 500]));
        self.0.fetch_add(u64::from(spin_until_preempted()), SeqCst);
    }
}

/// The handler of the cases in which it interrupts a holder.
extern "C" fn interrupts(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    match CASE.load(SeqCst) {
        1 => drop(PROCESS.lock()),
        2 => drop(HANDLER.lock()),
        _ => {
            assert!(HANDLER.try_lock().is_none());
            assert!(PROCESS.is_locked());
            TOLD_NO.fetch_add(1, SeqCst);
        }
    }
}

static TOLD_NO: AtomicU64 = AtomicU64::new(0);
static CASE: AtomicU64 = AtomicU64::new(0);

fn misuse(case: &str) {
    install(interrupts, libc::SA_ONSTACK);
    // SAFETY: to the own kernel thread.
    let raise = || assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    let sin = || match case {
        "process twice" => drop((PROCESS.lock(), PROCESS.lock())),
        "handler twice" => drop((HANDLER.lock(), HANDLER.lock())),
        "signal twice" => drop((SIGNAL.lock(), SIGNAL.lock())),
        "process in a handler" => {
            CASE.store(1, SeqCst);
            let _held = PROCESS.lock();
            raise();
        }
        "handler in a handler" => {
            CASE.store(2, SeqCst);
            let _held = HANDLER.lock();
            raise();
        }
        // SAFETY: it is not, that is the case.
        "not held" => unsafe { PROCESS.force_unlock(lock_api::GuardNoSend::new()) },
        "unblocked" => {
            let _held = SIGNAL.lock();
            usr2(libc::SIG_UNBLOCK);
        }
        "wrong order" => {
            let other = SignalLock::new(());
            let outer = SIGNAL.lock();
            let inner = other.lock();
            drop(outer);
            drop(inner);
        }
        "yield" => {
            let _held = SIGNAL.lock();
            thread::yield_now();
        }
        _ => unreachable!(),
    };
    if std::env::var_os("ON_KERNEL_THREAD").is_some() {
        sin();
    } else {
        let rt = fast(1).build().unwrap();
        rt.run(sin);
    }
    eprintln!("nothing happened");
}

#[test]
fn misuse_aborts_with_a_message() {
    if let Some(case) = child_case() {
        let (case, place) = case.split_once('@').unwrap();
        if place == "kernel" {
            // SAFETY: the only thread that looks at the environment.
            unsafe { std::env::set_var("ON_KERNEL_THREAD", "1") };
        }
        return misuse(case);
    }
    let me = "misuse_aborts_with_a_message";
    for place in ["kernel", "reveille"] {
        let aborts = |case, words: &[&str]| child_aborts(me, &format!("{case}@{place}"), words);
        aborts("process twice", &["a ProcessLock", "by the thread that holds it"]);
        aborts("handler twice", &["a HandlerLock", "by the thread that holds it"]);
        aborts("signal twice", &["a SignalLock", "by the thread that holds it"]);
        aborts("process in a handler", &["a ProcessLock", "interrupted the holder"]);
        aborts("handler in a handler", &["a HandlerLock", "interrupted the holder"]);
        aborts("not held", &["a ProcessLock", "does not hold it"]);
        aborts("unblocked", &["a SignalLock", "signals were unblocked"]);
        aborts("wrong order", &["a SignalLock", "signals were unblocked"]);
    }
    child_aborts(me, "yield@reveille", &["yield_now", "preemption was switched off"]);
}

#[test]
fn a_handler_that_interrupted_the_holder_is_told_no() {
    let _alone = alone();
    install(interrupts, libc::SA_ONSTACK);
    CASE.store(3, SeqCst);
    let asks = || {
        let before = TOLD_NO.load(SeqCst);
        let held = (PROCESS.lock(), HANDLER.lock());
        // SAFETY: to the own kernel thread.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        drop(held);
        assert_eq!(TOLD_NO.load(SeqCst), before + 1);
    };
    asks();
    let rt = fast(1).build().unwrap();
    rt.run(asks);
    rt.shutdown().unwrap();
}
