//! Counts the system calls of another process between two marks, by ptrace.
//!
//! The child is this program again, with ten threads that yield. All its kernel threads are
//! traced, so whatever a worker, a monitor or the main thread calls is counted. The marks are two
//! getppid calls with arguments that nobody else gives; the kernel ignores them, the tracer reads
//! them. Left out is only what handling a timer signal costs - ticks come by the clock, not by
//! the yield: after the delivery of a timer signal, the calls of that kernel thread up to the one
//! that ends the handling, be it rt_sigreturn or the rt_sigprocmask by which a handler that
//! switches away unblocks the signal.
//!
//! 1. The child asks to be traced and execs; the exec stops it.
//! 2. Options are set (follow new threads, kill the child if the tracer dies), and it goes on from
//!    system call to system call.
//! 3. Each stop is looked at and ended at once. Signals are passed on, except the SIGSTOP that
//!    greets a new thread.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::{Context, ensure};
use libc::{c_int, c_long, pid_t};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use super::child;
use crate::args::Measurement;

/// First argument of a mark.
const MARK: c_long = 0x7265_7665;
/// Second argument of the mark where counting begins.
const BEGIN: c_long = 1;
/// Second argument of the mark where counting ends.
const END: c_long = 2;

/// In the child: counting begins.
pub fn mark_begin() {
    mark(BEGIN);
}

/// In the child: counting ends.
pub fn mark_end() {
    mark(END);
}

fn mark(which: c_long) {
    // SAFETY: getppid changes nothing and ignores its arguments.
    unsafe { libc::syscall(libc::SYS_getppid, MARK, which) };
}

/// How often each system call was seen, by number.
#[derive(Debug, Default)]
pub struct Counts {
    by_number: BTreeMap<u64, u64>,
    timer_signals: u64,
    marks: u32,
}

impl Counts {
    /// All calls, scaled to a million of `operations`.
    pub fn per_million(&self, operations: u64) -> f64 {
        self.by_number.values().sum::<u64>() as f64 * 1e6 / operations as f64
    }

    /// Adds what another run saw.
    pub fn merge(&mut self, other: Counts) {
        for (number, count) in other.by_number {
            *self.by_number.entry(number).or_default() += count;
        }
        self.timer_signals += other.timer_signals;
    }

    /// The calls by name and count; `None` if there were none.
    pub fn describe(&self) -> Option<String> {
        if self.by_number.is_empty() {
            return None;
        }
        let calls: Vec<String> = self
            .by_number
            .iter()
            .map(|(number, count)| format!("{} {count}", name(*number)))
            .collect();
        Some(format!("{} ({} timer signals not counted)", calls.join(", "), self.timer_signals))
    }
}

/// The name of a system call that a thread library may make; its number for any other.
fn name(number: u64) -> String {
    let known = [
        (libc::SYS_futex, "futex"),
        (libc::SYS_sched_yield, "sched_yield"),
        (libc::SYS_timer_settime, "timer_settime"),
        (libc::SYS_rt_sigprocmask, "rt_sigprocmask"),
        (libc::SYS_rt_sigreturn, "rt_sigreturn"),
        (libc::SYS_tgkill, "tgkill"),
        (libc::SYS_madvise, "madvise"),
        (libc::SYS_mmap, "mmap"),
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    ];
    known
        .iter()
        .find(|(known, _)| *known as u64 == number)
        .map_or_else(|| format!("call {number}"), |(_, name)| (*name).to_owned())
}

/// Counts the system calls that `system` makes during `yields` yields.
///
/// # Errors
/// The child cannot be started or traced, or ends without having counted.
pub fn count(system: &str, yields: u64) -> anyhow::Result<Counts> {
    let mut command = child::command(Measurement::Yields, system, yields)?;
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    // SAFETY: ptrace is a bare system call, which is allowed between fork and exec.
    unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
    // The Child is never waited for: the tracer below reaps it.
    let child = command.spawn().context("cannot start the traced process")?.id() as pid_t;
    let mut tracer = Tracer::default();
    let status = tracer.follow(child).context("cannot trace the process")?;
    ensure!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "the traced process failed (wait status {status:#x})"
    );
    ensure!(tracer.counts.marks == 2, "the traced process did not set its marks");
    Ok(tracer.counts)
}

/// What the tracer knows while it follows a process.
#[derive(Default)]
struct Tracer {
    counts: Counts,
    counting: bool,
    /// Kernel threads that are handling a timer signal.
    handling: HashMap<pid_t, bool>,
}

impl Tracer {
    /// Follows `main`, which stops at its exec, and all its threads; returns its wait status.
    fn follow(&mut self, main: pid_t) -> io::Result<c_int> {
        let (stopped, _) = wait(main)?;
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_EXITKILL;
        ptrace::setoptions(Pid::from_raw(stopped), options)?;
        go_on(stopped, 0);
        loop {
            let (thread, status) = wait(-1)?;
            if !libc::WIFSTOPPED(status) {
                self.handling.remove(&thread);
                if thread == main {
                    return Ok(status);
                }
                continue;
            }
            let signal = self.stop(thread, status)?;
            go_on(thread, signal);
        }
    }

