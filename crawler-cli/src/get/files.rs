//! The files that transfers leave behind: their names, and by which rules they are created, continued, dated and removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::{FileType, Stat};

use super::exit::{Exit, Failure};
use super::output::write_head;
use super::pipe::{not_opened, open_to_write};
use super::replace::write_file;

/// The options about files, as typed.
#[derive(Debug, Default)]
pub(crate) struct FileArgs {
    /// `--output-dir`
    pub(crate) directory: Option<OsString>,
    /// `--create-dirs`
    pub(crate) create_directories: bool,
    pub(crate) clobber: Clobber,
    /// `-J`
    pub(crate) named_by_header: bool,
    /// `--remove-on-error`
    pub(crate) remove_on_error: bool,
    /// `-R`
    pub(crate) remote_time: bool,
    /// `-C`
    pub(crate) resume: Option<Resume>,
    /// `-D`
    pub(crate) heads: Option<OsString>,
    /// `--etag-save`
    pub(crate) etag: Option<OsString>,
    /// `--etag-compare`
    pub(crate) compared_etag: Option<OsString>,
    /// `--create-file-mode`
    pub(crate) mode: Option<u32>,
    /// The numbers of URLs before which `--remote-name-all` was switched on or off.
    pub(crate) remote_names: Vec<(usize, bool)>,
}

impl FileArgs {
    /// Whether a URL with this number and without `-o` has the output of `-O`.
    pub(super) fn is_remote_name(&self, url: usize) -> bool {
        let mut switches = self.remote_names.iter().rev();
        let last = switches.find(|(at, _)| *at <= url);
        last.is_some_and(|(_, on)| *on)
    }
}

/// `--clobber`, `--no-clobber`, or neither.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Clobber {
    /// Existing files are replaced, but not by a name that the server chooses.
    #[default]
    Chosen,
    Always,
    /// Another name is used: `name.1` up to `name.99`.
    Never,
}

/// `-C`: where a transfer goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Resume {
    At(u64),
    /// `-`: at the end of the output file.
    AtEnd,
}

/// A regular file, whatever its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// `None`: what is open there is no regular file.
    pub(super) fn of(file: impl AsFd) -> Option<Self> {
        Self::new(&rustix::fs::fstat(file).ok()?)
    }

    fn at(path: &Path) -> Option<Self> {
        Self::new(&rustix::fs::stat(path).ok()?)
    }

    fn new(stat: &Stat) -> Option<Self> {
        let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
        is_file.then_some(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }
}

/// An output file that is to be opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewFile<'a> {
    pub(super) path: &'a Path,
    /// The server chose the name.
    pub(super) of_server: bool,
    pub(super) append: bool,
    /// The local file that is copied: it must not be written to.
    pub(super) source: Option<FileId>,
    pub(super) deadline: Option<Instant>,
}

/// The options about files of one group.
#[derive(Debug, Default)]
pub(super) struct FileOptions {
    directory: Option<PathBuf>,
    create_directories: bool,
    clobber: Clobber,
    pub(super) named_by_header: bool,
    pub(super) remove_on_error: bool,
    pub(super) remote_time: bool,
    resume: Option<Resume>,
    heads: Option<OsString>,
    /// Whether a transfer has written to the file of `-D`: later transfers append.
    heads_begun: Mutex<bool>,
    etag: Option<OsString>,
    pub(super) mode: Option<u32>,
}

impl FileOptions {
    pub(super) fn new(args: FileArgs) -> Self {
        Self {
            directory: args.directory.map(PathBuf::from),
            create_directories: args.create_directories,
            clobber: args.clobber,
            named_by_header: args.named_by_header,
            remove_on_error: args.remove_on_error,
            remote_time: args.remote_time,
            resume: args.resume,
            heads: args.heads,
            heads_begun: Mutex::new(false),
            etag: args.etag,
            mode: args.mode,
        }
    }

    /// The path of a file with this name.
    pub(super) fn place(&self, name: &OsStr) -> PathBuf {
        let name = Path::new(name);
        match &self.directory {
            // A name from the root of the file system is in the directory, too.
            Some(directory) => directory.join(name.strip_prefix("/").unwrap_or(name)),
            None => name.to_owned(),
        }
    }

    /// How many bytes of the resource are there already, with the output in this file.
    pub(super) fn resume_at(&self, output: Option<&Path>) -> u64 {
        match self.resume {
            None => 0,
            Some(Resume::At(at)) => at,
            Some(Resume::AtEnd) => {
                let metadata = output.and_then(|path| fs::metadata(path).ok());
                metadata.map_or(0, |metadata| metadata.len())
            }
        }
    }

