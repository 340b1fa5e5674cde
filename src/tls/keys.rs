//! pthread keys: running a thread's destructors the way glibc does when a thread ends.
//!
//! POSIX pthread_key_create(3p): destructors run while values are left, in at most
//! `PTHREAD_DESTRUCTOR_ITERATIONS` rounds. std keeps each thread's handle in such a key, so this is
//! not optional.

use super::glibc::Glibc;
use core::ffi::c_void;

/// PTHREAD_DESTRUCTOR_ITERATIONS of glibc.
const ROUNDS: usize = 4;

/// Runs the key destructors of the running thread and clears its values.
///
/// # Safety
/// `fs` is the running thread's thread pointer.
pub(crate) unsafe fn run_destructors(g: &Glibc, fs: usize) {
    for _ in 0..ROUNDS {
        // SAFETY: the caller's promise.
        if !unsafe { one_round(g, fs) } {
            break;
        }
    }
    // Values that four rounds could not get rid of are lost, as POSIX says; so are the blocks.
    for block in 0..g.specific_blocks {
        // SAFETY: the pointers to the blocks are within the thread's own struct pthread.
        unsafe {
            let slot = (fs + g.specific + 8 * block) as *mut *mut u8;
            if block == 0 || (*slot).is_null() {
                continue;
            }
            libc::free((*slot).cast());
            *slot = core::ptr::null_mut();
        }
    }
    // SAFETY: the first block is part of struct pthread.
    unsafe {
        let first = *((fs + g.specific) as *const *mut u8);
        core::ptr::write_bytes(first, 0, g.data_size * g.data_per_block);
    }
}

/// One round over all keys; true if a destructor ran.
///
/// # Safety
/// As [`run_destructors`].
unsafe fn one_round(g: &Glibc, fs: usize) -> bool {
    let mut ran = false;
    for block in 0..g.specific_blocks {
        // SAFETY: within the thread's own struct pthread.
        let data = unsafe { *((fs + g.specific + 8 * block) as *const *mut u8) };
        if data.is_null() {
            continue;
        }
        for i in 0..g.data_per_block {
            let key = block * g.data_per_block + i;
            if key >= g.key_count {
                break;
            }
            // SAFETY: entry `i` of a live block, entry `key` of the process's table.
            ran |= unsafe { run_one(g, data.add(i * g.data_size), g.keys.add(key * g.key_size)) };
        }
    }
    ran
}

/// Runs the destructor of one value, if it has both; true if it ran.
///
/// # Safety
/// `datum` and `key` are live entries of their tables.
unsafe fn run_one(g: &Glibc, datum: *mut u8, key: *const u8) -> bool {
    // SAFETY: fields of the entries, at the offsets that glibc's descriptors give.
    unsafe {
        let value = datum.add(g.data_value).cast::<*mut c_void>();
        let found = *value;
        if found.is_null() {
            return false;
        }
        *value = core::ptr::null_mut();
        let live = *datum.add(g.data_seq).cast::<usize>() == *key.add(g.key_seq).cast::<usize>();
        let destructor = *key.add(g.key_destr).cast::<Option<unsafe extern "C" fn(*mut c_void)>>();
        match destructor {
            Some(d) if live => {
                d(found);
                true
            }
            _ => false,
        }
    }
}
