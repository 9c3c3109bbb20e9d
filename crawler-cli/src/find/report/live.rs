//! How a search is going, on standard error while it goes: some lines redrawn in place, gone at the end.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::figures::{
    by_slowness, classes_text, clock_text, downloads_progress, size_text, span_text, thousands,
};
use crate::find::Summary;
use crate::find::stats::Stats;

/// Whether and how progress is shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Progress {
    /// All of it if standard error is a terminal.
    #[default]
    Auto,
    /// The same, and elsewhere a line now and then.
    Always,
    Never,
    /// One line if standard error is a terminal.
    Line,
}

/// The live view.
#[derive(Debug)]
pub(super) struct Live {
    mode: Progress,
    /// Hidden unless standard error is a terminal.
    bar: ProgressBar,
    drawn_at: Option<Instant>,
    speed: Speed,
}

impl Live {
    pub(super) fn new(mode: Progress) -> Self {
        Self {
            mode,
            bar: match mode {
                Progress::Never => ProgressBar::hidden(),
                _ => progress_line(),
            },
            drawn_at: None,
            speed: Speed::default(),
        }
    }

    /// Does what writes to the terminal, with the view out of the way.
    pub(super) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Whether something is on the terminal that results would run into.
    pub(super) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    pub(super) fn draw(&mut self, summary: &Summary, now: Instant) {
        let plain = self.bar.is_hidden();
        if plain && (self.mode != Progress::Always || io::stderr().is_terminal()) {
            return;
        }
        let pause = if plain { PLAIN_PAUSE } else { REDRAW };
        let began = *self.drawn_at.get_or_insert(now);
        if now.saturating_duration_since(began) < pause && (plain || began != now) {
            return;
        }
        self.drawn_at = Some(now);
        self.speed.sample(summary, now);
        if plain {
            // Without standard error there is nowhere to complain.
            let _ = writeln!(io::stderr(), "{}", progress_text(summary));
            return;
        }
        let width = Term::stderr()
            .size_checked()
            .map_or(80, |(_, columns)| columns.into());
        let text = match self.mode {
            Progress::Line => progress_text(summary),
            _ => view(summary, &self.speed, now),
        };
        self.bar.set_message(fit(&text, width));
        self.bar.tick();
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
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
    let mut text = format!(
        "{}/{} directories · {} files · {} found · {} requests/s · {} unread",
        thousands(counts.directories_done),
        thousands(counts.directories),
        thousands(counts.files),
        thousands(summary.matched),
        thousands(summary.requests_per_second()),
        thousands(counts.unread),
    );
    if summary.downloads.wanted > 0 {
        text += " · downloads: ";
        text += &downloads_progress(&summary.downloads);
    }
    text
}

/// How fast it goes at the moment.
#[derive(Debug, Default)]
struct Speed {
    /// When the speed was last taken, with the requests and bytes by then.
    last: Option<(Instant, u64, u64)>,
    requests: f64,
    bytes: f64,
}

impl Speed {
    fn sample(&mut self, summary: &Summary, now: Instant) {
        let (requests, bytes) = (summary.counts.requests, summary.stats.bytes());
        let (since, earlier) = match self.last {
            Some((at, requests, bytes)) => (now.saturating_duration_since(at), (requests, bytes)),
            // Since the beginning.
            None => (summary.elapsed, (0, 0)),
        };
        if self.last.is_some() && since < SAMPLE {
            return;
        }
        let seconds = since.as_secs_f64().max(0.001);
        self.requests = requests.saturating_sub(earlier.0) as f64 / seconds;
        self.bytes = bytes.saturating_sub(earlier.1) as f64 / seconds;
        self.last = Some((now, requests, bytes));
    }
}

/// The lines, the first of which has two columns of its own before it.
fn view(summary: &Summary, speed: &Speed, now: Instant) -> String {
    let (counts, stats) = (&summary.counts, &summary.stats);
    let mut text = format!(
        "{}/{} directories · {} files · {} found · {} unread · {}",
        thousands(counts.directories_done),
        thousands(counts.directories),
        thousands(counts.files),
        thousands(summary.matched),
        thousands(counts.unread),
        clock_text(summary.elapsed),
    );
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "\n  {} requests/s · {}/s · {} in flight · latency P50 {} P95 {}",
        thousands(speed.requests as u64),
        size_text(speed.bytes as u64),
        stats.in_flight(),
        span_text(stats.latency().quantile(0.5)),
        span_text(stats.latency().quantile(0.95)),
    );
    if summary.downloads.wanted > 0 {
        let progress = downloads_progress(&summary.downloads);
        let _ = write!(text, "\n  downloads: {progress}");
    }
    if let Some(waiting) = waiting(stats, now) {
        let _ = write!(text, "\n  waiting: {waiting}");
    }
    if stats.hosts().len() > 1 {
        let slowest = by_slowness(stats.hosts()).filter(|host| host.answers > 0);
        let slowest = slowest.take(SHOWN).map(|host| {
            format!(
                "{} {} ({} in flight)",
                host.name,
                span_text(host.mean()),
                host.in_flight
            )
        });
        let slowest: Vec<_> = slowest.collect();
        if !slowest.is_empty() {
            let _ = write!(text, "\n  slowest: {}", slowest.join(" · "));
        }
    }
    if !stats.failed().is_empty() {
        let _ = write!(text, "\n  errors: {}", classes_text(stats.failed(), 4));
    }
    text
}

