//! The record of a mirror: which files earlier runs have put into the folder, and what this run has seen of the server.
//! An SQLite database in the folder itself. A file is recorded before it gets its name, so that a process that is killed
//! at any moment leaves no file that later runs take for the user's own.
//!
//! Keys are paths below the folder; see [`Root::key`](super::super::disk::Root::key).

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use tempfile::TempDir;

use super::about::{About, Other, REMEDY};
use super::guard::Census;
use crate::crawl::file_names::RECORD;
use crate::find::download::disk::FileMetadata;
use crate::store::file::{FileError, FileLock, beside};

/// The open record.
#[derive(Debug)]
pub(super) struct Record {
    db: Connection,
    /// The number of this run.
    run: i64,
    _lock: Option<FileLock>,
    /// Where the copy is that a dry run reads.
    _copy: Option<TempDir>,
}

/// Why the record of a mirror cannot be used.
#[derive(Debug)]
pub(in crate::find) struct RecordError {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    File(FileError),
    Sql(rusqlite::Error),
    /// A symbolic link, or no file at all.
    NoFile,
    /// Of another version, or no record.
    Foreign,
    OtherSearch(Box<Other>),
}

impl RecordError {
    /// Whether the record is usable, but belongs to another search.
    pub(in crate::find) fn is_other_search(&self) -> bool {
        matches!(self.kind, Kind::OtherSearch(_))
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            Kind::File(error) => error.fmt(f),
            Kind::Sql(error) => error.fmt(f),
            Kind::NoFile => f.write_str("not a file"),
            Kind::Foreign => write!(f, "not the record of a mirror of this version; {REMEDY}"),
            Kind::OtherSearch(other) => other.fmt(f),
        }
    }
}

impl std::error::Error for RecordError {}

/// A file that an earlier run has put there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::find::download) struct Known {
    /// How the file was left.
    pub(super) left: FileMetadata,
    /// The file that it replaced, if the process may have been killed before that.
    before: Option<FileMetadata>,
    /// The `ETag` of the answer.
    pub(in crate::find::download) etag: Option<String>,
    /// The `Last-Modified` of the answer.
    pub(in crate::find::download) date: Option<String>,
}

impl Known {
    /// Whether a file on disk is the one that was put there.
    pub(in crate::find::download) fn is(&self, found: FileMetadata) -> bool {
        self.left == found || self.before == Some(found)
    }

    /// Whether the validators are those of the file on disk.
    pub(in crate::find::download) fn describes(&self, found: FileMetadata) -> bool {
        self.left == found
    }
}

/// A file that is about to get its name.
#[derive(Clone, Copy, Debug)]
pub(in crate::find::download) struct Put<'a> {
    pub(in crate::find::download) url: &'a str,
    pub(in crate::find::download) file: FileMetadata,
    /// The file of an earlier run that it replaces.
    pub(in crate::find::download) before: Option<FileMetadata>,
    pub(in crate::find::download) etag: Option<&'a str>,
    pub(in crate::find::download) date: Option<&'a str>,
}

/// What was seen of the server under a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Seen {
    File,
    /// A directory, read or not.
    Directory,
    /// A directory whose listing was read.
    Read,
}

impl Record {
    /// Opens the record in this folder, and creates it for this search if there is none. With `dry`, nothing is written
    /// into the folder: a copy of the record is read.
    ///
    /// # Errors
    /// The record cannot be used, or is that of another search.
    pub(super) fn open(folder: &Path, about: &About, dry: bool) -> Result<Self, RecordError> {
        let (path, exists) = place(folder)?;
        let wrong = |kind| RecordError {
            path: path.clone(),
            kind,
        };
        let sql = |error| wrong(Kind::Sql(error));
        let file = |error| wrong(Kind::File(error));
        let write = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let (mut lock, mut copy) = (None, None);
        let db = match (exists, dry) {
            (_, false) => {
                lock = Some(FileLock::take(&path).map_err(file)?);
                Connection::open_with_flags(&path, write | OpenFlags::SQLITE_OPEN_NOFOLLOW)
            }
            (true, true) => {
                let (folder, path) = copied(&path).map_err(file)?;
                copy = Some(folder);
                Connection::open_with_flags(path, write)
            }
            (false, true) => Connection::open_in_memory(),
        };
        let db = db.map_err(sql)?;
        let run = prepare(&db, about, dry)
            .map_err(sql)?
            .ok_or_else(|| wrong(Kind::Foreign))?;
        let recorded = recorded(&db).map_err(sql)?;
        if recorded != *about {
            let given = about.clone();
            return Err(wrong(Kind::OtherSearch(Box::new(Other {
                recorded,
                given,
            }))));
        }
        Ok(Self {
            db,
            run,
            _lock: lock,
            _copy: copy,
        })
    }

