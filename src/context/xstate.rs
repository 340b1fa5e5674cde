//! The extended state (x87, SSE, AVX and whatever follows): its size and its validity.
//!
//! Sizes and offsets come from CPUID leaf 0xD, so that state which did not exist when this was
//! written (AMX tiles are 8 KiB) needs no change here. The facts are cached in atomics which
//! are filled in twice at worst: no lock, so that a signal handler may be the first to ask.
//!
//! Invariant: an area which [`check`] accepts does not make `xrstor` fault. The rules are those
//! of the Intel SDM, volume 1, section 13.8 ("Operation of XRSTOR"), for the standard format.

#![allow(unsafe_code)]

use core::arch::x86_64::{__cpuid, __cpuid_count, _fxsave64, _xgetbv};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// The legacy region: what FXSAVE writes.
pub(crate) const LEGACY_SIZE: usize = 512;
/// Where the XSAVE header begins.
pub(crate) const HEADER: usize = LEGACY_SIZE;
/// Legacy region and header: the least an XSAVE area has.
pub(crate) const MIN_SIZE: usize = HEADER + 64;
/// Alignment that XSAVE and XRSTOR ask for.
pub(crate) const ALIGN: usize = 64;
/// MXCSR after reset: all exceptions masked, round to nearest.
pub(crate) const MXCSR_DEFAULT: u32 = 0x1f80;
/// The x87 control word after FNINIT.
pub(crate) const X87_DEFAULT: u16 = 0x037f;
/// Where MXCSR lies in the legacy region.
pub(crate) const MXCSR: usize = core::mem::offset_of!(libc::_libc_fpstate, mxcsr);
/// State components 0 (x87) and 1 (SSE), which live in the legacy region.
pub(crate) const LEGACY_COMPONENTS: u64 = 0b11;
/// State component 9: the protection keys' rights. Its initial value is not "no restriction
/// as it is now" but "everything allowed", so it is never reset by us.
pub(crate) const PKRU: u64 = 1 << 9;

/// Why an XSAVE area was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XstateError {
    /// A bit of MXCSR is set that this CPU reserves.
    #[error("reserved bits of MXCSR are set")]
    Mxcsr,
    /// A state component is claimed which the CPU, the system or the frame does not have.
    #[error("unknown state components are claimed")]
    Components,
    /// The area is in the compacted format.
    #[error("the area is in the compacted format")]
    Compacted,
    /// Reserved bytes of the XSAVE header are not zero.
    #[error("reserved header bytes are set")]
    Reserved,
    /// The area ends before the last component it claims.
    #[error("the area is too short for the components it claims")]
    Truncated,
}

/// What CPUID and XGETBV said.
struct Facts {
    ready: AtomicBool,
    size: AtomicUsize,
    mask: AtomicU64,
    mxcsr_mask: AtomicU32,
    /// End of each component in the standard format; 0 if it does not exist.
    ends: [AtomicU32; 64],
}

static FACTS: Facts = Facts {
    ready: AtomicBool::new(false),
    size: AtomicUsize::new(0),
    mask: AtomicU64::new(0),
    mxcsr_mask: AtomicU32::new(0),
    ends: [const { AtomicU32::new(0) }; 64],
};

/// Bytes of an XSAVE area with all enabled components; 0 if there is no XSAVE.
#[inline]
pub(crate) fn size() -> usize {
    facts().size.load(Relaxed)
}

/// The components that the system enabled (XCR0).
#[inline]
pub(crate) fn mask() -> u64 {
    facts().mask.load(Relaxed)
}

/// The bits of MXCSR that may be set.
#[inline]
pub(crate) fn mxcsr_mask() -> u32 {
    facts().mxcsr_mask.load(Relaxed)
}

/// Bytes of a standard-format area that holds exactly the components in `components`.
pub(crate) fn extent(components: u64) -> usize {
    let mut end = MIN_SIZE;
    let mut left = components & !LEGACY_COMPONENTS;
    while left != 0 {
        let component = left.trailing_zeros() as usize & 63;
        end = end.max(facts().ends[component].load(Relaxed) as usize);
        left &= left - 1;
    }
    end
}

/// Checks an area of `len` bytes before it is loaded with the mask `components`.
///
/// Safe in signal handlers.
///
/// # Safety
/// `area` is aligned to 8 bytes and readable for `len` bytes, which is at least [`MIN_SIZE`].
pub(crate) unsafe fn check(
    area: *const u8,
    len: usize,
    components: u64,
) -> Result<(), XstateError> {
    // SAFETY: both are inside the first MIN_SIZE bytes, and aligned because `area` is.
    let (mxcsr, header) = unsafe {
        (area.add(MXCSR).cast::<u32>().read(), area.add(HEADER).cast::<[u64; 8]>().read())
    };
    let [present, compacted, reserved @ ..] = header;
    if mxcsr & !mxcsr_mask() != 0 {
        return Err(XstateError::Mxcsr);
    }
    if present & !(components & mask()) != 0 {
        return Err(XstateError::Components);
    }
    if compacted != 0 {
        return Err(XstateError::Compacted);
    }
    if reserved != [0; 6] {
        return Err(XstateError::Reserved);
    }
    if extent(present) > len {
        return Err(XstateError::Truncated);
    }
    Ok(())
}

