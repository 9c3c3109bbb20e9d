//! The directory of all downloads, and the files in it.
//!
//! Every name is opened relative to its open parent directory, and symbolic links are not followed. So nothing is
//! written outside the directory, even if other processes change it. A file gets its name when it is complete; until
//! then, its bytes are in a partial file, and a note beside it describes the file that they belong to. A partial file
//! without a note cannot be continued, and is removed.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{Access, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, statat};
use rustix::io::Errno;

use super::answer::Note;
use super::names::Name;

/// The open directory of all downloads.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    directory: Arc<OwnedFd>,
    path: PathBuf,
}

impl Root {
    /// Opens the directory, and creates it if it does not exist. Fails if no files can be created in it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let directory = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        rustix::fs::accessat(&directory, ".", Access::WRITE_OK, AtFlags::empty())?;
        Ok(Self {
            directory: Arc::new(directory),
            path: path.to_owned(),
        })
    }

    /// The path of a file, for messages.
    pub(super) fn path_of(&self, name: &Name) -> PathBuf {
        self.path.join(name.path())
    }

    /// Opens the parent directory of a file.
    fn parent(&self, name: &Name, create: bool) -> io::Result<OwnedFd> {
        let mut directory = self.directory.try_clone()?;
        for segment in name.directories() {
            let segment = segment.as_slice();
            if create
                && let Err(error) = rustix::fs::mkdirat(&directory, segment, DIRECTORY_MODE)
                && error != Errno::EXIST
            {
                return Err(error.into());
            }
            let flags = DIRECTORY | OFlags::NOFOLLOW;
            directory = rustix::fs::openat(&directory, segment, flags, Mode::empty())?;
        }
        Ok(directory)
    }

    /// The file that exists under a name.
    ///
    /// # Errors
    /// Something else exists there (`AlreadyExists`), or the folder cannot be read.
    pub(super) fn existing(&self, name: &Name) -> io::Result<Option<FileMetadata>> {
        let stat = self
            .parent(name, false)
            .and_then(|directory| Ok(statat(&directory, name.file(), AtFlags::SYMLINK_NOFOLLOW)?));
        let Some(stat) = if_found(stat)? else {
            return Ok(None);
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some(FileMetadata {
                length: u64::try_from(stat.st_size).unwrap_or(0),
                modified: stat.st_mtime,
            })),
            _ => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// The partial file of an earlier request or run, if the download can continue it.
    pub(super) fn find_partial(&self, name: &Name, url: &str) -> io::Result<Option<Partial>> {
        let directory = self.parent(name, false);
        let opened = directory.and_then(|it| Partial::open(it, name, OFlags::empty()));
        let Some(mut partial) = if_found(opened)? else {
            return Ok(None);
        };
        partial.note = read_note(&partial.directory, name).filter(|note| note.url == url);
        // Dropping the partial file removes it if it cannot be continued.
        Ok(partial.rest().is_some().then_some(partial))
    }

    /// Creates an empty partial file for a file.
    pub(super) fn create(&self, name: &Name, note: Note) -> io::Result<Partial> {
        let directory = self.parent(name, true)?;
        let mut partial = Partial::open(directory, name, OFlags::CREATE)?;
        partial.start_over(note)?;
        Ok(partial)
    }
}

/// The metadata by which a file is compared with the file of the server, or with a listing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FileMetadata {
    pub(super) length: u64,
    /// Seconds since 1970.
    pub(super) modified: i64,
}

/// A file that is not complete yet. Its lock keeps other processes away.
#[derive(Debug)]
pub(super) struct Partial {
    directory: OwnedFd,
    file: File,
    name: Name,
    pub(super) length: u64,
    /// The length at the time of the request.
    pub(super) begun_at: u64,
    /// What the bytes are of; `None` if nothing needs them any more. On disk if it has a validator.
    pub(super) note: Option<Note>,
    is_finished: bool,
}

