//! What the kernel says about this process and machine under /proc.

use std::fs;
use std::io;
use std::time::Duration;

/// Resident bytes of this process, from /proc/self/statm.
pub fn resident() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages
        .map(|pages| pages * page_size())
        .ok_or_else(|| io::Error::other("/proc/self/statm has no second number"))
}

/// Bytes of page tables of this process; 0 if the kernel does not say.
pub fn page_tables() -> u64 {
    kib_field("/proc/self/status", "VmPTE:").unwrap_or(0)
}

/// Bytes that can be allocated without swapping; `None` if the kernel does not say.
pub fn available() -> Option<u64> {
    kib_field("/proc/meminfo", "MemAvailable:")
}

/// How long the kernel threads of this process, but for the calling one, were ready to run while
/// the kernel ran something else; 0 if the kernel does not count it.
pub fn waited_for_cpu() -> Duration {
    let caller = nix::unistd::gettid().to_string();
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let nanos = tasks
        .flatten()
        .filter(|task| task.file_name().to_str() != Some(&caller))
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|stat| stat.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    Duration::from_nanos(nanos)
}

/// The CPU's name; `None` if the kernel does not say.
pub fn cpu_name() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// One line of a small file, trimmed; `None` if it cannot be read.
pub fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The size of a page in bytes.
fn page_size() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// The value in bytes of a line like `MemFree:   123 kB`.
fn kib_field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line[name.len()..].split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers() {
        assert!(resident().unwrap() > 100_000);
        assert!(available().unwrap() > 0);
        assert!(page_tables() > 0);
        assert!(line("/proc/sys/kernel/osrelease").is_some());
        assert_eq!(line("/proc/no/such/file"), None);
    }
}
