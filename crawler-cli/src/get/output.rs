//! The output of transfers: stdout, or a file that is created by its first byte.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal as _, Seek as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::exit::{Exit, Failure};
use super::files::{FileId, Heads, NewFile, name_in_header, same_file};
use super::plan::{Options, Transfer};
use crate::stdout;
use crate::terminal::{Keep, neutralise_bytes};

/// The output of one transfer. It outlives the attempts of a transfer that is retried.
#[derive(Debug)]
pub(super) struct Sink {
    options: Arc<Options>,
    /// `None` is stdout; empty until a header names the file.
    path: Option<PathBuf>,
    /// Opened by the first write: a transfer that fails earlier leaves an existing file unchanged.
    file: Option<File>,
    /// `-O` with `-J`: a header may name the file.
    named_by_header: bool,
    /// The server chose the name.
    of_server: bool,
    /// The length of a file that is continued, which stays.
    kept: u64,
    /// The first write appends.
    appends: bool,
    /// The local file that is copied.
    source: Option<FileId>,
    /// Of the attempt.
    deadline: Option<Instant>,
    /// `-D`
    heads: Option<Heads>,
    /// Bytes of a body may still mess up the terminal that stdout is.
    guards_terminal: bool,
    written: u64,
}

impl Sink {
    /// Only `-o -` says that a terminal may get any bytes.
    pub(super) fn new(transfer: &Transfer) -> Self {
        let name = transfer.output.as_deref();
        let path = name.filter(|name| *name != "-").map(PathBuf::from);
        Self {
            guards_terminal: name.is_none() && io::stdout().is_terminal(),
            options: transfer.options.clone(),
            path,
            file: None,
            named_by_header: transfer.named_by_header,
            of_server: false,
            kept: 0,
            appends: false,
            source: None,
            deadline: None,
            heads: None,
            written: 0,
        }
    }

    /// The path of the file; `None` is stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Begins an attempt, which has until `deadline`.
    pub(super) fn begin(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Until when the attempt has to be complete.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// `-D`: opens the file for the heads of one attempt.
    pub(super) fn open_heads(&mut self) -> Result<(), Failure> {
        self.heads = self.options.files.open_heads(self.deadline)?;
        Ok(())
    }

    /// A local file is copied, and is no place for the copy.
    pub(super) fn copies(&mut self, source: &File) -> Result<(), Failure> {
        self.source = FileId::of(source);
        if self.path.is_none() && self.source.is_some() && FileId::of(io::stdout()) == self.source {
            return Err(same_file("stdout".as_ref()));
        }
        Ok(())
    }

    /// Writes a head to the file of `-D`, if there is one.
    pub(super) fn dump_head(&mut self, head: &[u8]) -> Result<(), Failure> {
        self.heads
            .as_mut()
            .map_or(Ok(()), |heads| heads.write(head))
    }

    /// The file is continued, if it is not open yet.
    pub(super) fn append(&mut self) {
        self.appends = true;
    }

    /// Drops what an earlier attempt wrote to the file.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        let (Some(file), Some(path)) = (&mut self.file, &self.path) else {
            return Ok(());
        };
        self.written = 0;
        let mut restart = || {
            if file.metadata()?.is_file() {
                file.set_len(self.kept)?;
                file.seek(io::SeekFrom::Start(self.kept))?;
            }
            Ok(())
        };
        restart().map_err(|error| Failure::write(path.display(), &error))
    }

    /// `-J`: takes the first name that a `Content-Disposition` has, and creates the file.
    pub(super) fn name<'a>(
        &mut self,
        mut dispositions: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Failure> {
        if !self.named_by_header || self.of_server {
            return Ok(());
        }
        if let Some(name) = dispositions.find_map(name_in_header) {
            self.path = Some(self.options.files.place(OsStr::from_bytes(name)));
            self.of_server = true;
            self.write(b"")?;
        }
        Ok(())
    }

    /// Writes all of `bytes` at once, without buffering.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return write_stdout(bytes);
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                if path.as_os_str().is_empty() {
                    return Err(Failure::new(Exit::Write, "write", NO_NAME));
                }
                let (file, path) = self.options.files.create(NewFile {
                    path,
                    of_server: self.of_server,
                    append: self.appends,
                    source: self.source,
                    deadline: self.deadline,
                })?;
                if self.appends {
                    self.kept = file.metadata().map_or(0, |metadata| metadata.len());
                }
                self.path = Some(path);
                none.insert(file)
            }
        };
        let written = file.write_all(bytes);
        written.map_err(|error| match &self.path {
            Some(path) => Failure::write(path.display(), &error),
            None => Failure::stdout(&error),
        })
    }

    /// Writes a part of a body.
    ///
    /// # Errors
    /// Also binary bytes among the first ones for a terminal.
    pub(super) fn write_body(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.guards_terminal && messes_up(self.written, bytes) {
            return Err(Failure::new(Exit::Write, "write", BINARY));
        }
        self.written += bytes.len() as u64;
        self.write(bytes)
    }

    /// Writes a response head. On a terminal, control characters are replaced.
    pub(super) fn write_head(&mut self, head: &[u8]) -> Result<(), Failure> {
        if self.path.is_none() {
            return write_head(head);
        }
        self.write(head)
    }

    /// Ends a successful transfer: creates the file if nothing was written.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.write(b"")
    }

    /// `-R`: dates the file, if there is one.
    pub(super) fn set_time(&self, time: SystemTime) {
        let (Some(file), Some(path)) = (&self.file, &self.path) else {
            return;
        };
        if let Err(error) = file.set_modified(time) {
            say(&format!(
                "Warning: the time of {} is not set: {error}",
                path.display()
            ));
        }
    }

    /// `--remove-on-error`: removes the file of a transfer that failed. What an earlier transfer began stays.
    pub(super) fn remove(&mut self) {
        let (Some(file), Some(path)) = (self.file.take(), &self.path) else {
            return;
        };
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file
            && !self.appends
            && let Err(error) = std::fs::remove_file(path)
        {
            say(&format!(
                "Warning: {} is not removed: {error}",
                path.display()
            ));
        }
    }
}

