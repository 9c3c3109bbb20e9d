//! The tables of a store, in SQLite or PostgreSQL: what both have in common, which is nearly everything.
//!
//! [`Database`] is the engine. `store/sqlite` opens files, and `store/postgres` connects to servers.

pub(super) mod codec;
pub(super) mod failure;
mod filter;
mod fleet;
mod group;
pub(super) mod jobs;
pub(super) mod keys;
mod late;
mod memory;
mod pauses;
pub(super) mod read;
mod rejects;
pub(super) mod watch;
mod write;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::sql::Connection;
use super::{
    Added, Completed, Counts, Cursor, EntryId, Event, Host, HostFacts, HostId, Link, LinkId,
    Queued, Record, Run, Selection, Store, StoreError, UrlHistory, UrlId,
};
use failure::Failure;
use group::Group;
pub(super) use memory::Memory;
use plain::file_lock::FileLock;
pub use rejects::RejectedFigures;

/// A store in a database: a file of SQLite, a temporary one, or PostgreSQL.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use verdict::{Reference, Verdict};
/// use store::Database;
/// use verdict::Answer;
/// use store::{Completed, Demand, EntryId, Link, LinkId, Selection, Store, Target};
/// use jiff::Timestamp;
/// use url::Url;
///
/// let mut store = Database::temporary()?;
/// store.begin_run("one page", Timestamp::UNIX_EPOCH)?;
/// let url = Url::parse("https://example.com/page")?;
/// let link = Link {
///     spelling: url.as_str().into(),
///     target: Target::Ask(url, Demand::default()),
///     reference: Reference { source: "urls.txt".into(), line: Some(1), column: Some(1), written: None, text: String::new() },
///     is_in_page: false,
/// };
/// let added = store.add(&[link])?;
/// let host = &added.new_hosts[0];
/// assert_eq!(host.root, "https://example.com/");
///
/// let queued = store.take(host.id, EntryId::START, 10)?;
/// let completed: Vec<Completed> = queued
///     .into_iter()
///     .map(|queued| Completed::new(&queued, Answer::of(Verdict::Ok)))
///     .collect();
/// store.complete(&completed)?;
///
/// let mut urls = Vec::new();
/// store.records(LinkId::START, Selection::Judged, &mut |record| {
///     urls.push(record.spelling);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(urls, ["https://example.com/page"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Database {
    /// What errors name: the file, or the address of the server. Empty for a temporary database.
    name: PathBuf,
    pub(super) db: Connection,
    pub(super) memory: Memory,
    /// The number of the run; 0 before the first one.
    run: i64,
    /// How durable the next transaction is.
    durability: Durability,
    /// The changes that are one transaction.
    group: Group,
    /// Whether a change failed and could not be undone.
    is_broken: bool,
    /// Which changes of others the memory has seen; `None` if there are no others.
    seen: Option<i64>,
    is_read_only: bool,
    /// After `db`: the lock ends when the database is closed.
    _lock: Option<FileLock>,
}

/// How durable a transaction is when it was committed. In any case it is complete or not there at all, and kept if the
/// process is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Durability {
    /// A power failure may take it back: links of sources, which are read again when the run goes on.
    Lazy,
    /// It is on the disk.
    Synced,
}

impl Database {
    /// A store whose tables are there. `seen`: see the field.
    pub(super) fn new(name: &Path, db: Connection, memory: Memory, seen: Option<i64>) -> Self {
        Self {
            name: name.to_owned(),
            db,
            memory,
            run: 0,
            durability: Durability::Synced,
            group: Group::None,
            is_broken: false,
            seen,
            is_read_only: false,
            _lock: None,
        }
    }

    /// Keeps a lock as long as the store is open.
    pub(super) fn with_lock(self, lock: FileLock) -> Self {
        Self {
            _lock: Some(lock),
            ..self
        }
    }

    /// Refuses changes.
    pub(super) fn read_only(self) -> Self {
        Self {
            is_read_only: true,
            ..self
        }
    }

