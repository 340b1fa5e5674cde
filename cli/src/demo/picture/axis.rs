//! The time axis of a drawing, and the frame both drawings share: workers' names at the left,
//! tracks, grid lines and their times.

use std::fmt::Write;

/// The width of a drawing in its own units.
pub const WIDTH: f64 = 1080.0;
/// Where the tracks begin.
pub const LEFT: f64 = 76.0;
/// Space at the right for half a number.
const RIGHT: f64 = 16.0;
/// Space at the bottom for the axis.
const BOTTOM: f64 = 28.0;
/// The space between two rows.
const GAP: f64 = 10.0;

/// A scale from milliseconds to places in a drawing.
pub struct Axis {
    from: f64,
    scale: f64,
    to: f64,
}

impl Axis {
    /// An axis from `from` to `to`, in ms.
    pub fn new(from: f64, to: f64) -> Self {
        let to = to.max(from + 1e-6);
        Self { from, to, scale: (WIDTH - LEFT - RIGHT) / (to - from) }
    }

    /// The place of a time.
    pub fn x(&self, ms: f64) -> f64 {
        LEFT + (ms - self.from) * self.scale
    }

    /// The length of a time.
    pub fn length(&self, ms: f64) -> f64 {
        ms * self.scale
    }

    /// Round times from end to end, about ten of them, in ms.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / 10.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(power * 10.0);
        let first = (self.from / step - 1e-9).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }
}

/// The top of a worker's row where rows are `height` high.
pub fn top(worker: usize, height: f64) -> f64 {
    worker as f64 * (height + GAP)
}

/// Begins a drawing for `workers` workers with rows `height` high: everything that lies under the
/// slices.
pub fn begin(axis: &Axis, workers: usize, height: f64, label: &str) -> String {
    let bottom = top(workers, height) - GAP + 6.0;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
         aria-label=\"{label}\">",
        bottom + BOTTOM
    );
    for worker in 0..workers {
        let y = top(worker, height);
        let middle = y + height / 2.0;
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"0\" y=\"{middle}\" dominant-baseline=\"central\">worker \
             {worker}</text><rect class=\"track\" x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" \
             height=\"{height}\" rx=\"3\"/>",
            WIDTH - LEFT - RIGHT
        );
    }
    let ticks = axis.ticks();
    for (at, ms) in ticks.iter().enumerate() {
        let x = axis.x(*ms);
        let unit = if at + 1 == ticks.len() { " ms" } else { "" };
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
             <text class=\"axis\" x=\"{x:.1}\" y=\"{}\">{}{unit}</text>",
            bottom + 16.0,
            label_of(*ms),
        );
    }
    svg
}

/// A time on the axis, without needless zeros.
fn label_of(ms: f64) -> String {
    let text = format!("{ms:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(Axis::new(0.0, 60.0).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        let ticks = Axis::new(2938.4, 2998.4).ticks();
        assert_eq!(ticks, [2940.0, 2950.0, 2960.0, 2970.0, 2980.0, 2990.0]);
        assert_eq!(Axis::new(0.0, 3000.0).ticks().len(), 7);
        assert!(Axis::new(0.0, 0.0).ticks().len() < 30);
    }

    #[test]
    fn places_span_the_drawing() {
        let axis = Axis::new(10.0, 20.0);
        assert_eq!(axis.x(10.0), LEFT);
        assert!((axis.x(20.0) - (WIDTH - RIGHT)).abs() < 1e-9);
        assert!((axis.length(10.0) - (WIDTH - RIGHT - LEFT)).abs() < 1e-9);
    }

    #[test]
    fn labels_have_no_needless_zeros() {
        assert_eq!(label_of(2940.0), "2940");
        assert_eq!(label_of(0.5), "0.5");
        assert_eq!(label_of(0.0), "0");
    }
}
