//! The FS base: whether programs may write it themselves, and what writing it costs.
//!
//! On x86-64 the FS base is where thread-local storage begins. Exchanging it is the least that a
//! switch between two threads with their own TLS can do.

use std::arch::asm;

/// The bit of AT_HWCAP2 by which the kernel allows rdfsbase and wrfsbase.
const HWCAP2_FSGSBASE: u64 = 1 << 1;

/// Whether programs may use the FSGSBASE instructions.
pub fn allowed() -> bool {
    // SAFETY: getauxval has no preconditions.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}

/// One write of the FS base, in ns; `None` where programs may not write it.
pub fn wrfsbase(times: u32) -> Option<f64> {
    if !allowed() {
        return None;
    }
    let base: u64;
    // SAFETY: `allowed` has checked that the instruction exists; it only reads.
    unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    Some(super::ns_each(times, || {
        // SAFETY: as above; the value written is the one that is there already.
        unsafe { asm!("wrfsbase {}", in(reg) base, options(nostack, preserves_flags)) };
    }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn thread_locals_survive_the_measurement() {
        thread_local!(static MARK: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
        MARK.set(42);
        assert_eq!(super::wrfsbase(1000).is_some(), super::allowed());
        assert_eq!(MARK.get(), 42);
    }
}
