//! How a runtime is asked to be, and checks of what was asked.

use crate::context::start::StartMethod;
use crate::error::{Error, Kind};
use crate::runtime::Runtime;
use crate::slot;
use crate::worker::shared::Settings;
use core::time::Duration;

/// The most workers that a runtime can have.
const MAX_WORKERS: usize = 1024;
/// What a slice may be asked to last.
const MIN_SLICE: Duration = Duration::from_micros(1);
const MAX_SLICE: Duration = Duration::from_secs(10);

/// Configures a [`Runtime`].
///
/// # Examples
/// ```
/// use std::time::Duration;
/// let rt = reveille::Runtime::builder().workers(1).time_slice(Duration::from_millis(2)).build()?;
/// assert_eq!(rt.run(|| 2 + 2), 4);
/// # Ok::<(), reveille::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing starts before build"]
pub struct Builder {
    workers: Option<usize>,
    slice: Duration,
    adaptive: bool,
    signal: i32,
    stack: usize,
    start: StartMethod,
    checks: bool,
    trace: usize,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// A builder with the defaults that each method names.
    pub fn new() -> Builder {
        Builder {
            workers: None,
            slice: Duration::from_millis(1),
            adaptive: true,
            signal: libc::SIGALRM,
            stack: slot::DEFAULT_STACK,
            start: StartMethod::Pool,
            checks: true,
            trace: 0,
        }
    }

    /// Kernel threads that run the threads, 1 to 1024. Default: the available parallelism.
    pub fn workers(mut self, n: usize) -> Builder {
        self.workers = Some(n);
        self
    }

    /// How long a thread may run while another waits, 1 us to 10 s. Default: 1 ms. A slice is never so
    /// short that ticks would eat all time, whatever is asked for.
    pub fn time_slice(mut self, slice: Duration) -> Builder {
        self.slice = slice;
        self
    }

    /// Whether slices grow while only threads that used up theirs compete, and ticks get rarer while
    /// all threads give way by themselves. Default: on. Off: every slice lasts
    /// [`time_slice`](Builder::time_slice).
    pub fn adaptive_slices(mut self, on: bool) -> Builder {
        self.adaptive = on;
        self
    }

    /// The signal that carries the tick. Default: SIGALRM. Its other uses (alarm(2), kill(2)) go on as
    /// before.
    pub fn signal(mut self, signo: i32) -> Builder {
        self.signal = signo;
        self
    }

    /// Bytes of stack of a thread, at least. Default: 2 MiB, as in std; only touched pages cost memory.
    pub fn stack_size(mut self, bytes: usize) -> Builder {
        self.stack = bytes;
        self
    }

    /// How first contexts are made. Default: [`StartMethod::Pool`].
    pub fn start_method(mut self, method: StartMethod) -> Builder {
        self.start = method;
        self
    }

    /// Whether giving way with preemption off is reported, by a message and an abort; without, it does nothing.
    /// Blocking with preemption off aborts in any case: it could never end. Default: on.
    pub fn invariant_checks(mut self, on: bool) -> Builder {
        self.checks = on;
        self
    }

    /// Records up to so many time slices a worker, for [`Runtime::take_slices`]. Default: 0, none.
    pub fn record_slices(mut self, capacity_per_worker: usize) -> Builder {
        self.trace = capacity_per_worker;
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// If a setting is out of range, the system lacks something that is needed (the text says what), or
    /// kernel threads or memory cannot be had. Nothing is left running then.
    pub fn build(self) -> Result<Runtime, Error> {
        Runtime::start(self.check()?)
    }

    fn check(self) -> Result<Settings, Error> {
        let workers = match self.workers {
            Some(n) => n,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        if workers == 0 {
            return Err(Kind::NoWorkers.into());
        }
        if workers > MAX_WORKERS {
            return Err(Kind::TooManyWorkers(workers, MAX_WORKERS).into());
        }
        if !(MIN_SLICE..=MAX_SLICE).contains(&self.slice) {
            return Err(Kind::BadSlice(self.slice, MIN_SLICE, MAX_SLICE).into());
        }
        check_signal(self.signal)?;
        if !crate::sys::has_fsgsbase() {
            let why = "a CPU and kernel (5.9 or later) that let programs write the FS base";
            return Err(Kind::Unsupported("FSGSBASE", why).into());
        }
        if crate::context::xstate::size() == 0 {
            return Err(Kind::Unsupported("XSAVE", "a CPU with the XSAVE instructions").into());
        }
        slot::Layout::new(self.stack)?;
        Ok(Settings {
            workers,
            slice: self.slice,
            adaptive: self.adaptive,
            signal: self.signal,
            stack: self.stack,
            start: self.start,
            checks: self.checks,
            trace: self.trace,
        })
    }
}

/// Refuses signals that mean something else to the kernel, libc or the program's run time.
fn check_signal(signo: i32) -> Result<(), Error> {
    let bad = |why| Err(Kind::BadSignal(signo, why).into());
    match signo {
        libc::SIGKILL | libc::SIGSTOP => bad("it cannot be caught"),
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP => {
            bad("it reports faults")
        }
        libc::SIGABRT => bad("it ends the process"),
        libc::SIGCHLD => bad("it reports children"),
        libc::SIGCONT | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => bad("it controls jobs"),
        32 | 33 => bad("the C library uses it itself"),
        n if n < 1 || n > libc::SIGRTMAX() => bad("there is no such signal"),
        _ => Ok(()),
    }
}
