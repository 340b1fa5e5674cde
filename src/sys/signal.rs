//! Signal handlers, masks and signal stacks, as the runtime needs them.

use super::raw::syscall4;
use nix::errno::Errno;

/// A handler as sigaction(2) takes it with SA_SIGINFO.
pub(crate) type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// A signal set as the kernel sees it: one bit a signal, signal 1 lowest.
pub(crate) type KernelSet = u64;

/// The set that holds just `signo`.
pub(crate) const fn set_of(signo: i32) -> KernelSet {
    1 << (signo - 1)
}

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
pub(crate) struct KernelAction {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: KernelSet,
}

/// rt_sigaction(2) without libc: puts `new` in force, if given; returns what was, or the error's number.
/// Async-signal-safe.
///
/// # Safety
/// The handler and the way back are what the kernel needs.
pub(crate) unsafe fn kernel_action(
    signo: i32,
    new: Option<&KernelAction>,
) -> Result<KernelAction, i32> {
    let mut old = KernelAction::default();
    let new = new.map_or(core::ptr::null(), core::ptr::from_ref) as usize;
    let (out, len) = (&raw mut old as usize, size_of::<KernelSet>());
    // SAFETY: null or a live action, and a live place; the rest is the caller's promise.
    match unsafe { syscall4(libc::SYS_rt_sigaction, signo as usize, new, out, len) } {
        0 => Ok(old),
        e => Err(-e as i32),
    }
}

/// Installs `handler` for `signo` on the signal stack and returns what was there.
///
/// SA_RESTART keeps restartable calls whole; SA_NODEFER is never set (a late tick would nest on the
/// signal stack until it overflows).
pub(crate) fn install(signo: i32, handler: Handler) -> Result<libc::sigaction, Errno> {
    // SAFETY: all-zero is a valid sigaction.
    let mut new: libc::sigaction = unsafe { core::mem::zeroed() };
    new.sa_sigaction = handler as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    restore(signo, &new)
}

/// Puts `action` in force for `signo` and returns what was there.
pub(crate) fn restore(signo: i32, action: &libc::sigaction) -> Result<libc::sigaction, Errno> {
    // SAFETY: all-zero is a valid sigaction.
    let mut old: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: both pointers are live.
    Errno::result(unsafe { libc::sigaction(signo, action, &mut old) })?;
    Ok(old)
}

/// rt_sigprocmask(2) without libc: sets the mask of the calling kernel thread, returns the old one.
/// `how` is one of SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK. Async-signal-safe.
pub(crate) fn change_mask(how: i32, set: KernelSet) -> KernelSet {
    let mut old: KernelSet = 0;
    let (new, out) = (&raw const set as usize, &raw mut old as usize);
    let len = size_of::<KernelSet>();
    // SAFETY: both pointers are to live eight-byte sets.
    unsafe { syscall4(libc::SYS_rt_sigprocmask, how as usize, new, out, len) };
    old
}

/// The mask of the calling kernel thread.
pub(crate) fn current_mask() -> KernelSet {
    change_mask(libc::SIG_BLOCK, 0)
}

/// Makes `[base, base + len)` the signal stack of the calling kernel thread; returns the old one.
///
/// # Safety
/// The range stays valid and unused by others until the kernel thread ends or is given another.
pub(crate) unsafe fn set_signal_stack(base: *mut u8, len: usize) -> Result<libc::stack_t, Errno> {
    let new = libc::stack_t { ss_sp: base.cast(), ss_flags: 0, ss_size: len };
    // SAFETY: all-zero is a valid stack_t.
    let mut old: libc::stack_t = unsafe { core::mem::zeroed() };
    let (new, out) = (&raw const new as usize, &raw mut old as usize);
    // SAFETY: both pointers are live; the range is the caller's promise.
    match unsafe { syscall4(libc::SYS_sigaltstack, new, out, 0, 0) } {
        0 => Ok(old),
        e => Err(Errno::from_raw(-e as i32)),
    }
}

/// Puts back what [`set_signal_stack`] returned.
pub(crate) fn restore_signal_stack(old: &libc::stack_t) {
    // SAFETY: the old stack was this kernel thread's before.
    unsafe { syscall4(libc::SYS_sigaltstack, core::ptr::from_ref(old) as usize, 0, 0, 0) };
}

/// The smallest signal stack that holds a frame of this CPU (AT_MINSIGSTKSZ), in bytes.
pub(crate) fn min_signal_stack() -> usize {
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    // SAFETY: getauxval reads the auxiliary vector.
    let n = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
    n.max(libc::MINSIGSTKSZ)
}

/// Sends `signo` to the calling kernel thread with the given code and value (rt_tgsigqueueinfo(2)); true
/// if it was sent. Async-signal-safe.
pub(crate) fn queue_to_self(signo: i32, code: i32, value: usize) -> bool {
    // SAFETY: all-zero is a valid siginfo.
    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
    info.si_signo = signo;
    info.si_code = code;
    // Offsets of `_rt` in the x86-64 siginfo: pid 16, uid 20, value 24; of `_timer`: id, overrun, value.
    // SAFETY: within the 128 bytes of the structure.
    unsafe { (&raw mut info).cast::<u8>().add(24).cast::<usize>().write(value) };
    // SAFETY: no arguments.
    let (pid, tid) =
        unsafe { (syscall4(libc::SYS_getpid, 0, 0, 0, 0), syscall4(libc::SYS_gettid, 0, 0, 0, 0)) };
    let info = &raw const info as usize;
    // SAFETY: the structure is a live local.
    let rc = unsafe {
        syscall4(libc::SYS_rt_tgsigqueueinfo, pid as usize, tid as usize, signo as usize, info)
    };
    rc == 0
}

/// The action in force for `signo`.
pub(crate) fn current_action(signo: i32) -> Result<libc::sigaction, Errno> {
    // SAFETY: all-zero is a valid sigaction.
    let mut old: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: the result is a live local.
    Errno::result(unsafe { libc::sigaction(signo, core::ptr::null(), &mut old) })?;
    Ok(old)
}