    /// Creates the output file, or opens it to append to it. Returns its path, which may have got a number.
    pub(super) fn create(&self, new: NewFile<'_>) -> Result<(File, PathBuf), Failure> {
        let path = new.path;
        let failed = |error: io::Error| not_opened(Exit::Write, "write", path, &error);
        let open = |options: &OpenOptions| {
            if new.source.is_some() && FileId::at(path) == new.source {
                return Err(same_file(path));
            }
            let file = open_to_write(path, options, new.deadline).map_err(failed)?;
            Ok((file, path.to_owned()))
        };
        if let Some(parent) = path.parent().filter(|_| self.create_directories) {
            // curl's mode.
            let made = DirBuilder::new().recursive(true).mode(0o750).create(parent);
            made.map_err(|error| Failure::write(parent.display(), &error))?;
        }
        if new.append {
            return open(OpenOptions::new().append(true).create(true));
        }
        // A server shall not replace files that programs read without being told to, such as `.bashrc`.
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"."));
        let replaces = match self.clobber {
            Clobber::Chosen => !new.of_server,
            Clobber::Always => !(new.of_server && is_hidden),
            Clobber::Never => false,
        };
        if replaces {
            return open(OpenOptions::new().write(true).create(true).truncate(true));
        }
        let numbers = match self.clobber {
            Clobber::Never => 0..=LAST_NUMBER,
            Clobber::Chosen | Clobber::Always => 0..=0,
        };
        let mut error = io::Error::from(io::ErrorKind::AlreadyExists);
        for number in numbers {
            let mut name = path.as_os_str().to_owned();
            if number > 0 {
                name.push(format!(".{number}"));
            }
            match File::create_new(&name) {
                Ok(file) => return Ok((file, name.into())),
                Err(other) => error = other,
            }
            if error.kind() != io::ErrorKind::AlreadyExists {
                break;
            }
        }
        Err(failed(error))
    }

    /// `-D`: where the heads of responses go; `None` without the option.
    pub(super) fn open_heads(&self, deadline: Option<Instant>) -> Result<Option<Heads>, Failure> {
        let Some(name) = &self.heads else {
            return Ok(None);
        };
        if name == "-" {
            return Ok(Some(Heads { file: None }));
        }
        // Held until the file is open: another transfer must not truncate what this one writes.
        let mut begun = self
            .heads_begun
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let again = std::mem::replace(&mut *begun, true);
        let path = Path::new(name);
        // Every transfer appends: those that run at the same time must not write over each other.
        let options = OpenOptions::new().append(true).create(true).to_owned();
        let failed = |error: io::Error| not_opened(Exit::Write, "write", path, &error);
        let file = open_to_write(path, &options, deadline).map_err(failed)?;
        if !again && FileId::of(&file).is_some() {
            file.set_len(0).map_err(failed)?;
        }
        Ok(Some(Heads {
            file: Some((file, name.into())),
        }))
    }

    /// `--etag-save`: checks before the request that the file can be written.
    pub(super) fn check_etag(&self) -> Result<(), Failure> {
        match &self.etag {
            Some(name) if name != "-" => {
                let mut options = OpenOptions::new();
                let file = options.create(true).append(true).open(name);
                file.map(drop).map_err(|error| {
                    Failure::new(
                        Exit::Read,
                        "write",
                        format_args!("{}: {error}", name.display()),
                    )
                })
            }
            _ => Ok(()),
        }
    }

    /// `--etag-save`: a response without an `ETag` leaves the file as it is.
    pub(super) fn save_etag(&self, etag: Option<&[u8]>) -> Result<(), Failure> {
        let (Some(name), Some(etag)) = (&self.etag, etag) else {
            return Ok(());
        };
        let line = [etag.trim_ascii(), b"\n"].concat();
        write_file(Path::new(name), &line)
    }
}

/// Where the heads of responses go besides the output.
#[derive(Debug)]
pub(super) struct Heads {
    /// `None` is stdout.
    file: Option<(File, PathBuf)>,
}

impl Heads {
    pub(super) fn write(&mut self, head: &[u8]) -> Result<(), Failure> {
        match &mut self.file {
            None => write_head(head),
            Some((file, path)) => file
                .write_all(head)
                .map_err(|error| Failure::write(path.display(), &error)),
        }
    }
}

/// The failure of a file that would be lost, because it is read and written at the same time.
pub(super) fn same_file(path: &Path) -> Failure {
    let cause = format_args!("{}: it is the file that is read", path.display());
    Failure::new(Exit::Write, "write", cause)
}

/// The file name for `-O`: the last segment of the URL's path as typed; empty without one.
pub(super) fn remote_name(url: &[u8]) -> &[u8] {
    let end = url.iter().position(|b| matches!(b, b'?' | b'#'));
    let url = &url[..end.unwrap_or(url.len())];
    let host = url
        .windows(3)
        .position(|w| w == b"://")
        .map_or(0, |at| at + 3);
    match url[host..].iter().rposition(|b| *b == b'/') {
        Some(at) => &url[host + at + 1..],
        None => &[],
    }
}

/// The file name of a `Content-Disposition` (RFC 6266), without any directory before it; `None` without one. The form
/// `filename*=` is passed over, as by curl.
pub(super) fn name_in_header(value: &[u8]) -> Option<&[u8]> {
    let mut rest = value;
    let typed = loop {
        let letter = rest.iter().position(u8::is_ascii_alphabetic)?;
        rest = &rest[letter..];
        if let Some(typed) = rest.strip_prefix(b"filename=") {
            break typed;
        }
        let semicolon = rest.iter().position(|b| *b == b';')?;
        rest = &rest[semicolon..];
    };
    let (typed, stop) = match typed {
        [quote @ (b'"' | b'\''), typed @ ..] => (typed, *quote),
        typed => (typed, b';'),
    };
    let end = typed.iter().position(|b| *b == stop);
    let typed = &typed[..end.unwrap_or(typed.len())];
    let start = typed.iter().rposition(|b| matches!(b, b'/' | b'\\'));
    let name = &typed[start.map_or(0, |at| at + 1)..];
    let is_name = !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
    is_name.then_some(name)
}

/// curl's limit for `--no-clobber`.
const LAST_NUMBER: u32 = 99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_in_urls() {
        for (url, name) in [
            ("http://h/a/b.txt?q=/x#/y", "b.txt"),
            ("h/%20;b", "%20;b"),
            ("http://h/a/", ""),
            ("http://h", ""),
            ("h?a/b", ""),
        ] {
            assert_eq!(remote_name(url.as_bytes()), name.as_bytes(), "{url}");
        }
    }
}
