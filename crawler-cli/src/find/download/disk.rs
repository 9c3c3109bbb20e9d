//! The directory of all downloads, and the files in it.
//!
//! Every name is opened relative to its open parent directory, and symbolic links are not followed. So nothing is
//! written outside the directory, even if other processes change it. A file gets its name when it is complete; until
//! then, its bytes are in a partial file, and a note beside it describes the file that they belong to. A partial file
//! without a note cannot be continued, and is removed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::answer::Note;
use super::names::Name;
use super::sums::Summing;
use crate::crawl::file_names::fnv1a;

/// The open directory of all downloads.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// `None`: it does not exist, and is not to be created.
    directory: Option<Arc<OwnedFd>>,
    path: PathBuf,
    /// The file system distinguishes names that differ only in case.
    cases_differ: bool,
}

impl Root {
    /// Opens the directory, and creates it if it does not exist. Fails if no files can be created in it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let directory = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        let cases_differ = cases_differ(&directory)?;
        Ok(Self {
            directory: Some(Arc::new(directory)),
            path: path.to_owned(),
            cases_differ,
        })
    }

    /// Opens the directory to look at it: nothing can be created in it.
    pub(super) fn look_at(path: &Path) -> io::Result<Self> {
        let directory = match rustix::fs::open(path, DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => None,
            opened => Some(Arc::new(opened?)),
        };
        Ok(Self {
            directory,
            path: path.to_owned(),
            cases_differ: true,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The key of a file or directory in records: equal for names that the file system treats as the same.
    pub(super) fn key(&self, segments: &[Vec<u8>]) -> Vec<u8> {
        let whole = segments.join(&b'/');
        match str::from_utf8(&whole) {
            Ok(text) if !self.cases_differ => text.to_lowercase().into_bytes(),
            _ => whole,
        }
    }

    /// The path of a file, for messages.
    pub(super) fn path_of(&self, name: &Name) -> PathBuf {
        self.path.join(name.path())
    }

    /// Opens the parent directory of a file. `None` if it does not exist and `create` is false.
    fn parent(&self, name: &Name, create: bool) -> io::Result<Option<OwnedFd>> {
        self.directory_at(name.directories(), create)
    }

    fn directory_at(&self, segments: &[Vec<u8>], create: bool) -> io::Result<Option<OwnedFd>> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let mut directory = directory.try_clone()?;
        for segment in segments {
            let segment = segment.as_slice();
            let flags = DIRECTORY | OFlags::NOFOLLOW;
            let mut opened = rustix::fs::openat(&directory, segment, flags, Mode::empty());
            if let Err(Errno::NOENT) = opened {
                if !create {
                    return Ok(None);
                }
                match rustix::fs::mkdirat(&directory, segment, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                opened = rustix::fs::openat(&directory, segment, flags, Mode::empty());
            }
            directory = opened?;
        }
        Ok(Some(directory))
    }

    /// What exists under the name of a file.
    pub(super) fn existing(&self, name: &Name) -> io::Result<Existing> {
        let Some(directory) = self.parent(name, false)? else {
            return Ok(Existing::Nothing);
        };
        let stat = match rustix::fs::statat(&directory, name.file(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Existing::Nothing),
            stat => stat?,
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Existing::File(FileMetadata::of(&stat)),
            FileType::Directory => Existing::Directory,
            _ => Existing::Other,
        })
    }

    /// Removes a file if it is the one that `is_ours` knows, with what is left of its download, and then the directories
    /// above it that are empty.
    pub(super) fn remove(
        &self,
        name: &Name,
        is_ours: impl FnOnce(FileMetadata) -> bool,
    ) -> io::Result<Removed> {
        let Some(directory) = self.parent(name, false)? else {
            return Ok(Removed::Absent);
        };
        let removed = match rustix::fs::statat(&directory, name.file(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Removed::Absent,
            Err(error) => return Err(error.into()),
            Ok(stat) => {
                let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
                if !is_file || !is_ours(FileMetadata::of(&stat)) {
                    return Ok(Removed::Changed);
                }
                remove(&directory, name.file())?;
                Removed::Done
            }
        };
        remove(&directory, &name.note())?;
        remove(&directory, &name.partial())?;
        let mut segments = name.directories();
        while let Some((last, above)) = segments.split_last() {
            let Some(directory) = self.directory_at(above, false)? else {
                break;
            };
            // Most are not empty.
            if rustix::fs::unlinkat(&directory, last.as_slice(), AtFlags::REMOVEDIR).is_err() {
                break;
            }
            segments = above;
        }
        Ok(removed)
    }

    /// The partial file of an earlier run, if this run can continue it.
    pub(super) fn find_partial(
        &self,
        name: &Name,
        url: &str,
    ) -> Result<Option<Partial>, PartialFileError> {
        let Some(directory) = self.parent(name, false)? else {
            return Ok(None);
        };
        let file = match open_partial(&directory, name, OFlags::empty()) {
            Err(PartialFileError::Failed(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            file => file?,
        };
        let mut partial = Partial::new(directory, file, name)?;
        partial.note = read_note(&partial.directory, name).filter(|note| note.url == url);
        // Dropping the partial file removes it if it cannot be continued.
        Ok(partial.rest().is_some().then_some(partial))
    }

    /// Creates an empty partial file.
    pub(super) fn create(
        &self,
        name: &Name,
        note: Option<Note>,
    ) -> Result<Partial, PartialFileError> {
        let Some(directory) = self.parent(name, true)? else {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        };
        let file = open_partial(&directory, name, OFlags::CREATE)?;
        let mut partial = Partial::new(directory, file, name)?;
        partial.start_over(note)?;
        Ok(partial)
    }
}

/// What exists under the name of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Existing {
    Nothing,
    File(FileMetadata),
    Directory,
    /// A link or a device.
    Other,
}

/// The metadata by which a file is compared with the file of the server, and recognised in a later run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FileMetadata {
    pub(super) length: u64,
    /// Seconds since 1970.
    pub(super) modified: i64,
    /// The nanoseconds of that time.
    pub(super) nanos: i64,
}

impl FileMetadata {
    fn of(stat: &Stat) -> Self {
        Self {
            length: u64::try_from(stat.st_size).unwrap_or(0),
            modified: stat.st_mtime,
            nanos: i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        }
    }
}

/// The outcome of a [removal](Root::remove).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Removed {
    Done,
    /// There was nothing.
    Absent,
    /// Something else is there, and was left.
    Changed,
}

/// Why a partial file cannot be opened.
#[derive(Debug)]
pub(super) enum PartialFileError {
    /// Another process is writing it.
    InUse,
    Failed(io::Error),
}

impl From<io::Error> for PartialFileError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Errno> for PartialFileError {
    fn from(error: Errno) -> Self {
        Self::Failed(error.into())
    }
}

/// The names used in this run: the fingerprint of each name, and the hash of its URL.
#[derive(Debug, Default)]
pub(super) struct Claims(HashMap<u64, u64>);

/// Whether a URL can use a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Claim {
    Granted,
    /// The URL uses the name already.
    Repeated,
    /// Another URL uses the name.
    Taken,
}

