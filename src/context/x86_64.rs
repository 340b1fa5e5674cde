//! Contexts on x86-64: the assembly, and the shapes it shares with Rust.
//!
//! A context at rest is its stack pointer; the pictures are in the assembly files. Those that call up, into
//! the worker, are put together in `worker::glue`.
#![allow(unsafe_code)]

/// What lies at the stack pointer of a context at rest (switch.S).
#[repr(C)]
pub(crate) struct Rest {
    pub mxcsr: u32,
    pub x87: u16,
    _pad: u16,
    /// r15 r14 r13 r12 rbx rbp
    pub saved: [usize; 6],
    pub rip: usize,
}

static_assertions::const_assert!(size_of::<Rest>() == 64);
static_assertions::const_assert!(core::mem::offset_of!(Rest, rip) == 56);

/// The running thread's MXCSR and x87 control word. Reading the latter is dear, so it is taken to be the
/// usual one while the control bits of MXCSR are: fenv.h changes both together.
#[inline(always)]
pub(crate) fn control_words() -> (u32, u16) {
    const STATUS: u32 = 0x3f;
    let (mut mxcsr, mut x87) = (0u32, super::xstate::X87_DEFAULT);
    // SAFETY: stores to locals.
    unsafe {
        core::arch::asm!(
            "stmxcsr dword ptr [{m}]", m = in(reg) &raw mut mxcsr,
            options(nostack, preserves_flags)
        );
        if mxcsr & !STATUS != super::xstate::MXCSR_DEFAULT {
            core::arch::asm!(
                "fnstcw word ptr [{x}]", x = in(reg) &raw mut x87,
                options(nostack, preserves_flags)
            );
        }
    }
    (mxcsr, x87)
}

/// Brings the parts of a record that its first slice will touch into the cache. Records that have waited long
/// are cold.
#[inline(always)]
pub(crate) fn prefetch(r: *const crate::tcb::Record) {
    const LINE: usize = 64;
    for line in 0..size_of::<crate::tcb::Record>() / LINE {
        // SAFETY: a prefetch touches nothing, whatever the address.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                r.cast::<i8>().wrapping_add(line * LINE),
            );
        }
    }
}

/// General registers of a preempted context; the extended state follows at a multiple of 64.
#[repr(C, align(64))]
pub(crate) struct Saved {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    /// The interrupted stack pointer.
    pub rsp: u64,
    pub rip: u64,
    pub rflags: u64,
    /// `rsp` less the red zone and the two words that the resume writes.
    pub target: u64,
}

impl Saved {
    /// From the registers as a `ucontext_t` numbers them.
    #[inline(always)]
    pub(crate) fn from_gregs(greg: impl Fn(i32) -> u64) -> Saved {
        let rsp = greg(libc::REG_RSP);
        Saved {
            r8: greg(libc::REG_R8),
            r9: greg(libc::REG_R9),
            r10: greg(libc::REG_R10),
            r11: greg(libc::REG_R11),
            r12: greg(libc::REG_R12),
            r13: greg(libc::REG_R13),
            r14: greg(libc::REG_R14),
            r15: greg(libc::REG_R15),
            rdi: greg(libc::REG_RDI),
            rsi: greg(libc::REG_RSI),
            rbp: greg(libc::REG_RBP),
            rbx: greg(libc::REG_RBX),
            rdx: greg(libc::REG_RDX),
            rax: greg(libc::REG_RAX),
            rcx: greg(libc::REG_RCX),
            rsp,
            rip: greg(libc::REG_RIP),
            rflags: greg(libc::REG_EFL),
            target: target(rsp),
        }
    }
}

/// Where the resume of a context with this stack pointer puts its last two words.
#[inline(always)]
pub(crate) fn target(rsp: u64) -> u64 {
    rsp.wrapping_sub((RED_ZONE + RESUME_WORDS) as u64)
}

/// Bytes below an interrupted stack pointer that belong to the interrupted code (System V ABI).
pub(crate) const RED_ZONE: usize = 128;
/// What a resume writes below the red zone: flags and instruction pointer.
pub(crate) const RESUME_WORDS: usize = 16;

/// Where a thread that has ended goes (entry.S).
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Next {
    pub record: *const crate::tcb::Record,
    pub worker: *const (),
}

/// What a switch brings over from the side that was left.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Carry {
    /// The record that was left, null at the very first switch of a worker.
    pub prev: *const crate::tcb::Record,
    /// The worker that runs now.
    pub worker: *const (),
}

#[allow(improper_ctypes)] // the assembly knows a record by the offsets it is given
unsafe extern "C" {
    /// Saves the running context to `*save` and resumes the one at `rsp` with FS base `fs`.
    pub(crate) fn reveille_switch(
        save: *mut usize,
        rsp: usize,
        fs: usize,
        prev: *const crate::tcb::Record,
        worker: *const (),
    ) -> Carry;
    /// As [`reveille_switch`] without saving.
    pub(crate) fn reveille_jump(
        unused: *mut usize,
        rsp: usize,
        fs: usize,
        prev: *const crate::tcb::Record,
        worker: *const (),
    ) -> !;
    /// As [`reveille_jump`], out of a signal handler.
    pub(crate) fn reveille_leave(
        unused: *mut usize,
        rsp: usize,
        fs: usize,
        prev: *const crate::tcb::Record,
        worker: *const (),
    ) -> !;
    /// First instruction of a new thread; not to be called.
    pub(crate) fn reveille_entry();
    /// First instruction of the resume of a preempted thread; not to be called.
    pub(crate) fn reveille_unpreempt();
    static reveille_unpreempt_window: u8;
    static reveille_unpreempt_window_end: u8;
}

#[allow(improper_ctypes)] // as above
unsafe extern "C-unwind" {
    /// Runs `record.body` under a cancellation buffer; 1 if glibc ended the thread. A panic passes through.
    pub(crate) fn reveille_body(record: &crate::tcb::Record) -> i32;
}

/// Whether `rip` lies where a resumed thread has its flag clear but not yet all its registers.
#[inline(always)]
pub(crate) fn in_resume_window(rip: u64) -> bool {
    let (from, to) = (
        &raw const reveille_unpreempt_window as u64,
        &raw const reveille_unpreempt_window_end as u64,
    );
    (from..to).contains(&rip)
}

core::arch::global_asm!(include_str!("../../asm/x86_64/switch.S"));
core::arch::global_asm!(include_str!("../../asm/x86_64/leave.S"));
