//! The progress of a crawl, as a line on standard error. On a terminal, the line is redrawn in place and removed at the
//! end: a new line overwrites the old one in a single write, without erasing first, so that nothing flickers.

use std::cmp::Reverse;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use console::Term;

use super::statistics::{downloads_progress, what_is_read};
use crate::crawl::stats::{HostStats, Stats};
use crate::find::Summary;
use crate::plain::text::{count, thousands};

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Progress {
    /// If standard error is a terminal.
    #[default]
    Auto,
    /// Also without a terminal: a new line every second.
    Always,
    Never,
}

/// The progress of a run.
pub(crate) trait Viewed {
    fn stats(&self) -> &Stats;
    fn elapsed(&self) -> Duration;
    /// The parts of the line, the most important one first.
    fn line(&self) -> Vec<String>;
}

impl Viewed for Summary {
    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn line(&self) -> Vec<String> {
        let mut parts = vec![
            directories(self),
            count(self.counts.files, "file", "files"),
            format!("{} found", thousands(self.matched)),
            format!("{} requests/s", thousands(self.requests_per_second())),
            format!("{} unread", thousands(self.counts.unread)),
        ];
        if self.downloads.wanted > 0 {
            parts.extend(downloads_progress(&self.downloads));
        }
        parts
    }
}

/// Shows the progress of one run.
#[derive(Debug)]
pub(crate) struct Live {
    mode: Progress,
    /// The line is on a terminal.
    is_shown: bool,
    /// What is on the terminal, without the spinner.
    line: String,
    drawn_at: Option<Instant>,
    /// The number of redraws; turns the spinner.
    drawn: usize,
}

impl Live {
    pub(crate) fn new(mode: Progress) -> Self {
        // A dumb terminal can only print.
        let is_dumb = || std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        Self {
            mode,
            is_shown: mode != Progress::Never && io::stderr().is_terminal() && !is_dumb(),
            line: String::new(),
            drawn_at: None,
            drawn: 0,
        }
    }

    /// Runs `write`, which writes to the terminal, while the line is removed.
    pub(crate) fn suspend<T>(&mut self, write: impl FnOnce() -> T) -> T {
        let line = self.line.clone();
        self.replace(String::new());
        let outcome = write();
        self.replace(line);
        outcome
    }

    /// Whether the line is on a terminal, where results would mix with it.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    pub(crate) fn draw(&mut self, summary: &impl Viewed, now: Instant) {
        let plain = !self.is_shown;
        if plain && self.mode != Progress::Always || !plain && summary.elapsed() < FIRST {
            return;
        }
        let pause = if plain { PLAIN_PAUSE } else { REDRAW };
        let recent = |at: Instant| now.saturating_duration_since(at) < pause;
        if self.drawn_at.is_some_and(recent) {
            return;
        }
        self.drawn_at = Some(now);
        let line = line(summary, now);
        if plain {
            // An error on standard error cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "{line}");
            return;
        }
        self.drawn += 1;
        // Leaves room for the `^C` that a terminal prints.
        self.replace(cut(&line, columns().saturating_sub(LEAD + 4)));
    }

    pub(crate) fn finish(&mut self) {
        self.replace(String::new());
    }

    fn replace(&mut self, line: String) {
        if line.is_empty() && self.line.is_empty() {
            return;
        }
        let spinner = SPINNER[self.drawn % SPINNER.len()];
        let spinner = console::style(spinner).cyan().for_stderr().to_string();
        let text = redrawn(&self.line, &line, &spinner, columns());
        // An error on standard error cannot be reported anywhere.
        let _ = io::stderr().write_all(text.as_bytes());
        self.line = line;
    }
}

/// The width of the terminal.
fn columns() -> usize {
    let size = Term::stderr().size_checked();
    size.map_or(80, |(_, columns)| columns.into())
}

/// The text that replaces the line `old` by `new` on a terminal of `width` columns. The cursor is at the end of `old`.
fn redrawn(old: &str, new: &str, spinner: &str, width: usize) -> String {
    // A terminal that has become narrower has broken the old line into rows.
    let rows = (LEAD + old.chars().count()).div_ceil(width.max(1));
    let up = match rows {
        0 | 1 => String::new(),
        rows => format!("\x1b[{}A", rows - 1),
    };
    let new = match new {
        "" => String::new(),
        new => format!("{spinner} {new}"),
    };
    format!("\r{up}{new}\x1b[J")
}

/// Directories (or pages) read, and all that are known.
fn directories(summary: &Summary) -> String {
    let done = thousands(summary.counts.directories_done);
    let known = what_is_read(summary, summary.counts.directories);
    format!("{done}/{known}")
}

/// The progress in one line. What the run waits for stands in front, because a long line is cut.
fn line(summary: &impl Viewed, now: Instant) -> String {
    let mut parts = summary.line();
    if let Some(host) = awaited(summary.stats(), now) {
        parts.insert(1, format!("waits for {}", wait_text(host, now)));
    }
    parts.join(" · ")
}

