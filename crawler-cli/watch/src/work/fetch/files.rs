//! The files that a fetch job keeps: each is replaced as a whole, and a note beside it says what it is.
//!
//! A file is written under another name, reaches the disk, gets its note, and then its own name. So a process that is
//! killed leaves the old file, or the new one, or a new one that is complete and only lacks its name, which the next
//! attempt gives to it: what was fetched is not fetched again.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::work::http::Validators;
use crawl::file_names::{NOTE, PARTIAL, fnv1a, safe};
use plain::files::replace;

/// The folder of a fetch job.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// What is known about a file.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Note {
    /// Where it came from.
    pub(super) url: String,
    #[serde(flatten)]
    pub(super) validators: Validators,
    /// The firing of the schedule that fetched the file, or found it unchanged.
    pub(super) firing: String,
    pub(super) length: u64,
    pub(super) hash: u64,
}

/// The paths of a file.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    file: PathBuf,
    partial: PathBuf,
    note: PathBuf,
    /// The note while it is written.
    new_note: PathBuf,
}

/// A file that is being written.
pub(super) struct Partial<'f> {
    folder: &'f Folder,
    paths: &'f Paths,
    file: File,
    hash: Xxh3,
    length: u64,
}

impl Folder {
    /// Opens the folder, and makes it if there is none.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Where the file for a line of the list is. Different lines have different files, all of them in the folder.
    pub(super) fn paths(&self, line: &str) -> Paths {
        let name = safe(line.replace('%', "%25").as_bytes());
        let at = |parts: &[&[u8]]| self.path.join(OsStr::from_bytes(&parts.concat()));
        let short = format!("{:016x}", fnv1a(&name));
        Paths {
            file: at(&[&name]),
            partial: at(&[b".", &name, PARTIAL]),
            note: at(&[b".", &name, NOTE]),
            new_note: at(&[b".", short.as_bytes(), NOTE, b"-new"]),
        }
    }

