//! The statistics of a search as text or JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use courser::Rate;
use serde_json::{Value, json};

use super::unread::UnreadList;
use crawl::stats::{Class, HostStats, Stats};
use find::DownloadCounts;
use find::{Ending, Follow, Summary};
use plain::text::{self, count, thousands};

/// The summary in one line.
pub(crate) fn summary_text(summary: &Summary) -> String {
    let counts = &summary.counts;
    let seconds = summary.elapsed.as_secs_f64();
    let mut text = format!(
        "{} found among {} and {} in {seconds:.2} s; {} ({}/s)",
        thousands(summary.matched),
        count(counts.files, "file", "files"),
        what_is_read(summary, counts.directories),
        count(counts.requests, "request", "requests"),
        thousands(summary.requests_per_second()),
    );
    if let Some(rate) = summary.stats.held_by(summary.elapsed) {
        text += &held_text(rate);
    }
    if let Some(cpu) = cpu_text(&summary.stats, counts.files + counts.directories) {
        text += &format!(", {cpu}");
    }
    if counts.retries > 0 {
        text += &format!(", {} of them repeated", thousands(counts.retries));
    }
    match counts.unread {
        0 if summary.ending == Ending::Finished => text += "; nothing unread",
        0 => {}
        unread => text += &format!("; {} UNREAD", thousands(unread)),
    }
    if summary.undecided > 0 {
        let undecided = count(summary.undecided, "entry", "entries");
        text += &format!("; {undecided} UNDECIDED, taken not to match");
    }
    if summary.failed > 0 {
        text += &format!("; {} FAILED", count(summary.failed, "action", "actions"));
    }
    match summary.ending {
        Ending::Finished => {}
        Ending::Quit => text += "; ended by -quit",
        Ending::Stopped => {
            text += "; STOPPED early";
            let left = counts.directories.saturating_sub(counts.directories_done);
            if left > 0 {
                let were = if left == 1 { "was" } else { "were" };
                let left = what_is_read(summary, left);
                text += &format!(", {left} {were} not read");
            }
        }
    }
    text
}

/// The processor time for a million URLs, by that for so many; `None`: they are too few to tell.
pub(super) fn cpu_text(stats: &Stats, urls: u64) -> Option<String> {
    let of_million = stats.cpu().as_secs_f64() * 1e6 / urls as f64;
    (urls >= ENOUGH_URLS).then(|| format!("{of_million:.1} CPU seconds for a million URLs"))
}

/// The number of URLs from which on their processor time is more than that of the start.
const ENOUGH_URLS: u64 = 1000;

/// That a crawl waited for this rate, in the notation of `--rate`.
pub(super) fn held_text(rate: Rate) -> String {
    let per_second = rate.count.get() as f64 / rate.per.as_secs_f64();
    let of_unit = |seconds: f64| (per_second * seconds * 1e3).round() / 1e3;
    let units = [("", 1.0), ("/m", 60.0), ("/h", 3600.0)];
    let is_exact = |seconds: f64| (of_unit(seconds) / seconds / per_second - 1.0).abs() < 1e-9;
    let unit = units.into_iter().find(|&(_, seconds)| is_exact(seconds));
    let (unit, seconds) = unit.unwrap_or(units[2]);
    format!(", held by --rate {}{unit}", of_unit(seconds))
}

/// `--summary json`: one object on one line.
pub(super) fn summary_json(summary: &Summary, unread: &UnreadList) -> String {
    let (counts, stats) = (&summary.counts, &summary.stats);
    let (unread_urls, unread_urls_more) = unread.json();
    let own = json!({
        "complete": summary.is_complete(),
        "resumed": summary.resumed,
        "ending": match summary.ending {
            Ending::Finished => "finished",
            Ending::Quit => "quit",
            Ending::Stopped => "stopped",
        },
        "matched": summary.matched,
        "undecided": summary.undecided,
        "actions_failed": summary.failed,
        "downloads": downloads_json(&summary.downloads),
        "files": counts.files,
        "directories": counts.directories,
        "directories_done": counts.directories_done,
        "requests": counts.requests,
        "retries": counts.retries,
        "unread": counts.unread,
        "unread_by_class": class_counts(stats.unread()),
        "unread_urls": unread_urls,
        "unread_urls_more": unread_urls_more,
        "requests_per_second": summary.requests_per_second(),
    });
    with_costs(own, summary.elapsed, stats)
}

