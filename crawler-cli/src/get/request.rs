//! The request of a transfer: method, header lines and body. The engine frames the body.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Cursor, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use courser::{Bytes, Codings, Request};
use listing::path::NOT_UNRESERVED;
use percent_encoding::{AsciiSet, percent_encode, utf8_percent_encode};

use super::exit::Failure;
use super::options::{Data, RequestOptions};
use plain::files::at_most;

/// What the requests of one group have in common.
pub(super) struct Template {
    pub(super) options: RequestOptions,
    headers: Vec<Header>,
    /// `-d` and `--data-binary`
    data: Option<Payload>,
    /// `-T`, one for each URL: the name of the file, and its content.
    uploads: Vec<(PathBuf, Payload)>,
}

/// A body to send.
pub(super) enum Payload {
    Bytes(Bytes),
    /// A file, which is read while it is sent, as often as it is sent: the one that was opened, whatever becomes of its name.
    File(PathBuf),
    /// A pipe, or [`STDIN`]: it can be sent once.
    Pipe(PathBuf),
}

/// A `-H`.
struct Header {
    name: String,
    /// `None`, for `Name:`: the header is not sent, even if it has a default.
    value: Option<Vec<u8>>,
}

impl Template {
    /// Checks the options and reads the files that they name.
    pub(super) fn new(options: RequestOptions, data: &[Data]) -> Result<Self, Failure> {
        let asked = [
            options.head,
            !data.is_empty(),
            !options.upload_file.is_empty(),
        ];
        if asked.iter().filter(|is_asked| **is_asked).count() > 1 {
            return Err(Failure::usage("-I, -d and -T exclude each other"));
        }
        Ok(Self {
            headers: read_headers(&options.header)?,
            data: read_data(data)?,
            uploads: read_uploads(&options.upload_file)?,
            options,
        })
    }

    /// The pipe that the body for the URL with this number comes from, for messages.
    pub(super) fn pipe(&self, number: usize) -> Option<String> {
        match self.payload(number)? {
            Payload::Bytes(_) | Payload::File(_) => None,
            Payload::Pipe(path) if path == STDIN => Some("standard input".to_owned()),
            Payload::Pipe(path) => Some(path.display().to_string()),
        }
    }

    fn payload(&self, number: usize) -> Option<&Payload> {
        let upload = self.uploads.get(number).map(|(_, payload)| payload);
        upload.or(self.data.as_ref())
    }

