//! Running code one instruction at a time, by the trap flag of RFLAGS; and a tick at a stack pointer of one's choice.

use reveille::bench_support;

/// The flag.
const TRAP: u64 = 0x100;
/// The first byte of `popfq`.
const POPFQ: u8 = 0x9d;

/// The registers of an interrupted context, as a handler finds them.
pub type Gregs = *mut u64;

/// From the next instruction on, each one traps.
///
/// # Safety
/// A handler of SIGTRAP is installed.
#[inline(always)]
pub unsafe fn begin() {
    // SAFETY: the caller's promise; the red zone is stepped over.
    unsafe {
        std::arch::asm!(
            "lea rsp, [rsp - 128]",
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "popfq",
            "lea rsp, [rsp + 128]"
        );
    }
}

/// The registers in a signal frame. Fields are reached through raw pointers, for libc's type is longer than the frame.
///
/// # Safety
/// The frame is the kernel's.
#[inline(always)]
pub unsafe fn gregs(uc: *mut libc::c_void) -> Gregs {
    // SAFETY: the caller's promise.
    unsafe { (&raw mut (*uc.cast::<libc::ucontext_t>()).uc_mcontext.gregs).cast() }
}

/// The handler's return does not trap any more.
///
/// # Safety
/// Live registers.
#[inline(always)]
pub unsafe fn end(gregs: Gregs) {
    // SAFETY: the caller's promise.
    unsafe { *gregs.add(libc::REG_EFL as usize) &= !TRAP };
}

/// `popfq` would end the stepping: sets the flag in the word that it is about to load.
///
/// # Safety
/// Live registers of a context at an instruction.
#[inline(always)]
pub unsafe fn keep_on(gregs: Gregs) {
    // SAFETY: the caller's promise: what it executes and its stack can be read.
    unsafe {
        if *(*gregs.add(libc::REG_RIP as usize) as *const u8) == POPFQ {
            *(*gregs.add(libc::REG_RSP as usize) as *mut u64) |= TRAP;
        }
    }
}

/// A tick while the stack pointer is at `sp`; false if registers have changed.
#[must_use]
pub fn tick_at(sp: usize) -> bool {
    extern "C" fn tick() {
        bench_support::preempt_self();
    }
    const KEPT: (u64, u64) = (0x1111_2222_3333_4444, 0x5555_6666_7777_8888);
    let (mut a, mut b) = KEPT;
    // SAFETY: below sp is unused stack of this thread, enough for the call; sp is put back.
    unsafe {
        std::arch::asm!(
            "mov r12, rsp", "mov rsp, {sp}", "call {tick}", "mov rsp, r12",
            sp = in(reg) sp, tick = sym tick, inout("r13") a, inout("r14") b, out("r12") _,
            clobber_abi("C")
        );
    }
    (a, b) == KEPT
}
