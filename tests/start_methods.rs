//! Each way to make a thread's first context passes the same battery.
//!
//! Cures guarded here: a converted first context starts with the default modes and flags; the signal's
//! frame is converted whole; the spawner's signal stack and mask are put back.
#![allow(unsafe_code)]

mod support;

use reveille::{StartMethod, thread};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use support::clib::Lib;
use support::*;

thread_local! {
    static OWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

static DROPPED: AtomicU64 = AtomicU64::new(0);
struct Counted(u64);
impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, SeqCst);
    }
}

fn battery(name: &str, method: StartMethod) {
    quiet_panics();
    let lib = Lib::of("storm.c");
    // SAFETY: the types are those of storm.c.
    let (rounds, leave): (unsafe extern "C" fn() -> i32, unsafe extern "C" fn()) =
        unsafe { (lib.get(c"storm_has_default_rounding"), lib.get(c"storm_leave_rounding")) };
    on_each_of(
        name,
        |b| b.start_method(method),
        |rt| {
            DROPPED.store(0, SeqCst);
            among_hogs(rt, 5, 120, |i, n| {
                let key = (i as u64) << 32 | n;
                let t = thread::spawn(move || {
                    OWN.with_borrow(|o| assert!(o.is_empty()));
                    OWN.with_borrow_mut(|o| o.push(key));
                    thread::yield_now();
                    let text = format!("{key}");
                    if n % 10 == 0 {
                        let _ = spin_until_preempted();
                    }
                    OWN.with_borrow(|o| assert_eq!(o[..], [key]));
                    // SAFETY: concern this thread's modes.
                    unsafe {
                        assert_eq!(rounds(), 1, "the first context has other modes");
                        leave();
                    }
                    text
                });
                assert_eq!(t.join().unwrap(), key.to_string());
                let c = Counted(key);
                let t = thread::spawn(move || c);
                assert_eq!(t.join().unwrap().0, key);
                let t = thread::spawn(move || std::panic::panic_any(key));
                assert_eq!(*t.join().unwrap_err().downcast::<u64>().unwrap(), key);
                let sum = AtomicU64::new(0);
                thread::scope(|s| {
                    for k in 0..4 {
                        let sum = &sum;
                        s.spawn(move || sum.fetch_add(k, SeqCst));
                    }
                });
                assert_eq!(sum.load(SeqCst), 6);
            });
            assert_eq!(DROPPED.load(SeqCst), 600 * factor());
            // Kernel threads start threads the same way.
            std::thread::scope(|s| {
                for _ in 0..2 {
                    s.spawn(|| {
                        for i in 0..200u64 {
                            assert_eq!(rt.spawn(move || i * 2).join().unwrap(), i * 2);
                        }
                    });
                }
            });
            // Long-running ones are preempted and moved as any.
            until_preempted(rt, 6, 40, |_, _| std::hint::spin_loop());
        },
    );
}

#[test]
fn from_the_pool() {
    battery("pool", StartMethod::Pool);
}

#[test]
fn by_a_converted_context() {
    battery("context", StartMethod::Context);
}

#[test]
fn through_a_signal() {
    battery("signal", StartMethod::Signal);
}

#[test]
fn a_thread_may_choose() {
    on_each("choice", |rt| {
        among_hogs(rt, 3, 200, |_, n| {
            let method =
                [StartMethod::Pool, StartMethod::Context, StartMethod::Signal][n as usize % 3];
            // A stack of its own size is another class of slots.
            let b = thread::Builder::new().start_method(method).stack_size(64 << 10);
            assert_eq!(b.spawn(move || n).unwrap().join().unwrap(), n);
        });
    });
}
