//! Channels with many senders and many receivers; names of `std::sync::mpmc`, where that has them. With
//! [`Select`] and [`select!`](crate::select) a thread waits for several at once.
//!
//! | made by | holds | sending waits |
//! |---|---|---|
//! | [`channel`] | any number of messages | never |
//! | [`sync_channel`] | so many messages | while it is full |
//! | [`sync_channel`]`(0)` | nothing: sender and receiver meet | until somebody receives |
//! | [`after`], [`at`], [`tick`] | one moment at a time | nobody sends |
//! | [`never`] | nothing, ever | nobody sends |
//!
//! Senders and receivers may be reveille threads of any runtime and plain kernel threads. None of it may be called
//! in a signal handler. Errors are those of [`std::sync::mpsc`].
//!
//! # How it works
//! Go's channels are the model: one lock, a buffer, a queue of senders that wait and one of receivers, whose records
//! are on their own stacks. The lock is held for a few instructions, with preemption off. Under it nothing
//! is allocated or freed, and no code of the message's type runs; a message is moved as bytes.
//!
//! Sending:
//! 1. lock. If there are no receivers any more, unlock: an error
//! 2. if a receiver waits, it is taken out of its queue (and claimed, if it selects), the message is moved to
//!    its stack. Else, if there is room, the message is moved into the buffer. Unlock, and tell the receiver: done
//! 3. else the sender enters the queue. Unlock; it rests on its own word until somebody has finished it
//!
//! Receiving is the same the other way round, where 2 moves a message out of the buffer, or, without capacity, from
//! the stack of a sender that waits. Who takes a message out of a full buffer moves the message of the oldest sender
//! in, which then goes on: nobody is woken to find out that another was faster.
//!
//! Selecting locks all channels in order, tries, enters all queues, unlocks, rests: `operation`. A sender that has
//! been selected but has no message yet is promised a place in the buffer, or, without capacity, a receiver, who waits
//! for that sender alone.
//!
//! # Why no wake-up is lost
//! Looking and entering are one step under the lock, so who comes later finds the waiter; and who has been found is
//! finished by its finder, once, after the message has been moved (`protocol::offer`, with loom models). A waiter
//! whose time is over takes itself out under the same lock; if somebody has taken it out already, the message has
//! been or is about to be moved, and it waits for that: what has been handed over is never lost. The last drop of a side
//! finishes all who wait for it, and nobody enters after.
//!
//! # Examples
//! ```
//! use reveille::{sync::mpmc, thread};
//! let (s, r) = mpmc::sync_channel(0);
//! let t = thread::spawn(move || r.recv().unwrap());
//! s.send("hello").unwrap();
//! assert_eq!(t.join().unwrap(), "hello");
//! ```

mod buffer;
mod case;
mod chan;
mod error;
mod iter;
mod operation;
mod place;
mod receiver;
mod select;
mod select_macro;
mod selected;
mod sender;
mod state;
mod timer;
mod waiter;

pub use error::{
    ReadyTimeoutError, SelectTimeoutError, SendTimeoutError, TryReadyError, TrySelectError,
};
pub use iter::{IntoIter, Iter, TryIter};
pub use receiver::Receiver;
pub use select::Select;
pub use selected::SelectedOperation;
pub use sender::Sender;
pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use chan::Chan;
use receiver::Flavor;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timer::Timer;

fn pair<T>(cap: Option<usize>) -> (Sender<T>, Receiver<T>) {
    let chan = Arc::new(Chan::new(cap));
    (Sender { chan: Arc::clone(&chan) }, Receiver { flavor: Flavor::Chan(chan) })
}

/// A channel that holds any number of messages: sending never waits.
///
/// # Examples
/// ```
/// let (s, r) = reveille::sync::mpmc::channel();
/// (0..1000).for_each(|i| s.send(i).unwrap());
/// assert_eq!(r.try_iter().count(), 1000);
/// ```
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    pair(None)
}

/// A channel that holds at most `cap` messages; with 0, none: each message goes from hand to hand.
///
/// # Panics
/// If room for `cap` messages cannot be had.
///
/// # Examples
/// ```
/// let (s, r) = reveille::sync::mpmc::sync_channel(1);
/// s.send('a').unwrap();
/// assert!(s.try_send('b').is_err());
/// assert_eq!(r.recv(), Ok('a'));
/// ```
#[must_use]
pub fn sync_channel<T>(cap: usize) -> (Sender<T>, Receiver<T>) {
    pair(Some(cap))
}

/// A channel that delivers one message, the moment, `duration` from now.
///
/// # Examples
/// ```
/// use reveille::sync::mpmc;
/// use std::time::{Duration, Instant};
/// let start = Instant::now();
/// let then = mpmc::after(Duration::from_millis(2)).recv().unwrap();
/// assert!(then - start >= Duration::from_millis(2) && Instant::now() >= then);
/// ```
#[must_use]
pub fn after(duration: Duration) -> Receiver<Instant> {
    match Instant::now().checked_add(duration) {
        Some(when) => at(when),
        None => never(),
    }
}

/// A channel that delivers one message, `when`, at that moment.
///
/// # Examples
/// ```
/// use std::time::Instant;
/// let now = Instant::now();
/// assert_eq!(reveille::sync::mpmc::at(now).recv(), Ok(now));
/// ```
#[must_use]
pub fn at(when: Instant) -> Receiver<Instant> {
    Receiver { flavor: Flavor::Timer(Arc::new(Timer::at(when))) }
}

/// A channel that delivers a message each `period`, if somebody comes for it; it holds one at most.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let (start, ticks) = (Instant::now(), reveille::sync::mpmc::tick(Duration::from_millis(2)));
/// assert_eq!(ticks.iter().take(3).count(), 3);
/// assert!(start.elapsed() >= Duration::from_millis(6));
/// ```
#[must_use]
pub fn tick(period: Duration) -> Receiver<Instant> {
    match Instant::now().checked_add(period) {
        Some(_) => Receiver { flavor: Flavor::Timer(Arc::new(Timer::each(period))) },
        None => never(),
    }
}

/// A channel that never delivers anything, and is never disconnected: for an operation of a select that is not
/// there.
///
/// # Examples
/// ```
/// let nothing = reveille::sync::mpmc::never::<i32>();
/// assert!(nothing.try_recv().is_err());
/// ```
#[must_use]
pub fn never<T>() -> Receiver<T> {
    Receiver { flavor: Flavor::Never }
}
