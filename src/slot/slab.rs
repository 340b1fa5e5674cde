//! Memory for records, stack descriptions and the pool's lists of them: dense, zeroed, never given back.
//!
//! Records may be read through stale handles at any time (invariant S1), and are: a handle compares ids.

use super::pile::Block;
use crate::error::Error;
use crate::lock::spin::SpinLock;
use crate::sys::memory;
use crate::tcb::Record;
use crate::tcb::stack::Stack;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes reserved at a time.
const CHUNK: usize = 1 << 20;
/// Chunks that can be found again (`each_record`): enough for a hundred million records.
const CHUNKS: usize = 32 << 10;

/// A bump allocator over chunks. The lock guards {next, end}.
struct Slab {
    room: SpinLock<(usize, usize)>,
}

static RECORDS: Slab = Slab { room: SpinLock::new((0, 0)) };
static STACKS: Slab = Slab { room: SpinLock::new((0, 0)) };
static BLOCKS: Slab = Slab { room: SpinLock::new((0, 0)) };
static RECORD_CHUNKS: [AtomicPtr<Record>; CHUNKS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS];
static RECORD_CHUNK_COUNT: AtomicUsize = AtomicUsize::new(0);

/// A new record, all zero. Makes system calls only: preemption may be off.
pub(super) fn record() -> Result<&'static Record, Error> {
    let at = RECORDS.carve(size_of::<Record>(), |chunk| {
        let n = RECORD_CHUNK_COUNT.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = RECORD_CHUNKS.get(n) {
            place.store(chunk as *mut Record, Ordering::Release);
        }
    })?;
    // SAFETY: zeroed memory is a valid record: null pointers, None, discriminants of zero.
    Ok(unsafe { &*(at as *const Record) })
}

/// A new stack description, all zero. As [`record`].
pub(super) fn stack() -> Result<&'static Stack, Error> {
    let at = STACKS.carve(size_of::<Stack>(), |_| {})?;
    // SAFETY: zeroed memory is a valid description.
    Ok(unsafe { &*(at as *const Stack) })
}

/// A new block of a pile, all zero. As [`record`].
pub(super) fn block() -> Result<*mut Block, Error> {
    Ok(BLOCKS.carve(size_of::<Block>(), |_| {})? as *mut Block)
}

/// Calls `f` with every record there is. For dumps.
pub(crate) fn each_record(mut f: impl FnMut(&'static Record)) {
    for place in &RECORD_CHUNKS {
        let chunk = place.load(Ordering::Acquire);
        if chunk.is_null() {
            return;
        }
        for i in 0..CHUNK / size_of::<Record>() {
            // SAFETY: within the chunk, which is zeroed or holds records.
            f(unsafe { &*chunk.add(i) });
        }
    }
}

/// In a fork child, where a lock's holder may be gone.
///
/// # Safety
/// The process has one kernel thread, which holds none of the locks.
pub(super) unsafe fn reset() {
    // SAFETY: the caller's promise. The rest of a chunk is given up.
    unsafe {
        RECORDS.room.reset((0, 0));
        STACKS.room.reset((0, 0));
        BLOCKS.room.reset((0, 0));
    }
}

impl Slab {
    fn carve(&self, size: usize, new_chunk: impl FnOnce(usize)) -> Result<usize, Error> {
        let mut room = self.room.lock();
        if room.1 - room.0 < size {
            let chunk = memory::reserve(CHUNK)
                .map_err(|e| Error::os("no memory for a thread's record", e))?;
            *room = (chunk as usize, chunk as usize + CHUNK);
            new_chunk(chunk as usize);
        }
        let at = room.0;
        room.0 += size;
        Ok(at)
    }
}
