//! The states of all threads, written to standard error without allocation or locks: for watchdogs and
//! for processes that hang. Racy by nature: what it prints was true a moment ago.
#![allow(unsafe_code)]

use crate::check::{write, write_number};
use crate::slot::slab;
use crate::tcb::Record;
use core::sync::atomic::Ordering;

/// Writes a line for each thread that exists.
pub fn dump_threads() {
    slab::each_record(|r| {
        if r.id.load(Ordering::Relaxed) != 0 || r.state.load(Ordering::Relaxed) != 0 {
            line(r);
        }
    });
}

fn line(r: &Record) {
    const STATES: [&str; 6] = ["free", "ready", "running", "blocked", "done", "loop"];
    const AFTER: [&str; 11] = [
        "loop",
        "yield",
        "sliced",
        "preempted",
        "interrupted",
        "join",
        "park",
        "wait",
        "rest",
        "exit",
        "exit-to-joiner",
    ];
    let state = r.state.load(Ordering::Relaxed) as usize;
    write("thread ");
    write_number(r.id.load(Ordering::Relaxed));
    write(" ");
    write(STATES.get(state).unwrap_or(&"?"));
    write(", last left by ");
    write(AFTER.get(r.after.get() as usize).unwrap_or(&"?"));
    write(", join word ");
    write_number(r.join.raw() as u64);
    write(", token ");
    write_number(r.token.word().load(Ordering::Relaxed).into());
    write(", preempted ");
    write_number(r.preemptions.load(Ordering::Relaxed));
    write(", record ");
    write_number(core::ptr::from_ref(r) as u64);
    if r.after.get() == crate::tcb::state::After::Join
        // SAFETY: null or a record, which is never freed.
        && let Some(t) = unsafe { r.target.get().as_ref() }
    {
        write(", joins ");
        write_number(t.id.load(Ordering::Relaxed));
    }
    write("\n");
}
