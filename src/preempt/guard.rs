//! The user's side: switching preemption off for a few instructions, and looking for a due tick.

use crate::tcb::current;
use crate::tls::{due, hot};
use core::marker::PhantomData;

/// Preemption is off while this lives; see [`disable`].
#[must_use = "preemption comes back on when the guard is dropped"]
#[derive(Debug)]
pub struct Guard {
    _not_send: PhantomData<*const ()>,
}

/// Switches preemption of the running thread off until the guard is dropped. Guards nest.
///
/// A tick that comes meanwhile is remembered and takes effect when the outermost guard goes. Costs about
/// a nanosecond; makes no system call. On a plain kernel thread it does nothing that can be seen.
///
/// # What may not be called inside
/// Anything that can take a lock of the C library or of std: no allocation, no printing, no dlopen, no
/// [`std::sync::Mutex`]. The holder of such a lock may be a preempted thread that only this worker can
/// run; waiting for it with preemption off would wait for ever. Nor anything that blocks or gives way
/// in this crate: with invariant checks on (the default) that is reported and the process aborts.
///
/// A panic inside switches preemption back on at once, before the message is printed: printing and
/// unwinding do all that is forbidden here.
///
/// # Examples
/// ```
/// let mut shared = [0u64; 2];
/// {
///     let _off = reveille::preempt::disable();
///     shared[0] += 1; // no other thread of this worker sees one without the other
///     shared[1] += 1;
/// }
/// assert_eq!(shared, [1, 1]);
/// ```
#[inline]
pub fn disable() -> Guard {
    hot::off();
    Guard { _not_send: PhantomData }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        // Zero: a panic has switched it on already.
        if hot::off_count() != 0 {
            due::on();
        }
    }
}

/// Makes every panic begin by switching preemption on, in front of the hook that is there.
pub(crate) fn hook_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if current::get().is_some() {
                // SAFETY: guards that are dropped later see that it is on; a tick that came meanwhile is
                // not lost on a thread that is about to end.
                unsafe { hot::begin_slice() };
            }
            next(info);
        }));
    });
}

/// Whether preemption is off for the running thread; always true on a plain kernel thread, which
/// nobody preempts here.
#[inline]
#[must_use]
pub fn is_disabled() -> bool {
    hot::off_count() != 0
}

/// Gives way if a tick is due that could not take effect yet. One load when none is.
///
/// Preempted threads need no such calls; this is for code that runs with long guards and has points
/// where it may be interrupted.
///
/// # Examples
/// ```
/// for _ in 0..10 {
///     reveille::preempt::checkpoint();
/// }
/// ```
#[inline]
pub fn checkpoint() {
    crate::tls::due::look();
}

/// Aborts with a message if the running thread has preemption off: the check to put into an allocator
/// or any function that may not be called inside [`disable`]. `what` names the function.
///
/// Does nothing on plain kernel threads. Costs two loads; makes no allocation.
#[inline]
pub fn assert_on(what: &str) {
    if hot::off_count() != 0 && current::get().is_some() {
        crate::check::violation(what, "was called while preemption was switched off");
    }
}
