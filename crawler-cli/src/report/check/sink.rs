//! Where a report goes: a file, or standard output. A failure is kept until the end and named then.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use crate::stdout;

/// A file or standard output. What is added is written by [`flush`](Self::flush), or when it has become large.
#[derive(Debug)]
pub(super) struct Sink {
    /// What messages call it.
    name: String,
    /// `None`: standard output.
    file: Option<File>,
    /// Added and not written yet.
    waiting: Vec<u8>,
    /// What stopped the writing. What comes later is dropped.
    failure: Option<io::Error>,
}

impl Sink {
    /// A sink for a file, which is created now, so that an error is noticed before the check begins. `-` is standard
    /// output.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::stdout());
        }
        Ok(Self {
            name: super::super::shown(path),
            file: Some(File::create(path)?),
            waiting: Vec::new(),
            failure: None,
        })
    }

    pub(super) fn stdout() -> Self {
        Self {
            name: "standard output".to_owned(),
            file: None,
            waiting: Vec::new(),
            failure: None,
        }
    }

    pub(super) fn is_stdout(&self) -> bool {
        self.file.is_none()
    }

    /// Whether there is something to write.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What is to be written, to be added to.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Writes what is waiting if it is much.
    pub(super) fn relieve(&mut self) {
        if self.waiting.len() >= LARGE {
            self.flush();
        }
    }

    /// Writes what is waiting.
    pub(super) fn flush(&mut self) {
        if self.failure.is_none() && !self.waiting.is_empty() {
            let written = match &mut self.file {
                Some(file) => file.write_all(&self.waiting),
                None => stdout::write(&self.waiting),
            };
            self.failure = written.err();
        }
        self.waiting.clear();
    }

    /// Whether nobody reads what is written: the reader of the pipe has closed it.
    pub(super) fn is_closed(&self) -> bool {
        let error = self.failure.as_ref();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// Something could not be written. The text names the file. That a reader has closed its pipe is no error.
    pub(super) fn close(mut self) -> Result<(), String> {
        self.flush();
        match self.failure {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(format!("{}: {error}", self.name))
            }
            _ => Ok(()),
        }
    }
}

/// More than this is not kept back, in bytes.
const LARGE: usize = 64 << 10;