/// The host that the run waits for: one that did not answer the last request, and may not be asked yet or has something
/// left to do. Of several, the one with the longest wait.
fn awaited(stats: &Stats, now: Instant) -> Option<&HostStats> {
    let is_awaited = |host: &&HostStats| {
        let is_open = host.standing.left > 0 && !host.standing.is_given_up;
        host.silence.is_some() && (is_open || held_until(host, now).is_some())
    };
    let awaited = stats.hosts().iter().filter(is_awaited);
    awaited.min_by_key(|host| Reverse((held_until(host, now), host.standing.left)))
}

fn held_until(host: &HostStats, now: Instant) -> Option<Instant> {
    let waiting = host.standing.waiting?;
    Some(waiting.until).filter(|until| *until > now)
}

/// Which host, how long, why, and what is left.
fn wait_text(host: &HostStats, now: Instant) -> String {
    let mut text = host.name.clone();
    let mut why = Vec::new();
    if let (Some(until), Some(waiting)) = (held_until(host, now), host.standing.waiting) {
        let left = until.saturating_duration_since(now);
        // Rounded up to tenths of a second: the text does not flicker and is never zero.
        let tenths = left.as_millis().div_ceil(100) as f64;
        text += &format!(" {:.1} s", tenths / 10.0);
        why.push(waiting.reason.to_string());
    }
    if let Some((class, failures)) = host.silence {
        why.push(format!("{} × {class}", thousands(failures)));
        why.push(format!("{} left", count(host.standing.left, "URL", "URLs")));
    }
    format!("{text} ({})", why.join(", "))
}

/// Assumes that each character is one column wide: URLs are ASCII.
fn cut(line: &str, room: usize) -> String {
    if line.chars().count() <= room {
        return line.to_owned();
    }
    let mut cut: String = line.chars().take(room.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Columns of the spinner and the blank after it.
const LEAD: usize = 2;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The line appears after this time: shorter runs need none.
const FIRST: Duration = Duration::from_millis(200);

const REDRAW: Duration = Duration::from_millis(80);

/// The shortest time between two lines without a terminal.
const PLAIN_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::stats::{Class, Connection, Exchange, Reason, Standing, Waiting};
    use crate::find::Counts;
    use crate::find::DownloadCounts;

    fn shown(terminal: &vt100::Parser) -> Vec<String> {
        let rows = terminal.screen().rows(0, 40);
        let rows = rows.map(|row| row.trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    }

    #[test]
    fn the_line_is_redrawn_in_place_and_leaves_nothing() {
        let mut terminal = vt100::Parser::new(6, 40, 0);
        terminal.process(b"result\r\n");
        let mut old = "";
        for (new, expected) in [
            ("a long one", &["result", "* a long one"][..]),
            ("short", &["result", "* short"]),
            ("", &["result"]),
        ] {
            terminal.process(redrawn(old, new, "*", 40).as_bytes());
            assert_eq!(shown(&terminal), expected);
            old = new;
        }
        // The cursor is where the next result is written.
        assert_eq!(terminal.screen().cursor_position(), (1, 0));
    }

    #[test]
    fn a_line_that_a_narrower_terminal_has_broken_is_replaced() {
        let old = "x".repeat(30);
        let mut terminal = vt100::Parser::new(10, 20, 0);
        terminal.process(format!("result\r\n* {old}").as_bytes());
        terminal.process(redrawn(&old, "new", "*", 20).as_bytes());
        assert_eq!(shown(&terminal), ["result", "* new"]);
    }

    #[test]
    fn the_line_says_how_it_goes_and_why_it_waits() {
        let now = Instant::now();
        let mut stats = Stats::default();
        let exchange = Exchange {
            took: Duration::from_millis(10),
            bytes: 2048,
            connection: Some(Connection::Opened),
            robots: false,
        };
        for name in ["http://fast", "http://slow"] {
            let host = stats.add_host(name);
            stats.handle_answer(host, 200, &exchange);
        }
        stats.handle_failure(0, Class::Timeout, &exchange);
        let until = now + Duration::from_millis(1500);
        let reason = Reason::BackOff;
        let standing = Standing {
            waiting: Some(Waiting { reason, until }),
            left: 9_998,
            is_given_up: false,
        };
        stats.handle_standing(0, standing);
        let mut summary = Summary {
            counts: Counts {
                directories: 1200,
                directories_done: 7,
                files: 30,
                requests: 4,
                retries: 0,
                unread: 1,
            },
            matched: 3,
            elapsed: Duration::from_secs(2),
            downloads: DownloadCounts {
                wanted: 1000,
                saved: 3,
                failed: 1,
                under_way: 4,
                bytes: 5 << 20,
                ..DownloadCounts::default()
            },
            stats,
            ..Summary::default()
        };
        let head = "7/1,200 directories";
        let tail = "30 files · 3 found · 2 requests/s · 1 unread · \
                    downloads: 4/1,000 files · 1 failed · 5.0 MiB · 4 under way";
        let waits = "waits for http://fast 1.5 s (back-off, 1 × timeout, 9,998 URLs left)";
        assert_eq!(line(&summary, now), format!("{head} · {waits} · {tail}"));
        let waits = "waits for http://fast (1 × timeout, 9,998 URLs left)";
        assert_eq!(line(&summary, until), format!("{head} · {waits} · {tail}"));
        assert_eq!(cut(&line(&summary, now), 18), "7/1,200 directori…");
        summary.stats.handle_answer(0, 200, &exchange);
        assert_eq!(line(&summary, until), format!("{head} · {tail}"));
    }
}
