//! Which CPUs a kernel thread may use: the comparisons "on one CPU" depend on it.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The CPUs the calling kernel thread may use, lowest first.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// Confines the calling kernel thread, and those it creates from now on, to `cpus` CPUs.
///
/// Takes the highest ones: interrupts are mostly served by the lowest.
///
/// # Errors
/// Fewer CPUs are allowed than asked for, or the kernel refuses.
pub fn confine(cpus: usize) -> io::Result<()> {
    let allowed = allowed()?;
    let from = allowed.len().checked_sub(cpus).ok_or_else(|| {
        io::Error::other(format!("{cpus} CPUs are needed, {} are allowed", allowed.len()))
    })?;
    let mut set = CpuSet::new();
    for &cpu in &allowed[from..] {
        set.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Runs `f` on a kernel thread of its own that is confined to `cpus` CPUs, as are all kernel
/// threads that `f` creates.
///
/// # Errors
/// As [`confine`]; a panic of `f` is passed on.
pub fn confined<T: Send>(cpus: usize, f: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| confine(cpus).map(|()| f()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confined_code_sees_one_cpu_and_the_caller_all() {
        let before = allowed().unwrap();
        let inside = confined(1, || allowed().unwrap()).unwrap();
        assert_eq!(inside, [*before.last().unwrap()]);
        let inherited =
            confined(1, || std::thread::spawn(|| allowed().unwrap().len()).join().unwrap());
        assert_eq!(inherited.unwrap(), 1);
        assert_eq!(allowed().unwrap(), before);
    }

    #[test]
    fn too_many_cpus_are_refused() {
        let error = confined(100_000, || ()).unwrap_err();
        assert!(error.to_string().contains("are allowed"), "{error}");
    }
}