    /// Goes on to what others have stored since, if the store was opened for reading. The cost does not depend on the number
    /// of its URLs.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        if self.seen.is_none() {
            return Ok(());
        }
        self.begin_moment()?;
        self.end_moment();
        Ok(())
    }

    /// What is read from now on is of one moment, which is now, until [`end_moment`](Self::end_moment). For stores that were
    /// opened for reading.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn begin_moment(&mut self) -> Result<(), StoreError> {
        // A reading that a panic has cut off.
        self.end_moment();
        let reconnected = self.db.reconnect().map_err(Failure::from);
        self.read(reconnected)?;
        let begun = self.db.begin_moment().map_err(Failure::from);
        let begun = begun.and_then(|()| self.catch_up());
        if begun.is_err() {
            self.end_moment();
        }
        self.read(begun)
    }

    /// Lets go of the moment.
    pub fn end_moment(&mut self) {
        if !self.db.is_autocommit() {
            // Nothing was changed; what is wrong with the file, the next reading tells.
            let _ = self.db.rollback();
        }
    }

    fn catch_up(&mut self) -> Result<(), Failure> {
        if self.seen.is_none() {
            return Ok(());
        }
        let stored = self.db.changes()?;
        if self.seen != Some(stored) {
            self.memory.catch_up(&self.db)?;
            self.seen = Some(stored);
        }
        Ok(())
    }

    /// Before what is in memory is read: goes on to what others have stored. In a transaction that changes the store, there
    /// are no others; a reader goes on when a moment begins.
    fn recall(&mut self) -> Result<(), StoreError> {
        if self.is_read_only || self.group == Group::Begun {
            return Ok(());
        }
        let caught_up = self.catch_up();
        self.read(caught_up)
    }

    /// How many bytes the tables take in a server.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn size(&mut self) -> Result<u64, StoreError> {
        let size = "SELECT pg_database_size(current_database())";
        let size = self.db.query_row(size, [], |row| row.get(0));
        self.read(size.map(codec::count).map_err(Failure::from))
    }

    /// What the rejected-URL filter has answered: keep it before the store is given away.
    pub fn rejected_figures(&self) -> Arc<RejectedFigures> {
        self.memory.rejects.figures()
    }

    /// Changes the store in one transaction, or in that of the group.
    fn change<T>(
        &mut self,
        durability: Durability,
        change: impl FnOnce(&Connection, &mut Memory) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if self.group != Group::None {
            let changed = self.change_in_group(change);
            return changed.map_err(|failure| failure.at(&self.name));
        }
        self.heal()?;
        let synced = self.set_durability(durability);
        let changed = synced.and_then(|()| self.transaction(change));
        changed.map_err(|failure| {
            self.undo();
            failure.at(&self.name)
        })
    }

    fn set_durability(&mut self, durability: Durability) -> Result<(), Failure> {
        let has_file = !self.name.as_os_str().is_empty();
        if has_file && self.durability != durability {
            self.db.set_synced(durability == Durability::Synced)?;
            self.durability = durability;
        }
        Ok(())
    }

    fn transaction<T>(
        &mut self,
        change: impl FnOnce(&Connection, &mut Memory) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.begin()?;
        let value = change(&self.db, &mut self.memory)?;
        self.commit()?;
        Ok(value)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.db.begin()?;
        if let Some(member) = &mut self.memory.member {
            member.beat(&self.db)?;
            self.memory.jobs.set_worker(member.number());
        }
        self.catch_up()
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let changes = self.memory.save(&self.db)?;
        self.db.commit()?;
        self.seen = self.seen.and(changes);
        if let Some(member) = &mut self.memory.member {
            member.commit();
        }
        self.memory.commit(&self.db);
        Ok(())
    }

    /// After a change that failed: goes back to what is stored.
    fn undo(&mut self) {
        if let Some(member) = &mut self.memory.member {
            member.undo();
        }
        // Some errors have rolled the transaction back already.
        if !self.db.is_autocommit() {
            self.is_broken |= self.db.rollback().is_err();
        }
        // Without a file there is no journal to roll back.
        self.is_broken |= self.name.as_os_str().is_empty();
        self.is_broken |= self.reload().is_err();
    }

    fn reload(&mut self) -> Result<(), Failure> {
        // What others store meanwhile is seen at the next change.
        if self.seen.is_some() {
            self.seen = Some(self.db.changes()?);
        }
        self.memory.reload(&self.db)
    }

    fn read<T>(&self, read: Result<T, Failure>) -> Result<T, StoreError> {
        read.map_err(|failure| failure.at(&self.name))
    }
}

impl Store for Database {
    fn begin_run(&mut self, identity: &str, now: Timestamp) -> Result<Run, StoreError> {
        let run = self.change(Durability::Synced, |db, memory| {
            write::begin_run(db, memory, identity, now)
        })?;
        self.run = run.number;
        Ok(run)
    }

    fn end_run(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let run = self.run;
        self.change(Durability::Synced, |db, _| write::end_run(db, run, now))
    }

    fn add(&mut self, links: &[Link]) -> Result<Added, StoreError> {
        let run = self.run;
        self.change(Durability::Lazy, |db, memory| {
            write::add(db, memory, run, links)
        })
    }

    fn take(
        &mut self,
        host: HostId,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Queued>, StoreError> {
        self.read(read::take(&self.db, self.run, host, after, limit))
    }

    fn complete(&mut self, completed: &[Completed]) -> Result<Added, StoreError> {
        let run = self.run;
        self.change(Durability::Synced, |db, memory| {
            write::complete(db, memory, run, completed)
        })
    }

    fn waiting_hosts(
        &mut self,
        visit: &mut dyn FnMut(Host) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.read(read::waiting_hosts(&self.db, visit))
    }

    fn save_hosts(&mut self, hosts: &[(HostId, HostFacts)]) -> Result<(), StoreError> {
        self.change(Durability::Lazy, |db, _| write::save_hosts(db, hosts))
    }

    fn records(
        &mut self,
        after: LinkId,
        selection: Selection,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let read = read::records(&self.db, self.run, after, selection, visit);
        self.read(read)
    }

    fn records_of(
        &mut self,
        urls: &[UrlId],
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.read(read::records_of(&self.db, self.run, urls, visit))
    }

    fn record(&mut self, link: LinkId) -> Result<Option<Record>, StoreError> {
        self.read(read::record(&self.db, self.run, link))
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.read(read::counts(&self.db, self.run))
    }

    fn history(&mut self, url: &str) -> Result<Option<UrlHistory>, StoreError> {
        self.recall()?;
        self.read(read::history(&self.db, &self.memory, url))
    }

    fn events(
        &mut self,
        after: Cursor,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.read(read::events(&self.db, after, visit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Database {
        /// What the database does for a statement, whatever its values are.
        pub(crate) fn plan(&self, statement: &str) -> Vec<String> {
            let explain = format!("EXPLAIN QUERY PLAN {statement}");
            let mut plan = self.db.sqlite().prepare(&explain).expect("valid");
            let steps = plan.raw_query().mapped(|row| row.get::<_, String>(3));
            steps.map(|step| step.expect("text")).collect()
        }
    }
}
