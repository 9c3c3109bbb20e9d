//! Links of XML by quick-xml: sitemaps and lists of sitemaps (sitemaps.org), RSS and Atom.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::output::{Found, Output};
use super::{Kind, Visitor, XmlError, XmlFault};

/// Reads a document.
pub(super) fn read<V: Visitor>(text: &str, output: &mut Output<'_, '_, V>) -> Result<(), XmlError> {
    let mut reader = XmlReader {
        text,
        output,
        vocabulary: None,
        open: Vec::new(),
        content: Content::default(),
    };
    let mut events = Reader::from_str(text);
    let config = events.config_mut();
    config.expand_empty_elements = true;
    // Many sitemaps have `&` where `&amp;` is right.
    config.allow_dangling_amp = true;
    let end = loop {
        let start = offset(events.buffer_position());
        match events.read_event() {
            Ok(Event::Eof) => break None,
            Ok(event) => {
                let end = offset(events.buffer_position());
                if let Err(fault) = reader.event(&event, start..end) {
                    break Some((start, fault));
                }
                if reader.is_whole() || reader.output.is_done() {
                    return Ok(());
                }
            }
            Err(error) => {
                let at = offset(events.error_position());
                break Some((at, fault_of(&error)));
            }
        }
    };
    let (at, fault) = end.unwrap_or((text.len(), XmlFault::Cut));
    let place = reader.output.place(at.min(text.len()));
    Err(XmlError {
        line: place.line,
        column: place.column,
        fault,
    })
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// Syntax that the end of the document cuts is cut.
fn fault_of(error: &quick_xml::Error) -> XmlFault {
    match error {
        quick_xml::Error::Syntax(_) => XmlFault::Cut,
        _ => XmlFault::Malformed,
    }
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
    /// The local names of the open elements.
    open: Vec<Name>,
    content: Content,
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

    fn event(&mut self, event: &Event<'t>, range: Range<usize>) -> Result<(), XmlFault> {
        match event {
            Event::Start(start) => self.start(start),
            Event::End(_) => {
                self.end();
                Ok(())
            }
            Event::Text(text) => {
                self.push(text, range);
                Ok(())
            }
            Event::CData(text) => {
                let inside = range.start + "<![CDATA[".len();
                self.push(text, inside..inside + text.len());
                Ok(())
            }
            Event::GeneralRef(reference) => {
                let char = match &**reference {
                    b"amp" => '&',
                    b"lt" => '<',
                    b"gt" => '>',
                    b"quot" => '"',
                    b"apos" => '\'',
                    _ => {
                        let char = reference.resolve_char_ref();
                        char.map_err(|_| XmlFault::Malformed)?
                            .ok_or(XmlFault::Entity)?
                    }
                };
                self.push(char.encode_utf8(&mut [0; 4]).as_bytes(), range);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn push(&mut self, text: &[u8], range: Range<usize>) {
        if matches!(
            self.open.last(),
            Some(Name::Location | Name::Link | Name::Text)
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

    fn start(&mut self, start: &BytesStart<'t>) -> Result<(), XmlFault> {
        if self.open.len() >= DEPTH {
            return Err(XmlFault::TooDeep);
        }
        let local = start.local_name();
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
        self.open.push(name);
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

    fn end(&mut self) {
        let name = self.open.pop();
        let content = std::mem::take(&mut self.content);
        let is_page = self.open.last() == Some(&Name::Page);
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

/// Deepest nesting. The deepest of these formats, a feed with XHTML inside, has less.
const DEPTH: usize = 256;
