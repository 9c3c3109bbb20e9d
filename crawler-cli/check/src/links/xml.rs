//! Links of XML by quick-xml: sitemaps and lists of sitemaps (sitemaps.org), RSS and Atom.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

use super::output::{Found, Output};
use super::{Kind, Visitor, XmlError, XmlFault};

/// Reads a document. What is malformed loses the entry where it stands.
///
/// # Errors
/// The rest cannot be read.
pub(super) fn read<V: Visitor>(text: &str, output: &mut Output<'_, '_, V>) -> Result<(), XmlError> {
    let mut reader = XmlReader {
        text,
        output,
        vocabulary: None,
        prefix: 0,
        open: Vec::new(),
        content: Content::default(),
        locations: 0,
    };
    let mut events = Reader::from_str(text);
    let config = events.config_mut();
    config.expand_empty_elements = true;
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    // Many sitemaps have `&` where `&amp;` is right.
    config.allow_dangling_amp = true;
    let (at, fault) = loop {
        let start = offset(events.buffer_position());
        let event = events.read_event();
        let end = offset(events.buffer_position());
        match event {
            Ok(Event::Eof) => break (text.len(), XmlFault::Cut),
            Ok(event) => {
                if let Err(fault) = reader.event(&event, start..end) {
                    break (start, fault);
                }
                if reader.is_whole() || reader.output.is_done() {
                    return Ok(());
                }
            }
            // Syntax that the end of the document cuts.
            Err(quick_xml::Error::Syntax(_)) => {
                break (offset(events.error_position()), XmlFault::Cut);
            }
            Err(_) if end > start => reader.fault(start, XmlFault::Malformed),
            Err(_) => break (start, XmlFault::Malformed),
        }
    };
    Err(reader.error(at, fault))
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// What the root element says about the elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Vocabulary {
    Sitemap,
    Sitemaps,
    Feed,
    Other,
}

struct XmlReader<'t, 's, 'o, 'v, V> {
    text: &'t str,
    output: &'s mut Output<'o, 'v, V>,
    /// `None` before the root element.
    vocabulary: Option<Vocabulary>,
    /// The length of the prefix of the root element's name.
    prefix: usize,
    /// The open elements, and their names as written.
    open: Vec<(Name, &'t str)>,
    content: Content,
    /// The URLs of a sitemap so far.
    locations: u32,
}

/// The elements that mean something here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Name {
    Link,
    Location,
    Page,
    Text,
    Other,
}

/// The text of the innermost element.
#[derive(Default)]
struct Content {
    decoded: String,
    raw: Option<Range<usize>>,
}

