//! `RwLock` and the raw lock below it: std's meanings, order, storms, misuse.
#![allow(unsafe_code)]

mod support;

use lock_api::{
    RawRwLock as _, RawRwLockDowngrade as _, RawRwLockTimed as _, RawRwLockUpgrade as _,
    RwLockUpgradableReadGuard,
};
use reveille::sync::raw::RawRwLock;
use reveille::sync::{RwLock, RwLockWriteGuard, TryLockError};
use reveille::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::*;

#[test]
fn smoke() {
    both(|| {
        let lock = RwLock::new(());
        drop(lock.read().unwrap());
        drop(lock.write().unwrap());
        drop((lock.read().unwrap(), lock.read().unwrap()));
        drop(lock.write().unwrap());
        assert_eq!(format!("{lock:?}"), "RwLock { data: (), poisoned: false, .. }");
        let held = lock.write().unwrap();
        assert_eq!(format!("{lock:?}"), "RwLock { data: <locked>, poisoned: false, .. }");
        assert!(matches!(lock.try_read(), Err(TryLockError::WouldBlock)));
        assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert_eq!(*RwLock::<i32>::default().read().unwrap() + *RwLock::from(3).read().unwrap(), 3);
        let unsized_: &RwLock<[i32]> = &RwLock::new([1, 2, 3]);
        unsized_.write().unwrap()[0] = 4;
        assert_eq!(*unsized_.read().unwrap(), [4, 2, 3]);
    });
}

#[test]
fn a_writer_that_panics_poisons_a_reader_does_not() {
    quiet_panics();
    both(|| {
        let lock = Arc::new(RwLock::new(1));
        let reads = Arc::clone(&lock);
        let failed = thread::spawn(move || {
            let _guard = reads.read().unwrap();
            std::panic::panic_any(ON_PURPOSE);
        });
        assert!(failed.join().is_err());
        assert!(!lock.is_poisoned());
        let writes = Arc::clone(&lock);
        let failed = thread::spawn(move || {
            let _guard = writes.write().unwrap();
            std::panic::panic_any(ON_PURPOSE);
        });
        assert!(failed.join().is_err());
        assert!(lock.is_poisoned() && lock.read().is_err() && lock.write().is_err());
        assert!(matches!(lock.try_read(), Err(TryLockError::Poisoned(_))));
        lock.clear_poison();
        assert_eq!(*lock.read().unwrap(), 1);
        let mut lock = Arc::into_inner(lock).unwrap();
        *lock.get_mut().unwrap() = 2;
        assert_eq!(lock.into_inner().unwrap(), 2);
    });
}

#[test]
fn a_lock_used_while_a_panic_unwinds_is_not_poisoned() {
    quiet_panics();
    both(|| {
        struct Unwinds(Arc<RwLock<i32>>);
        impl Drop for Unwinds {
            fn drop(&mut self) {
                *self.0.write().unwrap() += 1;
            }
        }
        let lock = Arc::new(RwLock::new(1));
        let unwinds = Unwinds(Arc::clone(&lock));
        let failed = thread::spawn(move || {
            let _unwinds = unwinds;
            std::panic::panic_any(ON_PURPOSE);
        });
        assert!(failed.join().is_err());
        assert_eq!(*lock.read().unwrap(), 2);
    });
}

/// Waits until `n` threads stand in the queue of `lock`: those that have said that they are about to, plus some time
/// for the last step, which nothing outside can see. `try` operations see the first of them.
fn queued(lock: &RawRwLock, about: &AtomicUsize, n: usize) {
    while about.load(SeqCst) < n || (lock.is_locked() && try_read(lock)) {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(2));
}

fn try_read(lock: &RawRwLock) -> bool {
    match lock.try_lock_shared() {
        Some(guard) => {
            // SAFETY: just taken.
            unsafe { lock.unlock_shared(guard) };
            true
        }
        None => false,
    }
}

/// The bound, by count: whoever stands in the queue is passed by nobody. Writers and readers enter one by one while a
/// reader holds the lock; then they get it in that order, and the one who held it and comes again is last.
#[test]
fn the_queue_is_in_order() {
    for kernel in [false, true] {
        let rt = fast(2).build().unwrap();
        watched("the_queue_is_in_order", String::new, || {
            rt.run(|| {
                let lock = RawRwLock::INIT;
                let (about, order) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
                let held = lock.lock_shared();
                let enter = |i: usize| {
                    about.fetch_add(1, SeqCst);
                    if i.is_multiple_of(2) {
                        let g = lock.lock_exclusive();
                        order.lock().unwrap().push(i);
                        // SAFETY: just taken.
                        unsafe { lock.unlock_exclusive(g) };
                    } else {
                        let g = lock.lock_shared();
                        order.lock().unwrap().push(i);
                        // SAFETY: just taken.
                        unsafe { lock.unlock_shared(g) };
                    }
                };
                std::thread::scope(|kernels| {
                    thread::scope(|threads| {
                        for i in 0..12 {
                            let enter = &enter;
                            if kernel && i % 3 == 0 {
                                kernels.spawn(move || enter(i));
                            } else {
                                threads.spawn(move || enter(i));
                            }
                            queued(&lock, &about, i + 1);
                        }
                        // SAFETY: taken above.
                        unsafe { lock.unlock_shared(held) };
                        enter(100);
                    });
                });
                let order = order.into_inner().unwrap();
                let mut expected: Vec<usize> = (0..12).collect();
                expected.push(100);
                assert_eq!(order, expected);
            });
        });
        rt.shutdown().unwrap();
    }
}

