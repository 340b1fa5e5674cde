//! Whether a tick takes the worker away from the interrupted thread: a pure function.
#![forbid(unsafe_code)]

/// What the handler has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    /// A reveille thread was interrupted (not the worker's loop).
    pub in_thread: bool,
    /// Its preemption count.
    pub off: u32,
    /// The interrupted stack is the worker's signal stack.
    pub on_signal_stack: bool,
    /// The interrupted instruction lies in the resume window.
    pub in_window: bool,
    /// The interrupted signal mask is not the one the thread is known by.
    pub foreign_mask: bool,
    /// The thread has run for less than a slice, or has had less than the others.
    pub fresh: bool,
    /// Somebody waits.
    pub waiting: bool,
    /// Its state can be saved and resumed.
    pub can_save: bool,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Return to the thread.
    Ignore(Reason),
    /// Return, and have the thread give way when it switches preemption on.
    Defer,
    /// Switch.
    Switch,
}

/// Why a tick is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    NoThread,
    NobodyWaits,
    Fresh,
    OnSignalStack,
    InWindow,
    ForeignMask,
    NoRoom,
}

/// The decision. What need not be comes before what cannot be: only a tick that is due is remembered.
#[inline]
pub(crate) fn decide(s: &Snapshot) -> Decision {
    use Decision::{Defer, Ignore, Switch};
    if !s.in_thread {
        return Ignore(Reason::NoThread);
    }
    if !s.waiting {
        return Ignore(Reason::NobodyWaits);
    }
    if s.fresh {
        return Ignore(Reason::Fresh);
    }
    if s.on_signal_stack {
        return Ignore(Reason::OnSignalStack);
    }
    if s.off != 0 {
        return Defer;
    }
    if s.in_window {
        return Ignore(Reason::InWindow);
    }
    if s.foreign_mask {
        return Ignore(Reason::ForeignMask);
    }
    if !s.can_save {
        return Ignore(Reason::NoRoom);
    }
    Switch
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Snapshot = Snapshot {
        in_thread: true,
        off: 0,
        on_signal_stack: false,
        in_window: false,
        foreign_mask: false,
        fresh: false,
        waiting: true,
        can_save: true,
    };

    #[test]
    fn a_thread_that_used_its_slice_is_switched() {
        assert_eq!(decide(&DUE), Decision::Switch);
    }

    #[test]
    fn a_tick_with_preemption_off_is_remembered_only_if_it_is_due() {
        assert_eq!(decide(&Snapshot { off: 1, ..DUE }), Decision::Defer);
        let fresh = Snapshot { off: 1, fresh: true, ..DUE };
        assert_eq!(decide(&fresh), Decision::Ignore(Reason::Fresh));
        let alone = Snapshot { off: 1, waiting: false, ..DUE };
        assert_eq!(decide(&alone), Decision::Ignore(Reason::NobodyWaits));
    }

    #[test]
    fn no_switch_where_the_context_is_not_whole() {
        for (s, why) in [
            (Snapshot { in_thread: false, ..DUE }, Reason::NoThread),
            (Snapshot { in_window: true, ..DUE }, Reason::InWindow),
            (Snapshot { on_signal_stack: true, ..DUE }, Reason::OnSignalStack),
            (Snapshot { foreign_mask: true, ..DUE }, Reason::ForeignMask),
            (Snapshot { can_save: false, ..DUE }, Reason::NoRoom),
        ] {
            assert_eq!(decide(&s), Decision::Ignore(why));
        }
    }

    #[test]
    fn every_combination_that_switches_is_whole_and_due() {
        for bits in 0..256u32 {
            let b = |i: u32| bits >> i & 1 == 1;
            let s = Snapshot {
                in_thread: b(0),
                off: u32::from(b(1)),
                on_signal_stack: b(2),
                in_window: b(3),
                foreign_mask: b(4),
                fresh: b(5),
                waiting: b(6),
                can_save: b(7),
            };
            let whole = b(0) && !b(1) && !b(2) && !b(3) && !b(4) && b(7);
            assert_eq!(decide(&s) == Decision::Switch, whole && !b(5) && b(6));
        }
    }
}
