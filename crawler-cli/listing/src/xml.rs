//! Listings in XML: nginx with `autoindex_format xml`, and the objects of an S3 or Azure bucket.
//!
//! The root element decides the format. Namespace prefixes are dropped. A reference to an entity that the document
//! defines itself ends the reading.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use url::Url;

use super::bucket::{Bucket, Object};
use super::children::Children;
use super::shape::Shape;
use super::{EntryKind, Listing, PageError, PageLimits, time};
use crate::range::SizeRange;

pub(super) fn read(body: &[u8], page: &Url, limits: PageLimits) -> Result<Listing, PageError> {
    let mut document = Document::new(body);
    let Some(root) = document.root() else {
        if !body.trim_ascii_start().starts_with(b"<") {
            return Err(PageError::NotAListing);
        }
        // The document was cut before its root element.
        let mut listing = Listing::of(Children::new(page, limits), Shape::Generic);
        listing.promises_end = true;
        return Ok(listing);
    };
    match root.as_slice() {
        b"list" => autoindex(document, page, limits),
        b"ListBucketResult" => bucket(document, Bucket::new(page, Shape::S3), limits),
        b"EnumerationResults" => bucket(document, Bucket::new(page, Shape::Azure), limits),
        _ => Err(PageError::NotAListing),
    }
}

/// nginx: `<directory mtime="…">name</directory>`, `<file mtime="…" size="…">name</file>`, `<other …>`.
fn autoindex(
    mut document: Document<'_>,
    page: &Url,
    limits: PageLimits,
) -> Result<Listing, PageError> {
    let mut children = Children::new(page, limits);
    let mut elements = 0;
    let (mut modified, mut size) = (None, None);
    while let Some(event) = document.next() {
        match event {
            ElementEvent::Start(start) => {
                (modified, size) = (None, None);
                for attribute in start.attributes().flatten() {
                    match attribute.key.as_ref() {
                        b"mtime" => modified = time::exact(&attribute.value),
                        b"size" => size = bytes(&attribute.value),
                        _ => {}
                    }
                }
            }
            ElementEvent::End(b"list", _) => {}
            ElementEvent::End(element, name) => {
                elements += 1;
                if elements > limits.links {
                    return Err(PageError::TooManyLinks);
                }
                let kind = match element {
                    b"directory" => EntryKind::Directory,
                    b"file" | b"other" => EntryKind::File,
                    _ => continue,
                };
                if let Some(at) = children.named(name, kind) {
                    children.entries[at].modified = modified;
                    children.entries[at].size = size;
                }
            }
        }
    }
    let mut listing = Listing::of(children, Shape::Nginx);
    listing.ended = document.is_whole;
    Ok(listing)
}

/// Reads the elements of S3 and of Azure in one table: no element has different meanings in the two.
fn bucket(
    mut document: Document<'_>,
    mut bucket: Bucket<'_>,
    limits: PageLimits,
) -> Result<Listing, PageError> {
    let mut object = Object::default();
    let mut is_encoded = false;
    while let Some(event) = document.next() {
        let (element, text) = match event {
            ElementEvent::Start(start) => {
                is_encoded = start
                    .attributes()
                    .flatten()
                    .any(|it| it.key.as_ref() == b"Encoded" && it.value.as_ref() == b"true");
                continue;
            }
            ElementEvent::End(element, text) => (element.to_vec(), text.to_vec()),
        };
        match element.as_slice() {
            b"Key" | b"Name" if document.is_inside(&[b"Contents", b"Blob", b"BlobPrefix"]) => {
                object.key = text;
                object.is_encoded = is_encoded;
            }
            b"Prefix" if document.is_inside(&[b"CommonPrefixes"]) => object.key = text,
            b"Size" | b"Content-Length" => object.size = bytes(&text),
            b"LastModified" | b"Last-Modified" => object.modified = time::exact(&text),
            b"Contents" | b"Blob" => bucket.objects.push(std::mem::take(&mut object)),
            b"CommonPrefixes" | b"BlobPrefix" => {
                object.is_prefix = true;
                bucket.objects.push(std::mem::take(&mut object));
            }
            b"Prefix" => bucket.prefix = text,
            b"Delimiter" => bucket.is_delimited = !text.is_empty(),
            b"EncodingType" => bucket.is_encoded = text == b"url",
            b"IsTruncated" => bucket.is_truncated = is_true(&text),
            b"KeyCount" => {
                bucket.count = std::str::from_utf8(&text)
                    .ok()
                    .and_then(|text| text.trim().parse().ok())
            }
            b"NextContinuationToken" => bucket.token = Some(text),
            b"NextMarker" if !text.is_empty() => bucket.marker = Some(text),
            _ => {}
        }
        if bucket.objects.len() > limits.links {
            return Err(PageError::TooManyLinks);
        }
    }
    let mut listing = bucket.finish(limits)?;
    listing.ended = document.is_whole;
    Ok(listing)
}

