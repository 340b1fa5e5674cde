//! Contexts from Rust: arguments, links, closures, no system calls, and a computation that is
//! interrupted again and again and never notices.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::mem;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use libc::{c_int, siginfo_t, ucontext_t};
use reveille::context::ucontext::{
    makecontext, set_thread_end, setcontext, setcontext_mask, swapcontext, swapcontext_mask,
};
use reveille::context::{Checks, FrameRef, SavedContext, UserContext, resume_code};

const STACK: usize = 128 * 1024;

fn blank() -> ucontext_t {
    // SAFETY: zero is a valid value.
    unsafe { mem::zeroed() }
}

fn on(stack: &mut [u8], link: *mut ucontext_t) -> ucontext_t {
    let mut context = blank();
    context.uc_stack.ss_sp = stack.as_mut_ptr().cast();
    context.uc_stack.ss_size = stack.len();
    context.uc_link = link;
    context
}

thread_local!(static SEEN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });

type Plain = unsafe extern "C" fn();

extern "C" fn none() {
    SEEN.set(vec![]);
}
extern "C" fn one(a: u64) {
    SEEN.set(vec![a]);
}
extern "C" fn six(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) {
    SEEN.set(vec![a, b, c, d, e, f]);
}
extern "C" fn seven(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64) {
    SEEN.set(vec![a, b, c, d, e, f, g]);
}
#[allow(clippy::too_many_arguments, clippy::many_single_char_names)]
extern "C" fn twelve(
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    g: u64,
    h: u64,
    i: u64,
    j: u64,
    k: u64,
    l: u64,
) {
    SEEN.set(vec![a, b, c, d, e, f, g, h, i, j, k, l]);
}

#[test]
fn any_number_of_arguments() {
    let functions: [(usize, *const ()); 5] = [
        (0, none as *const ()),
        (1, one as *const ()),
        (6, six as *const ()),
        (7, seven as *const ()),
        (12, twelve as *const ()),
    ];
    for (count, function) in functions {
        let (mut main, mut stack) = (blank(), vec![0; STACK]);
        let mut context = on(&mut stack, &raw mut main);
        let args: Vec<u64> = (1..=count as u64).map(|i| i << 60 | i).collect();
        // SAFETY: the function takes that many integers; it returns to `main`.
        unsafe {
            let function = mem::transmute::<*const (), Plain>(function);
            makecontext(&raw mut context, function, &args);
            assert_eq!(swapcontext(&raw mut main, &raw const context), 0);
        }
        assert_eq!(SEEN.take(), args);
    }
}

#[test]
fn closures_talk_to_each_other() {
    let main = Rc::new(UserContext::new());
    let log = Rc::new(RefCell::new(Vec::new()));
    let mut stacks = [vec![0u8; STACK], vec![0u8; STACK]];
    let turn: Rc<[Cell<*const UserContext>; 2]> = Rc::default();
    let contexts: Vec<_> = stacks
        .iter_mut()
        .enumerate()
        .map(|(me, stack)| {
            let (log, turn) = (log.clone(), turn.clone());
            let body = move || {
                for step in 0..3 {
                    log.borrow_mut().push(10 * me + step);
                    // SAFETY: both contexts live, and the other one waits.
                    unsafe { assert!((*turn[me].get()).swap(&*turn[1 - me].get())) };
                }
            };
            // SAFETY: the stacks outlive the contexts.
            unsafe { UserContext::on_stack(&raw mut stack[..], Some(&main), body) }
        })
        .collect();
    turn[0].set(&raw const contexts[0]);
    turn[1].set(&raw const contexts[1]);
    // SAFETY: neither has run yet.
    unsafe { assert!(main.swap(&contexts[0])) };
    assert_eq!(*log.borrow(), [0, 10, 1, 11, 2, 12]);
    // The first has ended; the second stands after its third step.
    // SAFETY: it waits.
    unsafe { assert!(main.swap(&contexts[1])) };
}

