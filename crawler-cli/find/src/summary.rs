//! The summary of a search.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::host_crawl::Counts;
use super::policy::Follow;
use crawl::stats::{Stats, Totals};

/// The progress or the outcome of a search. After a resume, the numbers cover all runs, unless a field says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Whether the search continues an interrupted one, from its [state](super::State).
    pub resumed: bool,
    /// Which links were followed: decides whether directories or pages are counted.
    pub follow: Follow,
    /// The counts of the crawl.
    pub counts: Counts,
    /// Entries for which an action was performed.
    pub matched: u64,
    /// Entries for which a test could not be decided, even after asking the server. The test counted as false.
    pub undecided: u64,
    /// Actions that failed.
    pub failed: u64,
    /// The duration of the search.
    pub elapsed: Duration,
    /// How the search ended.
    pub ending: Ending,
    /// The progress of the downloads.
    pub downloads: DownloadCounts,
    /// Statistics about requests.
    pub stats: Stats,
}

/// The progress of downloads.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DownloadCounts {
    /// Files to download.
    pub wanted: u64,
    /// Files downloaded, in one piece or resumed.
    pub saved: u64,
    /// Downloaded files that were resumed after an interruption, in this run or an earlier one.
    pub resumed: u64,
    /// Files that existed already.
    pub kept: u64,
    /// Files given up, each reported as unread.
    pub failed: u64,
    /// Files being downloaded.
    pub under_way: u64,
    /// Bytes written.
    pub bytes: u64,
}

impl DownloadCounts {
    /// Files that are complete on disk or given up.
    pub fn over(&self) -> u64 {
        self.saved + self.kept + self.failed
    }
}

/// The numbers that the next run continues, in addition to those saved with the host crawls.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Tally {
    pub(super) matched: u64,
    pub(super) undecided: u64,
    pub(super) failed: u64,
    pub(super) elapsed: Duration,
    pub(super) totals: Totals,
    pub(super) downloads: DownloadCounts,
}

impl Summary {
    /// Whether everything was read. A search that [quit](Ending::Quit) is not complete.
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Finished && self.counts.unread == 0
    }

    /// The mean over the elapsed time.
    pub fn requests_per_second(&self) -> u64 {
        let micros = self.elapsed.as_micros().max(1);
        let rate = u128::from(self.counts.requests) * 1_000_000 / micros;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ending {
    /// Nothing is left to do. In [`Event::Progress`](super::Event::Progress): the search is running.
    #[default]
    Finished,
    /// The expression ended it: `-quit`.
    Quit,
    /// The callback stopped it, or it could not start.
    Stopped,
}
