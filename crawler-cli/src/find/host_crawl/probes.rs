//! What has to be known before entries can be decided: whether the server answers `HEAD`, what time zone its listings are
//! in, and which listings wait for answers about their files.

use std::collections::VecDeque;
use std::vec;

use super::messages::FetchKind;
use super::task::Task;
use crate::find::expr::Memo;
use crate::find::listing::{Directories, Entry, Shape};
use crate::find::range::{ListedTime, TimeRange};

/// The probes of a host, and what waits for them.
#[derive(Debug)]
pub(super) struct Probes {
    /// Whether the server answers `HEAD` as it does `GET`, as far as that is known.
    heads: bool,
    /// It has answered a `HEAD` request well.
    heads_proven: bool,
    clock: Clock,
    /// Listings that wait for answers about their files.
    partial: VecDeque<PartialListing>,
    /// Files that wait for answers.
    undecided: usize,
}

/// A listing that was read, with the entries that were not looked at yet.
#[derive(Debug)]
pub(super) struct PartialListing {
    pub(super) task: Task,
    pub(super) shape: Shape,
    /// How its directories are asked for.
    pub(super) directories: Directories,
    pub(super) entries: vec::IntoIter<Entry>,
    /// As many as there were in the journal.
    pub(super) entries_len: usize,
    pub(super) is_written: bool,
    /// The entry before them, which waits for the time zone, and how far the expression has come with it.
    pub(super) first: Option<(Entry, Memo)>,
}

/// What is known about the clock of a server's listings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Clock {
    /// Nothing, and nobody wanted to know.
    Unknown,
    /// A request is under way that will tell.
    Asked,
    /// It is so many seconds ahead of UTC.
    Ahead(i64),
    /// The server does not tell.
    Silent,
}

impl Probes {
    pub(super) fn new() -> Self {
        Self {
            heads: true,
            heads_proven: false,
            clock: Clock::Unknown,
            partial: VecDeque::new(),
            undecided: 0,
        }
    }
}

/// `HEAD`.
impl Probes {
    /// Whether the server can be trusted with `HEAD`.
    pub(super) fn uses_head(&self) -> bool {
        self.heads
    }

    /// Whether the server has answered a `HEAD` request well, so that its refusals of others are believed.
    pub(super) fn trusts_refusals(&self) -> bool {
        self.heads_proven
    }

    /// The server has told what this URL is. A server of which `HEAD` cannot be had is asked no more of them.
    pub(super) fn handle_answer(&mut self, task: &Task, fetch: FetchKind) {
        self.heads &= !task.by_get;
        self.note_head(fetch);
    }

    /// The request was answered well, if it was one of `HEAD`.
    pub(super) fn note_head(&mut self, fetch: FetchKind) {
        self.heads_proven |= fetch == FetchKind::Probe;
    }

    /// What the next run is to know.
    pub(super) fn restore(&mut self, heads: bool, clock: Option<i64>) {
        self.heads = heads;
        self.clock = clock.map_or(Clock::Unknown, Clock::Ahead);
    }
}

/// The time zone of listings.
impl Probes {
    /// How many seconds it is ahead of UTC.
    pub(super) fn ahead(&self) -> Option<i64> {
        match self.clock {
            Clock::Ahead(seconds) => Some(seconds),
            Clock::Unknown | Clock::Asked | Clock::Silent => None,
        }
    }

    /// The moments that a listed time can stand for.
    pub(super) fn placed(&self, time: Option<ListedTime>) -> Option<TimeRange> {
        time.map(|time| time.range(self.ahead()))
    }

    /// Whether the zone may still become known.
    pub(super) fn is_zone_open(&self) -> bool {
        matches!(self.clock, Clock::Unknown | Clock::Asked)
    }

    /// Whether a request is under way that will tell the zone.
    pub(super) fn is_zone_asked(&self) -> bool {
        self.clock == Clock::Asked
    }

