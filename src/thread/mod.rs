//! Threads: `std::thread`'s names and meanings, for threads that are cheap and cannot hog a worker.
//!
//! Everything here may be called from reveille threads and from plain kernel threads alike. A kernel
//! thread that spawns does so on the default runtime, which starts when it is first needed, or on one it
//! names ([`Runtime::spawn`](crate::Runtime::spawn)); a kernel thread that joins sleeps in the kernel.
//!
//! ```
//! let handle = reveille::thread::spawn(|| 6 * 7);
//! assert_eq!(handle.join().unwrap(), 42);
//! ```
#![allow(unsafe_code)]

mod builder;
mod handle;
mod join;
mod packet;
mod scope;
mod sleep;
pub(crate) mod spawn;

pub use builder::Builder;
pub(crate) use builder::SharedRef;
pub use handle::{Thread, ThreadId, current};
pub use join::{Exited, JoinHandle};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use sleep::{park_timeout, sleep, sleep_until, sleep_until_time};

use crate::worker::ops;

/// How a thread ended: its value, or the payload of its panic (or [`Exited`], if it was ended by
/// pthread_exit(3) or cancellation).
pub type Result<T> = std::thread::Result<T>;

/// Spawns a thread, on the runtime of the calling thread; see [`std::thread::spawn`].
///
/// # Panics
/// If there is no memory for the thread, or the default runtime cannot start. [`Builder::spawn`] gives an
/// error instead.
///
/// # Examples
/// ```
/// let t = reveille::thread::spawn(|| "done");
/// assert_eq!(t.join().unwrap(), "done");
/// ```
#[inline]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f).expect("failed to spawn thread")
}

/// Gives way to the next thread that is ready on this worker, if there is one. Makes no system call in a
/// reveille thread; on a plain kernel thread it is [`std::thread::yield_now`].
///
/// # Examples
/// ```
/// reveille::thread::yield_now();
/// ```
#[inline]
pub fn yield_now() {
    if !ops::yield_now() {
        std::thread::yield_now();
    }
}

/// Blocks until the thread's token is made available by [`Thread::unpark`]; see [`std::thread::park`].
/// May return early without one.
///
/// # Examples
/// ```
/// use reveille::thread;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// static READY: AtomicBool = AtomicBool::new(false);
/// let t = thread::spawn(|| {
///     while !READY.load(Ordering::Acquire) {
///         thread::park();
///     }
/// });
/// READY.store(true, Ordering::Release);
/// t.thread().unpark();
/// t.join().unwrap();
/// ```
pub fn park() {
    match crate::tcb::current::get() {
        Some(me) => ops::park(me),
        None => crate::tcb::kernel::current(|k| k.park_until(None)),
    }
}

/// How many threads can run at once: processors this process may use; see
/// [`std::thread::available_parallelism`].
///
/// # Errors
/// As std's.
pub fn available_parallelism() -> std::io::Result<std::num::NonZeroUsize> {
    std::thread::available_parallelism()
}
