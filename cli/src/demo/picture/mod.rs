//! The picture: one HTML file that needs nothing else, with two drawings in SVG.
//!
//! [`timeline`] shows the end of the run slice by slice, [`overview`] the whole run in steps;
//! [`axis`] is the scale of both, [`palette`] their colours. Hovering over a thread's name in the
//! legend dims the others; a slice tells its times when pointed at. There is no script in the
//! file, and no text that comes from outside the program.

mod axis;
mod overview;
mod palette;
mod timeline;

use std::fmt::Write;
use std::time::Duration;

use super::tally::{DRAWN_WORKERS, Tally};
use super::verdict::Verdict;
use crate::args::Demo;
use crate::units::{grouped, ms};

/// Names in the legend and rows in the table; more would not be readable.
const NAMED: usize = 40;

/// The whole file.
pub fn html(args: &Demo, tally: &Tally, verdict: &Verdict) -> String {
    let threads = tally.threads().len();
    let workers = tally.workers().len();
    let spans = tally.recent();
    let window = match (spans.first(), spans.last()) {
        (Some(first), Some(last)) => last.end.saturating_sub(first.start),
        _ => Duration::ZERO,
    };
    let mut html = String::with_capacity(200_000);
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>reveille: {threads} threads on {workers} workers</title>\n\
         <style>\n{}{}</style>\n</head>\n<body>\n<main>\n",
        include_str!("style.css"),
        palette::css(threads.min(NAMED)),
    );
    let _ = write!(html, "<h1>{}</h1>\n{}", super::title(args), judgement(verdict));
    let _ = write!(
        html,
        "<section>\n<h2>The last {:.0} ms, slice by slice</h2>\n\
         <p>A row is a worker, which is one kernel thread; a box is a time slice of one thread, \
         ended by a tick. The threads never give way by themselves.</p>\n{}{}</section>\n",
        ms(window),
        legend(threads),
        timeline::svg(&spans, workers.min(DRAWN_WORKERS), args.window),
    );
    let _ = write!(
        html,
        "<section>\n<h2>The whole run</h2>\n\
         <p>Who had each worker, in steps of {:.1} ms: the height of a colour is that thread's part \
         of the step.</p>\n{}</section>\n",
        ms(tally.step()),
        overview::svg(tally),
    );
    if workers > DRAWN_WORKERS {
        let _ = writeln!(
            html,
            "<p>The drawings show the first {DRAWN_WORKERS} of {workers} workers.</p>"
        );
    }
    html.push_str(&table(tally));
    let _ = write!(
        html,
        "<footer>Slices: median {:.3} ms, 99 % within {:.3} ms, longest {:.3} ms. \
         Made by reveille {}.</footer>\n</main>\n</body>\n</html>\n",
        ms(tally.slice_length(0.5)),
        ms(tally.slice_length(0.99)),
        ms(tally.slice_length(1.0)),
        env!("CARGO_PKG_VERSION"),
    );
    html
}

/// The verdict in its colour.
fn judgement(verdict: &Verdict) -> String {
    let (class, word) = if verdict.fair { ("fair", "Fair") } else { ("unfair", "Unfair") };
    let reason = verdict.text.split_once(": ").map_or(verdict.text.as_str(), |(_, reason)| reason);
    format!("<p class=\"verdict {class}\"><strong>{word}</strong> {reason}.</p>\n")
}

/// The threads' names and colours.
fn legend(threads: usize) -> String {
    let mut html = String::from("<div class=\"legend\">");
    for thread in 0..threads.min(NAMED) {
        let _ = write!(
            html,
            "<span class=\"n{thread}\"><i style=\"background:{}\"></i>thread {thread}</span>",
            palette::color(thread)
        );
    }
    if threads > NAMED {
        let _ = write!(html, "<span>and {} more</span>", threads - NAMED);
    }
    html.push_str("</div>\n");
    html
}

