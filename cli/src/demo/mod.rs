//! `reveille demo`: CPU-bound threads that never yield share a few workers.
//!
//! [`hogs`] are the threads; the library records their slices; a plain kernel thread, this one,
//! collects the slices a few times a second, adds them up ([`tally`]) and shows them ([`live`],
//! [`tables`]). At the end there are a [`verdict`] and a [`picture`].

mod hogs;
mod live;
mod picture;
mod tables;
mod tally;
mod verdict;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use reveille::Runtime;

use crate::args::Demo;
use crate::output;
use crate::proc;
use crate::units::{self, ms};
use hogs::Hogs;
use live::Live;
use tally::Tally;
use verdict::Evidence;

/// Pause between two collections of slices.
const COLLECT: Duration = Duration::from_millis(50);
/// Steps in the overview of the whole run.
const STEPS: u32 = 120;
/// Most rows of the last table.
const ROWS: usize = 50;

/// Runs the demo; `false` if fairness was to be checked and the shares were unfair.
///
/// # Errors
/// The picture's file cannot be written (found out before anything is started), the runtime cannot
/// be started, or the recorder recorded nothing.
pub fn run(args: &Demo) -> anyhow::Result<bool> {
    let file = if args.no_html { None } else { Some(open(&args.html)?) };
    let runtime = Runtime::builder()
        .workers(args.workers as usize)
        .time_slice(args.slice)
        .adaptive_slices(args.adaptive)
        .record_slices(capacity(args.slice))
        .build()
        .context("cannot start the runtime")?;
    let title = title(args);
    if !console::Term::stdout().is_term() {
        output::print(&title)?;
    }
    let (tally, work, taken) = watch(args, &runtime, Live::new(title.clone()))?;
    let stats = runtime.stats();
    runtime.shutdown().context("cannot shut the runtime down")?;
    ensure!(tally.measured().is_some(), "no slice was recorded; try more --seconds");

    let cpu: Vec<Duration> = tally.threads().iter().map(|thread| thread.cpu).collect();
    let wait = tally.threads().iter().map(|thread| thread.longest_wait).max();
    let verdict = verdict::judge(Evidence {
        cpu: &cpu,
        slice: tally.slice_length(0.5),
        longest_wait: wait.unwrap_or_default(),
        taken,
    });
    output::print(&title)?;
    output::print(&tables::threads(&tally, &work, ROWS))?;
    output::print(&tables::workers(&tally, &stats))?;
    output::print(&format!(
        "Slices: median {:.3} ms, 99 % within {:.3} ms, longest {:.3} ms",
        ms(tally.slice_length(0.5)),
        ms(tally.slice_length(0.99)),
        ms(tally.slice_length(1.0)),
    ))?;
    output::print(&format!("Verdict: {}.", verdict.text))?;
    if let Some(mut file) = file {
        let html = picture::html(args, &tally, &verdict);
        file.set_len(0)
            .and_then(|()| file.write_all(html.as_bytes()))
            .with_context(|| format!("cannot write {}", args.html.display()))?;
        output::print(&format!("Picture: {}", args.html.display()))?;
    }
    Ok(verdict.fair || !args.check)
}

/// Runs the threads for their time; returns the sums, each thread's iterations, and for how long
/// the kernel ran something else instead of a worker.
fn watch(
    args: &Demo,
    runtime: &Runtime,
    mut live: Live,
) -> anyhow::Result<(Tally, Vec<u64>, Duration)> {
    let step = (args.seconds / STEPS).max(Duration::from_micros(1));
    let workers = args.workers as usize;
    let mut tally = Tally::new(args.threads as usize, workers, step, args.window);
    let mut hogs = Hogs::start(runtime, args.threads as usize);
    let waited = proc::waited_for_cpu();
    let start = Instant::now();
    while start.elapsed() < args.seconds {
        std::thread::sleep(COLLECT.min(args.seconds.saturating_sub(start.elapsed())));
        tally.add(hogs.spans(&runtime.take_slices()));
        live.show(&tally, &hogs.work(), start.elapsed())?;
    }
    let taken = proc::waited_for_cpu().saturating_sub(waited);
    let work = hogs.work();
    hogs.stop()?;
    tally.finish(hogs.spans(&runtime.take_slices()));
    live.clear()?;
    Ok((tally, work, taken))
}

/// How many slices a worker must be able to record between two collections, with room for delays.
fn capacity(slice: Duration) -> usize {
    let each = slice.max(Duration::from_micros(10)).as_nanos();
    ((COLLECT * 20).as_nanos() / each).clamp(4_096, 100_000) as usize
}

/// Opens the picture's file without changing what is in it yet.
fn open(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(|| format!("cannot write the picture to {}", path.display()))
}

/// What runs, in a few words.
fn title(args: &Demo) -> String {
    let plural = |n: u32, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    format!(
        "{}, never yielding, on {}: {} {}, {} s",
        plural(args.threads, "CPU-bound thread"),
        plural(args.workers, "worker"),
        if args.adaptive { "adaptive slices from" } else { "slices of" },
        units::short(args.slice),
        args.seconds.as_secs_f64(),
    )
}
