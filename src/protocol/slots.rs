//! Keys that signal handlers leave for later, each of some thing whose state they have changed.
//!
//! 1. the handler changes the state, puts the key into a slot - a read-modify-write, also where the key is
//!    already - and then says that there is something ([`Slots::leave`])
//! 2. whoever comes by takes that word back, then the keys out of the slots ([`Slots::take`]), and acts on what it
//!    finds in the states
//!
//! Handlers nest and run on many kernel threads at once; so may step 2. A key that is left after its slot has been
//! looked at is announced after, so somebody comes once more. Two handlers with one key share a slot: whoever empties it
//! has seen both changes, since each of them wrote to the slot after its change.
#![forbid(unsafe_code)]

use crate::prim::{AtomicBool, AtomicUsize, Ordering};

/// See the module's documentation.
pub(crate) struct Slots<const N: usize> {
    keys: [AtomicUsize; N],
    /// Some slot is in use, or was too much.
    any: AtomicBool,
    /// The slots did not suffice.
    full: AtomicBool,
}

impl<const N: usize> Slots<N> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Slots<N> {
        Slots {
            keys: [const { AtomicUsize::new(0) }; N],
            any: AtomicBool::new(false),
            full: AtomicBool::new(false),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Slots<N> {
        Slots {
            keys: core::array::from_fn(|_| AtomicUsize::new(0)),
            any: AtomicBool::new(false),
            full: AtomicBool::new(false),
        }
    }

    /// Step 1; `key` is not zero. Async-signal-safe.
    pub(crate) fn leave(&self, key: usize) {
        let put = |slot: &AtomicUsize| {
            let mut now = slot.load(Ordering::Relaxed);
            while now == 0 || now == key {
                let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
                match slot.compare_exchange(now, key, ok, failed) {
                    Ok(_) => return true,
                    Err(other) => now = other,
                }
            }
            false
        };
        if !self.keys.iter().any(put) {
            self.full.swap(true, Ordering::AcqRel);
        }
        self.any.swap(true, Ordering::AcqRel);
    }

    /// Step 2: calls `each` with the keys; true if some could not be kept: all there are may be meant.
    #[must_use]
    #[inline]
    pub(crate) fn take(&self, each: impl FnMut(usize)) -> bool {
        self.any.load(Ordering::Relaxed) && self.take_some(each)
    }

    #[cold]
    fn take_some(&self, mut each: impl FnMut(usize)) -> bool {
        if !self.any.swap(false, Ordering::AcqRel) {
            return false;
        }
        for slot in &self.keys {
            let key = slot.swap(0, Ordering::AcqRel);
            if key != 0 {
                each(key);
            }
        }
        self.full.swap(false, Ordering::AcqRel)
    }

    /// Forgets them all.
    pub(crate) fn clear(&self) {
        let _full = self.take(|_| {});
    }
}
