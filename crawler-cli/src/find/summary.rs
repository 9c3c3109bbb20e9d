//! How a search went.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::download::DownloadCounts;
use super::host_crawl::Counts;
use super::policy::Follow;
use crate::crawl::stats::{Stats, Totals};

/// How a search went, or how it is going. Of one that was gone on with, all runs together but where it says otherwise.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The search continues an interrupted one: its [state](super::State) had one already.
    pub resumed: bool,
    /// What leads from one URL to the next, so that what is read are directories or pages.
    pub follow: Follow,
    /// What the crawl has seen.
    pub counts: Counts,
    /// What was wanted: entries for which something was done.
    pub matched: u64,
    /// Entries of which some test could not be decided, since not even the server told enough. It was taken to be
    /// false.
    pub undecided: u64,
    /// Actions that could not be performed.
    pub failed: u64,
    /// Time that the search has taken.
    pub elapsed: Duration,
    /// How the search ended.
    pub ending: Ending,
    /// How far the downloads are.
    pub downloads: DownloadCounts,
    /// What it cost, and what it waited for.
    pub stats: Stats,
}

/// What the next run takes over from a summary, beside what the crawls of the hosts keep themselves.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Tally {
    pub(super) matched: u64,
    pub(super) undecided: u64,
    pub(super) failed: u64,
    pub(super) elapsed: Duration,
    pub(super) totals: Totals,
}

impl Summary {
    /// Whether everything was read. A search that [quit](Ending::Quit) is not complete.
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Finished && self.counts.unread == 0
    }

    /// The mean over the time elapsed.
    pub fn requests_per_second(&self) -> u64 {
        let micros = self.elapsed.as_micros().max(1);
        let rate = u128::from(self.counts.requests) * 1_000_000 / micros;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Nothing was left to do. In [`Event::Turn`](super::Event::Turn): the search goes on.
    Finished,
    /// The expression ended it: `-quit`.
    Quit,
    /// The callback stopped it, or it could not begin.
    Stopped,
}
