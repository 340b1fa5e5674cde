//! Carving slots out of large reservations.

use super::Layout;
use crate::error::Error;
use crate::sys::memory;

/// Slots reserved at a time. Address space is free; mappings are not (vm.max_map_count).
const SLOTS: usize = 256;
/// Bytes of address space reserved at a time, at most.
const MOST: usize = 1 << 30;

/// The rest of the last reservation of one layout.
#[derive(Debug)]
pub(super) struct Carver {
    next: usize,
    left: usize,
    /// Slots carved so far; gives the colour.
    number: usize,
}

impl Carver {
    pub(super) const fn new() -> Carver {
        Carver { next: 0, left: 0, number: 0 }
    }

    /// The base and number of a fresh slot.
    pub(super) fn carve(&mut self, layout: &Layout) -> Result<(usize, usize), Error> {
        if self.left == 0 {
            let n = (MOST / layout.stride).clamp(1, SLOTS);
            let base = memory::reserve(n * layout.stride)
                .or_else(|_| memory::reserve(layout.stride).inspect(|_| self.left = 1))
                .map_err(|e| Error::os("no memory for a thread's stack", e))?;
            self.next = base as usize;
            self.left = if self.left == 1 { 1 } else { n };
        }
        let slot = (self.next, self.number);
        self.next += layout.stride;
        self.left -= 1;
        self.number += 1;
        Ok(slot)
    }
}
