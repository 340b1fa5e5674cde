//! What a thread holds in registers when it is preempted, it finds there when it goes on, on whatever
//! worker: general registers, flags, red zone, x87, SSE, AVX, AVX-512 and their control words; rounding
//! modes; errno; `thread_local!`.
//!
//! Cures guarded here: the whole extended state is copied and restored; MXCSR and x87 word of the worker's
//! own context; the resume writes below the red zone; the window of the resume; TLS travels with the thread.
#![allow(unsafe_code)]

mod support;

use std::arch::x86_64::__cpuid_count;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use support::clib::Lib;
use support::*;

const AREA: usize = 4096;
const HEADER: usize = 512;
/// x87, SSE, AVX, AVX-512; protection keys and AMX stay as they are.
const COMPONENTS: u32 = 0b1110_0111;
/// Arithmetic flags, direction; the alignment check in some runs.
const ARITHMETIC: u64 = 0x8d5;
const DIRECTION: u64 = 0x400;
const ALIGNMENT_CHECK: u64 = 0x40000;

#[repr(C, align(64))]
struct Held {
    given_x: [u8; AREA],
    found_x: [u8; AREA],
    given: [u64; 14],
    found: [u64; 14],
    given_red: [u64; 16],
    found_red: [u64; 16],
    /// The stack pointer is here for an instruction or two: a resume writes below its red zone.
    _below: [u64; 20],
    given_flags: u64,
    clean_flags: u64,
    found_flags: [u64; 2],
    spins: u64,
    components: u32,
}

std::arch::global_asm!(
    include_str!("held.S"),
    GIVEN_X = const offset_of!(Held, given_x),
    FOUND_X = const offset_of!(Held, found_x),
    GIVEN = const offset_of!(Held, given),
    FOUND = const offset_of!(Held, found),
    GIVEN_RED = const offset_of!(Held, given_red),
    FOUND_RED = const offset_of!(Held, found_red),
    GIVEN_FLAGS = const offset_of!(Held, given_flags),
    FOUND_FLAGS = const offset_of!(Held, found_flags),
    CLEAN_FLAGS = const offset_of!(Held, clean_flags),
    SPINS = const offset_of!(Held, spins),
    COMPONENTS = const offset_of!(Held, components),
);

unsafe extern "C" {
    fn storm_hold(held: *mut Held);
}

fn components() -> u32 {
    __cpuid_count(0xd, 0).eax & COMPONENTS
}

/// The bytes of an XSAVE area that are compared: not FOP, FIP, FDP, which some CPUs drop.
fn ranges() -> Vec<std::ops::Range<usize>> {
    let mut ranges = vec![0..5, 24..28, 160..416];
    ranges.extend((0..8).map(|st| 32 + 16 * st..42 + 16 * st));
    for component in (2..8).filter(|c| components() & (1 << c) != 0) {
        let leaf = __cpuid_count(0xd, component);
        ranges.push(leaf.ebx as usize..(leaf.ebx + leaf.eax) as usize);
    }
    assert!(ranges.iter().all(|range| range.end <= AREA));
    ranges
}

fn prepare(held: &mut Held, ranges: &[std::ops::Range<usize>], random: &mut Random) {
    for range in ranges {
        held.given_x[range.clone()].fill_with(|| random.next() as u8);
    }
    let x = &mut held.given_x;
    // x87: 53 bits, some rounding, all exceptions masked; registers in use.
    let round = (random.below(4) as u16) << 10;
    x[0..2].copy_from_slice(&(0x027f | round).to_ne_bytes());
    x[2..4].copy_from_slice(&0x6f00_u16.to_ne_bytes());
    x[4] = 0xe0;
    for st in 0..8 {
        x[32 + 16 * st + 7..32 + 16 * st + 10].copy_from_slice(&[0xc7, 0xff, 0x3f]);
    }
    // MXCSR: some rounding, flush to zero, denormals are zero, two exceptions seen, all masked.
    let round = (random.below(4) as u32) << 13;
    x[24..28].copy_from_slice(&(0x9fe1 | round).to_ne_bytes());
    x[HEADER..HEADER + 8].copy_from_slice(&u64::from(components()).to_ne_bytes());
    held.given.fill_with(|| random.next());
    held.given_red.fill_with(|| random.next());
    held.given_flags = 0x202 | random.next() & (ARITHMETIC | DIRECTION | ALIGNMENT_CHECK);
    held.clean_flags = 0x202;
    held.components = components();
    held.spins = 20_000;
}

