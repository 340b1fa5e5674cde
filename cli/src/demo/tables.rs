//! The demo's tables: what each thread got, what each worker did.

use std::time::Duration;

use comfy_table::Cell;
use reveille::RuntimeStats;

use super::tally::Tally;
use crate::output::{bare_table, right};
use crate::units::{grouped, ms};

/// Cells of a bar.
const BAR: f64 = 20.0;

/// The threads' table, with at most `rows` rows.
pub fn threads(tally: &Tally, work: &[u64], rows: usize) -> String {
    let total: f64 = tally.threads().iter().map(|thread| thread.cpu.as_secs_f64()).sum();
    let most = tally.threads().iter().map(|thread| thread.cpu).max().unwrap_or_default();
    let mut table = bare_table();
    table.set_header([
        Cell::new("thread"),
        Cell::new("share of the time"),
        right("%"),
        right("ms"),
        right("slices"),
        right("preempted"),
        right("longest wait, ms"),
        right("loops, 1000"),
    ]);
    for (place, thread) in tally.threads().iter().enumerate().take(rows) {
        let share = if total > 0.0 { thread.cpu.as_secs_f64() / total } else { 0.0 };
        table.add_row([
            right(place),
            Cell::new(bar(thread.cpu, most)),
            right(format!("{:.2}", share * 100.0)),
            right(format!("{:.1}", ms(thread.cpu))),
            right(grouped(thread.slices as i64)),
            right(grouped(thread.preempted as i64)),
            right(format!("{:.1}", ms(thread.longest_wait))),
            right(grouped((work.get(place).copied().unwrap_or(0) / 1000) as i64)),
        ]);
    }
    let mut text = table.to_string();
    if tally.threads().len() > rows {
        text.push_str(&format!("\n  ... and {} more threads", tally.threads().len() - rows));
    }
    text
}

/// The workers' table; `stats` counts from the start of the runtime.
pub fn workers(tally: &Tally, stats: &RuntimeStats) -> String {
    let time = tally.measured().map_or(Duration::ZERO, |(from, until)| until - from);
    let mut table = bare_table();
    table.set_header([
        Cell::new("worker"),
        right("busy %"),
        right("slices"),
        right("switches"),
        right("preemptions"),
        right("ticks"),
        right("steals"),
    ]);
    for (place, (worker, stats)) in tally.workers().iter().zip(&stats.workers).enumerate() {
        let busy = worker.busy.as_secs_f64() / time.as_secs_f64().max(1e-9) * 100.0;
        table.add_row([
            right(place),
            right(format!("{busy:.1}")),
            right(grouped(worker.slices as i64)),
            right(grouped(stats.switches as i64)),
            right(grouped(stats.preemptions as i64)),
            right(grouped(stats.ticks as i64)),
            right(grouped(stats.steals as i64)),
        ]);
    }
    table.to_string()
}

/// One line for output that is not a terminal.
pub fn line(tally: &Tally, elapsed: Duration) -> String {
    const SHOWN: usize = 12;
    let threads = tally.threads();
    let total: f64 = threads.iter().map(|thread| thread.cpu.as_secs_f64()).sum();
    let shares: Vec<String> = threads
        .iter()
        .take(SHOWN)
        .map(|thread| format!("{:.1}", thread.cpu.as_secs_f64() / total.max(1e-9) * 100.0))
        .collect();
    let more = if threads.len() > SHOWN { " ..." } else { "" };
    format!(
        "{:5.1} s  shares in % {}{more}  slices {}  preemptions {}",
        elapsed.as_secs_f64(),
        shares.join(" "),
        grouped(threads.iter().map(|thread| thread.slices).sum::<u64>() as i64),
        grouped(threads.iter().map(|thread| thread.preempted).sum::<u64>() as i64),
    )
}

/// A bar for `value`, full at `most`.
fn bar(value: Duration, most: Duration) -> String {
    if most.is_zero() {
        return String::new();
    }
    let eighths = (value.as_secs_f64() / most.as_secs_f64() * BAR * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tally::{End, Span};

    fn tally() -> Tally {
        let ms = Duration::from_millis;
        let mut tally = Tally::new(3, 1, ms(10), ms(60));
        tally.finish((0..30).map(|i| Span {
            worker: 0,
            thread: i % 3,
            start: ms(i as u64),
            end: ms(i as u64 + 1),
            end_reason: End::Preempted,
        }));
        tally
    }

    #[test]
    fn every_thread_has_a_row() {
        let text = threads(&tally(), &[1000, 2000, 3_000_000], 10);
        assert!(text.contains("3,000"), "{text}");
        assert_eq!(text.lines().count(), 7, "{text}");
    }

    #[test]
    fn too_many_threads_are_cut_off() {
        let text = threads(&tally(), &[], 2);
        assert!(text.ends_with("... and 1 more threads"), "{text}");
    }

    #[test]
    fn a_line_names_the_shares() {
        let text = line(&tally(), Duration::from_secs(1));
        assert!(text.starts_with("  1.0 s  shares in % "), "{text}");
        assert!(text.contains("preemptions 30"), "{text}");
    }

    #[test]
    fn bars_have_eighths() {
        let ms = Duration::from_millis;
        assert_eq!(bar(ms(100), ms(100)), "█".repeat(20));
        assert_eq!(bar(ms(5), ms(200)), "▌");
        assert_eq!(bar(ms(0), ms(0)), "");
    }
}