    /// The note of a file that is there, after what a killed process left was brought to its end.
    pub(super) fn note(&self, paths: &Paths) -> io::Result<Option<Note>> {
        let Some(note) = read_note(&paths.note)? else {
            remove(&paths.partial)?;
            return Ok(None);
        };
        if let Some((length, hash)) = fingerprint(&paths.partial)? {
            if (length, hash) == (note.length, note.hash) {
                fs::rename(&paths.partial, &paths.file)?;
                self.sync()?;
            } else {
                remove(&paths.partial)?;
            }
        }
        let is_whole = match paths.file.symlink_metadata() {
            Ok(metadata) => metadata.is_file() && metadata.len() == note.length,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        Ok(is_whole.then_some(note))
    }

    /// Begins to write a file.
    pub(super) fn begin<'f>(&'f self, paths: &'f Paths) -> io::Result<Partial<'f>> {
        Ok(Partial {
            folder: self,
            paths,
            file: create(&paths.partial)?,
            hash: Xxh3::new(),
            length: 0,
        })
    }

    /// Names are on the disk after this.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl Partial<'_> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Gives the file its name. `note` gets the length and the hash of the file.
    pub(super) fn finish(self, note: Note) -> io::Result<()> {
        self.file.sync_all()?;
        let note = Note {
            length: self.length,
            hash: self.hash.digest(),
            ..note
        };
        write_note(self.paths, &note)?;
        fs::rename(&self.paths.partial, &self.paths.file)?;
        self.folder.sync()
    }

    /// Removes what was written.
    pub(super) fn discard(self) -> io::Result<()> {
        remove(&self.paths.partial)
    }
}

/// An empty file. A symbolic link of this name is not followed.
fn create(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.custom_flags(flags).open(path)
}

fn read_note(path: &Path) -> io::Result<Option<Note>> {
    match fs::read(path) {
        // A note that is damaged says nothing; the file is fetched again.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the note of a file.
pub(super) fn write_note(paths: &Paths, note: &Note) -> io::Result<()> {
    let json = serde_json::to_vec(note).map_err(io::Error::other)?;
    replace(&paths.note, &paths.new_note, 0o666, &json)
}

/// Length and hash of a file; `None` if there is none.
fn fingerprint(path: &Path) -> io::Result<Option<(u64, u64)>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let (mut hash, mut length) = (Xxh3::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Some((length, hash.digest()))),
            Ok(read) => {
                hash.update(&buffer[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(firing: &str) -> Note {
        Note {
            url: "http://h/A".to_owned(),
            firing: firing.to_owned(),
            validators: Validators {
                etag: Some("\"1\"".to_owned()),
                modified: None,
            },
            ..Note::default()
        }
    }

    fn written(folder: &Folder, paths: &Paths, text: &str, firing: &str) {
        let mut partial = folder.begin(paths).expect("a partial file");
        partial.write(text.as_bytes()).expect("room");
        partial.finish(note(firing)).expect("room");
    }

    #[test]
    fn no_line_leaves_the_folder_and_no_two_lines_share_a_file() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(&root.path().join("files")).expect("a folder");
        let lines = [
            "A",
            "a/b",
            "a%2Fb",
            "..",
            ".",
            "../../etc/passwd",
            "/etc/passwd",
            "a\\b",
            "a\nb",
            "%2E%2E",
            ".courser-note",
            "x.courser-part",
            "é",
        ];
        let mut seen = std::collections::HashSet::new();
        for line in lines {
            let paths = folder.paths(line);
            for path in [&paths.file, &paths.partial, &paths.note, &paths.new_note] {
                assert_eq!(path.parent(), Some(folder.path.as_path()), "{line}");
                assert!(seen.insert(path.clone()), "{line}: {}", path.display());
            }
            written(&folder, &paths, line, "1");
        }
        let long = "x".repeat(5000);
        written(&folder, &folder.paths(&long), "long", "1");
        let outside = fs::read_dir(root.path()).expect("a folder").count();
        assert_eq!(outside, 1);
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_knows_its_firing() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(root.path()).expect("a folder");
        let paths = folder.paths("A");
        assert_eq!(folder.note(&paths).expect("readable"), None);
        written(&folder, &paths, "one", "1");
        let mut partial = folder.begin(&paths).expect("a partial file");
        partial.write(b"tw").expect("room");
        assert_eq!(fs::read(&paths.file).expect("a file"), b"one");
        partial.discard().expect("removed");
        let kept = folder.note(&paths).expect("readable").expect("a note");
        assert_eq!((&*kept.firing, kept.length), ("1", 3));
        // A file that somebody changed is fetched again.
        fs::write(&paths.file, "longer").expect("room");
        assert_eq!(folder.note(&paths).expect("readable"), None);
    }

    /// Every moment at which the process can be killed.
    #[test]
    fn what_a_killed_process_left_is_finished_or_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(root.path()).expect("a folder");
        let paths = folder.paths("A");
        // While the partial file is written: before there was a note, and with the note of the old file.
        fs::write(&paths.partial, "tw").expect("room");
        assert_eq!(folder.note(&paths).expect("readable"), None);
        assert!(!paths.partial.exists());
        written(&folder, &paths, "one", "1");
        fs::write(&paths.partial, "tw").expect("room");
        let kept = folder.note(&paths).expect("readable").expect("a note");
        assert_eq!(kept.firing, "1");
        assert!(!paths.partial.exists());
        // After the note, before the name.
        let mut partial = folder.begin(&paths).expect("a partial file");
        partial.write(b"two").expect("room");
        let new = Note {
            length: 3,
            hash: partial.hash.digest(),
            ..note("2")
        };
        write_note(&paths, &new).expect("room");
        drop(partial);
        let kept = folder.note(&paths).expect("readable").expect("a note");
        assert_eq!(kept.firing, "2");
        assert_eq!(fs::read(&paths.file).expect("a file"), b"two");
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(&root.path().join("files")).expect("a folder");
        let (paths, outside) = (folder.paths("A"), root.path().join("outside"));
        fs::write(&outside, "mine").expect("room");
        std::os::unix::fs::symlink(&outside, &paths.partial).expect("a link");
        assert!(folder.begin(&paths).is_err());
        fs::remove_file(&paths.partial).expect("removed");
        std::os::unix::fs::symlink(&outside, &paths.file).expect("a link");
        written(&folder, &paths, "one", "1");
        assert_eq!(fs::read(&outside).expect("a file"), b"mine");
        assert_eq!(fs::read(&paths.file).expect("a file"), b"one");
    }
}
