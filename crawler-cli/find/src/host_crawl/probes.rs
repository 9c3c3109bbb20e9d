//! What entries wait for before they can be decided: whether the server supports `HEAD`, the time zone of its listings,
//! and replies about files. Holds the listings that wait.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::task::Task;
use crate::expr::Memo;
use listing::range::{ListedTime, TimeRange};
use listing::{Directories, Entry, Shape};

/// The probes of a host, and the listings that wait for them.
#[derive(Debug)]
pub(super) struct Probes {
    /// Whether the server supports `HEAD`; true until a reply shows the contrary.
    heads: bool,
    clock: Clock,
    /// Replies that did not show the time zone.
    silent_replies: u32,
    /// Listings that wait for replies about their files.
    partial: VecDeque<PartialListing>,
    /// Files that wait for replies.
    undecided: usize,
}

/// A listing with the entries that are not handled yet.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PartialListing {
    pub(super) task: Task,
    pub(super) shape: Shape,
    /// How to request its directories.
    pub(super) directories: Directories,
    pub(super) entries: VecDeque<Entry>,
    /// The state of the expression for the first entry, if that entry waits for the time zone.
    #[serde(skip)]
    pub(super) memo: Option<Memo>,
    /// How many entries the journal has, if the listing is there.
    #[serde(skip)]
    pub(super) written: Option<usize>,
}

/// What is known about the time zone of the listings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Clock {
    /// Unknown, and not needed so far.
    Unknown,
    /// A request is in flight that will show it.
    Asked,
    /// The listings are this many seconds ahead of UTC.
    Ahead(i64),
    /// The server's replies do not show it.
    Silent,
}

impl Probes {
    /// The directories whose listings wait.
    pub(super) fn held(&self) -> impl Iterator<Item = &Task> {
        self.partial.iter().map(|listing| &listing.task)
    }

    pub(super) fn new() -> Self {
        Self {
            heads: true,
            clock: Clock::Unknown,
            silent_replies: 0,
            partial: VecDeque::new(),
            undecided: 0,
        }
    }
}

/// `HEAD`.
impl Probes {
    /// Whether `HEAD` may be used.
    pub(super) fn uses_head(&self) -> bool {
        self.heads
    }

    /// The server answered what this URL is. If only GET worked, `HEAD` is not used any more.
    pub(super) fn handle_answer(&mut self, task: &Task) {
        self.heads &= !task.by_get;
    }

    /// Takes over what an earlier run knew.
    pub(super) fn restore(&mut self, heads: bool, clock: Option<i64>) {
        self.heads = heads;
        self.clock = clock.map_or(Clock::Unknown, Clock::Ahead);
    }
}

/// The time zone of listings.
impl Probes {
    /// How many seconds the listings are ahead of UTC, if known.
    pub(super) fn ahead(&self) -> Option<i64> {
        match self.clock {
            Clock::Ahead(seconds) => Some(seconds),
            Clock::Unknown | Clock::Asked | Clock::Silent => None,
        }
    }

    /// The moments that a listed time can mean.
    pub(super) fn placed(&self, time: Option<ListedTime>) -> Option<TimeRange> {
        time.map(|time| time.range(self.ahead()))
    }

    /// Whether the time zone may still become known.
    pub(super) fn is_zone_open(&self) -> bool {
        matches!(self.clock, Clock::Unknown | Clock::Asked)
    }

    /// Whether a request is in flight that will show the time zone.
    pub(super) fn is_zone_asked(&self) -> bool {
        self.clock == Clock::Asked
    }

    /// A file is about to be requested whose reply shows the time zone.
    pub(super) fn ask_zone(&mut self) {
        if self.clock == Clock::Unknown {
            self.clock = Clock::Asked;
        }
    }

    /// A file with this time in a listing was modified at this time, by the server's reply.
    pub(super) fn learn_zone(&mut self, listed: ListedTime, modified: i64) {
        if self.ahead().is_none()
            && let Some(seconds) = ahead(listed, modified)
        {
            self.clock = Clock::Ahead(seconds);
        }
    }

    /// The reply that should show the time zone did not: the file was gone, or was changed just now. Another file may.
    fn handle_no_zone(&mut self) {
        if self.clock == Clock::Asked {
            self.silent_replies += 1;
            self.clock = match self.silent_replies < MOST_SILENT {
                true => Clock::Unknown,
                false => Clock::Silent,
            };
        }
    }

