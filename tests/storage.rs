//! A thread's storage is as new, whatever the last thread of the slot did: pthread keys, what libc keeps by
//! name, signal masks and rounding modes. (Libraries' variables: `libraries.rs`.)
//!
//! Cures guarded here: key destructors, unique thread ids, the reset of errno, locale, cancellation, modes
//! and mask.
#![allow(unsafe_code)]

mod support;

use reveille::thread;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use support::clib::Lib;
use support::*;

const KEYS: usize = 100;
static RAN: AtomicUsize = AtomicUsize::new(0);
static AGAIN: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn key_gone(value: *mut c_void) {
    assert!(!value.is_null());
    RAN.fetch_add(1, SeqCst);
    // SAFETY: the test gives boxes of this type.
    drop(unsafe { Box::from_raw(value.cast::<u64>()) });
}

/// Sets its own key again, three times.
unsafe extern "C" fn key_again(value: *mut c_void) {
    RAN.fetch_add(1, SeqCst);
    let n = value as usize;
    if n > 1 {
        // SAFETY: the key lives as long as its threads.
        unsafe { libc::pthread_setspecific(AGAIN.load(SeqCst) as u32, (n - 1) as *const c_void) };
    }
}

#[test]
fn pthread_keys() {
    on_each("keys", |rt| {
        let mut keys = [0; KEYS];
        let mut again = 0;
        // SAFETY: live places for the keys.
        unsafe {
            for k in &mut keys {
                assert_eq!(libc::pthread_key_create(k, Some(key_gone)), 0);
            }
            assert_eq!(libc::pthread_key_create(&mut again, Some(key_again)), 0);
        }
        AGAIN.store(u64::from(again), SeqCst);
        RAN.store(0, SeqCst);
        let threads = AtomicUsize::new(0);
        let keys = &keys;
        among_hogs(rt, 4, 60, |_, n| {
            thread::scope(|s| {
                s.spawn(|| {
                    for (i, k) in keys.iter().enumerate() {
                        let value = Box::into_raw(Box::new(i as u64)).cast::<c_void>();
                        // SAFETY: the key is live.
                        unsafe {
                            assert!(libc::pthread_getspecific(*k).is_null(), "not as new");
                            libc::pthread_setspecific(*k, value);
                        }
                    }
                    // SAFETY: as above.
                    unsafe {
                        assert!(libc::pthread_getspecific(again).is_null(), "not as new");
                        libc::pthread_setspecific(again, 4 as *const c_void);
                    }
                    if n % 4 == 0 {
                        thread::yield_now();
                    }
                    for (i, k) in keys.iter().enumerate() {
                        // SAFETY: as above; the values are boxes of this thread.
                        let value = unsafe { *libc::pthread_getspecific(*k).cast::<u64>() };
                        assert_eq!(value, i as u64);
                    }
                    threads.fetch_add(1, SeqCst);
                });
            });
        });
        assert_eq!(RAN.load(SeqCst), threads.load(SeqCst) * (KEYS + 4));
        for k in keys.iter().chain([&again]) {
            // SAFETY: no thread uses the key any more.
            assert_eq!(unsafe { libc::pthread_key_delete(*k) }, 0);
        }
        // A key made anew in the place of a deleted one has no values.
        // SAFETY: as above.
        let key = unsafe {
            let mut key = 0;
            assert_eq!(libc::pthread_key_create(&mut key, None), 0);
            key
        };
        in_crowds(rt, 8, 1, || {
            // SAFETY: as above.
            assert!(unsafe { libc::pthread_getspecific(key) }.is_null());
        });
        // SAFETY: as above.
        unsafe { libc::pthread_key_delete(key) };
    });
}

thread_local! {
    static FROM_A_KEY: Cell<u32> = const { Cell::new(0) };
    static BOXED: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}
static SEEN_IN_KEY: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn uses_thread_local(_: *mut c_void) {
    // Legal in a key's destructor; whatever it leaves must be gone for the next thread.
    FROM_A_KEY.set(FROM_A_KEY.get() + 1);
    SEEN_IN_KEY.fetch_add(u64::from(FROM_A_KEY.get()), SeqCst);
    let _ = BOXED.try_with(|b| b.borrow_mut().push("left".into()));
}

#[test]
fn key_destructors_that_use_thread_locals() {
    on_each("keys and thread_local", |rt| {
        let mut key = 0;
        // SAFETY: a live place.
        unsafe { libc::pthread_key_create(&mut key, Some(uses_thread_local)) };
        SEEN_IN_KEY.store(0, SeqCst);
        in_crowds(rt, 10, 20, || {
            assert_eq!(FROM_A_KEY.get(), 0, "not as new");
            BOXED.with_borrow(|b| assert!(b.is_empty(), "not as new"));
            // SAFETY: the key is live.
            unsafe { libc::pthread_setspecific(key, 8 as *const c_void) };
        });
        assert_eq!(SEEN_IN_KEY.load(SeqCst), 200);
        // SAFETY: no thread uses the key any more.
        unsafe { libc::pthread_key_delete(key) };
    });
}

