//! `--report html FILE`: one HTML file with charts as SVG, without scripts and without references to other files. The
//! templates escape all text from servers; the amount of such text is bounded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use maud::{Markup, html};

use super::charts::{self, BARS};
use super::page::{self, chart, hosts_table, link, rows_table, section};
use super::sizes::Sizes;
use super::statistics::{
    Spent, classes_text, connections_text, count, latency_text, size_text, span_text, summary_text,
    thousands,
};
use super::treemap::treemap;
use super::{check_writable, describe};
use crate::crawl::stats::HostStats;
use crate::find::download::DownloadCounts;
use crate::find::{Ending, Follow, Found, Summary, Unread};
use crate::terminal;

/// What the page shows beside the statistics of the [`Summary`].
#[derive(Debug)]
pub(super) struct Page {
    path: PathBuf,
    sizes: Sizes,
    /// The largest files, the smallest of them on top: size in bytes (perhaps estimated), URL, and whether the size is
    /// exact.
    largest: BinaryHeap<Reverse<(u64, Reverse<String>, bool)>>,
    /// URLs that could not be read, and the causes.
    unread: Vec<(String, String)>,
    more_unread: u64,
}

impl Page {
    /// A page for this file. The file is created now, so that an error is reported at the start of the search.
    pub(super) fn new(path: PathBuf) -> io::Result<Self> {
        check_writable(&path)?;
        Ok(Self {
            path,
            sizes: Sizes::new(MOST_APART),
            largest: BinaryHeap::new(),
            unread: Vec::new(),
            more_unread: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn found(&mut self, found: &Found<'_>) {
        self.sizes.add(found);
        if let Some(size) = found.size {
            let least = self.largest.peek().map_or(0, |Reverse((bytes, ..))| *bytes);
            if self.largest.len() < LARGEST || size.middle() > least {
                let url = Reverse(found.url.to_owned());
                let file = (size.middle(), url, size.known().is_some());
                self.largest.push(Reverse(file));
            }
            if self.largest.len() > LARGEST {
                self.largest.pop();
            }
        }
    }

    pub(super) fn unread(&mut self, unread: &Unread<'_>) {
        if self.unread.len() < MOST_UNREAD {
            let cause = describe(unread.cause);
            self.unread.push((unread.url.to_owned(), cause));
        } else {
            self.more_unread += 1;
        }
    }

    pub(super) fn write(&self, summary: &Summary) -> io::Result<()> {
        let made = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC");
        fs::write(&self.path, self.html(summary, &made.to_string()))
    }

    /// `made` is the time of the report, as text.
    fn html(&self, summary: &Summary, made: &str) -> String {
        let title = title(summary.stats.hosts());
        let about = html! {
            (state(summary)) " · crawler-cli find " (env!("CARGO_PKG_VERSION")) " · " (made)
        };
        let body = html! {
            @if summary.resumed {
                p { "An earlier run was continued. Charts, latencies, hosts, files and URLs are those of the last run." }
            }
            (tiles(summary))
            (self.charts(summary))
            (self.tables(summary))
        };
        page::document(&title, &about, &body)
    }

    fn charts(&self, summary: &Summary) -> Markup {
        let stats = &summary.stats;
        let by = match self.sizes.has_sizes() {
            true => "Sizes by directory",
            false => "Files by directory",
        };
        let most = match stats.hosts().len() {
            0..=BARS => "",
            _ => " Only the hosts with most requests are shown.",
        };
        html! {
            (chart(
                by,
                "Of the files that were found. Point at a rectangle for its path.",
                "No files were found.",
                treemap(&self.sizes, 1000.0, 460.0),
            ))
            (charts::over_time(stats.timeline()))
            (section(
                "Status by host",
                &format!("Shares of the requests. The number at the end is that of all requests.{most}"),
                charts::statuses(stats.hosts()),
            ))
        }
    }

    fn tables(&self, summary: &Summary) -> Markup {
        let unread = format!("Not read: {}", thousands(summary.counts.unread));
        html! {
            (section("Summary", "", summary_table(summary)))
            (section("Hosts", "The slowest first.", hosts_table(&summary.stats)))
            @if summary.downloads.wanted > 0 {
                (section("Downloads", "", downloads_table(&summary.downloads)))
            }
            @if !self.largest.is_empty() {
                (section("Largest files", "", self.largest_table()))
            }
            (section(&unread, "", self.unread_table(summary)))
        }
    }

    fn largest_table(&self) -> Markup {
        let mut files: Vec<_> = self.largest.iter().map(|Reverse(file)| file).collect();
        files.sort_by(|a, b| b.cmp(a));
        html! {
            table {
                thead { tr { th { "URL" } th.n { "Size" } } }
                tbody {
                    @for (bytes, Reverse(url), is_exact) in files {
                        tr {
                            td { (link(url)) }
                            td.n { @if !is_exact { "~" } (size_text(*bytes)) }
                        }
                    }
                }
            }
        }
    }

    fn unread_table(&self, summary: &Summary) -> Markup {
        html! {
            @if !self.unread.is_empty() {
                table {
                    thead { tr { th { "URL" } th { "Cause" } } }
                    tbody {
                        @for (url, cause) in &self.unread {
                            tr { td { (link(url)) } td { (terminal::neutralise(cause)) } }
                        }
                    }
                }
                @if self.more_unread > 0 {
                    p { "And " (thousands(self.more_unread)) " more, which standard error named." }
                }
            } @else if summary.is_complete() {
                p.good { "Everything was read." }
            } @else {
                p { "The search ended before everything was read." }
            }
        }
    }
}

/// The most important numbers, in large print.
fn tiles(summary: &Summary) -> Markup {
    let (counts, stats) = (&summary.counts, &summary.stats);
    let at = |q| {
        let latency = Some(stats.latency()).filter(|latency| latency.count() > 0);
        latency.map_or_else(|| "–".to_owned(), |latency| span_text(latency.quantile(q)))
    };
    let read = match summary.follow {
        Follow::Listings => "directories",
        Follow::Pages => "pages",
    };
    let bad = (counts.unread > 0).then_some("bad");
    let tiles = [
        ("found", thousands(summary.matched), None),
        ("files", thousands(counts.files), None),
        (read, thousands(counts.directories), None),
        ("not read", thousands(counts.unread), bad),
        ("time", span_text(summary.elapsed), None),
        ("requests/s", thousands(summary.requests_per_second()), None),
        ("received", size_text(stats.bytes()), None),
        ("P50", at(0.5), None),
        ("P95", at(0.95), None),
        ("P99", at(0.99), None),
    ];
    page::tiles(&tiles)
}

fn title(hosts: &[HostStats]) -> String {
    match hosts {
        [] => "No host".to_owned(),
        [host] => terminal::neutralise(&host.name).into_owned(),
        [first, rest @ ..] => {
            let first = terminal::neutralise(&first.name);
            format!("{first} and {} more", rest.len())
        }
    }
}

fn state(summary: &Summary) -> &'static str {
    match summary.ending {
        Ending::Stopped => "stopped early",
        Ending::Quit => "ended by -quit",
        Ending::Finished if summary.counts.unread > 0 => "finished, not everything was read",
        Ending::Finished => "complete",
    }
}

fn summary_table(summary: &Summary) -> Markup {
    let (counts, stats) = (&summary.counts, &summary.stats);
    let mut rows = vec![
        ("Outcome", summary_text(summary)),
        (
            "Requests",
            format!(
                "{}, {} of them repeated",
                thousands(counts.requests),
                thousands(counts.retries)
            ),
        ),
        ("Latency", latency_text(stats.latency())),
        ("Connections", connections_text(stats.connections())),
        (
            "Time",
            Spent::new(summary.elapsed, stats).text(summary.elapsed),
        ),
    ];
    if !stats.failed().is_empty() {
        let failed = classes_text(stats.failed());
        rows.push(("Attempts that failed", failed));
    }
    rows_table(&rows)
}

fn downloads_table(downloads: &DownloadCounts) -> Markup {
    let left = downloads.wanted.saturating_sub(downloads.over());
    let mut rows = vec![
        ("Wanted", count(downloads.wanted, "file", "files")),
        (
            "Downloaded",
            format!(
                "{}, {}",
                count(downloads.saved, "file", "files"),
                size_text(downloads.bytes)
            ),
        ),
    ];
    for (name, number) in [
        ("Resumed", downloads.resumed),
        ("There already", downloads.kept),
        ("Failed", downloads.failed),
        ("Left", left),
    ] {
        if number > 0 {
            rows.push((name, count(number, "file", "files")));
        }
    }
    rows_table(&rows)
}

/// The largest number of files or directories with an entry of their own in the tree map.
const MOST_APART: usize = 20_000;

/// The number of rows in the table of the largest files.
const LARGEST: usize = 15;

/// The largest number of rows in the table of unread URLs.
const MOST_UNREAD: usize = 1000;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::crawl::stats::{Connection, Exchange, Stats};
    use crate::find::{Cause, Counts, SizeRange};

    fn found(url: &str, size: Option<u64>) -> Found<'_> {
        Found {
            url,
            size: size.map(SizeRange::exact),
            ..Found::FILE
        }
    }

