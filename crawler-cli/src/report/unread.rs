//! The file of `--unread`: what could not be read, one JSON object in each line.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{describe, named, shown};
use crate::find::Unread;

/// The file, which exists from the beginning of the search.
#[derive(Debug)]
pub(super) struct UnreadFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// The first error.
    error: Option<io::Error>,
}

impl UnreadFile {
    /// # Errors
    /// The file cannot be made. The message names it.
    pub(super) fn new(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", shown(path)))?;
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            error: None,
        })
    }

    pub(super) fn write(&mut self, unread: &Unread<'_>) {
        let line = json!({
            "url": unread.url,
            "cause": describe(unread.cause),
            "class": unread.cause.class().to_string(),
            "from": unread.from,
        });
        // Each line is there at once: the search may be killed.
        let written = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    /// # Errors
    /// Something could not be written. The error was told, with the name of the file.
    pub(super) fn close(self) -> io::Result<()> {
        named(self.error.map_or(Ok(()), Err), &self.path)
    }
}
