//! Forms with files: multipart/form-data (RFC 7578).

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::io::{self, Read};

use bytes::{Buf as _, Bytes};

use super::request::Request;

/// A form whose fields can be files, in the form multipart/form-data (RFC 7578). See [`Request::multipart`].
///
/// ```
/// use courser::{FormPart, Multipart, Request};
///
/// let photo = FormPart::bytes(&b"\x89PNG"[..]).file_name("me.png").content_type("image/png");
/// let form = Multipart::new().text("name", "Ann").part("photo", photo);
/// let mut request = Request::post("http://a.example/people", "");
/// request.multipart(form);
/// ```
#[derive(Debug)]
pub struct Multipart {
    boundary: String,
    fields: Vec<(String, FormPart)>,
}

/// The content of one field of a [`Multipart`] form.
#[derive(Debug)]
pub struct FormPart {
    content: Content,
    file_name: Option<String>,
    content_type: Option<String>,
}

enum Content {
    Memory(Bytes),
    /// With its length.
    Reader(Box<dyn Read + Send>, Option<u64>),
}

impl Multipart {
    /// A form without fields, with a random boundary.
    pub fn new() -> Self {
        // Keys of the system's random numbers, so that no content can have the boundary on purpose.
        let random = || RandomState::new().hash_one(0_u8);
        Self {
            boundary: format!("{:016x}{:016x}", random(), random()),
            fields: Vec::new(),
        }
    }

    /// Adds a field with this text.
    #[must_use]
    pub fn text(self, name: impl Into<String>, text: impl Into<Bytes>) -> Self {
        self.part(name, FormPart::bytes(text))
    }

    /// Adds a field with this content. Several fields may have one name.
    #[must_use]
    pub fn part(mut self, name: impl Into<String>, part: FormPart) -> Self {
        self.fields.push((name.into(), part));
        self
    }

    /// What stands between the fields: 32 letters and digits.
    pub fn boundary(&self) -> &str {
        &self.boundary
    }

    pub(super) fn into_body(self) -> FormBody {
        let mut pieces = VecDeque::new();
        let mut text = String::new();
        for (name, part) in self.fields {
            text += &format!("--{}\r\n", self.boundary);
            text += &format!("Content-Disposition: form-data; name=\"{}\"", quoted(&name));
            if let Some(file_name) = part.file_name {
                text += &format!("; filename=\"{}\"", quoted(&file_name));
            }
            if let Some(content_type) = part.content_type {
                text += &format!("\r\nContent-Type: {content_type}");
            }
            text += "\r\n\r\n";
            pieces.push_back(Content::Memory(text.into()));
            pieces.push_back(part.content);
            text = "\r\n".to_owned();
        }
        text += &format!("--{}--\r\n", self.boundary);
        pieces.push_back(Content::Memory(text.into()));
        FormBody(pieces)
    }
}

impl Default for Multipart {
    fn default() -> Self {
        Self::new()
    }
}

impl FormPart {
    /// Content from memory.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::new(Content::Memory(bytes.into()))
    }

    /// Content that is read while the form is sent: `length` bytes, or with `None` all of them. A source that has fewer
    /// bytes is an error of the call. A form with such a part is read once, as [`Request::body_stream`] is, which also says
    /// what the source may do.
    ///
    /// ```no_run
    /// use std::fs::File;
    ///
    /// use courser::{FormPart, Multipart};
    ///
    /// let file = File::open("report.pdf")?;
    /// let length = file.metadata()?.len();
    /// let report = FormPart::reader(file, Some(length)).file_name("report.pdf");
    /// let form = Multipart::new().part("report", report);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reader(source: impl Read + Send + 'static, length: Option<u64>) -> Self {
        Self::new(Content::Reader(Box::new(source), length))
    }

    fn new(content: Content) -> Self {
        Self {
            content,
            file_name: None,
            content_type: None,
        }
    }

    /// Says that the content is that of a file with this name. Quotes and line ends in names are sent as browsers send
    /// them (the HTML standard): as `%22`, `%0D` and `%0A`.
    #[must_use]
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// The media type of the content. A type that is no header value makes the call fail with
    /// [`Misuse::Invalid`](crate::Misuse::Invalid).
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }
}

/// The bytes of a form, one piece after the other.
pub(super) struct FormBody(VecDeque<Content>);

impl FormBody {
    /// In bytes; `None` if the length of a piece is not known.
    pub(super) fn length(&self) -> Option<u64> {
        let mut lengths = self.0.iter().map(|piece| match piece {
            Content::Memory(bytes) => Some(bytes.len() as u64),
            Content::Reader(_, length) => *length,
        });
        lengths.try_fold(0_u64, |sum, length| sum.checked_add(length?))
    }

    /// All bytes, if all are in memory.
    pub(super) fn in_memory(&self) -> Option<Bytes> {
        let pieces = self.0.iter().map(|piece| match piece {
            Content::Memory(bytes) => Some(&bytes[..]),
            Content::Reader(..) => None,
        });
        Some(pieces.collect::<Option<Vec<_>>>()?.concat().into())
    }
}

