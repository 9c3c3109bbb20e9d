//! Copies of stores: backups while a store is in use, and how they are restored.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::Connection;

use super::open;
use crate::rejected::REJECTED;
use crate::tables::failure::Failure;
use crate::{SKIPPED, StoreError, StoreErrorKind};
use plain::file_lock::FileLock;
use plain::files::{beside, resolved, sync_folder};

/// Copies a store to the file `to`, also while another process uses the store, which goes on at its speed. The copy is the
/// store at one moment. It gets its name only after it was found to be sound; a store that has the name is replaced then,
/// with the files beside it, unless a process uses it.
///
/// # Errors
/// The store cannot be read, the copy cannot be written or is not sound, or `to` is the store itself, a file beside it, a
/// store in use, or another file than a store.
///
/// ```
/// use store::sqlite::{self, Sqlite};
///
/// let folder = tempfile::tempdir()?;
/// let (store, copy) = (folder.path().join("watch.db"), folder.path().join("copy.db"));
/// let used = Sqlite::open(&store)?;
/// sqlite::backup(&store, &copy)?;
/// drop(used);
///
/// let restored = sqlite::restore(&copy, &store, jiff::Timestamp::now())?;
/// assert!(restored.aside.is_some_and(|aside| aside.exists()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn backup(store: &Path, to: &Path) -> Result<(), StoreError> {
    let source = open::reader(store).map_err(|failure| failure.at(store))?;
    refuse_own_files(store, to)?;
    let to = &resolved(to);
    let is_replaced = fs::metadata(to).is_ok_and(|file| file.len() > 0);
    if !is_replaced {
        return Copy::make(&source, to)?.rename_to(to);
    }
    // Nobody wants a file replaced that only has the wrong name.
    open::reader(to).map_err(|failure| failure.at(to))?;
    let _lock = FileLock::take(to).map_err(|error| StoreError::new(to, error.into()))?;
    let copy = Copy::make(&source, to)?;
    // The new file must not get the log of the old one.
    remove_rest(to).map_err(|error| StoreError::new(to, StoreErrorKind::Io(error)))?;
    copy.rename_to(to)
}

/// Refuses the store itself and its files: who uses the store would go on with files that have lost their names, and all
/// that it stores from then on would be lost.
fn refuse_own_files(store: &Path, to: &Path) -> Result<(), StoreError> {
    let number = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let Some(target) = number(to) else {
        return Ok(());
    };
    let own = ["", "-wal", "-shm", "-lock", "-socket", REJECTED];
    match own
        .iter()
        .any(|end| number(&beside(store, end)) == Some(target))
    {
        true => Err(StoreError::new(to, StoreErrorKind::OwnFile)),
        false => Ok(()),
    }
}

/// What a restore has done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Restored {
    /// The file that has the store as it was before; `None` if there was none.
    pub aside: Option<PathBuf>,
}

/// Replaces a store that is not in use with a backup, after the backup was found to be sound. The store as it was is
/// kept beside it: as `NAME-before-TIME`. The changes of the new store have numbers that those of the old one did not
/// have, so that no reader takes a new one for an old one.
///
/// # Errors
/// The store is in use, the backup cannot be read or is not sound, or a file cannot be written. The store is as it was
/// then.
pub fn restore(backup: &Path, store: &Path, now: Timestamp) -> Result<Restored, StoreError> {
    let source = open::reader(backup).map_err(|failure| failure.at(backup))?;
    let store = &resolved(store);
    let was_there = store.exists();
    let lock = FileLock::take(store).map_err(|error| StoreError::new(store, error.into()))?;
    let restored = replace(&source, store, now);
    if !was_there && restored.is_err() {
        // The lock has made an empty one.
        let _ = fs::remove_file(store);
    }
    drop(lock);
    restored
}

fn replace(source: &Connection, store: &Path, now: Timestamp) -> Result<Restored, StoreError> {
    let failed = |error: io::Error| StoreError::new(store, StoreErrorKind::Io(error));
    let copy = Copy::make(source, store)?;
    skip_numbers(&copy.path).map_err(|error| Failure::from(error).at(&copy.path))?;
    let is_empty = fs::metadata(store).map_err(failed)?.len() == 0;
    let aside = beside(
        store,
        &format!("-before-{}", now.strftime("%Y%m%dT%H%M%SZ")),
    );
    let log = beside(store, "-wal");
    if !is_empty {
        // What is in the log goes to the file, so that the log is not taken for that of the new one.
        if settle(store).is_err() && log.exists() {
            fs::rename(&log, beside(&aside, "-wal")).map_err(failed)?;
        }
        fs::hard_link(store, &aside).map_err(failed)?;
    }
    remove_rest(store).map_err(failed)?;
    copy.rename_to(store)?;
    let aside = (!is_empty).then_some(aside);
    Ok(Restored { aside })
}

/// Leaves out numbers that changes after the backup may have had. How many that are is not known: the store
/// may be lost.
fn skip_numbers(path: &Path) -> Result<(), rusqlite::Error> {
    let db = Connection::open(path)?;
    db.execute("UPDATE store SET next_event = next_event + ?1", [SKIPPED])?;
    db.close().map_err(|(_, error)| error)
}

/// Removes what is beside a store that nobody uses.
fn remove_rest(store: &Path) -> io::Result<()> {
    for end in ["-wal", "-shm", REJECTED] {
        match fs::remove_file(beside(store, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Moves the log of a database that nobody uses to its file.
fn settle(store: &Path) -> Result<(), rusqlite::Error> {
    let db = Connection::open(store)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    db.close().map_err(|(_, error)| error)
}

/// A file that becomes a store, or is removed.
struct Copy {
    path: PathBuf,
    is_renamed: bool,
}

impl Copy {
    /// A sound copy beside the file `to`.
    fn make(source: &Connection, to: &Path) -> Result<Self, StoreError> {
        let copy = Self {
            path: beside(to, &format!("-copy-{}", std::process::id())),
            is_renamed: false,
        };
        let failed = |error| StoreError::new(&copy.path, StoreErrorKind::Io(error));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&copy.path).map_err(failed)?;
        let copied = fill(source, &copy.path);
        copied.map_err(|failure| failure.at(&copy.path))?;
        let file = File::open(&copy.path).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(copy)
    }

    fn rename_to(mut self, to: &Path) -> Result<(), StoreError> {
        let renamed = fs::rename(&self.path, to).and_then(|()| sync_folder(to));
        self.is_renamed = renamed.is_ok();
        renamed.map_err(|error| StoreError::new(to, StoreErrorKind::Io(error)))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.is_renamed {
            let journal = beside(&self.path, "-journal");
            for path in [&self.path, &journal] {
                // There may be none.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Copies a database to an empty file, as it is at one moment.
fn fill(source: &Connection, path: &Path) -> Result<(), Failure> {
    let name = path.to_str();
    let name = name.ok_or_else(|| Failure::Damaged(format!("{}: no UTF-8", path.display())))?;
    source.execute("VACUUM INTO ?1", [name])?;
    open::is_sound(&Connection::open(path)?)
}
