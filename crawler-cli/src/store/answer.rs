//! What was answered when a URL was asked.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

use crate::check::{Checked, Standing, Verdict};
use crate::crawl::redirect::Redirect;

/// What was answered when a URL was asked, and the verdict.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// More about the cause, in words.
    pub detail: Option<String>,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// The method of the last request.
    pub method: Option<&'static str>,
    /// Where the URL has moved to for good.
    pub moved_to: Option<String>,
    /// The URL of the last answer, if there were redirects.
    pub final_url: Option<String>,
    /// The redirects that were followed, in order.
    pub redirects: Vec<Redirect>,
    /// How often the URL was asked.
    pub attempts: u32,
    /// The time from the last request to its answer; kept to the microsecond.
    pub latency: Option<Duration>,
    /// The address that answered.
    pub address: Option<IpAddr>,
    /// When the last answer arrived.
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

    /// A check's record of the URL that was answered so, without a state and without places.
    pub(crate) fn checked(self, url: String) -> Checked {
        Checked {
            url,
            verdict: self.verdict,
            detail: self.detail,
            status: self.status,
            method: self.method,
            state: None,
            moved_to: self.moved_to,
            final_url: self.final_url,
            redirects: self.redirects,
            attempts: self.attempts,
            latency: self.latency,
            address: self.address,
            checked_at: self.checked_at,
            standing: Standing::Passes,
            reused: false,
            before: None,
            references: Vec::new(),
        }
    }
}