/// Whether a terminal should not get these bytes of a body, after so many others. As curl, only the first bytes count.
fn messes_up(written: u64, bytes: &[u8]) -> bool {
    written < WATCHED && bytes.contains(&0)
}

/// Writes a response head to stdout. On a terminal, control characters are replaced.
pub(super) fn write_head(head: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return write_stdout(&neutralise_bytes(head, Keep::LineEnds));
    }
    write_stdout(head)
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

const WATCHED: u64 = 2000;
const BINARY: &str = "Binary output can mess up your terminal. Use \"--output -\" to output it to your terminal anyway, or \"--output <FILE>\" to save to a file.";
const NO_NAME: &str = "neither the URL nor the answer has a file name for -O";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get::plan::tests::plan;

    fn sink(name: &Path) -> Sink {
        let plan = plan(&["-o", name.to_str().unwrap(), "u"]).unwrap();
        Sink::new(&plan.sources[0].transfer(0).unwrap())
    }

    #[test]
    fn a_file_is_made_by_its_first_byte_or_by_success() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut sink = sink(&path);
        assert!(!path.exists());
        sink.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        sink.write(b"\xff\0").unwrap();
        sink.write(b"x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"\xff\0x");
        sink.restart().unwrap();
        sink.write(b"y").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"y");
        sink.remove();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_exit_23() {
        let failure = sink("/nonexistent/x".as_ref()).write(b"x").unwrap_err();
        assert_eq!(failure.exit.code(), 23);
        assert!(!failure.reader_gone);
        assert!(
            failure.to_string().starts_with("write: /nonexistent/x: "),
            "{failure}"
        );
    }

    #[test]
    fn binary_output_is_told_by_a_nul_near_the_start() {
        assert!(messes_up(0, b"a\0"));
        assert!(messes_up(1999, b"\0"));
        assert!(!messes_up(2000, b"\0"));
        assert!(!messes_up(0, b"\xff\x1b[2J"));
    }
}
