//! The embedded engine: SQLite, in a file or without one.

mod admin;
mod backup;
mod check;
mod codec;
mod failure;
mod filter;
mod group;
mod jobs;
mod keys;
mod memory;
mod open;
mod pauses;
mod read;
mod rejects;
mod schema;
#[cfg(test)]
mod tests;
mod watch;
mod write;
#[cfg(test)]
mod writer_tests;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod plan_tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::Connection;

use super::file::FileLock;
use super::{
    Added, Completed, Counts, Cursor, EntryId, Event, Host, HostFacts, HostId, Link, LinkId,
    Queued, Record, Run, Selection, Store, StoreError, UrlHistory, UrlId,
};
pub use backup::{Migrated, Restored, backup, migrate, restore};
pub use check::{CheckReport, Problem, check};
use failure::Failure;
use group::Group;
use memory::Memory;
pub use rejects::RejectedFigures;

/// The SQLite engine.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use crawler_cli::check::{Reference, Verdict};
/// use crawler_cli::store::sqlite::Sqlite;
/// use crawler_cli::store::{Answer, Completed, Demand, EntryId, Link, LinkId, Selection, Store, Target};
/// use jiff::Timestamp;
/// use url::Url;
///
/// let mut store = Sqlite::temporary()?;
/// store.begin_run("one page", Timestamp::UNIX_EPOCH)?;
/// let url = Url::parse("https://example.com/page")?;
/// let link = Link {
///     spelling: url.as_str().into(),
///     target: Target::Ask(url, Demand::default()),
///     reference: Reference { source: "urls.txt".into(), line: Some(1), column: Some(1), text: String::new() },
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
pub struct Sqlite {
    /// Empty if there is no file.
    path: PathBuf,
    db: Connection,
    memory: Memory,
    /// The number of the run; 0 before the first one.
    run: i64,
    /// How durable the next transaction is.
    durability: Durability,
    /// The changes that are one transaction.
    group: Group,
    /// Whether a change failed and could not be undone.
    is_broken: bool,
    /// For a store that was opened to read it: which changes of others were seen. Changes of its own are refused.
    seen: Option<i64>,
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

impl Sqlite {
    /// Opens or creates a store in a file, and keeps the file for this process.
    ///
    /// # Errors
    /// The file cannot be read or written, is in use by another process, is no store or that of a newer version, or is on
    /// a network file system.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = FileLock::take(path).map_err(|error| StoreError::new(path, error.into()))?;
        let opened = open::file(path).and_then(|db| Ok((Memory::open(&db, path, false)?, db)));
        let (memory, db) = opened.map_err(|failure| failure.at(path))?;
        Ok(Self {
            path: path.to_owned(),
            db,
            memory,
            run: 0,
            durability: Durability::Synced,
            group: Group::None,
            is_broken: false,
            seen: None,
            _lock: Some(lock),
        })
    }

