//! The program's own signal handlers under ticks: a handler is never switched away from, be it on the
//! signal stack, which belongs to the worker, or on the thread's own, with the mask of the handler in
//! force. And what the kernel thread tells of itself.
//!
//! Cures guarded here: the decision's checks of the signal stack and of a foreign mask; no SA_NODEFER; the
//! CPU number of restartable sequences, which a moved thread must not believe.
#![allow(unsafe_code)]

mod support;

use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use support::*;

static HANDLED: AtomicU64 = AtomicU64::new(0);
/// There is one handler in a process.
static ONE: Mutex<()> = Mutex::new(());
static WRONG: AtomicU64 = AtomicU64::new(0);

fn tid() -> i64 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

/// Spins for some ticks; nothing of its frame may change, nor the kernel thread it runs on.
extern "C" fn on_usr1(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    let me = tid();
    let marks = std::hint::black_box([HANDLED.fetch_add(1, SeqCst); 200]);
    for _ in 0..30_000 {
        std::hint::spin_loop();
    }
    let marks = std::hint::black_box(marks);
    if tid() != me || marks.iter().any(|m| *m != marks[0]) {
        WRONG.fetch_add(1, SeqCst);
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

fn handlers_with(flags: c_int, name: &str) {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    // SAFETY: a handler of this process's tests alone; it uses atomics and system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_usr1 as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | flags;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    on_each(name, |rt| {
        let before = HANDLED.load(SeqCst);
        // Handlers are not preempted, so the steps are counted, not the preemptions.
        among_hogs(rt, 6, 60, |_, _| {
            assert_eq!(raw_mask(), 0, "a handler's mask was left on the worker");
            // SAFETY: to the own kernel thread.
            unsafe { libc::raise(libc::SIGUSR1) };
            assert_eq!(raw_mask(), 0, "a handler's mask was left on the thread");
            let _ = spin_until_preempted();
        });
        assert_eq!(HANDLED.load(SeqCst) - before, 360 * factor());
        assert_eq!(WRONG.load(SeqCst), 0, "a handler was switched away from");
    });
}

#[test]
fn handlers_on_the_signal_stack() {
    handlers_with(libc::SA_ONSTACK, "handlers on the signal stack");
}

#[test]
fn handlers_on_the_signal_stack_with_the_usual_mask() {
    // Only the stack tells these from the thread's own code.
    handlers_with(libc::SA_ONSTACK | libc::SA_NODEFER, "handlers that do not defer");
}

#[test]
fn handlers_on_the_threads_own_stack() {
    handlers_with(0, "handlers on the own stack");
}

#[test]
fn sched_getcpu_tells_where_the_thread_is() {
    on_each("sched_getcpu", |rt| {
        let (told, agreed) = (AtomicU64::new(0), AtomicU64::new(0));
        until_preempted(rt, 6, 40, |_, _| {
            let (mut before, mut after) = (0u32, 0u32);
            let null = std::ptr::null_mut::<u32>();
            // SAFETY: live places.
            let cpu = unsafe {
                libc::syscall(libc::SYS_getcpu, &raw mut before, null, null);
                let cpu = libc::sched_getcpu();
                libc::syscall(libc::SYS_getcpu, &raw mut after, null, null);
                cpu
            };
            // Moved in between: says nothing.
            if before == after {
                told.fetch_add(1, SeqCst);
                agreed.fetch_add(u64::from(cpu == before as c_int), SeqCst);
            }
        });
        // A thread may move away and back again between the two, but hardly ever.
        let (told, agreed) = (told.load(SeqCst), agreed.load(SeqCst));
        assert!(agreed > told - told / 100, "{agreed} of {told}");
    });
}

#[test]
fn the_ticks_handler_is_installed_as_it_must_be() {
    // Without its own signal blocked, late ticks nest on the signal stack until it overflows.
    let _alone = alone();
    let rt = fast(1).build().unwrap();
    // SAFETY: asks only.
    let action = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGALRM, std::ptr::null(), &mut old), 0);
        old
    };
    assert_eq!(action.sa_flags & libc::SA_NODEFER, 0);
    for flag in [libc::SA_ONSTACK, libc::SA_RESTART, libc::SA_SIGINFO] {
        assert_ne!(action.sa_flags & flag, 0);
    }
    rt.shutdown().unwrap();
}
