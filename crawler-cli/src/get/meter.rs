//! What the progress meters show, in curl's format. Numbers in, text out: when a meter is drawn is left to
//! [`progress`](super::progress) and [`parallel`](super::parallel).

use std::time::Duration;

/// The state of one transfer, or of several together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) download: Moved,
    pub(super) upload: Moved,
    pub(super) spent: Duration,
    /// Bytes per second in the last few seconds, both directions together.
    pub(super) current: u64,
}

/// Bytes of bodies in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub(super) now: u64,
    /// `None`: not known.
    pub(super) total: Option<u64>,
}

impl Moved {
    /// Bytes per second since the beginning.
    fn speed(self, spent: Duration) -> u64 {
        per_second(self.now, spent)
    }

    fn percent(self, spent: Duration) -> u64 {
        match self.total {
            Some(total) if self.speed(spent) > 0 => percent(self.now, total),
            _ => 0,
        }
    }

    /// Seconds for all bytes at the speed so far; 0 if it is not known.
    fn estimate(self, spent: Duration) -> u64 {
        let speed = self.speed(spent);
        self.total
            .and_then(|total| total.checked_div(speed))
            .unwrap_or(0)
    }
}

impl Snapshot {
    fn moved(&self) -> u64 {
        self.download.now.saturating_add(self.upload.now)
    }

    fn expected(&self) -> u64 {
        let of = |moved: Moved| moved.total.unwrap_or(moved.now);
        of(self.download).saturating_add(of(self.upload))
    }

    /// How many seconds the transfer takes in all, spent so far, and has left: three columns.
    fn times(&self) -> [String; 3] {
        let (download, upload) = (self.download, self.upload);
        let total = download
            .estimate(self.spent)
            .max(upload.estimate(self.spent));
        let spent = self.spent.as_secs();
        [total, spent, total.saturating_sub(spent)].map(clock)
    }

    /// The line of the meter, without its carriage return.
    pub(super) fn row(&self) -> String {
        let (download, upload) = (self.download, self.upload);
        let spent = self.spent;
        let [total, passed, left] = self.times();
        format!(
            "{:3} {}  {:3} {}  {:3} {}  {}  {} {total} {passed} {left} {}",
            percent(self.moved(), self.expected()),
            size(self.expected()),
            download.percent(spent),
            size(download.now),
            upload.percent(spent),
            size(upload.now),
            size(download.speed(spent)),
            size(upload.speed(spent)),
            size(self.current),
        )
    }

    /// The line of the meter of transfers at the same time, without its carriage return.
    pub(super) fn parallel_row(&self, begun: u64, live: u64) -> String {
        let share = |moved: Moved| match moved.total.filter(|total| *total > 0) {
            Some(total) => format!("{:<3}", percent(moved.now, total)),
            None => "-- ".to_owned(),
        };
        let [total, passed, left] = self.times();
        format!(
            "{} {} {} {} {begun:5} {live:5}  {total} {passed} {left} {}     ",
            share(self.download),
            share(self.upload),
            size(self.download.now),
            size(self.upload.now),
            size(self.current),
        )
    }

    /// The bar of `-#`, without its carriage return; `None` if it cannot be known how much is done.
    pub(super) fn bar(&self, columns: usize) -> Option<String> {
        let known = [self.download, self.upload]
            .iter()
            .any(|moved| moved.total.is_some_and(|total| total > 0));
        if !known {
            return None;
        }
        let done = self.moved() as f64 / self.expected().max(1) as f64;
        let done = done.clamp(0.0, 1.0);
        let width = columns.saturating_sub(AFTER_BAR).max(1);
        let filled = "#".repeat((width as f64 * done) as usize);
        Some(format!("{filled:<width$} {:5.1}%", done * 100.0))
    }
}

/// A sign of life for `-#` while the size is not known. `step` counts the updates.
pub(super) fn unknown_bar(step: usize, columns: usize) -> String {
    const MARK: &str = "-=O=-";
    let room = columns.saturating_sub(MARK.len() + 1).max(1);
    // To the right, and back.
    let at = match step % (2 * room) {
        there if there <= room => there,
        back => 2 * room - back,
    };
    let width = room + MARK.len();
    format!("{:<width$}", format!("{:at$}{MARK}", ""))
}

/// Precedes the first line of each transfer.
pub(super) const HEADER: &str =
    "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current
                                 Dload  Upload   Total   Spent    Left  Speed\n";

pub(super) const PARALLEL_HEADER: &str =
    "DL% UL%  Dled  Uled  Xfers  Live Total     Current  Left    Speed\n";

pub(super) fn per_second(bytes: u64, time: Duration) -> u64 {
    let micros = time.as_micros().max(1);
    let speed = u128::from(bytes) * 1_000_000 / micros;
    u64::try_from(speed).unwrap_or(u64::MAX)
}

fn percent(now: u64, total: u64) -> u64 {
    let share = u128::from(now) * 100 / u128::from(total.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Bytes in five columns.
fn size(bytes: u64) -> String {
    const UNITS: [char; 5] = ['k', 'M', 'G', 'T', 'P'];
    if bytes < 100_000 {
        return format!("{bytes:5}");
    }
    let mut unit = 1024;
    for (place, name) in UNITS.into_iter().enumerate() {
        // Kilobytes and from terabytes on have no decimal.
        let has_decimal = matches!(name, 'M' | 'G');
        if has_decimal && bytes / unit < 100 {
            return format!("{:2}.{}{name}", bytes / unit, bytes % unit / (unit / 10));
        }
        if bytes / unit < 10_000 || place + 1 == UNITS.len() {
            return format!("{:4}{name}", bytes / unit);
        }
        unit *= 1024;
    }
    String::new()
}

/// Seconds in eight columns.
fn clock(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600, seconds / 60 % 60);
    match (hours, days) {
        _ if seconds == 0 => "--:--:--".to_owned(),
        (0..=99, _) => format!("{hours:2}:{minutes:02}:{:02}", seconds % 60),
        (_, 0..=999) => format!("{days:3}d {:02}h", hours % 24),
        _ => format!("{days:7}d"),
    }
}

/// Columns beside the bar of `-#`: its percentage and the space before it.
const AFTER_BAR: usize = 7;
