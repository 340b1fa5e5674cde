//! The whole run in steps: in each step the threads' parts lie on top of each other, so that even
//! sharing shows as even bands, whatever the length of a slice.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::axis::{self, Axis};
use super::palette;
use crate::demo::tally::{DRAWN_WORKERS, Tally, Worker};
use crate::units::ms;

/// The height of a worker's row.
const ROW: f64 = 72.0;
/// The drawing.
pub fn svg(tally: &Tally) -> String {
    let (from, until) = tally.measured().unwrap_or_default();
    let length = ms(until - from);
    let axis = Axis::new(0.0, length);
    let workers = tally.workers().len().min(DRAWN_WORKERS);
    let mut svg = axis::begin(&axis, workers, ROW, "shares of each worker over the whole run");
    for (place, worker) in tally.workers().iter().enumerate().take(DRAWN_WORKERS) {
        for (thread, path) in paths(worker, &axis, axis::top(place, ROW), ms(tally.step()), length)
        {
            let ran: f64 =
                worker.steps.iter().filter_map(|step| step.get(&thread)).map(|t| ms(*t)).sum();
            let _ = writeln!(
                svg,
                "<path class=\"s t{thread}\" fill=\"{}\" d=\"{path}\"><title>thread {thread} had \
                 {:.1} % of worker {place}: {ran:.1} of {length:.1} ms</title></path>",
                palette::color(thread),
                ran / length.max(f64::MIN_POSITIVE) * 100.0,
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// For each thread on this worker one path that holds a box for each step.
fn paths(
    worker: &Worker,
    axis: &Axis,
    top: f64,
    step: f64,
    length: f64,
) -> BTreeMap<usize, String> {
    let mut paths: BTreeMap<usize, String> = BTreeMap::new();
    for (at, parts) in worker.steps.iter().enumerate() {
        let start = at as f64 * step;
        let whole = step.min(length - start);
        if whole <= 0.0 {
            break;
        }
        let (x, width) = (axis.x(start), axis.length(whole));
        let mut y = top;
        for (thread, time) in parts {
            let height = ms(*time) / whole * ROW;
            let path = paths.entry(*thread).or_default();
            let _ = write!(path, "M{x:.2} {y:.2}h{width:.2}v{height:.2}h-{width:.2}z");
            y += height;
        }
    }
    paths
}
