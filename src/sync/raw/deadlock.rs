//! Deadlocks found when a thread is about to wait for a mutex.
//!
//! A mutex names its owner and a waiter its mutex, so the chain from one to the next can be walked: from this
//! thread to the owner of the mutex that it wants, to the mutex that the owner waits for, and so on. If it
//! comes back to this thread, nobody on it can go on: each waits, without a deadline, for a mutex whose owner waits.
//! While this thread is on the chain none of its links can change, except by a kick; so a chain that is found
//! twice is one.
//!
//! Kernel threads end the walk: what they wait for is not known.

use super::mutex::RawMutex;
use super::owner;
use crate::lot;

/// The longest chain that is walked.
const LONGEST: usize = 64;

/// Panics if waiting for the mutex at `key`, owned by `owner`, would be for ever.
pub(crate) fn check(key: usize, owner: usize, me: usize) {
    if owner == me {
        report(me, &[(me, key)]);
    }
    if owner == 0 || !crate::worker::ops::checks_on() {
        return;
    }
    let mut chain = [(0, 0); LONGEST];
    let found = walk(key, owner, me, &mut chain);
    if found != 0 && walk(key, owner, me, &mut [(0, 0); LONGEST]) == found {
        report(me, &chain[..found]);
    }
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

#[cold]
#[inline(never)]
fn report(me: usize, chain: &[(usize, usize)]) -> ! {
    let name = |owner: usize| match owner::record(owner) {
        Some(r) => {
            // SAFETY: this thread, or one that waits for a mutex on a chain that ends here, so it lives.
            let t = unsafe { r.identity() };
            format!("thread {} '{}'", t.id(), t.name().unwrap_or("unnamed"))
        }
        None => "a kernel thread".to_owned(),
    };
    if let [(_, key)] = chain {
        panic!("deadlock: {} locks the mutex at {key:#x}, which it holds", name(me));
    }
    let mut text = String::new();
    let mut who = me;
    for (owner, key) in chain {
        text +=
            &format!("; {} waits for the mutex at {key:#x}, held by {}", name(who), name(*owner));
        who = *owner;
    }
    panic!("deadlock{text}");
}
