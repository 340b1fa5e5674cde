//! What kernel, CPU and C library say about themselves.

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::ffi::CStr;
use std::ptr;
use std::time::Duration;

use nix::time::ClockId;

use super::{Fact, State};
use crate::affinity;
use crate::floor::{self, fs, signal};
use crate::proc;
use crate::units::grouped;

/// The advice by which the kernel makes guard pages within a mapping, since Linux 6.13.
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Everything that can be found out without starting a runtime.
pub fn facts() -> Vec<Fact> {
    let unknown = || "unknown".to_owned();
    let cpus = affinity::allowed().map_or_else(|_| unknown(), |cpus| cpus.len().to_string());
    let mut facts = vec![
        Fact::info("kernel", proc::line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown)),
        Fact::info("C library", format!("glibc {}", glibc_version())),
        Fact::info("CPU", proc::cpu_name().unwrap_or_else(unknown)),
        Fact::info("CPUs allowed to this process", cpus),
        fsgsbase(),
        xsave(),
        signal_frame(),
        guard_pages(),
    ];
    if let Some(resolution) = floor::timer_resolution() {
        let value = format!("{} ns", resolution.as_nanos());
        // One tick of a kernel without high-resolution timers is a millisecond at least.
        let fine = resolution.as_micros() < 100;
        let state = if fine { State::Used } else { State::Fallback };
        facts.push(Fact::new("timer resolution", value, state));
    }
    facts.extend(timers());
    for (name, path) in [
        ("most mappings of a process", "/proc/sys/vm/max_map_count"),
        ("most kernel threads", "/proc/sys/kernel/threads-max"),
    ] {
        if let Some(value) = proc::line(path).and_then(|line| line.parse().ok()) {
            facts.push(Fact::info(name, grouped(value)));
        }
    }
    facts
}

/// How often timers of 1 ms really tick.
fn timers() -> impl Iterator<Item = Fact> {
    const INTERVAL: Duration = Duration::from_millis(1);
    const TIME: Duration = Duration::from_millis(100);
    let clocks = [
        ("ticks of a 1 ms timer in 100 ms", ClockId::CLOCK_MONOTONIC),
        ("the same by CPU time", ClockId::CLOCK_THREAD_CPUTIME_ID),
    ];
    clocks.into_iter().map(|(name, clock)| {
        let ticks = signal::ticks(clock, INTERVAL, TIME);
        Fact::info(name, ticks.map_or_else(|error| error.to_string(), |ticks| ticks.to_string()))
    })
}

/// Whether the FS base can be exchanged without a system call.
fn fsgsbase() -> Fact {
    if fs::allowed() {
        Fact::new("FS base writable by programs", "yes (FSGSBASE)", State::Used)
    } else {
        let value = "no (FSGSBASE): each switch is a system call, arch_prctl";
        Fact::new("FS base writable by programs", value, State::Fallback)
    }
}

/// How large the CPU's extended state is, and whether it can be saved compactly.
fn xsave() -> Fact {
    const NAME: &str = "extended state of the CPU";
    const OSXSAVE: u32 = 1 << 27;
    const XSAVEC: u32 = 1 << 1;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return Fact::new(NAME, "no XSAVE", State::Fallback);
    }
    let size = __cpuid_count(0xd, 0).ebx;
    let compact = __cpuid_count(0xd, 1).eax & XSAVEC != 0;
    let how = if compact { "XSAVEC" } else { "XSAVE" };
    Fact::new(NAME, format!("{} bytes ({how})", grouped(size.into())), State::Used)
}

/// The least room a signal frame needs.
fn signal_frame() -> Fact {
    const NAME: &str = "smallest signal stack";
    // SAFETY: getauxval has no preconditions.
    let size = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
    if size == 0 {
        let value = "not told by the kernel (AT_MINSIGSTKSZ)";
        return Fact::new(NAME, value, State::Fallback);
    }
    let value = format!("{} bytes (AT_MINSIGSTKSZ)", grouped(size as i64));
    Fact::new(NAME, value, State::Used)
}

/// Whether guard pages cost a mapping each.
fn guard_pages() -> Fact {
    const NAME: &str = "guard pages within a mapping";
    match try_guard_page() {
        Ok(()) => Fact::new(NAME, "yes (MADV_GUARD_INSTALL)", State::Used),
        Err(error) => {
            let value = format!("no ({error}): mprotect, two mappings for each stack");
            Fact::new(NAME, value, State::Fallback)
        }
    }
}

/// Installs a guard page in a mapping made for it.
fn try_guard_page() -> std::io::Result<()> {
    const BYTES: usize = 64 * 1024;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping anywhere touches no other memory.
    let page = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the mapping is ours and nobody uses it.
    let installed = unsafe { libc::madvise(page, 4096, MADV_GUARD_INSTALL) };
    let error = std::io::Error::last_os_error();
    // SAFETY: as above, and nobody keeps a pointer to it.
    unsafe { libc::munmap(page, BYTES) };
    if installed == 0 { Ok(()) } else { Err(error) }
}

/// The version of the C library that runs.
fn glibc_version() -> String {
    // SAFETY: the function returns a static string that ends with a zero byte.
    unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_found() {
        let facts = facts();
        assert!(facts.len() >= 11, "{facts:?}");
        assert!(facts.iter().all(|fact| !fact.fact.is_empty() && !fact.value.is_empty()));
    }
}