impl Partial {
    /// Opens a partial file and locks it; the error kind `WouldBlock` means that another process has it.
    fn open(directory: OwnedFd, name: &Name, more: OFlags) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
        let file = rustix::fs::openat(&directory, name.partial(), flags, MODE)?;
        Self::lock(directory, File::from(file), name)
    }

    /// Locks a partial file that was opened by its name.
    fn lock(directory: OwnedFd, file: File, name: &Name) -> io::Result<Self> {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let meta = file.metadata()?;
        // A file with further hard links would be changed under its other names too.
        if !meta.is_file() || meta.nlink() > 1 {
            let not_ours = "the name of the partial file is used by something else";
            return Err(io::Error::other(not_ours));
        }
        // Another process has just finished the download, or given it up.
        let named = statat(&directory, name.partial(), AtFlags::SYMLINK_NOFOLLOW);
        if !named.is_ok_and(|named| (named.st_dev, named.st_ino) == (meta.dev(), meta.ino())) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Self {
            directory,
            length: meta.len(),
            begun_at: meta.len(),
            file,
            name: name.clone(),
            note: None,
            is_finished: false,
        })
    }

    /// The offset at which the download can continue, and the note for it. `None` if it cannot.
    pub(super) fn rest(&self) -> Option<(u64, &Note)> {
        let note = self.note.as_ref()?;
        (self.length > 0 && note.validator.is_some()).then_some((self.length, note))
    }

    /// Removes the note, then the bytes, so that there is never a note beside bytes of another file.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.note = None;
        remove(&self.directory, &self.name.note())?;
        self.file.set_len(0)?;
        (self.length, self.begun_at) = (0, 0);
        Ok(())
    }

    /// Empties the file, for the bytes that the note describes.
    pub(super) fn start_over(&mut self, note: Note) -> io::Result<()> {
        self.clear()?;
        if note.validator.is_some() {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.directory, self.name.note(), flags, MODE)?;
            File::from(file).write_all(&serde_json::to_vec(&note)?)?;
        }
        self.note = Some(note);
        Ok(())
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(bytes, self.length);
        // A full disk may have taken some of them.
        self.length = match &written {
            Ok(()) => self.length + bytes.len() as u64,
            Err(_) => self.file.metadata()?.len(),
        };
        written
    }

    /// Gives the complete file its time of change and its final name. An existing file is replaced only with
    /// `overwrite`.
    pub(super) fn finish(&mut self, overwrite: bool) -> io::Result<()> {
        let modified = self.note.as_ref().and_then(|note| note.modified);
        let since = modified.and_then(|seconds| u64::try_from(seconds).ok());
        let time = since.and_then(|since| UNIX_EPOCH.checked_add(Duration::from_secs(since)));
        if let Some(time) = time {
            self.file.set_modified(time)?;
        }
        rename(&self.directory, &self.name, overwrite)?;
        self.is_finished = true;
        remove(&self.directory, &self.name.note())
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
    if !overwrite {
        let flags = RenameFlags::NOREPLACE;
        let renamed = rustix::fs::renameat_with(directory, &*from, directory, to, flags);
        // Not every file system supports NOREPLACE.
        if !matches!(renamed, Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)) {
            return Ok(renamed?);
        }
        if statat(directory, to, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
    }
    Ok(rustix::fs::renameat(directory, from, directory, to)?)
}

fn remove(directory: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let removed = rustix::fs::unlinkat(directory, name, AtFlags::empty());
    if_found(removed.map_err(io::Error::from)).map(drop)
}

/// `None` if what was to be opened, read or removed does not exist.
fn if_found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// What the user's mask leaves of it.
const MODE: Mode = Mode::from_raw_mode(0o666);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Largest note in bytes: a URL, two dates and a tag, each of limited length.
const MOST_NOTE_BYTES: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_crawl::Reply;

    #[test]
    fn a_file_that_another_process_finishes_is_not_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(folder.path()).expect("writable");
        let name = Name::of("http://h/x", None);
        let note = Note::of(&Reply::default(), "http://h/x");
        let mut first = root.create(&name, note).expect("created");
        first.write(b"all").expect("written");
        let place = root.path_of(&name);
        let directory = || root.parent(&name, false).expect("created");
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(directory(), name.partial(), flags, MODE);
        let opened = File::from(opened.expect("opened"));
        first.finish(false).expect("finished");
        drop(first);
        let error = Partial::lock(directory(), opened, &name).expect_err("finished meanwhile");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(fs::read(place).expect("a file"), b"all");
    }
}