    /// Opens a store in a file to read it, also while another process uses it. Changes are refused. A reader that is kept
    /// for long keeps the file from being tidied: open it, read, and drop it.
    ///
    /// # Errors
    /// The file cannot be read, is no store, or that of another version.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let open = || {
            let db = open::reader(path)?;
            let seen = data_version(&db)?;
            Ok((Memory::open(&db, path, true)?, seen, db))
        };
        let (memory, seen, db) = open().map_err(|failure: Failure| failure.at(path))?;
        Ok(Self {
            path: path.to_owned(),
            db,
            memory,
            run: 0,
            durability: Durability::Synced,
            group: Group::None,
            is_broken: false,
            seen: Some(seen),
            _lock: None,
        })
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
    pub(crate) fn begin_moment(&mut self) -> Result<(), StoreError> {
        // A reading that a panic has cut off.
        self.end_moment();
        let begun = self.db.execute_batch("BEGIN").map_err(Failure::from);
        let begun = begun.and_then(|()| self.catch_up());
        if begun.is_err() {
            self.end_moment();
        }
        self.read(begun)
    }

    /// Lets go of the moment.
    pub(crate) fn end_moment(&mut self) {
        if !self.db.is_autocommit() {
            // Nothing was changed; what is wrong with the file, the next reading tells.
            let _ = self.db.execute_batch("ROLLBACK");
        }
    }

    fn catch_up(&mut self) -> Result<(), Failure> {
        let stored = data_version(&self.db)?;
        if self.seen != Some(stored) {
            self.memory.catch_up(&self.db)?;
            self.seen = Some(stored);
        }
        Ok(())
    }

    /// Tells each statement that is run from now on.
    #[cfg(test)]
    pub(crate) fn trace(&self, note: fn(&str)) {
        use rusqlite::trace::{TraceEvent, TraceEventCodes};
        static NOTE: std::sync::OnceLock<fn(&str)> = std::sync::OnceLock::new();
        let _ = NOTE.set(note);
        let stmt = TraceEventCodes::SQLITE_TRACE_STMT;
        self.db.trace_v2(
            stmt,
            Some(|event| {
                if let (TraceEvent::Stmt(_, sql), Some(note)) = (event, NOTE.get()) {
                    note(sql);
                }
            }),
        );
    }

    /// What the database does for a statement, whatever its values are.
    #[cfg(test)]
    pub(crate) fn plan(&self, statement: &str) -> Vec<String> {
        let explain = format!("EXPLAIN QUERY PLAN {statement}");
        let mut plan = self.db.prepare(&explain).expect("valid");
        let steps = plan.raw_query().mapped(|row| row.get::<_, String>(3));
        steps.map(|step| step.expect("text")).collect()
    }

    /// What the rejected-URL filter has answered: keep it before the store is given away.
    pub fn rejected_figures(&self) -> Arc<RejectedFigures> {
        self.memory.rejects.figures()
    }

    /// A store that ends with this value. What does not fit in its cache of 8 MiB is in a temporary file without a name,
    /// in the folder that `SQLITE_TMPDIR` or `TMPDIR` names.
    ///
    /// # Errors
    /// There is no memory.
    pub fn temporary() -> Result<Self, StoreError> {
        let opened = open::temporary().and_then(|db| Ok((Memory::load(&db)?, db)));
        let (memory, db) = opened.map_err(|failure| failure.at(Path::new("")))?;
        Ok(Self {
            path: PathBuf::new(),
            db,
            memory,
            run: 0,
            durability: Durability::Synced,
            group: Group::None,
            is_broken: false,
            seen: None,
            _lock: None,
        })
    }

    /// Changes the store in one transaction, or in that of the group.
    fn change<T>(
        &mut self,
        durability: Durability,
        change: impl FnOnce(&Connection, &mut Memory) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if self.group != Group::None {
            let changed = self.change_in_group(change);
            return changed.map_err(|failure| failure.at(&self.path));
        }
        self.heal()?;
        let synced = self.set_durability(durability);
        let changed = synced.and_then(|()| self.transaction(change));
        changed.map_err(|failure| {
            self.undo();
            failure.at(&self.path)
        })
    }

    fn set_durability(&mut self, durability: Durability) -> Result<(), Failure> {
        let has_file = !self.path.as_os_str().is_empty();
        if has_file && self.durability != durability {
            let level = match durability {
                Durability::Lazy => "NORMAL",
                Durability::Synced => "FULL",
            };
            self.db.pragma_update(None, "synchronous", level)?;
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

    fn begin(&self) -> Result<(), Failure> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.memory.save(&self.db)?;
        self.db.prepare_cached("COMMIT")?.execute([])?;
        self.memory.commit(&self.db);
        Ok(())
    }

    /// After a change that failed: goes back to what is stored.
    fn undo(&mut self) {
        // Some errors have rolled the transaction back already.
        if !self.db.is_autocommit() {
            self.is_broken |= self.db.execute_batch("ROLLBACK").is_err();
        }
        // Without a file there is no journal to roll back.
        self.is_broken |= self.path.as_os_str().is_empty();
        self.is_broken |= self.memory.reload(&self.db).is_err();
    }

    fn read<T>(&self, read: Result<T, Failure>) -> Result<T, StoreError> {
        read.map_err(|failure| failure.at(&self.path))
    }
}

/// A number that is another one after each change of another process or connection.
fn data_version(db: &Connection) -> Result<i64, Failure> {
    let mut query = db.prepare_cached("PRAGMA data_version")?;
    Ok(query.query_row([], |row| row.get(0))?)
}

impl Store for Sqlite {
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

    fn has_pages_left(&self) -> bool {
        self.memory.pages_left > 0
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.read(read::counts(&self.db, self.run))
    }

    fn history(&mut self, url: &str) -> Result<Option<UrlHistory>, StoreError> {
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
