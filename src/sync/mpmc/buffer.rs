//! Messages that nobody has taken yet: a ring for bounded channels, a list of blocks for unbounded ones.
//!
//! Both are touched under the channel's lock, with preemption off, where nothing may be allocated or freed. A ring
//! is allocated with its channel. A list says that it [`needs a block`](Buffer::is_short), which its caller makes with
//! the lock let go of; of the blocks that have been emptied it keeps one, and hands out the others to be freed later.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::alloc;

/// See the module's documentation.
#[derive(Debug)]
pub(super) enum Buffer<T> {
    Ring { slots: Box<[MaybeUninit<T>]>, head: usize, len: usize },
    List(List<T>),
}

impl<T> Buffer<T> {
    pub(super) fn unbounded() -> Buffer<T> {
        Buffer::List(List::new())
    }

    /// Panics if that many do not fit into memory.
    pub(super) fn bounded(cap: usize) -> Buffer<T> {
        Buffer::Ring { slots: Box::new_uninit_slice(cap), head: 0, len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Buffer::Ring { len, .. } => *len,
            Buffer::List(list) => list.len,
        }
    }

    /// A list without room for another message: give it a block.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        match self {
            Buffer::Ring { .. } => false,
            Buffer::List(list) => list.is_short(),
        }
    }

    pub(super) fn give(&mut self, block: Block<T>) {
        if let Buffer::List(list) = self {
            list.retire(block.into_raw());
        }
    }

    /// A list's blocks that are to be freed, once nothing is locked.
    #[inline]
    pub(super) fn take_dead(&mut self) -> Dead<T> {
        match self {
            Buffer::Ring { .. } => Dead(ptr::null_mut()),
            Buffer::List(list) => Dead(core::mem::replace(&mut list.dead, ptr::null_mut())),
        }
    }

    /// Moves the message at `from` in.
    ///
    /// # Safety
    /// It is a message, and the caller's no longer. A ring is not full, a list not short.
    #[inline]
    pub(super) unsafe fn push(&mut self, from: *const T) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Buffer::Ring { slots, head, len } => {
                    let end = *head + *len;
                    let at = if end < slots.len() { end } else { end - slots.len() };
                    debug_assert!(*len < slots.len());
                    ptr::copy_nonoverlapping(from, slots.as_mut_ptr().add(at).cast(), 1);
                    *len += 1;
                }
                Buffer::List(list) => list.push(from),
            }
        }
    }

    /// Moves the oldest message out to `to`. False if there is none.
    ///
    /// # Safety
    /// `to` has room for a message.
    #[inline]
    pub(super) unsafe fn pop(&mut self, to: *mut T) -> bool {
        // SAFETY: the caller's promise; what is between head and end has been pushed.
        unsafe {
            match self {
                Buffer::Ring { len: 0, .. } => return false,
                Buffer::Ring { slots, head, len } => {
                    ptr::copy_nonoverlapping(slots.as_ptr().add(*head).cast(), to, 1);
                    *head = if *head + 1 < slots.len() { *head + 1 } else { 0 };
                    *len -= 1;
                }
                Buffer::List(list) => return list.pop(to),
            }
        }
        true
    }

    fn drop_one(&mut self) -> bool {
        let mut message = MaybeUninit::<T>::uninit();
        // SAFETY: popped, so it is the caller's.
        unsafe {
            let popped = self.pop(message.as_mut_ptr());
            if popped {
                message.assume_init_drop();
            }
            popped
        }
    }
}

/// Drops the messages in order, never under a lock. If one panics the rest of them leak, as they do in std: a second
/// panic would end the process.
impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        while self.drop_one() {}
    }
}

/// A list of blocks.
#[derive(Debug)]
pub(super) struct List<T> {
    head: *mut Header<T>,
    tail: *mut Header<T>,
    head_at: usize,
    tail_at: usize,
    len: usize,
    /// An empty one, for the next push that needs it.
    spare: *mut Header<T>,
    /// Empty ones that are one too many.
    dead: *mut Header<T>,
}

/// The beginning of a block; its slots follow.
#[repr(C)]
#[derive(Debug)]
struct Header<T> {
    next: *mut Header<T>,
    slots: [MaybeUninit<T>; 0],
}

/// A block of its own, empty.
#[derive(Debug)]
pub(super) struct Block<T>(NonNull<Header<T>>);

/// Blocks that are to be freed: dropped with preemption on.
#[derive(Debug)]
pub(super) struct Dead<T>(*mut Header<T>);

impl<T> Block<T> {
    /// Messages in a block: a few KiB of them.
    const SLOTS: usize = match 4096 / if size_of::<T>() == 0 { 1 } else { size_of::<T>() } {
        0 => 1,
        1..=63 => 4096 / size_of::<T>(),
        _ => 63,
    };

    fn layout() -> Layout {
        let slots = Layout::array::<T>(Self::SLOTS).expect("a message fits into memory");
        let (layout, at) = Layout::new::<Header<T>>().extend(slots).expect("a block fits");
        debug_assert_eq!(at, core::mem::offset_of!(Header<T>, slots));
        layout.pad_to_align()
    }

    pub(super) fn new() -> Block<T> {
        let layout = Self::layout();
        // SAFETY: the size is not zero: there is a header.
        let block = unsafe { alloc::alloc(layout) }.cast::<Header<T>>();
        let Some(block) = NonNull::new(block) else { alloc::handle_alloc_error(layout) };
        // SAFETY: just allocated.
        unsafe { (&raw mut (*block.as_ptr()).next).write(ptr::null_mut()) };
        Block(block)
    }

    fn into_raw(self) -> *mut Header<T> {
        core::mem::ManuallyDrop::new(self).0.as_ptr()
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and this is its owner.
        unsafe { alloc::dealloc(self.0.as_ptr().cast(), Self::layout()) };
    }
}

