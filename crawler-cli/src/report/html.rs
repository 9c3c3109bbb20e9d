//! `--report html FILE`: what was found, as a tree of sizes, and what could not be read. The amount of text is bounded.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use maud::{Markup, html};

use super::page::{self, link, section};
use super::sizes::Sizes;
use super::statistics::summary_text;
use super::{check_writable, describe};
use crawl::stats::HostStats;
use find::{Ending, Found, Summary, Unread};
use plain::terminal;
use plain::text::{size, span, thousands};

/// What the page shows beside the numbers of the [`Summary`].
#[derive(Debug)]
pub(super) struct Page {
    path: PathBuf,
    sizes: Sizes,
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
            unread: Vec::new(),
            more_unread: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn found(&mut self, found: &Found<'_>) {
        self.sizes.add(found);
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
        let (counts, version) = (&summary.counts, env!("CARGO_PKG_VERSION"));
        let about = format!("{} · crawler-cli find {version} · {made}", state(summary));
        let body = html! {
            (page::tiles(&[
                ("found", thousands(summary.matched), false),
                ("files", thousands(counts.files), false),
                ("not read", thousands(counts.unread), counts.unread > 0),
                ("time", span(summary.elapsed), false),
                ("requests/s", thousands(summary.requests_per_second()), false),
                ("received", size(summary.stats.bytes()), false),
            ]))
            @match self.sizes.tree() {
                Some(tree) => (section("Sizes", "Of the files that were found, as the listings tell them, and as shares of all.", &tree)),
                None => (section("Sizes", "No files were found.", &html! {})),
            }
            (section(&format!("Not read: {}", thousands(counts.unread)), "", &self.unread_table(summary)))
            section { h2 { "Summary" } p { (summary_text(summary)) } }
        };
        page::document(&title(summary.stats.hosts()), &about, &body)
    }

    fn unread_table(&self, summary: &Summary) -> Markup {
        html! {
            @if !self.unread.is_empty() {
                table {
                    @for (url, cause) in &self.unread {
                        tr { td { (link(url, url)) } td { (terminal::neutralise(cause)) } }
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

fn title(hosts: &[HostStats]) -> String {
    match hosts {
        [] => "No host".to_owned(),
        [host] => host.name.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.name, rest.len()),
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

/// The largest number of files or directories with a line of their own in the tree.
const MOST_APART: usize = 10_000;

/// The largest number of rows in the table of unread URLs.
const MOST_UNREAD: usize = 1000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crawl::stats::Stats;
    use find::{Cause, Counts};
    use listing::range::SizeRange;

    fn summary(hosts: &[&str]) -> Summary {
        let mut stats = Stats::default();
        for name in hosts {
            stats.add_host(name);
        }
        Summary {
            counts: Counts {
                unread: 2,
                ..Counts::default()
            },
            matched: 1234,
            elapsed: Duration::from_secs(2),
            stats,
            ..Summary::default()
        }
    }

    fn page() -> (tempfile::TempDir, Page) {
        let folder = tempfile::tempdir().expect("a directory");
        let page = Page::new(folder.path().join("report.html")).expect("can be written");
        (folder, page)
    }

    fn unread(page: &mut Page, url: &str, cause: &Cause) {
        let from = None;
        page.unread(&Unread { url, cause, from });
    }

    #[test]
    fn the_page_is_harmless_and_has_everything() {
        let (_folder, mut page) = page();
        for i in 0..50 {
            let url = format!("http://h/pub/%3Cb%3E&amp;/d{}/f{i}", i % 7);
            page.found(&Found {
                url: &url,
                size: Some(SizeRange::exact(1 << i)),
                ..Found::FILE
            });
        }
        page.found(&Found {
            url: "http://h/pub/\"><script>alert('x')</script>\u{1b}[2J",
            ..Found::FILE
        });
        let cause = Cause::NotHtml("<script>alert('x')</script>\u{1b}[2J".into());
        for url in ["http://h/\"><script>", "ftp://h/"] {
            unread(&mut page, url, &cause);
        }
        let html = page.html(&summary(&["http://h", "http://two"]), "today");
        page::tests::assert_harmless(&html);
        for part in [
            "<h1>http://h and 1 more</h1>",
            "<b>1,234</b><span>found</span>",
            "<summary><span class=\"name\">d0/</span>",
            "href=\"http://h/pub/%3Cb%3E&amp;amp;/d0/f49\"",
            "<h2>Not read: 2</h2>",
            "<td>ftp://h/</td><td>not a directory listing: its content type is &lt;script&gt;",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn a_search_that_found_nothing_has_a_page_too() {
        let (_folder, page) = page();
        let mut nothing = summary(&[]);
        nothing.counts.unread = 0;
        let html = page.html(&nothing, "today");
        page::tests::assert_harmless(&html);
        assert!(html.contains("Everything was read.") && html.contains("No files were found."));
        nothing.ending = Ending::Stopped;
        let html = page.html(&nothing, "today");
        assert!(!html.contains("Everything was read."));
    }

    #[test]
    fn the_list_of_what_was_not_read_is_bounded() {
        let (_folder, mut page) = page();
        for i in 0..MOST_UNREAD + 5 {
            unread(&mut page, &format!("http://h/{i}"), &Cause::Status(500));
        }
        let html = page.html(&summary(&["http://h"]), "today");
        assert_eq!(html.matches("the server answered 500").count(), MOST_UNREAD);
        assert!(html.contains("And 5 more, which standard error named."));
    }
}
