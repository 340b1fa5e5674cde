//! Slots: where threads live. A slot is a stack with a guard page and a TLS block, in one stretch of memory
//! that is reserved lazily and never given back (invariant S1).
//!
//! ```text
//!   low                                                                              high
//!   | spare | guard | stack .................... | unwind buffer | static TLS | TCB | colour |
//!   |       |       |lo                       top|                            |fs           end
//! ```
//!
//! * `spare` is touched only if a thread is preempted where its stack has no room for the saved state.
//! * The stride between slots is an odd number of pages and the upper end is shifted by a colour, so
//!   that the hot lines of many threads do not fall into the same cache sets.
//! * What the runtime knows of a slot ([`Stack`]) and of a thread ([`Record`](crate::tcb::Record)) lies in slabs apart from it:
//!   spawning a thread touches no slot, and a finished one that nobody has joined holds none.
//!
//! Making a slot allocates (glibc's TLS vector), so it happens in thread context with preemption on;
//! taking one from the pool does not.
#![allow(unsafe_code)]

pub(crate) mod cache;
mod carve;
mod pile;
pub(crate) mod pool;
pub(crate) mod slab;

use crate::context::x86_64::Saved;
use crate::error::{Error, Kind};
use crate::sys::memory::{self, PAGE, Ranges};
use crate::sys::signal;
use crate::tcb::stack::{Stack, UNWIND_BUF};
use crate::tls::{self, block, glibc, hot};
use carve::Stretch;
use std::io;

/// Stack size of a thread when nothing else is asked for: std's, 2 MiB.
pub(crate) const DEFAULT_STACK: usize = 2 << 20;
/// The largest stack that can be asked for.
const MAX_STACK: usize = 1 << 36;
/// Different shifts of the upper end, in cache lines.
const COLOURS: usize = 24;
/// Stack that the runtime's own frames and a saved context may need at the worst moment.
const MIN_STACK: usize = 16 << 10;

/// Sizes of the parts of a slot of one stack size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Bytes from one slot to the next.
    pub stride: usize,
    /// Bytes of the spare area.
    pub spare: usize,
}

impl Layout {
    /// The layout of slots whose stacks have at least `stack` usable bytes.
    pub(crate) fn new(stack: usize) -> Result<Layout, Error> {
        let least = min_stack();
        if stack < least {
            return Err(Kind::StackTooSmall(stack, least).into());
        }
        if stack > MAX_STACK {
            return Err(Kind::StackTooLarge(stack, MAX_STACK).into());
        }
        let g = glibc::get()?;
        let upper = g.static_size + UNWIND_BUF + 64 * COLOURS + 128;
        let spare = spare_size();
        let pages = (spare + PAGE + stack + upper).div_ceil(PAGE);
        Ok(Layout { stride: (pages | 1) * PAGE, spare })
    }
}

/// The least stack: a signal frame of a program's own handler, and the runtime's frames.
pub(crate) fn min_stack() -> usize {
    (MIN_STACK + signal::min_signal_stack()).next_multiple_of(PAGE)
}

/// A saved context of the largest extended state, and room for the code that resumes it and a handler of the
/// program's that interrupts that code.
fn spare_size() -> usize {
    const RESUME_FRAMES: usize = 8192;
    let below = RESUME_FRAMES + signal::min_signal_stack();
    (size_of::<Saved>() + crate::context::xsave_size() + 128 + below).next_multiple_of(PAGE)
}

/// Guards fresh slots, and faults in what each will touch in any case: a call for many is cheaper than many calls,
/// and one call cheaper than two faults.
///
/// # Safety
/// The stretch is ours, zeroed, used by nobody, never freed.
unsafe fn protect(stretch: &Stretch, layout: &Layout) -> Result<(), Error> {
    let places = || (0..stretch.slots).map(|i| stretch.place(i, layout));
    let no_guard = |e: io::Error| Error::os("cannot make a stack's guard page", e);
    // SAFETY: pages of the slots that hold nothing.
    unsafe {
        memory::guard(&Ranges::new(places().map(|p| (p.guard, PAGE)))).map_err(no_guard)?;
        memory::populate(&Ranges::new(places().map(|p| p.hot_pages())));
    }
    Ok(())
}