/// What each thread got, as a table with bars.
fn table(tally: &Tally) -> String {
    let total: f64 = tally.threads().iter().map(|thread| thread.cpu.as_secs_f64()).sum();
    let most = tally
        .threads()
        .iter()
        .map(|thread| thread.cpu.as_secs_f64())
        .fold(f64::MIN_POSITIVE, f64::max);
    let fair = total / tally.threads().len().max(1) as f64;
    let mut html = String::from(
        "<section>\n<h2>What each thread got</h2>\n<table>\n<thead><tr><th>thread</th>\
         <th class=\"bar\">share of the time; the line is the fair share</th><th>%</th><th>ms</th><th>slices</th>\
         <th>preempted</th><th>longest wait, ms</th></tr></thead>\n<tbody>\n",
    );
    for (place, thread) in tally.threads().iter().enumerate().take(NAMED) {
        let cpu = thread.cpu.as_secs_f64();
        let _ = writeln!(
            html,
            "<tr><td>{place}</td><td class=\"bar\"><div><b style=\"width:{:.1}%;background:{}\"></b>\
             <i style=\"left:{:.1}%\"></i></div></td>\
             <td>{:.2}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{:.1}</td></tr>",
            cpu / most * 100.0,
            palette::color(place),
            fair / most * 100.0,
            cpu / total.max(f64::MIN_POSITIVE) * 100.0,
            ms(thread.cpu),
            grouped(thread.slices as i64),
            grouped(thread.preempted as i64),
            ms(thread.longest_wait),
        );
    }
    html.push_str("</tbody>\n</table>\n");
    if tally.threads().len() > NAMED {
        let _ = writeln!(html, "<p>and {} more threads</p>", tally.threads().len() - NAMED);
    }
    html.push_str("</section>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use crate::demo::tally::{End, Span};
    use clap::Parser;

    fn page(threads: usize, workers: usize) -> String {
        let Command::Demo(args) = Args::parse_from(["reveille", "demo"]).command else {
            panic!("not a demo")
        };
        let ms = Duration::from_millis;
        let mut tally = Tally::new(threads, workers, ms(5), ms(60));
        tally.finish((0..500).map(|i| Span {
            worker: i % workers,
            thread: i % threads,
            start: ms((i / workers) as u64),
            end: ms((i / workers) as u64 + 1),
            end_reason: End::Preempted,
        }));
        let verdict = Verdict { fair: false, text: "unfair: 1 < 2 is no text of ours".into() };
        html(&args, &tally, &verdict)
    }

    /// The part from `<tag` to `</tag>`, for a parser of XML.
    fn parts<'a>(page: &'a str, tag: &str) -> Vec<&'a str> {
        let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
        page.split(&close)
            .filter_map(|part| part.find(&open).map(|at| (part, at)))
            .map(|(part, at)| {
                let from = part.as_ptr() as usize - page.as_ptr() as usize;
                &page[from + at..from + part.len() + close.len()]
            })
            .collect()
    }

    #[test]
    fn the_drawings_are_well_formed() {
        for (threads, workers) in [(1, 1), (5, 2), (60, 20)] {
            let page = page(threads, workers);
            let drawings = parts(&page, "svg");
            assert_eq!(drawings.len(), 2);
            for drawing in drawings {
                let document = roxmltree::Document::parse(drawing).unwrap();
                assert!(document.descendants().any(|node| node.has_tag_name("title")));
                assert!(document.root_element().attribute("viewBox").is_some());
            }
            for table in parts(&page, "table") {
                roxmltree::Document::parse(table).unwrap();
            }
        }
    }

    #[test]
    fn every_thread_of_the_window_has_boxes_and_a_name() {
        let page = page(5, 2);
        for thread in 0..5 {
            assert!(page.contains(&format!("class=\"s t{thread}\"")));
            assert!(page.contains(&format!(">thread {thread}</span>")));
        }
        assert!(page.contains("verdict unfair"));
    }

    #[test]
    fn the_file_needs_nothing_else() {
        let page = page(5, 2);
        for outside in ["http:", "https:", "<script", "@import", "url("] {
            let page = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
