//! Deadlocks found when a thread has come to wait for a mutex.
//!
//! A mutex names its owner and a waiter its mutex, so the chain from one to the next can be walked: from this
//! thread to the owner of the mutex that it wants, to the mutex that the owner waits for, and so on. If it
//! comes back to this thread, nobody on it can go on: each waits, without a deadline, for a mutex whose owner waits.
//! A chain is read link by link, so one that never was may be seen: an owner that let go meanwhile. So it is read
//! twice, and must be the same, with the first owner still in place between and after. Seen from its end, none
//! of its links can have changed then: this thread does not let go, so the one that waits for it does not, and so on.
//!
//! Kernel threads end the walk: what they wait for is not known.

use super::mutex::RawMutex;
use super::owner;
use crate::lot;
use core::sync::atomic::Ordering;

/// The longest chain that is walked.
const LONGEST: usize = 64;

/// Who waits for what, and comes back to where it began.
pub(crate) struct Circle {
    me: usize,
    chain: [(usize, usize); LONGEST],
    len: usize,
}

/// Whether `me`, which stands in the queue of `mutex`, would wait for ever.
#[cold]
pub(crate) fn find(mutex: &RawMutex, me: usize) -> Option<Circle> {
    let (key, owner) = (mutex.key(), mutex.word().owner());
    if owner == 0 || !crate::worker::ops::checks_on() {
        return None;
    }
    let mut chain = [(0, 0); LONGEST];
    let len = walk(key, owner, me, &mut chain);
    if len == 0 || mutex.word().owner() != owner {
        return None;
    }
    let mut again = [(0, 0); LONGEST];
    let same = walk(key, owner, me, &mut again) == len && again[..len] == chain[..len];
    (same && mutex.word().owner() == owner).then_some(Circle { me, chain, len })
}

/// `me` holds the mutex at `key`, and locks it.
#[cold]
#[inline(never)]
pub(crate) fn report_own(key: usize, me: usize) -> ! {
    panic!("deadlock: {} locks the mutex at {key:#x}, which it holds", name(me, me));
}

/// Fills in who waits for what: (owner, mutex that it owns); returns how many if the chain comes back to `me`,
/// else 0.
fn walk(key: usize, owner: usize, me: usize, chain: &mut [(usize, usize); LONGEST]) -> usize {
    let (mut key, mut owner) = (key, owner);
    for (n, link) in chain.iter_mut().enumerate() {
        *link = (owner, key);
        if owner == me {
            return n + 1;
        }
        let Some(r) = owner::record(owner) else { return 0 };
        match lot::mutex_waited_for(r, |k| {
            // SAFETY: the thread waits for the mutex at this key, so it lives.
            unsafe { (*(k as *const RawMutex)).word().owner() }
        }) {
            Some((next, its_owner)) if its_owner != 0 => (key, owner) = (next, its_owner),
            _ => return 0,
        }
    }
    0
}

impl Circle {
    /// Says who waits for whom, by a panic.
    #[cold]
    #[inline(never)]
    pub(crate) fn report(&self) -> ! {
        let chain = &self.chain[..self.len];
        let mut text = String::new();
        let mut who = self.me;
        for (owner, key) in chain {
            let (waits, holds) = (name(who, self.me), name(*owner, self.me));
            text += &format!("; {waits} waits for the mutex at {key:#x}, held by {holds}");
            who = *owner;
        }
        panic!("deadlock{text}");
    }
}

/// A thread's number and name; `me` is the running one.
fn name(owner: usize, me: usize) -> String {
    let Some(r) = owner::record(owner) else { return "a kernel thread".to_owned() };
    let name = if owner == me {
        // SAFETY: the running thread's own.
        unsafe { r.identity() }.name().map(str::to_owned)
    } else {
        lot::look(r).and_then(|seen| seen.name())
    };
    let id = r.id.load(Ordering::Relaxed);
    format!("thread {id} '{}'", name.as_deref().unwrap_or("unnamed"))
}
