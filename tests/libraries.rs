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

/// What the initial-exec library in the room of tls.c's variables has in their place.
const OTHER: &str = "__thread unsigned char other[64] = { [0 ... 63] = 0x77 };
int tls_is_used(void) {
    for (int i = 0; i < 64; i++)
        if (other[i] != 0x77)
            return 1;
    return 0;
}
void tls_spoil(int x) { other[x & 63] = 1; }
int tls_is_spoilt(int x) { return other[x & 63] == 1; }";

thread_local! {
    /// Comes first in the table of modules and takes longer than a slice to be copied.
    static LARGE: std::cell::Cell<[u8; 1 << 20]> = const { std::cell::Cell::new([0; 1 << 20]) };
}

/// Guards the repetition of the re-imaging loop: a thread that ends is preempted between its look at the
/// table and the copying of a library's image; meanwhile that library is closed and another one opened, to which
/// the loader gives the same room and which it fills in at once, in this block too. The thread goes on and
/// copies the old image over it.
#[test]
fn another_library_in_the_room_of_one_while_threads_end() {
    let flags = ["-ftls-model=initial-exec"];
    let paths = [clib::library("tls.c", &flags), clib::library_of("other", OTHER, &flags)];
    on_each("room", |rt| {
        let open: RwLock<Option<Tls>> = RwLock::new(None);
        let (left, seen) = (AtomicUsize::new(400), AtomicUsize::new(0));
        let (paths, open, left, seen) = (&paths, &open, &left, &seen);
        std::hint::black_box(LARGE.with(|l| l.as_ptr()));
        rt.run(|| {
            thread::scope(|s| {
                let toggles = s.spawn(|| {
                    for path in paths.iter().cycle() {
                        let lib = Lib::open(path, libc::RTLD_NOW);
                        *open.write().unwrap() = Some(Tls::of(&lib));
                        let before = seen.load(SeqCst);
                        while seen.load(SeqCst) < before + 4 && left.load(SeqCst) != 0 {
                            thread::yield_now();
                        }
                        *open.write().unwrap() = None;
                        lib.close();
                        if left.load(SeqCst) == 0 {
                            break;
                        }
                        left.fetch_sub(1, SeqCst);
                        progress(1);
                    }
                });
                for _ in 0..3 {
                    s.spawn(|| {
                        while left.load(SeqCst) != 0 {
                            thread::scope(|s| {
                                s.spawn(|| {
                                    if let Ok(tls) = open.try_read()
                                        && let Some(tls) = *tls
                                    {
                                        // SAFETY: the library stays open while the lock is held.
                                        let used = unsafe { (tls.is_used)() };
                                        if used != 0 {
                                            left.store(0, SeqCst);
                                        }
                                        assert_eq!(used, 0, "another library's image");
                                        seen.fetch_add(1, SeqCst);
                                    }
                                });
                            });
                        }
                    });
                }
                toggles.join().unwrap();
            });
        });
    });
}

/// Ends the child of a fork at once when a thread of it fails: nobody else would.
struct EndsChild;

impl Drop for EndsChild {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // SAFETY: ends the child.
            unsafe { libc::_exit(1) };
        }
    }
}

/// In the child of a fork: variables of libraries opened before and after there are threads.
fn libraries_in_child(paths: &[std::path::PathBuf; 2]) {
    const N: usize = 40;
    let first = Tls::of(&Lib::open(&paths[0], libc::RTLD_NOW));
    let second = std::sync::OnceLock::<Tls>::new();
    let alive = AtomicUsize::new(0);
    thread::scope(|s| {
        for _ in 0..N {
            s.spawn(|| {
                let _ends = EndsChild;
                first.use_it("opened before the threads");
                alive.fetch_add(1, SeqCst);
                while second.get().is_none() {
                    thread::yield_now();
                }
                second.get().unwrap().use_it("opened among the threads");
            });
        }
        while alive.load(SeqCst) < N {
            thread::yield_now();
        }
        let _ = second.set(Tls::of(&Lib::open(&paths[1], libc::RTLD_NOW)));
    });
    let both = [first, *second.get().unwrap()];
    for _ in 0..N {
        thread::spawn(move || both.iter().for_each(|t| t.use_it("opened long ago")))
            .join()
            .unwrap();
    }
}

