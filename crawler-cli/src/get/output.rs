//! The output of transfers: stdout, or a file that is created by its first byte.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;

use super::exit::Failure;
use crate::stdout;
use crate::terminal::{Keep, neutralise_bytes};

/// The output of one transfer.
#[derive(Debug)]
pub(super) struct Sink {
    /// `None` is stdout.
    path: Option<PathBuf>,
    /// OpenUpload by the first write: a transfer that fails earlier leaves an existing file unchanged.
    file: Option<File>,
}

impl Sink {
    /// A sink for the named file; `None` and `-` are stdout.
    pub(super) fn new(name: Option<&OsStr>) -> Self {
        Self {
            path: name.filter(|name| *name != "-").map(PathBuf::from),
            file: None,
        }
    }

    /// Writes all of `bytes` at once, without buffering.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return write_stdout(bytes);
        };
        let failure = |error| Failure::write(path.display(), &error);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::create(path).map_err(failure)?),
        };
        file.write_all(bytes).map_err(failure)
    }

    /// Writes a response head. On a terminal, control characters are replaced.
    pub(super) fn write_head(&mut self, head: &[u8]) -> Result<(), Failure> {
        if self.path.is_none() && io::stdout().is_terminal() {
            return self.write(&neutralise_bytes(head, Keep::LineEnds));
        }
        self.write(head)
    }

    /// Ends a successful transfer: creates the file if nothing was written.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.write(b"")
    }
}

/// Writes and flushes, so that an error is reported for these bytes and not for later ones.
pub(super) fn write_stdout(bytes: &[u8]) -> Result<(), Failure> {
    stdout::write(bytes).map_err(|error| Failure::stdout(&error))
}

/// Writes one line to stderr. An error is ignored: there is no other place to report it.
pub(crate) fn say(line: &str) {
    let mut line = neutralise_bytes(line.as_bytes(), Keep::Nothing);
    line.push(b'\n');
    let _ = io::stderr().lock().write_all(&line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_by_its_first_byte_or_by_success() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut sink = Sink::new(Some(path.as_os_str()));
        assert!(!path.exists());
        sink.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        sink.write(b"\xff\0").unwrap();
        sink.write(b"x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"\xff\0x");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_exit_23() {
        let failure = Sink::new(Some("/nonexistent/x".as_ref()))
            .write(b"x")
            .unwrap_err();
        assert_eq!(failure.exit.code(), 23);
        assert!(!failure.reader_gone);
        assert!(
            failure.to_string().starts_with("write: /nonexistent/x: "),
            "{failure}"
        );
    }
}
