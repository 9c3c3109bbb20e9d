//! The file of `--since`: the listings of an earlier run, entry by entry, in an SQLite database. An entry takes its name and
//! about 30 bytes. Everything that a run changes is one transaction, which is committed at the end of the run or not at
//! all.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::row::Row;
use crate::store::file::{FileError, FileLock};

/// The open file.
#[derive(Debug)]
pub(super) struct Store {
    db: Connection,
    path: PathBuf,
    /// The number of this run.
    run: i64,
    _lock: FileLock,
}

/// Why the file of `--since` cannot be used.
#[derive(Debug)]
pub struct SinceError {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    File(FileError),
    Sql(rusqlite::Error),
    Foreign,
    OtherSearch(String),
}

impl fmt::Display for SinceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            Kind::File(FileError::InUse(_)) => f.write_str("another search is using it"),
            Kind::File(error) => error.fmt(f),
            Kind::Sql(error) => error.fmt(f),
            Kind::Foreign => f.write_str("not a file of --since of this version"),
            Kind::OtherSearch(identity) => write!(f, "it is about another search: {identity}"),
        }
    }
}

impl std::error::Error for SinceError {}

/// How an entry compares with what the file had.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Status {
    Same,
    New,
    Changed,
}

/// The validators of a listing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::find) struct Validators {
    pub(in crate::find) etag: Option<String>,
    pub(in crate::find) date: Option<String>,
}

impl Store {
    /// Opens the file, and creates it if there is none.
    pub(super) fn open(path: &Path, identity: &str) -> Result<Self, SinceError> {
        let wrong = |kind| SinceError {
            path: path.to_owned(),
            kind,
        };
        let lock = FileLock::take(path).map_err(|error| wrong(Kind::File(error)))?;
        let sql = |error| wrong(Kind::Sql(error));
        let db = Connection::open(path).map_err(sql)?;
        let found = prepare(&db, identity).map_err(sql)?;
        let (run, stored) = found.ok_or_else(|| wrong(Kind::Foreign))?;
        match stored == identity {
            true => Ok(Self {
                db,
                path: path.to_owned(),
                run,
                _lock: lock,
            }),
            false => Err(wrong(Kind::OtherSearch(stored))),
        }
    }

    /// An error of the file.
    pub(super) fn error(&self, error: rusqlite::Error) -> SinceError {
        SinceError {
            path: self.path.clone(),
            kind: Kind::Sql(error),
        }
    }

