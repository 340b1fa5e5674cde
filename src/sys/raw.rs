//! System calls without libc: no errno, no lazy binding, no lock. For the signal handler and for the
//! runtime's own paths, where preemption is off.

use core::arch::asm;

/// A system call with up to four arguments; a negative result is `-errno`.
///
/// # Safety
/// As the call itself.
#[inline(always)]
pub(crate) unsafe fn syscall4(nr: i64, a: usize, b: usize, c: usize, d: usize) -> isize {
    let ret;
    // SAFETY: the caller's promise; the kernel clobbers rcx and r11 only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") nr as isize => ret,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    ret
}

/// A system call with six arguments.
///
/// # Safety
/// As the call itself.
#[inline(always)]
pub(crate) unsafe fn syscall6(nr: i64, args: [usize; 6]) -> isize {
    let ret;
    // SAFETY: as in `syscall4`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") nr as isize => ret,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    ret
}
