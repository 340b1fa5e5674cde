//! The template of a thread block: what a freshly started pthread has in it, word by word.
//!
//! A harvested block is read and each of its non-zero words must be explained: a constant of the
//! process (canary, pointer guard), an address inside the block itself (self pointers, list heads), a
//! value that we gave (stack, size, start routine, argument), or a field that a debugger's descriptor
//! names. A word that is not understood refuses the start: better no threads than corrupt ones.

use super::glibc::Glibc;
use super::harvest::Harvest;
use crate::error::{Error, Kind};

/// Offsets found by experiment inside a pthread: which byte does a call change?
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Probes {
    /// The flag "some key has a value".
    pub specific_used: Option<usize>,
    /// The cancellation state.
    pub cancel_state: Option<usize>,
    /// The cancellation type.
    pub cancel_type: Option<usize>,
}

impl Probes {
    /// Runs the experiments on the running thread and undoes them.
    ///
    /// # Safety
    /// `fs` is the running thread's thread pointer and `len` the size of its block.
    pub(crate) unsafe fn run(fs: usize, len: usize, key: libc::pthread_key_t) -> Probes {
        // SAFETY: a pthread's block is readable memory of `len` bytes; only this thread writes it.
        let changed = |on: &dyn Fn(), off: &dyn Fn()| unsafe { changed(fs, len, on, off) };
        unsafe extern "C" {
            fn pthread_setcancelstate(state: i32, old: *mut i32) -> i32;
            fn pthread_setcanceltype(kind: i32, old: *mut i32) -> i32;
        }
        let specific_used = changed(
            // SAFETY: the key is live; the value is never followed.
            &|| unsafe {
                libc::pthread_setspecific(key, MARK as *const core::ffi::c_void);
            },
            // SAFETY: as above.
            &|| unsafe {
                libc::pthread_setspecific(key, core::ptr::null());
            },
        );
        Probes {
            specific_used,
            cancel_state: changed(
                // SAFETY: changes this thread's own state (1 = disabled).
                &|| unsafe {
                    pthread_setcancelstate(1, core::ptr::null_mut());
                },
                // SAFETY: as above (0 = enabled).
                &|| unsafe {
                    pthread_setcancelstate(0, core::ptr::null_mut());
                },
            ),
            cancel_type: changed(
                // SAFETY: changes this thread's own state (1 = asynchronous).
                &|| unsafe {
                    pthread_setcanceltype(1, core::ptr::null_mut());
                },
                // SAFETY: as above (0 = deferred).
                &|| unsafe {
                    pthread_setcanceltype(0, core::ptr::null_mut());
                },
            ),
        }
    }
}

/// The value that the experiment gives to its key: no byte of it looks like a flag.
const MARK: u64 = 0x5a_5a00;

/// The one byte of the block that stops being 0 when `on` runs, if there is just one.
///
/// # Safety
/// `[fs, fs + len)` is readable.
unsafe fn changed(fs: usize, len: usize, on: &dyn Fn(), off: &dyn Fn()) -> Option<usize> {
    const MOST: usize = 8192;
    if len > MOST {
        return None;
    }
    let mut before = [0u8; MOST];
    // SAFETY: the caller's promise; the copy is a local.
    unsafe { core::ptr::copy_nonoverlapping(fs as *const u8, before.as_mut_ptr(), len) };
    on();
    let mut found = None;
    let mut several = false;
    for (at, was) in before[..len].iter().enumerate() {
        // SAFETY: within the block.
        let is = unsafe { core::ptr::read_volatile((fs + at) as *const u8) };
        if *was == 0 && is != 0 && !is_key_data(fs, at) {
            several |= found.is_some();
            found = Some(at);
        }
    }
    off();
    // What stays changed (a key's sequence number) is put back, so that the block is that of a fresh thread.
    for (at, was) in before[..len].iter().enumerate() {
        // SAFETY: this thread's own block, which nobody else writes.
        unsafe {
            if core::ptr::read_volatile((fs + at) as *const u8) != *was {
                core::ptr::write_volatile((fs + at) as *mut u8, *was);
            }
        }
    }
    if several { None } else { found }
}

/// Whether the byte at `at` belongs to the key's datum, {sequence number, value}, rather than to a flag.
fn is_key_data(fs: usize, at: usize) -> bool {
    // SAFETY: aligned words of the block, or of the pages of the stack's end just above it.
    let word = |at: usize| unsafe { core::ptr::read_volatile((fs + at) as *const u64) };
    let at = at & !7;
    word(at) == MARK || word(at + 8) == MARK
}

/// How to fill in one word of a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Constant(u64),
    /// Address of the block plus this.
    Relative(u64),
    StackBlock,
    StackSize,
}

/// The words of a new block that are not zero.
#[derive(Debug)]
pub(crate) struct Template {
    words: Vec<(usize, Word)>,
    pub probes: Probes,
}

/// Thread id of kernel threads end below this (`PID_MAX_LIMIT`); glibc keeps 30 bits of an id.
pub(crate) const FIRST_TID: u32 = 1 << 22;

