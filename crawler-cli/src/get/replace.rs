//! Replaces a file as a whole: if the new content cannot be written, the old one stays.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::exit::Failure;
use super::output::write_stdout;

/// Writes all of a file; `-` is stdout.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    // A second descriptor would cut off what stdout has already, if that is a file.
    if ["-", "/dev/stdout"]
        .iter()
        .any(|name| path.as_os_str() == *name)
    {
        return write_stdout(bytes);
    }
    replace(path, bytes).map_err(|error| Failure::write(path.display(), &error))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some((target, old)) = replaceable(path)? else {
        return fs::write(path, bytes);
    };
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let staged = tempfile::Builder::new()
        .prefix(".crawler-cli-")
        .permissions(Permissions::from_mode(USUAL_MODE))
        .tempfile_in(folder);
    let mut staged = match staged {
        Ok(staged) => staged,
        // The file may be written, but not its folder.
        Err(error) if old.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            return fs::write(path, bytes);
        }
        Err(error) => return Err(error),
    };
    if let Some(old) = &old
        && !take_after(staged.as_file(), old)?
    {
        return fs::write(path, bytes);
    }
    staged.write_all(bytes)?;
    match staged.persist(&target) {
        Ok(_) => Ok(()),
        // The file is a mount of its own.
        Err(error) if error.error.kind() == io::ErrorKind::ResourceBusy => fs::write(path, bytes),
        Err(error) => Err(error.error),
    }
}

/// The path of the file, without links, and what is there already. `None`: what is there is no file that another one can
/// take the place of.
fn replaceable(path: &Path) -> io::Result<Option<(PathBuf, Option<Metadata>)>> {
    // Names of descriptors and devices.
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return Ok(None);
    }
    match fs::metadata(path) {
        Ok(old) if old.is_file() => {
            // A file that must not be written must not be replaced.
            OpenOptions::new().write(true).open(path)?;
            Ok(Some((fs::canonicalize(path)?, Some(old))))
        }
        Ok(_) => Ok(None),
        // A link to nothing makes the file that it names.
        Err(_) if fs::symlink_metadata(path).is_ok() => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some((path.to_owned(), None))),
        Err(error) => Err(error),
    }
}

/// Gives the new file the mode and the owner of the old one. False if that is not allowed.
fn take_after(new: &File, old: &Metadata) -> io::Result<bool> {
    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (old.uid(), old.gid())
        && std::os::unix::fs::fchown(new, Some(old.uid()), Some(old.gid())).is_err()
    {
        return Ok(false);
    }
    new.set_permissions(old.permissions())?;
    Ok(true)
}

/// Of a new file, before the umask.
const USUAL_MODE: u32 = 0o666;
