//! A wait in two phases against all that can end it at the same time: a wake-up, a deadline, a kick, a move to
//! another queue; for threads at the fastest slice, and for kernel threads.

use super::{
    Moved, Wait, WaitsFor, Woken, kick, move_waiters, park, park_after, unpark_one,
    wake::unpark_some,
};
use crate::sys::clock::Deadline;
use crate::tcb::{Record, current};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};
use core::time::Duration;

/// Keys: where the waiters enter, and where they may be moved to.
struct Keys {
    from: AtomicUsize,
    to: AtomicUsize,
    /// A thread to kick.
    victim: AtomicPtr<Record>,
    /// How waits ended: woken, timed out, kicked.
    ends: [AtomicUsize; 3],
    woken: AtomicUsize,
    kicked: AtomicUsize,
    over: AtomicBool,
}

fn spin(n: usize) {
    (0..n).for_each(|_| core::hint::spin_loop());
}

impl Keys {
    fn new() -> Keys {
        Keys {
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(0),
            victim: AtomicPtr::new(ptr::null_mut()),
            ends: [const { AtomicUsize::new(0) }; 3],
            woken: AtomicUsize::new(0),
            kicked: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    fn key(&self) -> usize {
        ptr::from_ref(&self.from) as usize
    }

    fn other(&self) -> usize {
        ptr::from_ref(&self.to) as usize
    }

    fn wait(&self, i: usize) {
        // A deadline always: nobody has to be there to end the wait, except if it was moved.
        let deadline = Deadline::after(Duration::from_micros((i * 13 % 120) as u64));
        let wait =
            Wait { aux: self.other(), ..Wait::on(self.key(), WaitsFor::Other).until(deadline) };
        if let Some(me) = current::get() {
            self.victim.store(ptr::from_ref(me).cast_mut(), SeqCst);
        }
        let woken = match i % 3 {
            0 => park(wait, || true),
            _ => park_after(
                wait,
                || true,
                || {
                    spin(i * 7 % 600);
                    true
                },
            ),
        };
        let end = match woken {
            Woken::Unparked(5) => 0,
            Woken::TimedOut => 1,
            Woken::Kicked(9) => 2,
            other => panic!("a wait ended by {other:?}"),
        };
        self.ends[end].fetch_add(1, SeqCst);
    }

    /// Ends waits of all kinds.
    fn end(&self, i: usize) {
        match i % 4 {
            0 => {
                let woken = unpark_one(self.key(), !0, |_| 5);
                self.woken.fetch_add(usize::from(woken), SeqCst);
            }
            1 => drop(move_waiters(self.key(), 1 + i % 2, |_| {}, |_, _| Moved::Enter)),
            2 => {
                // SAFETY: null or a record, which is never freed.
                if let Some(victim) = unsafe { self.victim.load(SeqCst).as_ref() } {
                    self.kicked.fetch_add(usize::from(kick(victim, 9)), SeqCst);
                }
            }
            _ => {}
        }
        // Who was moved has no deadline any more.
        self.woken.fetch_add(unpark_some(self.other(), !0, |_| Some(5), |_| {}), SeqCst);
        spin(i * 31 % 300);
    }
}

#[test]
fn two_phases_against_all_that_ends_a_wait() {
    for workers in 1..=3 {
        let rt = crate::Runtime::builder()
            .workers(workers)
            .time_slice(Duration::from_micros(60))
            .adaptive_slices(false)
            .build()
            .unwrap();
        let keys = Keys::new();
        let rounds = 4000;
        std::thread::scope(|kernels| {
            let ends = || {
                let mut i = 0;
                while !keys.over.load(SeqCst) {
                    keys.end(i);
                    i += 1;
                }
            };
            kernels.spawn(ends);
            let waits = kernels.spawn(|| (0..rounds).for_each(|i| keys.wait(i)));
            rt.run(|| {
                crate::thread::scope(|s| {
                    s.spawn(ends);
                    let waiting: Vec<_> = (0..4)
                        .map(|n| {
                            let keys = &keys;
                            s.spawn(move || (0..rounds).for_each(|i| keys.wait(i + n)))
                        })
                        .collect();
                    waiting.into_iter().for_each(|t| t.join().unwrap());
                    waits.join().unwrap();
                    keys.over.store(true, SeqCst);
                });
            });
        });
        let [woken, timed_out, kicked] = keys.ends.map(AtomicUsize::into_inner);
        assert_eq!(woken + timed_out + kicked, rounds * 5);
        // Whoever ended a wait is the only one who did.
        assert_eq!((woken, kicked), (keys.woken.into_inner(), keys.kicked.into_inner()));
        assert!(woken > 0 && timed_out > 0 && kicked > 0, "{woken} {timed_out} {kicked}");
        rt.shutdown().unwrap();
    }
}
