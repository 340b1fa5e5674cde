//! Reaching the hot words (`asm/x86_64/tls.S`) of the running thread.
//!
//! Every access is one instruction on the FS segment. That is what makes it right under preemption:
//! a thread that is moved to another worker between two instructions still reaches its own words,
//! since the words move with it. Nothing here may be read as "worker, then flag" (invariant I1).

use core::arch::asm;

/// Where the words are, relative to the words' own start (named for the assembly too).
#[repr(C)]
pub(crate) struct HotWords {
    /// Preemption is off while this is not zero.
    pub off: u32,
    /// A tick came while preemption was off.
    pub pending: u32,
    /// The record of the thread, null on a plain kernel thread.
    pub record: *mut (),
    /// Kept for "in a system call".
    pub in_syscall: u64,
    /// The record that is being started through a signal (`context::start`).
    pub starting: *mut (),
    _rest: [u64; 4],
}

static_assertions::const_assert!(size_of::<HotWords>() == 64);

/// Offset of the hot words from the FS base: the same in every thread of the process.
#[inline(always)]
pub(crate) fn offset() -> isize {
    let o: isize;
    // SAFETY: reads a constant that the dynamic loader filled in before any code ran.
    unsafe {
        asm!(
            "mov {o}, qword ptr [rip + reveille_hot@GOTTPOFF]",
            o = out(reg) o,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    o
}

/// The running thread's record, null on a plain kernel thread.
#[inline(always)]
pub(crate) fn record() -> *mut () {
    let r;
    // SAFETY: one load from the running thread's own TLS.
    unsafe {
        asm!(
            "mov {r}, qword ptr fs:[{o} + {RECORD}]",
            r = out(reg) r,
            o = in(reg) offset(),
            RECORD = const core::mem::offset_of!(HotWords, record),
            options(readonly, nostack, preserves_flags)
        );
    }
    r
}

/// How deep preemption is switched off.
#[inline(always)]
pub(crate) fn off_count() -> u32 {
    let n;
    // SAFETY: one load from the running thread's own TLS.
    unsafe {
        asm!(
            "mov {n:e}, dword ptr fs:[{o}]",
            n = out(reg) n,
            o = in(reg) offset(),
            options(readonly, nostack, preserves_flags)
        );
    }
    n
}

/// Switches preemption off, one level deeper. A compiler barrier: nothing moves out of the region.
#[inline(always)]
pub(crate) fn off() {
    // SAFETY: one read-modify-write of the running thread's own word; no other thread writes it.
    unsafe {
        asm!("inc dword ptr fs:[{o}]", o = in(reg) offset(), options(nostack));
    }
}

/// As [`off`], where the count is known to be zero: a store, so that nothing waits for the old value.
#[inline(always)]
pub(crate) fn off_from_on() {
    debug_assert_eq!(off_count(), 0);
    // SAFETY: one store to the running thread's own word.
    unsafe {
        asm!("mov dword ptr fs:[{o}], 1", o = in(reg) offset(), options(nostack, preserves_flags));
    }
}

/// Leaves one level of [`off`]; true if it was the last and a tick waits to be honoured.
///
/// A tick between the two instructions finds the count at zero and switches by itself; a tick before
/// the first has set `pending`, which the second sees. None is lost.
#[inline(always)]
#[must_use]
pub(crate) fn on() -> bool {
    let due: u32;
    // SAFETY: as in `off`; the second access is a load.
    unsafe {
        asm!(
            "dec dword ptr fs:[{o}]",
            "mov {d:e}, dword ptr fs:[{o} + {PENDING}]",
            o = in(reg) offset(),
            d = out(reg) due,
            PENDING = const core::mem::offset_of!(HotWords, pending),
            options(nostack)
        );
    }
    due != 0
}

/// A thread that has just been switched to begins its slice: preemption on, nothing pending.
///
/// # Safety
/// The caller holds exactly one level of `off` and has finished with all runtime data.
#[inline(always)]
pub(crate) unsafe fn begin_slice() {
    // SAFETY: one store to the running thread's own two words.
    unsafe {
        asm!("mov qword ptr fs:[{o}], 0", o = in(reg) offset(), options(nostack, preserves_flags));
    }
}

/// Remembers a tick that could not be honoured. Called by the signal handler.
#[inline(always)]
pub(crate) fn set_pending(value: u32) {
    // SAFETY: one store to the running thread's own word.
    unsafe {
        asm!(
            "mov dword ptr fs:[{o} + {PENDING}], {v:e}",
            o = in(reg) offset(),
            v = in(reg) value,
            PENDING = const core::mem::offset_of!(HotWords, pending),
            options(nostack, preserves_flags)
        );
    }
}

/// Whether a tick waits to be honoured.
#[inline(always)]
pub(crate) fn pending() -> bool {
    let n: u32;
    // SAFETY: one load from the running thread's own TLS.
    unsafe {
        asm!(
            "mov {n:e}, dword ptr fs:[{o} + {PENDING}]",
            n = out(reg) n,
            o = in(reg) offset(),
            PENDING = const core::mem::offset_of!(HotWords, pending),
            options(readonly, nostack, preserves_flags)
        );
    }
    n != 0
}

/// The FS base of the running thread.
#[inline(always)]
pub(crate) fn fs_base() -> usize {
    let fs;
    // SAFETY: reads the TCB's self pointer, which the x86-64 TLS ABI puts at fs:0.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) fs, options(readonly, nostack, preserves_flags))
    };
    fs
}

/// The hot words of the TLS block at `fs`.
///
/// # Safety
/// `fs` is a live TLS block of this process.
#[inline(always)]
pub(crate) unsafe fn of(fs: usize) -> *mut HotWords {
    fs.wrapping_add_signed(offset()) as *mut HotWords
}