impl Claims {
    pub(super) fn claim(&mut self, root: &Root, name: &Name, url: &str) -> Claim {
        let url = fnv1a(url.as_bytes());
        match self.0.entry(name.fingerprint(root.cases_differ)) {
            Entry::Vacant(entry) => {
                entry.insert(url);
                Claim::Granted
            }
            Entry::Occupied(entry) if *entry.get() == url => Claim::Repeated,
            Entry::Occupied(_) => Claim::Taken,
        }
    }
}

/// A file that is not complete yet. Its lock keeps other processes away.
#[derive(Debug)]
pub(super) struct Partial {
    directory: OwnedFd,
    file: File,
    name: Name,
    length: u64,
    /// The note on disk.
    note: Option<Note>,
    is_finished: bool,
}

impl Partial {
    fn new(directory: OwnedFd, file: File, name: &Name) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            directory,
            file,
            name: name.clone(),
            length,
            note: None,
            is_finished: false,
        })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn note(&self) -> Option<&Note> {
        self.note.as_ref()
    }

    /// The offset at which the download can continue, and the note for it. `None` if it cannot.
    pub(super) fn rest(&self) -> Option<(u64, &Note)> {
        self.note
            .as_ref()
            .filter(|_| self.length > 0)
            .map(|note| (self.length, note))
    }

    /// Truncates the file and replaces the note. The old note is removed first, so that there is never a note beside
    /// bytes of another file.
    pub(super) fn start_over(&mut self, note: Option<Note>) -> io::Result<()> {
        self.note = None;
        remove(&self.directory, &self.name.note())?;
        self.file.set_len(0)?;
        self.length = 0;
        if let Some(note) = note {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(
                &self.directory,
                self.name.note(),
                flags,
                Mode::from_raw_mode(0o666),
            )?;
            File::from(file).write_all(&note.write())?;
            self.note = Some(note);
        }
        Ok(())
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.write_at(rest, self.length) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.length += n as u64;
                    rest = &rest[n..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives the complete file its time of change.
    pub(super) fn date(&mut self, modified: Option<SystemTime>) -> io::Result<FileMetadata> {
        if let Some(modified) = modified {
            self.file.set_modified(modified)?;
        }
        Ok(FileMetadata::of(&rustix::fs::fstat(&self.file)?))
    }

    /// Renames the file to its final name. An existing file is replaced only with `overwrite`.
    pub(super) fn finish(&mut self, overwrite: bool) -> io::Result<()> {
        rename(&self.directory, &self.name, overwrite)?;
        self.is_finished = true;
        remove(&self.directory, &self.name.note())
    }

    /// Renames a file whose bytes are wrong, so that it can be looked at, and returns its name. It replaces an earlier one.
    pub(super) fn set_aside(&mut self) -> io::Result<Vec<u8>> {
        let to = self.name.bad();
        let from = self.name.partial();
        rustix::fs::renameat(&self.directory, &*from, &self.directory, &*to)?;
        self.is_finished = true;
        remove(&self.directory, &self.name.note())?;
        Ok(to)
    }

    /// Reads what is there into `sum`.
    pub(super) fn sum(&self, sum: &mut Summing) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        let mut at = 0;
        while at < self.length {
            match self.file.read_at(&mut buffer, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    sum.update(&buffer[..n]);
                    at += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the file and the note. Errors do no harm: nothing needs the two any more.
    pub(super) fn discard(mut self) {
        self.note = None;
    }
}

impl Drop for Partial {
    /// Removes a partial file that no other run could continue. Errors cannot be reported here.
    fn drop(&mut self) {
        if !self.is_finished && self.rest().is_none() {
            let _ = remove(&self.directory, &self.name.note());
            let _ = remove(&self.directory, &self.name.partial());
        }
    }
}

fn open_partial(directory: &OwnedFd, name: &Name, more: OFlags) -> Result<File, PartialFileError> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    let file = rustix::fs::openat(directory, name.partial(), flags, Mode::from_raw_mode(0o666))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(PartialFileError::InUse),
        locked => locked?,
    }
    let file = File::from(file);
    let meta = file.metadata()?;
    // A file with further hard links would be changed under its other names too.
    if !meta.is_file() || meta.nlink() > 1 {
        let not_ours = "the name of the partial file is used by something else";
        return Err(io::Error::other(not_ours).into());
    }
    // No link is left: another process has just finished the download.
    if meta.nlink() == 0 {
        return Err(PartialFileError::InUse);
    }
    Ok(file)
}

fn read_note(directory: &OwnedFd, name: &Name) -> Option<Note> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name.note(), flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    File::from(file)
        .take(MOST_NOTE_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Note::parse(&bytes)
}

fn rename(directory: &OwnedFd, name: &Name, overwrite: bool) -> io::Result<()> {
    let (from, to) = (name.partial(), name.file());
    if overwrite {
        return Ok(rustix::fs::renameat(directory, from, directory, to)?);
    }
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::RenameFlags;
        match rustix::fs::renameat_with(directory, &*from, directory, to, RenameFlags::NOREPLACE) {
            // Not every file system supports NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return Ok(renamed?),
        }
    }
    match rustix::fs::statat(directory, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(rustix::fs::renameat(directory, from, directory, to)?),
        Err(error) => Err(error.into()),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

fn remove(directory: &OwnedFd, name: &[u8]) -> io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether the file system distinguishes upper and lower case, tested with a temporary file.
fn cases_differ(directory: &OwnedFd) -> io::Result<bool> {
    let name = format!(".courser-probe-{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    remove(directory, name.as_bytes())?;
    rustix::fs::openat(directory, &*name, flags, Mode::from_raw_mode(0o600))?;
    let upper = name.to_ascii_uppercase();
    let other = rustix::fs::statat(directory.as_fd(), &*upper, AtFlags::SYMLINK_NOFOLLOW);
    remove(directory, name.as_bytes())?;
    Ok(other.is_err())
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Largest note in bytes: a URL, two dates and a tag, each of limited length.
const MOST_NOTE_BYTES: u64 = 64 * 1024;