#[test]
fn every_register_is_held() {
    let ranges = ranges();
    let flags = ARITHMETIC | DIRECTION | ALIGNMENT_CHECK;
    on_each("registers", |rt| {
        let hit = AtomicU64::new(0);
        let ranges = &ranges;
        until_preempted(rt, 8, 60, |i, n| {
            let mut random = Random::new((i as u64) << 32 | n);
            // SAFETY: plain numbers.
            let mut held: Box<Held> = unsafe { Box::new(std::mem::zeroed()) };
            prepare(&mut held, ranges, &mut random);
            let before = preemptions();
            // SAFETY: the structure is live and complete.
            unsafe { storm_hold(&mut *held) };
            if preemptions() != before {
                hit.fetch_add(1, SeqCst);
            }
            assert_eq!(held.given, held.found, "general registers");
            assert_eq!(held.given_red, held.found_red, "red zone");
            assert_eq!(held.given_flags & flags, held.found_flags[0] & flags, "flags");
            for range in ranges {
                let (given, found) = (&held.given_x[range.clone()], &held.found_x[range.clone()]);
                assert_eq!(given, found, "extended state at {range:?}");
            }
        });
        assert!(hit.load(SeqCst) > 50, "hardly any preemption fell into the loop");
    });
}

#[test]
fn rounding_modes_are_the_threads_own() {
    let lib = Lib::of("storm.c");
    // SAFETY: the type is that of storm.c.
    let rounding: unsafe extern "C" fn(c_int, c_int) -> c_int =
        unsafe { lib.get(c"storm_rounding") };
    on_each("rounding", |rt| {
        until_preempted(rt, 8, 80, |i, n| {
            // SAFETY: changes this thread's modes and puts them back.
            let bad = unsafe { rounding((i as u64 + n) as c_int, 2000) };
            assert_eq!(bad, 0);
            if n % 8 == 0 {
                // Given way with a mode of its own.
                unsafe extern "C" {
                    fn fesetround(mode: c_int) -> c_int;
                    fn fegetround() -> c_int;
                }
                let mode = 0x400 * (i as c_int % 4);
                // SAFETY: as above.
                unsafe { fesetround(mode) };
                reveille::thread::yield_now();
                // SAFETY: as above.
                unsafe {
                    assert_eq!(fegetround(), mode);
                    fesetround(0);
                }
            }
        });
    });
}

/// Of the running thread; glibc caches its address in registers, as compilers do.
fn errno() -> &'static Cell<c_int> {
    // SAFETY: the thread's own, used in it alone.
    unsafe { &*libc::__errno_location().cast::<Cell<c_int>>() }
}

#[test]
fn errno_is_the_threads_own() {
    on_each("errno", |rt| {
        until_preempted(rt, 8, 100, |i, n| {
            let at = errno();
            let mine = (i as u64 * 1_000_000 + n) as c_int;
            at.set(mine);
            if n % 64 == 0 {
                let _ = spin_until_preempted();
            }
            assert_eq!(at.get(), mine);
            assert_eq!(errno().get(), mine);
            // Set by the library itself.
            // SAFETY: not a descriptor.
            unsafe { libc::close(-1) };
            assert_eq!(errno().get(), libc::EBADF);
            assert!(std::ptr::eq(at, errno()));
        });
    });
}

static MADE: AtomicU64 = AtomicU64::new(0);
static GONE: AtomicU64 = AtomicU64::new(0);

struct Counted(Vec<u64>);
impl Counted {
    fn new() -> Counted {
        MADE.fetch_add(1, SeqCst);
        Counted(vec![7; 3])
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        GONE.fetch_add(1, SeqCst);
    }
}

