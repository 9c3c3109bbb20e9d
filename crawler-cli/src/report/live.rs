//! The live view: lines on standard error that show the progress of a crawl. They are redrawn in place and removed at
//! the end.

use std::cmp::Reverse;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use super::screen::{LEAD, Screen};
use super::statistics::{
    by_slowness, classes_texts, clock_text, count, downloads_progress, size_text, span_text,
    thousands, what_is_read,
};
use crate::crawl::stats::{HostStats, Stats};
use crate::find::Summary;

/// Whether and how progress is shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Progress {
    /// The full view if standard error is a terminal, nothing otherwise.
    #[default]
    Auto,
    /// The full view on a terminal, otherwise one line every second.
    Always,
    Never,
    /// One line if standard error is a terminal, nothing otherwise.
    Line,
}

impl Progress {
    pub(crate) const NAMES: &[&str] = &["auto", "always", "never", "line"];

    /// # Errors
    /// Nothing has this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Ok(match name {
            "auto" => Self::Auto,
            "always" => Self::Always,
            "never" => Self::Never,
            "line" => Self::Line,
            _ => return Err("neither auto, always, never nor line".to_owned()),
        })
    }
}

/// The progress that a live view shows.
pub(crate) trait Viewed {
    fn stats(&self) -> &Stats;
    fn elapsed(&self) -> Duration;
    /// Requests so far.
    fn requests(&self) -> u64;
    /// The first line of the view, as parts, without the time.
    fn counts(&self) -> Vec<String>;
    /// The progress as parts of one line.
    fn line(&self) -> Vec<String>;
    /// Further lines of the view.
    fn lines(&self) -> Vec<Vec<String>> {
        Vec::new()
    }
}

impl Viewed for Summary {
    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn requests(&self) -> u64 {
        self.counts.requests
    }

    fn counts(&self) -> Vec<String> {
        vec![
            directories(self),
            count(self.counts.files, "file", "files"),
            format!("{} found", thousands(self.matched)),
            format!("{} unread", thousands(self.counts.unread)),
        ]
    }

    fn line(&self) -> Vec<String> {
        let mut parts = vec![
            directories(self),
            count(self.counts.files, "file", "files"),
            format!("{} found", thousands(self.matched)),
            format!("{} requests/s", thousands(self.requests_per_second())),
            format!("{} unread", thousands(self.counts.unread)),
        ];
        parts.extend(downloads(self).into_iter().flatten());
        parts
    }

    fn lines(&self) -> Vec<Vec<String>> {
        downloads(self).into_iter().collect()
    }
}

/// The line of the downloads, if files are downloaded.
fn downloads(summary: &Summary) -> Option<Vec<String>> {
    let downloads = &summary.downloads;
    (downloads.wanted > 0).then(|| labelled("downloads", downloads_progress(downloads)))
}

/// The live view.
#[derive(Debug)]
pub(crate) struct Live {
    mode: Progress,
    screen: Screen,
    drawn_at: Option<Instant>,
    speed: Speed,
    /// Some host had to wait: the line of waiting hosts stays from then on, so that other lines do not jump.
    has_waited: bool,
}

impl Live {
    pub(crate) fn new(mode: Progress) -> Self {
        Self {
            mode,
            screen: match mode {
                Progress::Never => Screen::default(),
                _ => Screen::stderr(),
            },
            drawn_at: None,
            speed: Speed::default(),
            has_waited: false,
        }
    }

    /// Runs `write`, which writes to the terminal, while the view is removed from the screen.
    pub(crate) fn suspend<T>(&mut self, write: impl FnOnce() -> T) -> T {
        self.screen.suspend(write)
    }

    /// Whether the view is on a terminal, where results would mix with it.
    pub(super) fn is_shown(&self) -> bool {
        self.screen.is_there()
    }

    pub(crate) fn draw(&mut self, summary: &impl Viewed, now: Instant) {
        let plain = !self.screen.is_there();
        if plain && self.mode != Progress::Always || !plain && summary.elapsed() < FIRST {
            return;
        }
        let pause = if plain { PLAIN_PAUSE } else { REDRAW };
        let recent = |at: Instant| now.saturating_duration_since(at) < pause;
        if self.drawn_at.is_some_and(recent) {
            return;
        }
        self.drawn_at = Some(now);
        self.speed.sample(summary, now);
        if plain {
            let line = one_line(summary, now);
            // An error on standard error cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "{line}");
            return;
        }
        let (width, height) = Screen::size();
        // Leaves room for the `^C` that a terminal prints.
        let width = width.saturating_sub(4);
        let lines = match self.mode {
            Progress::Line => vec![cut(&one_line(summary, now), width - LEAD.min(width))],
            _ => {
                let waiting = waiting(summary.stats(), now);
                self.has_waited |= waiting.is_some();
                let waiting = waiting.or_else(|| self.has_waited.then(|| vec!["–".to_owned()]));
                fit(&view(summary, &self.speed, waiting), width, height)
            }
        };
        self.screen.draw(lines);
    }