/// Readers that come all the time, and overlap, cannot keep a writer out; nor writers a reader.
#[test]
fn nobody_starves() {
    on_each("nobody_starves", |rt| {
        for (crowd_writes, rounds) in [(false, 200), (true, 200)] {
            let lock = RwLock::new(0u64);
            let done = AtomicBool::new(false);
            let crowd = AtomicU64::new(0);
            rt.run(|| {
                thread::scope(|s| {
                    for _ in 0..4 {
                        s.spawn(|| {
                            while !done.load(SeqCst) {
                                if crowd_writes {
                                    *lock.write().unwrap() += 1;
                                } else {
                                    let _reads = lock.read().unwrap();
                                    // Others come in meanwhile: somebody reads at all times.
                                    thread::yield_now();
                                }
                                crowd.fetch_add(1, SeqCst);
                            }
                        });
                    }
                    for _ in 0..rounds * factor() {
                        if crowd_writes {
                            let _reads = lock.read().unwrap();
                        } else {
                            *lock.write().unwrap() += 1;
                        }
                        progress(0);
                    }
                    done.store(true, SeqCst);
                });
            });
        }
    });
}

/// What the holders of a lock see: at most one writer, and then no readers.
#[derive(Default)]
struct Inside(AtomicI64);

impl Inside {
    fn read(&self) {
        assert!(self.0.fetch_add(1, SeqCst) >= 0, "a reader beside a writer");
    }

    fn read_end(&self) {
        assert!(self.0.fetch_sub(1, SeqCst) > 0);
    }

    fn write(&self) {
        assert_eq!(self.0.swap(-1000, SeqCst), 0, "a writer not alone");
    }

    fn write_end(&self) {
        assert_eq!(self.0.swap(0, SeqCst), -1000);
    }
}

/// One of all that can be done with a lock; time-outs just when the lock is let go of.
fn step(lock: &RawRwLock, inside: &Inside, random: &mut Random) {
    let soon = Duration::from_nanos(random.below(60_000) as u64);
    // SAFETY: each guard is of this lock and used in the way it was taken.
    unsafe {
        match random.below(9) {
            0 => {
                let g = lock.lock_exclusive();
                inside.write();
                inside.write_end();
                lock.unlock_exclusive(g);
            }
            1 => {
                let g = lock.lock_exclusive();
                inside.write();
                inside.write_end();
                inside.read();
                let g = lock.downgrade(g);
                inside.read_end();
                lock.unlock_shared(g);
            }
            2 => {
                let g = lock.lock_upgradable();
                inside.read();
                inside.read_end();
                let g = lock.upgrade(g);
                inside.write();
                inside.write_end();
                lock.unlock_exclusive(g);
            }
            3 => {
                let g = lock.lock_upgradable();
                inside.read();
                inside.read_end();
                lock.unlock_upgradable(g);
            }
            4 => {
                if let Some(g) = lock.try_lock_exclusive_for(soon) {
                    inside.write();
                    std::hint::black_box(spin(random));
                    inside.write_end();
                    lock.unlock_exclusive(g);
                }
            }
            5 => {
                if let Some(g) = lock.try_lock_shared_until(Instant::now() + soon) {
                    inside.read();
                    std::hint::black_box(spin(random));
                    inside.read_end();
                    lock.unlock_shared(g);
                }
            }
            6 => {
                if let Some(g) = lock.try_lock_exclusive() {
                    inside.write();
                    inside.write_end();
                    lock.unlock_exclusive(g);
                }
            }
            _ => {
                let g = lock.lock_shared();
                inside.read();
                std::hint::black_box(spin(random));
                inside.read_end();
                lock.unlock_shared(g);
            }
        }
    }
}

fn spin(random: &mut Random) -> u64 {
    (0..random.below(400) as u64).fold(0, |a, b| std::hint::black_box(a ^ b))
}

