//! A handler of the program's without SA_ONSTACK that interrupts the resume of a thread whose state lies in its
//! slot's spare area, because its stack had no room: the handler runs there, below the state, at each
//! instruction of the resume, and asks for a tick itself.
//!
//! Cures guarded here: no thread is saved in a spare area that is in use (`preempt::handler::place_for`: the
//! handler may have the usual mask, and the flag is clear already in the resume's window).
#![allow(unsafe_code)]

mod support;

use reveille::{Runtime, bench_support, thread};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use support::*;

static STEPPING: AtomicBool = AtomicBool::new(false);
/// The lowest address of the narrow thread's stack.
static END: AtomicUsize = AtomicUsize::new(0);
/// Steps in the spare area so far, and the one before which the signal comes.
static COUNT: AtomicU64 = AtomicU64::new(0);
static AT: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

fn in_spare(address: usize) -> bool {
    let end = END.load(SeqCst) - 4096;
    (end - (64 << 10)..end).contains(&address)
}

/// Runs on the signal stack: sends the signal to the own kernel thread at the right step.
extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, uc: *mut c_void) {
    // SAFETY: the kernel's frame.
    unsafe {
        let gregs = stepping::gregs(uc);
        if !STEPPING.load(SeqCst) {
            return stepping::end(gregs);
        }
        let rsp = *gregs.add(libc::REG_RSP as usize);
        if in_spare(rsp as usize) && COUNT.fetch_add(1, SeqCst) == AT.load(SeqCst) {
            STEPPING.store(false, SeqCst);
            let (pid, tid) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
            libc::syscall(libc::SYS_tgkill, pid, tid, libc::SIGUSR1);
        }
        stepping::keep_on(gregs);
    }
}

extern "C" fn on_usr1(_: c_int) {
    let marks = std::hint::black_box([HANDLED.fetch_add(1, SeqCst); 32]);
    ELSEWHERE.fetch_add(u64::from(!in_spare(marks.as_ptr() as usize)), SeqCst);
    bench_support::preempt_self();
    let marks = std::hint::black_box(marks);
    if marks.iter().any(|m| *m != marks[0]) {
        std::process::abort();
    }
}

fn install(signo: c_int, handler: usize, flags: c_int) {
    // SAFETY: the handlers of this file are async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        if signo == libc::SIGTRAP {
            // Comes when the trap's handler has returned.
            libc::sigaddset(&mut action.sa_mask, libc::SIGUSR1);
        }
        assert_eq!(libc::sigaction(signo, &action, std::ptr::null_mut()), 0);
    }
}

/// Gives way, step by step, to the thread that is resumed from its spare area.
fn give_way_stepped() {
    COUNT.store(0, SeqCst);
    STEPPING.store(true, SeqCst);
    // SAFETY: the handler is installed.
    unsafe { stepping::begin() };
    thread::yield_now();
    STEPPING.store(false, SeqCst);
}

/// One signal a round, before the first instruction in the spare area, the second, and so on.
fn at_each_instruction(flags: c_int) {
    let on_trap = on_trap as *const () as usize;
    install(libc::SIGTRAP, on_trap, libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART);
    install(libc::SIGUSR1, on_usr1 as *const () as usize, flags);
    // No ticks but those that are sent.
    let b = Runtime::builder().workers(1).time_slice(Duration::from_secs(10));
    let rt = b.adaptive_slices(false).build().unwrap();
    let mut ends = [0; 2];
    // SAFETY: a live array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    HANDLED.store(0, SeqCst);
    let (ready, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let places = rt.run(|| {
        thread::scope(|s| {
            let narrow = thread::Builder::new().stack_size(64 << 10);
            let narrow = narrow.spawn_scoped(s, || {
                END.store(end_of_stack(ends[1]), SeqCst);
                ready.store(true, SeqCst);
                while !done.load(SeqCst) {
                    assert!(stepping::tick_at(END.load(SeqCst) + 2048), "registers");
                }
            });
            narrow.unwrap();
            while !ready.load(SeqCst) {
                thread::yield_now();
            }
            let mut at = 0;
            while HANDLED.load(SeqCst) == at {
                AT.store(at, SeqCst);
                give_way_stepped();
                at += 1;
                progress(0);
            }
            done.store(true, SeqCst);
            at - 1
        })
    });
    assert!(places > 40, "only {places} instructions were stepped in the spare area");
    assert_eq!(HANDLED.load(SeqCst), places);
    assert_eq!(ELSEWHERE.load(SeqCst), 0, "a handler ran on another stack");
    rt.shutdown().unwrap();
}

#[test]
fn a_handler_in_the_spare_area() {
    let _alone = alone();
    watched("deferring", || format!("{AT:?}"), || at_each_instruction(0));
}

#[test]
fn a_handler_in_the_spare_area_with_the_usual_mask() {
    let _alone = alone();
    watched("not deferring", || format!("{AT:?}"), || at_each_instruction(libc::SA_NODEFER));
}
