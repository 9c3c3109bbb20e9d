//! Reads links from the body of a good answer.

use std::borrow::Cow;
use std::io::Read as _;

use encoding_rs::UTF_8;
use url::Url;

use super::body::{AnswerBody, BodyStart};
use crate::check::links::{Document, Format, Link, Visitor, XmlError};
use crate::check::sources::{Unpacked, is_packed};
use crate::check::task::{Page, PageLink};
use crate::markup::encoding::charset;

/// The format of the page at this URL; `None` if its body cannot be read. Without a type, a path without an extension is
/// that of HTML. Many servers give sitemaps another type, above all in gzip: the name counts, too.
pub(super) fn format(url: &Url, content_type: Option<&str>) -> Option<Format> {
    let name = url.path().rsplit('/').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let unpacked = name.strip_suffix(".gz").unwrap_or(&name);
    let named = || Format::of_name(unpacked);
    match content_type {
        // An archive has an extension of its own.
        Some(content_type) if is_gzip(content_type) && !unpacked.contains('.') => Some(Format::Xml),
        Some(content_type) => Format::of_type(content_type)
            .or_else(|| named().filter(|format| *format == Format::Xml)),
        None if name.contains('.') => named(),
        None => Some(Format::Html),
    }
}

fn is_gzip(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    ["application/gzip", "application/x-gzip"]
        .iter()
        .any(|gzip| essence.eq_ignore_ascii_case(gzip))
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
    let format = match is_packed(body.start.bytes()) {
        // Its type may be that of a page.
        true => format(url, None).or(Some(Format::Xml)),
        false => format(url, content_type),
    };
    match format {
        Some(format) => read_as(format, url, &body.start, content_type.and_then(charset)),
        None => unread(url),
    }
}

/// Reads a sitemap, whatever its type. `None`: it is something else, as on servers that answer 200 for everything.
pub(super) fn read_sitemap(
    url: &Url,
    body: &BodyStart,
    content_type: Option<&str>,
) -> Option<Page> {
    // Without the zeros of UTF-16.
    let beginning = body
        .bytes()
        .iter()
        .take(BEGINNING)
        .filter(|byte| **byte != 0);
    let beginning: Vec<u8> = beginning.copied().collect();
    let has = |root: &[u8]| memchr::memmem::find(&beginning, root).is_some();
    let is_sitemap = is_packed(body.bytes()) || has(b"urlset") || has(b"sitemapindex");
    is_sitemap.then(|| read_as(Format::Xml, url, body, content_type.and_then(charset)))
}

/// The root element is within so many bytes.
const BEGINNING: usize = 64 << 10;

fn read_as(format: Format, url: &Url, body: &BodyStart, charset: Option<&str>) -> Page {
    let (unpacked, mut problem) = unpacked(body);
    let document = Document::new(format, &unpacked, charset);
    let base = document.base().and_then(|base| url.join(&base).ok());
    let mut reader = Reader {
        links: Vec::new(),
        is_full: false,
        fault: None,
    };
    let read = document.read(&mut reader);
    if reader.is_full {
        problem.get_or_insert_with(|| format!("only the first {} links were read", Page::LIMIT));
    }
    if let Some(fault) = read.err().or(reader.fault) {
        problem.get_or_insert_with(|| fault.to_string());
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
fn unpacked(body: &BodyStart) -> (Cow<'_, [u8]>, Option<String>) {
    let cut = || Some(format!("only the first {} bytes were read", body.limit()));
    let is_cut = body.is_cut().then(cut).flatten();
    if !is_packed(body.bytes()) {
        return (Cow::Borrowed(body.bytes()), is_cut);
    }
    let mut unpacked = Vec::new();
    let most = body.limit() as u64;
    let read = Unpacked::new(body.bytes())
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
    links: Vec<PageLink>,
    is_full: bool,
    /// The first.
    fault: Option<XmlError>,
}

impl Visitor for Reader {
    fn link(&mut self, link: Link<'_>) {
        if self.links.len() >= Page::LIMIT {
            self.is_full = true;
            return;
        }
        self.links.push(PageLink {
            url: link.url.into(),
            line: link.line,
            column: link.column,
            text: link.text.into(),
            kind: link.kind,
        });
    }

    fn fault(&mut self, fault: XmlError) {
        self.fault.get_or_insert(fault);
    }

    fn is_done(&self) -> bool {
        self.is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_a_page() {
        use Format::{Html, Xml};
        for (path, content_type, expected) in [
            ("/", Some("text/html"), Some(Html)),
            ("/a.xml", Some("text/html"), Some(Html)),
            ("/s.xml.gz", Some("application/gzip"), Some(Xml)),
            ("/s.xml.gz", Some("application/octet-stream"), Some(Xml)),
            ("/S.XML.GZ", Some("application/octet-stream"), Some(Xml)),
            ("/s.gz", Some("application/x-gzip; q=1"), Some(Xml)),
            ("/s", Some("application/gzip"), Some(Xml)),
            ("/s.xml", Some("text/plain"), Some(Xml)),
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
