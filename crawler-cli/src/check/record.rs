//! What is reported about each URL.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::life::State;
use super::verdict::Verdict;
use crate::crawl::redirect::Redirect;

/// A URL, what a check said about it, and all places that refer to it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The URL as given, or as resolved against its base; never rewritten.
    pub url: String,
    /// The verdict of the last answer.
    pub verdict: Verdict,
    /// More about the cause, in words: `certificate expired 3 days ago`. It ends with `lenient: 1 line dropped` if an
    /// answer had header lines that were wrong and harmless, also of a good URL.
    pub detail: Option<String>,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// The method of the last request: `HEAD` or `GET`.
    pub method: Option<&'static str>,
    /// What all checks of the URL together say, if a state is kept.
    pub state: Option<State>,
    /// Where the URL has moved to, if all redirects were permanent (301, 308) and the last answer is good.
    pub moved_to: Option<String>,
    /// The URL of the last answer, if there were redirects.
    pub final_url: Option<String>,
    /// The redirects that were followed, in order.
    pub redirects: Vec<Redirect>,
    /// How often the URL was asked; confirming requests of one attempt count once. 0 if it was not asked.
    pub attempts: u32,
    /// The time from the last request to its answer.
    pub latency: Option<Duration>,
    /// The address that answered.
    pub address: Option<IpAddr>,
    /// When the last answer arrived.
    pub checked_at: Option<Timestamp>,
    /// Whether the check fails because of the URL.
    pub standing: Standing,
    /// Whether the URL was not asked in this run, because an earlier one asked recently enough.
    pub reused: bool,
    /// The places that refer to the URL, in the order in which they were found.
    pub references: Vec<Reference>,
}

impl Checked {
    /// `1 line dropped`, if an answer was read leniently.
    pub(crate) fn lenient(&self) -> Option<&str> {
        Some(self.detail.as_deref()?.rsplit_once(LENIENT)?.1)
    }
}

/// The last words of a detail, before what was dropped.
pub(crate) const LENIENT: &str = "lenient: ";

/// Whether a check fails because of a URL: its verdict, seen through the options.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Standing {
    /// No: it is good, or nothing to care about.
    Passes,
    /// No, but it is worth a look: a URL that could not be judged, unless `--blocked` says otherwise.
    Warns,
    /// Yes.
    Fails,
    /// No: it has not been failing for as long as `--fail-after` asks for. It fails after this time, if it goes on like
    /// this; `None` while a guard holds it.
    FailsRecently(Option<Duration>),
    /// The verdict is void: a guard was on.
    Untrusted,
}

/// A place that refers to a URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// The file, as given on the command line with what is below it; or the URL of the page. `-` is standard input.
    pub source: Arc<str>,
    /// The line, from 1. `None` if the URL was given on the command line.
    pub line: Option<u32>,
    /// The column in Unicode code points, from 1: the first character of the attribute's raw value (HTML), of the link's
    /// `[`, `!` or `<` (Markdown), or of the URL.
    pub column: Option<u32>,
    /// The link as written, if it is resolved against a base and means a file of this machine.
    pub written: Option<String>,
    /// The text of the link; empty if there is none.
    pub text: String,
}
