//! Runtimes: a set of workers with their threads.
#![allow(unsafe_code)]

use crate::builder::Builder;
use crate::error::{Error, ShutdownError};
use crate::lock::slow::SlowLock;
use crate::preempt::{self, handler};
use crate::slot::{Layout, pool};
use crate::stats::{RuntimeStats, Slice, WorkerStats};
use crate::sys::membarrier;
use crate::thread::{self, JoinHandle};
use crate::waiting::Waiting;
use crate::worker::shared::Settings;
use crate::worker::{self, Shared, Worker};
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;
use crossbeam_utils::CachePadded;
use std::panic::resume_unwind;
use std::sync::{Mutex, mpsc};

/// A set of workers that run threads.
///
/// Dropping a runtime waits for nothing: its threads run on, and its workers end when no thread is left.
/// [`shutdown`](Runtime::shutdown) waits.
///
/// # Examples
/// ```
/// let rt = reveille::Runtime::builder().workers(2).build()?;
/// let hog = rt.spawn(|| (0..1000u64).sum::<u64>());
/// assert_eq!(hog.join().unwrap(), 499_500);
/// rt.shutdown().unwrap();
/// # Ok::<(), reveille::Error>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    shared: SharedHandle,
    kernel_threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

struct SharedHandle(&'static Shared);

impl core::fmt::Debug for SharedHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.settings.fmt(f)
    }
}

