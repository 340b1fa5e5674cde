//! Adds up time slices as they come: pure bookkeeping, no threads, no clock.
//!
//! Invariants it owns:
//! - What counts lies between the moment when the last thread first ran and the moment when the
//!   first one ended ([`Tally::measured`]); slices across these borders are cut.
//! - Slices are added in the order of their start. They arrive per worker, so the newest ones are
//!   held back a little, until nothing earlier can follow.
//! - Memory is bounded: totals, a fixed number of steps for the overview, and the slices of the
//!   last window.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Nothing that ended this long before the newest slice can still arrive.
const HOLD: Duration = Duration::from_millis(20);
/// The longest slice that can be told from a longer one: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Workers whose slices are kept for the picture; more would not be readable.
pub const DRAWN_WORKERS: usize = 16;

/// One time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The worker it ran on.
    pub worker: usize,
    /// The thread, by its place in the demo.
    pub thread: usize,
    /// When it began, since the start of the runtime.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
    /// How it ended.
    pub end_reason: End,
}

/// How a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a tick.
    Preempted,
    /// The thread ended.
    Exited,
    /// The thread gave way or slept, which the demo's threads never do.
    Other,
}

/// What one thread got.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Time on workers.
    pub cpu: Duration,
    /// Slices.
    pub slices: u64,
    /// Slices that ended by preemption.
    pub preempted: u64,
    /// The longest time between two slices.
    pub longest_wait: Duration,
    last_end: Option<Duration>,
}

/// What one worker did.
#[derive(Clone, Debug, Default)]
pub struct Worker {
    /// Time it ran threads.
    pub busy: Duration,
    /// Slices it ran.
    pub slices: u64,
    /// For each step of the overview, how long each thread ran in it.
    pub steps: Vec<BTreeMap<usize, Duration>>,
}

/// The sums.
pub struct Tally {
    threads: Vec<Thread>,
    workers: Vec<Worker>,
    held: Vec<Span>,
    recent: VecDeque<Span>,
    first_start: Vec<Option<Duration>>,
    from: Option<Duration>,
    until: Duration,
    step: Duration,
    window: Duration,
    lengths: Histogram<u64>,
}

impl Tally {
    /// For `threads` threads on `workers` workers; the overview has one entry per `step`, and the
    /// slices of the last `window` are kept.
    pub fn new(threads: usize, workers: usize, step: Duration, window: Duration) -> Self {
        Self {
            threads: vec![Thread::default(); threads],
            workers: vec![Worker::default(); workers],
            held: Vec::new(),
            recent: VecDeque::new(),
            first_start: vec![None; threads],
            from: None,
            until: Duration::ZERO,
            step,
            window,
            lengths: Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are in order"),
        }
    }

    /// Adds slices that have just been recorded.
    pub fn add(&mut self, spans: impl IntoIterator<Item = Span>) {
        self.hold(spans);
        if self.from.is_none() {
            let firsts: Option<Vec<Duration>> = self.first_start.iter().copied().collect();
            self.from = firsts.and_then(|firsts| firsts.into_iter().max());
        }
        let Some(from) = self.from else { return };
        let newest = self.held.iter().map(|span| span.end).max().unwrap_or_default();
        let sure = newest.saturating_sub(HOLD);
        self.settle(from, |span| span.end <= sure, Duration::MAX);
    }

    /// Adds the last slices; what came after the first thread's end does not count. If a thread
    /// has not run before these, all of the run counts, so that its lack of a share shows.
    pub fn finish(&mut self, spans: impl IntoIterator<Item = Span>) {
        self.hold(spans);
        let earliest = self.first_start.iter().flatten().min().copied();
        let Some(from) = self.from.or(earliest) else { return };
        self.from = Some(from);
        let ended = |span: &&Span| span.end_reason == End::Exited;
        let until = self.held.iter().filter(ended).map(|span| span.end).min();
        self.settle(from, |_| true, until.unwrap_or(Duration::MAX));
    }

    /// Takes slices in without counting them yet.
    fn hold(&mut self, spans: impl IntoIterator<Item = Span>) {
        for span in spans {
            let first = &mut self.first_start[span.thread];
            *first = Some(first.map_or(span.start, |first| first.min(span.start)));
            self.held.push(span);
        }
    }

    /// Counts the held slices that are `sure`, in order.
    fn settle(&mut self, from: Duration, sure: impl Fn(&Span) -> bool, until: Duration) {
        let (mut now, later): (Vec<Span>, Vec<Span>) = self.held.drain(..).partition(sure);
        self.held = later;
        now.sort_by_key(|span| span.start);
        for span in now {
            let (start, end) = (span.start.max(from), span.end.min(until));
            if start < end {
                self.count(Span { start, end, ..span }, span.end == end);
            }
        }
    }

    /// Counts one slice; `whole` says that its end was not cut off.
    fn count(&mut self, span: Span, whole: bool) {
        let length = span.end - span.start;
        self.until = self.until.max(span.end);
        let thread = &mut self.threads[span.thread];
        thread.cpu += length;
        thread.slices += 1;
        thread.preempted += u64::from(whole && span.end_reason == End::Preempted);
        if let Some(last) = thread.last_end {
            thread.longest_wait = thread.longest_wait.max(span.start.saturating_sub(last));
        }
        thread.last_end = Some(span.end);
        self.lengths.saturating_record(length.as_nanos() as u64);
        let Some(worker) = self.workers.get_mut(span.worker) else { return };
        worker.busy += length;
        worker.slices += 1;
        if span.worker < DRAWN_WORKERS {
            let from = self.from.unwrap_or_default();
            worker.draw(span.thread, span.start - from, span.end - from, self.step);
            self.recent.push_back(span);
        }
        while self.recent.front().is_some_and(|old| old.end + self.window + HOLD < self.until) {
            self.recent.pop_front();
        }
    }

