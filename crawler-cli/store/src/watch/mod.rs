//! What a store can do for URLs that are watched for years.
//!
//! - A *set* names URLs that are to be watched: [`submit`](WatchStore::submit), or the source of the set, says which. A URL
//!   may be in several sets. A URL in no set is not asked; its history is kept until [`expire`](WatchStore::expire).
//! - A *due row* says when a URL is to be asked, in a [`Lane`] of its host. A URL that is in a set has one due row, unless a
//!   judgement said that it waits for an operator. Reading due rows writes nothing.
//! - [`judge`](WatchStore::judge) removes exactly the due row that the URL was asked for, and stores the answer, the life,
//!   the changes of state and the next due row, in one transaction. To judge again for the same row changes nothing.
//! - Changes of state are read by [`Store::events`](super::Store::events): their cursors are unique, and a reader that keeps
//!   the last one misses none.
//!
//! What may concern many URLs is done in pieces ([`Piece`]), so that other work of the store goes on.

mod detail;
mod due;
mod guard;
mod set;

use std::collections::HashSet;
use std::ops::ControlFlow;

use jiff::Timestamp;

pub use detail::{HostDetail, UrlDetail, WatchCounts, WatchedUrl};
pub use due::{Amendment, Completion, DueId, DueUrl, Judgement, Lane, Lanes, Ready, aligned};
pub use guard::{Cycle, CycleCounts, CycleId, Guarded, HoldEnd, HostHold, Notice, NoticeId};
pub use set::{
    Accepted, NewUrl, Origin, Piece, Reading, Refused, SetInfo, Submitted, Swept, Which,
};

use super::{Cursor, Event, HostId, StoreError, UrlId};
use verdict::guard::Stops;
use verdict::life::State;

/// What an engine that keeps watched URLs can do. The module has the words.
///
/// The times that are stored are those of the caller, to the millisecond.
pub trait WatchStore: Send {
    /// All sets, in the order in which they were made.
    ///
    /// # Errors
    /// The store cannot be read.
    fn sets(&mut self) -> Result<Vec<SetInfo>, StoreError>;

