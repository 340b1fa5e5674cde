//! The end of the run, slice by slice: a box for each slice, in its thread's colour.

use std::fmt::Write;
use std::time::Duration;

use super::axis::{self, Axis};
use super::palette;
use crate::demo::tally::{End, Span};
use crate::units::ms;

/// The height of a worker's row.
const ROW: f64 = 40.0;
/// Boxes at most; with more, the drawing shows less of the past.
const MOST: usize = 20_000;
/// From this width on, a box bears its thread's number.
const NUMBERED: f64 = 15.0;
/// From this width on, boxes are set apart by a gap.
const APART: f64 = 3.0;

/// The drawing of `spans`, which are sorted by their start, on `workers` workers.
pub fn svg(spans: &[Span], workers: usize, window: Duration) -> String {
    let spans = &spans[spans.len().saturating_sub(MOST)..];
    let to = spans.iter().map(|span| span.end).max().unwrap_or_default();
    let first = spans.first().map(|span| span.start).unwrap_or_default();
    let axis = Axis::new(ms(first.max(to.saturating_sub(window))), ms(to));
    let mut svg = axis::begin(&axis, workers, ROW, "time slices of each worker");
    for span in spans {
        slice(&mut svg, &axis, span);
    }
    svg.push_str("</svg>\n");
    svg
}

/// One box.
fn slice(svg: &mut String, axis: &Axis, span: &Span) {
    let (start, length) = (ms(span.start), ms(span.end - span.start));
    let (x, width) = (axis.x(start), axis.length(length));
    let gap = if width > APART { 1.0 } else { 0.0 };
    let y = axis::top(span.worker, ROW);
    let how = match span.end_reason {
        End::Preempted => "preempted",
        End::Exited => "ended",
        End::Other => "gave way",
    };
    let thread = span.thread;
    let _ = writeln!(
        svg,
        "<rect class=\"s t{thread}\" x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{ROW}\" \
         rx=\"{}\" fill=\"{}\"><title>thread {thread} on worker {}: {start:.3} to {:.3} ms, \
         {length:.3} ms, {how}</title></rect>",
        (width - gap).max(0.2),
        gap * 2.0,
        palette::color(thread),
        span.worker,
        start + length,
    );
    if width >= NUMBERED {
        let _ = writeln!(
            svg,
            "<text class=\"in s t{thread}\" x=\"{:.2}\" y=\"{:.1}\" style=\"fill:{}\">{thread}</text>",
            x + (width - gap) / 2.0,
            y + ROW / 2.0,
            palette::text_color(thread),
        );
    }
}
