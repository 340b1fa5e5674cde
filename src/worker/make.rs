//! A worker before it starts, and what its site lets the handler ask of it.

use super::{Shared, Worker, alarm};
use crate::error::Error;
use crate::preempt::alarm::Alarm;
use crate::preempt::floor;
use crate::preempt::site::{Count, Site, Waits};
use crate::preempt::ticker::Ticker;
use crate::sched::idle::Sleep;
use crate::sched::policy::Turns;
use crate::sched::ring::Ring;
use crate::slot::cache::Cache;
use crate::sys::memory;
use crate::tcb::Record;
use crate::trace::Trace;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicPtr, Ordering};

/// The rings of `n` workers, in memory that costs nothing until it is touched.
pub(crate) fn rings(n: usize) -> Result<impl Iterator<Item = &'static Ring<Record>>, Error> {
    const EACH: usize = size_of::<Ring<Record>>().next_multiple_of(memory::PAGE);
    let base = memory::reserve(n * EACH)
        .map_err(|e| Error::os("no memory for the workers' run queues", e))?;
    // SAFETY: a part of a fresh zeroed reservation, which is never given back, for each.
    Ok((0..n).map(move |i| unsafe { Ring::zeroed(base.add(i * EACH)) }))
}

/// The worker number `index` of `shared`, with its ring.
pub(crate) fn worker(shared: &'static Shared, index: usize, ring: &'static Ring<Record>) -> Worker {
    let s = &shared.settings;
    let slice = s.slice.max(floor::shortest_slice());
    Worker {
        site: Site {
            waits,
            turn,
            charge,
            wake_idle,
            switches: Count::starting_at(1),
            seen: Cell::new(0),
            since: Cell::new(0),
            loop_record: Cell::new(core::ptr::null()),
            signal_stack_lo: Cell::new(0),
            signal_stack_len: Cell::new(0),
            usual_mask: Cell::new(0),
            signal: s.signal,
            ticker: Ticker::new(slice, s.adaptive),
            alarm: Alarm::new(),
            rang,
            ticks: Count::new(),
            preemptions: Count::new(),
        },
        sole: Cell::new(s.workers == 1),
        ring,
        turns: Turns::default(),
        records: UnsafeCell::new(Cache::new()),
        stacks: UnsafeCell::new(Cache::new()),
        deadlines: alarm::Deadlines::new(),
        running: AtomicPtr::new(core::ptr::null_mut()),
        class: shared.class,
        next_id: Cell::new(0),
        last_id: Cell::new(0),
        shared: Cell::new(shared),
        index,
        sleep: Sleep::default(),
        home_rsp: Cell::new(0),
        home_fs: Cell::new(0),
        started: Count::new(),
        ended: Count::new(),
        steals: Count::new(),
        trace: Trace::new(s.trace),
        random: Cell::new(0x9e37_79b9 ^ (index as u32 + 1)),
    }
}

/// Who waits for the worker of `site`. Runs in the handler.
fn waits(site: &Site) -> Waits {
    // SAFETY: the site is the first member of its worker.
    let w = unsafe { &*core::ptr::from_ref(site).cast::<Worker>() };
    let shared = w.shared();
    Waits {
        fresh: w.ring.len() != 0 || shared.arrivals.any(),
        sliced: shared.sliced.any(),
        idle_worker: !w.sole.get() && shared.idle.seems_any(),
    }
}

/// Runs in the handler.
fn turn(site: &Site, fresh: bool) {
    // SAFETY: the site is the first member of its worker.
    let w = unsafe { &*core::ptr::from_ref(site).cast::<Worker>() };
    w.turns.tick(fresh);
}

/// Runs in the handler.
fn charge(site: &Site, record: &Record, used: u32) -> bool {
    // SAFETY: the site is the first member of its worker.
    let w = unsafe { &*core::ptr::from_ref(site).cast::<Worker>() };
    let old = record.preemptions.load(Ordering::Relaxed) != 0;
    let had = old.then(|| record.had.get());
    let slice = site.ticker.length().as_micros().try_into().unwrap_or(u32::MAX);
    let (has, lags) = w.shared().shares.charge(had, used, slice);
    record.had.set(has);
    lags
}

/// Runs in the handler.
fn rang(site: &Site) -> bool {
    // SAFETY: the site is the first member of its worker.
    let w = unsafe { &*core::ptr::from_ref(site).cast::<Worker>() };
    w.turns.hurry();
    w.shared().wake(w)
}

/// Runs in the handler.
fn wake_idle(site: &Site) {
    // SAFETY: the site is the first member of its worker.
    let w = unsafe { &*core::ptr::from_ref(site).cast::<Worker>() };
    w.shared().wake_one();
}
