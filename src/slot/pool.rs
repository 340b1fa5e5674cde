//! What is free and at no worker: records, and for each stack size a class of stacks.

use super::cache::{BATCH, Batch};
use super::carve::{Carver, Stretch};
use super::pile::Pile;
use super::{Layout, make, make_anchors, protect, slab};
use crate::error::{Error, Kind};
use crate::lock::slow::SlowLock;
use crate::lock::spin::SpinLock;
use crate::tcb::Record;
use crate::tcb::stack::Stack;
use crate::tls::{block, due, glibc, reset as tls_reset};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Different stack sizes that one process may use.
const CLASSES: usize = 64;

/// Stacks of one size.
struct Class {
    layout: Layout,
    free: Pile<Stack>,
    carver: Carver,
}

impl Class {
    const fn new(layout: Layout) -> Class {
        Class { layout, free: Pile::new(), carver: Carver::new() }
    }
}

static STACKS: [SpinLock<Option<Class>>; CLASSES] = [const { SpinLock::new(None) }; CLASSES];
static CLASSES_USED: AtomicUsize = AtomicUsize::new(0);
/// Records without a thread.
static RECORDS: SpinLock<Pile<Record>> = SpinLock::new(Pile::new());
/// Serializes the adding of classes and the making of anchors (thread context, preemption on).
static ADD: SlowLock = SlowLock::new();

/// Makes the process ready for slots: the first anchors, the template, the tables of a reset.
pub(crate) fn prepare(layout: &Layout) -> Result<u32, Error> {
    let class = class_of(layout)?;
    glibc::get()?;
    anchor(class)?;
    if let Some(t) = block::template() {
        tls_reset::prepare(glibc::known(), t.probes);
    }
    Ok(class)
}

/// The number of the class with this layout, added if need be.
pub(crate) fn class_of(layout: &Layout) -> Result<u32, Error> {
    let find = || {
        (0..CLASSES_USED.load(Ordering::Acquire))
            .find(|&i| STACKS[i].lock().as_ref().is_some_and(|c| c.layout == *layout))
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
    *STACKS[i].lock() = Some(Class::new(*layout));
    CLASSES_USED.store(i + 1, Ordering::Release);
    Ok(i as u32)
}

/// A free stack of the class, made if none is left. Thread context, preemption on.
pub(crate) fn stack(class: u32) -> Result<&'static Stack, Error> {
    if let Some(s) = free_stack(class) {
        return Ok(s);
    }
    anchor(class)?;
    if let Some(s) = free_stack(class) {
        return Ok(s);
    }
    let made = make_some(class);
    // A tick may have come while a lock was held.
    due::look();
    made
}

/// Makes some stacks: one to be used now, the others go to the pool. What cannot be made is abandoned.
fn make_some(class: u32) -> Result<&'static Stack, Error> {
    let (layout, stretch) = carve(class, usize::MAX)?;
    // SAFETY: the carver gives each stretch away once.
    unsafe { protect(&stretch, &layout)? };
    let mut one = None;
    // The first slot last: whoever comes next finds the second one on top, and so on upwards.
    for i in (0..stretch.slots).rev() {
        // SAFETY: as above.
        match unsafe { make(stretch.place(i, &layout), class) } {
            Ok(s) => one.replace(s).into_iter().for_each(put_stack),
            Err(e) => {
                if let Some(c) = STACKS[class as usize].lock().as_mut() {
                    c.carver.go_slow();
                }
                return one.ok_or(e);
            }
        }
    }
    one.ok_or(Kind::NoWorkers.into())
}

/// A free record, made if none is left.
pub(crate) fn record() -> Result<&'static Record, Error> {
    let mut pool = RECORDS.lock();
    if let Some(r) = pool.pop() {
        return Ok(r);
    }
    for _ in 1..BATCH {
        // One that cannot be made is missed only if none can.
        let Ok(r) = new_record(&mut pool) else { break };
        pool.push(r);
    }
    new_record(&mut pool)
}

fn new_record(pool: &mut Pile<Record>) -> Result<&'static Record, Error> {
    pool.expect_one()?;
    slab::record()
}

/// A batch of records, or what there is.
pub(super) fn take_records(batch: &mut Batch<Record>) -> usize {
    RECORDS.lock().take(batch)
}

pub(super) fn give_records(batch: &Batch<Record>) {
    let mut pool = RECORDS.lock();
    batch.iter().for_each(|&r| pool.push(r));
}

/// Gives one record back.
pub(crate) fn put_record(r: &'static Record) {
    RECORDS.lock().push(r);
}

/// A batch of stacks, or what there is.
pub(super) fn take_stacks(class: u32, batch: &mut Batch<Stack>) -> usize {
    STACKS[class as usize].lock().as_mut().map_or(0, |c| c.free.take(batch))
}

pub(super) fn give_stacks(class: u32, batch: &Batch<Stack>) {
    if let Some(c) = STACKS[class as usize].lock().as_mut() {
        batch.iter().for_each(|&s| c.free.push(s));
    }
}

/// Gives one stack back.
pub(crate) fn put_stack(s: &'static Stack) {
    if let Some(c) = STACKS[usize::from(s.class.get())].lock().as_mut() {
        c.free.push(s);
    }
}

fn free_stack(class: u32) -> Option<&'static Stack> {
    STACKS[class as usize].lock().as_mut()?.free.pop()
}

/// A stretch for new stacks, and a place in the pool for each when it is free.
fn carve(class: u32, most: usize) -> Result<(Layout, Stretch), Error> {
    let mut pool = STACKS[class as usize].lock();
    let Some(c) = pool.as_mut() else { return Err(Kind::NoWorkers.into()) };
    let layout = c.layout;
    Ok((layout, c.carver.carve(&layout, most, || c.free.expect_one())?))
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
        let (layout, a) = carve(class, 1)?;
        let (_, b) = carve(class, 1)?;
        // SAFETY: fresh stretches.
        for s in unsafe { make_anchors([a, b], &layout, class)? } {
            put_stack(s);
        }
    }
    Err(Kind::UnknownTcb("two new threads were never neighbours on its list".into()).into())
}

/// In a fork child: what was free and what was half done is abandoned; classes stay what they are.
///
/// # Safety
/// The process has one kernel thread, which holds none of the locks.
pub(crate) unsafe fn reset() {
    // SAFETY: the caller's promise. A layout is written once and only read after.
    unsafe {
        slab::reset();
        RECORDS.reset(Pile::new());
        for pool in &STACKS[..CLASSES_USED.load(Ordering::Relaxed)] {
            let layout = pool.peek().as_ref().map(|c| c.layout);
            pool.reset(layout.map(Class::new));
        }
    }
}
