//! Spawning: a slot, a closure in it, and into a queue.

use super::packet::{Parcel, body, dropper};
use crate::context::start::{self, StartMethod};
use crate::error::{Error, Kind};
use crate::slot::{Layout, pool};
use crate::tcb::identity::{Identity, Name};
use crate::tcb::kernel::{self, ID_BLOCK};
use crate::tcb::state::{Outcome, State};
use crate::tcb::{Record, current};
use crate::tls::{due, hot};
use crate::worker::start::begin_converted;
use crate::worker::{self, Shared, Worker, give, ops};
use core::sync::atomic::Ordering;

/// What can be asked of a single thread.
#[derive(Debug, Default, Clone)]
pub(crate) struct Options {
    pub name: Option<Name>,
    pub stack: Option<usize>,
    pub start: Option<StartMethod>,
}

/// Called in the thread at its very end; see `Record::at_end`.
pub(crate) type AtEnd = Option<(unsafe extern "C" fn(*const (), bool), *const ())>;

/// Starts a thread on `shared` and returns its record. The caller makes the handle.
///
/// # Safety
/// What `f` and its result borrow outlives the thread.
#[inline]
pub(crate) unsafe fn spawn<F, T>(
    shared: &'static Shared,
    options: Options,
    at_end: AtEnd,
    f: F,
) -> Result<&'static Record, Error>
where
    F: FnOnce() -> T,
{
    let parcel = Parcel::new(f);
    let pooled = options.start.unwrap_or(shared.settings.start) == StartMethod::Pool;
    // A worker of the same runtime serves itself.
    if let Some(me) = current::get()
        && pooled
        && options.stack.is_none()
        && core::ptr::eq(me.runtime.get(), core::ptr::from_ref(shared).cast())
    {
        hot::off();
        let w = worker::of(me);
        if let Some(r) = ops::take_pair(w) {
            r.rsp.set(0);
            r.usual_stack.set(true);
            r.outside.set(false);
            r.spawned.set(w.site.switches.get() as u32);
            fill::<F, T>(r, shared, parcel, options.name, at_end, id_of(w));
            w.started.bump();
            give::own(w, r);
            due::on();
            return Ok(r);
        }
        due::on();
    }
    elsewhere::<F, T>(shared, options, at_end, parcel)
}

/// The general way: any thread, any stack, any start method; may make a slot.
#[cold]
#[inline(never)]
fn elsewhere<F, T>(
    shared: &'static Shared,
    options: Options,
    at_end: AtEnd,
    parcel: Parcel<F>,
) -> Result<&'static Record, Error>
where
    F: FnOnce() -> T,
{
    if shared.workers().is_empty() {
        return Err(Kind::Forked.into());
    }
    let class = match options.stack {
        None => shared.class,
        Some(bytes) => pool::class_of(&Layout::new(bytes)?)?,
    };
    let method = options.start.unwrap_or(shared.settings.start);
    let r = match cached(class) {
        Some(r) => r,
        None => make_pair(class)?,
    };
    r.rsp.set(0);
    r.usual_stack.set(class == shared.class);
    r.outside.set(current::get().is_none());
    if let Err(e) = prepare(r, method, shared) {
        pool::put_stack(r.stack());
        pool::put_record(r);
        return Err(e);
    }
    // Counted first, then `closed` is read; workers read `closed`, then the count: one sees the other.
    shared.started_outside.fetch_add(1, Ordering::SeqCst);
    let own = current::get()
        .is_some_and(|me| core::ptr::eq(me.runtime.get(), core::ptr::from_ref(shared).cast()));
    if !own && shared.closed.load(Ordering::SeqCst) {
        shared.started_outside.fetch_sub(1, Ordering::SeqCst);
        pool::put_stack(r.stack());
        pool::put_record(r);
        return Err(Kind::Closed.into());
    }
    fill::<F, T>(r, shared, parcel, options.name, at_end, kernel::next_id());
    match current::get() {
        Some(me) => {
            hot::off();
            give::ready(worker::of(me), r);
            due::on();
        }
        None => give::from_outside(shared, r),
    }
    Ok(r)
}

/// A record and a stack from the cache of the worker that runs the caller.
fn cached(class: u32) -> Option<&'static Record> {
    let me = current::get()?;
    hot::off();
    let w = worker::of(me);
    let pair = if w.class == class { ops::take_pair(w) } else { None };
    due::on();
    pair
}

/// A record and a stack, made if need be.
fn make_pair(class: u32) -> Result<&'static Record, Error> {
    let stack = pool::stack(class)?;
    let r = pool::record().inspect_err(|_| pool::put_stack(stack))?;
    r.stack.set(stack);
    Ok(r)
}

/// Makes the first context where it cannot wait until the thread is dispatched.
fn prepare(r: &'static Record, method: StartMethod, shared: &Shared) -> Result<(), Error> {
    if method == StartMethod::Pool {
        return Ok(());
    }
    // SAFETY: the stack is free, hence the spawner's.
    unsafe {
        r.adopt(r.stack());
        match method {
            StartMethod::Context => start::by_context(r, begin_converted),
            _ => start::by_signal(r, shared.settings.signal, begin_converted),
        }
    }
}

#[inline(always)]
fn fill<F: FnOnce() -> T, T>(
    r: &'static Record,
    shared: &'static Shared,
    parcel: Parcel<F>,
    name: Option<Name>,
    at_end: AtEnd,
    id: u64,
) {
    parcel.put(r);
    r.inherit_control_words();
    r.body.set(Some(body::<F, T>));
    r.drop_packet.set(dropper::<T>());
    r.outcome.set(Outcome::Running);
    r.runtime.set(core::ptr::from_ref(shared).cast());
    r.join.reset();
    r.token.reset();
    r.at_end.set(at_end);
    r.named.set(name.is_some());
    // SAFETY: the slot is the spawner's; a name of the last thread was dropped at its end.
    unsafe { (*r.identity.get()).write(Identity::Reveille { record: r, id, name }) };
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
