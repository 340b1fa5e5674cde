//! Handlers of the program's that cannot be told from ordinary code, on the thread's own stack: they are
//! preempted and may end on another worker, and its signal stack stays its own.
//!
//! Cure guarded here: `sigaction` and its kin in place of libc's, whose way back from a handler
//! (`asm/x86_64/sigreturn.S`) writes the running worker's signal stack into the frame.
#![allow(unsafe_code)]

mod support;

use reveille::Runtime;
use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use support::*;

unsafe extern "C" {
    fn signal(signo: c_int, handler: usize) -> usize;
    fn __sysv_signal(signo: c_int, handler: usize) -> usize;
    fn sigset(signo: c_int, handler: usize) -> usize;
    fn siginterrupt(signo: c_int, interrupt: c_int) -> c_int;
    fn backtrace(addresses: *mut usize, most: c_int) -> c_int;
}

static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);
static MOVED: AtomicUsize = AtomicUsize::new(0);
static PREEMPTED: AtomicU64 = AtomicU64::new(0);

fn tid() -> i64 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

/// The signal stack of the kernel thread, as the kernel tells it.
fn signal_stack() -> usize {
    // SAFETY: asks only; zeroes are a valid stack_t.
    unsafe {
        let mut old: libc::stack_t = std::mem::zeroed();
        libc::syscall(libc::SYS_sigaltstack, 0usize, &raw mut old, 0usize, 0usize);
        old.ss_sp as usize
    }
}

/// Spins until it has been preempted, most of the time.
extern "C" fn spins(_: c_int) {
    let (begun, before) = (tid(), preemptions());
    BEGUN.fetch_add(1, SeqCst);
    spin_until_preempted();
    PREEMPTED.fetch_add(preemptions() - before, SeqCst);
    MOVED.fetch_add(usize::from(tid() != begun), SeqCst);
    ENDED.fetch_add(1, SeqCst);
}

/// As [`spins`], after it has unblocked its own signal: from then on its mask is that of ordinary code.
extern "C" fn unblocks_and_spins(signo: c_int) {
    // SAFETY: zeroes are an empty set; a live set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, signo);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
    spins(signo);
}

fn action(handler: extern "C" fn(c_int), flags: c_int) -> libc::sigaction {
    // SAFETY: all zeroes is a valid action with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags;
    action
}

fn install(handler: extern "C" fn(c_int), flags: c_int) {
    // SAFETY: the handlers of this file use atomics, system calls and the thread's own count.
    let rc =
        unsafe { libc::sigaction(libc::SIGUSR1, &action(handler, flags), std::ptr::null_mut()) };
    assert_eq!(rc, 0);
}

/// A storm of signals among threads that compete: each worker's signal stack is its own all the time.
fn storm_on(rt: &Runtime, step: impl Fn() + Sync + Send) {
    let own: Mutex<HashMap<i64, usize>> = Mutex::default();
    until_preempted(rt, 5, 40, |_, _| {
        step();
        let (worker, stack) = {
            let _off = reveille::preempt::disable();
            (tid(), signal_stack())
        };
        let known = *own.lock().unwrap().entry(worker).or_insert(stack);
        assert_eq!(stack, known, "a worker has another one's signal stack");
    });
    let own = own.into_inner().unwrap();
    let stacks: HashSet<_> = own.values().collect();
    assert_eq!(stacks.len(), own.len(), "two workers with one signal stack");
}

fn storm_of(name: &str, step: impl Fn() + Sync + Send) {
    on_each(name, |rt| storm_on(rt, &step));
}

/// Such a storm with handlers that spin.
fn storm(name: &str, install: impl Fn() + Sync + Send) {
    on_each(name, |rt| {
        let (moved, preempted) = (MOVED.load(SeqCst), PREEMPTED.load(SeqCst));
        storm_on(rt, || {
            install();
            // SAFETY: to the own kernel thread.
            unsafe { libc::raise(libc::SIGUSR1) };
        });
        // A thread that moves while it raises signals another worker.
        while BEGUN.load(SeqCst) != ENDED.load(SeqCst) {
            std::thread::yield_now();
        }
        assert_ne!(
            PREEMPTED.load(SeqCst),
            preempted,
            "no handler was preempted: nothing was shown"
        );
        if rt.workers() > 1 {
            assert_ne!(MOVED.load(SeqCst), moved, "no handler was moved: nothing was shown");
        }
    });
}

