//! The pool of free slots: for each stack size a class, in each class batches of free slots.
//!
//! A worker keeps a small cache of the class it uses most and trades whole batches with the pool, so
//! that the common spawn and join touch nothing shared. All lists are intrusive: no allocation.

use super::carve::Carver;
use super::{Layout, make, make_anchors};
use crate::error::{Error, Kind};
use crate::lock::slow::SlowLock;
use crate::lock::spin::SpinLock;
use crate::tcb::Record;
use crate::tls::{block, due, glibc, hot, reset};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Different stack sizes that one process may use.
const CLASSES: usize = 64;
/// Slots in a batch.
pub(crate) const BATCH: u32 = 64;

/// A list of free slots linked by `Record::next`.
pub(crate) struct FreeList {
    head: *const Record,
    pub len: u32,
}

impl FreeList {
    pub(crate) const fn new() -> FreeList {
        FreeList { head: ptr::null(), len: 0 }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, r: &'static Record) {
        r.next.set(self.head);
        self.head = r;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<&'static Record> {
        // SAFETY: the head is null or a free slot's record, which is never freed.
        let r = unsafe { self.head.as_ref()? };
        self.head = r.next.get();
        self.len -= 1;
        Some(r)
    }
}

/// One stack size.
struct Class {
    layout: Layout,
    free: FreeList,
    /// Full batches, linked by the `target` of their first slot.
    batches: *const Record,
    carver: Carver,
}

// SAFETY: the addresses are of records that are free, hence owned by the pool.
unsafe impl Send for Class {}

static POOL: [SpinLock<Option<Class>>; CLASSES] = [const { SpinLock::new(None) }; CLASSES];
static CLASSES_USED: AtomicUsize = AtomicUsize::new(0);
/// Serializes the adding of classes and the making of anchors (thread context, preemption on).
static ADD: SlowLock = SlowLock::new();

/// Makes the process ready for slots: the first anchors, the template, the tables of a reset.
pub(crate) fn prepare(layout: &Layout) -> Result<u32, Error> {
    let class = class_of(layout)?;
    glibc::get()?;
    anchor(class)?;
    if let Some(t) = block::template() {
        reset::prepare(glibc::known(), t.probes);
    }
    Ok(class)
}

/// The number of the class with this layout, added if need be.
pub(crate) fn class_of(layout: &Layout) -> Result<u32, Error> {
    let find = || {
        (0..CLASSES_USED.load(Ordering::Acquire))
            .find(|&i| POOL[i].lock().as_ref().is_some_and(|c| c.layout == *layout))
    };
    if let Some(i) = find() {
        return Ok(i as u32);
    }
    let _adding = ADD.lock();
    if let Some(i) = find() {
        return Ok(i as u32);
    }
    let i = CLASSES_USED.load(Ordering::Relaxed);
    if i == CLASSES {
        let what = "more than 64 different stack sizes in one process";
        return Err(Kind::Unsupported(what, "round the sizes that you ask for").into());
    }
    *POOL[i].lock() = Some(Class {
        layout: *layout,
        free: FreeList::new(),
        batches: ptr::null(),
        carver: Carver::new(),
    });
    CLASSES_USED.store(i + 1, Ordering::Release);
    Ok(i as u32)
}

/// A free slot of the class, made if none is left. Thread context, preemption on.
pub(crate) fn get(class: u32) -> Result<&'static Record, Error> {
    if let Some(r) = take(class) {
        return Ok(r);
    }
    anchor(class)?;
    if let Some(r) = take(class) {
        return Ok(r);
    }
    let (layout, (base, number)) = carve(class)?;
    // SAFETY: the carver gives each stretch away once. If making fails the stretch is abandoned.
    let made = unsafe { make(base, number, &layout, class) };
    honour();
    made
}

/// A batch for a worker's cache, or what there is. Does not allocate; preemption may be off.
pub(crate) fn take_batch(class: u32) -> FreeList {
    let mut pool = POOL[class as usize].lock();
    let Some(c) = pool.as_mut() else { return FreeList::new() };
    // SAFETY: null or the first slot of a free batch.
    if let Some(first) = unsafe { c.batches.as_ref() } {
        c.batches = first.target.get();
        return FreeList { head: first, len: BATCH };
    }
    core::mem::replace(&mut c.free, FreeList::new())
}

/// Gives a full batch back. Does not allocate; preemption may be off.
pub(crate) fn give_batch(class: u32, batch: FreeList) {
    debug_assert_eq!(batch.len, BATCH);
    let mut pool = POOL[class as usize].lock();
    let Some(c) = pool.as_mut() else { return };
    // SAFETY: a full batch has a first slot, which is free.
    unsafe { (*batch.head).target.set(c.batches) };
    c.batches = batch.head;
}

/// Gives one slot back. Does not allocate; preemption may be off.
pub(crate) fn put(r: &'static Record) {
    if let Some(c) = POOL[r.class.get() as usize].lock().as_mut() {
        c.free.push(r);
    }
}

fn take(class: u32) -> Option<&'static Record> {
    let mut pool = POOL[class as usize].lock();
    let c = pool.as_mut()?;
    if let Some(r) = c.free.pop() {
        return Some(r);
    }
    // SAFETY: null or the first slot of a free batch.
    let first = unsafe { c.batches.as_ref()? };
    c.batches = first.target.get();
    c.free = FreeList { head: first, len: BATCH };
    c.free.pop()
}

fn carve(class: u32) -> Result<(Layout, (usize, usize)), Error> {
    let mut pool = POOL[class as usize].lock();
    let Some(c) = pool.as_mut() else { return Err(Kind::NoWorkers.into()) };
    let layout = c.layout;
    Ok((layout, c.carver.carve(&layout)?))
}

/// Makes the anchors if there are none (first start, fork child): their slots are usual slots.
fn anchor(class: u32) -> Result<(), Error> {
    /// Another thread may start pthreads with user stacks at the same moment; never for this long.
    const TRIES: usize = 16;
    for _ in 0..TRIES {
        if block::anchored() {
            return Ok(());
        }
        let _adding = ADD.lock();
        if block::anchored() {
            return Ok(());
        }
        let (layout, a) = carve(class)?;
        let (_, b) = carve(class)?;
        // SAFETY: fresh stretches.
        for r in unsafe { make_anchors([a, b], &layout, class)? } {
            put(r);
        }
    }
    Err(Kind::UnknownTcb("two new threads were never neighbours on its list".into()).into())
}

/// In a fork child: free slots and half-made changes are abandoned, classes stay what they are.
///
/// # Safety
/// The process has one kernel thread, which holds none of the locks.
pub(crate) unsafe fn reset() {
    for pool in &POOL[..CLASSES_USED.load(Ordering::Relaxed)] {
        // SAFETY: the caller's promise. A layout is written once and only read after.
        unsafe {
            let layout = pool.peek().as_ref().map(|c| c.layout);
            pool.reset(layout.map(|layout| Class {
                layout,
                free: FreeList::new(),
                batches: ptr::null(),
                carver: Carver::new(),
            }));
        }
    }
}

/// A tick may have come while a lock was held here.
fn honour() {
    if hot::off_count() == 0 && hot::pending() {
        due::honour_pending();
    }
}