#[test]
fn empty_contexts_and_small_stacks_are_refused() {
    let (here, never) = (UserContext::new(), UserContext::new());
    let dropped = Rc::new(());
    let mut stack = [0u8; 256];
    let held = dropped.clone();
    // SAFETY: never continued, because it is refused.
    unsafe {
        assert!(!here.swap(&never));
        let small = UserContext::on_stack(&raw mut stack[..], None, move || drop(held));
        assert!(!here.swap(&small));
    }
    assert_eq!(Rc::strong_count(&dropped), 1);
}

static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn leave_thread(_: *mut c_void) -> *mut c_void {
    let stack = vec![0; STACK].leak();
    let mut context = on(stack, ptr::null_mut());
    // SAFETY: the stack is never freed; the context ends this thread.
    unsafe {
        makecontext(&raw mut context, none, &[]);
        setcontext(&raw const context);
    }
    unreachable!()
}

unsafe extern "C" fn my_end(value: *mut c_void) -> ! {
    ENDED.store(true, SeqCst);
    // SAFETY: ends a thread whose stack holds nothing to drop.
    unsafe { libc::pthread_exit(value) }
}

#[test]
fn no_link_ends_the_thread() {
    for replaced in [false, true] {
        // SAFETY: my_end may be called in any thread; the thread's function has the right type.
        unsafe {
            if replaced {
                set_thread_end(my_end);
            }
            let (mut id, mut result) = (0, ptr::dangling_mut());
            let created =
                libc::pthread_create(&raw mut id, ptr::null(), leave_thread, ptr::null_mut());
            assert_eq!(created, 0);
            assert_eq!(libc::pthread_join(id, &raw mut result), 0);
            assert!(result.is_null());
        }
        assert_eq!(ENDED.load(SeqCst), replaced);
    }
}

/// Any system call but exit_group kills the process.
fn forbid_system_calls() {
    let step = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_exit_group as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_ptr().cast_mut() };
    // SAFETY: the filter lives during the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter), 0);
    }
}

struct Pair {
    main: ucontext_t,
    other: ucontext_t,
    swap: unsafe fn(*mut ucontext_t, *const ucontext_t) -> c_int,
}

extern "C" fn bounce(pair: *mut Pair) {
    // SAFETY: the pair lives until the process ends.
    unsafe {
        for _ in 0..10_000 {
            ((*pair).swap)(&raw mut (*pair).other, &raw const (*pair).main);
        }
    }
}

/// Runs `body` in a child that may not make system calls; gives its wait status.
fn in_child(prepare: impl FnOnce(), body: impl FnOnce()) -> c_int {
    // SAFETY: the child only does what its closures do, and leaves by _exit.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            prepare();
            forbid_system_calls();
            body();
            libc::_exit(42);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    }
}

fn bounce_without_system_calls(
    swap: unsafe fn(*mut ucontext_t, *const ucontext_t) -> c_int,
) -> c_int {
    let mut stack = vec![0; STACK];
    let mut pair = Pair { main: blank(), other: blank(), swap };
    pair.other = on(&mut stack, ptr::null_mut());
    pair.other.uc_link = &raw mut pair.main;
    let address = &raw mut pair;
    in_child(
        || (),
        || {
            // SAFETY: the pair and the stack live; bounce takes one pointer.
            unsafe {
                let bounce = mem::transmute::<extern "C" fn(*mut Pair), Plain>(bounce);
                let other = &raw mut (*address).other;
                makecontext(other, bounce, &[address.expose_provenance() as u64]);
                // The last time, `bounce` has returned, and its link brings us here.
                for _ in 0..=10_000 {
                    ((*address).swap)(&raw mut (*address).main, other);
                }
            }
        },
    )
}

#[test]
fn plain_forms_make_no_system_call() {
    let status = bounce_without_system_calls(swapcontext);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42, "{status:#x}");
}

#[test]
fn mask_forms_make_one() {
    let status = bounce_without_system_calls(swapcontext_mask);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS, "{status:#x}");
}

