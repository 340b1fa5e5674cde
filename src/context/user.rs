//! Contexts for Rust: closures on stacks of their own, switched by hand, without system calls.
//!
//! A thin layer over [`ucontext`](super::ucontext) which fixes the addresses (a context must
//! not move) and carries a closure. There is no scheduler: who runs next is up to the caller.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::{fmt, mem, ptr};

use libc::ucontext_t;

use super::ucontext::{makecontext, swapcontext};

type Entry = Box<dyn FnOnce()>;

struct Inner {
    context: UnsafeCell<ucontext_t>,
    entry: UnsafeCell<Option<Entry>>,
}

/// A place to save a context in, and to continue it from.
///
/// # Examples
/// ```
/// use reveille::context::UserContext;
/// use std::{cell::Cell, rc::Rc};
///
/// let main = Rc::new(UserContext::new());
/// let seen = Rc::new(Cell::new(0));
/// let mut stack = vec![0u8; 64 * 1024];
/// let inside = seen.clone();
/// // SAFETY: the stack outlives the context, and the closure ends before it is given back.
/// let other = unsafe {
///     UserContext::on_stack(&raw mut stack[..], Some(&main), move || inside.set(1))
/// };
/// // SAFETY: `other` has not run yet, and goes back to `main` at its end.
/// assert!(unsafe { main.swap(&other) });
/// assert_eq!(seen.get(), 1);
/// ```
pub struct UserContext {
    inner: Box<Inner>,
}

impl UserContext {
    /// An empty context: to be saved into. [`swap`](Self::swap) refuses to continue it before.
    #[must_use]
    pub fn new() -> UserContext {
        // SAFETY: zero is a valid value of this C structure, and means "never made".
        let context = UnsafeCell::new(unsafe { mem::zeroed() });
        UserContext { inner: Box::new(Inner { context, entry: UnsafeCell::new(None) }) }
    }

    /// A context that runs `f` on `stack`, and then continues `link`. Without a link the thread
    /// ends, see [`set_thread_end`](super::ucontext::set_thread_end).
    ///
    /// A panic that leaves `f` aborts the process. A context that is dropped before its end
    /// leaks what its stack holds; one that never ran drops its closure.
    ///
    /// # Safety
    /// * `stack` is used by nothing else, and stays until the context has ended or is never
    ///   continued again; it is large enough for `f`. There is no guard page.
    /// * `link` lives, and has been saved into, when `f` returns.
    /// * If contexts are continued on several kernel threads, what `f` captures and keeps across
    ///   switches (its stack, thread-locals) allows that.
    #[must_use]
    pub unsafe fn on_stack<F>(stack: *mut [u8], link: Option<&UserContext>, f: F) -> UserContext
    where
        F: FnOnce() + 'static,
    {
        let made = UserContext::new();
        let inner = &raw const *made.inner;
        // SAFETY: nobody else has this context yet. `enter` takes one pointer-sized integer.
        unsafe {
            *made.inner.entry.get() = Some(Box::new(f));
            let context = made.as_ptr();
            (*context).uc_stack.ss_sp = stack.cast();
            (*context).uc_stack.ss_size = stack.len();
            (*context).uc_link = link.map_or(ptr::null_mut(), UserContext::as_ptr);
            let enter =
                mem::transmute::<unsafe extern "C" fn(*const Inner), unsafe extern "C" fn()>(enter);
            makecontext(context, enter, &[inner.expose_provenance() as u64]);
        }
        made
    }

    /// Saves the current context in `self` and continues `to`. Returns true when `self` is
    /// continued, false at once if `to` is empty or its stack was too small.
    ///
    /// # Safety
    /// `to` is not running and has not ended, and this kernel thread may run it.
    #[inline]
    pub unsafe fn swap(&self, to: &UserContext) -> bool {
        // SAFETY: the addresses are fixed; the rest is the caller's contract.
        unsafe { swapcontext(self.as_ptr(), to.as_ptr()) == 0 }
    }

    /// The C structure, for the functions of [`ucontext`](super::ucontext).
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> *mut ucontext_t {
        self.inner.context.get()
    }
}

/// The first function on the new stack. It is `extern "C"`, so that a panic aborts here.
unsafe extern "C" fn enter(inner: *const Inner) {
    // SAFETY: on_stack() passed this address, and the context is alive, since it runs.
    let entry = unsafe { (*(*inner).entry.get()).take() };
    if let Some(entry) = entry {
        entry();
    }
}

impl Default for UserContext {
    fn default() -> UserContext {
        UserContext::new()
    }
}

impl fmt::Debug for UserContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserContext").field("at", &self.as_ptr()).finish_non_exhaustive()
    }
}