/// Makes a slot of a protected stretch.
///
/// # Safety
/// Nobody else makes it. Preemption is on.
unsafe fn make(place: Place, class: u32) -> Result<&'static Stack, Error> {
    // SAFETY: the caller's promise; anchors exist, so the template does.
    unsafe { block::make(glibc::known(), place.fs, place.lo, place.end - place.lo)? };
    // SAFETY: the block is complete.
    unsafe { place.describe(class) }
}

/// Makes the anchors: two slots, the first of their stretches, whose blocks glibc makes itself.
///
/// # Safety
/// As [`protect`], for both.
unsafe fn make_anchors(
    stretches: [Stretch; 2],
    layout: &Layout,
    class: u32,
) -> Result<[&'static Stack; 2], Error> {
    let g = glibc::known();
    for s in &stretches {
        // SAFETY: the caller's promise.
        unsafe { protect(s, layout)? };
    }
    let places = stretches.map(|s| s.place(0, layout));
    let stacks = [0, 1].map(|i: usize| (places[i].lo, places[i].end - places[i].lo));
    // SAFETY: the caller's promise.
    let made = unsafe { block::make_anchors(g, stacks)? };
    for (p, fs) in places.iter().zip(made) {
        if p.fs != fs {
            return Err(tls::harvest::misplaced(format!(
                "a block for the stack end {:#x} lies at {fs:#x}, not at {:#x}",
                p.end, p.fs
            )));
        }
    }
    // SAFETY: the blocks are complete and their kernel threads gone.
    unsafe { Ok([places[0].describe(class)?, places[1].describe(class)?]) }
}

impl Stretch {
    /// The parts of its slot number `i`.
    fn place(&self, i: usize, layout: &Layout) -> Place {
        Place::new(self.base + i * layout.stride, self.number + i, layout)
    }
}

/// Addresses of the parts of a slot.
struct Place {
    spare: usize,
    guard: usize,
    lo: usize,
    top: usize,
    fs: usize,
    end: usize,
}

impl Place {
    fn new(base: usize, number: usize, layout: &Layout) -> Place {
        let g = glibc::known();
        let colour = 64 * (number % COLOURS);
        let end = base + layout.stride - colour;
        // Where glibc puts a thread block at the end of a stack that it is given.
        let fs = (end - g.sizeof_pthread) & !(g.static_align - 1);
        let tls = fs - (g.static_size - g.sizeof_pthread).next_multiple_of(64);
        let top = (tls - UNWIND_BUF) & !63;
        let guard = base + layout.spare;
        Place { spare: base, guard, lo: guard + PAGE, top, fs, end }
    }

    /// The pages from below the stack's top to the slot's end: {start, length}.
    fn hot_pages(&self) -> (usize, usize) {
        let first = (self.top - 1024) & !(PAGE - 1);
        (first, (self.end - first).next_multiple_of(PAGE))
    }

    /// Describes the finished slot, and sets its hot words.
    ///
    /// # Safety
    /// The slot's block is complete; nobody else knows of it.
    unsafe fn describe(&self, class: u32) -> Result<&'static Stack, Error> {
        let stack = slab::stack()?;
        stack.fs.set(self.fs);
        stack.lo.set(self.lo);
        stack.above.set((self.fs - self.top) as u32);
        stack.below.set((self.guard - self.spare) as u32);
        stack.class.set(class as u16);
        // SAFETY: the block is live and nobody runs on it.
        unsafe {
            let words = hot::of(self.fs);
            (*words).off = 1;
            (*words).pending = 0;
        }
        Ok(stack)
    }
}