    /// Whether there is a record in this folder that is that of another search.
    ///
    /// # Errors
    /// There is one.
    pub(super) fn check(folder: &Path, about: &About, dry: bool) -> Result<(), RecordError> {
        let exists = place(folder).is_ok_and(|(_, exists)| exists);
        match Self::open(folder, about, dry || !exists) {
            // The search itself tells the others.
            Err(error) if error.is_other_search() => Err(error),
            _ => Ok(()),
        }
    }

    /// What is known about the file with this key.
    pub(super) fn known(&self, key: &[u8]) -> rusqlite::Result<Option<Known>> {
        let query = "SELECT length, time, nanos, old_length, old_time, old_nanos, etag, date FROM file WHERE path = ?1";
        let mut statement = self.db.prepare_cached(query)?;
        let row = statement.query_row([key], |row| {
            let file = |at: usize| -> rusqlite::Result<Option<FileMetadata>> {
                let length: Option<i64> = row.get(at)?;
                let Some(length) = length else {
                    return Ok(None);
                };
                Ok(Some(FileMetadata {
                    length: u64::try_from(length).unwrap_or(0),
                    modified: row.get(at + 1)?,
                    nanos: row.get(at + 2)?,
                }))
            };
            let Some(left) = file(0)? else {
                return Ok(None);
            };
            Ok(Some(Known {
                left,
                before: file(3)?,
                etag: row.get(6)?,
                date: row.get(7)?,
            }))
        });
        row.optional().map(Option::flatten)
    }

    /// Records a file that is about to get its name.
    pub(super) fn put(&self, key: &[u8], put: Put<'_>) -> rusqlite::Result<()> {
        let length = |file: FileMetadata| i64::try_from(file.length).unwrap_or(i64::MAX);
        let insert = "INSERT INTO file (path, url, length, time, nanos, old_length, old_time, old_nanos, etag, date, run) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
             ON CONFLICT (path) DO UPDATE SET url = ?2, length = ?3, time = ?4, nanos = ?5, \
             old_length = ?6, old_time = ?7, old_nanos = ?8, etag = ?9, date = ?10";
        self.db.prepare_cached(insert)?.execute(params![
            key,
            put.url,
            length(put.file),
            put.file.modified,
            put.file.nanos,
            put.before.map(length),
            put.before.map(|file| file.modified),
            put.before.map(|file| file.nanos),
            put.etag,
            put.date,
            self.run,
        ])?;
        // It is there: a listing has named it.
        self.note(key, Seen::File)
    }

    /// Forgets a file: it is deleted, or no longer what was put there.
    pub(super) fn forget(&self, key: &[u8]) -> rusqlite::Result<()> {
        let delete = "DELETE FROM file WHERE path = ?1";
        self.db.prepare_cached(delete)?.execute([key]).map(drop)
    }

    /// Whether there are files below the directory with this key.
    pub(super) fn has_below(&self, key: &[u8]) -> rusqlite::Result<bool> {
        // The byte after `/`.
        let (first, end) = ([key, b"/"].concat(), [key, b"0"].concat());
        let query = "SELECT EXISTS (SELECT 1 FROM file WHERE path >= ?1 AND path < ?2)";
        self.db
            .prepare_cached(query)?
            .query_row([first, end], |row| row.get(0))
    }

    /// Notes what was seen of the server. Files that are not in the record need no note.
    pub(super) fn note(&self, key: &[u8], seen: Seen) -> rusqlite::Result<()> {
        let statement = match seen {
            Seen::File => {
                "INSERT OR IGNORE INTO temp.seen SELECT path, 0 FROM file WHERE path = ?1"
            }
            Seen::Directory => "INSERT OR IGNORE INTO temp.seen VALUES (?1, 1)",
            Seen::Read => "INSERT OR REPLACE INTO temp.seen VALUES (?1, 2)",
        };
        self.db.prepare_cached(statement)?.execute([key]).map(drop)
    }

    /// Whether a file with this key was seen.
    pub(super) fn saw_file(&self, key: &[u8]) -> rusqlite::Result<bool> {
        let query = "SELECT EXISTS (SELECT 1 FROM temp.seen WHERE path = ?1 AND kind = 0)";
        self.db
            .prepare_cached(query)?
            .query_row([key], |row| row.get(0))
    }

    /// What was seen of the directory with this key.
    pub(super) fn directory(&self, key: &[u8]) -> rusqlite::Result<Option<Seen>> {
        let query = "SELECT max(kind) FROM temp.seen WHERE path = ?1 AND kind > 0";
        let kind: Option<i64> = self
            .db
            .prepare_cached(query)?
            .query_row([key], |row| row.get(0))?;
        Ok(kind.map(|kind| match kind {
            2 => Seen::Read,
            _ => Seen::Directory,
        }))
    }

    /// Some keys of files after this one, in order, and whether an earlier run has put each there.
    pub(super) fn after(&self, key: &[u8]) -> rusqlite::Result<Vec<(Vec<u8>, bool)>> {
        let query = "SELECT path, run < ?2 FROM file WHERE path > ?1 ORDER BY path LIMIT 256";
        let mut statement = self.db.prepare_cached(query)?;
        let rows =
            statement.query_map(params![key, self.run], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }
}

/// The fate of a file of the record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    /// The server still has it.
    There,
    /// The listing of its directory, or of one above it, was read and does not have it.
    Gone,
    /// The run was not about it.
    Untouched,
}

