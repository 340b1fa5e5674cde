//! One colour per thread, told apart on light and on dark ground.
//!
//! The first ten are Observable's categorical palette (`schemeObservable10` of d3-scale-chromatic);
//! more are spread over the colour wheel by the golden angle.

use std::fmt::Write;

/// The first colours: name, and whether text on it is dark.
const FIRST: [(&str, bool); 10] = [
    ("#4269d0", false),
    ("#efb118", true),
    ("#ff725c", true),
    ("#6cc5b0", true),
    ("#3ca951", true),
    ("#ff8ab7", true),
    ("#a463f2", false),
    ("#97bbf5", true),
    ("#9c6b4e", false),
    ("#9498a0", true),
];

/// The golden angle in degrees.
const GOLDEN_ANGLE: f64 = 137.508;

/// The colour of a thread.
pub fn color(thread: usize) -> String {
    match FIRST.get(thread) {
        Some((color, _)) => (*color).to_owned(),
        None => {
            let hue = (thread as f64 * GOLDEN_ANGLE) % 360.0;
            let lightness = 50 + 12 * (thread % 2);
            format!("hsl({hue:.0} 60% {lightness}%)")
        }
    }
}

/// The colour of text on the thread's colour.
pub fn text_color(thread: usize) -> &'static str {
    if FIRST.get(thread).is_none_or(|(_, dark)| *dark) { "#1c1c1e" } else { "#ffffff" }
}

/// Rules that dim the other threads while one's name in the legend is pointed at.
pub fn css(threads: usize) -> String {
    let mut css = String::new();
    for thread in 0..threads {
        let _ = writeln!(
            css,
            "body:has(.legend .n{thread}:hover) .s:not(.t{thread}) {{ opacity: .12; }}"
        );
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ() {
        for thread in 0..100 {
            assert_ne!(color(thread), color(thread + 1));
        }
        assert_eq!(text_color(0), "#ffffff");
        assert_eq!(text_color(50), "#1c1c1e");
    }
}
