//! The readers of links with any bytes in both formats and any encoding.

use check::links::{Anchors, Document, Format, Link, TEXT_BYTES, Visitor};

/// The first byte chooses the format, the second one the encoding. The rest is the document.
pub fn links(data: &[u8]) {
    let Some((&[format, charset], body)) = data.split_first_chunk() else {
        return;
    };
    let format = FORMATS[usize::from(format) % FORMATS.len()];
    let charset = CHARSETS[usize::from(charset) % CHARSETS.len()];
    let found = read(format, body, charset);
    for link in &found.links {
        check(link, body);
    }
    // Links come in the order of their places.
    let places = found.links.iter().map(|link| (link.line, link.column));
    assert!(places.is_sorted(), "{found:?}");
}

/// The document, as far as it can be compared.
#[derive(Debug)]
struct Found {
    links: Vec<FoundLink>,
    anchors: Anchors,
}

#[derive(Debug)]
struct FoundLink {
    url: String,
    text: String,
    line: u32,
    column: u32,
}

impl Visitor for Found {
    fn link(&mut self, link: Link<'_>) {
        self.links.push(FoundLink {
            url: link.url.into_owned(),
            text: link.text.into_owned(),
            line: link.line,
            column: link.column,
        });
    }

    fn wants_anchors(&self) -> bool {
        true
    }

    fn anchor(&mut self, anchor: &str) {
        self.anchors.insert(anchor);
        assert!(self.anchors.has(anchor));
    }
}

fn read(format: Format, body: &[u8], charset: Option<&str>) -> Found {
    let mut found = Found {
        links: Vec::new(),
        anchors: Anchors::new(format),
    };
    let document = Document::new(format, body, charset);
    assert!(document.read(&mut found).is_ok());
    let base = document.base();
    assert!(base.is_none() || format == Format::Html);
    found
}

fn check(link: &FoundLink, body: &[u8]) {
    assert!(!link.url.is_empty() && link.url.trim_matches(|char| char <= ' ') == link.url);
    assert!(link.text.len() <= TEXT_BYTES && !link.text.contains("  "));
    assert!(link.line >= 1 && link.column >= 1);
    let lines = body.iter().filter(|byte| b"\r\n".contains(byte)).count();
    assert!(link.line as usize <= lines + 1 && link.column as usize <= body.len() + 1);
}

const FORMATS: [Format; 2] = [Format::Markdown, Format::Html];

const CHARSETS: [Option<&str>; 4] = [None, Some("utf-8"), Some("iso-8859-1"), Some("shift_jis")];
