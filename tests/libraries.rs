//! Thread-local variables of libraries, in both models, opened before and after the slots were made, coming
//! and going while threads start and end: they are as new in each thread.
//!
//! Cures guarded here: slots linked on glibc's list (initial-exec variables of later libraries stay zero
//! otherwise), re-imaging of static and dynamic blocks, its table of modules (no deadlock with dlclose, no
//! unrelocated image), and the second look at a block that was made while libraries were opened.
#![allow(unsafe_code)]

mod support;

use reveille::{Runtime, thread};
use std::ffi::c_int;
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use support::clib::{self, Lib};
use support::*;

/// The functions of tls.c in an open library.
#[derive(Clone, Copy)]
struct Tls {
    is_used: unsafe extern "C" fn() -> c_int,
    spoil: unsafe extern "C" fn(c_int),
    is_spoilt: unsafe extern "C" fn(c_int) -> c_int,
}

impl Tls {
    fn of(lib: &Lib) -> Tls {
        // SAFETY: the types are those of tls.c.
        unsafe {
            Tls {
                is_used: lib.get(c"tls_is_used"),
                spoil: lib.get(c"tls_spoil"),
                is_spoilt: lib.get(c"tls_is_spoilt"),
            }
        }
    }

    /// In a thread: everything is as new; then it is spoilt, and stays so while others run.
    fn use_it(self, what: &str) {
        let x = thread_number();
        // SAFETY: the library is open; the functions touch this thread's variables only.
        unsafe {
            assert_eq!((self.is_used)(), 0, "{what}: not as new");
            (self.spoil)(x);
            thread::yield_now();
            assert_eq!((self.is_spoilt)(x), 1, "{what}: another thread's");
        }
    }
}

/// A number of the calling thread's own.
fn thread_number() -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(100);
    NEXT.fetch_add(1, SeqCst) as c_int
}

/// Copies of tls.c with both models.
fn libraries() -> [std::path::PathBuf; 2] {
    ["global-dynamic", "initial-exec"]
        .map(|model| clib::library("tls.c", &[&format!("-ftls-model={model}")]))
}

#[test]
fn libraries_opened_before_the_first_slot() {
    // The first slots of this process are made in a child, after the libraries are open.
    if child_case().is_none() {
        let out = child("libraries_opened_before_the_first_slot", "first");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    let open = libraries().map(|path| Lib::open(&path, libc::RTLD_NOW));
    on_each("before", |rt| {
        for lib in &open {
            let tls = Tls::of(lib);
            in_crowds(rt, 30, 3, || tls.use_it("opened first"));
        }
    });
}

/// Opens a copy of `library` while `n` threads live, checks it in them and in later ones, closes it.
fn open_in_the_middle(rt: &Runtime, n: usize, library: &Path) {
    let path = clib::copy_of(library);
    let name = library.display().to_string();
    let opened = std::sync::OnceLock::new();
    let (alive, checked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|s| {
        let run = s.spawn(|| {
            rt.run(|| {
                thread::scope(|s| {
                    for _ in 0..n {
                        s.spawn(|| {
                            alive.fetch_add(1, SeqCst);
                            while opened.get().is_none() {
                                thread::yield_now();
                            }
                            Tls::of(opened.get().unwrap()).use_it(&name);
                            checked.fetch_add(1, SeqCst);
                        });
                    }
                });
            });
        });
        while alive.load(SeqCst) < n && !run.is_finished() {
            std::thread::yield_now();
        }
        // Half the time a kernel thread opens it, half a reveille thread.
        if n.is_multiple_of(2) {
            let _ = opened.set(Lib::open(&path, libc::RTLD_NOW));
        } else {
            rt.run(|| drop(opened.set(Lib::open(&path, libc::RTLD_NOW))));
        }
        run.join().unwrap();
    });
    assert_eq!(checked.load(SeqCst), n);
    let lib = opened.into_inner().unwrap();
    let tls = Tls::of(&lib);
    in_crowds(rt, n, 2, || tls.use_it(&name));
    lib.close();
}

#[test]
fn libraries_opened_while_threads_live() {
    let libraries = libraries();
    on_each("in the middle", |rt| {
        for library in &libraries {
            for n in [1, 8, 31] {
                open_in_the_middle(rt, n, library);
            }
        }
    });
}

#[test]
fn libraries_come_and_go_while_threads_end() {
    // Guards the table of modules: its making must not wait for a lock that a dlclose holds.
    let libraries = libraries();
    // Only one with static blocks: the loader reuses their room if they are closed in the order of a stack.
    let copies: Vec<_> = [0, 0, 0, 1].map(|i| clib::copy_of(&libraries[i])).to_vec();
    on_each("come and go", |rt| {
        among_hogs(rt, 4, 40, |i, n| {
            let lib = Lib::open(&copies[(i + n as usize) % copies.len()], libc::RTLD_NOW);
            let tls = Tls::of(&lib);
            for _ in 0..3 {
                let t = thread::spawn(move || tls.use_it("come and go"));
                thread::spawn(|| ()).join().unwrap();
                t.join().unwrap();
            }
            lib.close();
        });
    });
}

#[test]
fn slots_made_while_libraries_come_and_go() {
    // Guards the second look at a new block: glibc fills a library's variables into the blocks on its list,
    // and a block that is just being made is not on it yet.
    let path = clib::library("tls.c", &["-ftls-model=initial-exec"]);
    on_each("new slots", |rt| {
        let open: RwLock<Option<Tls>> = RwLock::new(None);
        let (stop, checked) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|s| {
            let (path, open, stop, checked) = (&path, &open, &stop, &checked);
            s.spawn(move || {
                while !stop.load(SeqCst) {
                    let lib = Lib::open(path, libc::RTLD_NOW);
                    *open.write().unwrap() = Some(Tls::of(&lib));
                    let seen = checked.load(SeqCst);
                    while checked.load(SeqCst) < seen + 2 && !stop.load(SeqCst) {
                        std::thread::yield_now();
                    }
                    *open.write().unwrap() = None;
                    lib.close();
                    progress(1);
                }
            });
            rt.run(|| {
                thread::scope(|s| {
                    let mut threads = Vec::new();
                    for _ in 0..2500 {
                        // They stay until the end, so each has a slot that is made for it.
                        let t = s.spawn(|| {
                            while !stop.load(SeqCst) {
                                let Ok(tls) = open.try_read() else { continue };
                                if let Some(tls) = *tls {
                                    // SAFETY: the library stays open while the lock is held.
                                    let used = unsafe { (tls.is_used)() };
                                    stop.fetch_or(used != 0, SeqCst);
                                    assert_eq!(used, 0, "a new slot");
                                    break;
                                }
                            }
                            checked.fetch_add(1, SeqCst);
                            while !stop.load(SeqCst) {
                                thread::park();
                            }
                        });
                        threads.push(t);
                        progress(0);
                        thread::yield_now();
                    }
                    while checked.load(SeqCst) < 2500 && !stop.load(SeqCst) {
                        thread::yield_now();
                    }
                    stop.store(true, SeqCst);
                    threads.iter().for_each(|t| t.thread().unpark());
                });
            });
        });
    });
}