    /// Makes URLs members of a set, which is made if there is none. New URLs are due at once.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn submit(
        &mut self,
        set: &str,
        origin: Origin,
        urls: &[NewUrl],
        now: Timestamp,
    ) -> Result<Submitted, StoreError>;

    /// Begins to read the source of a set. What the source had before stays until the reading ends.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn begin_reading(&mut self, set: &str, now: Timestamp) -> Result<Reading, StoreError>;

    /// Adds URLs that the source has. URLs of a reading that was overtaken by a later one are members, too, until the
    /// later one ends.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn read_urls(
        &mut self,
        reading: &Reading,
        urls: &[NewUrl],
        now: Timestamp,
    ) -> Result<Submitted, StoreError>;

    /// Ends a reading that has reached the end of the source. `mark` is kept for [`SetInfo::mark`]. Refuses to lose more
    /// than the share `most_lost` of the members that the source had. A reading that failed is not ended.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn end_reading(
        &mut self,
        reading: Reading,
        mark: &str,
        now: Timestamp,
        most_lost: f64,
    ) -> Result<Swept, StoreError>;

    /// Believes the last reading of a set although it was [refused](Swept::Refused).
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn accept(&mut self, set: &str, now: Timestamp) -> Result<Accepted, StoreError>;

    /// Removes members that the sources of their sets do not have any more. Looks at up to `limit` members. Returns whether
    /// there are more to look at.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn sweep(&mut self, now: Timestamp, limit: usize) -> Result<bool, StoreError>;

    /// Removes URLs from a set, or from all sets. A URL in no set is not asked any more. Looks at up to `limit` URLs after
    /// `after`; at all of [`Which::Urls`].
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn withdraw(
        &mut self,
        set: Option<&str>,
        which: &Which,
        now: Timestamp,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Piece, StoreError>;

    /// Up to `limit` hosts with a row in these lanes that is due, those that have waited longest first. Hosts in `except`
    /// are left out. Changes nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    fn ready(
        &mut self,
        lanes: Lanes,
        now: Timestamp,
        except: &HashSet<HostId>,
        limit: usize,
    ) -> Result<Vec<Ready>, StoreError>;

    /// Up to `limit` rows of a lane after `after` that are due until `until`, earliest first. Changes nothing: a row stays
    /// until it is judged.
    ///
    /// # Errors
    /// The store cannot be read.
    fn due(
        &mut self,
        host: HostId,
        lane: Lane,
        after: Option<(Timestamp, UrlId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueUrl>, StoreError>;

    /// When the next row of these lanes is due, of any host; may be in the past.
    ///
    /// # Errors
    /// The store cannot be read.
    fn next_due(&mut self, lanes: Lanes) -> Result<Option<Timestamp>, StoreError>;

    /// How many rows of these lanes were due before this time. Counts up to `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn overdue(&mut self, lanes: Lanes, before: Timestamp, limit: u64) -> Result<u64, StoreError>;

    /// Stores judgements.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn judge(&mut self, judgements: &[Judgement]) -> Result<Completion, StoreError>;

    /// Stores changes of lives without answers.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn amend(&mut self, amendments: &[Amendment]) -> Result<Completion, StoreError>;

    /// Makes URLs due at this time, if they are in a set, not held, and would be due later or not at all. Looks at up to
    /// `limit` URLs after `after`; at all of [`Which::Urls`].
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn make_due(
        &mut self,
        which: &Which,
        at: Timestamp,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Piece, StoreError>;

    /// Makes URLs due now that were asked or submitted later than now: a clock was ahead. Held URLs stay as they are. Looks at
    /// up to `limit` URLs after `after`.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn bring_forward(
        &mut self,
        now: Timestamp,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Piece, StoreError>;

    /// Up to `limit` URLs of a host that are alive, those first that are due last. Looks at a bounded number of URLs.
    ///
    /// # Errors
    /// The store cannot be read.
    fn alive_siblings(
        &mut self,
        host: HostId,
        except: &HashSet<UrlId>,
        limit: usize,
    ) -> Result<Vec<DueUrl>, StoreError>;

    /// All holds.
    ///
    /// # Errors
    /// The store cannot be read.
    fn holds(&mut self) -> Result<Vec<HostHold>, StoreError>;

    /// Stores the hold of a host, or replaces it.
    ///
    /// # Errors
    /// The store cannot be written.
    fn save_hold(&mut self, hold: &HostHold) -> Result<(), StoreError>;

    /// Removes the hold of a host: none of its URLs is held any more.
    ///
    /// # Errors
    /// The store cannot be written.
    fn end_hold(&mut self, host: HostId) -> Result<(), StoreError>;

    /// The times in which a guard was on.
    ///
    /// # Errors
    /// The store cannot be read.
    fn stops(&mut self, whose: Guarded) -> Result<Stops, StoreError>;

    /// Replaces the times in which a guard was on.
    ///
    /// # Errors
    /// The store cannot be written.
    fn save_stops(&mut self, whose: Guarded, stops: &Stops) -> Result<(), StoreError>;

    /// Begins a cycle of reconciling. The last [`CYCLES`] are kept.
    ///
    /// # Errors
    /// The store cannot be written.
    fn begin_cycle(&mut self, now: Timestamp) -> Result<CycleId, StoreError>;

    /// Ends a cycle of reconciling.
    ///
    /// # Errors
    /// The store cannot be written.
    fn end_cycle(
        &mut self,
        cycle: CycleId,
        counts: &CycleCounts,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// The last cycles, the last one first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn cycles(&mut self, limit: usize) -> Result<Vec<Cycle>, StoreError>;

    /// Keeps a notice. The last [`NOTICES`] are kept.
    ///
    /// # Errors
    /// The store cannot be written.
    fn note(&mut self, notice: &Notice) -> Result<NoticeId, StoreError>;

    /// Up to `limit` notices after `after`, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn notices(
        &mut self,
        after: NoticeId,
        limit: usize,
    ) -> Result<Vec<(NoticeId, Notice)>, StoreError>;

    /// Everything about a URL; `None` if it was never watched. A fragment is ignored.
    ///
    /// # Errors
    /// The store cannot be read.
    fn show(&mut self, url: &str) -> Result<Option<UrlDetail>, StoreError>;

    /// A host with watched URLs, by the URL of its root; `None` if there is no such host.
    ///
    /// # Errors
    /// The store cannot be read.
    fn host(&mut self, root: &str) -> Result<Option<HostDetail>, StoreError>;

    /// The URL of the root of a host; `None` if there is no such host.
    ///
    /// # Errors
    /// The store cannot be read.
    fn root_of(&mut self, host: HostId) -> Result<Option<String>, StoreError>;

    /// Reads the watched URLs that are meant, after this one, in the order of their numbers; those in no set any more, too,
    /// unless a set is meant.
    ///
    /// # Errors
    /// The store cannot be read.
    fn export(
        &mut self,
        which: &Which,
        after: Option<UrlId>,
        visit: &mut dyn FnMut(WatchedUrl) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Up to `limit` URLs in sets that are in this state, which is neither new nor alive, in the order of their numbers.
    ///
    /// # Errors
    /// The store cannot be read.
    fn in_trouble(&mut self, state: State, limit: usize) -> Result<Vec<WatchedUrl>, StoreError>;

    /// Up to `limit` notices before `before`, latest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn notices_before(
        &mut self,
        before: NoticeId,
        limit: usize,
    ) -> Result<Vec<(NoticeId, Notice)>, StoreError>;

    /// Up to `limit` changes of state before `before`, latest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn events_before(&mut self, before: Cursor, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// When URLs were pruned since `since`, and their hosts: the last `limit`, oldest first. After a jump of the clock, what
    /// was pruned before the jump may be missing.
    ///
    /// # Errors
    /// The store cannot be read.
    fn pruned(
        &mut self,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, HostId)>, StoreError>;

    /// Counts the watched URLs. The cost does not depend on their number.
    ///
    /// # Errors
    /// The store cannot be read.
    fn watch_counts(&mut self) -> Result<WatchCounts, StoreError>;

    /// Forgets up to `limit` URLs that have been in no set since before this time, with their changes of state. Returns
    /// how many were forgotten; fewer than `limit` if none is left.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn expire(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// How many cycles of reconciling are kept: those of three days, if there is one each 30 seconds.
pub const CYCLES: i64 = 10_000;

/// How many notices are kept.
pub const NOTICES: i64 = 100_000;