/// What the handler of the next tests works on.
struct Storm {
    scheduler: ucontext_t,
    resumer: ucontext_t,
    saved: SavedContext,
    stack: std::ops::Range<usize>,
    seen: u64,
}

static STORM: AtomicU64 = AtomicU64::new(0);

fn storm() -> *mut Storm {
    ptr::with_exposed_provenance_mut(STORM.load(SeqCst) as usize)
}

extern "C" fn on_tick(_: c_int, _: *mut siginfo_t, uc: *mut c_void) {
    let storm = storm();
    // SAFETY: the frame is the kernel's; the storm's contexts wait while the worker runs.
    unsafe {
        let frame = FrameRef::new(uc.cast::<ucontext_t>(), Checks::Delivered).unwrap();
        // Only on the computation's stack, and not while it is being resumed.
        let (rip, rsp) = (frame.greg(libc::REG_RIP), frame.greg(libc::REG_RSP));
        if resume_code().contains(&(rip as usize)) || !(*storm).stack.contains(&(rsp as usize)) {
            return;
        }
        (*storm).saved.capture_from_frame(&frame);
        (*storm).seen += 1;
        setcontext_mask(&raw const (*storm).scheduler);
    }
    unreachable!();
}

static RESULT: AtomicU64 = AtomicU64::new(0);

/// Integer and floating-point work whose result depends on every step.
fn compute(rounds: u64) -> u64 {
    let (mut hash, mut x) = (0xcbf2_9ce4_8422_2325_u64, 1.0_f64);
    let mut lanes = [1u32; 16];
    for i in 0..rounds {
        hash = (hash ^ i).wrapping_mul(0x100_0000_01b3).rotate_left(13);
        x = (x * 1.000_000_1 + 0.5) % 1000.0;
        lanes = lanes.map(|lane| lane.wrapping_mul(3).wrapping_add(i as u32));
    }
    hash ^ x.to_bits() ^ lanes.iter().fold(0u64, |sum, lane| sum.rotate_left(7) ^ u64::from(*lane))
}

const ROUNDS: u64 = 30_000_000;

extern "C" fn computation() {
    let result = compute(std::hint::black_box(ROUNDS));
    RESULT.store(result, SeqCst);
}

extern "C" fn resume_saved() {
    // SAFETY: captured by the handler; nothing else continues it.
    unsafe { (*storm()).saved.resume() }
}

#[test]
fn interrupted_computation_gives_the_same_result() {
    let expected = compute(std::hint::black_box(ROUNDS));
    let (mut stack, mut second) = (vec![0; STACK], vec![0; STACK]);
    let mut work = Storm {
        scheduler: blank(),
        resumer: blank(),
        saved: SavedContext::new(),
        stack: 0..0,
        seen: 0,
    };
    let bounds = stack.as_ptr_range();
    work.stack = bounds.start.addr()..bounds.end.addr();
    let work = &raw mut work;
    STORM.store(work.expose_provenance() as u64, SeqCst);
    // SAFETY: the handler has the right type; each context has a stack of its own.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_tick as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, ptr::null_mut()), 0);
        let me = libc::pthread_self();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    libc::pthread_kill(me, libc::SIGUSR2);
                    std::thread::sleep(std::time::Duration::from_micros(50));
                }
            });
            let scheduler = &raw mut (*work).scheduler;
            let mut start = on(&mut stack, scheduler);
            makecontext(&raw mut start, computation, &[]);
            RESULT.store(0, SeqCst);
            swapcontext_mask(scheduler, &raw const start);
            while RESULT.load(SeqCst) == 0 {
                (*work).resumer = on(&mut second, ptr::null_mut());
                makecontext(&raw mut (*work).resumer, resume_saved, &[]);
                swapcontext_mask(scheduler, &raw const (*work).resumer);
            }
            stop.store(true, SeqCst);
        });
        assert_eq!(RESULT.load(SeqCst), expected);
        assert!((*work).seen > 50, "{} ticks", (*work).seen);
    }
}