    /// Replaces what the file had by what this run has seen.
    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        self.db.execute_batch("COMMIT")
    }

    /// The number of a directory, which is added if it is new.
    pub(super) fn directory(&self, url: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.id_of(url)? {
            return Ok(id);
        }
        let insert = "INSERT INTO directory (url) VALUES (?1)";
        self.db.prepare_cached(insert)?.execute([url])?;
        Ok(self.db.last_insert_rowid())
    }

    pub(super) fn id_of(&self, url: &str) -> rusqlite::Result<Option<i64>> {
        let query = "SELECT id FROM directory WHERE url = ?1";
        let mut statement = self.db.prepare_cached(query)?;
        statement.query_row([url], |row| row.get(0)).optional()
    }

    /// Notes an entry that is listed now, and compares it with what the file had.
    pub(super) fn note(&self, directory: i64, name: &str, row: &str) -> rusqlite::Result<Status> {
        let query = "SELECT row, run, status FROM entry WHERE directory = ?1 AND name = ?2";
        let mut statement = self.db.prepare_cached(query)?;
        let before: Option<(String, i64, i64)> = statement
            .query_row(params![directory, name], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let status = match before {
            None => {
                let insert = "INSERT INTO entry (directory, name, row, run, status) VALUES (?1, ?2, ?3, ?4, 1)";
                self.db
                    .prepare_cached(insert)?
                    .execute(params![directory, name, row, self.run])?;
                return Ok(Status::New);
            }
            // It was noted in this run.
            Some((_, run, status)) if run == self.run => return Ok(status_of(status)),
            Some((before, ..)) if before == row => Status::Same,
            Some(_) => Status::Changed,
        };
        let update =
            "UPDATE entry SET row = ?3, run = ?4, status = ?5 WHERE directory = ?1 AND name = ?2";
        let number = match status {
            Status::Same => 0,
            Status::New => 1,
            Status::Changed => 2,
        };
        self.db
            .prepare_cached(update)?
            .execute(params![directory, name, row, self.run, number])?;
        Ok(status)
    }

    /// How an entry compares with what the file had. `None`: it is in no listing that was read.
    pub(super) fn status(&self, directory: &str, name: &str) -> rusqlite::Result<Option<Status>> {
        let query = "SELECT run, status FROM entry \
             WHERE directory = (SELECT id FROM directory WHERE url = ?1) AND name = ?2";
        let mut statement = self.db.prepare_cached(query)?;
        let found: Option<(i64, i64)> = statement
            .query_row([directory, name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(found.map(|(run, status)| match run == self.run {
            true => status_of(status),
            // Its directory has not changed.
            false => Status::Same,
        }))
    }

    /// Calls `act` for each entry of a directory that this run has not noted, in the order of the names. A part of them
    /// is in memory at a time.
    pub(super) fn each_missing(
        &self,
        directory: i64,
        act: &mut dyn FnMut(Row) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut last = String::new();
        loop {
            let some = self.missing_after(directory, &last)?;
            let Some((end, _)) = some.last() else {
                return Ok(());
            };
            last.clone_from(end);
            for (name, text) in some {
                if let Some(row) = Row::parse(&name, &text) {
                    act(row)?;
                }
            }
        }
    }

    /// Some of these entries, after this name. No name is empty.
    fn missing_after(&self, directory: i64, last: &str) -> rusqlite::Result<Vec<(String, String)>> {
        let query = "SELECT name, row FROM entry WHERE directory = ?1 AND run < ?2 AND name > ?3 \
             ORDER BY name LIMIT 1024";
        let mut statement = self.db.prepare_cached(query)?;
        let rows = statement.query_map(params![directory, self.run, last], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        rows.collect()
    }

    /// Removes these entries.
    pub(super) fn remove_missing(&self, directory: i64) -> rusqlite::Result<()> {
        let delete = "DELETE FROM entry WHERE directory = ?1 AND run < ?2";
        self.db
            .prepare_cached(delete)?
            .execute(params![directory, self.run])?;
        Ok(())
    }

    /// The directories at or below this URL, in order, and their numbers.
    pub(super) fn below(&self, url: &str) -> rusqlite::Result<Vec<(i64, String)>> {
        // The character after `/`.
        let end = format!("{}0", url.strip_suffix('/').unwrap_or(url));
        let query = "SELECT id, url FROM directory WHERE url >= ?1 AND url < ?2 ORDER BY url";
        let mut statement = self.db.prepare_cached(query)?;
        let rows = statement.query_map([url, &end], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    /// Removes a directory.
    pub(super) fn remove_directory(&self, directory: i64) -> rusqlite::Result<()> {
        let delete = "DELETE FROM directory WHERE id = ?1 \
             AND NOT EXISTS (SELECT 1 FROM entry WHERE directory = ?1)";
        self.db.prepare_cached(delete)?.execute([directory])?;
        Ok(())
    }

    /// Whether an earlier page of the directory, in this run, has left entries out.
    pub(super) fn is_broken(&self, directory: i64) -> rusqlite::Result<bool> {
        let query = "SELECT broken = ?2 FROM directory WHERE id = ?1";
        self.db
            .prepare_cached(query)?
            .query_row(params![directory, self.run], |row| row.get(0))
    }

    /// Notes that a page of the directory has left entries out.
    pub(super) fn note_broken(&self, directory: i64) -> rusqlite::Result<()> {
        let update = "UPDATE directory SET broken = ?2 WHERE id = ?1";
        self.db
            .prepare_cached(update)?
            .execute(params![directory, self.run])?;
        Ok(())
    }

    /// Keeps the validators of a listing, and what it says beside its entries. Without validators, forgets them.
    pub(super) fn keep(
        &self,
        directory: i64,
        validators: &Validators,
        head: &str,
    ) -> rusqlite::Result<()> {
        let update = "UPDATE directory SET etag = ?2, date = ?3, head = ?4 WHERE id = ?1";
        let (etag, date) = (&validators.etag, &validators.date);
        self.db
            .prepare_cached(update)?
            .execute(params![directory, etag, date, head])?;
        Ok(())
    }

    /// The validators of the listing at this URL.
    pub(super) fn validators(&self, url: &str) -> rusqlite::Result<Validators> {
        let query = "SELECT etag, date FROM directory WHERE url = ?1";
        let mut statement = self.db.prepare_cached(query)?;
        let found = statement.query_row([url], |row| {
            Ok(Validators {
                etag: row.get(0)?,
                date: row.get(1)?,
            })
        });
        Ok(found.optional()?.unwrap_or_default())
    }

    /// What the listing at this URL says beside its entries, and its entries.
    pub(super) fn listing(&self, url: &str) -> rusqlite::Result<Option<(String, Vec<Row>)>> {
        let query = "SELECT id, head FROM directory WHERE url = ?1 AND head IS NOT NULL \
             AND (etag IS NOT NULL OR date IS NOT NULL)";
        let mut statement = self.db.prepare_cached(query)?;
        let found: Option<(i64, String)> = statement
            .query_row([url], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((id, head)) = found else {
            return Ok(None);
        };
        let query = "SELECT name, row FROM entry WHERE directory = ?1 ORDER BY name";
        let mut statement = self.db.prepare_cached(query)?;
        let rows = statement.query_map([id], |row| {
            let (name, text): (String, String) = (row.get(0)?, row.get(1)?);
            Ok(Row::parse(&name, &text))
        })?;
        let rows: rusqlite::Result<Option<Vec<Row>>> = rows.collect();
        Ok(rows?.map(|rows| (head, rows)))
    }

    /// Forgets an entry, so that it is new for the next run.
    pub(super) fn forget(&self, directory: &str, name: &str) -> rusqlite::Result<()> {
        let Some(id) = self.id_of(directory)? else {
            return Ok(());
        };
        let delete = "DELETE FROM entry WHERE directory = ?1 AND name = ?2";
        self.db.prepare_cached(delete)?.execute(params![id, name])?;
        self.keep(id, &Validators::default(), "")
    }
}

impl Store {
    /// Forgets the entries of a directory that this run has noted as new or changed, and its validators.
    pub(super) fn lose(&self, directory: &str) -> rusqlite::Result<()> {
        let Some(id) = self.id_of(directory)? else {
            return Ok(());
        };
        let delete = "DELETE FROM entry WHERE directory = ?1 AND run = ?2 AND status <> 0";
        self.db
            .prepare_cached(delete)?
            .execute(params![id, self.run])?;
        self.keep(id, &Validators::default(), "")
    }
}

fn status_of(number: i64) -> Status {
    match number {
        1 => Status::New,
        2 => Status::Changed,
        _ => Status::Same,
    }
}

/// Makes the tables, and begins the transaction of this run. Returns its number and the search that the file is about;
/// `None` if the database is something else.
fn prepare(db: &Connection, identity: &str) -> rusqlite::Result<Option<(i64, String)>> {
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match version {
        0 if tables == 0 => {
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.execute_batch(SCHEMA)?;
        }
        VERSION => {}
        _ => return Ok(None),
    }
    db.execute_batch("BEGIN IMMEDIATE")?;
    let is_new: bool = db.query_row("SELECT count(*) = 0 FROM search", [], |row| row.get(0))?;
    if is_new {
        db.execute(
            "INSERT INTO search (identity, run) VALUES (?1, 0)",
            [identity],
        )?;
    }
    db.execute("UPDATE search SET run = run + 1", [])?;
    let found = db.query_row("SELECT run, identity FROM search", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    found.map(Some)
}

const VERSION: i64 = 1;

const SCHEMA: &str = "
    BEGIN;
    CREATE TABLE search (identity TEXT NOT NULL, run INTEGER NOT NULL);
    CREATE TABLE directory (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, etag TEXT, date TEXT, head TEXT,
        broken INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE entry (directory INTEGER, name TEXT, row TEXT NOT NULL, run INTEGER NOT NULL, status INTEGER NOT NULL,
        PRIMARY KEY (directory, name)) WITHOUT ROWID;
    PRAGMA user_version = 1;
    COMMIT;
";
