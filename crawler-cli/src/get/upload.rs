//! `-T`: the file to send, opened again for each request that sends it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser::Request;

use super::exit::{Exit, Failure};
use super::multipart::OpenForm;
use super::progress::{Counted, Counts};
use super::target::Target;

/// One `-T`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Upload {
    Stdin,
    File(PathBuf),
}

/// An opened upload.
pub(super) struct OpenUpload {
    source: Source,
    counts: Arc<Counts>,
}

enum Source {
    Stdin,
    File(File, u64),
    /// `-F`
    Form(OpenForm),
}

impl Upload {
    /// The upload with this name: `-` is stdin, an empty name is no upload.
    pub(super) fn new(name: OsString) -> Option<Self> {
        match name.as_encoded_bytes() {
            b"" => None,
            b"-" => Some(Self::Stdin),
            _ => Some(Self::File(name.into())),
        }
    }

    /// Opens the upload for one request. Its bytes are counted when they are read to be sent.
    pub(super) fn open(&self, counts: Arc<Counts>) -> Result<OpenUpload, Failure> {
        let source = match self {
            Self::Stdin => Source::Stdin,
            Self::File(path) => Self::open_file(path)?,
        };
        Ok(OpenUpload { source, counts })
    }

    fn open_file(path: &Path) -> Result<Source, Failure> {
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(Source::File(file, metadata.len()))
        };
        open().map_err(|error: io::Error| {
            Failure::new(
                Exit::Read,
                "read",
                format_args!("{}: {error}", path.display()),
            )
        })
    }

    /// Appends the file name to a URL that ends in `/`, as in curl.
    pub(super) fn name_target(&self, target: &mut Target) {
        if let Some(name) = self.file_name() {
            target.push_file_name(name.as_encoded_bytes());
        }
    }

    /// `None` for stdin.
    pub(super) fn file_name(&self) -> Option<&OsStr> {
        match self {
            Self::Stdin => None,
            Self::File(path) => path.file_name(),
        }
    }
}

impl OpenUpload {
    /// A form (`-F`).
    pub(super) fn form(form: OpenForm, counts: Arc<Counts>) -> Self {
        let source = Source::Form(form);
        Self { source, counts }
    }

    /// The length in bytes, if it is known.
    pub(super) fn length(&self) -> Option<u64> {
        match &self.source {
            Source::Stdin => None,
            Source::File(_, length) => Some(*length),
            Source::Form(form) => form.length,
        }
    }

    /// The bytes of the upload.
    pub(super) fn reader(self) -> Box<dyn io::Read> {
        match self.source {
            Source::Stdin => Box::new(Counted::new(io::stdin(), self.counts)),
            Source::File(file, _) => Box::new(Counted::new(file, self.counts)),
            Source::Form(form) => Box::new(Counted::new(form.body, self.counts)),
        }
    }

    /// Makes the upload the body of `request`.
    pub(super) fn fill(self, request: &mut Request, chunked: bool) {
        let counts = self.counts;
        match self.source {
            Source::Stdin => request.body_stream(Counted::new(io::stdin(), counts), None),
            Source::File(file, length) => {
                let length = (!chunked).then_some(length);
                request.body_stream(Counted::new(file, counts), length)
            }
            Source::Form(form) => {
                let length = form.length.filter(|_| !chunked);
                request.body_stream(Counted::new(form.body, counts), length)
            }
        };
    }
}
