//! A worker's run queue: a ring of fixed size, one producer, many takers.
//!
//! The owner pushes at the tail and takes at the head, thieves take at the head. It is the ring of
//! Go's scheduler (Vyukov's `runq`): both indices only grow; an entry is read before the
//! compare-and-swap that claims it, so a taker that loses has read something stale and drops it.
//!
//! * only the owner writes `tail` and the entries, with `Release` on `tail`
//! * an entry is not overwritten before `head` has passed it: the owner reads `head` with `Acquire`
//! * a ring that no thief can see (`sole`) is taken from without a compare-and-swap
//!
//! It is much longer than Go's: whoever spawns some thousands of threads and then waits for them would else
//! push most of them through the shared list, whose links lie in the records, cold in the processor's cache.
//! What is moved at once, by a theft or when the ring is full, is [`MOVE`] entries at most.

use crate::prim::{AtomicPtr, AtomicU32, Ordering};

/// Entries of a worker's ring; more go to the shared list.
pub(crate) const SIZE: usize = 16 << 10;

/// Entries that are moved out of a ring at once: the half, and no more than this.
const MOVE: usize = 128;

/// See the module's documentation. `N` is a power of two.
pub(crate) struct Ring<T, const N: usize = SIZE> {
    head: AtomicU32,
    tail: AtomicU32,
    entries: [AtomicPtr<T>; N],
}

impl<T, const N: usize> Ring<T, N> {
    const MASK: u32 = {
        assert!(N.is_power_of_two());
        N as u32 - 1
    };

    /// Entries that are moved at once when the ring is full.
    pub(crate) const SPILL: usize = if N / 2 < MOVE { N / 2 } else { MOVE };

    /// The empty ring in memory that is all zero.
    ///
    /// # Safety
    /// `at` is aligned, has room for a ring, is nobody else's, and is never freed.
    #[cfg(not(loom))]
    pub(crate) unsafe fn zeroed(at: *mut u8) -> &'static Ring<T, N> {
        // SAFETY: the caller's promise; indices of zero and null entries are an empty ring.
        unsafe { &*at.cast::<Ring<T, N>>() }
    }

    /// An empty ring whose indices have come to `index`.
    #[cfg(test)]
    pub(crate) fn starting_at(index: u32) -> Ring<T, N> {
        Ring {
            head: AtomicU32::new(index),
            tail: AtomicU32::new(index),
            entries: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
        }
    }

    /// How many entries there are; exact for the owner when nobody steals.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        let head = self.head.load(Ordering::Relaxed);
        self.tail.load(Ordering::Relaxed).wrapping_sub(head) as usize
    }

    /// Owner only: the entry that is likely to be taken next. A hint.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<*const T> {
        let head = self.head.load(Ordering::Relaxed);
        if head == self.tail.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.entries[(head & Self::MASK) as usize].load(Ordering::Relaxed))
    }

    /// Owner only: appends, or gives the entry back if the ring is full.
    #[inline(always)]
    pub(crate) fn push(&self, entry: *const T) -> Result<(), *const T> {
        let tail = self.tail.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Acquire);
        if tail.wrapping_sub(head) as usize >= N {
            return Err(entry);
        }
        self.entries[(tail & Self::MASK) as usize].store(entry.cast_mut(), Ordering::Relaxed);
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Owner only: takes the oldest entry. `sole` says that nobody ever steals from this ring.
    #[inline(always)]
    pub(crate) fn pop(&self, sole: bool) -> Option<*const T> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == self.tail.load(Ordering::Relaxed) {
                return None;
            }
            let entry = self.entries[(head & Self::MASK) as usize].load(Ordering::Relaxed);
            let next = head.wrapping_add(1);
            if sole {
                self.head.store(next, Ordering::Relaxed);
                return Some(entry);
            }
            match self.head.compare_exchange_weak(head, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(entry),
                Err(now) => head = now,
            }
        }
    }

    /// Thief: moves half of the entries (rounded up, [`MOVE`] at most) to `to`, which is the thief's own and empty.
    /// Returns how many came.
    pub(crate) fn steal_into(&self, to: &Ring<T, N>) -> usize {
        loop {
            let head = self.head.load(Ordering::Acquire);
            let tail = self.tail.load(Ordering::Acquire);
            let there = tail.wrapping_sub(head) as usize;
            if there == 0 {
                return 0;
            }
            if there > N {
                continue; // head moved between the two loads
            }
            let n = there.div_ceil(2).min(MOVE);
            let base = to.tail.load(Ordering::Relaxed);
            let room = N - base.wrapping_sub(to.head.load(Ordering::Acquire)) as usize;
            let n = n.min(room);
            for i in 0..n as u32 {
                let entry = self.entries[(head.wrapping_add(i) & Self::MASK) as usize]
                    .load(Ordering::Relaxed);
                to.entries[(base.wrapping_add(i) & Self::MASK) as usize]
                    .store(entry, Ordering::Relaxed);
            }
            let next = head.wrapping_add(n as u32);
            if self.head.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                to.tail.store(base.wrapping_add(n as u32), Ordering::Release);
                return n;
            }
        }
    }

    /// Drops all entries: in a fork child, where their threads do not exist.
    pub(crate) fn clear(&self) {
        let tail = self.tail.load(Ordering::Relaxed);
        self.head.store(tail, Ordering::Relaxed);
    }
}
