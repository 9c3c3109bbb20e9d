//! Files that keep what could not be stored, so that it survives the process.
//!
//! A folder has a file for each process that uses it at a time, `1.jsonl` and so on, locked as long as the process lives.
//! A process begins with what the files of dead ones have. The first line of a file says which store it is for; each
//! further line is one [`Late`]. A line without an end was not written as a whole, and is ignored.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::Late;

/// A file of this process, and those of dead ones.
#[derive(Debug)]
pub struct Spool {
    files: Vec<(PathBuf, File)>,
    /// Of which store the lines are.
    store: String,
    /// Whether the files have lines.
    is_used: bool,
    /// Whether lines were written that may not be on the disk.
    is_dirty: bool,
}

impl Spool {
    /// Uses this folder, which is made if there is none, for the store with this name. Also returns what dead processes
    /// have left there.
    ///
    /// # Errors
    /// The folder cannot be used, or has lines of another store, or something else that cannot be read.
    pub fn open(folder: &Path, store: &str) -> io::Result<(Self, Vec<Late>)> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mut spool = Self {
            files: Vec::new(),
            store: store.to_owned(),
            is_used: false,
            is_dirty: false,
        };
        let mut left = Vec::new();
        for number in 1.. {
            let path = folder.join(format!("{number}.jsonl"));
            let is_new = !path.exists();
            if is_new && !spool.files.is_empty() {
                break;
            }
            let mut options = OpenOptions::new();
            let options = options.read(true).append(true).create(true);
            let file = options.mode(0o600).open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(named(&path, error)),
            }
            let lines = read(&file, store).map_err(|error| named(&path, error))?;
            spool.is_used |= !lines.is_empty();
            left.extend(lines);
            spool.files.push((path, file));
        }
        Ok((spool, left))
    }

    /// Adds a line. It is on the disk after [`sync`](Self::sync).
    pub(super) fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let Some((path, file)) = self.files.first_mut() else {
            return Ok(());
        };
        let mut bytes = Vec::with_capacity(line.len() + 1);
        if file.metadata()?.len() == 0 {
            bytes.extend_from_slice(self.store.as_bytes());
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
        self.is_used = true;
        self.is_dirty = true;
        let before = file.metadata()?.len();
        file.write_all(&bytes).map_err(|error| {
            // Half a line would spoil the next one; if it stays, the next start says so.
            let _ = file.set_len(before);
            named(path, error)
        })
    }

    /// Everything that was added is on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_dirty) {
            return Ok(());
        }
        match self.files.first() {
            Some((path, file)) => file.sync_data().map_err(|error| named(path, error)),
            None => Ok(()),
        }
    }

    /// Everything is stored: the lines are not needed any more.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_used) {
            return Ok(());
        }
        self.is_dirty = false;
        for (path, file) in &self.files {
            let cleared = file.set_len(0).and_then(|()| file.sync_data());
            cleared.map_err(|error| named(path, error))?;
        }
        Ok(())
    }
}

fn read(mut file: &File, store: &str) -> io::Result<Vec<Late>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = whole.map_or(0, |end| end + 1);
    if whole < bytes.len() {
        // The process was killed while it wrote the last line.
        file.set_len(whole as u64)?;
    }
    let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut lines = bytes[..whole].split(|byte| *byte == b'\n');
    let name = lines.next().unwrap_or_default();
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        file.set_len(0)?;
    } else if name != store.as_bytes() {
        return Err(damaged(format!(
            "has outcomes for another store ({}): start a service with that store, or remove the file",
            String::from_utf8_lossy(name)
        )));
    }
    let lines = lines.into_iter();
    lines
        .map(|line| Late::from_line(line).map_err(damaged))
        .collect()
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(worker: i64) -> Late {
        Late {
            worker,
            judgements: Vec::new(),
            facts: Vec::new(),
        }
    }

    fn workers(left: &[Late]) -> Vec<i64> {
        left.iter().map(|late| late.worker).collect()
    }

    fn add(spool: &mut Spool, worker: i64) {
        let line = late(worker).to_line().expect("JSON");
        spool.add(&line).expect("written");
        spool.sync().expect("synced");
    }

    #[test]
    fn what_a_dead_process_has_left_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        let (mut first, left) = Spool::open(&path, "a").expect("a spool");
        assert_eq!(left.len(), 0);
        add(&mut first, 1);
        // Another process has a file of its own.
        let (mut second, left) = Spool::open(&path, "a").expect("a spool");
        assert_eq!(left.len(), 0);
        add(&mut second, 2);
        drop((first, second));
        // A line that was not written as a whole.
        let mut file = OpenOptions::new()
            .append(true)
            .open(path.join("1.jsonl"))
            .expect("a file");
        file.write_all(b"{\"worker\":3").expect("written");
        let (mut third, left) = Spool::open(&path, "a").expect("a spool");
        assert_eq!(workers(&left), [1, 2]);
        add(&mut third, 4);
        drop(third);
        let (mut fourth, left) = Spool::open(&path, "a").expect("a spool");
        assert_eq!(workers(&left), [1, 4, 2]);
        fourth.clear().expect("cleared");
        add(&mut fourth, 5);
        drop(fourth);
        let (_, left) = Spool::open(&path, "a").expect("a spool");
        assert_eq!(workers(&left), [5]);
    }

    #[test]
    fn what_is_of_another_store_or_damaged_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut spool, _) = Spool::open(folder.path(), "a").expect("a spool");
        add(&mut spool, 1);
        drop(spool);
        let error = Spool::open(folder.path(), "b").expect_err("refused");
        assert!(error.to_string().contains("another store (a)"), "{error}");
        let path = folder.path().join("1.jsonl");
        fs::write(&path, "a\nnonsense\n").expect("written");
        let error = Spool::open(folder.path(), "a").expect_err("refused");
        assert!(error.to_string().contains("1.jsonl"), "{error}");
    }
}
