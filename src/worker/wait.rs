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
        let (me, w) = (self.me, of(self.me));
        me.after.set(after);
        let next = self.next.unwrap_or_else(|| w.loop_record());
        if me.slow.load(Ordering::Relaxed) != 0 {
            return slowly(me, w, next);
        }
        // SAFETY: preemption is off, `after` set; `next` came out of a queue or is the resting loop.
        unsafe { switch(w, me, next) };
        // SAFETY: one level of `off`, runtime data no longer in use.
        unsafe { hot::begin_slice() };
    }
}

/// A switch of a thread with a signal mask of its own: the mask stays with the thread.
#[cold]
#[inline(never)]
pub(super) fn slowly(me: &'static Record, w: &Worker, next: &'static Record) {
    super::mask::leave(me, w);
    // SAFETY: as in `Leaving::go`.
    unsafe { switch(w, me, next) };
    super::mask::come_back(me);
    // SAFETY: as in `Leaving::go`.
    unsafe { hot::begin_slice() };
}
