//! Threads that glibc ends: pthread_exit, cancellation of oneself. Cleanup handlers run, C++ objects on the
//! stack are destroyed, the join says `Exited`, and the slot serves the next thread, many times over.
//!
//! Cure guarded here: the cancellation buffer that a thread's entry registers (without it the process
//! crashes at the first pthread_exit).
#![allow(unsafe_code)]

mod support;

use reveille::thread::{self, Exited};
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering::SeqCst};
use support::clib::Lib;
use support::*;

type End = unsafe extern "C-unwind" fn(c_int, c_int, *mut c_int);
type ExitThrough = unsafe extern "C-unwind" fn(c_int, *mut i64);

fn functions() -> (End, ExitThrough, unsafe extern "C" fn() -> c_int) {
    let (c, cpp) = (Lib::of("storm.c"), Lib::of("throw.cpp"));
    // SAFETY: the types are those of storm.c and throw.cpp, whose libraries stay open.
    unsafe { (c.get(c"storm_end"), cpp.get(c"storm_exit_through"), cpp.get(c"storm_thread_local")) }
}

#[track_caller]
fn assert_exited(t: thread::JoinHandle<()>) {
    let payload = t.join().expect_err("the thread returned");
    assert!(payload.is::<Exited>(), "not ended by glibc");
}

#[test]
fn exit_and_cancellation_end_the_thread() {
    let (end, exit_through, thread_local) = functions();
    on_each("ended by glibc", |rt| {
        among_hogs(rt, 4, 150, |_, n| {
            for how in 0..3 {
                let cleanups = AtomicI32::new(0);
                let at = cleanups.as_ptr() as usize;
                let depth = (n % 7) as c_int;
                // SAFETY: nothing on the closure's stack needs to be dropped.
                assert_exited(thread::spawn(move || unsafe { end(how, depth, at as *mut c_int) }));
                assert_eq!(cleanups.load(SeqCst), depth + 1, "cleanup handlers");
            }
            let alive = AtomicI64::new(0);
            let at = alive.as_ptr() as usize;
            let depth = (n % 5) as c_int;
            // SAFETY: as above.
            assert_exited(thread::spawn(move || unsafe { exit_through(depth, at as *mut i64) }));
            assert_eq!(alive.load(SeqCst), 0, "objects left on the stack");
            // The slot is whole for an ordinary thread, and for a panic.
            // SAFETY: touches this thread's variables.
            let t = thread::spawn(move || unsafe { thread_local() });
            assert_eq!(t.join().unwrap(), 0);
        });
    });
}

#[test]
fn ends_and_panics_take_turns_on_one_slot() {
    quiet_panics();
    let (end, ..) = functions();
    on_each("turns", |rt| {
        rt.run(|| {
            let mut cleanups = 0;
            let at = &raw mut cleanups as usize;
            for n in 0..2000u64 * factor() {
                let t = thread::spawn(move || match n % 3 {
                    // SAFETY: nothing on the closure's stack needs to be dropped.
                    0 => unsafe { end((n % 2) as c_int, 0, at as *mut c_int) },
                    1 => std::panic::panic_any(n),
                    _ => thread::yield_now(),
                });
                match (n % 3, t.join()) {
                    (0, Err(p)) => assert!(p.is::<Exited>()),
                    (1, Err(p)) => assert_eq!(*p.downcast::<u64>().unwrap(), n),
                    (2, Ok(())) => {}
                    (k, r) => panic!("{k} ended with {r:?}"),
                }
                progress(1);
            }
        });
    });
}

#[test]
fn detached_and_scoped_threads_may_exit_too() {
    let (end, ..) = functions();
    on_each("detached", |rt| {
        let cleanups = AtomicI32::new(0);
        let at = cleanups.as_ptr() as usize;
        rt.run(|| {
            for _ in 0..300 {
                // SAFETY: nothing on the closure's stack needs to be dropped.
                drop(thread::spawn(move || unsafe { end(0, 2, at as *mut c_int) }));
                thread::scope(|s| {
                    // SAFETY: as above.
                    let t = s.spawn(move || unsafe { end(1, 1, at as *mut c_int) });
                    assert!(t.join().expect_err("it ended").is::<Exited>());
                });
            }
        });
        while cleanups.load(SeqCst) < 300 * 5 {
            std::thread::yield_now();
        }
        assert_eq!(cleanups.load(SeqCst), 1500);
    });
}

#[test]
fn destructors_of_cpp_thread_locals_run() {
    let lib = Lib::of("throw.cpp");
    // SAFETY: the types are those of throw.cpp.
    let (touch, destroyed): (unsafe extern "C" fn() -> c_int, unsafe extern "C" fn() -> i64) =
        unsafe { (lib.get(c"storm_thread_local"), lib.get(c"storm_destroyed")) };
    on_each("C++ thread_local", |rt| {
        // SAFETY: reads a counter.
        let before = unsafe { destroyed() };
        among_hogs(rt, 4, 250, |_, _| {
            // SAFETY: touches the thread's variables.
            assert_eq!(thread::spawn(move || unsafe { touch() }).join().unwrap(), 0);
        });
        // SAFETY: as above.
        assert_eq!(unsafe { destroyed() } - before, 1000 * factor() as i64);
    });
}
