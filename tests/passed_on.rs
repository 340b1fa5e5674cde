//! Signals with the tick's number that are somebody else's: they go to the handler that was there before the
//! first runtime, under the conditions that it asked for, as the kernel would have called it.
//!
//! Cures guarded here: passing on (`preempt::pass_on`) with the old action's mask, SA_NODEFER, SA_RESETHAND and
//! kind of arguments, and the mask of the interrupted thread afterwards.
#![allow(unsafe_code)]

mod support;

use reveille::Runtime;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use support::*;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static DEPTH: AtomicUsize = AtomicUsize::new(0);
static DEEPEST: AtomicUsize = AtomicUsize::new(0);
/// The mask in the handler.
static MASK: AtomicU64 = AtomicU64::new(0);
/// What siginfo said: the code, plus one.
static CODE: AtomicUsize = AtomicUsize::new(0);

fn set_of(signo: c_int) -> u64 {
    1 << (signo - 1)
}

/// The kernel's own mask.
fn raw_mask() -> u64 {
    let mut mask = 0u64;
    let none = std::ptr::null::<u64>();
    // SAFETY: asks only.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut mask, 8) };
    mask
}

/// To the calling kernel thread, wherever the thread may be moved in between.
fn send(signo: c_int) {
    let _off = reveille::preempt::disable();
    // SAFETY: async-signal-safe.
    unsafe { libc::raise(signo) };
}

extern "C" fn notes(signo: c_int) {
    DEEPEST.fetch_max(DEPTH.fetch_add(1, SeqCst) + 1, SeqCst);
    if CALLS.fetch_add(1, SeqCst) == 0 {
        MASK.store(raw_mask(), SeqCst);
        send(signo);
    }
    DEPTH.fetch_sub(1, SeqCst);
}

extern "C" fn notes_info(signo: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's siginfo.
    CODE.store(unsafe { (*info).si_code } as usize + 1, SeqCst);
    notes(signo);
}

/// A handler for real-time signal number `n` that also blocks `masked`, and then a runtime that ticks with it.
fn runtime_over(n: c_int, handler: usize, flags: c_int, masked: &[c_int]) -> (c_int, Runtime) {
    let signo = libc::SIGRTMIN() + n;
    install(signo, handler, flags, masked);
    for count in [&CALLS, &DEPTH, &DEEPEST, &CODE] {
        count.store(0, SeqCst);
    }
    (signo, fast(1).signal(signo).build().unwrap())
}

fn install(signo: c_int, handler: usize, flags: c_int, masked: &[c_int]) {
    // SAFETY: the handlers of this file are async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        masked.iter().for_each(|s| assert_eq!(libc::sigaddset(&mut action.sa_mask, *s), 0));
        assert_eq!(libc::sigaction(signo, &action, std::ptr::null_mut()), 0);
    }
}

fn notes_address() -> usize {
    notes as *const () as usize
}

/// The signal in a thread among others: what the handler saw, and that nothing of it stays.
fn once_in_a_thread(rt: &Runtime, signo: c_int) {
    until_preempted(rt, 2, 5, |i, count| {
        if i == 0 && count == 0 {
            send(signo);
            assert_eq!(raw_mask(), 0, "the handler's mask stayed");
        }
    });
}

#[test]
fn the_mask_of_the_action() {
    let _alone = alone();
    let (signo, rt) = runtime_over(1, notes_address(), 0, &[libc::SIGUSR2, libc::SIGTERM]);
    once_in_a_thread(&rt, signo);
    let all = set_of(signo) | set_of(libc::SIGUSR2) | set_of(libc::SIGTERM);
    assert_eq!(MASK.load(SeqCst), all);
    // Its own signal waits until it has returned.
    assert_eq!((CALLS.load(SeqCst), DEEPEST.load(SeqCst)), (2, 1));
    rt.shutdown().unwrap();
}

#[test]
fn handlers_that_do_not_defer() {
    let _alone = alone();
    let flags = libc::SA_NODEFER | libc::SA_SIGINFO;
    let handler = notes_info as *const () as usize;
    let (signo, rt) = runtime_over(2, handler, flags, &[libc::SIGUSR2]);
    once_in_a_thread(&rt, signo);
    assert_eq!(MASK.load(SeqCst), set_of(libc::SIGUSR2));
    assert_eq!((CALLS.load(SeqCst), DEEPEST.load(SeqCst)), (2, 2));
    // raise(3) is tgkill(2): SI_TKILL is -6.
    assert_eq!(CODE.load(SeqCst), (libc::SI_TKILL as usize).wrapping_add(1));
    rt.shutdown().unwrap();
}

#[test]
fn a_mask_that_names_the_signal_defers_it() {
    let _alone = alone();
    let signo = libc::SIGRTMIN() + 3;
    let (signo, rt) = runtime_over(3, notes_address(), libc::SA_NODEFER, &[signo]);
    once_in_a_thread(&rt, signo);
    assert_eq!(MASK.load(SeqCst), set_of(signo));
    assert_eq!((CALLS.load(SeqCst), DEEPEST.load(SeqCst)), (2, 1));
    rt.shutdown().unwrap();
}

/// The first signal goes to the handler, the second to the default action: here, to do nothing.
#[test]
fn handlers_for_once() {
    let _alone = alone();
    install(libc::SIGURG, notes_address(), libc::SA_RESETHAND, &[]);
    CALLS.store(0, SeqCst);
    let rt = fast(2).signal(libc::SIGURG).build().unwrap();
    until_preempted(&rt, 3, 20, |_, _| send(libc::SIGURG));
    assert_eq!(CALLS.load(SeqCst), 1);
    rt.shutdown().unwrap();
}

/// As above, where the default action is to end the process.
#[test]
fn handlers_for_once_and_the_end() {
    let test = "handlers_for_once_and_the_end";
    if child_case().is_none() {
        use std::os::unix::process::ExitStatusExt;
        let out = child(test, "once");
        let signal = out.status.signal().or(out.status.code().map(|c| c - 128));
        assert_eq!(signal, Some(libc::SIGRTMIN() + 4), "{}", String::from_utf8_lossy(&out.stderr));
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(said.contains("handled once") && !said.contains("survived"), "{said}");
        return;
    }
    // Not `notes`, which sends another one.
    extern "C" fn counts(_: c_int) {
        CALLS.fetch_add(1, SeqCst);
    }
    let (signo, rt) = runtime_over(4, counts as *const () as usize, libc::SA_RESETHAND, &[]);
    rt.run(|| {
        send(signo);
        assert_eq!(CALLS.load(SeqCst), 1);
        println!("handled once");
        send(signo);
        println!("survived");
    });
}
