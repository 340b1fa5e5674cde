//! `Barrier`: `protocol::barrier` with the lot as its queue.

use crate::lot::{self, Wait, WaitsFor};
use crate::protocol::barrier::{BarrierWord, Came};
use core::fmt;

/// Where threads wait for each other, as often as they like; see [`std::sync::Barrier`].
///
/// # Examples
/// ```
/// use reveille::{sync::Barrier, thread};
/// static MEET: Barrier = Barrier::new(3);
/// let others: Vec<_> = (0..2).map(|_| thread::spawn(|| MEET.wait().is_leader())).collect();
/// let mut leaders = usize::from(MEET.wait().is_leader());
/// leaders += others.into_iter().map(|t| usize::from(t.join().unwrap())).sum::<usize>();
/// assert_eq!(leaders, 1);
/// ```
pub struct Barrier {
    word: BarrierWord,
    n: usize,
}

/// What [`Barrier::wait`] tells.
///
/// # Examples
/// ```
/// let alone = reveille::sync::Barrier::new(1);
/// assert!(alone.wait().is_leader());
/// ```
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// For `n` threads. None and one are the same: nobody waits.
    ///
    /// # Examples
    /// ```
    /// static BARRIER: reveille::sync::Barrier = reveille::sync::Barrier::new(1);
    /// BARRIER.wait();
    /// ```
    pub const fn new(n: usize) -> Barrier {
        // More threads than this there cannot be, so that many are waited for in vain in any case.
        let n = if n > u32::MAX as usize { u32::MAX as usize } else { n };
        Barrier { word: BarrierWord::new(), n }
    }

    /// Waits until `n` threads have come, this one included. Then the barrier is as new. One of them, the last to come,
    /// is told that it is the leader.
    ///
    /// # Examples
    /// ```
    /// let barrier = reveille::sync::Barrier::new(1);
    /// assert!(barrier.wait().is_leader());
    /// assert!(barrier.wait().is_leader());
    /// ```
    pub fn wait(&self) -> BarrierWaitResult {
        let key = core::ptr::from_ref(self) as usize;
        match self.word.come(self.n) {
            Came::Last => {
                lot::unpark_all(key, 0);
                BarrierWaitResult(true)
            }
            Came::Waits(round) => {
                while !self.word.is_over(round) {
                    let wait = Wait::on(key, WaitsFor::Barrier);
                    let _why = lot::park(wait, || !self.word.is_over(round));
                }
                BarrierWaitResult(false)
            }
        }
    }
}

impl BarrierWaitResult {
    /// Whether this thread is the one of its round.
    ///
    /// # Examples
    /// ```
    /// let barrier = reveille::sync::Barrier::new(0);
    /// assert!(barrier.wait().is_leader());
    /// ```
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.is_leader()).finish()
    }
}