impl Read for FormBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(piece) = self.0.front_mut() {
            let read = match piece {
                Content::Memory(bytes) => bytes.reader().read(buffer)?,
                Content::Reader(source, None) => source.read(buffer)?,
                Content::Reader(source, Some(left)) => {
                    let most =
                        usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
                    let count = source.read(&mut buffer[..most])?;
                    if count == 0 && most > 0 {
                        let cause = format!("a part of the form ended {left} bytes early");
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, cause));
                    }
                    *left -= count as u64;
                    count
                }
            };
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.0.pop_front();
        }
        Ok(0)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Reader(_, Some(length)) => write!(f, "a reader of {length} bytes"),
            Self::Reader(_, None) => f.write_str("a reader"),
        }
    }
}

/// A name for between quotes (the HTML standard, multipart/form-data encoding algorithm).
fn quoted(name: &str) -> String {
    let name = name.replace('"', "%22").replace('\r', "%0D");
    name.replace('\n', "%0A")
}

impl Request {
    /// Sets this form as the body, and its `Content-Type`. If all fields are in memory, the form can be sent several times.
    ///
    /// ```
    /// use courser::{Multipart, Request};
    ///
    /// let mut request = Request::post("http://a.example/", "");
    /// request.multipart(Multipart::new().text("name", "Ann"));
    /// let content_type = request.header("content-type").expect("set");
    /// assert!(content_type.starts_with(b"multipart/form-data; boundary="));
    /// ```
    pub fn multipart(&mut self, form: Multipart) -> &mut Self {
        let types = form.fields.iter().map(|(_, part)| &part.content_type);
        let types: Vec<_> = types.flatten().cloned().collect();
        let content_type = format!("multipart/form-data; boundary={}", form.boundary);
        self.set_header("Content-Type", content_type);
        let body = form.into_body();
        match body.in_memory() {
            Some(bytes) => self.body(bytes),
            None => {
                let length = body.length();
                self.body_stream(body, length)
            }
        };
        for content_type in types {
            self.check_part("Content-Type", content_type.as_bytes());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Misuse, Part};
    use crate::proto::Defaults;

    /// The body with `B` for the boundary, and its announced length.
    fn sent(form: Multipart) -> (String, Option<u64>) {
        let boundary = form.boundary().to_owned();
        assert_eq!(boundary.len(), 32);
        let mut body = form.into_body();
        let length = body.length();
        let mut bytes = String::new();
        body.read_to_string(&mut bytes).expect("readable");
        assert!(length.is_none_or(|length| length == bytes.len() as u64));
        (bytes.replace(&boundary, "B"), length)
    }

    #[test]
    fn fields_are_written_as_browsers_write_them() {
        let form = Multipart::new().text("a\"b\r\n", "x\r\ny").part(
            "f",
            FormPart::reader(&b"12345"[..], Some(4))
                .file_name("é\".txt")
                .content_type("text/plain"),
        );
        let (body, length) = sent(form);
        assert_eq!(
            body,
            "--B\r\nContent-Disposition: form-data; name=\"a%22b%0D%0A\"\r\n\r\nx\r\ny\r\n\
             --B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"é%22.txt\"\r\n\
             Content-Type: text/plain\r\n\r\n1234\r\n--B--\r\n"
        );
        assert!(length.is_some());
    }

    #[test]
    fn a_form_may_be_empty_and_lengths_may_be_unknown() {
        assert_eq!(sent(Multipart::new()).0, "--B--\r\n");
        let form = Multipart::new().part("a", FormPart::reader(&b"xy"[..], None));
        let (body, length) = sent(form);
        assert!(body.ends_with("\r\n\r\nxy\r\n--B--\r\n") && length.is_none());
        assert_ne!(Multipart::new().boundary(), Multipart::new().boundary());
    }

    #[test]
    fn a_part_that_is_too_short_is_an_error() {
        let part = FormPart::reader(&b"123"[..], Some(4));
        let mut body = Multipart::new().part("a", part).into_body();
        let error = body.read_to_end(&mut Vec::new()).expect_err("too short");
        assert_eq!(error.to_string(), "a part of the form ended 1 bytes early");
    }

    #[test]
    fn a_form_in_memory_can_be_sent_again() {
        let mut request = Request::post("/", "");
        request.multipart(Multipart::new().text("a", "b"));
        let defaults = Defaults::new("h", None);
        request.clone().encode(&defaults).expect("replayable");
        request.encode(&defaults).expect("valid");
        let head = String::from_utf8_lossy(request.encoded()).into_owned();
        assert!(head.contains("Content-Length: "), "{head}");
        assert!(head.contains("name=\"a\"\r\n\r\nb\r\n--"), "{head}");
    }

    #[test]
    fn a_type_adds_no_lines() {
        let part = FormPart::bytes("b").content_type("a/a\r\nX: y");
        let mut request = Request::post("/", "");
        request.multipart(Multipart::new().part("a", part));
        // The refusal belongs to the body, as the type does.
        let refused = request.clear_headers().encode(&Defaults::new("h", None));
        let Err(Misuse::Invalid { part, at, byte, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((part, at, byte), (Part::HeaderValue, 3, b'\r'));
        let other = request.body("b").encode(&Defaults::new("h", None));
        other.expect("valid");
    }
}
