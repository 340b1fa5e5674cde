//! Two makers of threads behind one interface, so that every case runs the very same code on both.
//!
//! [`Reveille`] is a runtime of this library, [`Nptl`] is std::thread on a number of CPUs. A case
//! is written once over [`System`]; the compiler makes both versions of it.

use std::io;
use std::time::Duration;

use anyhow::Context;
use reveille::Runtime;

use crate::affinity;
use crate::output::{NPTL, REVEILLE};

/// Something that can run threads.
pub trait System: Sync {
    /// The name in the reports.
    const NAME: &'static str;
    /// The handle of a thread that returns `T`.
    type Handle<T: Send + 'static>: Handle<T>;

    /// Runs `f` where [`spawn`](Self::spawn) makes threads of this system: on a thread of it.
    fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T>;
    /// Runs `f` on a kernel thread that may call [`spawn_outside`](Self::spawn_outside).
    fn outside<T: Send>(&self, f: impl FnOnce(&Self) -> T + Send) -> io::Result<T>;
    /// Starts a thread from inside.
    fn spawn<T, F>(f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static;
    /// Starts a thread from inside, with a stack of `bytes` bytes.
    fn spawn_sized<T, F>(bytes: usize, f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static;
    /// Starts a thread from a plain kernel thread.
    fn spawn_outside<T, F>(&self, f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static;
    /// Gives way to another thread of the system.
    fn yield_now();
    /// Sleeps until unparked.
    fn park();
}

/// The handle of a thread.
pub trait Handle<T>: Send {
    /// Waits for the thread and returns its value; a panic of the thread is passed on.
    fn join(self) -> T;
    /// Wakes the thread from [`System::park`].
    fn unpark(&self);
}

/// Threads of this library.
pub struct Reveille(pub Runtime);

impl Reveille {
    /// A runtime with `workers` workers and otherwise default settings.
    ///
    /// # Errors
    /// The runtime cannot be started.
    pub fn workers(workers: usize) -> anyhow::Result<Self> {
        Self::built(Runtime::builder().workers(workers))
    }

    /// A runtime as `builder` describes it.
    ///
    /// # Errors
    /// The runtime cannot be started.
    pub fn built(builder: reveille::Builder) -> anyhow::Result<Self> {
        builder.build().map(Self).context("cannot start a reveille runtime")
    }

    /// A runtime with one worker and slices of exactly `slice`.
    ///
    /// # Errors
    /// The runtime cannot be started.
    pub fn fixed(slice: Duration) -> anyhow::Result<Self> {
        Self::built(Runtime::builder().workers(1).time_slice(slice).adaptive_slices(false))
    }
}

impl System for Reveille {
    const NAME: &'static str = REVEILLE;
    type Handle<T: Send + 'static> = reveille::thread::JoinHandle<T>;

    fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        Ok(self.0.run(f))
    }

    fn outside<T: Send>(&self, f: impl FnOnce(&Self) -> T + Send) -> io::Result<T> {
        Ok(f(self))
    }

    fn spawn<T, F>(f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        Ok(reveille::thread::spawn(f))
    }

    fn spawn_sized<T, F>(bytes: usize, f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        reveille::thread::Builder::new().stack_size(bytes).spawn(f).map_err(io::Error::other)
    }

    fn spawn_outside<T, F>(&self, f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        Ok(self.0.spawn(f))
    }

    fn yield_now() {
        reveille::thread::yield_now();
    }

    fn park() {
        reveille::thread::park();
    }
}

impl<T> Handle<T> for reveille::thread::JoinHandle<T>
where
    T: Send + 'static,
{
    fn join(self) -> T {
        self.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn unpark(&self) {
        self.thread().unpark();
    }
}

/// Kernel threads through std::thread.
pub struct Nptl {
    cpus: Option<usize>,
}

impl Nptl {
    /// All threads on one CPU.
    pub const ONE_CPU: Self = Self { cpus: Some(1) };
    /// The threads wherever the kernel puts them.
    pub const ANY_CPU: Self = Self { cpus: None };

    /// All threads on `cpus` CPUs.
    pub fn on(cpus: usize) -> Self {
        Self { cpus: Some(cpus) }
    }
}

impl System for Nptl {
    const NAME: &'static str = NPTL;
    type Handle<T: Send + 'static> = std::thread::JoinHandle<T>;

    fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        match self.cpus {
            Some(cpus) => affinity::confined(cpus, f),
            None => Ok(f()),
        }
    }

    fn outside<T: Send>(&self, f: impl FnOnce(&Self) -> T + Send) -> io::Result<T> {
        self.inside(|| f(self))
    }

    fn spawn<T, F>(f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        std::thread::Builder::new().spawn(f)
    }

    fn spawn_sized<T, F>(bytes: usize, f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        std::thread::Builder::new().stack_size(bytes).spawn(f)
    }

    fn spawn_outside<T, F>(&self, f: F) -> io::Result<Self::Handle<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        Self::spawn(f)
    }

    fn yield_now() {
        std::thread::yield_now();
    }

    fn park() {
        std::thread::park();
    }
}

impl<T: Send + 'static> Handle<T> for std::thread::JoinHandle<T> {
    fn join(self) -> T {
        self.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn unpark(&self) {
        self.thread().unpark();
    }
}
