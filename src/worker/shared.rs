//! What the workers of one runtime share.

use super::Worker;
use crate::lock::spin::SpinLock;
use crate::protocol::ends::Ends;
use crate::sched::idle::Idle;
use crate::sched::list::List;
use crate::sched::shares::Shares;
use crate::sys::clock::{Clock, Deadline};
use crate::sys::futex;
use crate::tcb::Record;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use crossbeam_utils::CachePadded;

/// A locked list whose length can be read without the lock.
pub(crate) struct Queue {
    pub list: SpinLock<List<Record>>,
    pub len: AtomicUsize,
}

impl Queue {
    fn new() -> Queue {
        Queue { list: SpinLock::new(List::new()), len: AtomicUsize::new(0) }
    }

    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.len.load(Ordering::Relaxed) != 0
    }

    /// # Safety
    /// As [`Shared::after_fork`].
    unsafe fn reset(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.list.reset(List::new()) };
        self.len.store(0, Ordering::Relaxed);
    }

    pub(crate) fn push(&self, r: &'static Record) {
        let mut list = self.list.lock();
        // SAFETY: a ready thread stands in one list at a time (invariant Q1); never freed.
        unsafe { list.push(r) };
        self.len.store(list.len(), Ordering::SeqCst);
    }

    pub(crate) fn push_front(&self, r: &'static Record) {
        let mut list = self.list.lock();
        // SAFETY: as in `push`.
        unsafe { list.push_front(r) };
        self.len.store(list.len(), Ordering::SeqCst);
    }

    pub(crate) fn pop(&self) -> Option<*const Record> {
        if !self.any() {
            return None;
        }
        let mut list = self.list.lock();
        let r = list.pop();
        self.len.store(list.len(), Ordering::Release);
        r
    }
}

/// How a runtime was asked to be.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub workers: usize,
    pub slice: Duration,
    pub adaptive: bool,
    pub signal: i32,
    pub stack: usize,
    pub start: crate::context::start::StartMethod,
    pub checks: bool,
    pub trace: usize,
}

