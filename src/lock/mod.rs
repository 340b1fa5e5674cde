//! The lock level: locks held for a few instructions, with preemption off. Three kinds, by who shares the data.
//!
//! | lock | shared by | a holder | costs | waiters |
//! |---|---|---|---|---|
//! | [`ProcessLock`] | threads | has preemption off: one flag, no system call | 2 to 5 ns | spin with preemption on |
//! | [`HandlerLock`] | threads, and handlers that can do without | the same | the same | threads as above; handlers try, for a bounded time |
//! | [`SignalLock`] | threads, and handlers that cannot do without | has all signals blocked as well | two system calls: some 600 ns on a virtual machine | spin with signals and preemption as they were |
//!
//! `reveille bench locks` prints what they cost here, beside libc's mutex with and without `pthread_sigmask` around it.
//!
//! # Who may take which where
//!
//! | from | `ProcessLock` | `HandlerLock` | `SignalLock` |
//! |---|---|---|---|
//! | a reveille thread, a kernel thread | `lock`, `try_lock` | `lock`, `try_lock` | `lock`, `try_lock` |
//! | inside [`preempt::disable`](crate::preempt::disable), or holding another of these | yes (see *Panics*) | yes (see *Panics*) | yes (see *Panics*) |
//! | a handler of the program's | no | **`try_lock` only** | `lock`, `try_lock` |
//! | the handler of the tick's signal: a handler that was there before the runtime's gets such signals passed on | no | `try_lock` only | `try_lock` only |
//! | holding it already | aborts with a message | `lock` aborts with a message, `try_lock` says no | as `HandlerLock` |
//!
//! Why a handler may not wait. On a reveille thread a *tick* never finds one of these locks half held on its own worker,
//! since the holder has preemption off and the tick is put off until it lets go. But a handler of the *program's* runs
//! whenever its signal comes: it may have interrupted the holder itself, and no flag of ours stops it. On a kernel
//! thread nothing is switched off at all. `try_lock` asks what the interrupted code was doing: if that held none of
//! these locks, their holders run on elsewhere, and it spins for a few microseconds; else it tries once. For data
//! that a handler must reach every time, signals have to be really blocked: that is [`SignalLock`], and its price.
//!
//! # While one is held
//! The rules of [`preempt::disable`](crate::preempt::disable): nothing that takes a lock of the C library or of std
//! (no allocation, no printing), nothing that blocks or gives way in this crate. Under a `SignalLock` the signal mask may
//! not be changed: letting go under a mask that blocks less is reported and aborts, because a handler may
//! have met the data half changed. Guards of several `SignalLock`s must be dropped in the reverse order.
//!
//! A tick that comes while one is held takes effect when the outermost goes, unless that is in a handler.
//! What is misused aborts with a message, in every build: a panic would not get through a handler.
//!
//! # Signals that are blocked
//! Under a `SignalLock`, all that a program can have a handler for. On reveille threads the tick's signal is the
//! exception: it is never really blocked (docs/signal-safety.md), and need not be, since preemption is off. So if the
//! program had a handler for the tick's number, which gets what is not a tick passed on, that handler may interrupt a
//! holder: `try_lock` says no there. On letting go the mask that was is back in force, whatever it was.
//!
//! # Panics
//! A panic switches preemption on before its message is printed, since printing takes locks. The lock is held until its
//! guard is dropped, and the thread may be preempted meanwhile (a `SignalLock`'s holder with its mask, which stays
//! with it). Waiters spin with preemption on, so that it gets its turn. But who waits *with preemption off*, because it
//! holds another lock or a guard, keeps the worker: if holders of a lock may panic, take it with preemption on, and
//! from handlers by `try_lock`. There is no poisoning.
//! A fork child finds a lock that another thread held held for good, as with any lock.
//!
//! # Examples
//! ```
//! use reveille::lock::ProcessLock;
//!
//! static PAIR: ProcessLock<[u64; 2]> = ProcessLock::new([0, 0]);
//!
//! let mut pair = PAIR.lock(); // no other thread sees one without the other
//! pair[0] += 1;
//! pair[1] += 1;
//! ```
#![allow(unsafe_code)]

mod handler;
mod process;
mod signals;
pub(crate) mod slow;
pub(crate) mod spin;
mod word;

pub use handler::{HandlerLock, HandlerLockGuard, RawHandlerLock};
pub use process::{ProcessLock, ProcessLockGuard, RawProcessLock};
pub use signals::{RawSignalLock, SignalLock, SignalLockGuard, SignalsBlocked};
