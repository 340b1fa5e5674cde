//! Carving slots out of large reservations.

use super::Layout;
use crate::error::Error;
use crate::sys::memory::{self, AT_ONCE};

/// Slots reserved at a time. Address space is free; mappings are not (vm.max_map_count).
const SLOTS: usize = 256;
/// Bytes of address space reserved at a time, at most.
const MOST: usize = 1 << 30;

/// Fresh slots side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// Lower end of the first.
    pub base: usize,
    /// Its number, which gives the colour; the others' follow.
    pub number: usize,
    pub slots: usize,
}

/// The rest of the last reservation of one layout.
#[derive(Debug)]
pub(super) struct Carver {
    next: usize,
    left: usize,
    /// Slots carved so far.
    number: usize,
    /// So many are carved next: the more there are, the more at a time. Many are cheaper than one by one, few
    /// are not paid for without need.
    step: usize,
}

impl Carver {
    pub(super) const fn new() -> Carver {
        Carver { next: 0, left: 0, number: 0, step: 1 }
    }

    /// Memory is short: begins again with one slot at a time.
    pub(super) fn go_slow(&mut self) {
        self.step = 1;
    }

    /// Some fresh slots, `most` at most. What carving them takes is asked of `expect` first, for each.
    pub(super) fn carve(
        &mut self,
        layout: &Layout,
        most: usize,
        mut expect: impl FnMut() -> Result<(), Error>,
    ) -> Result<Stretch, Error> {
        if self.left == 0 {
            let n = (MOST / layout.stride).clamp(1, SLOTS);
            let base = memory::reserve(n * layout.stride)
                .or_else(|_| memory::reserve(layout.stride).inspect(|_| self.left = 1))
                .map_err(|e| Error::os("no memory for a thread's stack", e))?;
            self.next = base as usize;
            self.left = if self.left == 1 { 1 } else { n };
        }
        let slots = self.step.min(self.left).min(most);
        for _ in 0..slots {
            expect()?;
        }
        let stretch = Stretch { base: self.next, number: self.number, slots };
        self.next += slots * layout.stride;
        self.left -= slots;
        self.number += slots;
        self.step = (self.step + 1).min(AT_ONCE);
        Ok(stretch)
    }
}
