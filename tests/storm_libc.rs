//! Preempted anywhere inside the C library: malloc with frees across threads, stdio, the dynamic linker,
//! lazy binding, C++ exceptions, the vDSO.
//!
//! Cures guarded here: `multiple_threads` = 1 and "the process counts as multi-threaded" (malloc drops its
//! lock prefixes otherwise), the whole TLS block that travels with the thread, unique thread ids (stdio's
//! and the loader's locks are recursive), the link on glibc's list (lookups that dlclose waits for).
#![allow(unsafe_code)]

mod support;

use reveille::thread;
use std::ffi::{c_int, c_uint, c_void};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::FromRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::SeqCst};
use std::time::Instant;
use support::clib::{self, Lib};
use support::*;

/// Blocks on their way from one thread to another: whoever finds one frees it.
const PLACES: usize = 64;

#[test]
fn rust_allocations_freed_by_others() {
    on_each("Rust allocations", |rt| {
        let places: [Mutex<Option<Vec<u64>>>; PLACES] = [const { Mutex::new(None) }; PLACES];
        until_preempted(rt, 12, 150, |i, n| {
            let mut random = Random::new((i as u64) << 32 | n);
            for _ in 0..16 {
                let len = 1 + random.below(if n % 50 == 0 { 40_000 } else { 60 });
                let mark = random.next();
                let mut fresh = vec![mark; len];
                fresh.push(mark);
                let place = &places[random.below(PLACES)];
                // Whoever holds the lock may be preempted; the others wait in the kernel or take another.
                let old = match place.try_lock() {
                    Ok(mut p) => p.replace(fresh),
                    Err(_) => Some(fresh),
                };
                if let Some(old) = old {
                    assert!(old.iter().all(|w| *w == old[0]), "a block was overwritten");
                }
            }
        });
    });
}

#[test]
fn c_blocks_freed_by_others() {
    type Block = unsafe extern "C" fn(c_int, usize, c_uint) -> *mut c_void;
    type Unblock = unsafe extern "C" fn(*mut c_void, usize, c_uint) -> c_int;
    let lib = Lib::of("storm.c");
    // SAFETY: the types are those of storm.c.
    let (block, unblock): (Block, Unblock) =
        unsafe { (lib.get(c"storm_block"), lib.get(c"storm_unblock")) };
    // Size and seed go with a block in a header of the test's own.
    #[repr(C)]
    struct Parcel {
        size: usize,
        seed: c_uint,
        block: *mut c_void,
    }
    on_each("C blocks", |rt| {
        let places: [AtomicPtr<Parcel>; PLACES] =
            [const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES];
        let open = |p: *mut Parcel| {
            if p.is_null() {
                return;
            }
            // SAFETY: taken out of its place by one exchange, so it is ours alone.
            unsafe {
                let p = Box::from_raw(p);
                assert_eq!(unblock(p.block, p.size, p.seed), 0, "a block was overwritten");
            }
        };
        until_preempted(rt, 12, 150, |i, n| {
            let mut random = Random::new((i as u64) << 32 | n);
            for _ in 0..16 {
                // Mostly fastbin and tcache sizes, some large, a few mapped ones.
                let size = match random.below(200) {
                    0 => 140_000 + random.below(200_000),
                    1..20 => 1 + random.below(5000),
                    _ => 1 + random.below(120),
                };
                let seed = random.next() as c_uint;
                // SAFETY: sizes are not zero.
                let block = unsafe { block(random.below(4) as c_int, size, seed) };
                assert!(!block.is_null());
                let p = Box::into_raw(Box::new(Parcel { size, seed, block }));
                open(places[random.below(PLACES)].swap(p, SeqCst));
            }
        });
        places.iter().for_each(|p| open(p.swap(std::ptr::null_mut(), SeqCst)));
    });
}

#[test]
fn small_blocks_go_from_worker_to_worker() {
    // Guards `multiple_threads` = 1 in particular: more small blocks at once than malloc's cache of a thread
    // holds, freed on another worker, so that two workers change one list of free blocks at the same time.
    const BATCH: usize = 40;
    on_each("small blocks", |rt| {
        let places: [AtomicPtr<[usize; BATCH]>; 4] = Default::default();
        let free = |p: *mut [usize; BATCH]| {
            if p.is_null() {
                return;
            }
            // SAFETY: taken out by one exchange; the blocks are malloc's and ours alone.
            unsafe {
                let batch = Box::from_raw(p);
                for block in *batch {
                    assert_eq!(*(block as *const usize), block, "a block was overwritten");
                    libc::free(block as *mut c_void);
                }
            }
        };
        until_preempted(rt, 6, 250, |i, n| {
            let mut batch = Box::new([0; BATCH]);
            for place in &mut *batch {
                // SAFETY: room for three words.
                unsafe {
                    let block = libc::malloc(24).cast::<usize>();
                    assert!(!block.is_null());
                    *block = block as usize;
                    *place = block as usize;
                }
            }
            free(places[(i + n as usize) % 4].swap(Box::into_raw(batch), SeqCst));
        });
        places.iter().for_each(|p| free(p.swap(std::ptr::null_mut(), SeqCst)));
    });
}

