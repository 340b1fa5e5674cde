//! A runtime in a real process: fork, exec, setuid, signal masks, alarms of the program's own, locked memory.
//!
//! Cures guarded here: the fork child's new locks, anchors, timers and kept slot; a worker's own stack and
//! TLS block apart from its pthread's; the wrapper of signal 33; masks that stay with their thread; ticks told
//! from alarms by their siginfo; timers rather than tgkill for ticks (exec); mprotect where madvise makes no
//! guard pages.
#![allow(unsafe_code)]

mod support;

use reveille::thread;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use support::*;

/// Waits for a child, whatever interrupts the wait.
fn wait_for(pid: i32) -> i32 {
    let mut status = 0;
    loop {
        // SAFETY: the status is a local.
        let got = unsafe { libc::waitpid(pid, &mut status, 0) };
        if got == pid {
            return status;
        }
        assert_eq!(std::io::Error::last_os_error().kind(), ErrorKind::Interrupted);
    }
}

/// What the child of a thread does: uses malloc, a pthread, and a runtime of one worker.
fn in_child() {
    let strings: Vec<String> = (0..100).map(|i| format!("string {i}")).collect();
    assert_eq!(std::thread::spawn(move || strings.len()).join().unwrap(), 100);
    let threads: Vec<_> = (0..10)
        .map(|i| {
            thread::spawn(move || {
                (0..20_000u64).fold(i, |a, b| std::hint::black_box(a ^ b));
                i
            })
        })
        .collect();
    assert_eq!(threads.into_iter().map(|t| t.join().unwrap()).sum::<u64>(), 45);
    // A thread that only a tick can stop: the child's worker has timers of its own.
    static STOP: AtomicBool = AtomicBool::new(false);
    let hog = thread::spawn(|| {
        while !STOP.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    while hog.thread().preemptions() == 0 {
        std::hint::spin_loop();
    }
    STOP.store(true, SeqCst);
    hog.join().unwrap();
}

#[test]
fn fork_from_threads() {
    on_each("fork", |rt| {
        among_hogs(rt, 3, 12, |_, i| {
            // SAFETY: the child goes on as this thread, on a runtime of its own.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0);
            if pid == 0 {
                in_child();
                // Exit handlers of the test harness have nothing to do with this child.
                // SAFETY: ends the child.
                unsafe { libc::_exit(if i % 2 == 0 { 7 } else { 0 }) };
            }
            assert_eq!(wait_for(pid), if i % 2 == 0 { 7 << 8 } else { 0 });
        });
    });
}

/// Threads that had ended before the fork are joined in the child: their records go to a pool that never knew
/// them.
#[test]
fn a_fork_child_joins_what_ended_before() {
    on_each("join in a fork child", |rt| {
        rt.run(|| {
            let ended: Vec<_> = (0..1500u64).map(|i| thread::spawn(move || i)).collect();
            while !ended.iter().all(|t| t.is_finished()) {
                thread::yield_now();
            }
            // SAFETY: the child goes on as this thread, on a runtime of its own.
            let pid = unsafe { libc::fork() };
            let sum: u64 = ended.into_iter().map(|t| t.join().unwrap()).sum();
            assert_eq!(sum, 1500 * 1499 / 2);
            if pid == 0 {
                in_child();
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) };
            }
            assert_eq!(wait_for(pid), 0);
        });
    });
}

#[test]
fn fork_from_a_kernel_thread_and_the_runtimes_end_there() {
    let _alone = alone();
    let rt = fast(2).build().unwrap();
    rt.run(|| ());
    // SAFETY: the child ends by _exit.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let refused = rt.thread_builder().spawn(|| ()).unwrap_err();
        let said = refused.to_string().contains("fork");
        let anew = thread::spawn(|| 6 * 7).join().unwrap() == 42;
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!said) + 2 * i32::from(!anew)) };
    }
    assert_eq!(wait_for(pid), 0);
    assert_eq!(rt.run(|| 3), 3);
}

