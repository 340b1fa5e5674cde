//! Free entries that no worker holds: a pile of addresses.
//!
//! Giving an entry back must not fail and must not allocate, so the pile has room for every entry that there is:
//! whoever makes one asks for its place first ([`Pile::expect_one`]), where an error can still be told. The
//! addresses lie in blocks, apart from the entries, which are cold when they come back out of the pile: links in
//! them would be followed one cache miss at a time.

use super::slab;
use crate::error::Error;
use core::marker::PhantomData;
use core::ptr;

/// Addresses in a block, which is a page.
const ROOM: usize = 510;

#[repr(C)]
pub(super) struct Block {
    below: *mut Block,
    above: *mut Block,
    entries: [*const (); ROOM],
}

static_assertions::const_assert!(size_of::<Block>() == crate::sys::memory::PAGE);

/// See the module's documentation. Its owner locks it.
pub(super) struct Pile<T> {
    /// The block with the entry on top; null before the first entry is expected.
    top: *mut Block,
    /// Entries in it: none only in the lowest block.
    used: usize,
    highest: *mut Block,
    /// Places in all blocks, and how many of them are spoken for.
    places: usize,
    expected: usize,
    _entries: PhantomData<*const T>,
}

// SAFETY: the blocks are the pile's own, and so are the entries in it, which are free.
unsafe impl<T> Send for Pile<T> {}

impl<T: 'static> Pile<T> {
    pub(super) const fn new() -> Pile<T> {
        Pile {
            top: ptr::null_mut(),
            used: 0,
            highest: ptr::null_mut(),
            places: 0,
            expected: 0,
            _entries: PhantomData,
        }
    }

    /// One more entry is going to be made: sees to it that there will be room for it. Makes system calls only.
    pub(super) fn expect_one(&mut self) -> Result<(), Error> {
        if self.expected == self.places {
            let block = slab::block()?;
            // SAFETY: a fresh block; the highest is null or the pile's.
            unsafe {
                (*block).below = self.highest;
                match self.highest.as_mut() {
                    Some(highest) => highest.above = block,
                    None => self.top = block,
                }
            }
            self.highest = block;
            self.places += ROOM;
        }
        self.expected += 1;
        Ok(())
    }

    /// Puts an entry on top. One too many is given up: a fork child may still have one that the parent's pile
    /// had expected.
    pub(super) fn push(&mut self, entry: *const T) {
        // SAFETY: null or a block of the pile's.
        let Some(mut top) = (unsafe { self.top.as_mut() }) else { return };
        if self.used == ROOM {
            // SAFETY: as above.
            let Some(above) = (unsafe { top.above.as_mut() }) else { return };
            top = above;
            self.top = top;
            self.used = 0;
        }
        top.entries[self.used] = entry.cast();
        self.used += 1;
    }

    /// Takes the entry on top.
    pub(super) fn pop(&mut self) -> Option<&'static T> {
        if self.used == 0 {
            return None;
        }
        self.used -= 1;
        // SAFETY: a block with an entry; entries are never freed.
        unsafe {
            let entry = (*self.top).entries[self.used].cast::<T>();
            if self.used == 0 && !(*self.top).below.is_null() {
                self.top = (*self.top).below;
                self.used = ROOM;
            }
            Some(&*entry)
        }
    }

    /// Takes as many as there are and fit, the topmost last, and tells how many.
    pub(super) fn take(&mut self, to: &mut [*const T]) -> usize {
        let mut n = 0;
        while n < to.len()
            && let Some(entry) = self.pop()
        {
            to[n] = entry;
            n += 1;
        }
        to[..n].reverse();
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_last_comes_out_first_across_blocks() {
        static ENTRIES: [u8; 3 * ROOM] = [0; 3 * ROOM];
        let mut pile = Pile::<u8>::new();
        assert!(pile.pop().is_none());
        pile.push(&ENTRIES[0]);
        assert!(pile.pop().is_none(), "there was no place for it");
        for e in &ENTRIES {
            pile.expect_one().unwrap();
            pile.push(e);
        }
        for wanted in [1, ROOM - 1, ROOM, ROOM + 1, 3 * ROOM] {
            let mut taken = vec![ptr::null(); wanted];
            assert_eq!(pile.take(&mut taken), wanted);
            let expected = ENTRIES[3 * ROOM - wanted..].iter().map(core::ptr::from_ref);
            assert!(expected.eq(taken.iter().copied()));
            for e in &taken {
                pile.push(*e);
            }
        }
        let mut all = vec![ptr::null(); 4 * ROOM];
        assert_eq!(pile.take(&mut all), 3 * ROOM);
        assert!(pile.pop().is_none());
        pile.push(&ENTRIES[0]);
        assert!(core::ptr::eq(pile.pop().unwrap(), &ENTRIES[0]));
    }
}