    /// Looks at one stop; returns the signal to pass on.
    fn stop(&mut self, thread: pid_t, status: c_int) -> io::Result<c_int> {
        let signal = libc::WSTOPSIG(status);
        if signal == libc::SIGTRAP | 0x80 {
            if let Some(call) = entered(thread)? {
                self.call(thread, call);
            }
            return Ok(0);
        }
        if status >> 16 != 0 {
            return Ok(0); // an event, such as a new thread
        }
        if let std::collections::hash_map::Entry::Vacant(new) = self.handling.entry(thread) {
            new.insert(false);
            if signal == libc::SIGSTOP {
                return Ok(0); // a new thread's first stop
            }
        }
        if is_timer_signal(thread)? {
            self.handling.insert(thread, true);
            self.counts.timer_signals += u64::from(self.counting);
        }
        Ok(signal)
    }

    /// One system call begins.
    fn call(&mut self, thread: pid_t, call: Call) {
        if call.number == libc::SYS_getppid as u64 && call.args[0] == MARK as u64 {
            self.counting = call.args[1] == BEGIN as u64;
            self.counts.marks += 1;
            return;
        }
        let handling = self.handling.entry(thread).or_insert(false);
        if *handling {
            let ends = [libc::SYS_rt_sigreturn, libc::SYS_rt_sigprocmask];
            *handling = !ends.iter().any(|end| *end as u64 == call.number);
        } else if self.counting {
            *self.counts.by_number.entry(call.number).or_default() += 1;
        }
    }
}

/// A system call that begins.
struct Call {
    number: u64,
    args: [u64; 6],
}

/// The system call that `thread` is about to make; `None` if it stopped at the end of one.
fn entered(thread: pid_t) -> io::Result<Option<Call>> {
    let info = ptrace::syscall_info(Pid::from_raw(thread))?;
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return Ok(None);
    }
    // SAFETY: the kernel says that it filled in the entry variant.
    let entry = unsafe { info.u.entry };
    Ok(Some(Call { number: entry.nr, args: entry.args }))
}

/// Whether the signal that stopped `thread` comes from a timer.
fn is_timer_signal(thread: pid_t) -> io::Result<bool> {
    match ptrace::getsiginfo(Pid::from_raw(thread)) {
        Ok(info) => Ok(info.si_code == libc::SI_TIMER),
        Err(Errno::EINVAL) => Ok(false), // not a signal but a group stop
        Err(error) => Err(error.into()),
    }
}

/// Lets `thread` go on to its next system call, with a signal or 0. One that has just died is no
/// error: its end is reported by wait. (nix passes on no real-time signals, so this is libc's.)
fn go_on(thread: pid_t, signal: c_int) {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: PTRACE_SYSCALL ignores the address; the signal is a number, not a pointer.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, none, signal as usize) };
}

/// Waits for `which` (-1: any) among the children and tracees of the calling thread.
fn wait(which: pid_t) -> io::Result<(pid_t, c_int)> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is writable for the length of the call.
        let thread =
            unsafe { libc::waitpid(which, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if thread >= 0 {
            return Ok((thread, status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: pid_t = 7;

    fn call(number: c_long) -> Call {
        Call { number: number as u64, args: [0; 6] }
    }

    fn mark_call(which: c_long) -> Call {
        Call { number: libc::SYS_getppid as u64, args: [MARK as u64, which as u64, 0, 0, 0, 0] }
    }

    #[test]
    fn only_calls_between_the_marks_count() {
        let mut tracer = Tracer::default();
        tracer.call(THREAD, call(libc::SYS_futex));
        tracer.call(THREAD, mark_call(BEGIN));
        tracer.call(THREAD, call(libc::SYS_futex));
        tracer.call(THREAD + 1, call(libc::SYS_getppid));
        tracer.call(THREAD, mark_call(END));
        tracer.call(THREAD, call(libc::SYS_futex));
        assert_eq!(tracer.counts.marks, 2);
        assert_eq!(tracer.counts.per_million(1_000_000), 2.0);
        assert_eq!(tracer.counts.per_million(500_000), 4.0);
        assert!(tracer.counts.describe().unwrap().starts_with("call 110 1, futex 1"));
    }

    #[test]
    fn handling_a_timer_signal_does_not_count_but_what_follows_does() {
        for end in [libc::SYS_rt_sigreturn, libc::SYS_rt_sigprocmask] {
            let mut tracer = Tracer::default();
            tracer.call(THREAD, mark_call(BEGIN));
            tracer.handling.insert(THREAD, true);
            tracer.call(THREAD, call(libc::SYS_timer_settime));
            tracer.call(THREAD, call(end));
            assert_eq!(tracer.counts.per_million(1_000_000), 0.0);
            tracer.call(THREAD, call(libc::SYS_rt_sigprocmask));
            assert_eq!(tracer.counts.per_million(1_000_000), 1.0);
        }
    }
}
