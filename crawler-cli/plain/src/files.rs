//! Names of files beside others, and files that are read or replaced whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// What is read from a source, unless that is more than so many bytes.
pub fn at_most(most: u64, source: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Replaces a file. After a crash the file is the old one or the new one. `temporary`: the path of the new one until it is
/// whole, in the same folder; a symbolic link of that name is not followed. `mode`: who may use the new one.
pub fn replace(path: &Path, temporary: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let write = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let mut file = options.open(temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(temporary, path)?;
        sync_folder(path)
    };
    let written = write();
    if written.is_err() {
        // What is left would be replaced the next time.
        let _ = fs::remove_file(temporary);
    }
    written
}

/// The file beside this one whose name is this one's with another end. That of a symbolic link is beside what the link
/// means, so that all who use a database have the same lock.
pub fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(resolved(path));
    name.push(end);
    PathBuf::from(name)
}

/// What a symbolic link means, although it may not exist yet; another path as it is.
pub fn resolved(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// The most links that follow one another, as for the system.
const MOST_LINKS: usize = 40;

/// Makes a name in the folder of this file durable.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}