/// Checks lines as `storm_line` writes them; returns how many there were.
fn check_lines(from: impl BufRead) -> u64 {
    let mut lines = 0;
    for line in from.lines() {
        let line = line.unwrap();
        let parts: Vec<&str> = line.split(':').collect();
        let [thread, count, text, eighths, len] = parts[..] else { panic!("torn line {line:?}") };
        let (thread, count): (u64, u64) = (thread.parse().unwrap(), count.parse().unwrap());
        let letter = (b'a' + (thread % 26) as u8) as char;
        assert!(text.chars().all(|c| c == letter), "mixed line {line:?}");
        assert_eq!(text.len() as u64, 5 + count % 20, "{line:?}");
        assert_eq!(len, text.len().to_string(), "{line:?}");
        assert_eq!(eighths, format!("{:.3}", count as f64 / 8.0), "{line:?}");
        lines += 1;
    }
    lines
}

#[test]
fn printf_writes_whole_lines() {
    type Line = unsafe extern "C" fn(*mut libc::FILE, c_int, c_int) -> c_int;
    let lib = Lib::of("storm.c");
    // SAFETY: the types are those of storm.c and stdio.h.
    let (line, open, close): (
        Line,
        unsafe extern "C" fn(c_int) -> *mut libc::FILE,
        unsafe extern "C" fn(*mut libc::FILE) -> c_int,
    ) = unsafe { (lib.get(c"storm_line"), lib.get(c"storm_open"), lib.get(c"storm_close")) };
    on_each("printf", |rt| {
        let mut ends = [0; 2];
        // SAFETY: a live array of two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the reading end is the file's from here.
        let reader = unsafe { std::fs::File::from_raw_fd(ends[0]) };
        // SAFETY: the writing end is the stream's from here.
        let file = unsafe { open(ends[1]) } as usize;
        let written = AtomicU64::new(0);
        let read = std::thread::scope(|s| {
            let check = s.spawn(move || check_lines(BufReader::new(reader)));
            until_preempted(rt, 10, 150, |i, n| {
                // SAFETY: the stream is open; streams may be shared.
                let rc = unsafe { line(file as *mut libc::FILE, i as c_int, n as c_int) };
                assert!(rc > 0);
                written.fetch_add(1, SeqCst);
            });
            // SAFETY: nobody uses the stream any more.
            assert_eq!(unsafe { close(file as *mut libc::FILE) }, 0);
            check.join().unwrap()
        });
        assert_eq!(read, written.load(SeqCst));
    });
}

#[test]
fn println_writes_whole_lines() {
    if child_case().is_some() {
        on_each("println", |rt| {
            until_preempted(rt, 10, 150, |i, n| {
                let letter = (b'a' + (i % 26) as u8) as char;
                let text: String = std::iter::repeat_n(letter, 5 + n as usize % 20).collect();
                println!("{i}:{n}:{text}:{:.3}:{}", n as f64 / 8.0, text.len());
            });
        });
        return;
    }
    let out = child("println_writes_whole_lines", "print");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // The test harness writes some lines of its own.
    let storm = text.lines().filter(|l| l.contains(':') && !l.starts_with("test "));
    let lines = storm.collect::<Vec<_>>().join("\n");
    assert!(check_lines(BufReader::new(lines.as_bytes())) > 1000);
}

/// A library of many functions, each called through its own lazily bound entry.
fn lazy_library() -> std::path::PathBuf {
    const N: usize = 200;
    let mut text = String::from("#include <stddef.h>\n__thread int uses = 5;\n");
    for i in 0..N {
        text += &format!("int lazy_{i}(int x) {{ return x * 3 + {i}; }}\n");
    }
    text += "long lazy_all(int x) { long sum = 0; uses++;\n";
    for i in 0..N {
        text += &format!("sum += lazy_{i}(x);\n");
    }
    text += "return sum; }\nint lazy_uses(void) { return uses; }\n";
    clib::library_of("lazy", &text, &["-O0", "-Wl,-z,lazy", "-fno-semantic-interposition", "-fplt"])
}

