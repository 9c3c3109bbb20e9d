//! How a search is shown: results on standard output, and on standard error the URLs that could not be read, a
//! progress line when that is a terminal, and a summary.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::download::DownloadCounts;
use super::frontier::{Found, Kind};
use super::{Ending, Event, Summary};
use crate::terminal;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Format {
    /// One URL a line.
    #[default]
    Lines,
    /// URLs, each ended by a NUL.
    Nul,
    /// One JSON object a line.
    Json,
}

/// How a search is to be shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) format: Format,
}

/// Shows the events of one search.
#[derive(Debug)]
pub(crate) struct Report {
    format: Format,
    /// Results of this turn of the event loop, written at its end.
    results: Vec<u8>,
    /// Messages of this turn.
    messages: Vec<u8>,
    /// Hidden unless standard error is a terminal.
    line: ProgressBar,
    drawn_at: Option<Instant>,
    /// Why nothing more is written.
    failure: Option<io::Error>,
}

impl Report {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            format: options.format,
            results: Vec::new(),
            messages: Vec::new(),
            line: progress_line(),
            drawn_at: None,
            failure: None,
        }
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Found(found) => write_found(self.format, found, &mut self.results),
            Event::Output(bytes) => self.results.extend_from_slice(bytes),
            Event::Unread(unread) => {
                self.message(&format!("{}: {}", unread.url, describe(unread.cause)));
            }
            Event::Failed(error) => self.message(&describe(*error)),
            Event::Downloaded(_) => {}
            Event::Turn(summary) => {
                self.flush();
                self.draw(summary);
            }
        }
    }

    /// Whether writing on is pointless: nobody reads the results any more.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some()
    }

    /// Writes what is left and the summary.
    ///
    /// # Errors
    /// The results could not be written. That their reader went away is none.
    pub(crate) fn finish(mut self, summary: &Summary) -> io::Result<()> {
        self.flush();
        self.line.finish_and_clear();
        match self.failure {
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Some(error) => {
                eprintln!("crawler-cli find: cannot write results: {error}");
                return Err(error);
            }
            None => {}
        }
        // Without standard error there is nowhere to complain.
        let _ = writeln!(io::stderr(), "{}", summary_text(summary));
        if summary.downloads.wanted > 0 {
            let _ = writeln!(io::stderr(), "{}", downloads_text(&summary.downloads));
        }
        Ok(())
    }

    fn message(&mut self, text: &str) {
        let text = format!("crawler-cli find: {text}");
        let shown = if io::stderr().is_terminal() {
            terminal::neutralise(&text).into_owned()
        } else {
            text.replace(['\n', '\r'], " ")
        };
        self.messages.extend_from_slice(shown.as_bytes());
        self.messages.push(b'\n');
    }

    fn flush(&mut self) {
        if self.results.is_empty() && self.messages.is_empty() {
            return;
        }
        let (results, messages) = (&self.results, &self.messages);
        let written = self.line.suspend(|| {
            let _ = io::stderr().write_all(messages);
            let mut out = io::stdout().lock();
            out.write_all(results)?;
            out.flush()
        });
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
        self.results.clear();
        self.messages.clear();
    }

    fn draw(&mut self, summary: &Summary) {
        if self.line.is_hidden() || self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW) {
            return;
        }
        self.drawn_at = Some(Instant::now());
        self.line.set_message(progress_text(summary));
        self.line.tick();
    }
}

/// An error and what is behind it, in one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        // Some errors repeat their source in their own text.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

/// A hidden line unless standard error is a terminal.
pub(crate) fn progress_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // Not `wide_msg`: it fills the line, and the `^C` that a terminal shows would begin another one.
    if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg}") {
        line.set_style(style);
    }
    line
}

pub(crate) fn progress_text(summary: &Summary) -> String {
    let counts = &summary.counts;
    format!(
        "{}/{} directories · {} files · {} found · {} requests/s · {} unread",
        thousands(counts.directories_done),
        thousands(counts.directories),
        thousands(counts.files),
        thousands(summary.matched),
        thousands(summary.requests_per_second()),
        thousands(counts.unread),
    )
}

