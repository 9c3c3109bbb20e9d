//! The encoding of a document, and its text.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::{memchr, memmem};

use crate::markup::html::{self, Raw, Sink};

use super::Format;

/// The text of a document.
pub(super) fn text<'d>(format: Format, bytes: &'d [u8], charset: Option<&str>) -> Cow<'d, str> {
    let (encoding, start) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, length),
        None => {
            let given = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
            (
                given.or_else(|| declared(format, bytes)).unwrap_or(UTF_8),
                0,
            )
        }
    };
    encoding.decode_without_bom_handling(&bytes[start..]).0
}

/// The encoding that a document declares at its start.
fn declared(format: Format, bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(DECLARED_WITHIN)];
    let encoding = match format {
        Format::Html => in_meta(start).or_else(|| in_xml_declaration(start)),
        Format::Xml => in_xml_declaration(start),
        Format::Markdown => None,
    }?;
    // The declaration was read as ASCII (HTML §13.2.3.2).
    Some(match encoding {
        _ if encoding == UTF_16BE || encoding == UTF_16LE => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}

/// HTML §4.2.5.4
const DECLARED_WITHIN: usize = 1024;

fn in_xml_declaration(start: &[u8]) -> Option<&'static Encoding> {
    // Some programs write text before it.
    let declaration = &start[memmem::find(start, b"<?xml")? + 5..];
    let declaration = &declaration[..memchr(b'>', declaration)?];
    let value = &declaration[memmem::find(declaration, b"encoding")? + 8..];
    let value = value
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let (&quote, value) = value.split_first()?;
    let length = memchr(quote, value).filter(|_| matches!(quote, b'"' | b'\''))?;
    Encoding::for_label(&value[..length])
}

/// The encoding of `<meta charset>` or `<meta http-equiv=content-type>`.
fn in_meta(start: &[u8]) -> Option<&'static Encoding> {
    let mut sink = MetaSink::default();
    html::read(start, &mut sink);
    sink.encoding
}

#[derive(Default)]
struct MetaSink {
    is_meta: bool,
    is_content_type: bool,
    charset: Option<&'static Encoding>,
    in_content: Option<&'static Encoding>,
    encoding: Option<&'static Encoding>,
}

impl<'d> Sink<'d> for MetaSink {
    fn open(&mut self, name: &[u8]) {
        *self = Self {
            is_meta: name == b"meta",
            ..Self::default()
        };
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        if !self.is_meta {
            return;
        }
        let value = value.decode();
        match name {
            b"charset" => self.charset = Encoding::for_label(&value),
            b"http-equiv" => {
                self.is_content_type = value.trim_ascii().eq_ignore_ascii_case(b"content-type");
            }
            b"content" => {
                let lower = value.to_ascii_lowercase();
                let label = memmem::find(&lower, b"charset").map(|at| &lower[at + 7..]);
                let label = label.and_then(|rest| rest.trim_ascii_start().strip_prefix(b"="));
                let label = label.map(|label| {
                    let label = label.trim_ascii_start();
                    let label = label.trim_ascii().strip_prefix(b"\"").unwrap_or(label);
                    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b";\"'".contains(byte);
                    &label[..label.iter().position(is_end).unwrap_or(label.len())]
                });
                self.in_content = label.and_then(Encoding::for_label);
            }
            _ => {}
        }
    }

    fn opened(&mut self) {
        let in_content = self.in_content.filter(|_| self.is_content_type);
        self.encoding = self.charset.or(in_content);
    }

    fn is_done(&self) -> bool {
        self.encoding.is_some()
    }
}
