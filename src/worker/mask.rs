//! A thread's own signal mask.
//!
//! The kernel keeps a mask for the kernel thread, that is, for the worker. A thread that changes its mask
//! and then blocks or gives way would leave it on the worker and stop ticks for everybody. So a thread
//! whose mask differs from the usual one is marked `slow`, its switches put the usual mask in force and
//! its return restores its own. Threads that never touch their mask pay one test.
//!
//! To know of changes without asking the kernel, `pthread_sigmask` and `sigprocmask` are defined here; the
//! dynamic linker gives them to the whole program in place of libc's. On threads that are not ours they do
//! what libc's do. The tick's signal is never really blocked: a thread that blocks all signals can still
//! be preempted, and sees in its mask what it asked for. A mask that was changed some other way (siglongjmp, a
//! raw system call) becomes the thread's own when the thread next gives way or blocks, or at the first tick that
//! finds it, unless it blocks more than before: then the thread may be in a handler, and no tick takes it away.

use super::Worker;
use crate::preempt::action;
use crate::sys::signal;
use crate::sys::signal::KernelSet;
use crate::tcb::{Record, current};
use crate::tls::hot;
use core::ffi::c_int;
use core::sync::atomic::Ordering;

/// Puts the worker's usual mask in force; returns the one that was.
pub(crate) fn usual(w: &Worker) -> KernelSet {
    signal::change_mask(libc::SIG_SETMASK, w.site.usual_mask.get())
}

/// A slow thread leaves by itself: what was in force is its own mask. Preemption is off.
#[cold]
pub(crate) fn leave(me: &Record, w: &Worker) {
    own(me, w, usual(w));
}

/// `mask` is the thread's own from now on.
fn own(me: &Record, w: &Worker, mask: KernelSet) {
    me.mask.set(mask);
    me.slow.store(u8::from(mask != w.site.usual_mask.get()), Ordering::Relaxed);
}

/// The thread runs again: its own mask. Preemption is off.
#[cold]
pub(crate) fn come_back(me: &Record) {
    signal::change_mask(libc::SIG_SETMASK, me.mask.get());
}

/// Signals that glibc keeps for itself, and those that no mask can hold.
const INTERNAL: KernelSet = signal::set_of(32)
    | signal::set_of(33)
    | signal::set_of(libc::SIGKILL)
    | signal::set_of(libc::SIGSTOP);

/// pthread_sigmask(3) and sigprocmask(2): 0 or an error number.
///
/// # Safety
/// Both pointers are null or valid.
unsafe fn change(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    let known = [libc::SIG_BLOCK, libc::SIG_UNBLOCK, libc::SIG_SETMASK].contains(&how);
    if !set.is_null() && !known {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise; the kernel's set is the first word of libc's.
    let asked = (!set.is_null()).then(|| unsafe { *set.cast::<KernelSet>() } & !INTERNAL);
    let was = match current::get() {
        Some(me) => change_own(me, how, asked),
        None => match asked {
            Some(set) => signal::change_mask(how, set),
            None => signal::current_mask(),
        },
    };
    if !old.is_null() {
        // As libc's do, this writes the kernel's set and leaves the rest of libc's longer type alone.
        // SAFETY: the caller's promise.
        unsafe { old.cast::<KernelSet>().write(was) };
    }
    0
}

/// As [`change`] for a reveille thread; returns the mask that it had.
fn change_own(me: &Record, how: c_int, asked: Option<KernelSet>) -> KernelSet {
    hot::off();
    let w = super::of(me);
    let tick = signal::set_of(w.site.signal);
    // What the kernel says, not what the record says: handlers and raw calls change masks too.
    let real = match asked {
        Some(set) => signal::change_mask(how, set & !tick),
        None => signal::current_mask(),
    };
    let was = if me.masks_tick.get() { real | tick } else { real };
    if let Some(set) = asked {
        let now = match how {
            libc::SIG_BLOCK => was | set,
            libc::SIG_UNBLOCK => was & !set,
            _ => set,
        };
        me.masks_tick.set(now & tick != 0);
        let known = known(me, w);
        if real & known == known && real != known {
            // More was blocked than we knew: the caller may be a handler, whose mask ends with it and must
            // not become the one under which ticks take the thread away (`preempt::handler::found_mask`).
            me.mask.set(known);
            me.slow.store(1, Ordering::Relaxed);
        } else {
            own(me, w, now & !tick);
        }
    }
    // A tick that came meanwhile stays pending: this may be a handler on the worker's signal stack.
    let _due = hot::on();
    was
}

/// What [`block`] found, for [`restore`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked {
    was: KernelSet,
    now: KernelSet,
    /// The mask was the thread's own, not that of a handler.
    own: bool,
}

