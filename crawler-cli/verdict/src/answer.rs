//! What was answered when a URL was asked.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

use super::Verdict;
use plain::redirect::Redirect;

/// What was answered when a URL was asked, and the verdict.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// More about the cause, in words: `certificate expired 3 days ago`. It ends with `lenient: 1 line dropped` if an
    /// answer had header lines that were wrong and harmless, also of a good URL.
    pub detail: Option<String>,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// The method of the last request: `HEAD` or `GET`. `None` if there was no request.
    pub method: Option<&'static str>,
    /// Where the URL has moved to, if all redirects were permanent (301, 308) and the last answer is good.
    pub moved_to: Option<String>,
    /// The URL of the last answer, if there were redirects.
    pub final_url: Option<String>,
    /// The redirects that were followed, in order.
    pub redirects: Vec<Redirect>,
    /// How often the URL was asked; confirming requests of one attempt count once. 0 if it was not asked.
    pub attempts: u32,
    /// The time from the last request to its answer; kept to the microsecond.
    pub latency: Option<Duration>,
    /// The address that answered; that of the proxy if there is one.
    pub address: Option<IpAddr>,
    /// When the last answer or failure came. `None` if the URL was not asked.
    pub checked_at: Option<Timestamp>,
}

impl Answer {
    /// An answer without details: what is said about a URL that was not asked.
    pub fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            detail: None,
            status: None,
            method: None,
            moved_to: None,
            final_url: None,
            redirects: Vec::new(),
            attempts: 0,
            latency: None,
            address: None,
            checked_at: None,
        }
    }
}
