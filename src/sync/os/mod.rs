//! Mutex and condition variable for *kernel threads*, on futex(2), in the three generations of 2005.
//!
//! These are for plain kernel threads that run beside a runtime, and for the record: they show on today's kernels
//! what a condvar cost before and after FUTEX_WAKE_OP (`reveille bench condvar` prints the old table anew). A
//! reveille thread may use them as well, but it sleeps in the kernel then, and **its worker sleeps with it**: no
//! other thread of that worker runs meanwhile. If the one that would notify is among them, it waits for ever.
//!
//! # The story
//! A condvar has state of its own, and in those years a lock of its own for it, the *inner* lock. Whoever notifies
//! takes it; whoever has been woken takes it too, on its way out. If the notifier wakes a thread while it holds the
//! inner lock, then on one processor the woken thread runs at once, wants the lock, sleeps again; the notifier goes
//! on, lets go, and wakes it a second time: two switches for nothing.
//!
//! | generation | `notify_one` | `notify_all` |
//! |---|---|---|
//! | [`Plain`] | FUTEX_WAKE of one under the inner lock, then unlock | the same of all: they run into the inner lock and then into the mutex |
//! | [`Requeue`] | FUTEX_CMP_REQUEUE of one to the mutex's word if the mutex is held, else to the inner lock's; unlocking wakes it | all to the mutex's word; each unlock wakes the next |
//! | [`WakeOp`] | as `Requeue` if the mutex is held, else FUTEX_WAKE_OP: wakes one, releases the inner lock and wakes a thread that wants it, in one system call | as `Requeue` |
//!
//! The original of the third, in the glibc of 2005, did FUTEX_WAKE_OP with the mutex held as well; the woken thread ran
//! into the mutex then, which is the same fault one lock further. Here each generation keeps what the one before had.
//!
//! Unlocking *before* the wake would cure the fault without help from the kernel. POSIX forbids it where a woken
//! thread may destroy the condvar that the notifier is about to name to the kernel; a Rust reference outlives the
//! call, so this crate's condvar for its own threads has no inner lock across a wake at all.
//!
//! # The protocol, and why nothing is lost
//! A waiter, who holds the mutex:
//! 1. under the inner lock, counts itself and reads the sequence number
//! 2. unlocks the mutex
//! 3. sleeps until the sequence number is another one, or time is over
//! 4. under the inner lock, uncounts itself
//! 5. locks the mutex
//!
//! A notifier:
//! 1. returns if the count is zero
//! 2. under the inner lock, raises the sequence number, and wakes or moves sleepers
//!
//! Who changed the condition under the mutex after the waiter's 2 sees the count of the waiter's 1, by the mutex. The
//! number that the waiter read at its 1 is then older than the notifier's 2, by the inner lock: the waiter either
//! sleeps already and is among those of whom one is woken, or its sleep returns at once. A waiter that comes later has
//! read the new number, and cannot take the wake-up of one that was there before.
//!
//! Moving to the mutex's word needs more: a holder that does not know of sleepers would wake none. The notifier sets
//! the word to "held, with sleepers" if it is held, moves, and looks again: if it says so still, the unlock is yet
//! to come; if not, the notifier wakes one itself. Whoever is woken takes the mutex as "held, with sleepers", so that
//! its unlock wakes the next. The same words run under loom (`protocol::condvar2005`).
//!
//! A time-out does not eat a notify: a waiter whose time is over says so only if the sequence number is the old one.
//! The price: it may report a notify that was meant for another, who gets it too. As with every condvar, waits may
//! end without a reason; wait in a loop, or by [`wait_while`](Condvar::wait_while).
//!
//! # Examples
//! ```
//! use reveille::sync::os::{Condvar, Mutex, WakeOp};
//!
//! static READY: Mutex<bool> = Mutex::new(false);
//! static CHANGED: Condvar<WakeOp> = Condvar::new();
//!
//! let other = std::thread::spawn(|| {
//!     *READY.lock() = true;
//!     CHANGED.notify_one();
//! });
//! let mut ready = READY.lock();
//! CHANGED.wait_while(&mut ready, |ready| !*ready);
//! # drop(ready);
//! other.join().unwrap();
//! ```
#![allow(unsafe_code)]

mod condvar;
mod kernel;
mod mutex;

pub use condvar::{Condvar, Generation, Plain, RawCondvar, Requeue, WakeOp};
pub use lock_api::WaitTimeoutResult;
pub use mutex::{Mutex, MutexGuard, RawMutex};