#[test]
fn programs_are_started_under_ticks() {
    on_each("posix_spawn and exec", |rt| {
        among_hogs(rt, 2, 8, |_, _| {
            let out = std::process::Command::new("true").output().unwrap();
            assert!(out.status.success(), "{}", out.status);
            // fork and exec: a tick that is pending at the exec must not end the new program.
            // SAFETY: only async-signal-safe calls between fork and exec.
            unsafe {
                let pid = libc::fork();
                if pid == 0 {
                    let argv = [c"true".as_ptr(), core::ptr::null()];
                    libc::execvp(argv[0], argv.as_ptr());
                    libc::_exit(99);
                }
                assert_eq!(wait_for(pid), 0);
            }
        });
    });
}

#[test]
fn setuid_from_threads_and_kernel_threads() {
    on_each("setuid", |rt| {
        // SAFETY: no arguments.
        let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
        std::thread::scope(|s| {
            s.spawn(|| {
                for _ in 0..50 {
                    // SAFETY: changes nothing.
                    assert_eq!(unsafe { libc::setgid(gid) }, 0);
                }
            });
            among_hogs(rt, 4, 30, |_, _| {
                // SAFETY: changes nothing.
                assert_eq!(unsafe { libc::setuid(uid) }, 0);
            });
        });
    });
}

/// Whether `signo` is blocked, as the caller sees it.
fn blocks(signo: i32) -> bool {
    // SAFETY: all zeroes is an empty set; the calls get live sets.
    unsafe {
        let mut now: libc::sigset_t = core::mem::zeroed();
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), &mut now), 0);
        libc::sigismember(&now, signo) == 1
    }
}

fn block(signo: i32) {
    // SAFETY: as in `blocks`.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigaddset(&mut set, signo);
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, core::ptr::null_mut()), 0);
    }
}

#[test]
fn a_mask_stays_with_its_thread() {
    on_each("masks", |rt| {
        // Even threads block signals, the tick's among them; odd ones never do. All are preempted.
        until_preempted(rt, 6, 20, |i, count| {
            if i % 2 == 0 && count == 0 {
                block(libc::SIGUSR2);
                block(libc::SIGALRM);
            }
            for _ in 0..3 {
                assert_eq!(blocks(libc::SIGUSR2), i % 2 == 0);
                assert_eq!(blocks(libc::SIGALRM), i % 2 == 0);
                thread::yield_now();
            }
            spin_until_preempted();
        });
        // The next thread of a slot starts with the usual mask.
        rt.run(|| {
            for _ in 0..50 {
                thread::spawn(|| {
                    assert!(!blocks(libc::SIGUSR2) && !blocks(libc::SIGALRM));
                    block(libc::SIGUSR2);
                })
                .join()
                .unwrap();
            }
        });
    });
}

static ALARMS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_alarm(_: i32) {
    ALARMS.fetch_add(1, SeqCst);
}

#[test]
fn alarms_of_the_program_reach_its_handler_and_ticks_do_not() {
    const TEST: &str = "alarms_of_the_program_reach_its_handler_and_ticks_do_not";
    if child_case().is_none() {
        let out = child(TEST, "run");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGALRM, count_alarm as *const () as usize) };
    let rt = fast(2).build().unwrap();
    until_preempted(&rt, 4, 50, |_, _| ());
    assert_eq!(ALARMS.load(SeqCst), 0, "ticks came through");
    // SAFETY: signals this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGALRM) };
    while ALARMS.load(SeqCst) == 0 {
        std::hint::spin_loop();
    }
    until_preempted(&rt, 4, 50, |_, _| ());
    rt.shutdown().unwrap();
}