impl Record {
    /// The fate of the file with this key.
    pub(super) fn fate(&self, key: &[u8]) -> rusqlite::Result<Fate> {
        if self.saw_file(key)? {
            return Ok(Fate::There);
        }
        let mut key = key;
        loop {
            let at = key.iter().rposition(|&byte| byte == b'/');
            let directory = at.map_or(&b""[..], |at| &key[..at]);
            match self.directory(directory)? {
                Some(Seen::Read) => return Ok(Fate::Gone),
                // It was left out, so that nothing is known about what is in it.
                Some(_) => return Ok(Fate::Untouched),
                None if directory.is_empty() => return Ok(Fate::Untouched),
                None => key = directory,
            }
        }
    }

    /// Calls `act` for each file of the record with its fate, and whether an earlier run has put it there.
    pub(super) fn each(
        &self,
        mut act: impl FnMut(&[u8], Fate, bool) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut last = Vec::new();
        loop {
            let some = self.after(&last)?;
            let Some((end, _)) = some.last() else {
                return Ok(());
            };
            last.clone_from(end);
            for (key, is_old) in &some {
                act(key, self.fate(key)?, *is_old)?;
            }
        }
    }

    /// Counts the files that the run was about.
    pub(super) fn census(&self) -> rusqlite::Result<Census> {
        let mut census = Census::default();
        self.each(|_, fate, is_old| {
            census.known += u64::from(is_old && fate != Fate::Untouched);
            census.gone += u64::from(fate == Fate::Gone);
            Ok(())
        })?;
        Ok(census)
    }
}

/// The path of the record in this folder, and whether it is there.
fn place(folder: &Path) -> Result<(PathBuf, bool), RecordError> {
    let name = String::from_utf8_lossy(RECORD).into_owned();
    // SQLite is to refuse symbolic links in the folder, but not those that lead to the folder.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let path = folder.join(name);
    let kind = match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_file() => return Ok((path, true)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((path, false)),
        Ok(_) => Kind::NoFile,
        Err(error) => Kind::File(error.into()),
    };
    Err(RecordError { path, kind })
}

/// Copies a record that no process uses. What a killed process has left beside it belongs to it.
fn copied(record: &Path) -> Result<(TempDir, PathBuf), FileError> {
    FileLock::check(record)?;
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("record");
    for end in ["", "-wal"] {
        let from = beside(record, end);
        if fs::symlink_metadata(&from).is_ok_and(|meta| meta.is_file()) {
            io::copy(
                &mut File::open(from)?,
                &mut File::create(beside(&copy, end))?,
            )?;
        }
    }
    Ok((folder, copy))
}

/// The search of the record.
fn recorded(db: &Connection) -> rusqlite::Result<About> {
    db.query_row("SELECT starts, words FROM mirror", [], |row| {
        let (starts, words) = (row.get(0)?, row.get(1)?);
        Ok(About { starts, words })
    })
}

/// Makes the tables. Returns the number of this run; `None` if the database is something else.
fn prepare(db: &Connection, about: &About, dry: bool) -> rusqlite::Result<Option<i64>> {
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
    // One transaction: a process that is killed leaves a record without a search, which the next run gives it.
    db.execute(
        "INSERT INTO mirror SELECT 0, ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM mirror)",
        params![about.starts, about.words],
    )?;
    // Files that get their names after a power failure are then found again, and compared with the server's.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.execute_batch(SEEN)?;
    if !dry {
        db.execute("UPDATE mirror SET run = run + 1", [])?;
    }
    let run: i64 = db.query_row("SELECT run FROM mirror", [], |row| row.get(0))?;
    Ok(Some(match dry {
        true => run.saturating_add(1),
        false => run,
    }))
}

const VERSION: i64 = 2;

const SCHEMA: &str = "
    BEGIN;
    CREATE TABLE mirror (run INTEGER NOT NULL, starts TEXT NOT NULL, words TEXT NOT NULL);
    CREATE TABLE file (path BLOB PRIMARY KEY, url TEXT NOT NULL, length INTEGER NOT NULL, time INTEGER NOT NULL,
        nanos INTEGER NOT NULL, old_length INTEGER, old_time INTEGER, old_nanos INTEGER, etag TEXT, date TEXT,
        run INTEGER NOT NULL) WITHOUT ROWID;
    PRAGMA user_version = 2;
    COMMIT;
";

/// What this run has seen: on disk too, but for this process alone. The kinds are file, directory, and directory that was
/// read; a bucket can have a file and a directory of one name.
const SEEN: &str = "
    CREATE TEMP TABLE seen (path BLOB, kind INTEGER, PRIMARY KEY (path, kind)) WITHOUT ROWID;
";