impl Template {
    /// Explains the harvested block whose stack was `[lo, lo + len)`.
    ///
    /// # Safety
    /// The harvested block is live and nobody writes it.
    pub(crate) unsafe fn read(
        g: &Glibc,
        h: &Harvest,
        lo: usize,
        len: usize,
    ) -> Result<Template, Error> {
        let mut words = Vec::new();
        let rseq = g.rseq as usize..g.rseq as usize + g.rseq_size;
        for at in (0..g.sizeof_pthread).step_by(8) {
            // SAFETY: within the block.
            let value = unsafe { *((h.fs + at) as *const u64) };
            let ours = at == g.dtvp
                || at == g.list
                || at == g.list + 8
                || at == g.tid & !7
                || at == g.start_routine && value == h.routine as u64
                || at == g.start_routine + 8 && value == h.arg as u64
                || rseq.contains(&at);
            if value == 0 || ours {
                continue;
            }
            let word = explain(g, h, lo, len, at, value)
                .ok_or_else(|| Kind::UnknownTcb(format!("word {at:#x} holds {value:#x}")))?;
            if let Some(word) = word {
                words.push((at, word));
            }
        }
        let t = Template { words, probes: h.probes };
        t.require(g)?;
        Ok(t)
    }

    /// The words without which threads would corrupt memory.
    fn require(&self, g: &Glibc) -> Result<(), Error> {
        let has = |w: Word| self.words.iter().any(|(_, x)| *x == w);
        let at = |o: usize| self.words.iter().find(|(a, _)| *a == o).map(|(_, w)| *w);
        let missing = |what: &str| Err(Kind::UnknownTcb(format!("no {what} found")).into());
        if at(0x18) != Some(Word::Constant(1)) {
            return missing("multiple_threads = 1");
        }
        if !has(Word::StackBlock) || !has(Word::StackSize) {
            return missing("stack block");
        }
        if !matches!(at(g.specific), Some(Word::Relative(_))) {
            return missing("first block of key data");
        }
        Ok(())
    }

    /// Fills in the block at `fs`, whose stack is `[lo, lo + len)`, with the thread id `tid`.
    ///
    /// # Safety
    /// The block is zeroed memory of ours.
    pub(crate) unsafe fn fill(&self, g: &Glibc, fs: usize, lo: usize, len: usize, tid: u32) {
        for &(at, word) in &self.words {
            let value = match word {
                Word::Constant(v) => v,
                Word::Relative(d) => (fs as u64).wrapping_add(d),
                Word::StackBlock => lo as u64,
                Word::StackSize => len as u64,
            };
            // SAFETY: within the block.
            unsafe { *((fs + at) as *mut u64) = value };
        }
        // SAFETY: all three are fields within the block.
        unsafe {
            *((fs + g.list) as *mut usize) = fs + g.list;
            *((fs + g.list + 8) as *mut usize) = fs + g.list;
            settle(g, fs, tid);
        }
    }
}

/// The two fields that belong to no kernel thread: the id, and "no CPU known" for sched_getcpu(3).
///
/// # Safety
/// `fs` is a block of ours that runs on no kernel thread of its own.
pub(crate) unsafe fn settle(g: &Glibc, fs: usize, tid: u32) {
    // SAFETY: fields within the block. struct rseq is { cpu_id_start, cpu_id, rseq_cs, flags, .. }.
    unsafe {
        *((fs + g.tid) as *mut u32) = tid;
        let rseq = fs.wrapping_add_signed(g.rseq) as *mut u32;
        *rseq = 0;
        *rseq.add(1) = u32::MAX;
    }
}

/// What the word at `at` is; `Some(None)` if it is understood and stays zero in a new block.
fn explain(
    g: &Glibc,
    h: &Harvest,
    lo: usize,
    len: usize,
    at: usize,
    value: u64,
) -> Option<Option<Word>> {
    let constant = Some(Some(Word::Constant(value)));
    let canary = super::block::process_constants();
    match at {
        // The header is part of the platform's ABI (compilers emit fs:0, fs:0x28, fs:0x30).
        0x18 if value as u32 == 1 => return Some(Some(Word::Constant(1))),
        0x28 if value == canary.0 => return constant,
        0x30 if value == canary.1 => return constant,
        _ => {}
    }
    let (block, end) = (h.fs as u64, (h.fs + g.sizeof_pthread) as u64);
    if (block..end).contains(&value) {
        return Some(Some(Word::Relative(value - block)));
    }
    if value == lo as u64 {
        return Some(Some(Word::StackBlock));
    }
    if value == len as u64 {
        return Some(Some(Word::StackSize));
    }
    if (lo as u64..block).contains(&value) {
        // The cancellation buffer in the harvested thread's frame; a new thread registers its own.
        return Some(None);
    }
    if value == h.mask {
        // Only the creation of a kernel thread looks at it.
        return Some(None);
    }
    if value as i64 == -32 {
        // robust_head.futex_offset: from a mutex's list node back to its lock word.
        return constant;
    }
    if at == g.cancelhandling & !7 {
        // Cancellation bits in one half, the attribute flags in the other: keep the flags.
        let shift = (g.cancelhandling & 7) * 8;
        let flags = value & !(0xffff_ffffu64 << shift);
        return (flags >> 32 < 0x1000).then_some(Some(Word::Constant(flags)));
    }
    if at == g.report_events & !7
        && value.count_ones() == 1
        && value.trailing_zeros().is_multiple_of(8)
    {
        // user_stack, beside report_events.
        return constant;
    }
    None
}