#[test]
fn handlers_that_do_not_defer() {
    storm("no defer", || install(spins, libc::SA_NODEFER));
}

#[test]
fn handlers_that_unblock_their_signal() {
    storm("unblocked", || install(unblocks_and_spins, libc::SA_RESTART));
}

#[test]
fn handlers_of_signal() {
    // SAFETY: as in `install`.
    storm("signal", || unsafe {
        assert_ne!(signal(libc::SIGUSR1, unblocks_and_spins as *const () as usize), libc::SIG_ERR);
    });
}

/// A handler's signal stack is empty again when it is left by a jump, and its mask is the thread's.
#[test]
fn handlers_left_by_a_jump() {
    let lib = clib::Lib::of("handlers.c");
    // SAFETY: the types are those of handlers.c.
    let (install, trap) = unsafe {
        let install: unsafe extern "C" fn(c_int, c_int) -> c_int = lib.get(c"handlers_install");
        let trap: unsafe extern "C" fn(c_int) -> c_int = lib.get(c"handlers_trap");
        (install, trap)
    };
    let masked = [(0, 1), (libc::SA_ONSTACK, 1)];
    let unmasked = [(libc::SA_NODEFER, 0), (libc::SA_NODEFER | libc::SA_ONSTACK, 0)];
    for (flags, masks) in masked.into_iter().chain(unmasked) {
        // SAFETY: the library stays open.
        assert_eq!(unsafe { install(flags, masks) }, 0);
        storm_of(&format!("jumps with flags {flags:#x}"), || {
            // SAFETY: as above; the frame that is jumped to is live.
            assert_eq!(unsafe { trap(masks) }, 1);
        });
    }
}

/// What programs see is what libc shows them.
#[test]
fn actions_read_back_as_they_were_given() {
    let _alone = alone();
    let mut old = action(spins, 0);
    let set = |new: &libc::sigaction, old: &mut libc::sigaction| {
        // SAFETY: live actions.
        assert_eq!(unsafe { libc::sigaction(libc::SIGUSR2, new, old) }, 0);
    };
    let mut new = action(spins, libc::SA_NODEFER | libc::SA_RESTART);
    // SAFETY: a live set.
    unsafe { libc::sigaddset(&mut new.sa_mask, libc::SIGTERM) };
    set(&new, &mut old);
    assert_eq!(old.sa_sigaction, libc::SIG_DFL);
    let default = action(spins, 0);
    set(&default, &mut old);
    const SA_RESTORER: c_int = 0x0400_0000;
    assert_eq!(old.sa_flags & !SA_RESTORER, new.sa_flags);
    assert_eq!(old.sa_sigaction, new.sa_sigaction);
    // SAFETY: live sets.
    unsafe {
        assert_eq!(libc::sigismember(&old.sa_mask, libc::SIGTERM), 1);
        assert_eq!(libc::sigismember(&old.sa_mask, libc::SIGUSR2), 0);
    }
    for refused in [0, 65, 32, 33, libc::SIGKILL, libc::SIGSTOP, -1] {
        // SAFETY: a live action.
        let rc = unsafe { libc::sigaction(refused, &new, std::ptr::null_mut()) };
        assert_eq!(rc, -1, "{refused}");
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    }
}