impl<T> Drop for Dead<T> {
    #[inline]
    fn drop(&mut self) {
        while let Some(block) = NonNull::new(self.0) {
            // SAFETY: a chain of blocks that belongs to this value.
            self.0 = unsafe { (*block.as_ptr()).next };
            drop(Block(block));
        }
    }
}

/// # Safety
/// `i` is below [`Block::SLOTS`], and the block lives.
#[inline]
unsafe fn slot<T>(block: *mut Header<T>, i: usize) -> *mut T {
    // SAFETY: the caller's promise; the slots follow the header in the same allocation.
    unsafe { (&raw mut (*block).slots).cast::<T>().add(i) }
}

impl<T> List<T> {
    fn new() -> List<T> {
        let none = ptr::null_mut();
        List { head: none, tail: none, head_at: 0, tail_at: 0, len: 0, spare: none, dead: none }
    }

    #[inline]
    fn is_short(&self) -> bool {
        (self.tail.is_null() || self.tail_at == Block::<T>::SLOTS) && self.spare.is_null()
    }

    /// Keeps an empty block.
    fn retire(&mut self, block: *mut Header<T>) {
        let list = if self.spare.is_null() { &mut self.spare } else { &mut self.dead };
        // SAFETY: the block is this list's.
        unsafe { (*block).next = *list };
        *list = block;
    }

    /// # Safety
    /// As [`Buffer::push`].
    #[inline]
    unsafe fn push(&mut self, from: *const T) {
        // SAFETY: the caller's promise; blocks from head to tail are this list's.
        unsafe {
            if self.tail.is_null() || self.tail_at == Block::<T>::SLOTS {
                let block = core::mem::replace(&mut self.spare, ptr::null_mut());
                debug_assert!(!block.is_null());
                (*block).next = ptr::null_mut();
                match self.tail.as_mut() {
                    Some(tail) => tail.next = block,
                    None => self.head = block,
                }
                (self.tail, self.tail_at) = (block, 0);
            }
            ptr::copy_nonoverlapping(from, slot(self.tail, self.tail_at), 1);
        }
        self.tail_at += 1;
        self.len += 1;
    }

    /// # Safety
    /// As [`Buffer::pop`].
    #[inline]
    unsafe fn pop(&mut self, to: *mut T) -> bool {
        if self.len == 0 {
            return false;
        }
        // SAFETY: as in `push`; there is a message, and it is in the head block.
        unsafe { ptr::copy_nonoverlapping(slot(self.head, self.head_at), to, 1) };
        self.head_at += 1;
        self.len -= 1;
        if self.len == 0 {
            // There is one block, and it can be filled from its beginning, which is in the cache.
            debug_assert!(ptr::eq(self.head, self.tail));
            (self.head_at, self.tail_at) = (0, 0);
        } else if self.head_at == Block::<T>::SLOTS {
            let empty = self.head;
            // SAFETY: more messages are there, so another block is.
            self.head = unsafe { (*empty).next };
            self.head_at = 0;
            self.retire(empty);
        }
        true
    }
}

/// The blocks; the messages have been dropped by the buffer.
impl<T> Drop for List<T> {
    fn drop(&mut self) {
        drop((Dead(self.head), Dead(self.spare), Dead(self.dead)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::rc::Rc;

    /// Against a deque, for messages of several sizes; and each is dropped once.
    fn as_a_deque<T>(mut make: impl FnMut(usize) -> T, number: impl Fn(&T) -> usize) {
        for mut buffer in [Buffer::bounded(100), Buffer::unbounded()] {
            let (mut deque, mut s, mut next) = (VecDeque::new(), 1u64, 0);
            for round in 0..20_000 {
                s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // Some more in than out, then the other way round.
                let into = (s >> 33) % 8 < if round / 500 % 2 == 0 { 5 } else { 3 };
                // SAFETY: room is looked for before; what is popped is owned.
                unsafe {
                    if into && deque.len() < 100 {
                        if buffer.is_short() {
                            buffer.give(Block::new());
                        }
                        let message = core::mem::ManuallyDrop::new(make(next));
                        buffer.push(&raw const *message);
                        deque.push_back(next);
                        next += 1;
                    } else {
                        let mut to = MaybeUninit::uninit();
                        let popped = buffer.pop(to.as_mut_ptr());
                        assert_eq!(popped.then(|| number(&to.assume_init())), deque.pop_front());
                    }
                }
                assert_eq!(buffer.len(), deque.len());
                if round % 3 == 0 {
                    drop(buffer.take_dead());
                }
            }
        }
    }

    #[test]
    fn both_do_what_a_deque_does() {
        as_a_deque(|n| n, |n| *n);
        as_a_deque(|n| [n; 100], |a| a[99]);
        as_a_deque(|n| [n; 1000], |a| a[999]);
        as_a_deque(
            |n| [n as u8, (n >> 8) as u8, (n >> 16) as u8],
            |a| usize::from(a[0]) | usize::from(a[1]) << 8 | usize::from(a[2]) << 16,
        );
        let count = Rc::new(());
        as_a_deque(|n| (n, Rc::clone(&count)), |m| m.0);
        assert_eq!(Rc::strong_count(&count), 1);
    }

    #[test]
    fn messages_without_a_size() {
        let mut buffer = Buffer::<()>::unbounded();
        for _ in 0..200 {
            if buffer.is_short() {
                buffer.give(Block::new());
            }
            // SAFETY: as above.
            unsafe { buffer.push(&()) };
        }
        // SAFETY: as above.
        assert_eq!((0..300).filter(|_| unsafe { buffer.pop(&mut ()) }).count(), 200);
    }
}
