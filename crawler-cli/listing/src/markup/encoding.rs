//! The encoding of a document, and what it means for its references.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::{memchr, memmem};
use url::{ParseError, Url};

use super::html::{self, Raw, Sink};

/// How a document declares its encoding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Declaration {
    /// By `<meta>`, or as XML.
    Html,
    /// By `<?xml encoding=...?>`.
    Xml,
    /// Not at all.
    Nowhere,
}

/// The encoding of a document, and where its text begins: that of the byte order mark, else `charset` (the label in
/// `Content-Type`), else what it declares. An unknown label counts as none.
pub fn encoding(
    bytes: &[u8],
    charset: Option<&str>,
    declaration: Declaration,
) -> Option<(&'static Encoding, usize)> {
    let given = || charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let without_mark = || given().or_else(|| declared(declaration, bytes));
    Encoding::for_bom(bytes).or_else(|| Some((without_mark()?, 0)))
}

/// The `charset` parameter of a `Content-Type`.
pub fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"'))
    })
}

/// Resolves a reference of a document in this encoding, as browsers do (WHATWG URL §4.4): the query is sent in the encoding
/// of the document, the path in UTF-8; `http:x` is relative if the base is http, too.
pub fn join(base: &Url, reference: &str, encoding: &'static Encoding) -> Result<Url, ParseError> {
    let encoding = encoding.output_encoding();
    let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| encoding.encode(query).0;
    let mut options = Url::options().base_url(Some(base));
    if encoding != UTF_8 {
        options = options.encoding_override(Some(encode));
    }
    // Of several `/`, the url crate takes what follows two for an empty host (WHATWG: special authority ignore slashes).
    let text = reference.trim_start_matches(|it: char| it <= ' ');
    let rest = text.trim_start_matches(['/', '\\']);
    match text.len() - rest.len() {
        3.. if matches!(base.scheme(), "http" | "https") => options.parse(&format!("//{rest}")),
        _ => options.parse(reference),
    }
}

/// The encoding that a document declares at its start.
fn declared(declaration: Declaration, bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(DECLARED_WITHIN)];
    let encoding = match declaration {
        Declaration::Html => in_meta(start).or_else(|| in_xml_declaration(start)),
        Declaration::Xml => in_xml_declaration(start),
        Declaration::Nowhere => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_a_content_type() {
        assert_eq!(charset("text/html"), None);
        assert_eq!(charset("text/html; charset=utf-8"), Some("utf-8"));
        let quoted = "text/html;level=1; Charset=\"ISO-8859-1\"";
        assert_eq!(charset(quoted), Some("ISO-8859-1"));
    }

    #[test]
    fn references_are_joined_as_browsers_do() {
        let base = Url::parse("http://h/docs/a").expect("a URL");
        for (reference, label, expected) in [
            ("http:there.html", "utf-8", "http://h/docs/there.html"),
            ("http:/gone/page", "utf-8", "http://h/gone/page"),
            ("HTTP:?q=1", "utf-8", "http://h/docs/a?q=1"),
            ("https:other.html", "utf-8", "https://other.html/"),
            ("http://other.html", "utf-8", "http://other.html/"),
            ("///other/x", "utf-8", "http://other/x"),
            ("\\\\/other/x", "utf-8", "http://other/x"),
            ("/s?q=\u{442}", "windows-1251", "http://h/s?q=%F2"),
            ("/\u{442}#\u{442}", "windows-1251", "http://h/%D1%82#%D1%82"),
            ("/s?q=\u{442}", "utf-16le", "http://h/s?q=%D1%82"),
        ] {
            let encoding = Encoding::for_label(label.as_bytes()).expect("known");
            let url = join(&base, reference, encoding).map(String::from);
            assert_eq!(url.as_deref(), Ok(expected), "{reference} {label}");
        }
    }
}