impl Runtime {
    /// Configures a runtime.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A runtime with default settings.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Runtime, Error> {
        Builder::new().build()
    }

    pub(crate) fn start(settings: Settings) -> Result<Runtime, Error> {
        membarrier::register();
        preempt::hook_panics();
        preempt::set_give_way(worker::ops::give_way_sliced);
        let class = pool::prepare(&Layout::new(settings.stack)?)?;
        handler::install(settings.signal)
            .map_err(|e| Error::os("cannot install the tick's signal handler", e))?;
        preempt::floor::measure(settings.signal);
        preempt::overflow::install()
            .map_err(|e| Error::os("cannot install the stack-overflow handler", e))?;
        worker::setxid::wrap();
        let rings = worker::make::rings(settings.workers)?;
        let shared: &'static Shared = Box::leak(Box::new(Shared::new(settings, class)));
        let workers =
            rings.enumerate().map(|(i, r)| CachePadded::new(worker::make::worker(shared, i, r)));
        shared.set_workers(workers.collect());
        crate::fork::register(shared);
        let runtime = Runtime { shared: SharedHandle(shared), kernel_threads: Mutex::default() };
        match runtime.start_workers() {
            Ok(()) => Ok(runtime),
            Err(e) => {
                runtime.close();
                runtime.join_workers();
                Err(e)
            }
        }
    }

    /// Starts the workers' kernel threads and waits until each has what it needs.
    fn start_workers(&self) -> Result<(), Error> {
        let shared = self.shared.0;
        let (tell, told) = mpsc::channel();
        for w in shared.workers() {
            let tell = tell.clone();
            let name = format!("reveille-{}", w.index);
            let run = move || match worker::start::prepare(w, shared) {
                Ok(ready) => {
                    let _ = tell.send(Ok(()));
                    worker::start::work(w, ready);
                }
                Err(e) => drop(tell.send(Err(e))),
            };
            let handle = std::thread::Builder::new()
                .name(name)
                .spawn(run)
                .map_err(|e| Error::os("cannot start a worker's kernel thread", e))?;
            self.kernel_threads.lock().unwrap_or_else(|e| e.into_inner()).push(handle);
        }
        drop(tell);
        told.iter().take(shared.settings.workers).collect()
    }

    /// Runs `f` as a thread of this runtime and waits for its value. `f` may borrow from the caller.
    ///
    /// # Panics
    /// With the payload of `f`'s panic; if there is no memory for the thread.
    ///
    /// # Examples
    /// ```
    /// let rt = reveille::Runtime::builder().workers(1).build()?;
    /// let words = vec!["a", "b"];
    /// assert_eq!(rt.run(|| words.join("")), "ab");
    /// # Ok::<(), reveille::Error>(())
    /// ```
    pub fn run<F, T>(&self, f: F) -> T
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: the thread is joined below, before anything that it borrows ends.
        let spawned = unsafe { self.thread_builder().spawn_inner(None, f) };
        match spawned.expect("failed to spawn thread").join() {
            Ok(value) => value,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Spawns a thread on this runtime; see [`thread::spawn()`].
    ///
    /// # Panics
    /// If there is no memory for the thread; [`thread_builder`](Runtime::thread_builder) gives an error.
    pub fn spawn<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.thread_builder().spawn(f).expect("failed to spawn thread")
    }

    /// Configures a thread of this runtime.
    pub fn thread_builder(&self) -> thread::Builder {
        thread::Builder { shared: Some(thread::SharedRef(self.shared.0)), ..thread::Builder::new() }
    }

    /// The shortest time slice that this machine sustains: ticks that came faster would eat too much of the
    /// time (measured at the first start of a runtime). A shorter one that is asked for is rounded up.
    #[must_use]
    pub fn shortest_slice(&self) -> Duration {
        preempt::floor::shortest_slice()
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.0.settings.workers
    }

    /// Waits for all threads to end, then ends the workers.
    ///
    /// # Errors
    /// None at present; see [`shutdown_timeout`](Runtime::shutdown_timeout).
    ///
    /// # Panics
    /// If called from a thread of this runtime, which would wait for itself.
    pub fn shutdown(self) -> Result<(), ShutdownError> {
        self.finish(None).map_err(|(_, e)| e)
    }

    /// As [`shutdown`](Runtime::shutdown), waiting at most `timeout`.
    ///
    /// # Errors
    /// Says how many threads still run. They run on, as after a drop.
    ///
    /// # Panics
    /// As [`shutdown`](Runtime::shutdown).
    pub fn shutdown_timeout(self, timeout: Duration) -> Result<(), ShutdownError> {
        self.finish(Some(timeout)).map_err(|(_, e)| e)
    }

    fn finish(self, timeout: Option<Duration>) -> Result<(), (Runtime, ShutdownError)> {
        let own = crate::tcb::current::get().is_some_and(|me| {
            core::ptr::eq(me.runtime.get(), core::ptr::from_ref(self.shared.0).cast())
        });
        assert!(!own, "a thread cannot shut down the runtime that it runs on");
        let running = self.shared.0.wait_for_all(timeout);
        if running != 0 {
            return Err((self, ShutdownError { running }));
        }
        self.close();
        self.join_workers();
        Ok(())
    }

    fn close(&self) {
        self.shared.0.close();
    }

    fn join_workers(&self) {
        let mut threads = self.kernel_threads.lock().unwrap_or_else(|e| e.into_inner());
        for t in threads.drain(..) {
            if self.shared.0.workers().is_empty() {
                core::mem::forget(t); // a fork child: there is no such kernel thread
            } else {
                let _ = t.join();
            }
        }
    }

    /// Counters of the workers so far.
    #[must_use]
    pub fn stats(&self) -> RuntimeStats {
        let of = |w: &Worker| WorkerStats {
            switches: w.site.switches.get(),
            preemptions: w.site.preemptions.get(),
            ticks: w.site.ticks.get(),
            steals: w.steals.get(),
        };
        RuntimeStats { workers: self.shared.0.workers().iter().map(|w| of(w)).collect() }
    }

    /// The threads that wait for something, and for what.
    ///
    /// # Examples
    /// ```
    /// let rt = reveille::Runtime::new()?;
    /// assert!(rt.waiting().is_empty());
    /// # Ok::<(), reveille::Error>(())
    /// ```
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        crate::waiting::of(self.shared.0)
    }

    /// If threads are left, and all of them wait for something without a limit, so that none goes on
    /// unless something outside the runtime wakes it: who waits for what. Print this when a program hangs.
    ///
    /// # Examples
    /// A thread that waits for what nobody will send:
    /// ```
    /// let rt = reveille::Runtime::new()?;
    /// let stuck = rt.spawn(reveille::thread::park);
    /// let waiting = loop {
    ///     if let Some(waiting) = rt.stalled() {
    ///         break waiting;
    ///     }
    /// };
    /// assert!(waiting[0].to_string().ends_with("is parked"));
    /// stuck.thread().unpark();
    /// # stuck.join().unwrap();
    /// # Ok::<(), reveille::Error>(())
    /// ```
    #[must_use]
    pub fn stalled(&self) -> Option<Vec<Waiting>> {
        let shared = self.shared.0;
        let before = shared.stillness()?;
        let waiting = self.waiting();
        let all = waiting.len() as u64 == shared.running() && !waiting.iter().any(|w| w.timed);
        (all && !waiting.is_empty() && shared.stillness() == Some(before)).then_some(waiting)
    }

    /// The time slices recorded since the last call, if [`Builder::record_slices`] asked for it.
    #[must_use]
    pub fn take_slices(&self) -> Vec<Slice> {
        static ONE_READER: Mutex<()> = Mutex::new(());
        let _reader = ONE_READER.lock().unwrap_or_else(|e| e.into_inner());
        let mut out = Vec::new();
        for w in self.shared.0.workers() {
            w.trace.take(|e| out.push(Slice::new(w.index, e, self.shared.0.begun_ns)));
        }
        out
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // The workers end as soon as no thread is left that could run.
        self.close();
    }
}

/// The default runtime; null before it is needed, and again in a fork child.
static DEFAULT: AtomicPtr<Runtime> = AtomicPtr::new(core::ptr::null_mut());

/// The default runtime, started when it is first needed.
pub(crate) fn default_shared() -> Result<&'static Shared, Error> {
    static STARTING: SlowLock = SlowLock::new();
    let started = || {
        // SAFETY: null or a leaked allocation.
        unsafe { DEFAULT.load(Ordering::Acquire).as_ref() }.map(|rt| rt.shared.0)
    };
    if let Some(shared) = started() {
        return Ok(shared);
    }
    let _starting = STARTING.lock();
    if let Some(shared) = started() {
        return Ok(shared);
    }
    let rt = Box::leak(Box::new(Runtime::new()?));
    DEFAULT.store(rt, Ordering::Release);
    Ok(rt.shared.0)
}

/// In a fork child: its workers are gone.
pub(crate) fn forget_default() {
    DEFAULT.store(core::ptr::null_mut(), Ordering::Release);
}