    /// A file is about to be asked about whose answer tells the zone.
    pub(super) fn ask_zone(&mut self) {
        if self.clock == Clock::Unknown {
            self.clock = Clock::Asked;
        }
    }

    /// The server has told when a file was changed that a listing shows with this time.
    pub(super) fn learn_zone(&mut self, listed: ListedTime, modified: i64) {
        if self.ahead().is_none() {
            self.clock = ahead(listed, modified).map_or(Clock::Silent, Clock::Ahead);
        }
    }

    /// An answer that was to tell the zone did not.
    pub(super) fn handle_no_zone(&mut self) {
        if self.clock == Clock::Asked {
            self.clock = Clock::Silent;
        }
    }
}

/// Files and listings that wait.
impl Probes {
    /// The server is asked about one more file.
    pub(super) fn add_undecided(&mut self) {
        self.undecided += 1;
    }

    /// A file is decided, or is none.
    pub(super) fn handle_decided(&mut self) {
        self.undecided = self.undecided.saturating_sub(1);
        self.handle_no_zone();
    }

    /// Whether more files may wait for an answer.
    pub(super) fn has_room(&self) -> bool {
        self.undecided < MOST_UNDECIDED
    }

    /// Whether so many listings wait for answers about their files that no more are asked for.
    pub(super) fn is_clogged(&self) -> bool {
        self.partial.len() >= MOST_PARTIAL
    }

    /// Whether no listing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// A listing has to wait.
    pub(super) fn hold(&mut self, listing: PartialListing) {
        self.partial.push_back(listing);
    }

    /// How many listings wait.
    pub(super) fn waiting(&self) -> usize {
        self.partial.len()
    }

    /// Whether listings that wait can go on.
    pub(super) fn can_resume(&self) -> bool {
        !self.is_zone_asked() && self.undecided < MOST_UNDECIDED / 2
    }

    /// A listing that can go on, if one waits.
    pub(super) fn take_resumable(&mut self) -> Option<PartialListing> {
        match self.can_resume() {
            true => self.partial.pop_front(),
            false => None,
        }
    }
}

/// What the clock of a listing is ahead of UTC, by a file's time in both: a quarter of an hour more or less, as zones
/// are. `None` if that cannot be: then the file has changed meanwhile.
fn ahead(listed: ListedTime, modified: i64) -> Option<i64> {
    let ahead = listed.seconds.checked_sub(modified)?;
    let zone = (ahead + QUARTER / 2).div_euclid(QUARTER) * QUARTER;
    let fits = (0..i64::from(listed.span.max(1))).contains(&(modified + zone - listed.seconds));
    (fits && (-12 * HOUR..=14 * HOUR).contains(&zone)).then_some(zone)
}

const HOUR: i64 = 60 * 60;
const QUARTER: i64 = 15 * 60;

/// Files that may wait for an answer before no more listings are looked at.
const MOST_UNDECIDED: usize = 4096;

/// Listings that may wait for answers about their files. Each may be as large as a page.
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

    /// The trap: a file that nothing is told of keeps the others waiting for good.
    #[test]
    fn a_zone_that_is_not_told_is_waited_for_no_longer() {
        let mut probes = Probes::new();
        assert!(probes.is_zone_open());
        probes.ask_zone();
        probes.add_undecided();
        assert!(probes.is_zone_asked() && !probes.can_resume());
        probes.handle_decided();
        assert!(!probes.is_zone_open() && probes.can_resume());
        probes.ask_zone();
        assert!(!probes.is_zone_asked());
    }

    #[test]
    fn head_is_not_used_once_only_get_has_told() {
        let mut probes = Probes::new();
        let mut task = Task::new("/x".to_owned(), super::super::task::TaskKind::File, 0, 1);
        probes.handle_answer(&task, FetchKind::Probe);
        assert!(probes.uses_head() && probes.trusts_refusals());
        task.by_get = true;
        probes.handle_answer(&task, FetchKind::First);
        assert!(!probes.uses_head());
    }
}
