//! Thread blocks made by hand, after the template, and linked on glibc's list of user stacks.
//!
//! A block must be on that list: dlopen of a library with initial-exec TLS fills the variable into
//! every block on it, and dlclose waits for symbol lookups of every block on it. The list's lock has no
//! name we could use. So two harvested blocks that are neighbours on the list, A then B, are kept for
//! ever, and ours go between them:
//!
//! ```text
//!   head <-> ... <-> A <-> new <-> older <-> ... <-> B <-> ...
//! ```
//!
//! glibc inserts at the head and removes single nodes; since neither A nor B nor anything between is
//! ever removed, glibc never writes `A.next`, `B.prev` or a link of ours. We write nothing else. A new
//! node's own links are complete before `A.next` names it, so a walk forward (glibc's walks are) sees
//! either the old list or the new one (invariant L1).

use super::glibc::Glibc;
use super::template::{FIRST_TID, Template};
use super::{harvest, template};
use crate::error::{Error, Kind};
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::io;
use std::sync::OnceLock;

/// The template, read once from the first harvested block.
static TEMPLATE: OnceLock<Template> = OnceLock::new();
/// Node of the anchor A, 0 before there is one (and again in a fork child).
static ANCHOR: AtomicUsize = AtomicUsize::new(0);
/// The next thread id to give away.
static NEXT_TID: AtomicU32 = AtomicU32::new(FIRST_TID);

/// The process's stack canary and pointer guard, from the running thread's block.
pub(crate) fn process_constants() -> (u64, u64) {
    let (canary, guard);
    // SAFETY: the x86-64 TLS ABI puts them at fs:0x28 and fs:0x30.
    unsafe {
        asm!(
            "mov {}, qword ptr fs:[0x28]",
            "mov {}, qword ptr fs:[0x30]",
            out(reg) canary, out(reg) guard,
            options(readonly, nostack, preserves_flags)
        );
    }
    (canary, guard)
}

/// A thread id that no kernel thread has and that fits the 30 bits of a futex owner.
pub(crate) fn new_tid() -> u32 {
    NEXT_TID.fetch_add(1, Ordering::Relaxed)
}

/// The template; there is one as soon as the anchors are.
pub(crate) fn template() -> Option<&'static Template> {
    TEMPLATE.get()
}

/// Whether blocks can be made by hand.
pub(crate) fn anchored() -> bool {
    ANCHOR.load(Ordering::Acquire) != 0
}

/// In a fork child: glibc has emptied its list, the anchors are off it.
pub(crate) fn forget_anchors() {
    ANCHOR.store(0, Ordering::Release);
}

/// Makes the block at `fs` for a slot whose stack is `[lo, lo + len)` and links it.
///
/// Allocates: call it in thread context with preemption on.
///
/// # Safety
/// The block's memory is zeroed, ours, and never freed.
pub(crate) unsafe fn make(g: &Glibc, fs: usize, lo: usize, len: usize) -> Result<(), Error> {
    let Some(template) = TEMPLATE.get() else {
        return Err(Kind::UnknownTcb("no template yet".into()).into());
    };
    let before = super::modules::counts();
    // SAFETY: the memory is the caller's promise; glibc allocates the vector and fills the images.
    if unsafe { (g.allocate_tls)(fs as *mut _) }.is_null() {
        return Err(Error::os(
            "no memory for a thread's TLS vector",
            io::Error::from(io::ErrorKind::OutOfMemory),
        ));
    }
    // SAFETY: as above; the vector's pointer is not among the template's words.
    unsafe { template.fill(g, fs, lo, len, new_tid()) };
    link(fs + g.list);
    // SAFETY: nobody runs on the block yet.
    unsafe { super::modules::fill_new(fs, before) };
    Ok(())
}

/// Puts `node` after the anchor, with preemption off so that the lock's holder cannot be sliced.
fn link(node: usize) {
    let anchor = ANCHOR.load(Ordering::Acquire);
    debug_assert_ne!(anchor, 0);
    let _guard = crate::lock::spin::LIST.lock();
    // SAFETY: nodes are {next, prev}; A, the block after it and the new one are never freed, and all
    // links written are ours (module comment).
    unsafe {
        let a_next = &*(anchor as *const AtomicPtr<usize>);
        let next = a_next.load(Ordering::Acquire);
        *(node as *mut usize) = next as usize;
        *((node + 8) as *mut usize) = anchor;
        a_next.store(node as *mut usize, Ordering::Release);
        (*((next as usize + 8) as *const AtomicUsize)).store(node, Ordering::Release);
    }
}

/// Makes two slots into harvested neighbours: the later one becomes anchor A. `lo`, `len` are their
/// stacks up to the top; returns their thread pointers. The first call reads the template.
///
/// # Safety
/// As [`harvest::harvest`] for both ranges.
pub(crate) unsafe fn make_anchors(
    g: &Glibc,
    slots: [(usize, usize); 2],
) -> Result<[usize; 2], Error> {
    let mut made = [0usize; 2];
    for (i, (lo, len)) in slots.into_iter().enumerate() {
        // SAFETY: the caller's promise.
        let h = unsafe { harvest::harvest(g, lo as *mut u8, len)? };
        if TEMPLATE.get().is_none() {
            // SAFETY: the block is live and its kernel thread gone.
            let t = unsafe { Template::read(g, &h, lo, len)? };
            let _ = TEMPLATE.set(t);
        }
        // SAFETY: the block runs on no kernel thread of its own now.
        unsafe { template::settle(g, h.fs, new_tid()) };
        made[i] = h.fs;
    }
    // glibc inserts at the head: the later block is followed by the earlier one, unless another thread
    // with a user stack came between.
    let (a, b) = (made[1] + g.list, made[0] + g.list);
    // SAFETY: the node is in a live block.
    let next = unsafe { (*(a as *const AtomicUsize)).load(Ordering::Acquire) };
    if next == b {
        ANCHOR.store(a, Ordering::Release);
    }
    Ok(made)
}