#[test]
fn storm_of_readers_and_writers() {
    on_each("storm of readers and writers", |rt| {
        let (lock, inside) = (RawRwLock::INIT, Inside::default());
        let over = AtomicBool::new(false);
        std::thread::scope(|s| {
            for k in 0..2 {
                let (lock, inside, over) = (&lock, &inside, &over);
                s.spawn(move || {
                    let mut random = Random::new(1000 + k);
                    while !over.load(SeqCst) {
                        step(lock, inside, &mut random);
                        progress(1);
                    }
                });
            }
            among_hogs(rt, 6, 600, |i, n| {
                let mut random = Random::new(i as u64 * 100_000 + n);
                step(&lock, &inside, &mut random);
            });
            over.store(true, SeqCst);
        });
        assert!(lock.try_lock_exclusive().is_some(), "somebody was forgotten");
    });
}

#[test]
fn data_under_the_lock_is_whole() {
    on_each("data under the lock", |rt| {
        let lock = RwLock::new([0u64; 16]);
        let over = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !over.load(SeqCst) {
                    let mut data = lock.write().unwrap();
                    data.iter_mut().for_each(|d| *d += 1);
                    let data = RwLockWriteGuard::downgrade(data);
                    assert!(data.iter().all(|d| *d == data[0]));
                }
            });
            among_hogs(rt, 6, 400, |i, n| {
                if (i as u64 + n).is_multiple_of(4) {
                    lock.write().unwrap().iter_mut().for_each(|d| *d += 1);
                } else {
                    let data = lock.read().unwrap();
                    assert!(data.iter().all(|d| *d == data[0]));
                }
            });
            over.store(true, SeqCst);
        });
    });
}

#[test]
fn a_time_out_is_not_early_and_lets_those_behind_in() {
    both(|| {
        let lock = RawRwLock::INIT;
        let held = lock.lock_shared();
        let about = AtomicUsize::new(0);
        thread::scope(|s| {
            s.spawn(|| {
                let (begun, wait) = (Instant::now(), Duration::from_millis(20));
                about.fetch_add(1, SeqCst);
                assert!(lock.try_lock_exclusive_for(wait).is_none());
                assert!(begun.elapsed() >= wait);
            });
            while about.load(SeqCst) == 0 || try_read(&lock) {
                thread::yield_now();
            }
            // A reader behind the writer, who gives up: nobody lets go of anything then.
            let reads = lock.lock_shared();
            // SAFETY: just taken.
            unsafe { lock.unlock_shared(reads) };
        });
        assert!(lock.try_lock_exclusive_for(Duration::ZERO).is_none());
        assert!(lock.try_lock_exclusive_until(Instant::now() - Duration::from_millis(1)).is_none());
        // SAFETY: taken above.
        unsafe { lock.unlock_shared(held) };
        assert!(lock.try_lock_exclusive_for(Duration::ZERO).is_some());
    });
}

#[test]
fn the_upgradable_reader_goes_first() {
    both(|| {
        let lock = lock_api::RwLock::<RawRwLock, Vec<u32>>::new(Vec::new());
        let about = AtomicUsize::new(0);
        let (reads, up) = (lock.read(), lock.upgradable_read());
        assert!(lock.try_upgradable_read().is_none());
        thread::scope(|s| {
            s.spawn(|| {
                about.fetch_add(1, SeqCst);
                lock.write().push(2);
            });
            while about.load(SeqCst) == 0 || lock.try_read().is_some() {
                thread::yield_now();
            }
            let up = RwLockUpgradableReadGuard::try_upgrade(up).unwrap_err();
            drop(reads);
            RwLockUpgradableReadGuard::upgrade(up).push(1);
        });
        assert_eq!(*lock.read(), [1, 2]);
    });
}

#[test]
fn letting_go_of_what_is_not_held_panics() {
    quiet_panics();
    both(|| {
        fn panics(f: impl FnOnce()) {
            let hook = std::panic::AssertUnwindSafe(f);
            let message = std::panic::catch_unwind(hook).unwrap_err();
            let message = message.downcast_ref::<&str>().unwrap();
            assert!(message.contains("not held"), "{message}");
        }
        let lock = RawRwLock::INIT;
        let guard = lock_api::GuardNoSend::new;
        // SAFETY: wrong on purpose: there is no data that could be spoilt.
        unsafe {
            panics(|| lock.unlock_shared(guard()));
            panics(|| lock.unlock_exclusive(guard()));
            panics(|| lock.unlock_upgradable(guard()));
            panics(|| {
                let _reads = lock.downgrade(guard());
            });
            let reads = lock.lock_shared();
            panics(|| lock.unlock_exclusive(guard()));
            panics(|| lock.unlock_upgradable(guard()));
            lock.unlock_shared(reads);
            let writes = lock.lock_exclusive();
            panics(|| lock.unlock_shared(guard()));
            lock.unlock_exclusive(writes);
            // Still in order.
            assert!(!lock.is_locked());
            lock.unlock_exclusive(lock.try_lock_exclusive().unwrap());
        }
    });
}
