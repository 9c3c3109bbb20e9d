//! URLs that are watched for years: [`WatchStore`] in SQLite.

mod batch;
mod bytes;
pub(crate) mod guards;
mod lanes;
mod members;
mod pieces;
pub(crate) mod read;
mod rows;
mod sets;
mod tally;

use std::collections::HashSet;
use std::ops::ControlFlow;

use jiff::Timestamp;

use super::failure::Failure;
use super::memory::Memory;
use super::{Database, Durability, read as read_events};
use crate::sql::Connection;
use crate::{
    Accepted, Amendment, Completion, Cursor, Cycle, CycleCounts, CycleId, DueUrl, Event, Guarded,
    HostDetail, HostHold, HostId, Judgement, Lane, Lanes, NewUrl, Notice, NoticeId, Origin, Piece,
    Reading, Ready, SetInfo, StoreError, Submitted, Swept, UrlDetail, UrlId, WatchCounts,
    WatchStore, WatchedUrl, Which,
};
use verdict::guard::Stops;
use verdict::life::State;

pub(crate) use bytes::Watched;
pub(super) use members::Finder;
pub(super) use sets::is_gone;
pub(crate) use tally::PRIVATE;
pub(super) use tally::Tally;

impl Database {
    /// Writes the rows of hosts that changes of a group have left for its end, so that they can be read.
    fn settle_hosts(&mut self) -> Result<(), StoreError> {
        if !self.memory.tally.has_changed_hosts() {
            return Ok(());
        }
        self.change(Durability::Lazy, |db, memory| memory.tally.save_hosts(db))
    }
}

/// Makes URLs that are in a set due at this time, all in one piece.
pub(super) fn make_due(
    db: &Connection,
    memory: &mut Memory,
    which: &Which,
    at: Timestamp,
) -> Result<(), Failure> {
    pieces::make_due(db, memory, which, at, (None, usize::MAX)).map(|_| ())
}

impl WatchStore for Database {
    fn sets(&mut self) -> Result<Vec<SetInfo>, StoreError> {
        self.read(sets::sets(&self.db))
    }