/// The hosts that wait for something else than answers, the longest wait first.
fn waiting(stats: &Stats, now: Instant) -> Option<String> {
    let hosts = stats.hosts().iter();
    let mut waiting: Vec<_> = hosts
        .filter_map(|host| Some((host.waiting?, &host.name)))
        .filter(|(waiting, _)| waiting.until > now)
        .collect();
    waiting.sort_by_key(|(waiting, _)| std::cmp::Reverse(waiting.until));
    let shown = waiting.iter().take(SHOWN).map(|(waiting, name)| {
        let left = waiting.until.saturating_duration_since(now);
        // Whole tenths, so that it does not flicker.
        format!("{name} {} {:.1} s", waiting.reason, left.as_secs_f64())
    });
    let mut text = shown.collect::<Vec<_>>().join(" · ");
    if waiting.len() > SHOWN {
        let _ = write!(text, " and {} more hosts", waiting.len() - SHOWN);
    }
    (!text.is_empty()).then_some(text)
}

/// Each line cut to the width, with room for the spinner and for the `^C` that a terminal shows. All is of characters
/// that are one column wide: URLs are ASCII.
fn fit(text: &str, width: usize) -> String {
    let room = width.saturating_sub(6).max(1);
    let lines = text.lines().map(|line| {
        if line.chars().count() <= room {
            return line.to_owned();
        }
        let mut cut: String = line.chars().take(room - 1).collect();
        cut.push('…');
        cut
    });
    lines.collect::<Vec<_>>().join("\n")
}

const REDRAW: Duration = Duration::from_millis(80);

/// Between two lines where there is no terminal.
const PLAIN_PAUSE: Duration = Duration::from_secs(1);

/// How long the speed is taken over.
const SAMPLE: Duration = Duration::from_millis(500);

/// Hosts in a line.
const SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::download::DownloadCounts;
    use crate::find::stats::{Class, Connection, Exchange, Reason, Waiting};
    use crate::find::{Counts, Ending};

    #[test]
    fn the_view_says_how_it_goes_and_why_it_waits() {
        let now = Instant::now();
        let mut stats = Stats::new(now);
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
            stats.handle_answer(now, host, 200, &exchange(ms));
        }
        stats.handle_failure(now, 0, Class::Timeout, &exchange(30_000));
        let until = now + Duration::from_millis(1500);
        let reason = Reason::BackOff;
        stats.handle_waiting(0, Some(Waiting { reason, until }));
        let summary = Summary {
            resumed: false,
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
                left: 95 << 20,
                ..DownloadCounts::default()
            },
            stats,
        };
        let mut speed = Speed::default();
        speed.sample(&summary, now);
        let text = view(&summary, &speed, now);
        let expected = "\
7/1,200 directories · 30 files · 3 found · 1 unread · 0:02
  2 requests/s · 3.0 KiB/s · 1 in flight · latency P50 10 ms P95 2.00 s
  downloads: 4/1,000 files, 1 failed · 5.0 MiB of 100 MiB · 4 under way
  waiting: http://fast back-off 1.5 s
  slowest: http://slow 2.00 s (1 in flight) · http://fast 10 ms (0 in flight)
  errors: 1 × timeout";
        assert_eq!(text, expected);
        for line in fit(&text, 30).lines() {
            assert!(line.chars().count() <= 24, "{line}");
        }
        assert!(!view(&summary, &speed, until).contains("waiting"));
    }
}
