//! What is seen while the demo runs: a table redrawn in place on a terminal, a line each second
//! where standard output is something else.

use std::io;
use std::time::{Duration, Instant};

use console::Term;

use super::tables;
use super::tally::Tally;

/// Pause between two pictures on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// Pause between two lines elsewhere.
const LINE: Duration = Duration::from_secs(1);
/// Lines of the screen that are not rows of the table.
const OTHER_LINES: usize = 8;

/// The display.
pub struct Live {
    term: Term,
    /// Lines drawn last time, which the next picture replaces.
    drawn: usize,
    next: Instant,
    title: String,
}

impl Live {
    /// A display with a title; nothing is drawn yet.
    pub fn new(title: String) -> Self {
        let term = Term::stdout();
        let first = if term.is_term() { Duration::ZERO } else { LINE };
        Self { term, drawn: 0, next: Instant::now() + first, title }
    }

    /// How many threads fit on the screen.
    fn rows(&self) -> usize {
        let (height, _) = self.term.size();
        usize::from(height).saturating_sub(OTHER_LINES).max(1)
    }

    /// Draws, if it is time to.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn show(&mut self, tally: &Tally, work: &[u64], elapsed: Duration) -> io::Result<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        if self.term.is_term() {
            self.next += REDRAW;
            let table = tables::threads(tally, work, self.rows());
            let text = format!("{}   {:.1} s\n{table}", self.title, elapsed.as_secs_f64());
            self.clear()?;
            self.term.write_line(&text)?;
            self.drawn = text.lines().count();
        } else {
            self.next += LINE;
            self.term.write_line(&tables::line(tally, elapsed))?;
        }
        Ok(())
    }

    /// Removes the last picture from the screen.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn clear(&mut self) -> io::Result<()> {
        self.term.clear_last_lines(std::mem::take(&mut self.drawn))
    }
}
