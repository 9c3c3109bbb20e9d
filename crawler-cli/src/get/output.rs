//! The output of one transfer: stdout, or a file that is created by its first byte.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use super::exit::{Exit, Failure};
use crate::stdout;
use plain::terminal::{Keep, neutralise_bytes, say};

pub(super) struct Output {
    /// `None` is stdout.
    path: Option<PathBuf>,
    /// Opened by the first write: a transfer that fails earlier leaves an existing file unchanged.
    file: Option<File>,
    /// Bytes of a body may still mess up the terminal that stdout is.
    guards_terminal: bool,
    /// `--max-filesize`
    limit: Option<u64>,
    /// Bytes of the body.
    pub(super) written: u64,
}

impl Output {
    /// The output to the file of `-o` or `-O`, if there is one. Only `-o -` says that a terminal may get any bytes.
    pub(super) fn new(path: Option<PathBuf>, limit: Option<u64>) -> Self {
        Self {
            guards_terminal: path.is_none() && io::stdout().is_terminal(),
            path: path.filter(|path| path.as_os_str() != "-"),
            file: None,
            limit,
            written: 0,
        }
    }

    /// Refuses a body that announces more than `--max-filesize`.
    pub(super) fn check_length(&self, announced: Option<u64>) -> Result<(), Failure> {
        let limit = self.limit.unwrap_or(u64::MAX);
        announced
            .filter(|length| *length > limit)
            .map_or(Ok(()), |_| Err(too_large(limit)))
    }

    /// Writes a part of the body, up to the limit.
    ///
    /// # Errors
    /// Also binary bytes among the first ones for a terminal.
    pub(super) fn body(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        // As in curl, only the first bytes count.
        if self.guards_terminal && self.written < WATCHED && bytes.contains(&0) {
            return Err(Failure::new(Exit::Write, "write", BINARY));
        }
        let limit = self.limit.unwrap_or(u64::MAX);
        let room = usize::try_from(limit - self.written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        self.write(fitting)?;
        self.written += fitting.len() as u64;
        match fitting.len() < bytes.len() {
            true => Err(too_large(limit)),
            false => Ok(()),
        }
    }

    /// Writes heads of answers. On a terminal, control characters are replaced.
    pub(super) fn heads(&mut self, heads: &[u8]) -> Result<(), Failure> {
        match self.path.is_none() && io::stdout().is_terminal() {
            true => self.write(&neutralise_bytes(heads, Keep::LineEnds)),
            false => self.write(heads),
        }
    }

    /// Ends a successful transfer: creates the file if nothing was written.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.write(b"")
    }

    /// Writes all of `bytes` at once, so that an error is reported for these bytes and not for later ones.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return write_stdout(bytes);
        };
        let failed = |error| Failure::write(path.display(), &error);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::create(path).map_err(failed)?),
        };
        file.write_all(bytes).map_err(failed)
    }
}

pub(super) fn write_stdout(bytes: &[u8]) -> Result<(), Failure> {
    stdout::write(bytes).map_err(|error| Failure::stdout(&error))
}

/// Writes one line to stderr, which a terminal does not act on.
pub(super) fn tell(line: &str) {
    say(plain::terminal::neutralise(line));
}

fn too_large(limit: u64) -> Failure {
    let cause = format_args!("the body has more than {limit} bytes");
    Failure::new(Exit::TooLarge, "response", cause)
}

const WATCHED: u64 = 2000;
const BINARY: &str = "Binary output can mess up your terminal. Use \"--output -\" to output it to your terminal anyway, or \"--output <FILE>\" to save to a file.";
