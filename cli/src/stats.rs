//! The few statistics that the reports need. Pure functions.

/// Median, smallest, largest and number of a set of measured values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median: the middle value, or the mean of the two middle ones.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// How many values there were.
    pub n: usize,
}

impl Summary {
    /// Summarises `values`; `None` if there are none or one of them is not a number.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|v| v.is_nan()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        Some(Self {
            median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            min: sorted[0],
            max: sorted[n - 1],
            n,
        })
    }
}

/// The arithmetic mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Which value is farthest from the mean, and by how many percent of the mean (with its sign).
///
/// `None` if there are no values or their mean is not above 0: then nobody got anything.
pub fn largest_deviation(values: &[f64]) -> Option<(usize, f64)> {
    let fair = mean(values);
    if fair.is_nan() || fair <= 0.0 {
        return None;
    }
    values
        .iter()
        .map(|value| (value - fair) / fair * 100.0)
        .enumerate()
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_holds_median_and_range() {
        let odd = Summary::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(odd, Summary { median: 2.0, min: 1.0, max: 3.0, n: 3 });
        let even = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((even.median, even.n), (2.5, 4));
        assert_eq!(Summary::of(&[7.0]).unwrap().median, 7.0);
    }

    #[test]
    fn no_values_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_largest_deviation_keeps_its_sign() {
        let (who, percent) = largest_deviation(&[100.0, 110.0, 75.0, 115.0]).unwrap();
        assert_eq!(who, 2);
        assert!((percent + 25.0).abs() < 1e-9, "{percent}");
        assert_eq!(largest_deviation(&[5.0, 5.0]).unwrap().1, 0.0);
        assert_eq!(largest_deviation(&[0.0, 0.0]), None);
        assert_eq!(largest_deviation(&[]), None);
    }
}