#[test]
fn dlopen_dlclose_and_lazy_binding() {
    let original = lazy_library();
    // Copies: each open binds anew, and several libraries come and go at once.
    let copies: Vec<_> = (0..4).map(|_| clib::copy_of(&original)).collect();
    on_each("dlopen", |rt| {
        let copies = &copies;
        until_preempted(rt, 8, 120, |i, n| {
            let flags = libc::RTLD_LAZY | if n % 4 == 0 { libc::RTLD_GLOBAL } else { 0 };
            let lib = Lib::open(&copies[(i + n as usize) % copies.len()], flags);
            // SAFETY: the types are those of the text above.
            let (all, uses): (unsafe extern "C" fn(c_int) -> i64, unsafe extern "C" fn() -> c_int) =
                unsafe { (lib.get(c"lazy_all"), lib.get(c"lazy_uses")) };
            let x = n as i64 % 1000;
            // SAFETY: pure functions.
            let sum = unsafe { all(x as c_int) };
            assert_eq!(sum, 200 * 3 * x + 199 * 200 / 2);
            // SAFETY: reads this thread's variable.
            assert!(unsafe { uses() } > 5);
            lib.close();
        });
    });
}

#[test]
fn cpp_exceptions() {
    let lib = Lib::of("throw.cpp");
    // SAFETY: the type is that of throw.cpp.
    let throw: unsafe extern "C-unwind" fn(c_int, c_int) -> c_int =
        unsafe { lib.get(c"storm_throw") };
    on_each("C++ exceptions", |rt| {
        until_preempted(rt, 10, 150, |i, n| {
            // SAFETY: catches what it throws.
            let bad = unsafe { throw((n % 12) as c_int, (i as u64 * 1000 + n) as c_int) };
            assert_eq!(bad, 0);
        });
    });
}

#[test]
fn clocks_never_run_backwards() {
    on_each("clocks", |rt| {
        let last: [AtomicU64; 16] = Default::default();
        until_preempted(rt, 10, 150, |i, _| {
            let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_REALTIME] {
                // SAFETY: a live structure.
                assert_eq!(unsafe { libc::clock_gettime(clock, &mut t) }, 0);
                assert!((0..1_000_000_000).contains(&t.tv_nsec) && t.tv_sec > 0);
            }
            let a = Instant::now();
            // SAFETY: as above.
            unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
            let now = t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64;
            assert!(now >= last[i].swap(now, SeqCst), "the clock ran backwards");
            assert!(Instant::now() >= a);
        });
    });
}

#[test]
fn panics_unwind() {
    quiet_panics();
    struct Alive<'a>(&'a AtomicU64);
    impl<'a> Alive<'a> {
        fn new(n: &'a AtomicU64) -> Self {
            n.fetch_add(1, SeqCst);
            Alive(n)
        }
    }
    impl Drop for Alive<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    fn fall(depth: u64, alive: &AtomicU64, value: u64) -> u64 {
        let _here = Alive::new(alive);
        let text = vec![b'x'; depth as usize + 1];
        if depth == 0 {
            std::panic::panic_any(value);
        }
        fall(depth - 1, alive, value) + text.len() as u64
    }
    on_each("panics", |rt| {
        until_preempted(rt, 10, 150, |i, n| {
            let alive = AtomicU64::new(0);
            let value = (i as u64) << 40 | n;
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                fall(n % 10, &alive, value)
            }));
            assert_eq!(*caught.unwrap_err().downcast::<u64>().unwrap(), value);
            assert_eq!(alive.load(SeqCst), 0);
            assert!(!std::thread::panicking());
            if n % 16 == 0 {
                thread::yield_now();
            }
        });
    });
}

#[test]
fn std_locks_channels_and_maps() {
    on_each("std", |rt| {
        let shared = Mutex::new(std::collections::HashMap::<u64, String>::new());
        until_preempted(rt, 8, 120, |i, n| {
            let key = n % 97;
            let mut map = shared.lock().unwrap();
            let old = map.insert(key, format!("{key}/{i}/{n}"));
            if let Some(old) = old {
                assert!(old.starts_with(&format!("{key}/")));
            }
            drop(map);
            let (tell, told) = std::sync::mpsc::channel();
            tell.send(format!("{i}-{n}")).unwrap();
            assert_eq!(told.recv().unwrap(), format!("{i}-{n}"));
            let mut sink = std::io::sink();
            write!(sink, "{i} {n}").unwrap();
        });
    });
}
