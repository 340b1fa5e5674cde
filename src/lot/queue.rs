//! The queues of one bucket: for each key a list of waiters, oldest first.
//!
//! ```text
//!   bucket -> [head of key A] -> [head of key B] -> null        next_key
//!                  |  ^               |
//!               [second]           [second]                     next, prev
//!                  |
//!               [third]  <- tail (kept in the head)
//! ```
//!
//! So a key with many waiters does not slow down another that happens to be in the same bucket. All of it
//! is touched under the bucket's lock only.

use super::waiter::Waiter;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::Ordering;

/// A waiter's place in its queue.
#[derive(Debug)]
pub(crate) struct Links {
    next: Cell<*const Waiter>,
    prev: Cell<*const Waiter>,
    /// Heads only.
    tail: Cell<*const Waiter>,
    next_key: Cell<*const Waiter>,
}

impl Links {
    /// For a waiter in no queue: its place in a [`Chain`](super::wake::Chain).
    pub(super) fn chained(&self) -> &Cell<*const Waiter> {
        &self.next
    }

    pub(crate) const fn new() -> Links {
        Links {
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            tail: Cell::new(ptr::null()),
            next_key: Cell::new(ptr::null()),
        }
    }
}

/// The waiters of one bucket. Those that stand in it are alive, since each leaves before its frame does.
pub(crate) struct Queues {
    first: Cell<*const Waiter>,
}

impl Queues {
    pub(crate) const fn new() -> Queues {
        Queues { first: Cell::new(ptr::null()) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    /// Forgets all waiters: in a fork child.
    pub(crate) fn clear(&self) {
        self.first.set(ptr::null());
    }

    /// The place of the pointer to the head of `key`'s queue, if there is one.
    ///
    /// # Safety
    /// The bucket is locked.
    #[inline]
    unsafe fn find(&self, key: usize) -> Option<&Cell<*const Waiter>> {
        let mut place = &self.first;
        loop {
            // SAFETY: a waiter in a queue is alive; the lock is held.
            let head = unsafe { place.get().as_ref()? };
            if head.key() == key {
                return Some(place);
            }
            place = &head.links.next_key;
        }
    }

    /// The oldest waiter of `key`.
    ///
    /// # Safety
    /// The bucket is locked.
    #[inline]
    pub(crate) unsafe fn head(&self, key: usize) -> Option<&Waiter> {
        // SAFETY: the caller's promise.
        unsafe { self.find(key)?.get().as_ref() }
    }

    /// The next younger one of the same key.
    ///
    /// # Safety
    /// The bucket is locked and `w` stands in it.
    pub(crate) unsafe fn after<'a>(&'a self, w: &Waiter) -> Option<&'a Waiter> {
        // SAFETY: the caller's promise.
        unsafe { w.links.next.get().as_ref() }
    }

    /// Some waiter.
    ///
    /// # Safety
    /// The bucket is locked.
    pub(crate) unsafe fn any(&self) -> Option<&Waiter> {
        // SAFETY: the caller's promise.
        unsafe { self.first.get().as_ref() }
    }

    /// Enters `w` as the youngest waiter of `key`.
    ///
    /// # Safety
    /// The bucket is locked; `w` stands in no queue and stays where it is until it has been taken out.
    #[inline]
    pub(crate) unsafe fn push(&self, key: usize, w: &Waiter) {
        w.key.store(key, Ordering::Relaxed);
        w.links.next.set(ptr::null());
        // SAFETY: the caller's promise.
        if let Some(head) = unsafe { self.head(key) } {
            let tail = head.links.tail.get();
            w.links.prev.set(tail);
            // SAFETY: the tail stands in the queue.
            unsafe { (*tail).links.next.set(w) };
            head.links.tail.set(w);
        } else {
            w.links.prev.set(ptr::null());
            w.links.tail.set(w);
            w.links.next_key.set(self.first.get());
            self.first.set(w);
        }
    }

    /// Enters `w` as the oldest waiter of `key`: it waited before and was passed over.
    ///
    /// # Safety
    /// As [`push`](Queues::push).
    pub(crate) unsafe fn push_front(&self, key: usize, w: &Waiter) {
        // SAFETY: the caller's promise.
        unsafe {
            let Some(place) = self.find(key) else { return self.push(key, w) };
            let head = &*place.get();
            w.key.store(key, Ordering::Relaxed);
            w.links.prev.set(ptr::null());
            w.links.next.set(head);
            w.links.tail.set(head.links.tail.get());
            w.links.next_key.set(head.links.next_key.get());
            head.links.prev.set(w);
            place.set(w);
        }
    }

    /// Takes `w` out.
    ///
    /// # Safety
    /// The bucket is locked and `w` stands in it.
    #[inline]
    pub(crate) unsafe fn remove(&self, w: &Waiter) {
        let (next, prev) = (w.links.next.get(), w.links.prev.get());
        // SAFETY: neighbours and heads stand in the queue; the lock is held.
        unsafe {
            if let Some(prev) = prev.as_ref() {
                prev.links.next.set(next);
                match next.as_ref() {
                    Some(next) => next.links.prev.set(prev),
                    None => {
                        if let Some(head) = self.head(w.key()) {
                            head.links.tail.set(prev);
                        }
                    }
                }
            } else if let Some(place) = self.find(w.key()) {
                match next.as_ref() {
                    Some(next) => {
                        next.links.prev.set(ptr::null());
                        next.links.tail.set(w.links.tail.get());
                        next.links.next_key.set(w.links.next_key.get());
                        place.set(next);
                    }
                    None => place.set(w.links.next_key.get()),
                }
            }
        }
        w.key.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Wait, WaitsFor};
    use super::*;
    use std::collections::{BTreeMap, VecDeque};

    fn waiter() -> Waiter {
        Waiter::new(&Wait::on(8, WaitsFor::Other), ptr::null())
    }

    /// Against one deque a key: entering at both ends, leaving from anywhere.
    #[test]
    fn does_what_a_deque_for_each_key_does() {
        let mut s = 1u64;
        let mut random = |n: usize| {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (s >> 33) as usize % n
        };
        let nodes: Vec<Waiter> = (0..40).map(|_| waiter()).collect();
        let queues = Queues::new();
        let mut model: BTreeMap<usize, VecDeque<usize>> = BTreeMap::new();
        for _ in 0..20_000 {
            let (i, key) = (random(nodes.len()), 8 * (1 + random(5)));
            let w = &nodes[i];
            // SAFETY: one thread; the nodes outlive the queues.
            unsafe {
                match (w.key(), random(4)) {
                    (0, 0) => {
                        queues.push_front(key, w);
                        model.entry(key).or_default().push_front(i);
                    }
                    (0, _) => {
                        queues.push(key, w);
                        model.entry(key).or_default().push_back(i);
                    }
                    (old, _) => {
                        queues.remove(w);
                        assert_eq!(w.key(), 0);
                        model.get_mut(&old).unwrap().retain(|x| *x != i);
                    }
                }
                for (key, list) in &model {
                    let mut at = queues.head(*key);
                    for i in list {
                        assert!(ptr::eq(at.unwrap(), &nodes[*i]));
                        at = queues.after(at.unwrap());
                    }
                    assert!(at.is_none());
                }
            }
        }
        assert!(!queues.is_empty());
    }
}
