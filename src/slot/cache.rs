//! A worker's own free records and stacks.
//!
//! A worker trades whole batches with the pool, so that the common spawn and join touch nothing shared. Entries
//! are kept and traded as addresses (here and in [`pile`](super::pile)): taking and giving one touches nothing
//! of it, and it is known early which are next.

use crate::context::x86_64::prefetch;
use crate::tcb::Record;
use crate::tcb::stack::Stack;
use core::ptr;

/// Entries that are traded at a time.
pub(crate) const BATCH: usize = 64;

/// As many addresses of free entries, of which the first so many count.
pub(crate) type Batch<T> = [*const T; BATCH];

/// Something that is taken and given back.
pub(crate) trait Free: Sized + 'static {
    /// Fills the batch with free entries of the class, and tells how many there were.
    fn take_batch(class: u32, batch: &mut Batch<Self>) -> usize;
    /// Gives a full batch of the class back.
    fn give_batch(class: u32, batch: &Batch<Self>);
    /// The entry will be taken soon.
    fn soon(entry: *const Self);
}

/// See the module's documentation. The oldest go back first when there are too many: those on top are warm in
/// the processor's cache.
pub(crate) struct Cache<T> {
    len: usize,
    entries: [*const T; 2 * BATCH],
}

impl<T: Free> Cache<T> {
    pub(crate) const fn new() -> Cache<T> {
        Cache { len: 0, entries: [ptr::null(); 2 * BATCH] }
    }

    /// The entry that was given last, if it is at hand.
    #[inline(always)]
    pub(crate) fn hot(&mut self) -> Option<&'static T> {
        /// So many entries ahead of its being taken an entry is looked up in memory.
        const AHEAD: usize = 2;
        self.len = self.len.checked_sub(1)?;
        if self.len >= AHEAD {
            T::soon(self.entries[self.len - AHEAD]);
        }
        // SAFETY: entries below `len` are free, and never freed.
        Some(unsafe { &*self.entries[self.len] })
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, class: u32) -> Option<&'static T> {
        self.hot().or_else(|| self.refill(class))
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self, class: u32) -> Option<&'static T> {
        let mut batch = [ptr::null(); BATCH];
        self.len = T::take_batch(class, &mut batch);
        self.entries[..BATCH].copy_from_slice(&batch);
        self.hot()
    }

    #[inline(always)]
    pub(crate) fn give(&mut self, class: u32, entry: &'static T) {
        if self.len == self.entries.len() {
            self.spill(class);
        }
        self.entries[self.len] = entry;
        self.len += 1;
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self, class: u32) {
        let (oldest, rest) = self.entries.split_at_mut(BATCH);
        let mut batch = [ptr::null(); BATCH];
        batch.copy_from_slice(oldest);
        T::give_batch(class, &batch);
        oldest.copy_from_slice(rest);
        self.len -= BATCH;
    }
}

impl Free for Record {
    fn take_batch(_: u32, batch: &mut Batch<Record>) -> usize {
        super::pool::take_records(batch)
    }

    fn give_batch(_: u32, batch: &Batch<Record>) {
        super::pool::give_records(batch);
    }

    #[inline(always)]
    fn soon(entry: *const Record) {
        prefetch(entry);
    }
}

impl Free for Stack {
    fn take_batch(class: u32, batch: &mut Batch<Stack>) -> usize {
        super::pool::take_stacks(class, batch)
    }

    fn give_batch(class: u32, batch: &Batch<Stack>) {
        super::pool::give_stacks(class, batch);
    }

    /// Its description is read when a thread starts on it, if one does: there may be a warmer one.
    #[inline(always)]
    fn soon(_: *const Stack) {}
}
