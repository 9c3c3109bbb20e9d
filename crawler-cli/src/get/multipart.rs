//! The body of a form: multipart/form-data (RFC 7578) with the headers that curl gives to its parts. Files are read
//! while the body is sent.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};

use super::encoder::Encoder;
use super::exit::{Exit, Failure};
use super::form::{Content, FormArgs, Part, read_fields};

/// A form that can be sent several times.
#[derive(Debug)]
pub(super) struct Form {
    /// With its boundary.
    pub(super) content_type: Vec<u8>,
    segments: Vec<Segment>,
}

/// What is sent one after the other.
#[derive(Clone, Debug)]
enum Segment {
    Bytes(Vec<u8>),
    File(PathBuf, Encoder),
    Stdin(Arc<File>, Encoder),
}

/// A form that is being sent.
pub(super) struct OpenForm {
    /// In bytes; `None` if one of the files is no regular file, or its encoding decides.
    pub(super) length: Option<u64>,
    pub(super) body: FormBody,
}

impl Form {
    /// Reads the fields; `None` if there are none. `custom_type` is the `Content-Type` of `-H`.
    pub(super) fn new(
        args: &FormArgs,
        custom_type: Option<&[u8]>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Self>, Failure> {
        if args.fields.is_empty() {
            return Ok(None);
        }
        let parts = read_fields(&args.fields, warnings)?;
        let content_type = custom_type.unwrap_or(FORM_DATA);
        let boundary = boundary()?;
        let mut layout = Layout {
            backslashes: args.backslashes,
            segments: Vec::new(),
        };
        layout.parts(&parts, &boundary, is_type(content_type, FORM_DATA))?;
        Ok(Some(Self {
            content_type: with_boundary(content_type, &boundary),
            segments: layout.segments,
        }))
    }

    /// Begins to send the form.
    pub(super) fn open(&self) -> Result<OpenForm, Failure> {
        let mut length = Some(0_u64);
        let mut readers = VecDeque::with_capacity(self.segments.len());
        for segment in &self.segments {
            let (reader, size) = segment.open()?;
            length = length.and_then(|sum| sum.checked_add(size?));
            readers.push_back(reader);
        }
        Ok(OpenForm {
            length,
            body: FormBody { readers },
        })
    }
}

impl Segment {
    fn open(&self) -> Result<(Reader, Option<u64>), Failure> {
        let (reader, size) = match self {
            Self::Bytes(bytes) => {
                let size = bytes.len() as u64;
                (Reader::Bytes(io::Cursor::new(bytes.clone())), Some(size))
            }
            Self::File(path, encoder) => {
                let metadata = fs::metadata(path).map_err(|error| {
                    let cause = format_args!("{}: {error}", path.display());
                    Failure::new(Exit::Read, "read", cause)
                })?;
                let size = metadata.is_file().then_some(metadata.len());
                let most = size.unwrap_or(u64::MAX);
                let reader = Reader::Closed(path.clone(), most, *encoder);
                (reader, size.and_then(|size| encoder.length(size)))
            }
            Self::Stdin(file, encoder) => {
                let metadata = file.metadata();
                let size = metadata
                    .map_err(|error| {
                        Failure::new(Exit::Read, "read", format_args!("stdin: {error}"))
                    })?
                    .len();
                let reader = Reader::Open(Box::new(encoder.read(Spool(file.clone(), 0))));
                (reader, encoder.length(size))
            }
        };
        Ok((reader, size))
    }
}

/// The bytes of a form.
pub(super) struct FormBody {
    readers: VecDeque<Reader>,
}

enum Reader {
    Bytes(io::Cursor<Vec<u8>>),
    /// A file of which so many bytes will be read. Files are opened one after the other.
    Closed(PathBuf, u64, Encoder),
    Open(Box<dyn Read + Send>),
}

/// What stdin had, and the place from which the next bytes come.
struct Spool(Arc<File>, u64);

impl Read for Spool {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read_at(buffer, self.1)?;
        self.1 += count as u64;
        Ok(count)
    }
}

impl Read for FormBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(reader) = self.readers.front_mut() {
            let count = match reader {
                Reader::Bytes(bytes) => bytes.read(buffer)?,
                Reader::Closed(path, most, encoder) => {
                    let file = File::open(path)?.take(*most);
                    *reader = Reader::Open(Box::new(encoder.read(file)));
                    continue;
                }
                Reader::Open(source) => source.read(buffer)?,
            };
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.readers.pop_front();
        }
        Ok(0)
    }
}

struct Layout {
    backslashes: bool,
    segments: Vec<Segment>,
}

