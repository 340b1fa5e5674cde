//! A stack with its TLS block, as the runtime knows it. The memory itself is touched by the thread that runs
//! on it; this description lies elsewhere, so that taking and giving a stack touches none of it.

use crate::sys::memory::PAGE;
use core::cell::Cell;

/// Bytes at the stack's top for glibc's `__pthread_unwind_buf_t`: a jump buffer and four words, with room
/// to spare.
pub(crate) const UNWIND_BUF: usize = 256;

/// See the module's documentation. There are as many as threads alive at once, and two share a line of the cache:
/// what lies near another address is kept as the distance.
#[repr(C, align(32))]
pub(crate) struct Stack {
    /// FS base: the thread block.
    pub fs: Cell<usize>,
    /// Lowest usable address; the guard page is below.
    pub lo: Cell<usize>,
    /// From the upper end of the usable stack to the FS base.
    pub above: Cell<u32>,
    /// Bytes of the spare area, which ends at the guard page.
    pub below: Cell<u32>,
    /// The low half of the stack pointer at which the cancellation buffer is registered, plus 1; 0 before the first
    /// thread.
    pub registered: Cell<u32>,
    /// The class of the stack's size.
    pub class: Cell<u16>,
    /// Never to be given to another thread (the main thread of a fork child).
    pub keep: Cell<bool>,
}

impl Stack {
    /// Upper end of the usable stack; the cancellation buffer is above.
    #[inline(always)]
    pub(crate) fn top(&self) -> usize {
        self.fs.get() - self.above.get() as usize
    }

    /// Room for a preempted context when the stack has none: lowest and highest address.
    #[inline(always)]
    pub(crate) fn spare(&self) -> (usize, usize) {
        let end = self.lo.get() - PAGE;
        (end - self.below.get() as usize, end)
    }
}

static_assertions::const_assert!(size_of::<Stack>() == 32);
