//! `bench condvar`: the table of 2005 anew, kernel threads handing a turn to and fro by condvar.
//!
//! - `condvar/2005`: ns for a turn, on one CPU. Two threads share a mutex and have a condvar each; whose turn it is gives
//!   the turn to the other, unlocks, notifies, and waits for its next turn. Columns: the three generations of
//!   `sync::os`, and glibc's condvar through libc; and this library's own on reveille threads, on as many workers as
//!   there are CPUs, which counts switches of the workers' kernel threads.
//! - `condvar/2005-held`: the same, but notifying before unlocking.
//! - `condvar/2005-all`, `condvar/2005-all-held`: the same on all CPUs.
//!
//! Below the table of cases stands the old one, with its own real times of 2005 beside (another machine, another number
//! of turns: compare how they relate). A row for each way to notify, with real, user and system time, and what
//! the year 2005 could only infer from them: how often threads were switched for one hand-over. One is needed.

use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use reveille::sync::os;

use super::session::{Lane, Session};
use crate::affinity;
use crate::output::{REVEILLE, Unit};
use crate::stats::Summary;

/// Runs the family.
///
/// # Errors
/// A case could not be measured.
pub fn run(session: &mut Session) -> anyhow::Result<()> {
    for (case, cpus, held) in [
        ("condvar/2005", Some(1), false),
        ("condvar/2005-held", Some(1), true),
        ("condvar/2005-all", None, false),
        ("condvar/2005-all-held", None, true),
    ] {
        if session.wants(case) {
            one(session, case, cpus, held)?;
        }
    }
    Ok(())
}

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Took {
    real: Duration,
    user: Duration,
    system: Duration,
    /// Context switches for each hand-over.
    switches: f64,
}

/// Makes one run of so many turns, notifying with the mutex held or not.
type Run = fn(u64, bool) -> Took;

/// One system's runs in one case.
#[derive(Default)]
struct Row {
    system: &'static str,
    runs: Vec<Took>,
}

/// One case: its lanes, and its part of the old table.
fn one(session: &mut Session, case: &str, cpus: Option<usize>, held: bool) -> anyhow::Result<()> {
    let turns = session.pick(20_000, 4_000);
    let systems: [(&'static str, Run); 5] = [
        (REVEILLE, if cpus == Some(1) { run_of_reveille::<1> } else { run_of_reveille::<2> }),
        (PLAIN, run_of::<Ours<os::Plain>>),
        (REQUEUE, run_of::<Ours<os::Requeue>>),
        (WAKE_OP, run_of::<Ours<os::WakeOp>>),
        (GLIBC, run_of::<Glibc>),
    ];
    let mut rows = systems.map(|(system, _)| Row { system, runs: Vec::new() });
    let lanes = rows
        .iter_mut()
        .zip(systems)
        .map(|(row, (system, run))| {
            Lane::new(system, move || {
                let took = match cpus {
                    Some(cpus) => affinity::confined(cpus, || run(turns, held))?,
                    None => run(turns, held),
                };
                row.runs.push(took);
                Ok(took.real.as_nanos() as f64 / (2 * turns) as f64)
            })
        })
        .collect();
    session.measure(case, Unit::Ns, lanes)?;
    let place = if cpus.is_some() { "one CPU" } else { "all CPUs" };
    let when = if held { "before unlocking" } else { "after unlocking" };
    session.note(format!("{case}: {turns} turns each, notified {when}, on {place}:"));
    let titles = [
        "",
        "real s",
        "user s",
        "sys s",
        "switches",
        if case == "condvar/2005" { "in 2005" } else { "" },
    ];
    let [name, real, user, system, switches, old] = titles;
    session.note(format!("{name:10} {real:>8} {user:>8} {system:>8} {switches:>8}  {old:>8}"));
    for row in rows {
        session.note(line(case, &row));
    }
    session.note(String::new());
    Ok(())
}

/// Seconds of real time in 2005, the first of two runs.
fn in_2005(case: &str, system: &str) -> &'static str {
    match system {
        _ if case != "condvar/2005" => "",
        PLAIN => "0.655",
        REQUEUE => "0.496",
        WAKE_OP => "0.380",
        _ => "",
    }
}

const PLAIN: &str = "plain";
const REQUEUE: &str = "requeue";
const WAKE_OP: &str = "wake-op";
const GLIBC: &str = "glibc";

/// One line of the old table: medians of all runs but the first, which warms up.
fn line(case: &str, row: &Row) -> String {
    let median = |of: fn(&Took) -> f64| {
        let values: Vec<f64> = row.runs.iter().skip(1).map(of).collect();
        Summary::of(&values).map_or(f64::NAN, |s| s.median)
    };
    let real = median(|t| t.real.as_secs_f64());
    let user = median(|t| t.user.as_secs_f64());
    let system = median(|t| t.system.as_secs_f64());
    let switches = median(|t| t.switches);
    let old = in_2005(case, row.system);
    format!("{:10} {real:8.3} {user:8.3} {system:8.3} {switches:8.2}  {old:>8}", row.system)
}

/// Two threads' turns. Only who holds the lock may touch the turn.
trait Turns: Default + Sync {
    /// Waits until it is `me`'s turn, gives it to the other, and notifies.
    fn pass(&self, me: usize, held: bool);
}

