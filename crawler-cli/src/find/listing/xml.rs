//! Listings in XML: nginx with `autoindex_format xml`, the objects of an S3 or Azure bucket, and the response to
//! PROPFIND (RFC 4918).
//!
//! The root element decides the format. Namespace prefixes are dropped. A reference to an entity that the document
//! defines itself ends the reading.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use url::Url;

use super::bucket::{Bucket, Object};
use super::children::{Children, Link};
use super::shape::Shape;
use super::{Entry, EntryKind, Listing, PageError, PageLimits, time};
use crate::find::path;
use crate::find::range::{ListedTime, SizeRange};

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
        b"ListBucketResult" => bucket(document, Bucket::s3(page), limits),
        b"EnumerationResults" => bucket(document, Bucket::azure(page), limits),
        b"multistatus" => multistatus(document, page, limits),
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

/// `multistatus` (RFC 4918 §14.16). The child test drops the response that is about the directory itself. A server behind
/// a reverse proxy may name all members below the path, and on the host, that only the proxy knows.
fn multistatus(
    mut document: Document<'_>,
    page: &Url,
    limits: PageLimits,
) -> Result<Listing, PageError> {
    // Responses about something that is neither the directory nor a member of it.
    let mut others: Vec<(Url, Properties)> = Vec::new();
    let mut children = Children::new(page, limits);
    let mut responses = 0;
    let (mut is_own_seen, mut stops) = (false, false);
    // Members that the server does not describe.
    let mut unknown = Vec::new();
    let mut hrefs: Vec<Vec<u8>> = Vec::new();
    let mut code = Vec::new();
    let (mut properties, mut proven) = (Properties::default(), Properties::default());
    while let Some(event) = document.next() {
        let ElementEvent::End(element, text) = event else {
            continue;
        };
        match element {
            b"href" => {
                let href = text.trim_ascii().to_vec();
                if document.is_inside(&[b"response"]) && !href.is_empty() {
                    hrefs.push(href);
                }
            }
            b"getcontentlength" => properties.size = bytes(text),
            b"getlastmodified" => properties.modified = time::exact(text),
            b"collection" => properties.is_collection = true,
            b"status" => {
                let status = text.trim_ascii().get(9..12).unwrap_or_default().to_vec();
                if document.is_inside(&[b"propstat"]) {
                    if status.starts_with(b"2") {
                        proven = std::mem::take(&mut properties);
                        proven.is_known = true;
                    }
                    properties = Properties::default();
                } else {
                    code = status;
                }
            }
            b"response" => {
                responses += hrefs.len();
                if responses > limits.links {
                    return Err(PageError::TooManyLinks);
                }
                let properties = std::mem::take(&mut proven);
                let code = std::mem::take(&mut code);
                // A member with another status, such as 403, exists.
                let is_gone = matches!(code.as_slice(), b"404" | b"410");
                // The server had no room for all members.
                stops |= code == b"507";
                for href in hrefs.drain(..).filter(|_| !is_gone) {
                    if let Link::Entry(at) = children.link(&href, false) {
                        let entry = &mut children.entries[at];
                        properties.give(entry);
                        if !properties.is_known && entry.kind == EntryKind::Unknown {
                            unknown.push(at);
                        }
                    } else if let Some(url) = children.resolve(&href) {
                        let is_own = is_directory(page.as_str(), &url);
                        is_own_seen |= is_own && (code.is_empty() || code.starts_with(b"2"));
                        if !is_own {
                            others.push((url, properties));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    // A proxy may show an empty directory under another path.
    is_own_seen |= matches!(others.as_slice(), [(url, _)] if is_shown_as(url, page));
    mapped(others, &mut children);
    let says_nothing = children.entries.is_empty() && children.left_out().is_empty();
    if says_nothing && !is_own_seen && document.is_whole {
        return Err(PageError::NotAListing);
    }
    let mut listing = Listing::of(children, Shape::Webdav);
    listing.ended = document.is_whole;
    listing.stops = stops;
    for at in unknown {
        listing.entries[at].kind = EntryKind::Unknown;
        listing.marks_directories = false;
    }
    Ok(listing)
}

/// Whether a proxy can show the directory of this URL as the page: their names agree.
fn is_shown_as(url: &Url, page: &Url) -> bool {
    let name = |url: &Url| {
        let path = url.path().trim_end_matches('/');
        path.rsplit('/').next().map(path::decode)
    };
    name(url) == name(page)
}

/// What a multistatus says about a member.
#[derive(Clone, Copy, Default)]
struct Properties {
    /// The server has described the member.
    is_known: bool,
    size: Option<SizeRange>,
    modified: Option<ListedTime>,
    is_collection: bool,
}

impl Properties {
    fn give(self, entry: &mut Entry) {
        if self.is_collection {
            entry.kind = EntryKind::Directory;
        }
        entry.size = self.size;
        entry.modified = self.modified;
    }
}

/// Takes responses about the members of one directory elsewhere for members of the page, if nothing else is: a proxy
/// shows that directory here. Otherwise, they are left out, but for those about the page and the directories above.
fn mapped(others: Vec<(Url, Properties)>, children: &mut Children) {
    let own = match children.entries.is_empty() {
        true => directory_of(&others),
        false => None,
    };
    for (url, properties) in others {
        match &own {
            Some(own) if is_directory(own, &url) => {}
            Some(_) => {
                if let Some(at) = children.last_segment(&url) {
                    properties.give(&mut children.entries[at]);
                }
            }
            None if children.is_here(&url) => {}
            None => children.add_stray(url),
        }
    }
}

/// The URL, with a final `/`, of the directory that all of these are members of, or the directory itself.
fn directory_of(others: &[(Url, Properties)]) -> Option<String> {
    let (shortest, properties) = others.iter().min_by_key(|(url, _)| url.as_str().len())?;
    let shortest = shortest.as_str().trim_end_matches('/');
    let parent = &shortest[..=shortest.rfind('/')?];
    let itself = properties.is_collection.then(|| format!("{shortest}/"));
    let is_below = |own: &str, url: &Url| {
        let rest = url.as_str().strip_prefix(own);
        let rest = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        rest.is_some_and(|rest| !rest.contains(['/', '?', '#']))
    };
    let is_of_all = |own: &String| {
        let mut all = others.iter().map(|(url, _)| url);
        all.all(|url| is_directory(own, url) || is_below(own, url))
    };
    let mut candidates = itself.into_iter().chain([parent.to_owned()]);
    candidates.find(is_of_all)
}

fn is_directory(own: &str, url: &Url) -> bool {
    url.as_str().trim_end_matches('/') == own.trim_end_matches('/')
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
                    let char = match &*reference {
                        b"amp" => '&',
                        b"lt" => '<',
                        b"gt" => '>',
                        b"quot" => '"',
                        b"apos" => '\'',
                        _ => reference.resolve_char_ref().ok()??,
                    };
                    let mut utf8 = [0; 4];
                    self.text
                        .extend_from_slice(char.encode_utf8(&mut utf8).as_bytes());
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
