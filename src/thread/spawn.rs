//! Spawning: a slot, a closure in it, and into a queue.

use super::kernel::{self, ID_BLOCK};
use super::packet::{Parcel, body, dropper};
use crate::builder::StartMethod;
use crate::context::start;
use crate::error::Error;
use crate::slot::{Layout, pool};
use crate::tcb::state::{Outcome, State};
use crate::tcb::{Record, current};
use crate::tls::hot;
use crate::worker::{self, Shared, Worker, give, ops};
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// What can be asked of a single thread.
#[derive(Debug, Default, Clone)]
pub(crate) struct Options {
    pub name: Option<Arc<str>>,
    pub stack: Option<usize>,
    pub start: Option<StartMethod>,
}

/// Called in the thread at its very end; see `Record::at_end`.
pub(crate) type AtEnd = Option<(unsafe extern "C" fn(*const (), bool), *const ())>;

/// Starts a thread on `shared`; returns its record and id. The caller makes the handle.
///
/// # Safety
/// What `f` and its result borrow outlives the thread.
#[inline]
pub(crate) unsafe fn spawn<F, T>(
    shared: &'static Shared,
    options: Options,
    at_end: AtEnd,
    f: F,
) -> Result<(&'static Record, u64), Error>
where
    F: FnOnce() -> T,
{
    let class = match options.stack {
        None => shared.class,
        Some(bytes) => pool::class_of(&Layout::new(bytes)?)?,
    };
    let method = options.start.unwrap_or(shared.settings.start);
    let parcel = Parcel::new(f);
    let me = current::get();
    // A worker of the same runtime serves itself.
    if let Some(me) = me
        && core::ptr::eq(me.runtime.get(), core::ptr::from_ref(shared).cast())
    {
        hot::off();
        let mut w = worker::of(me);
        let mut slot = if class == w.class { ops::take_slot(w) } else { None };
        if slot.is_none() || method != StartMethod::Pool {
            hot_on();
            let r = match slot {
                Some(r) => r,
                None => pool::get(class)?,
            };
            prepare(r, method, shared)?;
            slot = Some(r);
            hot::off();
            w = worker::of(me);
        }
        let Some(r) = slot else { unreachable!("a slot was made") };
        let id = id_of(w);
        fill::<F, T>(r, shared, parcel, options.name, at_end, id);
        if method == StartMethod::Pool {
            // SAFETY: the slot is ours until it is published.
            unsafe { r.prepare(crate::context::x86_64::reveille_entry as *const () as usize) };
        }
        w.started.bump();
        give::own(w, r);
        hot_on();
        return Ok((r, id));
    }
    let r = pool::get(class)?;
    prepare(r, method, shared)?;
    let id = kernel::next_id();
    fill::<F, T>(r, shared, parcel, options.name, at_end, id);
    shared.started_outside.fetch_add(1, Ordering::SeqCst);
    give::from_outside(shared, r);
    Ok((r, id))
}

/// Makes the first context, where that is more than two words on the stack.
fn prepare(r: &'static Record, method: StartMethod, shared: &Shared) -> Result<(), Error> {
    match method {
        StartMethod::Pool => {
            // SAFETY: the slot is the spawner's.
            unsafe { r.prepare(crate::context::x86_64::reveille_entry as *const () as usize) };
            Ok(())
        }
        // SAFETY: as above.
        StartMethod::Context => unsafe { start::by_context(r) },
        // SAFETY: as above.
        StartMethod::Signal => unsafe { start::by_signal(r, shared.settings.signal) },
    }
}

#[inline(always)]
fn fill<F: FnOnce() -> T, T>(
    r: &'static Record,
    shared: &'static Shared,
    parcel: Parcel<F>,
    name: Option<Arc<str>>,
    at_end: AtEnd,
    id: u64,
) {
    parcel.put(r);
    r.body.set(Some(body::<F, T>));
    r.drop_packet.set(dropper::<T>());
    r.outcome.set(Outcome::Running);
    r.runtime.set(core::ptr::from_ref(shared).cast());
    r.join.reset();
    r.token.reset();
    r.at_end.set(at_end);
    if name.is_some() {
        // SAFETY: the slot is the spawner's; the name of the last thread was taken at its end.
        unsafe { *r.name.get() = name };
    }
    r.preemptions.store(0, Ordering::Relaxed);
    r.state.store(State::Ready as u8, Ordering::Relaxed);
    r.id.store(id, Ordering::Release);
}

/// The next id of the worker's block. Preemption is off.
#[inline(always)]
fn id_of(w: &Worker) -> u64 {
    let id = w.next_id.get();
    if id == w.last_id.get() {
        let start = kernel::id_block();
        w.next_id.set(start + 1);
        w.last_id.set(start + ID_BLOCK);
        return start;
    }
    w.next_id.set(id + 1);
    id
}

/// Preemption on again, and a due tick honoured.
#[inline(always)]
fn hot_on() {
    if hot::on() && hot::off_count() == 0 {
        crate::preempt::honour_pending();
    }
}
