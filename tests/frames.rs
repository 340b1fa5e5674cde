//! Full contexts: every register, flag, vector, control word and the red zone survive being
//! captured in a signal handler and continued, in each of the ways that there are.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use reveille::context::ucontext::{
    capture, makecontext, setcontext_mask, store, swapcontext, swapcontext_mask, xstate_buffer_size,
};
use reveille::context::{Checks, FrameRef, SavedContext};

mod probe;

/// How the context goes on after the trap.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(usize)]
enum Way {
    /// The handler returns: the kernel's own way, which shows that the probe is right.
    Sigreturn,
    /// The handler continues its own frame.
    OwnFrame,
    /// The handler leaves; the frame is continued from outside, where it lies.
    FrameLater,
    /// The handler captures into a `SavedContext` and leaves; it is resumed from outside.
    Saved,
    /// The handler captures into a `ucontext_t` and leaves; setcontext from outside.
    Copied,
    /// As `Saved`, but another signal's frame is overwritten with it.
    SavedStored,
    /// As `Copied`, but another signal's frame is overwritten with it.
    CopiedStored,
}

const STACK: usize = 128 * 1024;

/// What the handlers share with the test that runs.
struct Shared {
    main: ucontext_t,
    other: ucontext_t,
    copy: ucontext_t,
    saved: SavedContext,
    buffer: Vec<Piece>,
    stack: Vec<u8>,
    second_stack: Vec<u8>,
}

#[repr(align(64))]
struct Piece(#[allow(dead_code)] [u8; 64]);

static TURN: Mutex<()> = Mutex::new(());
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static FRAME: AtomicPtr<ucontext_t> = AtomicPtr::new(ptr::null_mut());
static WAY: AtomicUsize = AtomicUsize::new(0);

fn way() -> Way {
    // SAFETY: only run() stores here, and what it stores is a Way.
    unsafe { mem::transmute(WAY.load(SeqCst)) }
}

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn share() -> *mut Shared {
    if SHARED.load(SeqCst).is_null() {
        // SAFETY: zero is a valid ucontext_t.
        let (main, other, copy) = unsafe { mem::zeroed() };
        let mut buffer = Vec::new();
        buffer.resize_with(xstate_buffer_size() / 64, || Piece([0; 64]));
        let saved = SavedContext::new();
        let (stack, second_stack) = (vec![0; STACK], vec![0; STACK]);
        let shared = Shared { main, other, copy, saved, buffer, stack, second_stack };
        SHARED.store(Box::into_raw(Box::new(shared)), SeqCst);
    }
    SHARED.load(SeqCst)
}

/// The handler of SIGILL, behind `probe_enter`.
extern "C" fn on_trap(_: c_int, _: *mut siginfo_t, uc: *mut c_void) {
    let uc = uc.cast::<ucontext_t>();
    let shared = SHARED.load(SeqCst);
    // SAFETY: the frame is the kernel's; `shared` is ours, since the test waits.
    unsafe {
        let frame = FrameRef::new(uc, Checks::Full).unwrap();
        let mut gregs = frame.gregs();
        assert_eq!(gregs[libc::REG_RIP as usize], probe::probe_trap as *const () as i64);
        assert_eq!(frame.greg(libc::REG_RIP), gregs[libc::REG_RIP as usize] as u64);
        assert!(probe::shown(&gregs));
        gregs[libc::REG_RIP as usize] = probe::probe_after as *const () as i64;
        frame.write_gregs(&gregs);
        match way() {
            Way::Sigreturn => return,
            Way::OwnFrame => _ = setcontext_mask(uc),
            Way::FrameLater => FRAME.store(uc, SeqCst),
            Way::Saved | Way::SavedStored => {
                // The path of a preemption: the cheap checks are enough here.
                let frame = FrameRef::new(uc, Checks::Delivered).unwrap();
                (*shared).saved.capture_from_frame(&frame);
            }
            Way::Copied | Way::CopiedStored => {
                let buffer = (*shared).buffer.as_mut_ptr().cast();
                let copy = &raw mut (*shared).copy;
                capture(copy, &frame, buffer, xstate_buffer_size()).unwrap();
            }
        }
        setcontext_mask(&raw const (*shared).main);
        unreachable!();
    }
}

/// The handler of SIGUSR2: continues the context in its own frame's place.
extern "C" fn on_second(_: c_int, _: *mut siginfo_t, uc: *mut c_void) {
    let shared = SHARED.load(SeqCst);
    // SAFETY: as above.
    unsafe {
        let frame = FrameRef::new(uc.cast::<ucontext_t>(), Checks::Delivered).unwrap();
        match way() {
            Way::SavedStored => (*shared).saved.store_into_frame(&frame).unwrap(),
            _ => store(&frame, &raw const (*shared).copy).unwrap(),
        }
    }
}

fn handle(signo: c_int, handler: usize, flags: c_int) {
    // SAFETY: the handlers have the type that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | flags;
        assert_eq!(libc::sigaction(signo, &raw const action, ptr::null_mut()), 0);
    }
}

