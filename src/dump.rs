//! The states of all threads, written to standard error without allocation or locks: for watchdogs and
//! for processes that hang. Racy by nature: what it prints was true a moment ago.
#![allow(unsafe_code)]

use crate::check::{write, write_number};
use crate::tcb::Record;
use core::sync::atomic::{AtomicPtr, Ordering};

/// All records ever made, newest first, linked by `Record::older`.
static ALL: AtomicPtr<Record> = AtomicPtr::new(core::ptr::null_mut());

/// Adds a new slot's record.
pub(crate) fn register(r: &'static Record) {
    let mut head = ALL.load(Ordering::Relaxed);
    loop {
        r.older.set(head);
        let new = core::ptr::from_ref(r).cast_mut();
        match ALL.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Writes a line for each thread that exists.
pub fn dump_threads() {
    const STATES: [&str; 6] = ["free", "ready", "running", "blocked", "done", "loop"];
    const AFTER: [&str; 8] =
        ["loop", "yield", "sliced", "preempted", "join", "park", "exit", "exit-to-joiner"];
    // SAFETY: null or a record, which is never freed.
    let mut next = unsafe { ALL.load(Ordering::Acquire).as_ref() };
    while let Some(r) = next {
        let (id, state) = (r.id.load(Ordering::Relaxed), r.state.load(Ordering::Relaxed) as usize);
        if id != 0 || state != 0 {
            write("thread ");
            write_number(id);
            write(" ");
            write(STATES.get(state).unwrap_or(&"?"));
            write(", last left by ");
            write(AFTER.get(r.after.get() as usize).unwrap_or(&"?"));
            write(", join word ");
            write_number(r.join.word().load(Ordering::Relaxed) as u64);
            write(", token ");
            write_number(r.token.word().load(Ordering::Relaxed).into());
            write(", preempted ");
            write_number(r.preemptions.load(Ordering::Relaxed));
            write(", record ");
            write_number(core::ptr::from_ref(r) as u64);
            // SAFETY: as above.
            if let Some(t) = unsafe { r.target.get().as_ref() } {
                write(", joins ");
                write_number(t.id.load(Ordering::Relaxed));
            }
            write("\n");
        }
        // SAFETY: as above.
        next = unsafe { r.older.get().as_ref() };
    }
}
