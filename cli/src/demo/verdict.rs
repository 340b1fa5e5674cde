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

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The time each thread had on workers.
    pub cpu: &'a [Duration],
    /// A usual slice, the grain of the sharing: a thread may be ahead of or behind the others by
    /// one of them at any moment.
    pub slice: Duration,
    /// The longest time between two slices of a thread.
    pub longest_wait: Duration,
    /// How long workers were ready but the kernel ran something else; whose slice it was that
    /// lasted so much longer is chance.
    pub taken: Duration,
}

/// Judges the shares.
pub fn judge(evidence: Evidence) -> Verdict {
    let shares: Vec<f64> = evidence.cpu.iter().map(Duration::as_secs_f64).collect();
    let Some((who, percent)) = largest_deviation(&shares) else {
        return Verdict { fair: false, text: "unfair: no thread ran at all".into() };
    };
    if shares.len() == 1 {
        let text = "fair: a single thread has nobody to share with".into();
        return Verdict { fair: true, text };
    }
    let grain = evidence.slice.as_secs_f64() / mean(&shares) * 100.0;
    let allowed = ALLOWED.max(grain);
    let fair = percent.abs() <= allowed;
    let limit = if grain > ALLOWED {
        format!("{allowed:.1} %, which is one slice in so short a run")
    } else {
        format!("{allowed:.0} %")
    };
    let fair_share = 100.0 / shares.len() as f64;
    let shared = if fair {
        format!(
            "fair: every thread got {fair_share:.2} % of the time within {:.2} % of that",
            percent.abs(),
        )
    } else {
        let got = shares[who] / shares.iter().sum::<f64>() * 100.0;
        let than = if percent < 0.0 { "less" } else { "more" };
        format!(
            "unfair: thread {who} got {got:.2} % of the time instead of {fair_share:.2} %, \
             {:.1} % {than} than its fair share",
            percent.abs(),
        )
    };
    let wait = ms(evidence.longest_wait);
    let mut text =
        format!("{shared} (allowed: {limit}); the longest wait for a turn was {wait:.1} ms");
    let explained = evidence.taken.as_secs_f64() / mean(&shares) * 100.0;
    if explained >= if fair { 1.0 } else { percent.abs() - allowed } {
        let taken = ms(evidence.taken);
        text += &format!("; for {taken:.0} ms the kernel ran something else instead of a worker");
        if !fair {
            text += ", which can explain the difference: try again on an idle machine";
        }
    }
    Verdict { fair, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(cpu_ms: &[u64], taken_ms: u64) -> Verdict {
        let cpu: Vec<Duration> = cpu_ms.iter().map(|ms| Duration::from_millis(*ms)).collect();
        judge(Evidence {
            cpu: &cpu,
            slice: Duration::from_millis(1),
            longest_wait: Duration::from_millis(7),
            taken: Duration::from_millis(taken_ms),
        })
    }

    #[test]
    fn equal_shares_are_fair() {
        let verdict = judged(&[500, 505, 495, 500], 0);
        assert!(verdict.fair);
        assert!(verdict.text.contains("25.00 %") && verdict.text.contains("within 1.00 %"));
        assert!(verdict.text.contains("7.0 ms"));
    }

    #[test]
    fn a_starved_thread_is_named() {
        let verdict = judged(&[600, 600, 0], 0);
        assert!(!verdict.fair);
        assert!(verdict.text.starts_with("unfair: thread 2 got 0.00 %"), "{}", verdict.text);
        assert!(verdict.text.contains("100.0 % less"));
    }

    #[test]
    fn a_greedy_thread_is_named() {
        let verdict = judged(&[300, 100, 100, 100], 0);
        assert!(verdict.text.contains("thread 0") && verdict.text.contains("100.0 % more"));
    }

    #[test]
    fn one_slice_of_difference_is_no_injustice() {
        let verdict = judged(&[11, 10], 0);
        assert!(verdict.fair);
        assert!(verdict.text.contains("one slice"));
    }

    #[test]
    fn one_thread_and_no_time() {
        assert!(judged(&[10], 0).fair);
        assert!(!judged(&[0, 0], 0).fair);
        assert!(!judged(&[], 0).fair);
    }

    #[test]
    fn a_busy_machine_is_named_but_no_excuse() {
        let verdict = judged(&[400, 430, 370], 200);
        assert!(!verdict.fair);
        assert!(verdict.text.contains("200 ms") && verdict.text.contains("explain"));
        assert!(!judged(&[400, 800, 0], 20).text.contains("explain"));
        assert!(judged(&[400, 400], 20).text.contains("for 20 ms the kernel"));
        assert!(!judged(&[400, 400], 1).text.contains("kernel"));
    }
}