/// What a thread can leave behind by name.
fn find_all_new(lib: &Lib) {
    // SAFETY: the types are those of storm.c; all calls concern the calling thread.
    unsafe {
        let state: unsafe extern "C" fn(c_int) -> c_int = lib.get(c"storm_cancel_state");
        let kind: unsafe extern "C" fn(c_int) -> c_int = lib.get(c"storm_cancel_type");
        let rounds: unsafe extern "C" fn() -> c_int = lib.get(c"storm_has_default_rounding");
        let leave: unsafe extern "C" fn() = lib.get(c"storm_leave_rounding");
        assert_eq!(*libc::__errno_location(), 0, "errno is another thread's");
        let global = usize::MAX as libc::locale_t;
        assert_eq!(libc::uselocale(ptr::null_mut()), global, "the locale is another thread's");
        assert_ne!(libc::isalpha(c_int::from(b'q')), 0, "no character tables");
        assert_eq!(libc::toupper(c_int::from(b'q')), c_int::from(b'Q'));
        assert_eq!(rounds(), 1, "the rounding mode is another thread's");
        let mut mask = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask);
        assert_eq!(libc::sigismember(&mask, libc::SIGUSR1), 0, "the mask is another thread's");
        assert_eq!(state(1), 0, "cancellation is disabled");
        assert_eq!(kind(1), 0, "cancellation is asynchronous");
        // Back to deferred before anything else is called; the state stays.
        kind(0);
        kind(1);
        leave();
        libc::sigaddset(&mut mask, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut());
        let locale = libc::newlocale(libc::LC_ALL_MASK, c"C.UTF-8".as_ptr(), ptr::null_mut());
        assert!(!locale.is_null());
        libc::uselocale(locale);
        thread::yield_now();
        assert_eq!(libc::uselocale(ptr::null_mut()), locale);
        *libc::__errno_location() = 55;
        // The next thread must not see it, even if its memory is used for something else.
        LEFT.lock().unwrap().push(locale as usize);
    }
}

static LEFT: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

#[test]
fn what_libc_keeps_by_name() {
    let lib = Lib::of("storm.c");
    on_each("by name", |rt| {
        for _ in 0..10 {
            in_crowds(rt, 12, 1, || find_all_new(&lib));
            for locale in LEFT.lock().unwrap().drain(..) {
                // SAFETY: its thread has ended.
                unsafe { libc::freelocale(locale as libc::locale_t) };
            }
        }
    });
}

/// Which character tables the running thread uses.
fn tables() -> [usize; 3] {
    unsafe extern "C" {
        fn __ctype_b_loc() -> *const usize;
        fn __ctype_tolower_loc() -> *const usize;
        fn __ctype_toupper_loc() -> *const usize;
    }
    // SAFETY: words of the running thread.
    unsafe { [*__ctype_b_loc(), *__ctype_tolower_loc(), *__ctype_toupper_loc()] }
}

/// Guards `__ctype_init` at each thread's start: a thread of an old slot uses the tables of the locale that is in
/// force now, as a new pthread does. Those of the slot's last thread may have been freed.
#[test]
fn character_tables_follow_the_locale() {
    const TEST: &str = "character_tables_follow_the_locale";
    if child_case().is_none() {
        let out = child(TEST, "locale");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    on_each("setlocale", |rt| {
        for name in [c"C", c"C.UTF-8", c"C", c"C.UTF-8"] {
            let before = tables();
            // SAFETY: a C string; no other thread uses the locale now.
            assert!(!unsafe { libc::setlocale(libc::LC_ALL, name.as_ptr()) }.is_null());
            let now = tables();
            assert!(before != now || name == c"C", "the locales have the same tables");
            in_crowds(rt, 8, 2, || {
                assert_eq!(tables(), now, "a thread with other tables");
                // What a thread does to its own does not last.
                // SAFETY: a C string, a null; freed when it is no longer in use.
                unsafe {
                    let own = libc::newlocale(libc::LC_ALL_MASK, name.as_ptr(), ptr::null_mut());
                    libc::uselocale(own);
                    thread::yield_now();
                    libc::uselocale(usize::MAX as libc::locale_t);
                    libc::freelocale(own);
                }
            });
        }
    });
}

#[test]
fn std_handles_and_identity_are_new() {
    on_each("identity", |rt| {
        let seen = std::sync::Mutex::new(std::collections::HashSet::new());
        let (n, rounds) = (12, 25);
        in_crowds(rt, n, rounds, || {
            assert!(seen.lock().unwrap().insert(std::thread::current().id()), "an id twice");
            assert!(!std::thread::panicking());
        });
        assert_eq!(seen.into_inner().unwrap().len(), n * rounds);
    });
}

#[test]
fn recursive_locks_know_their_owner() {
    // Guards the unique thread ids.
    on_each("recursive", |rt| {
        // SAFETY: an initialised recursive mutex that outlives its users.
        let mutex = Box::into_raw(Box::new(unsafe {
            let (mut m, mut attr) = (std::mem::zeroed(), std::mem::zeroed());
            libc::pthread_mutexattr_init(&mut attr);
            libc::pthread_mutexattr_settype(&mut attr, libc::PTHREAD_MUTEX_RECURSIVE);
            libc::pthread_mutex_init(&mut m, &attr);
            m
        })) as usize;
        let inside = AtomicBool::new(false);
        let value = AtomicU64::new(0);
        among_hogs(rt, 4, 150, |_, n| {
            let m = mutex as *mut libc::pthread_mutex_t;
            // SAFETY: the mutex is live.
            unsafe {
                libc::pthread_mutex_lock(m);
                libc::pthread_mutex_lock(m);
            }
            assert!(!inside.swap(true, SeqCst), "two owners");
            value.fetch_add(1, SeqCst);
            if n % 32 == 0 {
                let _ = spin_until_preempted();
            }
            inside.store(false, SeqCst);
            // SAFETY: as above.
            unsafe {
                libc::pthread_mutex_unlock(m);
                libc::pthread_mutex_unlock(m);
            }
        });
    });
}