/// Two threads pass the turn `turns` times each.
fn run_of<T: Turns>(turns: u64, held: bool) -> Took {
    let shared = T::default();
    timed(turns, || {
        std::thread::scope(|scope| {
            for me in 0..2 {
                let shared = &shared;
                scope.spawn(move || (0..turns).for_each(|_| shared.pass(me, held)));
            }
        });
    })
}

/// What `f` takes, which passes the turn `2 * turns` times.
fn timed(turns: u64, f: impl FnOnce()) -> Took {
    let before = usage();
    let start = Instant::now();
    f();
    let real = start.elapsed();
    let after = usage();
    let time = |of: fn(&Usage) -> TimeVal| {
        let took = of(&after) - of(&before);
        Duration::from_micros(took.num_microseconds().unsigned_abs())
    };
    let count = |u: &Usage| u.voluntary_context_switches() + u.involuntary_context_switches();
    Took {
        real,
        user: time(Usage::user_time),
        system: time(Usage::system_time),
        switches: (count(&after) - count(&before)) as f64 / (2 * turns) as f64,
    }
}

/// The same with this library's threads, mutex and condition variables, on `WORKERS` workers.
fn run_of_reveille<const WORKERS: usize>(turns: u64, held: bool) -> Took {
    let rt = reveille::Runtime::builder().workers(WORKERS).build().expect("a runtime starts");
    let shared = Reveille::default();
    let pass = |me: usize| (0..turns).for_each(|_| shared.pass(me, held));
    // Two threads of the runtime, in one scope: spawned from a thread of it.
    let pass = &pass;
    timed(turns, || {
        rt.run(|| {
            reveille::thread::scope(|scope| {
                for me in 0..2 {
                    scope.spawn(move || pass(me));
                }
            });
        });
    })
}

/// This library's own.
#[derive(Default)]
struct Reveille {
    turn: reveille::sync::Mutex<usize>,
    changed: [reveille::sync::Condvar; 2],
}

impl Turns for Reveille {
    fn pass(&self, me: usize, held: bool) {
        let turn = self.turn.lock().expect("nobody panics");
        let mut turn =
            self.changed[me].wait_while(turn, |turn| *turn != me).expect("nobody panics");
        *turn = 1 - me;
        let kept = held.then_some(turn);
        self.changed[1 - me].notify_one();
        drop(kept);
    }
}

fn usage() -> Usage {
    getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask what it used")
}

/// A generation of this crate.
struct Ours<G: os::Generation> {
    turn: os::Mutex<usize>,
    changed: [os::Condvar<G>; 2],
}

impl<G: os::Generation> Default for Ours<G> {
    fn default() -> Self {
        Self { turn: os::Mutex::new(0), changed: [const { os::Condvar::new() }; 2] }
    }
}

impl<G: os::Generation> Turns for Ours<G> {
    fn pass(&self, me: usize, held: bool) {
        let mut turn = self.turn.lock();
        self.changed[me].wait_while(&mut turn, |turn| *turn != me);
        *turn = 1 - me;
        let kept = held.then_some(turn);
        self.changed[1 - me].notify_one();
        drop(kept);
    }
}

/// glibc's.
struct Glibc {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    changed: [UnsafeCell<libc::pthread_cond_t>; 2],
    turn: UnsafeCell<usize>,
}

// SAFETY: the turn is touched under the mutex only; the others are made to be shared.
unsafe impl Sync for Glibc {}

impl Default for Glibc {
    fn default() -> Self {
        let condvar = || UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER);
        Self {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            changed: [condvar(), condvar()],
            turn: UnsafeCell::new(0),
        }
    }
}

impl Turns for Glibc {
    fn pass(&self, me: usize, held: bool) {
        // SAFETY: initialised, never moved while threads use them, the turn is touched under the mutex.
        unsafe {
            libc::pthread_mutex_lock(self.mutex.get());
            while *self.turn.get() != me {
                libc::pthread_cond_wait(self.changed[me].get(), self.mutex.get());
            }
            *self.turn.get() = 1 - me;
            if !held {
                libc::pthread_mutex_unlock(self.mutex.get());
            }
            libc::pthread_cond_signal(self.changed[1 - me].get());
            if held {
                libc::pthread_mutex_unlock(self.mutex.get());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_passes_every_turn() {
        let systems = [
            run_of::<Ours<os::Plain>>,
            run_of::<Ours<os::Requeue>>,
            run_of::<Ours<os::WakeOp>>,
            run_of::<Glibc>,
            run_of_reveille::<1>,
        ];
        for (run, held) in systems.iter().flat_map(|run| [(run, false), (run, true)]) {
            assert!(run(200, held).real > Duration::ZERO);
        }
    }

    #[test]
    fn a_line_leaves_out_the_warm_up() {
        let took = |ms, switches| {
            let time = Duration::from_millis(ms);
            Took { real: time, user: time, system: time, switches }
        };
        let row = Row { system: PLAIN, runs: vec![took(900, 9.0), took(100, 2.0), took(300, 2.0)] };
        assert_eq!(
            line("condvar/2005", &row),
            "plain         0.200    0.200    0.200     2.00     0.655"
        );
    }
}
