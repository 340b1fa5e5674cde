//! Fair or unfair, and why: a pure function of what the threads got.

use std::time::Duration;

use crate::stats::{largest_deviation, mean};
use crate::units::ms;

/// Deviations up to this many percent of the fair share are fair.
const ALLOWED: f64 = 3.0;

/// The judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the shares were fair.
    pub fair: bool,
    /// The judgement in a sentence or two.
    pub text: String,
}

/// Judges the time each thread got. `longest_slice` is the grain of the sharing: a thread may be
/// ahead of or behind the others by one slice at any moment. `longest_wait` is mentioned.
pub fn judge(cpu: &[Duration], longest_slice: Duration, longest_wait: Duration) -> Verdict {
    let shares: Vec<f64> = cpu.iter().map(Duration::as_secs_f64).collect();
    let Some((who, percent)) = largest_deviation(&shares) else {
        return Verdict { fair: false, text: "unfair: no thread ran at all".into() };
    };
    let total: f64 = shares.iter().sum();
    let grain = longest_slice.as_secs_f64() / mean(&shares) * 100.0;
    let allowed = ALLOWED.max(grain);
    let fair = percent.abs() <= allowed;
    let fair_share = 100.0 / shares.len() as f64;
    let got = shares[who] / total * 100.0;
    let because = if grain > ALLOWED {
        format!("{allowed:.1} %, which is one slice in so short a run")
    } else {
        format!("{allowed:.0} %")
    };
    let text = if shares.len() == 1 {
        "fair: a single thread has nobody to share with".to_owned()
    } else if fair {
        format!(
            "fair: every thread got {fair_share:.2} % of the time within {:.2} % of that \
             (allowed: {because}); the longest wait for a turn was {:.1} ms",
            percent.abs(),
            ms(longest_wait),
        )
    } else {
        format!(
            "unfair: thread {who} got {got:.2} % of the time instead of {fair_share:.2} %, \
             {:.1} % {} than its fair share (allowed: {because}); the longest wait for a turn was \
             {:.1} ms",
            percent.abs(),
            if percent < 0.0 { "less" } else { "more" },
            ms(longest_wait),
        )
    };
    Verdict { fair, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(1);
    const WAIT: Duration = Duration::from_millis(7);

    fn cpu(ms: &[u64]) -> Vec<Duration> {
        ms.iter().map(|ms| Duration::from_millis(*ms)).collect()
    }

    #[test]
    fn equal_shares_are_fair() {
        let verdict = judge(&cpu(&[500, 505, 495, 500]), SLICE, WAIT);
        assert!(verdict.fair);
        assert!(verdict.text.contains("25.00 %") && verdict.text.contains("within 1.00 %"));
        assert!(verdict.text.contains("7.0 ms"));
    }

    #[test]
    fn a_starved_thread_is_named() {
        let verdict = judge(&cpu(&[600, 600, 0]), SLICE, WAIT);
        assert!(!verdict.fair);
        assert!(verdict.text.starts_with("unfair: thread 2 got 0.00 %"), "{}", verdict.text);
        assert!(verdict.text.contains("100.0 % less"));
    }

    #[test]
    fn a_greedy_thread_is_named() {
        let verdict = judge(&cpu(&[300, 100, 100, 100]), SLICE, WAIT);
        assert!(verdict.text.contains("thread 0") && verdict.text.contains("100.0 % more"));
    }

    #[test]
    fn one_slice_of_difference_is_no_injustice() {
        let verdict = judge(&cpu(&[11, 10]), SLICE, WAIT);
        assert!(verdict.fair);
        assert!(verdict.text.contains("one slice"));
    }

    #[test]
    fn one_thread_and_no_time() {
        assert!(judge(&cpu(&[10]), SLICE, WAIT).fair);
        assert!(!judge(&cpu(&[0, 0]), SLICE, WAIT).fair);
        assert!(!judge(&[], SLICE, WAIT).fair);
    }
}
