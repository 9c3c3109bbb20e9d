//! Lines at the bottom of a terminal, redrawn in place. New lines overwrite old ones in a single write, without erasing
//! first, so that nothing flickers.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use console::Term;

/// Standard error, if it is a terminal.
#[derive(Debug, Default)]
pub(super) struct Screen {
    is_there: bool,
    /// The lines on the terminal, without colours.
    lines: Vec<String>,
    /// The number of redraws; turns the spinner.
    drawn: usize,
}

impl Screen {
    /// A screen on standard error; shows nothing if standard error is no terminal or a terminal that can only print.
    pub(super) fn stderr() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        Self {
            is_there: io::stderr().is_terminal() && !is_dumb,
            ..Self::default()
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// Columns and rows of the terminal.
    pub(super) fn size() -> (usize, usize) {
        let size = Term::stderr().size_checked();
        size.map_or((80, 24), |(rows, columns)| (columns.into(), rows.into()))
    }

    /// Replaces the shown lines, with a spinner before the first line.
    pub(super) fn draw(&mut self, lines: Vec<String>) {
        self.drawn += 1;
        self.replace(lines);
    }

    /// Runs `write`, which writes to the terminal, while the lines are removed.
    pub(super) fn suspend<T>(&mut self, write: impl FnOnce() -> T) -> T {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return write();
        }
        self.lines.clone_from(&lines);
        self.replace(Vec::new());
        let outcome = write();
        self.replace(lines);
        outcome
    }

    /// Removes all lines.
    pub(super) fn clear(&mut self) {
        self.replace(Vec::new());
    }

    fn replace(&mut self, lines: Vec<String>) {
        if !self.is_there || (lines.is_empty() && self.lines.is_empty()) {
            return;
        }
        let spinner = SPINNER[self.drawn % SPINNER.len()];
        let spinner = console::style(spinner).cyan().for_stderr().to_string();
        let text = redrawn(&self.lines, &lines, &spinner, Self::size().0);
        // An error on standard error cannot be reported anywhere.
        let _ = io::stderr().write_all(text.as_bytes());
        self.lines = lines;
    }
}

/// The bytes that replace the lines `old` by `new` on a terminal of `width` columns. The cursor is at the end of `old`.
fn redrawn(old: &[String], new: &[String], spinner: &str, width: usize) -> String {
    // A terminal that has become narrower has broken the old lines into more rows.
    let rows = old.iter().enumerate().map(|(i, line)| {
        let columns = line.chars().count() + if i == 0 { LEAD } else { 0 };
        columns.div_ceil(width.max(1)).max(1)
    });
    let up = rows.sum::<usize>().saturating_sub(1);
    let mut text = String::from("\r");
    if up > 0 {
        // Writing to a string does not fail.
        let _ = write!(text, "\x1b[{up}A");
    }
    for (i, line) in new.iter().enumerate() {
        if i == 0 {
            let _ = write!(text, "{spinner} {line}\x1b[K");
        } else {
            let _ = write!(text, "\r\n{line}\x1b[K");
        }
    }
    text + "\x1b[J"
}

/// Columns of the spinner and the blank after it.
pub(super) const LEAD: usize = 2;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    fn shown(terminal: &vt100::Parser) -> Vec<String> {
        let rows = terminal.screen().rows(0, 40);
        let rows = rows.map(|row| row.trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    }

    #[test]
    fn lines_are_redrawn_in_place_and_leave_nothing() {
        let mut terminal = vt100::Parser::new(6, 40, 0);
        let mut old = Vec::new();
        terminal.process(b"result\r\n");
        for (new, expected) in [
            (
                lines(&["long one", "second", "third"]),
                &["* long one", "second", "third"][..],
            ),
            (lines(&["short", "2"]), &["* short", "2"]),
            (
                lines(&["again", "2", "3", "4", "5", "6"]),
                &["* again", "2", "3", "4", "5", "6"],
            ),
            (lines(&[]), &[]),
        ] {
            terminal.process(redrawn(&old, &new, "*", 40).as_bytes());
            let mut shown = shown(&terminal);
            shown.retain(|row| row != "result");
            assert_eq!(shown, expected);
            old = new;
        }
        // The cursor is where the next result is written.
        assert_eq!(terminal.screen().cursor_position().1, 0);
    }

    #[test]
    fn what_a_narrower_terminal_has_broken_is_found_again() {
        let old = lines(&["x".repeat(30).as_str(), "y", "z".repeat(20).as_str()]);
        // The rows as a terminal of 20 columns breaks the lines.
        let mut terminal = vt100::Parser::new(10, 20, 0);
        terminal.process(format!("result\r\n* {}\r\ny\r\n{}", old[0], old[2]).as_bytes());
        terminal.process(redrawn(&old, &lines(&["new"]), "*", 20).as_bytes());
        assert_eq!(shown(&terminal), ["result", "* new"]);
    }
}
