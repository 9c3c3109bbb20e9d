//! The progress of a crawl, as a line on standard error. On a terminal, the line is redrawn in place and removed at the
//! end.

use std::cmp::Reverse;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::statistics::{downloads_progress, what_is_read};
use crawl::stats::{HostStats, Stats};
use find::Summary;
use plain::text::{count, thousands};

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
    /// The line on a terminal; `None` without a terminal.
    bar: Option<ProgressBar>,
    /// The cursor is behind a text, where no line can be drawn.
    is_behind_text: bool,
    /// When a line was printed without a terminal.
    printed_at: Option<Instant>,
}

impl Live {
    pub(crate) fn new(mode: Progress) -> Self {
        // A dumb terminal can only print.
        let is_dumb = || std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_shown = mode != Progress::Never && io::stderr().is_terminal() && !is_dumb();
        let bar = is_shown.then(|| {
            let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg}");
            // The template is valid.
            ProgressBar::hidden()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        Self {
            mode,
            bar,
            is_behind_text: false,
            printed_at: None,
        }
    }

    /// Runs `write`, which writes whole lines to the terminal, while the line is removed.
    pub(crate) fn suspend<T>(&mut self, write: impl FnOnce() -> T) -> T {
        self.is_behind_text = false;
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Runs `write`, which leaves the cursor behind a text. No line is drawn until a text ends its line.
    pub(super) fn remove<T>(&mut self, write: impl FnOnce() -> T) -> T {
        self.is_behind_text = true;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        write()
    }

    /// Whether the line is on a terminal, where results would mix with it.
    pub(super) fn is_shown(&self) -> bool {
        self.bar.is_some()
    }

    pub(crate) fn draw(&mut self, summary: &impl Viewed, now: Instant) {
        if let Some(bar) = &self.bar {
            if summary.elapsed() < FIRST || self.is_behind_text {
                return;
            }
            if bar.is_hidden() {
                bar.reset();
                bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS));
            }
            bar.set_message(line(summary, now));
            bar.tick();
            return;
        }
        let recent = |at: Instant| now.saturating_duration_since(at) < PLAIN_PAUSE;
        if self.mode == Progress::Always && !self.printed_at.is_some_and(recent) {
            self.printed_at = Some(now);
            // An error on standard error cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "{}", line(summary, now));
        }
    }

    pub(crate) fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
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

/// The line appears after this time: shorter runs need none.
const FIRST: Duration = Duration::from_millis(200);

/// The most redraws a second.
const REDRAWS: u8 = 12;

/// The shortest time between two lines without a terminal.
const PLAIN_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crawl::stats::{Class, Connection, Exchange, Reason, Standing, Waiting};

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
            matched: 3,
            elapsed: Duration::from_secs(2),
            stats,
            ..Summary::default()
        };
        summary.counts.directories = 1200;
        summary.counts.directories_done = 7;
        summary.counts.files = 30;
        summary.counts.requests = 4;
        summary.counts.unread = 1;
        summary.downloads.wanted = 1000;
        summary.downloads.saved = 3;
        summary.downloads.failed = 1;
        summary.downloads.under_way = 4;
        summary.downloads.bytes = 5 << 20;
        let head = "7/1,200 directories";
        let tail = "30 files · 3 found · 2 requests/s · 1 unread · \
                    downloads: 4/1,000 files · 1 failed · 5.0 MiB · 4 under way";
        let waits = "waits for http://fast 1.5 s (back-off, 1 × timeout, 9,998 URLs left)";
        assert_eq!(line(&summary, now), format!("{head} · {waits} · {tail}"));
        let waits = "waits for http://fast (1 × timeout, 9,998 URLs left)";
        assert_eq!(line(&summary, until), format!("{head} · {waits} · {tail}"));
        summary.stats.handle_answer(0, 200, &exchange);
        assert_eq!(line(&summary, until), format!("{head} · {tail}"));
    }

    /// `-printf '%p '` leaves the cursor behind a result. The message of the line shows whether it would be drawn.
    #[test]
    fn no_line_is_drawn_behind_a_text() {
        let mut live = Live::new(Progress::Never);
        let bar = ProgressBar::hidden();
        live.bar = Some(bar.clone());
        let summary = Summary {
            elapsed: Duration::from_secs(1),
            ..Summary::default()
        };
        let is_drawn = |live: &mut Live| {
            bar.set_message("");
            live.draw(&summary, Instant::now());
            !bar.message().is_empty()
        };
        assert!(is_drawn(&mut live));
        live.remove(|| ());
        assert!(bar.is_finished() && bar.is_hidden(), "cleared");
        assert!(!is_drawn(&mut live));
        live.suspend(|| ());
        assert!(is_drawn(&mut live));
    }
}
