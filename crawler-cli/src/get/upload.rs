//! `-T`: the file to send, opened again for each request that sends it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use courser::Request;

use super::exit::{Exit, Failure};
use super::files::FileId;
use super::multipart::OpenForm;
use super::pipe::{not_opened, open_to_read};
use super::progress::{Counted, Counter};
use super::target::Target;

/// One `-T`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Upload {
    Stdin,
    File(PathBuf),
}

/// An opened upload.
pub(super) enum OpenUpload {
    Stdin,
    /// With its length, if that is known: pipes and devices have none.
    File(File, Option<u64>),
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

    /// Opens the upload for one request, which has until `deadline`.
    pub(super) fn open(&self, deadline: Option<Instant>) -> Result<OpenUpload, Failure> {
        let path = match self {
            Self::Stdin => return Ok(OpenUpload::Stdin),
            Self::File(path) => path,
        };
        let open = || {
            let file = open_to_read(path, deadline)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let length = metadata.is_file().then_some(metadata.len());
            Ok(OpenUpload::File(file, length))
        };
        open().map_err(|error| not_opened(Exit::Read, "read", path, &error))
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
    /// The length in bytes, if it is known.
    pub(super) fn length(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            Self::File(_, length) => *length,
            Self::Form(form) => form.length,
        }
    }

    /// The file, if there is one.
    pub(super) fn id(&self) -> Option<FileId> {
        match self {
            Self::Stdin => FileId::of(io::stdin()),
            Self::File(file, _) => FileId::of(file),
            Self::Form(_) => None,
        }
    }

    /// The bytes of the upload.
    pub(super) fn reader(self) -> Box<dyn io::Read> {
        match self {
            Self::Stdin => Box::new(io::stdin()),
            Self::File(file, _) => Box::new(file),
            Self::Form(form) => Box::new(form.body),
        }
    }

    /// Makes the upload the body of `request`.
    pub(super) fn fill(self, request: &mut Request, chunked: bool, counter: Counter) {
        match self {
            Self::Stdin => request.body_stream(Counted::new(io::stdin(), counter), None),
            Self::File(file, length) => {
                let length = length.filter(|_| !chunked);
                request.body_stream(Counted::new(file, counter), length)
            }
            Self::Form(form) => {
                let length = form.length.filter(|_| !chunked);
                request.body_stream(Counted::new(form.body, counter), length)
            }
        };
    }
}