thread_local! {
    static LAZY: RefCell<Counted> = RefCell::new(Counted::new());
    static PLAIN: Cell<u64> = const { Cell::new(42) };
    static LIST: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn thread_locals_are_made_once_and_dropped_once() {
    on_each("thread_local", |rt| {
        MADE.store(0, SeqCst);
        GONE.store(0, SeqCst);
        let threads = AtomicU64::new(0);
        among_hogs(rt, 6, 300, |i, n| {
            let t = reveille::thread::spawn(move || {
                assert_eq!(PLAIN.get(), 42, "not as new");
                LIST.with_borrow(|l| assert!(l.is_empty(), "not as new"));
                LAZY.with_borrow(|l| assert_eq!(l.0, [7, 7, 7], "not as new"));
                for k in 0..20 {
                    PLAIN.set(i as u64 * 1000 + k);
                    LIST.with_borrow_mut(|l| l.push(format!("{i}/{n}/{k}")));
                    LAZY.with_borrow_mut(|l| l.0.push(n));
                    if k == 10 && n % 4 == 0 {
                        reveille::thread::yield_now();
                    }
                    assert_eq!(PLAIN.get(), i as u64 * 1000 + k);
                }
                LIST.with_borrow(|l| assert_eq!(l[19], format!("{i}/{n}/19")));
                LAZY.with_borrow(|l| assert_eq!(l.0.len(), 23));
            });
            threads.fetch_add(1, SeqCst);
            t.join().unwrap();
        });
        assert_eq!(MADE.load(SeqCst), threads.load(SeqCst));
        assert_eq!(GONE.load(SeqCst), threads.load(SeqCst));
    });
}

/// Holds a value in the red zone of a stack pointer moved to `sp`; 0 if it was held.
fn spin_at(sp: usize, value: u64, spins: u64) -> u64 {
    let found: u64;
    // SAFETY: the addresses from sp - 128 on are the thread's own unused stack, and sp is put back.
    unsafe {
        std::arch::asm!(
            "mov {home}, rsp",
            "mov rsp, {sp}",
            "mov qword ptr [rsp - 128], {value}",
            "mov qword ptr [rsp - 8], {value}",
            "2: loop 2b",
            "mov {found}, qword ptr [rsp - 128]",
            "xor {found}, {value}",
            "sub {value}, qword ptr [rsp - 8]",
            "or {found}, {value}",
            "mov rsp, {home}",
            home = out(reg) _, sp = in(reg) sp, value = inout(reg) value => _,
            found = out(reg) found, inout("rcx") spins => _
        );
    }
    found
}

#[test]
fn preempted_at_the_end_of_the_stack() {
    // Guards the place in a slot for a state that its stack has no room for.
    let mut ends = [0; 2];
    // SAFETY: a live array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    on_each("end of stack", |rt| {
        let hit = AtomicU64::new(0);
        rt.run(|| {
            reveille::thread::scope(|s| {
                let done = AtomicU64::new(0);
                let (done, hit) = (std::sync::Arc::new(done), &hit);
                for i in 0..6u64 {
                    let done = done.clone();
                    let b = reveille::thread::Builder::new().stack_size(64 << 10);
                    let t = b.spawn_scoped(s, move || {
                        let end = end_of_stack(ends[1]);
                        let mut random = Random::new(i);
                        let mut rounds = 0;
                        while done.load(SeqCst) < 6 {
                            // From hardly any room to more than enough.
                            let room = (128 + random.below(6000)) & !15;
                            let before = preemptions();
                            let bad = spin_at(end + room, random.next(), 20_000);
                            assert_eq!(bad, 0, "red zone, {room} bytes above the end");
                            hit.fetch_add(preemptions() - before, SeqCst);
                            rounds += 1;
                            if rounds == 200 {
                                done.fetch_add(1, SeqCst);
                            }
                        }
                    });
                    t.unwrap();
                }
            });
        });
        assert!(hit.load(SeqCst) > 50, "hardly any preemption fell into the loop");
    });
    for fd in ends {
        // SAFETY: our own descriptors.
        unsafe { libc::close(fd) };
    }
}