impl Layout {
    fn push(&mut self, bytes: &[u8]) {
        match self.segments.last_mut() {
            Some(Segment::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.segments.push(Segment::Bytes(bytes.to_vec())),
        }
    }

    /// The parts between their boundaries. `in_form`: the parts are fields of a form.
    fn parts(&mut self, parts: &[Part], boundary: &str, in_form: bool) -> Result<(), Failure> {
        for (number, part) in parts.iter().enumerate() {
            let line_end = if number == 0 { "" } else { "\r\n" };
            self.push(format!("{line_end}--{boundary}\r\n").as_bytes());
            self.part(part, in_form)?;
        }
        let line_end = if parts.is_empty() { "" } else { "\r\n" };
        self.push(format!("{line_end}--{boundary}--\r\n").as_bytes());
        Ok(())
    }

    fn part(&mut self, part: &Part, in_form: bool) -> Result<(), Failure> {
        let content_type = part.content_type.clone().or_else(|| default_type(part));
        let has = |name: &str| {
            part.headers.iter().any(|line| {
                let colon = line.iter().position(|b| *b == b':');
                colon.is_some_and(|at| line[..at].eq_ignore_ascii_case(name.as_bytes()))
            })
        };
        if !has("Content-Disposition")
            && (in_form || part.name.is_some() || part.filename.is_some())
        {
            let kind: &[u8] = if in_form { b"form-data" } else { b"attachment" };
            let mut line = [b"Content-Disposition: ", kind].concat();
            for (key, value) in [("name", &part.name), ("filename", &part.filename)] {
                if let Some(value) = value {
                    line.extend_from_slice(format!("; {key}=\"").as_bytes());
                    line.extend(self.escaped(value));
                    line.push(b'"');
                }
            }
            line.extend_from_slice(b"\r\n");
            self.push(&line);
        }
        let inner = boundary()?;
        if let Some(content_type) = content_type.as_ref().filter(|_| !has("Content-Type")) {
            let content_type = match &part.content {
                Content::Parts(_) => with_boundary(content_type, &inner),
                _ => content_type.clone(),
            };
            self.push(&[b"Content-Type: ", &content_type[..], b"\r\n"].concat());
        }
        if let Some(encoder) = part.encoder.filter(|_| !has("Content-Transfer-Encoding")) {
            let name = encoder.name();
            self.push(format!("Content-Transfer-Encoding: {name}\r\n").as_bytes());
        }
        for line in &part.headers {
            self.push(&[&line[..], b"\r\n"].concat());
        }
        self.push(b"\r\n");
        let encoder = part.encoder.unwrap_or(Encoder::Binary);
        match &part.content {
            Content::Text(text) => {
                let mut encoded = Vec::new();
                let read = encoder.read(&text[..]).read_to_end(&mut encoded);
                read.map_err(|error| {
                    let name = part.name.as_deref().unwrap_or_default().escape_ascii();
                    Failure::new(Exit::Read, "read", format_args!("--form {name}: {error}"))
                })?;
                self.push(&encoded);
            }
            Content::File(path) => self.segments.push(Segment::File(path.clone(), encoder)),
            Content::Stdin(file) => self.segments.push(Segment::Stdin(file.clone(), encoder)),
            Content::Parts(parts) => {
                let form = content_type.is_some_and(|t| is_type(&t, FORM_DATA));
                self.parts(parts, &inner, form)?;
            }
        }
        Ok(())
    }

    /// A name for between quotes. Browsers percent-encode quotes and line ends (the HTML standard), older servers expect
    /// backslashes.
    fn escaped(&self, name: &[u8]) -> Vec<u8> {
        let mut escaped = Vec::with_capacity(name.len());
        for byte in name {
            match (byte, self.backslashes) {
                (b'\r', _) => escaped.extend_from_slice(b"%0D"),
                (b'\n', _) => escaped.extend_from_slice(b"%0A"),
                (b'"', false) => escaped.extend_from_slice(b"%22"),
                (b'"' | b'\\', true) => escaped.extend_from_slice(&[b'\\', *byte]),
                _ => escaped.push(*byte),
            }
        }
        escaped
    }
}

/// The content type of a part for which none was typed.
fn default_type(part: &Part) -> Option<Vec<u8>> {
    let by_name = part.filename.as_deref().and_then(type_of_name);
    let found: Option<&str> = match &part.content {
        Content::Parts(_) => Some("multipart/mixed"),
        Content::File(path) => by_name
            .or_else(|| type_of_name(path.as_os_str().as_bytes()))
            .or(part.filename.as_ref().map(|_| "application/octet-stream")),
        Content::Text(_) | Content::Stdin(_) => by_name,
    };
    // Text is what a field is without a type (RFC 7578 §4.4).
    found
        .filter(|found| *found != "text/plain" || part.filename.is_some())
        .map(Into::into)
}

fn type_of_name(name: &[u8]) -> Option<&'static str> {
    let is = |(end, _): &&(&str, &str)| {
        let start = name.len().checked_sub(end.len());
        start.is_some_and(|start| name[start..].eq_ignore_ascii_case(end.as_bytes()))
    };
    TYPES.iter().find(is).map(|(_, found)| *found)
}

fn is_type(text: &[u8], wanted: &[u8]) -> bool {
    let Some((start, rest)) = text.split_at_checked(wanted.len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(wanted) && matches!(rest, [] | [b';' | b' ' | b'\t', ..])
}

fn with_boundary(content_type: &[u8], boundary: &str) -> Vec<u8> {
    [content_type, b"; boundary=", boundary.as_bytes()].concat()
}

/// A boundary that no content has: it is random.
fn boundary() -> Result<String, Failure> {
    let mut random = [0; 8];
    SystemRandom::new().fill(&mut random).map_err(|_| {
        Failure::new(
            Exit::Read,
            "request",
            "the system has no random bytes for a boundary",
        )
    })?;
    Ok(format!("{:->24}{:016x}", "", u64::from_ne_bytes(random)))
}

const FORM_DATA: &[u8] = b"multipart/form-data";

/// The types that curl knows by the ends of names.
const TYPES: [(&str, &str); 10] = [
    (".gif", "image/gif"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".png", "image/png"),
    (".svg", "image/svg+xml"),
    (".txt", "text/plain"),
    (".htm", "text/html"),
    (".html", "text/html"),
    (".pdf", "application/pdf"),
    (".xml", "application/xml"),
];
