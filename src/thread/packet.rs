//! How a closure gets into a thread and its result out: through the record, without allocation if they
//! are small.
//!
//! The packet holds the closure until the body runs, then its result. Either is in the record itself if
//! it fits, else in a box whose address is there.

use crate::tcb::{PACKET, Record};
use core::mem::needs_drop;

/// Whether a `P` fits into a record.
const fn fits<P>() -> bool {
    size_of::<P>() <= PACKET && align_of::<P>() <= 16
}

/// A closure on its way into a record.
pub(crate) enum Parcel<F> {
    Inline(F),
    Boxed(Box<F>),
}

impl<F> Parcel<F> {
    /// Wraps `f`; allocates if it is large, so call it with preemption on.
    #[inline(always)]
    pub(crate) fn new(f: F) -> Parcel<F> {
        if fits::<F>() { Parcel::Inline(f) } else { Parcel::Boxed(Box::new(f)) }
    }

    /// Puts the closure into the record of a thread that has not started.
    #[inline(always)]
    pub(crate) fn put(self, r: &Record) {
        let at = r.packet.get();
        // SAFETY: the packet is the spawner's until the thread is published; sizes by `new`.
        unsafe {
            match self {
                Parcel::Inline(f) => at.cast::<F>().write(f),
                Parcel::Boxed(f) => at.cast::<*mut F>().write(Box::into_raw(f)),
            }
        }
    }
}

/// The body of a thread that runs an `F`.
///
/// # Safety
/// The packet holds an `F`; called once.
pub(crate) unsafe extern "C-unwind" fn body<F: FnOnce() -> T, T>(r: &Record) {
    let at = r.packet.get();
    // SAFETY: the caller's promise; the result replaces the closure.
    unsafe {
        let f = if fits::<F>() {
            at.cast::<F>().read()
        } else {
            *Box::from_raw(at.cast::<*mut F>().read())
        };
        put_result(r, f());
    }
}

/// # Safety
/// The packet is empty and the thread's own.
#[inline(always)]
unsafe fn put_result<T>(r: &Record, value: T) {
    let at = r.packet.get();
    // SAFETY: the caller's promise.
    unsafe {
        if fits::<T>() {
            at.cast::<T>().write(value);
        } else {
            at.cast::<*mut T>().write(Box::into_raw(Box::new(value)));
        }
    }
}

/// Takes the result out of the record of a thread that has returned.
///
/// # Safety
/// The packet holds a `T`, which nobody else takes.
#[inline(always)]
pub(crate) unsafe fn take_result<T>(r: &Record) -> T {
    let at = r.packet.get();
    // SAFETY: the caller's promise.
    unsafe {
        if fits::<T>() { at.cast::<T>().read() } else { *Box::from_raw(at.cast::<*mut T>().read()) }
    }
}

/// What drops a result that nobody takes.
pub(crate) fn dropper<T>() -> Option<unsafe extern "C" fn(&Record)> {
    /// # Safety
    /// As [`take_result`].
    unsafe extern "C" fn drop_it<T>(r: &Record) {
        // SAFETY: the caller's promise.
        drop(unsafe { take_result::<T>(r) });
    }
    if needs_drop::<T>() || !fits::<T>() { Some(drop_it::<T>) } else { None }
}