/// A summary as one line of JSON: its own fields, and what the run has cost.
pub(super) fn with_costs(mut own: Value, elapsed: Duration, stats: &Stats) -> String {
    let (opened, reused) = stats.connections();
    let (held, cpu) = (stats.held(), stats.cpu());
    let hosts: Vec<Value> = stats.hosts().iter().map(host_json).collect();
    let mean = stats.mean().unwrap_or_default();
    let costs = json!({
        "failed_attempts_by_class": class_counts(stats.failed()),
        "bytes": stats.bytes(),
        "seconds": elapsed.as_secs_f64(),
        // Requests were in flight, and nothing was there to read.
        "seconds_waiting_for_hosts": elapsed.saturating_sub(held + cpu).as_secs_f64(),
        "seconds_held_back": held.as_secs_f64(),
        "seconds_computing": cpu.as_secs_f64(),
        "latency_seconds": { "mean": mean.as_secs_f64(), "max": stats.slowest().as_secs_f64() },
        "connections_opened": opened,
        "connections_reused": reused,
        "hosts": hosts,
    });
    if let (Value::Object(own), Value::Object(costs)) = (&mut own, costs) {
        own.extend(costs);
    }
    json!({ "summary": own }).to_string() + "\n"
}

/// `null` if no file was to be downloaded.
fn downloads_json(downloads: &DownloadCounts) -> Value {
    match downloads.wanted {
        0 => Value::Null,
        _ => json!({
            "wanted": downloads.wanted,
            "saved": downloads.saved,
            "resumed": downloads.resumed,
            "kept": downloads.kept,
            "failed": downloads.failed,
            "bytes": downloads.bytes,
        }),
    }
}

/// What was downloaded, in one line.
pub(super) fn downloads_text(downloads: &DownloadCounts) -> String {
    let mut text = format!(
        "{} downloaded ({})",
        count(downloads.saved, "file", "files"),
        count(downloads.bytes, "byte", "bytes"),
    );
    if downloads.resumed > 0 {
        text += &format!(", {} of them resumed", thousands(downloads.resumed));
    }
    if downloads.kept > 0 {
        text += &format!(", {} there already", thousands(downloads.kept));
    }
    let done = downloads.saved + downloads.kept;
    let missing = downloads.wanted.saturating_sub(done);
    if missing > 0 {
        text += &format!("; {} NOT DOWNLOADED", thousands(missing));
    }
    text
}

/// The progress of the downloads as parts of one line.
pub(super) fn downloads_progress(downloads: &DownloadCounts) -> Vec<String> {
    let mut parts = vec![format!(
        "downloads: {}/{}",
        thousands(downloads.over()),
        count(downloads.wanted, "file", "files"),
    )];
    if downloads.failed > 0 {
        parts.push(format!("{} failed", thousands(downloads.failed)));
    }
    if downloads.kept > 0 {
        parts.push(format!("{} there already", thousands(downloads.kept)));
    }
    parts.push(text::size(downloads.bytes));
    parts.push(format!("{} under way", thousands(downloads.under_way)));
    parts
}

fn host_json(host: &HostStats) -> Value {
    json!({
        "host": host.name,
        "requests": host.requests,
        "answers": host.answers,
        "failures": host.failures,
        "status_classes": host.statuses[1..=5],
        "bytes": host.bytes,
        "connections_opened": host.opened,
        "connections_reused": host.reused,
        "mean_seconds": host.mean().as_secs_f64(),
        "max_seconds": host.slowest.as_secs_f64(),
    })
}

fn class_counts(classes: &BTreeMap<Class, u64>) -> Value {
    let entries = classes.iter();
    let entries = entries.map(|(class, &count)| (class.to_string(), Value::from(count)));
    Value::Object(entries.collect())
}

/// A number of directories (or pages, when pages are followed).
pub(super) fn what_is_read(summary: &Summary, n: u64) -> String {
    match summary.follow {
        Follow::Listings => count(n, "directory", "directories"),
        Follow::Pages => count(n, "page", "pages"),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use find::Counts;

    #[test]
    fn rates_are_shown_as_they_are_typed() {
        for (count, seconds, text) in [
            (10, 1, "10"),
            (30, 60, "0.5"),
            (10, 60, "10/m"),
            (100, 3600, "100/h"),
        ] {
            let rate = Rate {
                count: NonZeroU64::new(count).expect("not 0"),
                per: Duration::from_secs(seconds),
                burst: NonZeroU64::MIN,
            };
            assert_eq!(held_text(rate), format!(", held by --rate {text}"));
        }
    }

    /// Fails if a part of the line says that all was read, and another that it was not.
    #[test]
    fn the_end_of_a_search_is_told_once() {
        for (ending, unread, done, expected) in [
            (Ending::Finished, 0, 3, "; nothing unread"),
            (Ending::Finished, 2, 3, "; 2 UNREAD"),
            (Ending::Quit, 0, 2, "; ended by -quit"),
            (Ending::Stopped, 0, 3, "; STOPPED early"),
            (
                Ending::Stopped,
                1,
                2,
                "; 1 UNREAD; STOPPED early, 1 directory was not read",
            ),
        ] {
            let counts = Counts {
                unread,
                directories: 3,
                directories_done: done,
                ..Counts::default()
            };
            let text = summary_text(&Summary {
                counts,
                elapsed: Duration::from_secs(1),
                ending,
                ..Summary::default()
            });
            let head = "0 found among 0 files and 3 directories in 1.00 s; 0 requests (0/s)";
            assert_eq!(text, format!("{head}{expected}"));
        }
    }
}
