//! Reserving address space for slots, guard pages, and page sizes.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// madvise(2) advice that makes pages fault without splitting the mapping (Linux 6.13).
const MADV_GUARD_INSTALL: i32 = 102;
/// madvise(2) advice that populates page tables writable (Linux 5.14).
const MADV_POPULATE_WRITE: i32 = 23;

/// The calling process as a file descriptor (Linux 6.15).
const PIDFD_SELF: i32 = -10001;

/// Bytes in a page.
pub(crate) const PAGE: usize = 4096;

/// Ranges that one call can be about.
pub(crate) const AT_ONCE: usize = 64;

/// Up to [`AT_ONCE`] ranges of memory: {start, length}, page-aligned.
pub(crate) struct Ranges {
    vec: [libc::iovec; AT_ONCE],
    len: usize,
}

impl Ranges {
    /// The first [`AT_ONCE`] of them.
    pub(crate) fn new(ranges: impl Iterator<Item = (usize, usize)>) -> Ranges {
        const NONE: libc::iovec = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let mut all = Ranges { vec: [NONE; AT_ONCE], len: 0 };
        for ((start, len), to) in ranges.zip(&mut all.vec) {
            *to = libc::iovec { iov_base: start as *mut libc::c_void, iov_len: len };
            all.len += 1;
        }
        all
    }

    pub(crate) fn one(start: usize, len: usize) -> Ranges {
        Ranges::new(core::iter::once((start, len)))
    }

    /// Gives the advice for as many as the kernel does in one call, and returns the others: all of them where it
    /// cannot (process_madvise(2) does this for one's own process since Linux 6.13), or where there is but one.
    ///
    /// # Safety
    /// As madvise(2) with that advice.
    unsafe fn advise(&self, advice: i32) -> &[libc::iovec] {
        static CANNOT: AtomicBool = AtomicBool::new(false);
        let all = &self.vec[..self.len];
        if all.len() < 2 || CANNOT.load(Ordering::Relaxed) {
            return all;
        }
        // SAFETY: the caller's promise; a live array.
        let bytes = unsafe {
            libc::syscall(libc::SYS_process_madvise, PIDFD_SELF, all.as_ptr(), all.len(), advice, 0)
        };
        let Ok(mut bytes) = usize::try_from(bytes) else {
            // Also when only this advice is refused: asking singly tells why, and costs little.
            CANNOT.store(true, Ordering::Relaxed);
            return all;
        };
        let done = all.iter().take_while(|r| {
            let whole = bytes >= r.iov_len;
            bytes = bytes.saturating_sub(r.iov_len);
            whole
        });
        &all[done.count()..]
    }
}

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

/// Makes the pages in the ranges fault on any access.
///
/// # Safety
/// The ranges belong to a reservation of ours and hold nothing.
pub(crate) unsafe fn guard(ranges: &Ranges) -> io::Result<()> {
    // SAFETY: as required of the caller.
    unsafe {
        let mut rest = &ranges.vec[..ranges.len];
        if GUARD_KIND.load(Ordering::Relaxed) != 2 {
            rest = ranges.advise(MADV_GUARD_INSTALL);
            if rest.len() < ranges.len {
                GUARD_KIND.store(1, Ordering::Relaxed);
            }
        }
        rest.iter().try_for_each(|r| guard_one(r))
    }
}

/// # Safety
/// As [`guard`].
unsafe fn guard_one(range: &libc::iovec) -> io::Result<()> {
    let (start, len) = (range.iov_base, range.iov_len);
    if GUARD_KIND.load(Ordering::Relaxed) != 2 {
        // SAFETY: as required of the caller.
        if unsafe { libc::madvise(start, len, MADV_GUARD_INSTALL) } == 0 {
            GUARD_KIND.store(1, Ordering::Relaxed);
            return Ok(());
        }
        // EINVAL: unknown to this kernel, or the memory is locked (mlockall). mprotect serves both,
        // at the price of a mapping each.
    }
    // SAFETY: as required of the caller.
    if unsafe { libc::mprotect(start, len, libc::PROT_NONE) } == 0 {
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
/// The ranges belong to a reservation of ours.
pub(crate) unsafe fn populate(ranges: &Ranges) {
    // SAFETY: as required of the caller.
    unsafe {
        for r in ranges.advise(MADV_POPULATE_WRITE) {
            libc::madvise(r.iov_base, r.iov_len, MADV_POPULATE_WRITE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a system call can read the byte at `at`.
    fn readable(at: usize) -> bool {
        let (_reader, writer) = nix::unistd::pipe().unwrap();
        // SAFETY: the kernel checks the address.
        unsafe { libc::write(std::os::fd::AsRawFd::as_raw_fd(&writer), at as *const _, 1) == 1 }
    }

    #[test]
    fn many_guards_are_made_at_once_each_where_it_was_asked_for() {
        const STRIDE: usize = 3 * PAGE;
        for n in [1, 2, AT_ONCE] {
            let base = reserve(n * STRIDE).unwrap() as usize;
            let pages = |nth: usize| (0..n).map(move |i| (base + i * STRIDE + nth * PAGE, PAGE));
            // SAFETY: pages of a fresh reservation.
            unsafe {
                guard(&Ranges::new(pages(1))).unwrap();
                populate(&Ranges::new(pages(2)));
            }
            for i in 0..3 * n {
                assert_eq!(readable(base + i * PAGE), i % 3 != 1, "page {i} of {n} slots");
            }
        }
    }

    #[test]
    fn what_one_call_has_not_done_is_done_singly() {
        let base = reserve(4 * PAGE).unwrap() as usize;
        // SAFETY: the last page of a fresh reservation. No guard can be installed in locked memory.
        assert_eq!(unsafe { libc::mlock((base + 3 * PAGE) as *const _, PAGE) }, 0);
        let ranges = Ranges::new([0, 1, 3].map(|i| (base + i * PAGE, PAGE)).into_iter());
        // SAFETY: pages of the reservation.
        unsafe { guard(&ranges) }.unwrap();
        let seen = [0, 1, 2, 3].map(|i| readable(base + i * PAGE));
        assert_eq!(seen, [false, false, true, false]);
    }
}