/// The summary in one line.
pub(crate) fn summary_text(summary: &Summary) -> String {
    let counts = &summary.counts;
    let seconds = summary.elapsed.as_secs_f64();
    let mut text = format!(
        "{} found among {} and {} in {seconds:.2} s; {} ({}/s)",
        thousands(summary.matched),
        count(counts.files, "file", "files"),
        count(counts.directories, "directory", "directories"),
        count(counts.requests, "request", "requests"),
        thousands(summary.requests_per_second()),
    );
    if counts.retries > 0 {
        text += &format!(", {} of them repeated", thousands(counts.retries));
    }
    text += match counts.unread {
        0 => "; nothing unread",
        _ => "; ",
    };
    if counts.unread > 0 {
        text += &format!("{} UNREAD", thousands(counts.unread));
    }
    if summary.ending == Ending::Stopped {
        let left = counts.directories.saturating_sub(counts.directories_done);
        let left = count(left, "directory was", "directories were");
        text += &format!("; STOPPED early, {left} not read");
    }
    text
}

/// What was downloaded, in one line.
fn downloads_text(downloads: &DownloadCounts) -> String {
    let mut text = format!(
        "{} downloaded ({})",
        count(downloads.saved, "file", "files"),
        count(downloads.bytes, "byte", "bytes"),
    );
    if downloads.kept > 0 {
        text += &format!(", {} there already", thousands(downloads.kept));
    }
    let over = downloads.saved + downloads.kept + downloads.failed;
    let left = downloads.wanted.saturating_sub(over);
    if downloads.failed + left > 0 {
        let missing = thousands(downloads.failed + left);
        text += &format!("; {missing} NOT DOWNLOADED");
    }
    text
}

fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// A number with commas.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn write_found(format: Format, found: &Found<'_>, out: &mut Vec<u8>) {
    match format {
        Format::Lines => {
            out.extend_from_slice(found.url.as_bytes());
            out.push(b'\n');
        }
        Format::Nul => {
            out.extend_from_slice(found.url.as_bytes());
            out.push(0);
        }
        Format::Json => {
            out.extend_from_slice(json(found).as_bytes());
            out.push(b'\n');
        }
    }
}

/// Names that are not UTF-8 are shown with U+FFFD; the URL is exact.
fn json(found: &Found<'_>) -> String {
    let listing = match found.listing {
        Some(shape) => terminal::json_string(shape.name()),
        None => "null".to_owned(),
    };
    let kind = match found.kind {
        Kind::File => "f",
        Kind::Directory => "d",
    };
    format!(
        "{{\"url\":{},\"type\":\"{kind}\",\"path\":{},\"name\":{},\"depth\":{},\"listing\":{listing}}}",
        terminal::json_string(found.url),
        terminal::json_string(&String::from_utf8_lossy(found.path)),
        terminal::json_string(&String::from_utf8_lossy(found.name)),
        found.depth,
    )
}

const REDRAW: Duration = Duration::from_millis(80);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::listing::Shape;

    const FOUND: Found<'_> = Found {
        url: "http://h/a%20%1B/",
        path: "/a \u{1b}".as_bytes(),
        name: "a \u{1b}".as_bytes(),
        kind: Kind::Directory,
        depth: 1,
        start: b"/",
        size: None,
        modified: None,
        asked: false,
        status: None,
        attempts: 1,
        took: std::time::Duration::ZERO,
        empty: None,
        listing: Some(Shape::Nginx),
    };

    #[test]
    fn results_have_three_forms() {
        for (format, expected) in [
            (Format::Lines, "http://h/a%20%1B/\n"),
            (Format::Nul, "http://h/a%20%1B/\0"),
            (
                Format::Json,
                "{\"url\":\"http://h/a%20%1B/\",\"type\":\"d\",\"path\":\"/a \\u001b\",\"name\":\"a \\u001b\",\"depth\":1,\"listing\":\"nginx\"}\n",
            ),
        ] {
            let mut out = Vec::new();
            write_found(format, &FOUND, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }

    #[test]
    fn numbers_have_commas() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(n), text);
        }
    }
}
