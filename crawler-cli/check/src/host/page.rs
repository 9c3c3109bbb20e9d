//! The bodies that are read, and the links in those of good answers.

use std::borrow::Cow;
use std::io::Read as _;

use encoding_rs::UTF_8;
use url::Url;

use super::url_check::Reply;
use crate::links::{Document, Format, Link, Visitor, XmlError};
use crate::sources::{ProblemKind, Unpacked, is_packed};
use crate::task::Page;
use listing::markup::encoding::charset;

/// The body of an answer, up to a limit.
#[derive(Debug)]
pub(super) struct AnswerBody {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) bytes: Vec<u8>,
    /// The most bytes that are kept.
    limit: usize,
    /// Whether the body was longer than what is kept.
    is_cut: bool,
}

impl AnswerBody {
    /// Nothing yet of the body of this answer, of which at most `limit` bytes are kept.
    pub(super) fn new(reply: &Reply<'_>, limit: u64) -> Self {
        Self {
            status: reply.answer.status,
            content_type: reply.content_type(),
            bytes: Vec::new(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            is_cut: false,
        }
    }

    /// Adds a part, at most `room` bytes. Returns whether more is wanted.
    pub(super) fn add(&mut self, part: &[u8], room: usize) -> bool {
        let room = room.min(self.limit - self.bytes.len());
        self.is_cut = part.len() > room;
        self.bytes.extend_from_slice(&part[..part.len().min(room)]);
        !self.is_cut
    }
}

/// The format of the page at this URL; `None` if its body cannot be read. Without a type, a path without an extension is
/// that of HTML. Many servers give sitemaps another type, above all in gzip: the name counts, too.
pub(super) fn format(url: &Url, content_type: Option<&str>) -> Option<Format> {
    let name = file_name(url);
    let unpacked = name.strip_suffix(".gz").unwrap_or(&name);
    let named = || Format::of_name(unpacked);
    match content_type {
        // What it is, its bytes say. An archive has an extension of its own.
        Some(content_type) if says_nothing(content_type) && !unpacked.contains('.') => {
            Some(Format::Xml)
        }
        Some(content_type) => Format::of_type(content_type)
            .or_else(|| named().filter(|format| *format == Format::Xml)),
        None if name.contains('.') => named(),
        None => Some(Format::Html),
    }
}

/// Whether sitemaps without an extension are sent with this type, as files of other kinds are.
fn says_nothing(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let types = ["", "application/gzip", "application/x-gzip", "text/plain"];
    types.iter().any(|it| essence.eq_ignore_ascii_case(it))
}

/// The last part of the path, in lower case.
fn file_name(url: &Url) -> String {
    let name = url.path().rsplit('/').next().unwrap_or_default();
    name.to_ascii_lowercase()
}

/// A page whose body is not read.
pub(super) fn unread(url: &Url) -> Page {
    Page {
        base: url.clone(),
        encoding: UTF_8,
        is_sitemap: false,
        links: Vec::new(),
        problem: None,
    }
}

/// Reads the links in the body of the answer for this URL.
pub(super) fn read(url: &Url, body: &AnswerBody) -> Page {
    let content_type = body.content_type.as_deref();
    let charset = content_type.and_then(charset);
    let unpacked = unpacked(body);
    // Its type may be that of a page, or of nothing.
    let name = file_name(url);
    let has_extension = name.strip_suffix(".gz").unwrap_or(&name).contains('.');
    let is_guess = content_type.is_some_and(says_nothing) && !has_extension;
    let is_damaged = is_packed(&body.bytes) && unpacked.1.is_some();
    let format = match is_damaged || is_sitemap(&unpacked.0) {
        true => Some(Format::Xml),
        false => format(url, content_type).filter(|_| !is_guess),
    };
    match format {
        Some(format) => read_as(format, url, unpacked, charset),
        None => unread(url),
    }
}

/// Whether a body without gzip has the root element of a sitemap near its beginning.
fn is_sitemap(body: &[u8]) -> bool {
    // Without the zeros of UTF-16.
    let beginning = body.iter().take(BEGINNING).filter(|byte| **byte != 0);
    let beginning: Vec<u8> = beginning.copied().collect();
    let has = |root: &[u8]| memchr::memmem::find(&beginning, root).is_some();
    let is_page = has(b"<html") || has(b"<HTML") || has(b"<body");
    !is_page && (has(b"urlset") || has(b"sitemapindex"))
}

/// Reads a sitemap, whatever its type. `None`: it is something else, as on servers that answer 200 for everything.
pub(super) fn read_sitemap(url: &Url, body: &AnswerBody) -> Option<Page> {
    let unpacked = unpacked(body);
    let is_sitemap = unpacked.1.is_some() || is_sitemap(&unpacked.0);
    let charset = body.content_type.as_deref().and_then(charset);
    is_sitemap.then(|| read_as(Format::Xml, url, unpacked, charset))
}

/// The root element is within so many bytes.
const BEGINNING: usize = 64 << 10;

fn read_as(
    format: Format,
    url: &Url,
    (unpacked, cut): (Cow<'_, [u8]>, Option<String>),
    charset: Option<&str>,
) -> Page {
    let document = Document::new(format, &unpacked, charset);
    let base = document.base().and_then(|base| url.join(&base).ok());
    let base = base.filter(|base| matches!(base.scheme(), "http" | "https"));
    let most = match format {
        Format::Xml => MOST_OF_SITEMAP,
        _ => Page::LIMIT,
    };
    let mut reader = Reader {
        links: Vec::new(),
        most,
        is_full: false,
        fault: None,
    };
    let read = document.read(&mut reader);
    let mut problem = cut.map(|cut| (ProblemKind::Cut, cut));
    if reader.is_full {
        let detail = || format!("only the first {most} links were read");
        problem.get_or_insert_with(|| (ProblemKind::Cut, detail()));
    }
    if let Some(fault) = read.err().or(reader.fault) {
        let kind = match fault.loses_nothing() {
            true => ProblemKind::Note,
            false => ProblemKind::Cut,
        };
        problem.get_or_insert_with(|| (kind, fault.to_string()));
    }
    Page {
        base: base.unwrap_or_else(|| url.clone()),
        encoding: document.encoding(),
        is_sitemap: format == Format::Xml,
        links: reader.links,
        problem,
    }
}

/// A body without gzip, and why it is not whole.
fn unpacked(body: &AnswerBody) -> (Cow<'_, [u8]>, Option<String>) {
    let cut = || Some(format!("only the first {} bytes were read", body.limit));
    let is_cut = body.is_cut.then(cut).flatten();
    if !is_packed(&body.bytes) {
        return (Cow::Borrowed(&body.bytes), is_cut);
    }
    let mut unpacked = Vec::new();
    let most = body.limit as u64;
    let read = Unpacked::new(&*body.bytes)
        .take(most)
        .read_to_end(&mut unpacked);
    let problem = match read {
        _ if is_cut.is_some() => is_cut,
        Err(error) => Some(format!("the gzip data is damaged: {error}")),
        Ok(read) if read as u64 == most => cut(),
        Ok(_) => None,
    };
    (Cow::Owned(unpacked), problem)
}

struct Reader {
    links: Vec<Link<'static>>,
    /// The most of them.
    most: usize,
    is_full: bool,
    /// The first that loses something; else the first.
    fault: Option<XmlError>,
}

/// The most links of a sitemap, with those of its images.
const MOST_OF_SITEMAP: usize = 500_000;

impl Visitor for Reader {
    fn link(&mut self, link: Link<'_>) {
        if self.links.len() >= self.most {
            self.is_full = true;
            return;
        }
        self.links.push(link.into_owned());
    }

    fn fault(&mut self, fault: XmlError) {
        if self.fault.as_ref().is_none_or(XmlError::loses_nothing) {
            self.fault = Some(fault);
        }
    }

    fn is_done(&self) -> bool {
        self.is_full
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn body(limit: usize, content_type: &str) -> AnswerBody {
        AnswerBody {
            status: 200,
            content_type: Some(content_type.to_owned()),
            bytes: Vec::new(),
            limit,
            is_cut: false,
        }
    }

    /// The links of a body with this type, and whether something is wrong.
    fn links(path: &str, content_type: &str, text: &[u8]) -> (Vec<String>, bool) {
        let mut body = body(1 << 20, content_type);
        body.add(text, 1 << 20);
        let root = Url::parse("http://h/").expect("a URL");
        let page = read(&root.join(path).expect("a URL"), &body);
        let links = page.links.iter().map(|link| link.url.to_string());
        (links.collect(), page.problem.is_some())
    }

    #[test]
    fn the_bytes_say_what_a_sitemap_is() {
        let xml = "<?xml version='1.0'?><urlset><url><loc>http://h/a</loc></url></urlset>";
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(xml.as_bytes()).expect("packed");
        let packed = packed.finish().expect("packed");
        let found = (vec!["http://h/a".to_owned()], false);
        for content_type in ["text/html", "text/plain", "application/gzip"] {
            for body in [xml.as_bytes(), &packed] {
                assert_eq!(links("/m", content_type, body), found, "{content_type}");
            }
        }
        let cut = &packed[..packed.len() - 20];
        assert!(links("/m", "application/gzip", cut).1);
        // What is neither a page nor a sitemap is not read.
        let none = links("/README", "text/plain", b"<a href=x>");
        assert_eq!(none, (vec![], false));
        let page = b"<html><base href='data:,x'><a href=b>urlset</a>";
        let found = links("/p", "text/html", page);
        assert_eq!(found, (vec!["b".to_owned()], false));
        let html = Url::parse("http://h/p").expect("a URL");
        let mut body = body(1 << 20, "text/html");
        body.add(page, 1 << 20);
        let read = read_as(Format::Html, &html, unpacked(&body), None);
        assert_eq!(read.base, html);
    }

    #[test]
    fn the_format_of_a_page() {
        use Format::{Html, Xml};
        for (path, content_type, expected) in [
            ("/", Some("text/html"), Some(Html)),
            ("/a.xml", Some("text/html"), Some(Html)),
            ("/s.xml.gz", Some("application/octet-stream"), Some(Xml)),
            ("/s.gz", Some("application/x-gzip; q=1"), Some(Xml)),
            ("/s", Some("application/gzip"), Some(Xml)),
            ("/s.xml", Some("text/plain"), Some(Xml)),
            ("/s", Some("text/plain; charset=utf-8"), Some(Xml)),
            ("/s", Some("application/octet-stream"), None),
            ("/README.md", Some("text/plain"), None),
            ("/a.tar.gz", Some("application/gzip"), None),
            ("/a", Some("image/png"), None),
            ("/s.xml.gz", None, Some(Xml)),
            ("/a.png", None, None),
            ("/a", None, Some(Html)),
        ] {
            let url = Url::parse("http://h/").and_then(|root| root.join(path));
            let format = format(&url.expect("a URL"), content_type);
            assert_eq!(format, expected, "{path} {content_type:?}");
        }
    }
}
