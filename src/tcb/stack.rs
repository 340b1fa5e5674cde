//! A stack with its TLS block, as the runtime knows it. The memory itself is touched by the thread that runs
//! on it; this description lies elsewhere, so that taking and giving a stack touches none of it.

use core::cell::Cell;

/// Bytes at the stack's top for glibc's `__pthread_unwind_buf_t`: a jump buffer and four words, with room
/// to spare.
pub(crate) const UNWIND_BUF: usize = 256;

/// See the module's documentation.
#[repr(C, align(64))]
pub(crate) struct Stack {
    /// FS base: the thread block.
    pub fs: Cell<usize>,
    /// Upper end of the usable stack; the cancellation buffer is above.
    pub top: Cell<usize>,
    /// Lowest usable address; the guard page is below.
    pub lo: Cell<usize>,
    /// Room for a preempted context when the stack has none: from here to the guard page.
    pub spare: Cell<usize>,
    /// The stack pointer at which the cancellation buffer is registered; 0 before the first thread.
    pub registered: Cell<usize>,
    /// The class of the stack's size.
    pub class: Cell<u32>,
    /// Never to be given to another thread (the main thread of a fork child).
    pub keep: Cell<bool>,
}

static_assertions::const_assert!(size_of::<Stack>() == 64);
