//! What the storms share: runtimes at the fastest slice on 1, 2 and 3 workers, threads that go on until
//! each has been preempted often enough, a watchdog, child processes, and C helpers built on the spot
//! ([`clib`]).
//!
//! Nothing here waits for a length of time: a storm is over when enough *events* have been counted.
#![allow(dead_code, unsafe_code)]

pub mod clib;
pub mod stepping;

use reveille::thread;
use reveille::{Builder, Runtime};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, mpsc};
use std::time::Duration;

/// The fastest slice: below this, ticks of the machines at hand eat most of the time.
pub const SLICE: Duration = Duration::from_micros(60);
/// How long a storm may take before the watchdog calls it hung, unless STORM_HUNG says so.
const HUNG: u64 = 240;

fn hung() -> Duration {
    let asked = std::env::var("STORM_HUNG").ok().and_then(|s| s.parse().ok());
    Duration::from_secs(asked.unwrap_or(HUNG))
}

/// Multiplies the length of every storm; for long runs by hand.
pub fn factor() -> u64 {
    std::env::var("STORM_FACTOR").ok().and_then(|f| f.parse().ok()).unwrap_or(1)
}

/// A builder with fixed slices of the fastest kind.
pub fn fast(workers: usize) -> Builder {
    Runtime::builder().workers(workers).time_slice(SLICE).adaptive_slices(false)
}

/// One test of a binary at a time: storms count what the whole process does.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Free counters that a storm bumps as it goes on; the watchdog prints them.
pub static PROGRESS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Notes progress in counter `i`.
pub fn progress(i: usize) {
    PROGRESS[i].fetch_add(1, SeqCst);
}

/// Runs `f` under a watchdog: if it takes for ever, `report` is printed and the process aborts.
pub fn watched<T>(name: &str, report: impl Fn() -> String + Sync, f: impl FnOnce() -> T) -> T {
    PROGRESS.iter().for_each(|p| p.store(0, SeqCst));
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|s| {
        let report = &report;
        s.spawn(move || {
            if is_done.recv_timeout(hung()) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{name} hangs: {}\nprogress {PROGRESS:?}", report());
                reveille::dump::dump_threads();
                std::process::abort();
            }
        });
        let value = f();
        drop(done);
        value
    })
}

/// Runs `f` on runtimes of 1, 2 and 3 workers at the fastest slice, one after the other, watched.
pub fn on_each(name: &str, f: impl Fn(&Runtime)) {
    on_each_of(name, |b| b, f);
}

/// Runs `f` on a kernel thread and in a reveille thread.
pub fn both(f: fn()) {
    f();
    let rt = fast(2).build().unwrap();
    watched("both", String::new, || rt.run(f));
    rt.shutdown().unwrap();
}

/// As [`on_each`] with further settings.
pub fn on_each_of(name: &str, set: impl Fn(Builder) -> Builder, f: impl Fn(&Runtime)) {
    let _alone = alone();
    for workers in 1..=3 {
        let rt = set(fast(workers)).build().unwrap();
        let name = format!("{name} on {workers} workers");
        let begun = std::time::Instant::now();
        watched(&name, || format!("{:?}", rt.stats()), || f(&rt));
        if std::env::var_os("STORM_STATS").is_some() {
            eprintln!("{name}: {:?} {:?}", begun.elapsed(), rt.stats());
        }
        watched(&name, || "at its shutdown".to_owned(), || rt.shutdown().unwrap());
    }
}

/// Preemptions of the calling thread so far.
pub fn preemptions() -> u64 {
    thread::current().preemptions()
}

/// Starts `n` threads that repeat `step` until each of them has been preempted `often` times (times
/// [`factor`]), so all of them compete to the end. `step` gets the thread's number and a running count.
/// Returns how many steps each made.
pub fn until_preempted(
    rt: &Runtime,
    n: usize,
    often: u64,
    step: impl Fn(usize, u64) + Send + Sync,
) -> Vec<u64> {
    let often = often * factor();
    let ready = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let (ready, failed, step) = (&ready, &failed, &step);
    rt.run(move || {
        thread::scope(|s| {
            let threads: Vec<_> = (0..n)
                .map(|i| {
                    s.spawn(move || {
                        let fails = Fails(failed);
                        let (mut count, mut counted) = (0, false);
                        while ready.load(SeqCst) < n && !failed.load(SeqCst) {
                            step(i, count);
                            count += 1;
                            if !counted && preemptions() >= often {
                                counted = true;
                                ready.fetch_add(1, SeqCst);
                                progress(0);
                            }
                        }
                        std::mem::forget(fails);
                        count
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().expect("a storm's thread failed")).collect()
        })
    })
}

/// Starts `n` threads that make `steps` steps each (times [`factor`]), and two hogs that compete with them.
/// For steps that block or give way: such threads seldom use up a slice, so they are not preempted often.
pub fn among_hogs(rt: &Runtime, n: usize, steps: u64, step: impl Fn(usize, u64) + Send + Sync) {
    let left = AtomicUsize::new(n);
    let (left, step) = (&left, &step);
    rt.run(move || {
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    while left.load(SeqCst) != 0 {
                        std::hint::spin_loop();
                    }
                });
            }
            let threads: Vec<_> = (0..n)
                .map(|i| {
                    s.spawn(move || {
                        let ends = Ends(left);
                        for count in 0..steps * factor() {
                            step(i, count);
                            progress(0);
                        }
                        drop(ends);
                    })
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().expect("a storm's thread failed"));
        });
    });
}

