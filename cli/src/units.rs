//! Durations and counts as people write them: read from the command line, printed in tables.

use std::time::Duration;

/// The longest time slice that is still a slice and not a mistake.
const LONGEST_SLICE: Duration = Duration::from_secs(10);
/// The longest `--seconds`.
const LONGEST_RUN: f64 = 3600.0;

/// Reads a duration with its unit: `100us`, `1ms`, `1.5ms`, `2s`.
///
/// # Errors
/// No number, no unit or an unknown unit: a text that names the accepted form.
pub fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.parse::<f64>().is_ok() {
        return Err(format!("`{text}` has no unit; write 100us, 1ms or 2s"));
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a number with its unit: 100us, 1ms, 2s"))
}

/// Reads a time slice: a [`duration`] above 0 and at most 10 s.
///
/// # Errors
/// As [`duration`], and when the value is outside the range.
pub fn slice(text: &str) -> Result<Duration, String> {
    let slice = duration(text)?;
    if slice.is_zero() {
        return Err("a slice of 0 leaves no time to run; give at least a few microseconds, \
                    for example 100us"
            .into());
    }
    if slice > LONGEST_SLICE {
        return Err(format!("a slice is at most {}", short(LONGEST_SLICE)));
    }
    Ok(slice)
}

/// Reads the length of the zoomed picture: a [`duration`] above 0.
///
/// # Errors
/// As [`duration`], and when the value is 0.
pub fn window(text: &str) -> Result<Duration, String> {
    let window = duration(text)?;
    if window.is_zero() { Err("a window of 0 shows nothing".into()) } else { Ok(window) }
}

/// Reads a run time in seconds, with or without a fraction: above 0 and at most an hour.
///
/// # Errors
/// Not a number, or outside the range.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 =
        text.trim().parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    if value > 0.0 && value <= LONGEST_RUN {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(format!("give more than 0 and at most {LONGEST_RUN} seconds"))
    }
}

/// A duration in milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A duration as people say it: `1 ms`, `100 us`, `1.5 s`.
pub fn short(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    let (unit, name) = [(1e9, "s"), (1e6, "ms"), (1e3, "us")]
        .into_iter()
        .find(|(unit, _)| ns >= *unit)
        .unwrap_or((1.0, "ns"));
    format!("{} {name}", (ns / unit * 1000.0).round() / 1000.0)
}

/// A number with the precision a reader needs: `1,234`, `56.7`, `8.91`, `0.012`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 || (size >= 1.0 && value.fract() == 0.0) || value == 0.0 {
        grouped(value.round() as i64)
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// A whole number with a comma between groups of three digits.
pub fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(duration(" 1ms "), Ok(Duration::from_millis(1)));
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert!(duration("5").unwrap_err().contains("no unit"));
        assert!(duration("soon").unwrap_err().contains("100us"));
        assert!(duration("").is_err());
        assert!(duration("-1ms").is_err());
    }

    #[test]
    fn slices_are_neither_zero_nor_absurd() {
        assert_eq!(slice("250us"), Ok(Duration::from_micros(250)));
        assert!(slice("0ms").unwrap_err().contains("slice of 0"));
        assert!(slice("1h").unwrap_err().contains("at most 10 s"));
    }

    #[test]
    fn run_times_are_positive_numbers() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "NaN", "inf", "1e9", "ten"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_short() {
        assert_eq!(short(Duration::from_millis(1)), "1 ms");
        assert_eq!(short(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(short(Duration::from_micros(100)), "100 us");
        assert_eq!(short(Duration::from_secs(2)), "2 s");
        assert_eq!(short(Duration::ZERO), "0 ns");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(1_257.3), "1,257");
        assert_eq!(number(36_500.0), "36,500");
        assert_eq!(number(21.04), "21.0");
        assert_eq!(number(1.0), "1");
        assert_eq!(number(3.456), "3.46");
        assert_eq!(number(0.0123), "0.012");
        assert_eq!(number(0.0), "0");
        assert_eq!(grouped(-1_234_567), "-1,234,567");
        assert_eq!(grouped(999), "999");
    }
}