/// The functions that are put in front of libc's do what the manual says.
#[test]
fn signal_and_its_kin() {
    let _alone = alone();
    let now = || {
        let mut now = action(spins, 0);
        // SAFETY: asks only.
        assert_eq!(unsafe { libc::sigaction(libc::SIGUSR2, std::ptr::null(), &mut now) }, 0);
        // SAFETY: a live set.
        (now.sa_flags & 0x7bff_ffff | (now.sa_flags & libc::SA_RESETHAND), unsafe {
            libc::sigismember(&now.sa_mask, libc::SIGUSR2)
        })
    };
    let handler = spins as *const () as usize;
    // SAFETY: the handler is async-signal-safe; nothing raises the signal but this test.
    unsafe {
        signal(libc::SIGUSR2, libc::SIG_DFL);
        assert_eq!(signal(libc::SIGUSR2, handler), libc::SIG_DFL);
        assert_eq!(now(), (libc::SA_RESTART, 1));
        assert_eq!(siginterrupt(libc::SIGUSR2, 1), 0);
        assert_eq!(now(), (0, 1));
        assert_eq!(signal(libc::SIGUSR2, handler), handler);
        assert_eq!(now(), (0, 1), "siginterrupt lasts");
        assert_eq!(siginterrupt(libc::SIGUSR2, 0), 0);
        assert_eq!(now(), (libc::SA_RESTART, 1));
        let ended = ENDED.load(SeqCst);
        assert_eq!(__sysv_signal(libc::SIGUSR2, handler), handler);
        assert_eq!(now(), (libc::SA_RESETHAND | libc::SA_NODEFER, 0));
        libc::raise(libc::SIGUSR2);
        assert_eq!(ENDED.load(SeqCst), ended + 1);
        assert_eq!(signal(libc::SIGUSR2, libc::SIG_DFL), libc::SIG_DFL, "good for once");
        assert_eq!(signal(libc::SIGKILL, handler), libc::SIG_ERR);
        assert_eq!(signal(libc::SIGUSR2, libc::SIG_ERR), libc::SIG_ERR);
        assert_eq!(signal(0, handler), libc::SIG_ERR);
        assert_eq!(siginterrupt(99, 1), -1);
        const SIG_HOLD: usize = 2;
        assert_eq!(sigset(libc::SIGUSR2, handler), libc::SIG_DFL);
        assert_eq!(now(), (0, 0));
        assert_eq!(sigset(libc::SIGUSR2, SIG_HOLD), handler);
        let ended = ENDED.load(SeqCst);
        libc::raise(libc::SIGUSR2);
        assert_eq!(ENDED.load(SeqCst), ended, "held");
        assert_eq!(sigset(libc::SIGUSR2, handler), SIG_HOLD);
        assert_eq!(ENDED.load(SeqCst), ended + 1, "let go");
        assert_eq!(sigset(libc::SIGUSR2, libc::SIG_DFL), handler);
    }
}

static TRACE: [AtomicUsize; 40] = [const { AtomicUsize::new(0) }; 40];

extern "C" fn traces(_: c_int) {
    let mut addresses = [0usize; 40];
    // SAFETY: a live array of 40.
    let n = unsafe { backtrace(addresses.as_mut_ptr(), 40) };
    for (to, a) in TRACE.iter().zip(&addresses[..n as usize]) {
        to.store(*a, SeqCst);
    }
}

#[inline(never)]
fn raises() {
    // SAFETY: to the own kernel thread.
    unsafe { libc::raise(libc::SIGUSR1) };
    std::hint::black_box(());
}

/// Unwinders get from a handler to what it interrupted: our way back describes its frame.
#[test]
fn backtraces_go_through_handlers() {
    let _alone = alone();
    // SAFETY: `backtrace` allocates at its first call only.
    unsafe { backtrace(&mut 0usize, 1) };
    for flags in [0, libc::SA_ONSTACK] {
        install(traces, flags);
        let rt = fast(1).build().unwrap();
        for run in [&|| rt.run(raises) as (), &raises as &dyn Fn()] {
            TRACE.iter().for_each(|a| a.store(0, SeqCst));
            run();
            let begin = raises as *const () as usize;
            let found = TRACE.iter().any(|a| (begin..begin + 100).contains(&a.load(SeqCst)));
            assert!(found, "the interrupted function is not in the trace");
        }
        rt.shutdown().unwrap();
    }
}