extern "C" fn resume_saved() {
    // SAFETY: captured by the handler from a kernel's frame; its stack waits.
    unsafe { (*SHARED.load(SeqCst)).saved.resume() }
}

extern "C" fn raise_second() {
    // SAFETY: the handler continues the saved context.
    unsafe { libc::raise(libc::SIGUSR2) };
    unreachable!();
}

/// Continues what the handler left behind; comes back when the probe has returned.
unsafe fn go_on(shared: *mut Shared) {
    // SAFETY: run() has set everything up; each context has a stack of its own.
    unsafe {
        let (main, other) = (&raw mut (*shared).main, &raw mut (*shared).other);
        (*other).uc_stack.ss_sp = (*shared).second_stack.as_mut_ptr().cast();
        (*other).uc_stack.ss_size = STACK;
        probe::probe_trash();
        match way() {
            Way::FrameLater => assert_eq!(swapcontext_mask(main, FRAME.load(SeqCst)), 0),
            Way::Copied => assert_eq!(swapcontext(main, &raw const (*shared).copy), 0),
            Way::Saved => {
                makecontext(other, resume_saved, &[]);
                assert_eq!(swapcontext(main, other), 0);
            }
            Way::SavedStored | Way::CopiedStored => {
                makecontext(other, raise_second, &[]);
                assert_eq!(swapcontext(main, other), 0);
            }
            Way::Sigreturn | Way::OwnFrame => unreachable!(),
        }
    }
}

fn run(way: Way, on_signal_stack: bool) {
    let _turn = turn();
    let shared = share();
    WAY.store(way as usize, SeqCst);
    let flags = if on_signal_stack { libc::SA_ONSTACK } else { 0 };
    handle(libc::SIGILL, probe::probe_enter as *const () as usize, flags);
    handle(libc::SIGUSR2, on_second as *const () as usize, flags);
    let mut signal_stack = vec![0u8; STACK];
    for seed in 1..=40 {
        probe::prepare(seed);
        // SAFETY: the stacks live on; the contexts run one at a time, on this kernel thread.
        unsafe {
            let stack = libc::stack_t {
                ss_sp: signal_stack.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: STACK,
            };
            assert_eq!(libc::sigaltstack(&raw const stack, ptr::null_mut()), 0);
            let (main, other) = (&raw mut (*shared).main, &raw mut (*shared).other);
            let mut start: ucontext_t = mem::zeroed();
            start.uc_stack.ss_sp = (*shared).stack.as_mut_ptr().cast();
            start.uc_stack.ss_size = STACK;
            start.uc_link = main;
            makecontext(&raw mut start, probe::probe_run, &[]);
            assert_eq!(swapcontext_mask(main, &raw const start), 0);
            if !matches!(way, Way::Sigreturn | Way::OwnFrame) {
                go_on(shared);
            }
            (*other).uc_link = ptr::null_mut();
        }
        probe::compare(&format!("{way:?}, signal stack {on_signal_stack}, seed {seed}"));
    }
    // SAFETY: puts back the state of a thread without a signal stack.
    unsafe {
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        assert_eq!(libc::sigaltstack(&raw const none, ptr::null_mut()), 0);
    }
}

#[test]
fn everything_survives_sigreturn() {
    run(Way::Sigreturn, false);
    run(Way::Sigreturn, true);
}

#[test]
fn everything_survives_continuing_the_own_frame() {
    run(Way::OwnFrame, false);
    run(Way::OwnFrame, true);
}

#[test]
fn everything_survives_continuing_a_frame_from_outside() {
    run(Way::FrameLater, false);
}

#[test]
fn everything_survives_a_saved_context() {
    run(Way::Saved, false);
    run(Way::Saved, true);
}

#[test]
fn everything_survives_a_copied_context() {
    run(Way::Copied, false);
    run(Way::Copied, true);
}

#[test]
fn everything_survives_being_stored_into_another_frame() {
    run(Way::SavedStored, false);
    run(Way::SavedStored, true);
    run(Way::CopiedStored, false);
    run(Way::CopiedStored, true);
}
