//! A thread leaves its worker to wait for something: the steps that `lot` puts its own between.

use super::{Worker, give, of, switch};
use crate::tcb::Record;
use crate::tcb::state::After;
use crate::tls::{due, hot};
use core::sync::atomic::Ordering;

/// A thread that is about to wait, with preemption off.
#[must_use]
pub(crate) struct Leaving {
    me: &'static Record,
    next: Option<&'static Record>,
}

impl Leaving {
    /// Switches preemption off. `me` is the running thread.
    ///
    /// Aborts with a message if the user has it switched off: the thread could not go on, ever.
    #[inline(always)]
    pub(crate) fn begin(me: &'static Record) -> Leaving {
        if hot::off_count() != 0 {
            crate::check::violation(
                "a blocking call",
                "was made while preemption was switched off",
            );
        }
        hot::off_from_on();
        Leaving { me, next: None }
    }

    /// Chooses who runs next. From here nothing may be locked that is locked in this step.
    #[inline(always)]
    pub(crate) fn choose(mut self) -> Leaving {
        self.next = of(self.me).pick();
        self
    }

    /// There is nothing to wait for: whoever was chosen waits on.
    #[inline]
    pub(crate) fn stay(self) {
        if let Some(next) = self.next {
            give::own(of(self.me), next);
        }
        due::on();
    }

    /// Leaves; comes back when somebody has made the thread ready, with preemption on.
    #[inline(always)]
    pub(crate) fn go(self, after: After) {
        let w = of(self.me);
        leave_to(w, self.me, self.next.unwrap_or_else(|| w.loop_record()), after);
    }
}

/// Switches from `me`, with preemption off, to `next`, which came out of a queue or is the resting loop. When somebody
/// switches back, a slice begins.
#[inline(always)]
pub(super) fn leave_to(w: &Worker, me: &'static Record, next: &'static Record, after: After) {
    me.after.set(after);
    if me.slow.load(Ordering::Relaxed) != 0 {
        return slowly(me, w, next);
    }
    // SAFETY: as said; `after` is set.
    unsafe { switch(w, me, next) };
    // SAFETY: one level of `off`, runtime data no longer in use.
    unsafe { hot::begin_slice() };
}

/// A switch of a thread with a signal mask of its own: the mask stays with the thread.
#[cold]
#[inline(never)]
fn slowly(me: &'static Record, w: &Worker, next: &'static Record) {
    super::mask::leave(me, w);
    // SAFETY: as in `leave_to`.
    unsafe { switch(w, me, next) };
    super::mask::come_back(me);
    // SAFETY: as in `leave_to`.
    unsafe { hot::begin_slice() };
}
