//! Opens sources: gzip is unpacked, and what a source holds is told by its name or its beginning.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::check::links::Format;

/// What is read from: without gzip, with a buffer.
pub(super) type Source = BufReader<Box<dyn Read>>;

/// What a source holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Document(Format),
    JsonLines,
    Csv,
}

impl Kind {
    /// What the name of a file says. `.gz` at its end is ignored.
    pub(super) fn of_path(path: &Path) -> Option<Self> {
        Self::of_name(&path.file_name()?.to_string_lossy())
    }

    fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let (_, extension) = name.rsplit_once('.')?;
        match extension {
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            _ => Format::of_name(name).map(Self::Document),
        }
    }

    /// What the beginning of a source says.
    fn of_beginning(bytes: &[u8]) -> Self {
        let text = bytes.strip_prefix(BOM).unwrap_or(bytes).trim_ascii_start();
        let begins = |with: &str| {
            let start = text.get(..with.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
        };
        // The tags are those of the MIME sniffing standard.
        let ends = |tag: &str| matches!(text.get(tag.len()), Some(b' ' | b'>' | b'\n' | b'\t'));
        if begins("<?xml") {
            let is_html = |tag: &[u8]| text.windows(tag.len()).any(|w| w.eq_ignore_ascii_case(tag));
            return Self::Document(match is_html(b"<html") || is_html(b"<!doctype html") {
                true => Format::Html,
                false => Format::Xml,
            });
        }
        if XML_ROOTS.iter().any(|tag| begins(tag)) {
            return Self::Document(Format::Xml);
        }
        if begins("<!--") || HTML_TAGS.iter().any(|tag| begins(tag) && ends(tag)) {
            return Self::Document(Format::Html);
        }
        match begins("{\"") {
            true => Self::JsonLines,
            false => Self::Document(Format::Text),
        }
    }
}

/// A source that was opened.
pub(super) struct Opened {
    pub(super) reader: Source,
    /// Whether it is compressed.
    pub(super) is_packed: bool,
}

/// A source, and what it holds.
pub(super) struct Content {
    pub(super) kind: Kind,
    pub(super) reader: Source,
}

impl Opened {
    pub(super) fn new(mut file: File) -> io::Result<Self> {
        let beginning = beginning(&mut file, GZIP.len())?;
        let is_packed = beginning == GZIP;
        let bytes = Cursor::new(beginning).chain(file);
        let reader: Box<dyn Read> = match is_packed {
            true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, bytes))),
            false => Box::new(bytes),
        };
        Ok(Self {
            reader: BufReader::with_capacity(BUFFER, reader),
            is_packed,
        })
    }

    /// With what the source holds: `kind` if that is known, else what its beginning says.
    pub(super) fn content(mut self, kind: Option<Kind>) -> io::Result<Content> {
        if let Some(kind) = kind {
            let reader = self.reader;
            return Ok(Content { kind, reader });
        }
        let beginning = beginning(&mut self.reader, SNIFFED)?;
        let kind = Kind::of_beginning(&beginning);
        let bytes: Box<dyn Read> = Box::new(Cursor::new(beginning).chain(self.reader));
        let reader = BufReader::with_capacity(BUFFER, bytes);
        Ok(Content { kind, reader })
    }
}

/// The first bytes, `length` of them unless there are less. Cut gzip data counts as an end here; the reader meets the
/// error again.
fn beginning(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    let limit = u64::try_from(length).unwrap_or(u64::MAX);
    match reader.take(limit).read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}

const GZIP: &[u8] = b"\x1f\x8b";
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";
const BUFFER: usize = 64 << 10;
/// How much of a source is looked at to tell what it holds.
const SNIFFED: usize = 1024;
const XML_ROOTS: &[&str] = &["<urlset", "<sitemapindex", "<rss", "<feed"];
const HTML_TAGS: &[&str] = &[
    "<!doctype html",
    "<html",
    "<head",
    "<script",
    "<iframe",
    "<h1",
    "<div",
    "<font",
    "<table",
    "<a",
    "<style",
    "<title",
    "<b",
    "<body",
    "<br",
    "<p",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_files_hold() {
        let document = |format| Some(Kind::Document(format));
        let table = [
            ("a.md", document(Format::Markdown)),
            ("A.MARKDOWN", document(Format::Markdown)),
            ("a.html", document(Format::Html)),
            ("a.htm.gz", document(Format::Html)),
            ("a.xhtml", document(Format::Html)),
            ("sitemap.xml", document(Format::Xml)),
            ("sitemap.XML.GZ", document(Format::Xml)),
            ("a.jsonl", Some(Kind::JsonLines)),
            ("a.png", None),
            ("a.gz", None),
            ("md", None),
        ];
        for (name, kind) in table {
            assert_eq!(Kind::of_name(name), kind, "{name}");
        }
    }

    #[test]
    fn beginnings_tell_what_sources_hold() {
        let table = [
            ("", Kind::Document(Format::Text)),
            ("see http://x/", Kind::Document(Format::Text)),
            ("# Title\n<a href=x>", Kind::Document(Format::Text)),
            ("\u{feff}\n <!DOCTYPE HTML>", Kind::Document(Format::Html)),
            ("<html lang=en>", Kind::Document(Format::Html)),
            ("<p>text", Kind::Document(Format::Html)),
            ("<!-- a -->", Kind::Document(Format::Html)),
            ("<pre", Kind::Document(Format::Text)),
            ("<https://x/>", Kind::Document(Format::Text)),
            ("<?xml version='1.0'?><urlset>", Kind::Document(Format::Xml)),
            (
                "<?xml version='1.0'?>\n<!DOCTYPE html>",
                Kind::Document(Format::Html),
            ),
            ("<sitemapindex>", Kind::Document(Format::Xml)),
            ("{\"url\":\"http://x/\"}", Kind::JsonLines),
            ("{\n  \"a\": 1", Kind::Document(Format::Text)),
        ];
        for (text, kind) in table {
            assert_eq!(Kind::of_beginning(text.as_bytes()), kind, "{text}");
        }
    }
}