    pub(crate) fn finish(&mut self) {
        self.screen.clear();
    }
}

/// Directories (or pages) read, and all that are known.
fn directories(summary: &Summary) -> String {
    let done = thousands(summary.counts.directories_done);
    let known = what_is_read(summary, summary.counts.directories);
    format!("{done}/{known}")
}

/// The current speed.
#[derive(Debug, Default)]
struct Speed {
    /// When the speed was last measured, and the requests and bytes until then.
    last: Option<(Instant, u64, u64)>,
    requests: f64,
    bytes: f64,
}

impl Speed {
    fn sample(&mut self, summary: &impl Viewed, now: Instant) {
        let (requests, bytes) = (summary.requests(), summary.stats().bytes());
        let (since, earlier) = match self.last {
            Some((at, requests, bytes)) => (now.saturating_duration_since(at), (requests, bytes)),
            // The first measurement counts from the start of the search.
            None => (summary.elapsed(), (0, 0)),
        };
        if self.last.is_some() && since < SAMPLE {
            return;
        }
        let seconds = since.as_secs_f64().max(0.001);
        self.requests = requests.saturating_sub(earlier.0) as f64 / seconds;
        self.bytes = bytes.saturating_sub(earlier.1) as f64 / seconds;
        if since >= SAMPLE {
            self.last = Some((now, requests, bytes));
        }
    }
}

/// The lines of the view. Each consists of parts; a long line is broken between parts.
fn view(summary: &impl Viewed, speed: &Speed, waiting: Option<Vec<String>>) -> Vec<Vec<String>> {
    let stats = summary.stats();
    let mut first = summary.counts();
    first.push(clock_text(summary.elapsed()));
    let mut lines = vec![first];
    let mut speeds = vec![
        format!("{} requests/s", thousands(speed.requests as u64)),
        format!("{}/s", size_text(speed.bytes as u64)),
        format!("{} in flight", stats.in_flight()),
    ];
    if let Some(mean) = stats.mean() {
        speeds.push(format!("mean latency {}", span_text(mean)));
    }
    lines.push(speeds);
    lines.extend(summary.lines());
    if let Some(waiting) = waiting {
        lines.push(labelled("waiting", waiting));
    }
    if stats.hosts().len() > 1 {
        let slowest = by_slowness(stats.hosts()).filter(|host| host.answers > 0);
        let slowest = slowest.take(SHOWN).map(|host| {
            let mean = span_text(host.mean());
            format!("{} {mean} ({} in flight)", host.name, host.in_flight)
        });
        let slowest: Vec<_> = slowest.collect();
        if !slowest.is_empty() {
            lines.push(labelled("slowest", slowest));
        }
    }
    if !stats.failed().is_empty() {
        lines.push(labelled("errors", classes_texts(stats.failed(), 4)));
    }
    lines
}

fn labelled(label: &str, mut parts: Vec<String>) -> Vec<String> {
    if let Some(first) = parts.first_mut() {
        first.insert_str(0, ": ");
        first.insert_str(0, label);
    }
    parts
}

/// The progress in one line, with the host that the run waits for.
fn one_line(summary: &impl Viewed, now: Instant) -> String {
    let mut parts = summary.line();
    let awaited = awaited(summary.stats(), now);
    let mut stuck = awaited.iter().filter(|host| host.silence.is_some());
    parts.extend(
        stuck
            .next()
            .map(|host| format!("waits for {}", wait_text(host, now))),
    );
    parts.join(SEPARATOR)
}

/// The hosts that the run waits for, the longest wait first; `None` if there are none.
fn waiting(stats: &Stats, now: Instant) -> Option<Vec<String>> {
    let awaited = awaited(stats, now);
    let shown = awaited.iter().take(SHOWN);
    let mut parts: Vec<_> = shown.map(|host| wait_text(host, now)).collect();
    if awaited.len() > SHOWN {
        parts.push(format!("{} more hosts", awaited.len() - SHOWN));
    }
    (!parts.is_empty()).then_some(parts)
}

