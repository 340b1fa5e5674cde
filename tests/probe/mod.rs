//! The probe: known values in every register, a trap, and what was found afterwards.

use std::arch::x86_64::__cpuid_count;
use std::mem::offset_of;
use std::ptr;

use reveille::context::Gregs;

/// x87, SSE, AVX, and the three components of AVX-512. (Protection keys stay as they are.)
const COMPONENTS: u32 = 0b1110_0111;
const AREA: usize = 4096;
const HEADER: usize = 512;
/// Every arithmetic flag, and the alignment check; DF is set in every second run.
const ARITHMETIC: i64 = 0x8d5;
const DIRECTION: i64 = 0x400;
const ALIGNMENT_CHECK: i64 = 0x40000;
const FLAGS: i64 = ARITHMETIC | DIRECTION | ALIGNMENT_CHECK;

#[repr(C, align(64))]
struct Area([u8; AREA]);

#[repr(C)]
pub struct Probe {
    given_x: Area,
    found_x: Area,
    trash_x: Area,
    given: Gregs,
    found: Gregs,
    given_red: [u64; 16],
    found_red: [u64; 16],
    home: u64,
    components: u32,
}

pub static mut PROBE: Probe = Probe {
    given_x: Area([0; AREA]),
    found_x: Area([0; AREA]),
    trash_x: Area([0; AREA]),
    given: [0; 23],
    found: [0; 23],
    given_red: [0; 16],
    found_red: [0; 16],
    home: 0,
    components: 0,
};

const fn at(register: i32) -> usize {
    register as usize * 8
}

std::arch::global_asm!(
    include_str!("probe.S"),
    PROBE = sym PROBE,
    HANDLER = sym super::on_trap,
    GIVEN = const offset_of!(Probe, given),
    FOUND = const offset_of!(Probe, found),
    GIVEN_X = const offset_of!(Probe, given_x),
    FOUND_X = const offset_of!(Probe, found_x),
    TRASH_X = const offset_of!(Probe, trash_x),
    GIVEN_RED = const offset_of!(Probe, given_red),
    FOUND_RED = const offset_of!(Probe, found_red),
    HOME = const offset_of!(Probe, home),
    COMPONENTS = const offset_of!(Probe, components),
    R8 = const at(libc::REG_R8),
    R9 = const at(libc::REG_R9),
    R10 = const at(libc::REG_R10),
    R11 = const at(libc::REG_R11),
    R12 = const at(libc::REG_R12),
    R13 = const at(libc::REG_R13),
    R14 = const at(libc::REG_R14),
    R15 = const at(libc::REG_R15),
    RDI = const at(libc::REG_RDI),
    RSI = const at(libc::REG_RSI),
    RBP = const at(libc::REG_RBP),
    RBX = const at(libc::REG_RBX),
    RDX = const at(libc::REG_RDX),
    RCX = const at(libc::REG_RCX),
    RAX = const at(libc::REG_RAX),
    RSP = const at(libc::REG_RSP),
    EFL = const at(libc::REG_EFL),
);

unsafe extern "C" {
    pub fn probe_run();
    pub fn probe_trash();
    pub safe fn probe_trap();
    pub safe fn probe_after();
    pub safe fn probe_enter();
}

/// A small generator, so that failures can be repeated.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// The registers that are compared, in [`Gregs`].
fn compared() -> impl Iterator<Item = usize> {
    (libc::REG_R8..=libc::REG_RSP).map(|register| register as usize)
}

/// The bytes of an XSAVE area that are compared: not FOP, FIP, FDP, which some CPUs drop.
fn ranges() -> Vec<std::ops::Range<usize>> {
    let mut ranges = vec![0..5, 24..28, 160..416, HEADER..HEADER + 8];
    ranges.extend((0..8).map(|st| 32 + 16 * st..42 + 16 * st));
    for component in (2..8).filter(|c| components() & (1 << c) != 0) {
        let leaf = __cpuid_count(0xd, component);
        ranges.push(leaf.ebx as usize..(leaf.ebx + leaf.eax) as usize);
    }
    assert!(ranges.iter().all(|range| range.end <= AREA));
    ranges
}

fn components() -> u32 {
    __cpuid_count(0xd, 0).eax & COMPONENTS
}

fn fill(area: &mut Area, random: &mut Random) {
    for range in ranges() {
        area.0[range].fill_with(|| random.next() as u8);
    }
    let mut put = |at: usize, bytes: &[u8]| area.0[at..at + bytes.len()].copy_from_slice(bytes);
    // x87: 53 bits, round down; top of stack 5, condition bits set; registers 5 to 7 in use.
    put(0, &0x067f_u16.to_ne_bytes());
    put(2, &0x6f00_u16.to_ne_bytes());
    put(4, &[0xe0]);
    for st in 0..8 {
        // A normal number: exponent 0, leading bit 1.
        put(32 + 16 * st + 7, &[0xc7, 0xff, 0x3f]);
    }
    // MXCSR: round up, flush to zero, denormals are zero, two exceptions seen.
    put(24, &0xdfe1_u32.to_ne_bytes());
    put(HEADER, &u64::from(components()).to_ne_bytes());
}

/// Chooses new values for everything.
pub fn prepare(seed: u64) {
    let mut random = Random(seed);
    // SAFETY: the tests that use the probe run one at a time.
    let probe = unsafe { (&raw mut PROBE).as_mut().unwrap() };
    probe.components = components();
    fill(&mut probe.given_x, &mut random);
    fill(&mut probe.trash_x, &mut random);
    // Sane control words, since Rust code runs after the trashing.
    probe.trash_x.0[..8].copy_from_slice(&[0x7f, 3, 0, 0, 0, 0, 0, 0]);
    probe.trash_x.0[24..28].copy_from_slice(&0x1f80_u32.to_ne_bytes());
    probe.given.fill_with(|| random.next() as i64);
    probe.given[libc::REG_EFL as usize] =
        0x202 | random.next() as i64 & FLAGS | if seed.is_multiple_of(2) { FLAGS } else { 0 };
    probe.given_red.fill_with(|| random.next());
    probe.found = [0; 23];
    probe.found_red = [0; 16];
    probe.found_x.0.fill(0);
}

/// Compares what was found with what was given.
#[track_caller]
pub fn compare(what: &str) {
    // SAFETY: as in prepare().
    let probe = unsafe { (&raw mut PROBE).as_mut().unwrap() };
    probe.given[libc::REG_RSP as usize] = probe.home as i64;
    for register in compared() {
        let (given, found) = (probe.given[register], probe.found[register]);
        assert_eq!(given, found, "{what}: register {register}");
    }
    let flags = |gregs: &Gregs| gregs[libc::REG_EFL as usize] & FLAGS;
    assert_eq!(flags(&probe.given), flags(&probe.found), "{what}: flags");
    assert_eq!(probe.given_red, probe.found_red, "{what}: red zone");
    for range in ranges() {
        let (given, found) = (&probe.given_x.0[range.clone()], &probe.found_x.0[range.clone()]);
        assert_eq!(given, found, "{what}: extended state at {range:?}");
    }
}

/// Does a frame show the values that were given?
pub fn shown(gregs: &Gregs) -> bool {
    let given = &raw const PROBE;
    // SAFETY: as in prepare(); reads only.
    let given = unsafe { ptr::addr_of!((*given).given).read() };
    let but_rsp = |register: &usize| *register != libc::REG_RSP as usize;
    compared().filter(but_rsp).all(|register| given[register] == gregs[register])
}