    /// No reply will show the time zone.
    pub(super) fn give_up_zone(&mut self) {
        if self.is_zone_open() {
            self.clock = Clock::Silent;
        }
    }
}

/// Files and listings that wait.
impl Probes {
    /// One more file waits for a reply.
    pub(super) fn add_undecided(&mut self) {
        self.undecided += 1;
    }

    /// A file was decided, or turned out to be a directory.
    pub(super) fn handle_decided(&mut self) {
        self.undecided = self.undecided.saturating_sub(1);
        self.handle_no_zone();
    }

    /// Whether more files may wait for a reply.
    pub(super) fn has_room(&self) -> bool {
        self.undecided < MOST_UNDECIDED
    }

    /// Whether so many listings wait that no further listings are requested.
    pub(super) fn is_clogged(&self) -> bool {
        self.partial.len() >= MOST_PARTIAL
    }

    /// Whether no listing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// Adds a listing that has to wait.
    pub(super) fn hold(&mut self, listing: PartialListing) {
        self.partial.push_back(listing);
    }

    /// The number of listings that wait.
    pub(super) fn waiting(&self) -> usize {
        self.partial.len()
    }

    /// Whether waiting listings can continue.
    pub(super) fn can_resume(&self) -> bool {
        !self.is_zone_asked() && self.undecided < MOST_UNDECIDED / 2
    }

    /// The next waiting listing that can continue.
    pub(super) fn take_resumable(&mut self) -> Option<PartialListing> {
        match self.can_resume() {
            true => self.partial.pop_front(),
            false => None,
        }
    }
}

/// How many seconds the listings are ahead of UTC, by the time of one file in both; a multiple of a quarter of an hour,
/// as time zones are. `None` if no time zone fits: then the file was modified between both replies.
fn ahead(listed: ListedTime, modified: i64) -> Option<i64> {
    let ahead = listed.seconds.checked_sub(modified)?;
    let zone = (ahead + QUARTER / 2).div_euclid(QUARTER) * QUARTER;
    let fits = (0..i64::from(listed.span.max(1))).contains(&(modified + zone - listed.seconds));
    (fits && (-12 * HOUR..=14 * HOUR).contains(&zone)).then_some(zone)
}

const HOUR: i64 = 60 * 60;
const QUARTER: i64 = 15 * 60;

/// After so many replies that do not show the time zone, none is expected to.
const MOST_SILENT: u32 = 3;

/// The largest number of files that wait before no further entries are handled.
const MOST_UNDECIDED: usize = 4096;

/// The largest number of listings that wait. Each may be as large as a page.
pub(super) const MOST_PARTIAL: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_quarters_of_an_hour() {
        let listed = |seconds, span| ListedTime {
            seconds,
            span,
            utc: false,
        };
        for (time, modified, expected) in [
            (listed(3600, 60), 0, Some(3600)),
            (listed(3600, 60), 59, Some(3600)),
            (listed(3600, 60), 60, None),
            (listed(0, 60), 3600, Some(-3600)),
            (listed(20_700, 1), 0, Some(20_700)),
            (listed(20_701, 1), 0, None),
            (listed(60, 60), 61, Some(0)),
            (listed(15 * 3600, 60), 0, None),
        ] {
            assert_eq!(ahead(time, modified), expected, "{time:?} {modified}");
        }
    }

    /// The trap: a file whose reply does not show the time zone keeps the others waiting for ever.
    #[test]
    fn a_zone_that_is_not_told_is_waited_for_no_longer() {
        let mut probes = Probes::new();
        assert!(probes.is_zone_open());
        for _ in 0..MOST_SILENT {
            assert!(probes.is_zone_open());
            probes.ask_zone();
            probes.add_undecided();
            assert!(probes.is_zone_asked() && !probes.can_resume());
            probes.handle_decided();
            assert!(!probes.is_zone_asked() && probes.can_resume());
        }
        assert!(!probes.is_zone_open());
        probes.ask_zone();
        assert!(!probes.is_zone_asked());
    }

    #[test]
    fn head_is_not_used_once_only_get_has_told() {
        let mut probes = Probes::new();
        let mut task = Task::new("/x".to_owned(), super::super::task::TaskKind::File, 0, 1);
        probes.handle_answer(&task);
        assert!(probes.uses_head());
        task.by_get = true;
        probes.handle_answer(&task);
        assert!(!probes.uses_head());
    }
}
