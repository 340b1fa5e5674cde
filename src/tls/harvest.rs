//! Harvesting: letting glibc itself make a thread block.
//!
//! 1. A kernel thread is created with pthread_create on memory of ours.
//! 2. Its start routine publishes its thread pointer and leaves by a raw exit system call, so that
//!    glibc never takes the block down.
//! 3. The kernel clears the block's thread id when the kernel thread is gone; then the block is ours.
//!
//! glibc has filled every field and linked the block on its list of user stacks. It costs about a
//! hundred microseconds, so only the two anchors are made like this. glibc goes on counting the
//! thread (`__nptl_nthreads`), so the process no longer ends by the last pthread_exit.

use super::glibc::Glibc;
use super::template::Probes;
use crate::error::{Error, Kind};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::io;
use std::time::Duration;

/// What the harvested thread is told, and tells.
pub(crate) struct Order {
    fs: AtomicUsize,
    /// A pthread key of ours, to see which byte setting a value changes.
    key: libc::pthread_key_t,
    sizeof_pthread: usize,
    probes: core::cell::UnsafeCell<Probes>,
    mask: AtomicU64,
}

/// A harvested block.
pub(crate) struct Harvest {
    /// Its thread pointer.
    pub fs: usize,
    /// Address of the order, which was the start routine's argument.
    pub arg: usize,
    /// The start routine.
    pub routine: usize,
    /// The signal mask that it was created with: glibc keeps it in the block.
    pub mask: u64,
    /// What the experiments inside the thread have shown.
    pub probes: Probes,
}

/// Makes a block with glibc's help; its stack is `[lo, lo + len)`, the block at the upper end.
///
/// # Safety
/// The range is zeroed writable memory of a slot, used by nobody, and is never freed.
pub(crate) unsafe fn harvest(g: &Glibc, lo: *mut u8, len: usize) -> Result<Harvest, Error> {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: a local receives the key.
    let rc = unsafe { libc::pthread_key_create(&mut key, None) };
    if rc != 0 {
        return Err(Error::os("cannot create a pthread key", io::Error::from_raw_os_error(rc)));
    }
    let order = Order {
        fs: AtomicUsize::new(0),
        key,
        sizeof_pthread: g.sizeof_pthread,
        probes: core::cell::UnsafeCell::new(Probes::default()),
        mask: AtomicU64::new(0),
    };
    // SAFETY: the range is the caller's promise; the order outlives the kernel thread, awaited below.
    let rc = unsafe { create(lo, len, &order) };
    if rc != 0 {
        // SAFETY: the key is ours.
        unsafe { libc::pthread_key_delete(key) };
        return Err(Error::os("cannot start a kernel thread", io::Error::from_raw_os_error(rc)));
    }
    let fs = loop {
        match order.fs.load(Ordering::Acquire) {
            0 => std::thread::sleep(Duration::from_micros(20)),
            fs => break fs,
        }
    };
    // SAFETY: the thread id is a live, aligned word of the block; the kernel clears it at the end.
    let tid = unsafe { &*((fs + g.tid) as *const AtomicU32) };
    loop {
        match tid.load(Ordering::Acquire) {
            0 => break,
            // The kernel wakes this address with a shared futex key: sleep by the clock instead.
            _ => std::thread::sleep(Duration::from_micros(20)),
        }
    }
    // SAFETY: the key is ours and no thread has a value for it.
    unsafe { libc::pthread_key_delete(key) };
    Ok(Harvest {
        fs,
        arg: &order as *const Order as usize,
        routine: start as *const () as usize,
        mask: order.mask.load(Ordering::Acquire),
        // SAFETY: the kernel thread is gone.
        probes: unsafe { *order.probes.get() },
    })
}

/// # Safety
/// As [`harvest`]; `order` outlives the kernel thread.
unsafe fn create(lo: *mut u8, len: usize, order: &Order) -> i32 {
    // All signals are blocked so that no handler runs on a thread that is about to vanish.
    let mut all = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut old = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut attr = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = core::mem::MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: each call gets live locals, initialized by the calls before it.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
        libc::pthread_attr_init(attr.as_mut_ptr());
        let mut rc = libc::pthread_attr_setstack(attr.as_mut_ptr(), lo.cast(), len);
        if rc == 0 {
            rc = libc::pthread_create(
                thread.as_mut_ptr(),
                attr.as_ptr(),
                start,
                order as *const Order as *mut c_void,
            );
        }
        libc::pthread_attr_destroy(attr.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), core::ptr::null_mut());
        rc
    }
}

/// The start routine: publishes the thread pointer and vanishes.
extern "C" fn start(arg: *mut c_void) -> *mut c_void {
    // SAFETY: the argument is the order, which outlives this kernel thread.
    let order = unsafe { &*arg.cast::<Order>() };
    let fs = super::hot::fs_base();
    // SAFETY: the experiments touch this thread's own settings and undo them; the creator reads the
    // result after this kernel thread has ended.
    unsafe { *order.probes.get() = Probes::run(fs, order.sizeof_pthread, order.key) };
    order.mask.store(crate::sys::signal::current_mask(), Ordering::Release);
    order.fs.store(fs, Ordering::Release);
    // SAFETY: ends this kernel thread only, without glibc's knowledge: the block stays as it is.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("exit returned")
}

/// The error for a block that is not where it was expected.
pub(crate) fn misplaced(what: String) -> Error {
    Kind::UnknownTcb(what).into()
}
