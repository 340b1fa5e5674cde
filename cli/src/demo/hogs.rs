//! The demo's threads: endless loops that never yield, block, allocate or call anything.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, anyhow};
use crossbeam_utils::CachePadded;
use reveille::thread::{JoinHandle, ThreadId};
use reveille::{Runtime, Slice, SliceEnd};

use super::tally::{End, Span};

/// What the threads and their observer share.
struct Shared {
    stop: AtomicBool,
    /// Iterations, one counter a thread, each in a cache line of its own.
    work: Vec<CachePadded<AtomicU64>>,
}

/// Running threads.
pub struct Hogs {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    places: HashMap<ThreadId, usize>,
}

impl Hogs {
    /// Starts `count` threads on `runtime`.
    pub fn start(runtime: &Runtime, count: usize) -> Self {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            work: (0..count).map(|_| CachePadded::default()).collect(),
        });
        let mut threads = Vec::with_capacity(count);
        let mut places = HashMap::with_capacity(count);
        for place in 0..count {
            let for_thread = Arc::clone(&shared);
            let thread = runtime.spawn(move || hog(&for_thread, place));
            places.insert(thread.thread().id(), place);
            threads.push(thread);
        }
        Self { shared, threads, places }
    }

    /// Recorded slices of these threads, as the tally wants them.
    pub fn spans<'a>(&'a self, slices: &'a [Slice]) -> impl Iterator<Item = Span> + 'a {
        slices.iter().filter_map(|slice| {
            Some(Span {
                worker: slice.worker,
                thread: *self.places.get(&slice.thread)?,
                start: slice.start,
                end: slice.end,
                end_reason: match slice.end_reason {
                    SliceEnd::Preempted => End::Preempted,
                    SliceEnd::Exited => End::Exited,
                    _ => End::Other,
                },
            })
        })
    }

    /// Iterations of each thread so far.
    pub fn work(&self) -> Vec<u64> {
        self.shared.work.iter().map(|work| work.load(Ordering::Relaxed)).collect()
    }

    /// Ends the threads and waits for them.
    ///
    /// # Errors
    /// One of them panicked.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for (place, thread) in self.threads.drain(..).enumerate() {
            thread
                .join()
                .map_err(|_| anyhow!("it panicked"))
                .with_context(|| format!("thread {place}"))?;
        }
        Ok(())
    }
}

/// The endless loop: the flag is a plain load, the counter a plain store.
fn hog(shared: &Shared, place: usize) {
    let mut x = place as u64 + 1;
    let mut count = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        for _ in 0..100 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        std::hint::black_box(x);
        count += 1;
        shared.work[place].store(count, Ordering::Relaxed);
    }
}
