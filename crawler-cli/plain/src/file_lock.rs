//! The file of a database: who may use it, and on which file systems.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::{fmt, fs, process};

use rustix::fs::OFlags;

use super::files::{beside, folder_of};

/// The right to use a database: a lock of the operating system on a file beside it, `NAME-lock`, with the number of the
/// process in it. The lock ends with the process, however that ends. Drop the database first.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    /// Locked while it is open.
    _file: File,
}

/// Why a file is not used.
#[derive(Debug)]
pub enum FileError {
    /// It cannot be opened or created.
    Io(io::Error),
    /// Another process uses it: its number, if it is known.
    InUse(Option<u32>),
    /// It is on a network file system of this kind.
    NetworkFileSystem(&'static str),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::InUse(Some(process)) => write!(f, "process {process} is using it"),
            Self::InUse(None) => f.write_str("another process is using it"),
            Self::NetworkFileSystem(kind) => {
                write!(
                    f,
                    "is on a network file system ({kind}), whose locks cannot be trusted"
                )
            }
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl FileLock {
    /// Takes the lock of the database with this file, and creates the file if there is none: readable for the user only,
    /// because URLs can be secret.
    ///
    /// # Errors
    /// The file cannot be opened for writing or created, another process uses it, or it is on a network file system.
    pub fn take(database: &Path) -> Result<Self, FileError> {
        let system = rustix::fs::statfs(folder_of(database)).map_err(io::Error::from)?;
        if let Some(kind) = network_file_system(system.f_type as u64 & 0xFFFF_FFFF) {
            return Err(FileError::NetworkFileSystem(kind));
        }
        let lock = Self::take_at(beside(database, "-lock"))?;
        open(database, OFlags::empty())?;
        Ok(lock)
    }

    fn take_at(path: PathBuf) -> Result<Self, FileError> {
        loop {
            // Who else can write to the folder could make it a link to another file of ours.
            let mut file = open(&path, OFlags::NOFOLLOW)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(FileError::InUse(process_in(&file))),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            // The process that had the lock may have removed the file after it was opened here.
            if !is_at(&file, &path) {
                continue;
            }
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", process::id())?;
            return Ok(Self { path, _file: file });
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If that fails, an unlocked file is left, which does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

fn open(path: &Path, more: OFlags) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(more.bits() as i32)
        .open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

/// The number of the process that wrote it. The content of a file that is not ours may be anything.
fn process_in(file: &File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// The kinds of file systems whose locks do not hold between machines, by the numbers of statfs(2). A file system in
/// user space does not say what is behind it.
fn network_file_system(kind: u64) -> Option<&'static str> {
    match kind {
        0x6969 => Some("NFS"),
        0x517B | 0xFE53_4D42 | 0xFF53_4D42 => Some("SMB"),
        0x564C => Some("NCP"),
        0x7375_7245 => Some("Coda"),
        0x5346_414F => Some("AFS"),
        0x00C3_6400 => Some("Ceph"),
        0x0BD0_0BD0 => Some("Lustre"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_one_user_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("urls.db");
        let lock = FileLock::take(&database).expect("the first user");
        let mode = fs::metadata(&database).expect("created").mode();
        assert_eq!(mode & 0o777, 0o600);
        match FileLock::take(&database) {
            Err(FileError::InUse(Some(number))) => assert_eq!(number, process::id()),
            other => panic!("{other:?}"),
        }
        drop(lock);
        assert!(!folder.path().join("urls.db-lock").exists());
        drop(FileLock::take(&database).expect("free again"));
    }

    #[test]
    fn what_cannot_be_opened_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("missing/urls.db");
        assert!(matches!(FileLock::take(&below), Err(FileError::Io(_))));
        let same = FileLock::take(folder.path());
        assert!(matches!(same, Err(FileError::Io(_))), "{same:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 0);
    }

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(network_file_system(0x6969), Some("NFS"));
        assert_eq!(network_file_system(0xFF53_4D42), Some("SMB"));
        // ext4, tmpfs, btrfs, overlay and xfs are local.
        for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x794C_7630, 0x5846_5342] {
            assert_eq!(network_file_system(local), None);
        }
    }
}