#[inline]
fn facts() -> &'static Facts {
    if !FACTS.ready.load(Acquire) {
        ask_cpu();
    }
    &FACTS
}

/// Fills in the facts. Two threads, or a thread and its handler, may do this at once: they
/// store the same values.
#[cold]
#[allow(unused_unsafe)] // CPUID is a safe function in newer toolchains
fn ask_cpu() {
    const OSXSAVE: u32 = 1 << 27;
    FACTS.mxcsr_mask.store(ask_mxcsr_mask(), Relaxed);
    // SAFETY: every x86-64 CPU has CPUID.
    if unsafe { __cpuid(1) }.ecx & OSXSAVE != 0 {
        // SAFETY: OSXSAVE says that XGETBV may be used.
        let mask = unsafe { _xgetbv(0) };
        for component in (2..63).filter(|c| mask & (1 << c) != 0) {
            // SAFETY: as above; leaf 0xD exists where XSAVE does. EAX = size, EBX = offset.
            let leaf = unsafe { __cpuid_count(0xd, component) };
            FACTS.ends[component as usize].store(leaf.eax + leaf.ebx, Relaxed);
        }
        FACTS.mask.store(mask, Relaxed);
        // SAFETY: as above. EBX = size for the components in XCR0.
        FACTS.size.store(unsafe { __cpuid_count(0xd, 0) }.ebx as usize, Relaxed);
    }
    FACTS.ready.store(true, Release);
}

fn ask_mxcsr_mask() -> u32 {
    /// What a zero means: all bits but DAZ (Intel SDM, volume 1, section 11.6.6).
    const WITHOUT_MASK: u32 = 0xffbf;
    #[repr(C, align(16))]
    struct Area([u8; LEGACY_SIZE]);
    const MASK: usize = core::mem::offset_of!(libc::_libc_fpstate, mxcr_mask);
    let mut area = Area([0; LEGACY_SIZE]);
    // SAFETY: the area is large enough and aligned; FXSAVE is part of x86-64.
    unsafe { _fxsave64(area.0.as_mut_ptr()) };
    let word = [area.0[MASK], area.0[MASK + 1], area.0[MASK + 2], area.0[MASK + 3]];
    match u32::from_ne_bytes(word) {
        0 => WITHOUT_MASK,
        mask => mask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, align(64))]
    struct Area([u8; 16384]);

    fn clean() -> Box<Area> {
        let mut area = Box::new(Area([0; 16384]));
        area.0[MXCSR..MXCSR + 4].copy_from_slice(&MXCSR_DEFAULT.to_ne_bytes());
        area
    }

    fn verdict(area: &Area) -> Result<(), XstateError> {
        // SAFETY: aligned, and longer than size().
        unsafe { check(area.0.as_ptr(), size(), mask()) }
    }

    #[test]
    fn facts_agree_with_each_other() {
        assert!(size() >= MIN_SIZE);
        assert_eq!(mask() & LEGACY_COMPONENTS, LEGACY_COMPONENTS);
        assert_eq!(extent(0), MIN_SIZE);
        assert_eq!(extent(mask()), size());
        assert_eq!(mxcsr_mask() & MXCSR_DEFAULT, MXCSR_DEFAULT);
    }

    #[test]
    fn clean_area_is_accepted() {
        assert_eq!(verdict(&clean()), Ok(()));
    }

    #[test]
    fn each_reserved_bit_is_refused() {
        for bit in 16..32 {
            let mut area = clean();
            area.0[MXCSR + bit / 8] |= 1 << (bit % 8);
            let known = mxcsr_mask() & (1 << bit) != 0;
            let expected = if known { Ok(()) } else { Err(XstateError::Mxcsr) };
            assert_eq!(verdict(&area), expected, "MXCSR bit {bit}");
        }
        for bit in 0..64 {
            let mut area = clean();
            area.0[HEADER + bit / 8] |= 1 << (bit % 8);
            let known = mask() & (1 << bit) != 0;
            let expected = if known { Ok(()) } else { Err(XstateError::Components) };
            assert_eq!(verdict(&area), expected, "component {bit}");
        }
        for bit in 64..512 {
            let mut area = clean();
            area.0[HEADER + bit / 8] |= 1 << (bit % 8);
            let expected = if bit < 128 { XstateError::Compacted } else { XstateError::Reserved };
            assert_eq!(verdict(&area), Err(expected), "header bit {bit}");
        }
    }

    #[test]
    fn component_beyond_the_end_is_refused() {
        let mut area = clean();
        area.0[HEADER..HEADER + 8].copy_from_slice(&mask().to_ne_bytes());
        // SAFETY: as in verdict().
        let short = unsafe { check(area.0.as_ptr(), size() - 1, mask()) };
        assert_eq!(short, Err(XstateError::Truncated));
    }
}