/// Really blocks every signal that a program can have a handler for, except, on a reveille thread, the tick's. The
/// mask is the thread's own from now on, so that it can be preempted under it once a panic has switched preemption
/// on, which is off now.
pub(crate) fn block() -> Blocked {
    let all = !INTERNAL;
    let Some(me) = current::get() else {
        let was = signal::change_mask(libc::SIG_BLOCK, all);
        return Blocked { was, now: was | all, own: false };
    };
    let w = super::of(me);
    let set = all & !signal::set_of(w.site.signal);
    let was = signal::change_mask(libc::SIG_BLOCK, set);
    let own = was == known(me, w);
    if own {
        self::own(me, w, was | set);
    }
    Blocked { was, now: was | set, own }
}

/// Puts back the mask that was before `blocked`, on whatever worker the thread is now. Preemption is off. False if
/// less was blocked until now.
#[must_use]
pub(crate) fn restore(blocked: Blocked) -> bool {
    let now = signal::change_mask(libc::SIG_SETMASK, blocked.was);
    if let (true, Some(me)) = (blocked.own, current::get()) {
        own(me, super::of(me), blocked.was);
    }
    now & blocked.now == blocked.now
}

/// The mask that the thread is known by.
fn known(me: &Record, w: &Worker) -> KernelSet {
    if me.slow.load(Ordering::Relaxed) == 0 { w.site.usual_mask.get() } else { me.mask.get() }
}

/// See pthread_sigmask(3).
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { change(how, set, old) }
}

/// See sigprocmask(2).
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let rc = unsafe { change(how, set, old) };
    if rc == 0 {
        return 0;
    }
    // SAFETY: the running thread's errno.
    unsafe { *libc::__errno_location() = rc };
    -1
}

/// See sigset(3): a handler whose signal is blocked while it runs, or the signal held.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(signo: c_int, disposition: usize) -> usize {
    const SIG_HOLD: usize = 2;
    let hold = disposition == SIG_HOLD;
    let new = (!hold).then_some(disposition);
    let old = match action::replace(signo, new, 0, 0) {
        libc::SIG_ERR => return libc::SIG_ERR,
        old => old,
    };
    let (set, mut was) = (signal::set_of(signo), [0 as KernelSet; 16]);
    let how = if hold { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: the kernel's set is the first word of libc's; the other is as long as libc's.
    unsafe { change(how, (&raw const set).cast(), was.as_mut_ptr().cast()) };
    if was[0] & set != 0 { SIG_HOLD } else { old }
}

/// pthread_getattr_np(3). libc's asks the kernel for the thread id in the block, which for a reveille
/// thread names no kernel thread; what it would answer is known here.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getattr_np(
    thread: libc::pthread_t,
    attr: *mut libc::pthread_attr_t,
) -> c_int {
    type Real = unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int;
    // SAFETY: pthread_self has no preconditions.
    let own = thread == unsafe { libc::pthread_self() };
    match current::get() {
        // SAFETY: the caller's promise; the stack is the thread's own.
        Some(me) if own => unsafe {
            match libc::pthread_attr_init(attr) {
                0 => {}
                e => return e,
            }
            libc::pthread_attr_setguardsize(attr, crate::sys::memory::PAGE);
            {
                let (lo, top) = (me.stack().lo.get(), me.stack().top());
                libc::pthread_attr_setstack(attr, lo as *mut _, top - lo)
            }
        },
        _ => {
            // SAFETY: a C string.
            let real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_getattr_np".as_ptr()) };
            if real.is_null() {
                return libc::ENOSYS;
            }
            // SAFETY: the function's type (pthread_getattr_np(3)).
            unsafe { core::mem::transmute::<*mut core::ffi::c_void, Real>(real)(thread, attr) }
        }
    }
}