/// Runs `f` in `n` threads that are alive all at once, `rounds` times over: slots are used again.
pub fn in_crowds(rt: &Runtime, n: usize, rounds: usize, f: impl Fn() + Sync + Send) {
    for _ in 0..rounds {
        let here = AtomicUsize::new(0);
        rt.run(|| {
            thread::scope(|s| {
                for _ in 0..n {
                    s.spawn(|| {
                        let arrives = Arrives(&here);
                        f();
                        drop(arrives);
                        while here.load(SeqCst) < n {
                            thread::yield_now();
                        }
                    });
                }
            });
        });
        progress(0);
    }
}

/// Counts a thread in at its end, even if it fails.
struct Arrives<'a>(&'a AtomicUsize);

impl Drop for Arrives<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Counts a thread out, however it ends.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Tells the others when a thread of a storm unwinds.
struct Fails<'a>(&'a AtomicBool);

impl Drop for Fails<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Spins until the calling thread has been preempted once more, or for some hundred microseconds: the
/// others may have ended. True if it was preempted.
pub fn spin_until_preempted() -> bool {
    let before = preemptions();
    for _ in 0..50_000 {
        if preemptions() != before {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// The lowest usable address of the running thread's stack: below it the kernel finds no memory to read.
/// `probe` is the writing end of a pipe with some room.
pub fn end_of_stack(probe: i32) -> usize {
    let here = 0u8;
    let mut page = &raw const here as usize & !4095;
    // SAFETY: the kernel checks the address.
    while unsafe { libc::write(probe, (page - 4096) as *const _, 1) } == 1 {
        page -= 4096;
    }
    page
}

/// A small generator, so that a failure can be repeated (Marsaglia's xorshift64).
pub struct Random(pub u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n
    }
}

/// The variable that tells a test that it is the child.
const CHILD: &str = "STORM_CHILD";

/// In a child made by [`child`]: which case to run.
pub fn child_case() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// Runs the test `test` of this binary once more, in a child process, with `case` to be seen by
/// [`child_case`] there. Standard input and outputs are piped. A child that hangs is killed and reported.
pub fn child(test: &str, case: &str) -> Output {
    child_with(test, case, &[])
}

/// As [`child`], with more variables in its environment.
pub fn child_with(test: &str, case: &str, variables: &[(&str, &std::path::Path)]) -> Output {
    let me = std::env::current_exe().unwrap();
    let seconds = hung().as_secs().to_string();
    Command::new("timeout")
        .args(["--signal=KILL", &seconds])
        .arg(me)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, case)
        .envs(variables.iter().copied())
        .output()
        .expect("the test can run itself")
}

/// Runs a child that must abort, and says so on standard error with all of `words`.
#[track_caller]
pub fn child_aborts(test: &str, case: &str, words: &[&str]) {
    use std::os::unix::process::ExitStatusExt;
    let out = child(test, case);
    let said = String::from_utf8_lossy(&out.stderr);
    // `timeout` ends by the signal of its child, or reports 128 and its number.
    let signal = out.status.signal().or(out.status.code().map(|c| c - 128));
    assert_eq!(signal, Some(6), "{case}: ended with {} saying {said}", out.status);
    for word in words {
        assert!(said.contains(word), "{case}: {word:?} is missing in {said}");
    }
}

/// Keeps the default hook quiet for panics that a storm makes on purpose.
pub fn quiet_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let purpose = info.payload().downcast_ref::<&str>().is_some_and(|s| *s == ON_PURPOSE)
                || info.payload().is::<u64>();
            if !purpose {
                loud(info);
            }
        }));
    });
}

/// The payload of a panic that belongs to a storm.
pub const ON_PURPOSE: &str = "on purpose";