/// See the module's documentation. Never freed: handles of threads point at it.
pub(crate) struct Shared {
    pub settings: Settings,
    pub class: u32,
    pub arrivals: CachePadded<Queue>,
    pub sliced: CachePadded<Queue>,
    /// How much the sliced threads have had.
    pub shares: CachePadded<Shares>,
    /// How many workers sleep.
    pub idle: CachePadded<Idle>,
    /// Whose turn it is to look at arrivals when nobody sleeps.
    pub turn: AtomicU32,
    /// Threads started from outside the workers.
    pub started_outside: AtomicU64,
    pub closed: AtomicBool,
    /// Somebody waits for all threads to end; bumped at each end while so.
    pub watched: AtomicBool,
    pub ends: Ends,
    /// Start of the runtime, by the monotonic clock, in nanoseconds.
    pub begun_ns: u64,
    /// The runtime made before this one (`fork`).
    pub older: AtomicPtr<Shared>,
    /// The workers, never freed. A fork child narrows the range to the one that is left, or none.
    workers: AtomicPtr<CachePadded<Worker>>,
    count: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(settings: Settings, class: u32) -> Shared {
        Shared {
            settings,
            class,
            arrivals: CachePadded::new(Queue::new()),
            sliced: CachePadded::new(Queue::new()),
            shares: CachePadded::new(Shares::new()),
            idle: CachePadded::new(Idle::default()),
            turn: AtomicU32::new(0),
            started_outside: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            ends: Ends::default(),
            begun_ns: Clock::Monotonic.now(),
            older: AtomicPtr::new(core::ptr::null_mut()),
            workers: AtomicPtr::new(core::ptr::null_mut()),
            count: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set_workers(&self, workers: Box<[CachePadded<Worker>]>) {
        let workers = Box::leak(workers);
        self.workers.store(workers.as_mut_ptr(), Ordering::Release);
        self.count.store(workers.len(), Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn workers(&self) -> &[CachePadded<Worker>] {
        let (first, n) = (self.workers.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed));
        if n == 0 {
            return &[];
        }
        // SAFETY: set together before the workers start; never freed.
        unsafe { core::slice::from_raw_parts(first, n) }
    }

    /// Closed, and no thread is left: workers end.
    pub(crate) fn is_over(&self) -> bool {
        self.closed.load(Ordering::SeqCst) && self.running() == 0
    }

    /// In a fork child: `own` is the only worker left, running the only thread; without it the runtime is
    /// over.
    ///
    /// # Safety
    /// The process has one kernel thread, which holds none of the locks.
    pub(crate) unsafe fn after_fork(&self, own: Option<&'static Worker>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.arrivals.reset();
            self.sliced.reset();
        }
        for w in self.workers() {
            w.ring.clear();
            w.sleep.reset();
            // SAFETY: the caller's promise.
            unsafe { w.deadlines.after_fork() };
            w.started.set(0);
            w.ended.set(0);
        }
        self.idle.reset();
        self.started_outside.store(own.is_some().into(), Ordering::Relaxed);
        let count = usize::from(own.is_some());
        self.count.store(count, Ordering::Relaxed);
        if let Some(w) = own {
            // SAFETY: the worker lies in the array that `workers` points into.
            let at = unsafe { self.workers.load(Ordering::Relaxed).add(w.index) };
            self.workers.store(at, Ordering::Relaxed);
            w.sole.set(true);
            // Their blocks are off glibc's list of stacks (L1): given up, like those of the pool.
            // SAFETY: this is the worker's kernel thread, and no thread of it is at work on the cache.
            unsafe { *w.stacks.get() = crate::slot::cache::Cache::new() };
            let address = core::ptr::from_ref(w) as usize;
            w.site.ticker.restart(w.site.signal, address);
            w.site.alarm.restart(w.site.signal, crate::preempt::handler::alarm_of(address));
        }
    }

    /// If no thread runs or is ready: a number that changes when one has been.
    pub(crate) fn stillness(&self) -> Option<u64> {
        let quiet = self.workers().iter().all(|w| w.sleep.is_asleep() && w.ring.len() == 0)
            && !self.arrivals.any()
            && !self.sliced.any();
        let switches = || self.workers().iter().map(|w| w.site.switches.get()).sum();
        quiet.then(switches)
    }

    /// Nothing new will be started from outside; workers end when the last thread has.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.watched.store(true, Ordering::SeqCst);
        crate::sys::membarrier::heavy();
        self.wake_all();
    }

    /// A thread has ended: tells whoever waits for all to end.
    #[inline]
    pub(crate) fn one_ended(&self) {
        if self.watched.load(Ordering::Relaxed) {
            self.ends.announce();
            futex::wake(self.ends.word(), i32::MAX);
            if self.is_over() {
                self.wake_all();
            }
        }
    }

    /// Threads started less threads ended. Exact when nothing starts any more.
    pub(crate) fn running(&self) -> u64 {
        // Ends first: a thread that ends between the two sums counts as running.
        let ended: u64 = self.workers().iter().map(|w| w.ended.get()).sum();
        let started: u64 = self.workers().iter().map(|w| w.started.get()).sum();
        (started + self.started_outside.load(Ordering::SeqCst)).saturating_sub(ended)
    }

    /// Waits until no thread runs, at most `timeout`; returns how many still do.
    pub(crate) fn wait_for_all(&self, timeout: Option<Duration>) -> u64 {
        /// One end may be missed between the look and the sleep of a worker's plain store: look again.
        const LOOK: Duration = Duration::from_millis(10);
        let deadline = timeout.and_then(Deadline::after);
        self.watched.store(true, Ordering::SeqCst);
        loop {
            let seen = self.ends.seen();
            let running = self.running();
            if running == 0 {
                return 0;
            }
            if deadline.is_some_and(Deadline::is_over) {
                return running;
            }
            let again = Deadline::after(LOOK);
            futex::wait_until(self.ends.word(), seen, Deadline::first(again, deadline));
        }
    }
}