/// The boolean of XML Schema, and what servers write for it.
fn is_true(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.eq_ignore_ascii_case(b"true") || text == b"1"
}

fn bytes(text: &[u8]) -> Option<SizeRange> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    text.parse().ok().map(SizeRange::exact)
}

/// Reads a document, element by element.
pub(super) struct Document<'b> {
    reader: Reader<&'b [u8]>,
    /// The open elements, outermost first.
    open: Vec<BytesStart<'b>>,
    /// The element that was closed last.
    closed: Option<BytesStart<'b>>,
    text: Vec<u8>,
    ended_text: Vec<u8>,
    first: Option<BytesStart<'b>>,
    /// The end tag of the root element was read.
    pub(super) is_whole: bool,
}

/// The start or the end of an element.
pub(super) enum ElementEvent<'d, 'b> {
    /// An element begins.
    Start(BytesStart<'b>),
    /// An element ends: its local name, and the text since its start or since the last end of an element.
    End(&'d [u8], &'d [u8]),
}

impl<'b> Document<'b> {
    pub(super) fn new(body: &'b [u8]) -> Self {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        let mut reader = Reader::from_reader(body.trim_ascii_start());
        reader.config_mut().expand_empty_elements = true;
        Self {
            reader,
            open: Vec::new(),
            closed: None,
            text: Vec::new(),
            ended_text: Vec::new(),
            first: None,
            is_whole: false,
        }
    }

    /// The local name of the root element.
    pub(super) fn root(&mut self) -> Option<Vec<u8>> {
        match self.next()? {
            ElementEvent::Start(start) => {
                let name = start.local_name().as_ref().to_vec();
                self.first = Some(start);
                Some(name)
            }
            ElementEvent::End(..) => None,
        }
    }

    /// Whether one of these elements is the innermost open one.
    fn is_inside(&self, elements: &[&[u8]]) -> bool {
        let innermost = self.open.last();
        innermost.is_some_and(|open| elements.contains(&open.local_name().as_ref()))
    }

    /// The next start or end of an element. `None` at the end of the document, at an XML error, or when the nesting is
    /// deeper than [`DEPTH`].
    pub(super) fn next(&mut self) -> Option<ElementEvent<'_, 'b>> {
        if let Some(start) = self.first.take() {
            return Some(ElementEvent::Start(start));
        }
        if self.is_whole {
            return None;
        }
        loop {
            match self.reader.read_event().ok()? {
                Event::Start(start) => {
                    if self.open.len() >= DEPTH {
                        return None;
                    }
                    self.open.push(start.clone());
                    self.text.clear();
                    return Some(ElementEvent::Start(start));
                }
                Event::End(_) => {
                    self.closed = self.open.pop();
                    self.is_whole = self.open.is_empty();
                    break;
                }
                Event::Text(text) => self.text.extend_from_slice(&text),
                Event::CData(text) => self.text.extend_from_slice(&text),
                Event::GeneralRef(reference) => {
                    let mut utf8 = [0; 4];
                    let text = match reference.resolve_char_ref().ok()? {
                        Some(char) => char.encode_utf8(&mut utf8),
                        None => resolve_xml_entity(str::from_utf8(&reference).ok()?)?,
                    };
                    self.text.extend_from_slice(text.as_bytes());
                }
                Event::Eof => return None,
                _ => {}
            }
        }
        // The text around an element does not count as text of its parent.
        self.ended_text.clear();
        std::mem::swap(&mut self.ended_text, &mut self.text);
        let closed = self.closed.as_ref()?.local_name().into_inner();
        Some(ElementEvent::End(closed, &self.ended_text))
    }
}

/// Deepest nesting. The deepest of these documents, a multistatus with custom properties, has less.
const DEPTH: usize = 32;
