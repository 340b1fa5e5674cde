//! An intrusive first-in first-out list.

use super::Linked;
use core::ptr;

/// The list; its owner locks it.
pub(crate) struct List<T> {
    head: *const T,
    tail: *const T,
    len: usize,
}

// SAFETY: the list owns the entries that stand in it.
unsafe impl<T> Send for List<T> {}

impl<T: Linked> List<T> {
    pub(crate) const fn new() -> List<T> {
        List { head: ptr::null(), tail: ptr::null(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends `entry`.
    ///
    /// # Safety
    /// The entry stands in no list and lives until it has been taken out.
    #[inline]
    pub(crate) unsafe fn push(&mut self, entry: *const T) {
        // SAFETY: the caller's promise; the tail is an entry of this list.
        unsafe {
            (*entry).link().set(ptr::null());
            if self.tail.is_null() {
                self.head = entry;
            } else {
                (*self.tail).link().set(entry);
            }
        }
        self.tail = entry;
        self.len += 1;
    }

    /// Puts `entry` before all others.
    ///
    /// # Safety
    /// As [`push`](List::push).
    pub(crate) unsafe fn push_front(&mut self, entry: *const T) {
        // SAFETY: the caller's promise.
        unsafe { (*entry).link().set(self.head) };
        self.head = entry;
        if self.tail.is_null() {
            self.tail = entry;
        }
        self.len += 1;
    }

    /// Takes the oldest entry out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<*const T> {
        let entry = self.head;
        if entry.is_null() {
            return None;
        }
        // SAFETY: an entry of this list, alive as `push` demands.
        self.head = unsafe { (*entry).link().get() };
        if self.head.is_null() {
            self.tail = ptr::null();
        }
        self.len -= 1;
        Some(entry)
    }
}
