//! What switching contexts costs: ours, with and without the signal mask, beside the C
//! library's. Prints nanoseconds for one switch, the median of several runs.

use std::ffi::c_int;
use std::mem;
use std::time::Instant;

use libc::{c_void, siginfo_t, ucontext_t};
use reveille::context::ucontext::{makecontext, swapcontext, swapcontext_mask};
use reveille::context::{Checks, FrameRef, SavedContext};

const SWITCHES: u32 = 1_000_000;
const RUNS: usize = 11;
type Swap = unsafe fn(*mut ucontext_t, *const ucontext_t) -> c_int;

struct Pair {
    main: ucontext_t,
    other: ucontext_t,
    swap: Swap,
}

unsafe extern "C" fn bounce(pair: *mut Pair) {
    loop {
        // SAFETY: the pair lives as long as this context is continued.
        unsafe { ((*pair).swap)(&raw mut (*pair).other, &raw const (*pair).main) };
    }
}

unsafe fn libc_swap(from: *mut ucontext_t, to: *const ucontext_t) -> c_int {
    // SAFETY: the same contract.
    unsafe { libc::swapcontext(from, to) }
}

fn median(mut one: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..RUNS).map(|_| one()).collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn measure(swap: Swap) -> f64 {
    let mut stack = vec![0u8; 64 * 1024];
    // SAFETY: zero is a valid ucontext_t.
    let (main, other) = unsafe { mem::zeroed() };
    let pair = &raw mut *Box::leak(Box::new(Pair { main, other, swap }));
    // SAFETY: the stack outlives the context, which is never continued after this function.
    unsafe {
        let (main, other) = (&raw mut (*pair).main, &raw mut (*pair).other);
        (*other).uc_stack.ss_sp = stack.as_mut_ptr().cast();
        (*other).uc_stack.ss_size = stack.len();
        let function =
            mem::transmute::<unsafe extern "C" fn(*mut Pair), unsafe extern "C" fn()>(bounce);
        makecontext(other, function, &[pair.expose_provenance() as u64]);
        median(|| {
            let start = Instant::now();
            for _ in 0..SWITCHES / 2 {
                swap(main, other);
            }
            start.elapsed().as_nanos() as f64 / f64::from(SWITCHES)
        })
    }
}

/// Copying a frame into a `SavedContext`, measured inside a handler.
extern "C" fn on_signal(_: c_int, _: *mut siginfo_t, uc: *mut c_void) {
    let mut saved = SavedContext::new();
    let uc = uc.cast::<ucontext_t>();
    for checks in [Checks::Delivered, Checks::Full] {
        let time = median(|| {
            let start = Instant::now();
            for _ in 0..SWITCHES {
                // SAFETY: the kernel's frame.
                let frame = unsafe { FrameRef::new(std::hint::black_box(uc), checks) };
                saved.capture_from_frame(&frame.unwrap());
            }
            start.elapsed().as_nanos() as f64 / f64::from(SWITCHES)
        });
        println!("check ({checks:?}) and capture a frame  {time:8.1} ns");
    }
}

fn main() {
    println!("swapcontext                   {:8.1} ns", measure(swapcontext));
    println!("swapcontext_mask              {:8.1} ns", measure(swapcontext_mask));
    println!("the C library's swapcontext   {:8.1} ns", measure(libc_swap));
    // SAFETY: the handler has the right type.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
        libc::raise(libc::SIGUSR1);
    }
}
