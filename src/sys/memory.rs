//! Reserving address space for slots, guard pages, and page sizes.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

/// madvise(2) advice that makes pages fault without splitting the mapping (Linux 6.13).
const MADV_GUARD_INSTALL: i32 = 102;
/// madvise(2) advice that populates page tables writable (Linux 5.14).
const MADV_POPULATE_WRITE: i32 = 23;

/// Bytes in a page.
pub(crate) const PAGE: usize = 4096;

/// Reserves `len` bytes of zeroed memory that costs nothing until touched, for ever.
///
/// No swap is reserved and no huge pages are used: a slot that touches two pages must not cost two
/// mebibytes.
pub(crate) fn reserve(len: usize) -> io::Result<*mut u8> {
    let mut map = memmap2::MmapOptions::new().len(len).no_reserve_swap().stack().map_anon()?;
    let base = map.as_mut_ptr();
    // Kernels before 6.7 ignore MAP_STACK here, so say it again; an error means no huge pages at all.
    let _ = map.advise(memmap2::Advice::NoHugePage);
    // Slots are never given back: other threads may hold their addresses (invariant S1).
    core::mem::forget(map);
    Ok(base)
}

/// How guard pages are made here: 0 not tried, 1 madvise, 2 mprotect.
static GUARD_KIND: AtomicU8 = AtomicU8::new(0);

/// Makes the pages at `addr` fault on any access.
///
/// # Safety
/// The range is page-aligned, belongs to a reservation of ours and holds nothing.
pub(crate) unsafe fn guard(addr: *mut u8, len: usize) -> io::Result<()> {
    if GUARD_KIND.load(Ordering::Relaxed) != 2 {
        // SAFETY: as required of the caller.
        if unsafe { libc::madvise(addr.cast(), len, MADV_GUARD_INSTALL) } == 0 {
            GUARD_KIND.store(1, Ordering::Relaxed);
            return Ok(());
        }
        // EINVAL: unknown to this kernel, or the memory is locked (mlockall). mprotect serves both,
        // at the price of a mapping each.
    }
    // SAFETY: as required of the caller.
    if unsafe { libc::mprotect(addr.cast(), len, libc::PROT_NONE) } == 0 {
        if GUARD_KIND.load(Ordering::Relaxed) == 0 {
            GUARD_KIND.store(2, Ordering::Relaxed);
        }
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Whether guard pages cost no mapping of their own here.
pub(crate) fn guard_by_madvise() -> bool {
    GUARD_KIND.load(Ordering::Relaxed) == 1
}

/// Faults the pages in at once; a failure only means that they fault one by one later.
///
/// # Safety
/// The range is page-aligned and belongs to a reservation of ours.
pub(crate) unsafe fn populate(addr: *mut u8, len: usize) {
    // SAFETY: as required of the caller.
    unsafe { libc::madvise(addr.cast(), len, MADV_POPULATE_WRITE) };
}