    fn summary(hosts: &[&str]) -> Summary {
        let now = Instant::now();
        let mut stats = Stats::new(now);
        for name in hosts {
            let host = stats.add_host(name);
            for ms in 1..200 {
                let exchange = Exchange {
                    took: Duration::from_millis(ms),
                    bytes: 1000,
                    connection: Some(Connection::Reused),
                    robots: false,
                };
                let at = now + Duration::from_millis(ms * 10);
                stats.handle_sent(host);
                stats.handle_answer(at, host, if ms % 50 == 0 { 503 } else { 200 }, &exchange);
            }
        }
        Summary {
            resumed: false,
            follow: Follow::Listings,
            downloads: DownloadCounts::default(),
            counts: Counts {
                unread: 2,
                ..Counts::default()
            },
            matched: 1234,
            undecided: 0,
            failed: 0,
            elapsed: Duration::from_secs(2),
            ending: Ending::Finished,
            stats,
        }
    }

    fn page() -> (tempfile::TempDir, Page) {
        let folder = tempfile::tempdir().expect("a directory");
        let page = Page::new(folder.path().join("report.html")).expect("can be written");
        (folder, page)
    }

    #[test]
    fn the_page_is_well_formed_and_has_everything() {
        let (_folder, mut page) = page();
        for i in 0..50 {
            let url = format!("http://h/pub/%3Cb%3E&amp;/d{}/f{i}", i % 7);
            page.found(&found(&url, Some(1 << i)));
        }
        let cause = Cause::NotHtml("<script>alert('x')</script>\u{1b}[2J".into());
        for url in ["http://h/\"><script>", "ftp://h/"] {
            page.unread(&Unread {
                url,
                cause: &cause,
                from: None,
            });
        }
        let mut summary = summary(&["http://h", "http://two"]);
        summary.downloads = DownloadCounts {
            wanted: 6,
            saved: 3,
            failed: 1,
            bytes: 1024,
            ..DownloadCounts::default()
        };
        let html = page.html(&summary, "today");
        page::assert_well_formed(&html);
        for part in [
            "<h1>http://h and 1 more</h1>",
            "<b>1,234</b><span>found</span>",
            "<td>http://two</td>",
            "http://h/pub/%3Cb%3E&amp;amp;/d0/f49",
            "<h2>Downloads</h2>",
            "<th>Downloaded</th><td>3 files, 1.0 KiB</td>",
            "<th>Failed</th><td>1 file</td>",
            "<th>Left</th><td>2 files</td>",
            "<h2>Not read: 2</h2>",
            "<td>ftp://h/</td><td>not a directory listing: its content type is &lt;script&gt;",
        ] {
            assert!(html.contains(part), "{part}");
        }
        // The page contains nothing active and refers to no other file.
        for part in [
            "<script", "<img", "src=", "url(", "@import", "<link", "\u{1b}",
        ] {
            assert!(!html.contains(part), "{part}");
        }
    }