    fn submit(
        &mut self,
        set: &str,
        origin: Origin,
        urls: &[NewUrl],
        now: Timestamp,
    ) -> Result<Submitted, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            members::submit(db, memory, set, origin, urls, now)
        })
    }

    fn begin_reading(&mut self, set: &str, _now: Timestamp) -> Result<Reading, StoreError> {
        self.change(Durability::Synced, |db, _| sets::begin_reading(db, set))
    }

    fn read_urls(
        &mut self,
        reading: &Reading,
        urls: &[NewUrl],
        now: Timestamp,
    ) -> Result<Submitted, StoreError> {
        self.change(Durability::Lazy, |db, memory| {
            members::read(db, memory, reading, urls, now)
        })
    }

    fn end_reading(
        &mut self,
        reading: Reading,
        mark: &str,
        now: Timestamp,
        most_lost: f64,
    ) -> Result<Swept, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            // A store of many URLs is opened at once if all keys are in the table.
            memory.keys.flush_all(db, memory.next.url - 1)?;
            sets::end_reading(db, &reading, mark, now, most_lost)
        })
    }

    fn accept(&mut self, set: &str, now: Timestamp) -> Result<Accepted, StoreError> {
        self.change(Durability::Synced, |db, _| sets::accept(db, set, now))
    }

    fn sweep(&mut self, now: Timestamp, limit: usize) -> Result<bool, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            members::sweep(db, memory, now, limit)
        })
    }

    fn withdraw(
        &mut self,
        set: Option<&str>,
        which: &Which,
        now: Timestamp,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Piece, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            pieces::withdraw(db, memory, set, which, now, (after, limit))
        })
    }

    fn ready(
        &mut self,
        lanes: Lanes,
        now: Timestamp,
        except: &HashSet<HostId>,
        limit: usize,
    ) -> Result<Vec<Ready>, StoreError> {
        self.settle_hosts()?;
        let claimed = self.as_member(|db, member| member.claim(db, lanes, now, except, limit))?;
        if let Some(claimed) = claimed {
            return Ok(claimed);
        }
        self.read(lanes::ready(&self.db, lanes, now, except, limit))
    }

    fn due(
        &mut self,
        host: HostId,
        lane: Lane,
        after: Option<(Timestamp, UrlId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueUrl>, StoreError> {
        self.read(lanes::due(&self.db, host, lane, after, until, limit))
    }

    fn next_due(&mut self, lanes: Lanes) -> Result<Option<Timestamp>, StoreError> {
        self.settle_hosts()?;
        self.read(lanes::next_due(&self.db, lanes))
    }

    fn overdue(&mut self, lanes: Lanes, before: Timestamp, limit: u64) -> Result<u64, StoreError> {
        self.settle_hosts()?;
        self.read(lanes::overdue(&self.db, lanes, before, limit))
    }

    fn judge(&mut self, judgements: &[Judgement]) -> Result<Completion, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            lanes::judge(db, memory, judgements)
        })
    }

    fn amend(&mut self, amendments: &[Amendment]) -> Result<Completion, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            lanes::amend(db, memory, amendments)
        })
    }

    fn make_due(
        &mut self,
        which: &Which,
        at: Timestamp,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Piece, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            pieces::make_due(db, memory, which, at, (after, limit))
        })
    }

    fn bring_forward(
        &mut self,
        now: Timestamp,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Piece, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            pieces::bring_forward(db, memory, now, (after, limit))
        })
    }

    fn alive_siblings(
        &mut self,
        host: HostId,
        except: &HashSet<UrlId>,
        limit: usize,
    ) -> Result<Vec<DueUrl>, StoreError> {
        self.read(lanes::alive_siblings(&self.db, host, except, limit))
    }

    fn holds(&mut self) -> Result<Vec<HostHold>, StoreError> {
        self.settle_hosts()?;
        self.read(guards::holds(&self.db))
    }

    fn save_hold(&mut self, hold: &HostHold) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, _| guards::save_hold(db, hold))
    }

    fn end_hold(&mut self, host: HostId) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, _| guards::end_hold(db, host))
    }

    fn stops(&mut self, whose: Guarded) -> Result<Stops, StoreError> {
        let worker = self.memory.worker();
        self.read(guards::stops(&self.db, whose, worker))
    }

    fn save_stops(&mut self, whose: Guarded, stops: &Stops) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, memory| {
            guards::save_stops(db, whose, memory.worker(), stops)
        })
    }

    fn begin_cycle(&mut self, now: Timestamp) -> Result<CycleId, StoreError> {
        self.change(Durability::Lazy, |db, _| guards::begin_cycle(db, now))
    }

    fn end_cycle(
        &mut self,
        cycle: CycleId,
        counts: &CycleCounts,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.change(Durability::Lazy, |db, _| {
            guards::end_cycle(db, cycle, counts, now)
        })
    }

    fn cycles(&mut self, limit: usize) -> Result<Vec<Cycle>, StoreError> {
        self.read(guards::cycles(&self.db, limit))
    }

    fn note(&mut self, notice: &Notice) -> Result<NoticeId, StoreError> {
        self.change(Durability::Synced, |db, _| guards::note(db, notice))
    }

    fn notices(
        &mut self,
        after: NoticeId,
        limit: usize,
    ) -> Result<Vec<(NoticeId, Notice)>, StoreError> {
        self.read(guards::notices(&self.db, after, limit))
    }

    fn show(&mut self, url: &str) -> Result<Option<UrlDetail>, StoreError> {
        self.recall()?;
        self.read(read::show(&self.db, &self.memory, url))
    }

    fn host(&mut self, root: &str) -> Result<Option<HostDetail>, StoreError> {
        self.settle_hosts()?;
        self.read(read::host(&self.db, root))
    }

    fn export(
        &mut self,
        which: &Which,
        after: Option<UrlId>,
        visit: &mut dyn FnMut(WatchedUrl) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.recall()?;
        self.read(read::export(&self.db, &self.memory, which, after, visit))
    }

    fn root_of(&mut self, host: HostId) -> Result<Option<String>, StoreError> {
        self.read(read::root_of(&self.db, host))
    }

    fn in_trouble(&mut self, state: State, limit: usize) -> Result<Vec<WatchedUrl>, StoreError> {
        self.read(read::in_trouble(&self.db, state, limit))
    }

    fn notices_before(
        &mut self,
        before: NoticeId,
        limit: usize,
    ) -> Result<Vec<(NoticeId, Notice)>, StoreError> {
        self.read(guards::notices_before(&self.db, before, limit))
    }

    fn events_before(&mut self, before: Cursor, limit: usize) -> Result<Vec<Event>, StoreError> {
        let query = read_events::events_before();
        self.read(read_events::some_events(&self.db, &query, before, limit))
    }

    fn pruned(
        &mut self,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, HostId)>, StoreError> {
        self.read(read_events::pruned(&self.db, since, limit))
    }

    fn watch_counts(&mut self) -> Result<WatchCounts, StoreError> {
        self.settle_hosts()?;
        self.recall()?;
        Ok(self.memory.tally.counts())
    }

    fn expire(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            pieces::expire(db, memory, before, limit)
        })
    }
}
