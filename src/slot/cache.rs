//! Free records and stacks: lists in batches, and a worker's cache of them.
//!
//! A worker trades whole batches with the pool, so that the common spawn and join touch nothing shared.
//! The pool's lists are intrusive: no allocation, preemption may be off.

use crate::tcb::Record;
use crate::tcb::stack::Stack;
use core::cell::Cell;
use core::ptr;

/// Entries in a batch.
pub(crate) const BATCH: u32 = 64;

/// Something that is free, and stands in a list.
pub(crate) trait Free: Sized + 'static {
    /// Link to the next of the list.
    fn next(&self) -> &Cell<*const Self>;
    /// Link to the first of the next batch.
    fn batch(&self) -> &Cell<*const Self>;
    /// Up to a batch of the class.
    fn take_batch(class: u32) -> FreeList<Self>;
    /// Gives a full batch of the class back.
    fn give_batch(class: u32, batch: FreeList<Self>);
}

/// A list of free entries.
pub(crate) struct FreeList<T> {
    head: *const T,
    pub len: u32,
}

impl<T: Free> FreeList<T> {
    pub(crate) const fn new() -> FreeList<T> {
        FreeList { head: ptr::null(), len: 0 }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, entry: &'static T) {
        entry.next().set(self.head);
        self.head = entry;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<&'static T> {
        // SAFETY: the head is null or a free entry, which is never freed.
        let entry = unsafe { self.head.as_ref()? };
        self.head = entry.next().get();
        self.len -= 1;
        Some(entry)
    }
}

impl<T: Free> FreeList<T> {
    /// Takes up to `n` entries.
    pub(crate) fn take(&mut self, n: u32) -> FreeList<T> {
        let mut taken = FreeList::new();
        while taken.len < n {
            let Some(entry) = self.pop() else { break };
            taken.push(entry);
        }
        taken
    }
}

/// Full batches.
pub(crate) struct Batches<T>(*const T);

impl<T: Free> Batches<T> {
    pub(crate) const fn new() -> Batches<T> {
        Batches(ptr::null())
    }

    pub(crate) fn push(&mut self, batch: FreeList<T>) {
        debug_assert_eq!(batch.len, BATCH);
        // SAFETY: a full batch has a first entry, which is free.
        unsafe { (*batch.head).batch().set(self.0) };
        self.0 = batch.head;
    }

    pub(crate) fn pop(&mut self) -> Option<FreeList<T>> {
        // SAFETY: null or the first entry of a free batch.
        let first = unsafe { self.0.as_ref()? };
        self.0 = first.batch().get();
        Some(FreeList { head: first, len: BATCH })
    }
}

/// A worker's own free entries. They are kept as addresses, so that taking and giving one touches nothing of
/// it, and the oldest go first when there are too many: those on top are warm in the processor's cache.
pub(crate) struct Cache<T> {
    len: usize,
    entries: [*const T; 2 * BATCH as usize],
}

impl<T: Free> Cache<T> {
    pub(crate) const fn new() -> Cache<T> {
        Cache { len: 0, entries: [ptr::null(); 2 * BATCH as usize] }
    }

    /// The entry that was given last, if it is at hand.
    #[inline(always)]
    pub(crate) fn hot(&mut self) -> Option<&'static T> {
        self.len = self.len.checked_sub(1)?;
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
        let mut batch = T::take_batch(class);
        debug_assert!(self.len == 0 && batch.len <= BATCH);
        while let Some(entry) = batch.pop() {
            self.entries[self.len] = entry;
            self.len += 1;
        }
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
        let half = BATCH as usize;
        let mut batch = FreeList::new();
        for entry in &self.entries[..half] {
            // SAFETY: as in `hot`.
            batch.push(unsafe { &**entry });
        }
        T::give_batch(class, batch);
        self.entries.copy_within(half.., 0);
        self.len -= half;
    }
}

impl Free for Record {
    fn next(&self) -> &Cell<*const Record> {
        &self.next
    }

    fn batch(&self) -> &Cell<*const Record> {
        &self.target
    }

    fn take_batch(_: u32) -> FreeList<Record> {
        super::pool::take_records()
    }

    fn give_batch(_: u32, batch: FreeList<Record>) {
        super::pool::give_records(batch);
    }
}

impl Free for Stack {
    fn next(&self) -> &Cell<*const Stack> {
        &self.next
    }

    fn batch(&self) -> &Cell<*const Stack> {
        &self.batch
    }

    fn take_batch(class: u32) -> FreeList<Stack> {
        super::pool::take_stacks(class)
    }

    fn give_batch(class: u32, batch: FreeList<Stack>) {
        super::pool::give_stacks(class, batch);
    }
}
