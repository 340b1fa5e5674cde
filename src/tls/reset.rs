//! Making a thread's storage as good as new when the thread has ended.
//!
//! In this order, in the ending thread itself, with preemption on (destructors are user code):
//! 1. `__call_tls_dtors`: destructors of `thread_local!` and C++ `thread_local`
//! 2. pthread-key destructors, if any key has a value
//! 3. the variables of every module but libc, from their images
//! 4. what libc keeps by name: errno, locale, cancellation
//!
//! malloc's cache stays warm, which is the point of keeping the block.

use super::glibc::{self, Glibc};
use super::template::Probes;
use super::{hot, keys, modules};
use core::sync::atomic::{AtomicPtr, Ordering};

/// What a reset needs, looked up once.
struct Plan {
    libc: &'static Glibc,
    probes: Probes,
    errno: isize,
}

static PLAN: AtomicPtr<Plan> = AtomicPtr::new(core::ptr::null_mut());

/// Prepares resets; called when the template is there, in thread context.
pub(crate) fn prepare(libc: &'static Glibc, probes: Probes) {
    if !PLAN.load(Ordering::Acquire).is_null() {
        return;
    }
    modules::find_first();
    modules::find_counters();
    modules::current();
    let plan = Box::into_raw(Box::new(Plan { libc, probes, errno: glibc::errno_offset() }));
    // A plan made twice by two starters is the same plan; the second is leaked.
    PLAN.store(plan, Ordering::Release);
}

/// Ends the running thread's life in its block: destructors, then a clean slate.
///
/// # Safety
/// Runs in a reveille thread after its closure, preemption on; nothing of the thread that lives in TLS
/// is used afterwards.
#[inline]
pub(crate) unsafe fn reset() {
    let fs = hot::fs_base();
    // SAFETY: `prepare` ran before the first thread; plans are never freed.
    let plan = unsafe { &*PLAN.load(Ordering::Acquire) };
    // SAFETY: the destructors belong to this thread, whose block this is.
    unsafe {
        (plan.libc.call_tls_dtors)();
        let used = plan.probes.specific_used.is_none_or(|at| *((fs + at) as *const u8) != 0);
        if used {
            keys::run_destructors(plan.libc, fs);
            // A key destructor may use thread_local! once more.
            (plan.libc.call_tls_dtors)();
            if let Some(at) = plan.probes.specific_used {
                *((fs + at) as *mut u8) = 0;
            }
        }
        re_image(plan.libc, fs);
        by_name(plan, fs);
    }
}

/// Restores every module's variables from their images.
///
/// # Safety
/// As [`reset`]; `fs` is the running thread's thread pointer.
#[inline]
unsafe fn re_image(g: &Glibc, fs: usize) {
    loop {
        let table = modules::current();
        for p in &table.statics {
            let at = fs.wrapping_add_signed(p.offset) as *mut u8;
            // SAFETY: a module's stretch of this thread's own static TLS.
            unsafe { modules::restore(at, &p.image, p.len) };
        }
        if !table.dynamics.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { re_image_dynamic(g, fs, table) };
        }
        // A library opened meanwhile may have been given room that the old table knew as another's.
        // One whose dlopen is under way will fill in its variables itself, in this block too.
        if table.is_current() {
            return;
        }
    }
}

/// Restores the variables that this thread allocated on first use.
///
/// # Safety
/// As [`reset`].
#[cold]
unsafe fn re_image_dynamic(g: &Glibc, fs: usize, table: &modules::Modules) {
    // SAFETY: the dynamic thread vector of this thread; entry -1 tells how many there are.
    unsafe {
        let dtv = *((fs + g.dtvp) as *const *const u8);
        let count = *dtv.sub(g.dtv_entry).cast::<usize>();
        // Entry 0: the generation that the vector was last brought to. Entries of younger modules are still
        // those of closed ones that had the same number.
        let generation = *dtv.cast::<usize>();
        let known = |d: &&modules::Dynamic| d.module <= count && d.generation <= generation;
        for d in table.dynamics.iter().filter(known) {
            let at = *dtv.add(d.module * g.dtv_entry + g.dtv_val).cast::<usize>();
            // All ones: not allocated in this thread. Zero: the module is gone.
            if at != usize::MAX && at != 0 {
                modules::restore(at as *mut u8, &d.image, d.len);
            }
        }
    }
}

/// `LC_GLOBAL_LOCALE` of locale.h: ((locale_t) -1).
const GLOBAL_LOCALE: libc::locale_t = usize::MAX as libc::locale_t;

/// errno, locale and cancellation.
///
/// # Safety
/// As [`re_image`].
#[inline]
unsafe fn by_name(plan: &Plan, fs: usize) {
    let g = plan.libc;
    // SAFETY: fields of this thread's own block and calls that concern this thread only.
    unsafe {
        *(fs.wrapping_add_signed(plan.errno) as *mut i32) = 0;
        *((fs + g.cancelhandling) as *mut u32) = 0;
        match (plan.probes.cancel_state, plan.probes.cancel_type) {
            (Some(state), Some(kind)) => {
                *((fs + state) as *mut u8) = 0;
                *((fs + kind) as *mut u8) = 0;
            }
            _ => enable_cancellation(),
        }
        if libc::uselocale(core::ptr::null_mut()) != GLOBAL_LOCALE {
            libc::uselocale(GLOBAL_LOCALE);
        }
    }
}

/// The slow way round where the fields were not found.
#[cold]
fn enable_cancellation() {
    unsafe extern "C" {
        fn pthread_setcancelstate(state: i32, old: *mut i32) -> i32;
        fn pthread_setcanceltype(kind: i32, old: *mut i32) -> i32;
    }
    // SAFETY: changes this thread's own state to the defaults: enabled, deferred.
    unsafe {
        pthread_setcancelstate(0, core::ptr::null_mut());
        pthread_setcanceltype(0, core::ptr::null_mut());
    }
}
