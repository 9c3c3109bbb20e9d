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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_file(&path, b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let before = fs::metadata(&path).unwrap();
        write_file(&path, b"two").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_ne!(before.ino(), after.ino());
        assert_eq!(after.mode() & 0o7777, 0o640);
        let missing = write_file(&dir.path().join("none/file"), b"x").unwrap_err();
        assert_eq!(missing.exit.code(), 23);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        for text in ["one", "two"] {
            write_file(&link, text.as_bytes()).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn devices_are_written_to() {
        write_file("/dev/null".as_ref(), b"x").unwrap();
        let full = write_file("/dev/full".as_ref(), b"x").unwrap_err();
        assert!(full.to_string().starts_with("write: /dev/full: "), "{full}");
    }
}