    #[test]
    fn a_search_that_found_nothing_has_a_page_too() {
        let (_folder, page) = page();
        let mut nothing = summary(&[]);
        nothing.counts.unread = 0;
        let html = page.html(&nothing, "today");
        page::assert_well_formed(&html);
        assert!(html.contains("Everything was read.") && html.contains("No answers."));
        assert!(html.contains("<h2>Files by directory</h2>") && !html.contains("Downloads"));
        assert!(!html.contains("earlier run"));
        nothing.resumed = true;
        let html = page.html(&nothing, "today");
        page::assert_well_formed(&html);
        assert!(html.contains("An earlier run was continued."));
        nothing.ending = Ending::Stopped;
        assert!(
            !page
                .html(&nothing, "today")
                .contains("Everything was read.")
        );
    }

    #[test]
    fn the_list_of_what_was_not_read_is_bounded() {
        let (_folder, mut page) = page();
        for i in 0..MOST_UNREAD + 5 {
            let url = format!("http://h/{i}");
            let cause = &Cause::Status(500);
            page.unread(&Unread {
                url: &url,
                cause,
                from: None,
            });
        }
        let html = page.html(&summary(&["http://h"]), "today");
        assert_eq!(html.matches("the server answered 500").count(), MOST_UNREAD);
        assert!(html.contains("And 5 more, which standard error named."));
    }
}