    /// The threads' sums.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The workers' sums.
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// From when to when slices count; `None` until all threads have run.
    pub fn measured(&self) -> Option<(Duration, Duration)> {
        self.from.filter(|from| *from < self.until).map(|from| (from, self.until))
    }

    /// The slices of the last window, cut to it, in the order of their start.
    pub fn recent(&self) -> Vec<Span> {
        let from = self.until.saturating_sub(self.window);
        self.recent
            .iter()
            .filter(|span| span.end > from)
            .map(|span| Span { start: span.start.max(from), ..*span })
            .collect()
    }

    /// The length below which this part of all slices is; `quantile` is between 0 and 1.
    pub fn slice_length(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.lengths.value_at_quantile(quantile))
    }

    /// The step of the overview.
    pub fn step(&self) -> Duration {
        self.step
    }
}

impl Worker {
    /// Spreads one slice over the steps of the overview that it touches.
    fn draw(&mut self, thread: usize, mut start: Duration, end: Duration, step: Duration) {
        while start < end {
            let at = (start.as_nanos() / step.as_nanos()) as usize;
            let border = step * (at as u32 + 1);
            let part = end.min(border) - start;
            if self.steps.len() <= at {
                self.steps.resize_with(at + 1, BTreeMap::new);
            }
            *self.steps[at].entry(thread).or_default() += part;
            start += part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn span(worker: usize, thread: usize, start: u64, end: u64) -> Span {
        Span { worker, thread, start: ms(start), end: ms(end), end_reason: End::Preempted }
    }

    fn tally() -> Tally {
        Tally::new(2, 1, ms(10), ms(100))
    }

    #[test]
    fn counting_begins_when_all_threads_have_run() {
        let mut tally = tally();
        tally.add([span(0, 0, 0, 10), span(0, 0, 10, 20)]);
        assert_eq!(tally.measured(), None);
        tally.add([span(0, 1, 20, 30), span(0, 0, 30, 40)]);
        tally.finish([]);
        assert_eq!(tally.measured(), Some((ms(20), ms(40))));
        assert_eq!(tally.threads()[0].cpu, ms(10));
        assert_eq!(tally.threads()[1].cpu, ms(10));
    }

    #[test]
    fn counting_ends_with_the_first_thread() {
        let mut tally = tally();
        tally.add([span(0, 0, 0, 10), span(0, 1, 10, 20)]);
        let exit = Span { end_reason: End::Exited, ..span(0, 0, 20, 22) };
        let late = Span { end_reason: End::Exited, ..span(0, 1, 22, 30) };
        tally.finish([exit, late]);
        assert_eq!(tally.measured(), Some((ms(10), ms(22))));
        assert_eq!(tally.threads()[1].cpu, ms(10));
        assert_eq!(tally.threads()[0].preempted, 0);
    }

    #[test]
    fn a_starved_thread_is_not_forgiven() {
        let mut tally = tally();
        tally.add([span(0, 0, 0, 500)]);
        let end = |thread, at| Span { end_reason: End::Exited, ..span(0, thread, at, at + 1) };
        tally.finish([end(0, 500), end(1, 501)]);
        assert_eq!(tally.measured(), Some((ms(0), ms(501))));
        assert_eq!(tally.threads()[0].cpu, ms(501));
        assert_eq!(tally.threads()[1].cpu, ms(0));
    }

    #[test]
    fn slices_may_arrive_out_of_order() {
        let mut tally = Tally::new(2, 2, ms(10), ms(100));
        tally.add([span(1, 1, 0, 5), span(0, 0, 0, 5), span(1, 0, 20, 30)]);
        tally.finish([span(0, 0, 8, 20)]);
        assert_eq!(tally.threads()[0].longest_wait, ms(3));
        assert_eq!(tally.threads()[0].slices, 3);
    }

    #[test]
    fn the_overview_splits_slices_at_its_steps() {
        let mut tally = Tally::new(1, 1, ms(10), ms(100));
        tally.finish([span(0, 0, 5, 32)]);
        let steps: Vec<Duration> = tally.workers()[0].steps.iter().map(|step| step[&0]).collect();
        assert_eq!(steps, [ms(10), ms(10), ms(7)]);
    }

    #[test]
    fn only_the_last_window_is_kept() {
        let mut tally = Tally::new(1, 1, ms(10), ms(15));
        tally.finish((0..1000).map(|i| span(0, 0, i * 10, i * 10 + 10)));
        let recent = tally.recent();
        assert_eq!(recent.len(), 2);
        assert_eq!((recent[0].start, recent[1].end), (ms(9985), ms(10_000)));
        assert!(tally.recent.len() < 10);
        assert_eq!(tally.threads()[0].slices, 1000);
        assert!(tally.slice_length(0.5).abs_diff(ms(10)) < Duration::from_micros(20));
    }
}
