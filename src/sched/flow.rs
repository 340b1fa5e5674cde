//! Between a worker's ring and the shared list of arrivals.

use super::Linked;
use super::list::List;
use super::ring::Ring;

/// The ring is full: its oldest entries, then `entry`, go to the end of the list. Owner of the ring only.
///
/// # Safety
/// `entry` stands in no list; it and the ring's entries live until they have been taken out.
pub(crate) unsafe fn spill<T: Linked, const N: usize>(
    ring: &Ring<T, N>,
    sole: bool,
    entry: *const T,
    list: &mut List<T>,
) {
    for _ in 0..Ring::<T, N>::SPILL {
        let Some(old) = ring.pop(sole) else { break };
        // SAFETY: taken out of the ring, so it stands in no list.
        unsafe { list.push(old) };
    }
    // SAFETY: the caller's promise.
    unsafe { list.push(entry) };
}

/// Takes the oldest entry of the list to run, and a fair part of the others, the oldest, into the ring if it
/// is empty. Owner of the ring only.
///
/// # Safety
/// The entries live until they have been taken out.
pub(crate) unsafe fn refill<T: Linked, const N: usize>(
    ring: &Ring<T, N>,
    list: &mut List<T>,
    workers: usize,
) -> Option<*const T> {
    let first = list.pop();
    if ring.len() == 0 {
        for _ in 0..(list.len() / workers).min(Ring::<T, N>::SPILL) {
            let Some(entry) = list.pop() else { break };
            if let Err(entry) = ring.push(entry) {
                // SAFETY: taken out just now.
                unsafe { list.push(entry) };
                break;
            }
        }
    }
    first
}