/// The hosts at which something is left to do, and that may not be asked yet or did not answer the last request, the
/// longest wait first.
fn awaited(stats: &Stats, now: Instant) -> Vec<&HostStats> {
    let is_awaited = |host: &&HostStats| {
        let is_silent = host.silence.is_some() && host.standing.left > 0;
        held_until(host, now).is_some() || is_silent && !host.standing.is_given_up
    };
    let mut awaited: Vec<_> = stats.hosts().iter().filter(is_awaited).collect();
    awaited.sort_by_key(|host| Reverse((held_until(host, now), host.standing.left)));
    awaited
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

/// Breaks the lines between their parts and cuts parts that are too long. The first line leaves room for the spinner.
/// Assumes that each character is one column wide: URLs are ASCII.
fn fit(lines: &[Vec<String>], width: usize, height: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for (i, parts) in lines.iter().enumerate() {
        let indent = if i == 0 { 0 } else { LEAD };
        let room = if i == 0 {
            width.saturating_sub(LEAD)
        } else {
            width
        };
        let mut row = " ".repeat(indent);
        let mut is_empty = true;
        for part in parts {
            let more = part.chars().count() + SEPARATOR.chars().count();
            if !is_empty && row.chars().count() + more > room {
                rows.push(cut(&row, room));
                row = " ".repeat(2 * LEAD);
                is_empty = true;
            }
            if !is_empty {
                row += SEPARATOR;
            }
            row += part;
            is_empty = false;
        }
        rows.push(cut(&row, room));
    }
    // A line that has scrolled off the screen cannot be redrawn.
    rows.truncate(height.saturating_sub(1).max(1));
    rows
}

fn cut(line: &str, room: usize) -> String {
    if line.chars().count() <= room {
        return line.to_owned();
    }
    let mut cut: String = line.chars().take(room.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Separates the parts of a line.
const SEPARATOR: &str = " · ";

/// The view appears after this time: shorter searches need none.
const FIRST: Duration = Duration::from_millis(200);

const REDRAW: Duration = Duration::from_millis(80);

/// The shortest time between two lines without a terminal.
const PLAIN_PAUSE: Duration = Duration::from_secs(1);

/// The shortest time over which the speed is measured.
const SAMPLE: Duration = Duration::from_millis(500);

/// The largest number of hosts in one line.
const SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::stats::{Class, Connection, Exchange, Reason, Standing, Waiting};
    use crate::find::Follow;
    use crate::find::download::DownloadCounts;
    use crate::find::{Counts, Ending};

    #[test]
    fn the_view_says_how_it_goes_and_why_it_waits() {
        let now = Instant::now();
        let mut stats = Stats::default();
        let exchange = |ms| Exchange {
            took: Duration::from_millis(ms),
            bytes: 2048,
            connection: Some(Connection::Opened),
            robots: false,
        };
        for (name, ms) in [("http://fast", 10), ("http://slow", 2000)] {
            let host = stats.add_host(name);
            stats.handle_sent(host);
            stats.handle_sent(host);
            stats.handle_answer(host, 200, &exchange(ms));
        }
        stats.handle_failure(0, Class::Timeout, &exchange(30_000));
        let until = now + Duration::from_millis(1500);
        let reason = Reason::BackOff;
        let standing = Standing {
            waiting: Some(Waiting { reason, until }),
            left: 9_998,
            is_given_up: false,
        };
        stats.handle_standing(0, standing);
        let mut summary = Summary {
            resumed: false,
            follow: Follow::Listings,
            counts: Counts {
                directories: 1200,
                directories_done: 7,
                files: 30,
                requests: 4,
                retries: 0,
                unread: 1,
            },
            undecided: 0,
            failed: 0,
            matched: 3,
            elapsed: Duration::from_secs(2),
            ending: Ending::Finished,
            downloads: DownloadCounts {
                wanted: 1000,
                saved: 3,
                failed: 1,
                under_way: 4,
                bytes: 5 << 20,
                ..DownloadCounts::default()
            },
            stats,
        };
        let mut speed = Speed::default();
        speed.sample(&summary, now);
        let lines = view(&summary, &speed, waiting(&summary.stats, now));
        let expected = "\
7/1,200 directories · 30 files · 3 found · 1 unread · 0:02
  2 requests/s · 3.0 KiB/s · 1 in flight · mean latency 1.00 s
  downloads: 4/1,000 files · 1 failed · 5.0 MiB · 4 under way
  waiting: http://fast 1.5 s (back-off, 1 × timeout, 9,998 URLs left)
  slowest: http://slow 2.00 s (1 in flight) · http://fast 10 ms (0 in flight)
  errors: 1 × timeout";
        assert_eq!(fit(&lines, 100, 24).join("\n"), expected);
        let narrow = "\
7/1,200 directories · 30 files
    3 found · 1 unread · 0:02
  2 requests/s · 3.0 KiB/s
    1 in flight
    mean latency 1.00 s
  downloads: 4/1,000 files
    1 failed · 5.0 MiB";
        assert_eq!(fit(&lines, 32, 8).join("\n"), narrow);
        let tiny = fit(&lines, 20, 24);
        assert_eq!(tiny[0], "7/1,200 directori…");
        assert!(tiny.iter().all(|line| line.chars().count() <= 20));
        assert!(
            one_line(&summary, until)
                .ends_with(" · waits for http://fast (1 × timeout, 9,998 URLs left)")
        );
        summary.stats.handle_answer(0, 200, &exchange(10));
        assert!(waiting(&summary.stats, until).is_none());
    }
}