#[test]
fn without_memory_spawn_gives_an_error() {
    const TEST: &str = "without_memory_spawn_gives_an_error";
    if child_case().is_none() {
        let out = child(TEST, "run");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    let rt = fast(1).stack_size(64 << 20).build().unwrap();
    rt.run(|| ());
    let four_gib = libc::rlimit { rlim_cur: 4 << 30, rlim_max: 4 << 30 };
    // SAFETY: the limit is a live structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &four_gib) }, 0);
    rt.run(|| {
        let mut threads = Vec::with_capacity(1000);
        let refused = loop {
            match thread::Builder::new().spawn(thread::park) {
                Ok(t) => threads.push(t),
                Err(e) => break e,
            }
            assert!(threads.len() < 1000, "64 GiB in 4");
        };
        assert_eq!(refused.kind(), ErrorKind::OutOfMemory, "{refused}");
        for t in threads {
            t.thread().unpark();
            t.join().unwrap();
        }
        // Slots are free again.
        assert_eq!(thread::spawn(|| 1).join().unwrap(), 1);
    });
}

#[test]
fn stacks_have_guards_in_locked_memory_too() {
    const TEST: &str = "stacks_have_guards_in_locked_memory_too";
    fn deeper(n: u64) -> u64 {
        let room = std::hint::black_box([n; 64]);
        if n == u64::MAX { 0 } else { deeper(n + 1) + room[n as usize % 64] }
    }
    if child_case().is_none() {
        return child_aborts(TEST, "run", &["'deep'", "has overflowed its stack"]);
    }
    // SAFETY: no memory is passed.
    let locked = unsafe { libc::mlockall(libc::MCL_FUTURE) };
    assert_eq!(locked, 0, "needs CAP_IPC_LOCK or a high limit");
    let rt = fast(1).stack_size(64 << 10).build().unwrap();
    // Its stack is one of several that are made at a time.
    for _ in 0..40 {
        drop(rt.spawn(thread::park));
    }
    let deep = rt.thread_builder().name("deep".into()).spawn(|| deeper(1)).unwrap();
    let _ = deep.join();
}

/// The kernel threads of this process that are workers.
fn worker_threads() -> HashSet<String> {
    let task = |t: std::io::Result<std::fs::DirEntry>| {
        let path = t.unwrap().path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        name.starts_with("reveille-").then(|| path.display().to_string())
    };
    std::fs::read_dir("/proc/self/task").unwrap().filter_map(task).collect()
}

#[test]
fn bad_settings_are_refused_with_a_reason() {
    let _alone = alone();
    let before = worker_threads();
    let builder = reveille::Runtime::builder;
    for (bad, words) in [
        (builder().workers(0), "at least one worker"),
        (builder().workers(1_000_000), "1000000 workers"),
        (builder().time_slice(Duration::ZERO), "time slice"),
        (builder().time_slice(Duration::from_secs(3600)), "time slice"),
        (builder().stack_size(0), "too small"),
        (builder().stack_size(usize::MAX), "more than"),
        (builder().signal(libc::SIGKILL), "cannot be caught"),
        (builder().signal(libc::SIGSEGV), "faults"),
        (builder().signal(33), "C library"),
        (builder().signal(0), "no such signal"),
        (builder().signal(1000), "no such signal"),
    ] {
        let said = bad.build().unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
    // Workers of earlier tests may have ended meanwhile; none may have been started.
    assert!(worker_threads().is_subset(&before), "something was started");
}

#[test]
fn shutdown_waits_or_says_what_still_runs() {
    let _alone = alone();
    static STOP: AtomicBool = AtomicBool::new(false);
    let rt = fast(2).build().unwrap();
    let hogs = [(); 3].map(|()| {
        rt.spawn(|| {
            while !STOP.load(SeqCst) {
                std::hint::spin_loop();
            }
        })
    });
    let left = rt.shutdown_timeout(Duration::from_millis(1)).unwrap_err();
    assert_eq!(left.running(), 3);
    STOP.store(true, SeqCst);
    // They ran on, and so do the workers until the last has ended.
    for hog in hogs {
        hog.join().unwrap();
    }
}