    /// The URL with this number as it is sent: as typed, with the default scheme, with bytes outside ASCII
    /// percent-encoded, and with the name of the file that is put into a folder.
    pub(super) fn url(&self, typed: &str, number: usize) -> String {
        let is_of_scheme = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        let (scheme, rest) = match typed.split_once("://") {
            Some((scheme, rest)) if scheme.bytes().all(is_of_scheme) => (scheme, rest),
            _ => ("http", typed),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let mut path = utf8_percent_encode(path, NOT_ASCII).to_string();
        let end = path.find(['?', '#']).unwrap_or(path.len());
        if let Some((file, _)) = self.uploads.get(number)
            && let Some(name) = file.file_name().filter(|name| *name != STDIN)
            && path[..end].ends_with('/')
        {
            let name = percent_encode(name.as_bytes(), NOT_UNRESERVED).to_string();
            path.insert_str(end, &name);
        }
        format!("{scheme}://{authority}{path}")
    }

    /// The request for the URL with this number.
    ///
    /// # Errors
    /// The file to send cannot be opened.
    pub(super) fn request(&self, url: String, number: usize) -> Result<Request, Failure> {
        let usual = match () {
            () if self.options.head => "HEAD",
            () if self.uploads.get(number).is_some() => "PUT",
            () if self.data.is_some() => "POST",
            () => "GET",
        };
        let mut request = Request::new(self.options.request.as_deref().unwrap_or(usual), url);
        if let Some((user, password)) = self
            .options
            .user
            .as_ref()
            .and_then(|user| user.split_once(':'))
            && !self.names("Authorization")
        {
            request.basic_auth(user, password);
        }
        let mut set = |name: &str, value: &[u8]| {
            if !self.names(name) {
                request.add_header(name, value);
            }
        };
        if let Some(range) = &self.options.range {
            set("Range", format!("bytes={range}").as_bytes());
        }
        set("Accept", b"*/*");
        if !self.options.cookie.is_empty() {
            set("Cookie", self.options.cookie.join("; ").as_bytes());
        }
        if usual == "POST" {
            set("Content-Type", b"application/x-www-form-urlencoded");
        }
        if self.options.compressed {
            request.decode(Codings::all());
        }
        let mut is_chunked = false;
        for Header { name, value } in &self.headers {
            let is = |own: &str| name.eq_ignore_ascii_case(own);
            // The engine frames the body: what a header says about that is a setting.
            match value.as_deref() {
                Some(b"100-continue") if is("Expect") => request.expect_continue(EXPECT_WAIT),
                Some(b"chunked") if is("Transfer-Encoding") => {
                    is_chunked = true;
                    &mut request
                }
                Some(value) => request.add_header(name, value),
                None if is("Host") => request.no_host(),
                None if is("User-Agent") => request.no_user_agent(),
                None => &mut request,
            };
        }
        if let Some(payload) = self.payload(number) {
            let length = payload.fill(&mut request, is_chunked)?;
            if length.is_none_or(|length| length > EXPECT_ABOVE) && !self.names("Expect") {
                request.expect_continue(EXPECT_WAIT);
            }
        }
        Ok(request)
    }

    /// Whether a `-H` has this name.
    fn names(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.name.eq_ignore_ascii_case(name))
    }
}

impl Payload {
    /// The content of the file with this name.
    fn of_file(path: &Path) -> Result<Self, Failure> {
        // To open a pipe may wait for its writer.
        let is_file = || Ok(path != STDIN && fs::metadata(path)?.is_file());
        match is_file().and_then(|is_file| Ok(is_file && File::open(path).map(|_| true)?)) {
            Ok(true) => Ok(Self::File(path.to_owned())),
            Ok(false) => Ok(Self::Pipe(path.to_owned())),
            Err(error) => Err(Failure::read(path.display(), &error)),
        }
    }

    /// Makes this the body of `request`, and returns its length if that is known.
    fn fill(&self, request: &mut Request, is_chunked: bool) -> Result<Option<u64>, Failure> {
        let failed = |path: &Path, error| Failure::read(path.display(), &error);
        let declared = |length: u64| (!is_chunked).then_some(length);
        match self {
            Self::Bytes(bytes) => {
                let length = bytes.len() as u64;
                match is_chunked {
                    false => request.body(bytes.clone()),
                    true => {
                        let bytes = bytes.clone();
                        request.body_opened(move || Ok(Cursor::new(bytes.clone())), None)
                    }
                };
                Ok(Some(length))
            }
            Self::File(path) => {
                let file = File::open(path).map_err(|error| failed(path, error))?;
                let metadata = file.metadata().map_err(|error| failed(path, error))?;
                let length = metadata.len();
                let again = move || {
                    let mut file = file.try_clone()?;
                    file.rewind()?;
                    Ok(file)
                };
                request.body_opened(again, declared(length));
                Ok(Some(length))
            }
            Self::Pipe(path) if path == STDIN => {
                request.body_stream(io::stdin(), None);
                Ok(None)
            }
            Self::Pipe(path) => {
                let pipe = File::open(path).map_err(|error| failed(path, error))?;
                request.body_stream(pipe, None);
                Ok(None)
            }
        }
    }
}

