//! Where a selected receive leaves its message until its owner comes for it, whose type `Select` does not know.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::alloc;

/// Words that are kept without an allocation.
const INLINE: usize = 4;

/// Room for one message of a type known at its making. What is in it is not dropped with it.
#[derive(Debug)]
pub(super) struct Place {
    inline: UnsafeCell<MaybeUninit<[usize; INLINE]>>,
    /// For larger ones.
    outside: *mut u8,
    /// `None`: no room has been made yet.
    layout: Option<Layout>,
}

impl Place {
    /// No room.
    pub(super) const fn none() -> Place {
        Place {
            inline: UnsafeCell::new(MaybeUninit::uninit()),
            outside: ptr::null_mut(),
            layout: None,
        }
    }

    fn fits(layout: Layout) -> bool {
        layout.size() <= size_of::<[usize; INLINE]>() && layout.align() <= align_of::<usize>()
    }

    /// Room for a `T`.
    pub(super) fn of<T>() -> Place {
        let layout = Layout::new::<T>();
        let mut place = Place::none();
        place.layout = Some(layout);
        if !Place::fits(layout) {
            place.outside = match layout.size() {
                0 => ptr::without_provenance_mut(layout.align()),
                // SAFETY: the size is not zero.
                _ => unsafe { alloc::alloc(layout) },
            };
            if place.outside.is_null() {
                alloc::handle_alloc_error(layout);
            }
        }
        place
    }

    pub(super) fn is_made(&self) -> bool {
        self.layout.is_some()
    }

    /// Where the message is. Right until the place is moved.
    pub(super) fn ptr(&self) -> NonNull<()> {
        let at = if self.outside.is_null() { self.inline.get().cast() } else { self.outside };
        // SAFETY: neither is null.
        unsafe { NonNull::new_unchecked(at.cast()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(layout) = self.layout
            && !Place::fits(layout)
            && layout.size() != 0
        {
            // SAFETY: allocated with this layout.
            unsafe { alloc::dealloc(self.outside, layout) };
        }
    }
}
