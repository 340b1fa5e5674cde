//! Choosing the next thread.

use super::{Shared, Worker};
use crate::sched::policy::Source;
use crate::sched::{flow, random};
use crate::tcb::Record;
use core::sync::atomic::Ordering;

impl Worker {
    /// The next thread for this worker to run, if it can be had without looking at other workers.
    #[inline(always)]
    pub(crate) fn pick(&self) -> Option<&'static Record> {
        if self.turns.is_usual(self.site.switches.get())
            && let Some(r) = self.ring.pop(self.sole.get())
        {
            // SAFETY: records are never freed.
            return Some(unsafe { &*r });
        }
        self.pick_in_order()
    }

    #[inline(never)]
    fn pick_in_order(&self) -> Option<&'static Record> {
        if self.site.alarm.take_due()
            && let Some(r) = super::alarm::expire(self)
        {
            return Some(r);
        }
        let r = self.pick_by_turns();
        // The alarm may have rung while the turns were being counted, and its hurry been lost.
        if self.site.alarm.is_due() {
            self.turns.hurry();
        }
        r
    }

    fn pick_by_turns(&self) -> Option<&'static Record> {
        let shared = self.shared();
        for source in self.turns.order(self.site.switches.get()) {
            let r = match source {
                Source::Ring => self.ring.pop(self.sole.get()),
                Source::Arrivals => self.take_arrivals(shared),
                Source::Sliced => shared.sliced.pop(),
            };
            if let Some(r) = r {
                // SAFETY: records are never freed.
                return Some(unsafe { &*r });
            }
        }
        None
    }

    /// One arrival to run, and a fair part of the others into the ring while it is empty.
    fn take_arrivals(&self, shared: &Shared) -> Option<*const Record> {
        let len = shared.arrivals.len.load(Ordering::Acquire);
        if len == 0 {
            return None;
        }
        let mut list = shared.arrivals.list.lock();
        // SAFETY: the ring is this worker's own; records are never freed.
        let first = unsafe { flow::refill(self.ring, &mut list, shared.workers().len()) };
        shared.arrivals.len.store(list.len(), Ordering::Release);
        drop(list);
        // New threads have come to this worker without passing `give`: if more wait than the one that runs
        // now, ticks must come (a thread that ends or blocks looks no further than here).
        if first.is_some() && (self.ring.len() != 0 || shared.arrivals.any()) {
            self.site.ticker.arrival();
        }
        first
    }

    /// Half of another worker's ring, starting with a random victim.
    pub(super) fn steal(&self) -> Option<&'static Record> {
        let workers = self.shared().workers();
        let start = self.next_random() as usize;
        for i in 0..workers.len() {
            let victim = &workers[(start + i) % workers.len()];
            if core::ptr::eq::<Worker>(&**victim, self) {
                continue;
            }
            if victim.ring.steal_into(self.ring) > 0
                && let Some(r) = self.ring.pop(false)
            {
                self.steals.bump();
                // SAFETY: records are never freed.
                return Some(unsafe { &*r });
            }
        }
        None
    }

    fn next_random(&self) -> u32 {
        let x = random::after(self.random.get());
        self.random.set(x);
        x
    }
}
