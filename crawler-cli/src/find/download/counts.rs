//! The progress of downloads, in numbers.

use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::find::host_crawl::Counts;

/// The progress that the next run continues.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(in crate::find) struct Tally {
    pub(super) counts: DownloadCounts,
    pub(super) requests: u64,
    pub(super) retries: u64,
}

impl Tally {
    /// Takes back that files have failed: they are asked for again. Returns whether there were any.
    pub(in crate::find) fn retry(&mut self) -> bool {
        std::mem::take(&mut self.counts.failed) > 0
    }

    /// Files and bytes.
    pub(in crate::find) fn counts(&self) -> DownloadCounts {
        self.counts
    }

    /// The requests for them.
    pub(in crate::find) fn requests(&self) -> Counts {
        Counts {
            requests: self.requests,
            retries: self.retries,
            unread: self.counts.failed,
            ..Counts::default()
        }
    }
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
    /// Bytes to come, as far as the listing or the head of a response shows them; may be an estimate.
    pub left: u64,
    /// Files to come whose size is not known yet.
    pub unsized_left: u64,
    /// Files of a mirror that were deleted, because they are gone on the server.
    #[serde(default)]
    pub deleted: u64,
    /// Files of a mirror that are gone on the server and were not deleted.
    #[serde(default)]
    pub not_deleted: u64,
}

impl DownloadCounts {
    /// Files that are complete on disk or given up.
    pub fn over(&self) -> u64 {
        self.saved + self.kept + self.failed
    }

    pub(super) fn add_left(&mut self, left: Option<u64>) {
        match left {
            Some(bytes) => self.left = self.left.saturating_add(bytes),
            None => self.unsized_left += 1,
        }
    }

    pub(super) fn take_left(&mut self, left: Option<u64>) {
        match left {
            Some(bytes) => self.left = self.left.saturating_sub(bytes),
            None => self.unsized_left = self.unsized_left.saturating_sub(1),
        }
    }
}

impl Add for DownloadCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wanted: self.wanted + other.wanted,
            saved: self.saved + other.saved,
            resumed: self.resumed + other.resumed,
            kept: self.kept + other.kept,
            failed: self.failed + other.failed,
            under_way: self.under_way + other.under_way,
            bytes: self.bytes + other.bytes,
            left: self.left.saturating_add(other.left),
            unsized_left: self.unsized_left + other.unsized_left,
            deleted: self.deleted + other.deleted,
            not_deleted: self.not_deleted + other.not_deleted,
        }
    }
}