/// All pieces of data, joined by `&`; `None` if there are no pieces. Only a file that is the whole of it can be large.
fn read_data(data: &[Data]) -> Result<Option<Payload>, Failure> {
    if let [Data::Binary(typed)] = data
        && let Some(file) = typed.as_bytes().strip_prefix(b"@")
        && file != b"-"
    {
        let path = Path::new(OsStr::from_bytes(file));
        let payload = Payload::of_file(path)?;
        // The length of some files is known only when they are read.
        let bytes = match &payload {
            Payload::File(path) => File::open(path).and_then(|file| at_most(MOST_KEPT, file)),
            Payload::Bytes(_) | Payload::Pipe(_) => Ok(None),
        };
        let bytes = bytes.map_err(|error| Failure::read(path.display(), &error))?;
        return Ok(Some(
            bytes.map_or(payload, |bytes| Payload::Bytes(bytes.into())),
        ));
    }
    let mut pieces = Vec::new();
    for piece in data {
        pieces.push(match piece {
            Data::Binary(typed) => typed_or_file(typed)?,
            Data::Ascii(typed) => {
                let mut bytes = typed_or_file(typed)?;
                let is_file = typed.as_bytes().starts_with(b"@");
                bytes.retain(|b| !is_file || !matches!(b, b'\r' | b'\n' | 0));
                bytes
            }
        });
    }
    Ok((!pieces.is_empty()).then(|| Payload::Bytes(pieces.join(&b'&').into())))
}

fn read_uploads(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Payload)>, Failure> {
    if paths.iter().filter(|path| *path == STDIN).count() > 1 {
        return Err(Failure::usage("-T -: standard input can be sent once"));
    }
    let read = |path: &PathBuf| Ok((path.clone(), Payload::of_file(path)?));
    paths.iter().map(read).collect()
}

/// The header lines of `-H`: `Name: value`, `Name;` for an empty one, `Name:` to remove, or `@file` with such lines.
fn read_headers(typed: &[OsString]) -> Result<Vec<Header>, Failure> {
    let mut headers = Vec::new();
    for typed in typed {
        let is_file = typed.as_bytes().starts_with(b"@");
        let text = typed_or_file(typed)?;
        // What is typed is one line, whatever its bytes are.
        for line in text
            .split(|b| is_file && *b == b'\n')
            .map(<[u8]>::trim_ascii)
        {
            if !is_file || !line.is_empty() {
                headers.push(header(line)?);
            }
        }
    }
    Ok(headers)
}

fn header(line: &[u8]) -> Result<Header, Failure> {
    let colon = line.iter().position(|b| *b == b':');
    let (name, value) = match (colon, line.strip_suffix(b";")) {
        (Some(colon), _) => {
            let value = line[colon + 1..].trim_ascii();
            (&line[..colon], (!value.is_empty()).then(|| value.to_vec()))
        }
        (None, Some(name)) => (name, Some(Vec::new())),
        (None, None) => return Err(Failure::usage("-H: a header without a colon")),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    Ok(Header { name, value })
}

/// The typed bytes, or the content of the file in `@name`; `@-` is standard input.
pub(super) fn typed_or_file(typed: &OsStr) -> Result<Vec<u8>, Failure> {
    let Some(name) = typed.as_bytes().strip_prefix(b"@") else {
        return Ok(typed.as_bytes().to_vec());
    };
    let path = Path::new(OsStr::from_bytes(name));
    let read = match path == STDIN {
        true => at_most(MOST_KEPT, io::stdin().lock()),
        false => File::open(path).and_then(|file| at_most(MOST_KEPT, file)),
    };
    let read = read.and_then(|bytes| bytes.ok_or_else(|| io::Error::other("more than 64 MiB")));
    read.map_err(|error| Failure::read(path.display(), &error))
}

/// The name of standard input.
const STDIN: &str = "-";
/// The most bytes of a file that are kept in memory to be sent.
const MOST_KEPT: u64 = 64 << 20;
/// Longer bodies, in bytes, wait for a 100 (Continue), as in curl.
const EXPECT_ABOVE: u64 = 1 << 20;
/// How long such a body waits, as in curl.
const EXPECT_WAIT: Duration = Duration::from_secs(1);
/// Nothing but bytes outside ASCII is encoded.
const NOT_ASCII: &AsciiSet = &AsciiSet::EMPTY;