/// Guards that a fork child gives up the stacks in its worker's cache: their blocks are not on glibc's list any
/// more, so a library that is opened later would find its variables zero there.
#[test]
fn libraries_opened_in_the_child_of_a_fork() {
    let path = clib::library("tls.c", &["-ftls-model=initial-exec"]);
    let paths = [clib::copy_of(&path), clib::copy_of(&path)];
    on_each("fork", |rt| {
        // Every worker has stacks to give.
        in_crowds(rt, 100, 2, || ());
        for _ in 0..4 {
            let status = rt.run(|| {
                // SAFETY: the child goes on as this thread, on a runtime of its own.
                let pid = unsafe { libc::fork() };
                assert!(pid >= 0);
                if pid == 0 {
                    let _ends = EndsChild;
                    libraries_in_child(&paths);
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(0) };
                }
                let mut status = 0;
                // SAFETY: the status is a local.
                while unsafe { libc::waitpid(pid, &mut status, 0) } != pid {}
                status
            });
            assert_eq!(status, 0, "in the child");
        }
    });
}

/// In front of libc's function that gives a new block its variables: afterwards, once, calls what it is told.
const ALLOCATE: &str = "#define _GNU_SOURCE
#include <dlfcn.h>
void (*after_allocate)(void);
void *_dl_allocate_tls(void *block) {
    void *(*real)(void *) = (void *(*)(void *))dlsym(RTLD_NEXT, \"_dl_allocate_tls\");
    block = real(block);
    void (*now)(void) = __atomic_exchange_n(&after_allocate, (void (*)(void))0, __ATOMIC_SEQ_CST);
    if (now)
        now();
    return block;
}";

static OPENED: std::sync::OnceLock<Lib> = std::sync::OnceLock::new();

extern "C" fn open_it() {
    let path = clib::library("tls.c", &["-ftls-model=initial-exec"]);
    let _ = OPENED.set(Lib::open(&path, libc::RTLD_NOW));
}

/// Guards the filling of a new block: a library is opened after the block has been given its variables and before
/// it is on glibc's list. `slots_made_while_libraries_come_and_go` hardly ever meets that moment; here it is
/// made to happen.
#[test]
fn a_library_opened_while_a_slot_is_made() {
    const TEST: &str = "a_library_opened_while_a_slot_is_made";
    if child_case().is_none() {
        let path = clib::library_of("allocate", ALLOCATE, &["-ldl"]);
        let out = child_with(TEST, "run", &[("LD_PRELOAD", &path)]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    // SAFETY: a C string.
    let hook = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"after_allocate".as_ptr()) };
    assert!(!hook.is_null(), "the preloaded library is not there");
    let rt = fast(1).build().unwrap();
    rt.run(|| ());
    // SAFETY: the variable of ALLOCATE, a function pointer.
    unsafe { (*hook.cast::<std::sync::atomic::AtomicPtr<()>>()).store(open_it as *mut (), SeqCst) };
    let checked = AtomicUsize::new(0);
    rt.run(|| {
        thread::scope(|s| {
            let mut threads = Vec::new();
            // They stay until the end, so sooner or later a slot is made; and a few more, for a thread may be
            // given another's slot.
            while OPENED.get().is_none() || threads.len() % 32 != 0 {
                let t = s.spawn(|| {
                    while OPENED.get().is_none() {
                        thread::yield_now();
                    }
                    // SAFETY: the library stays open.
                    let used = unsafe { (Tls::of(OPENED.get().unwrap()).is_used)() };
                    checked.fetch_add(usize::from(used == 0), SeqCst);
                    thread::park();
                });
                threads.push(t);
            }
            let n = threads.len();
            for t in threads {
                thread::yield_now();
                t.thread().unpark();
                t.join().unwrap();
            }
            assert_eq!(checked.load(SeqCst), n, "a new slot without the library's variables");
        });
    });
    rt.shutdown().unwrap();
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