impl<'t, V: Visitor> XmlReader<'t, '_, '_, '_, V> {
    /// The root element has ended.
    fn is_whole(&self) -> bool {
        self.vocabulary.is_some() && self.open.is_empty()
    }

    fn error(&mut self, at: usize, fault: XmlFault) -> XmlError {
        let place = self.output.place(at.min(self.text.len()));
        XmlError {
            line: place.line,
            column: place.column,
            fault,
        }
    }

    /// Tells a fault that does not end the reading.
    fn fault(&mut self, at: usize, fault: XmlFault) {
        let error = self.error(at, fault);
        self.output.visitor.fault(error);
    }

    fn event(&mut self, event: &Event<'t>, range: Range<usize>) -> Result<(), XmlFault> {
        match event {
            Event::Start(start) => return self.start(start, range.start),
            Event::End(end) => self.end(end.name().as_ref(), range.start),
            Event::Text(text) => self.push(text, range),
            Event::CData(text) => {
                let inside = range.start + "<![CDATA[".len();
                self.push(text, inside..inside + text.len());
            }
            Event::GeneralRef(reference) => {
                let char = reference.resolve_char_ref().ok().flatten();
                let name = str::from_utf8(reference).ok();
                match (char, name.and_then(resolve_xml_entity)) {
                    (Some(char), _) => self.push(char.encode_utf8(&mut [0; 4]).as_bytes(), range),
                    (None, Some(text)) => self.push(text.as_bytes(), range),
                    (None, None) => {
                        self.fault(range.start, XmlFault::Entity);
                        self.push(&self.text.as_bytes()[range.clone()], range);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, text: &[u8], range: Range<usize>) {
        if matches!(
            self.open.last(),
            Some((Name::Location | Name::Link | Name::Text, _))
        ) {
            self.content
                .decoded
                .push_str(&String::from_utf8_lossy(text));
            match &mut self.content.raw {
                Some(raw) => raw.end = range.end,
                None => self.content.raw = Some(range),
            }
        }
    }

    fn start(&mut self, start: &BytesStart<'t>, at: usize) -> Result<(), XmlFault> {
        if self.open.len() >= DEPTH {
            return Err(XmlFault::TooDeep);
        }
        let local = start.local_name();
        let whole = start.name().as_ref().len();
        let prefix = whole - local.as_ref().len();
        if self.vocabulary.is_none() {
            self.prefix = prefix;
        }
        let vocabulary = *self.vocabulary.get_or_insert(match local.as_ref() {
            b"urlset" => Vocabulary::Sitemap,
            b"sitemapindex" => Vocabulary::Sitemaps,
            b"rss" | b"feed" | b"RDF" => Vocabulary::Feed,
            _ => Vocabulary::Other,
        });
        let name = match (vocabulary, local.as_ref()) {
            (Vocabulary::Sitemap | Vocabulary::Sitemaps, b"loc") => Name::Location,
            (Vocabulary::Sitemap, b"content_loc" | b"player_loc" | b"thumbnail_loc") => Name::Text,
            (Vocabulary::Sitemap, b"url") | (Vocabulary::Sitemaps, b"sitemap") => Name::Page,
            (Vocabulary::Feed, b"link" | b"comments") => Name::Link,
            (Vocabulary::Feed, b"url" | b"icon" | b"logo") => Name::Text,
            _ => Name::Other,
        };
        if name == Name::Page && prefix == self.prefix && self.open.len() > 1 {
            // The entry before does not end.
            self.fault(at, XmlFault::Malformed);
            self.open.truncate(1);
        }
        let written = self.text.get(at + 1..at + 1 + whole);
        self.open.push((name, written.unwrap_or_default()));
        self.content = Content::default();
        let attribute: &[u8] = match (vocabulary, local.as_ref()) {
            (Vocabulary::Sitemap | Vocabulary::Feed, b"link") => b"href",
            (Vocabulary::Feed, b"content") if start.name().as_ref() == b"content" => b"src",
            (Vocabulary::Feed, _) => b"url",
            _ => return Ok(()),
        };
        let kind = match local.as_ref() {
            b"link" => Kind::Document,
            _ => Kind::Embedded,
        };
        self.attribute(start, attribute, kind);
        Ok(())
    }

    fn attribute(&mut self, start: &BytesStart<'t>, wanted: &[u8], kind: Kind) {
        let mut attributes = start.attributes();
        let mut attributes = attributes.with_checks(false).flatten();
        let attribute = attributes.find(|attribute| attribute.key.as_ref() == wanted);
        let Some(Cow::Borrowed(raw)) = attribute.map(|attribute| attribute.value) else {
            return;
        };
        // The value is a slice of the text.
        let at = raw.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        let range = at.map_or(0..0, |at| at..at + raw.len());
        let Some(raw) = self.text.get(range.clone()) else {
            return;
        };
        let url = quick_xml::escape::unescape(raw);
        self.output.link(
            Found {
                at: range.start,
                url: url.unwrap_or(Cow::Borrowed(raw)),
                kind,
            },
            "",
        );
    }

    fn end(&mut self, name: &[u8], at: usize) {
        let begun = self
            .open
            .iter()
            .rposition(|(_, written)| written.as_bytes() == name);
        let Some(begun) = begun else {
            return self.fault(at, XmlFault::Malformed);
        };
        let content = std::mem::take(&mut self.content);
        if begun + 1 < self.open.len() {
            self.fault(at, XmlFault::Malformed);
            return self.open.truncate(begun);
        }
        let name = self.open.pop().map(|(name, _)| name);
        let is_page = matches!(self.open.last(), Some((Name::Page, _)));
        let kind = match name {
            Some(Name::Location) if self.vocabulary == Some(Vocabulary::Sitemaps) => Kind::Sitemap,
            Some(Name::Location) if is_page => Kind::Document,
            Some(Name::Link) => Kind::Document,
            // An image or a video of the page.
            Some(Name::Location | Name::Text) => Kind::Embedded,
            _ => return,
        };
        let Some(raw) = content.raw else {
            return;
        };
        self.locations += u32::from(name == Some(Name::Location) && kind != Kind::Embedded);
        if self.locations == MOST_LOCATIONS + 1 {
            self.locations += 1;
            self.fault(raw.start, XmlFault::TooMany);
        }
        let written = &self.text[raw.clone()];
        let blanks = written.len() - written.trim_start().len();
        self.output.link(
            Found {
                at: raw.start + blanks,
                url: Cow::Borrowed(content.decoded.trim()),
                kind,
            },
            "",
        );
    }
}

/// The most URLs of a sitemap, by its protocol. More are read, too.
const MOST_LOCATIONS: u32 = 50_000;

/// Deepest nesting. The deepest of these formats, a feed with XHTML inside, has less.
const DEPTH: usize = 256;
