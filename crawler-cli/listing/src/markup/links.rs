//! What an HTML page refers to, for crawls and for checks: which attributes are links (HTML, index of attributes), `<base>`,
//! and what the page asks of robots. The content of `<template>` is no part of the page.

use std::ops::Range;

use super::html::{self, Raw, Sink};

/// Gets what a page refers to, in the order of the page.
pub trait Visitor<'d> {
    /// A reference.
    fn reference(&mut self, reference: Reference<'_>);
    /// The `href` of the first `<base>` that has one.
    fn base(&mut self, _href: Raw<'d>) {}
    /// The page asks robots not to follow its links: `<meta name="robots" content="nofollow">`, or `none`.
    fn is_nofollow(&mut self) {}
    /// A name that fragments can have.
    fn anchor(&mut self, _name: Raw<'d>) {}
    /// The text of the last [anchor](Reference::is_anchor) ends.
    fn end_anchor(&mut self) {}
    /// Whether text is wanted at this point.
    fn wants_text(&self) -> bool {
        false
    }
    /// Text that is shown, or a blank where a new line begins. One text may come in several parts.
    fn text(&mut self, _text: &[u8]) {}
    /// The content of a comment.
    fn comment(&mut self, _comment: Raw<'d>) {}
    /// Whether nothing more is wanted.
    fn is_done(&self) -> bool;
}

/// One URL that a page refers to.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'r> {
    /// The URL, decoded, perhaps with blanks around it. May be empty.
    pub url: &'r [u8],
    /// Where the value of the attribute begins in the page.
    pub at: usize,
    /// The URL names a part of the page, such as an image, and does not lead elsewhere.
    pub is_embedded: bool,
    /// The link has `rel="nofollow"`.
    pub is_nofollow: bool,
    /// An `<a>`, whose text follows.
    pub is_anchor: bool,
    /// The text in place of an image.
    pub alternative: Option<Raw<'r>>,
}

/// Reads a page.
pub fn read<'d>(page: &'d [u8], visitor: &mut impl Visitor<'d>) {
    let mut reader = Reader {
        visitor,
        tag: StartTag::default(),
        has_base: false,
        is_hidden: false,
        templates: 0,
    };
    html::read(page, &mut reader);
}

struct Reader<'v, 'd, V> {
    visitor: &'v mut V,
    tag: StartTag<'d>,
    has_base: bool,
    /// The text is that of a script or a style sheet.
    is_hidden: bool,
    /// How many `<template>` are open.
    templates: u32,
}

impl<'d, V: Visitor<'d>> Sink<'d> for Reader<'_, 'd, V> {
    fn open(&mut self, name: &[u8]) {
        self.tag.element = Element::of(name);
        self.tag.attributes.clear();
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        if let Some(attribute) = Attribute::of(name)
            && self.tag.value(attribute).is_none()
        {
            self.tag.attributes.push((attribute, value));
        }
    }

    fn opened(&mut self) {
        match self.tag.element {
            Element::Template => self.templates += 1,
            Element::Script | Element::Style => self.is_hidden = true,
            Element::Break if self.templates == 0 => self.visitor.text(b" "),
            _ => {}
        }
        if self.templates == 0 && !self.tag.attributes.is_empty() {
            self.tag();
        }
    }

    fn close(&mut self, name: &[u8]) {
        match Element::of(name) {
            Element::Template => self.templates = self.templates.saturating_sub(1),
            Element::Anchor if self.templates == 0 => self.visitor.end_anchor(),
            Element::Script | Element::Style => self.is_hidden = false,
            Element::Break if self.templates == 0 => self.visitor.text(b" "),
            _ => {}
        }
    }

    fn wants_text(&self) -> bool {
        self.templates == 0 && !self.is_hidden && self.visitor.wants_text()
    }

    fn text(&mut self, text: Raw<'d>) {
        self.visitor.text(&text.decode());
    }

    fn comment(&mut self, comment: Raw<'d>) {
        self.visitor.comment(comment);
    }

    fn is_done(&self) -> bool {
        self.visitor.is_done()
    }
}

impl<'d, V: Visitor<'d>> Reader<'_, 'd, V> {
    /// Gives what a start tag says.
    fn tag(&mut self) {
        let (tag, visitor) = (&self.tag, &mut *self.visitor);
        let (src, alt) = (tag.value(Attribute::Src), tag.value(Attribute::Alt));
        let name = tag.value(Attribute::Name);
        let name = name.filter(|_| tag.element == Element::Anchor);
        for anchor in tag.value(Attribute::Id).into_iter().chain(name) {
            visitor.anchor(anchor);
        }
        match tag.element {
            Element::Base if !self.has_base => {
                if let Some(href) = tag.value(Attribute::Href) {
                    self.has_base = true;
                    visitor.base(href);
                }
            }
            Element::Meta if tag.is_nofollow_page() => visitor.is_nofollow(),
            // An image that has no URL has its text alone.
            Element::Image if src.is_none() => {
                if let Some(alternative) = alt {
                    visitor.text(&alternative.decode());
                }
            }
            _ => {}
        }
        let rel = tag.value(Attribute::Rel);
        let relation = match tag.element {
            Element::Link => Relation::of(rel),
            _ => Relation::Document,
        };
        let is_nofollow =
            matches!(tag.element, Element::Anchor | Element::Area) && has_word(rel, &["nofollow"]);
        for &(attribute, value) in &tag.attributes {
            let Some((is_part, form)) = tag.url(attribute, relation) else {
                continue;
            };
            let decoded = value.decode();
            let mut reference = Reference {
                url: &decoded,
                at: value.at,
                is_embedded: is_part || relation == Relation::Part,
                is_nofollow,
                is_anchor: tag.element == Element::Anchor,
                alternative: alt.filter(|_| form == Form::Url),
            };
            match form {
                Form::Url => visitor.reference(reference),
                Form::Candidates => {
                    for candidate in candidates(&decoded) {
                        reference.url = &decoded[candidate];
                        visitor.reference(reference);
                    }
                }
                Form::Refresh => {
                    if let Some(url) = refreshed(&decoded) {
                        reference.url = &decoded[url];
                        visitor.reference(reference);
                    }
                }
            }
        }
    }
}

/// A start tag, as far as links are concerned.
#[derive(Default)]
struct StartTag<'d> {
    element: Element,
    /// The attributes that mean something, each once: the first one of each name counts.
    attributes: Vec<(Attribute, Raw<'d>)>,
}

impl<'d> StartTag<'d> {
    fn value(&self, wanted: Attribute) -> Option<Raw<'d>> {
        let mut attributes = self.attributes.iter();
        attributes.find_map(|(attribute, value)| (*attribute == wanted).then_some(*value))
    }

    fn is(&self, attribute: Attribute, word: &[u8]) -> bool {
        let value = self.value(attribute);
        value.is_some_and(|value| value.bytes.trim_ascii().eq_ignore_ascii_case(word))
    }

    fn is_nofollow_page(&self) -> bool {
        has_word(self.value(Attribute::Name), &["robots"])
            && has_word(self.value(Attribute::Content), &["nofollow", "none"])
    }

    /// Whether an attribute names a part of the page, and in which form; `None` if it names nothing.
    fn url(&self, attribute: Attribute, relation: Relation) -> Option<(bool, Form)> {
        let is_link = match self.element {
            Element::Meta => self.is(Attribute::HttpEquiv, b"refresh"),
            Element::Input => self.is(Attribute::Type, b"image"),
            _ => relation != Relation::Hint,
        };
        let url = self.element.url(attribute);
        url.filter(|_| is_link)
    }
}

/// Whether a value has one of these words.
fn has_word(value: Option<Raw<'_>>, words: &[&str]) -> bool {
    let Some(value) = value else { return false };
    let value = value.decode();
    let mut parts = value.split(|byte| *byte == b',' || byte.is_ascii_whitespace());
    let is_one = |part: &[u8], word: &str| part.eq_ignore_ascii_case(word.as_bytes());
    parts.any(|part| words.iter().any(|word| is_one(part, word)))
}

/// The elements that mean something here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Element {
    Anchor,
    Area,
    Base,
    Body,
    /// Begins a new line, so that the words around it are two.
    Break,
    Embed,
    Frame,
    Image,
    Input,
    Link,
    Media,
    Meta,
    Object,
    Quote,
    Script,
    Style,
    SvgImage,
    Template,
    #[default]
    Other,
}

impl Element {
    fn of(name: &[u8]) -> Self {
        match name {
            b"a" => Self::Anchor,
            b"area" => Self::Area,
            b"base" => Self::Base,
            b"body" | b"table" | b"td" | b"th" => Self::Body,
            b"br" | b"div" | b"li" | b"p" | b"tr" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5"
            | b"h6" => Self::Break,
            b"embed" | b"track" => Self::Embed,
            b"iframe" | b"frame" => Self::Frame,
            b"img" => Self::Image,
            b"input" => Self::Input,
            b"link" => Self::Link,
            b"audio" | b"source" | b"video" => Self::Media,
            b"meta" => Self::Meta,
            b"object" => Self::Object,
            b"blockquote" | b"del" | b"ins" | b"q" => Self::Quote,
            b"script" => Self::Script,
            b"style" => Self::Style,
            b"feimage" | b"image" | b"use" => Self::SvgImage,
            b"template" => Self::Template,
            _ => Self::Other,
        }
    }

    /// Whether an attribute of this element names a part of the page, and in which form; `None` if it names nothing.
    fn url(self, attribute: Attribute) -> Option<(bool, Form)> {
        let (document, part) = (false, true);
        Some(match (self, attribute) {
            (Self::Anchor, Attribute::Href | Attribute::XlinkHref)
            | (Self::Area | Self::Link, Attribute::Href)
            | (Self::Frame, Attribute::Src)
            | (Self::Quote, Attribute::Cite) => (document, Form::Url),
            (Self::Meta, Attribute::Content) => (document, Form::Refresh),
            (
                Self::Embed | Self::Image | Self::Input | Self::Media | Self::Script,
                Attribute::Src,
            )
            | (Self::Media, Attribute::Poster)
            | (Self::Object, Attribute::Data)
            | (Self::Body, Attribute::Background)
            | (Self::SvgImage, Attribute::Href | Attribute::XlinkHref) => (part, Form::Url),
            (Self::Image | Self::Media, Attribute::Srcset)
            | (Self::Link, Attribute::ImageSrcset) => (part, Form::Candidates),
            _ => return None,
        })
    }
}

/// How URLs are written in an attribute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Url,
    /// A list of images: see [`candidates`].
    Candidates,
    /// A time and a URL: see [`refreshed`].
    Refresh,
}

/// The attributes that mean something here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attribute {
    Alt,
    Background,
    Cite,
    Content,
    Data,
    Href,
    HttpEquiv,
    Id,
    ImageSrcset,
    Name,
    Poster,
    Rel,
    Src,
    Srcset,
    Type,
    XlinkHref,
}

impl Attribute {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"alt" => Self::Alt,
            b"background" => Self::Background,
            b"cite" => Self::Cite,
            b"content" => Self::Content,
            b"data" => Self::Data,
            b"href" => Self::Href,
            b"http-equiv" => Self::HttpEquiv,
            b"id" => Self::Id,
            b"imagesrcset" => Self::ImageSrcset,
            b"name" => Self::Name,
            b"poster" => Self::Poster,
            b"rel" => Self::Rel,
            b"src" => Self::Src,
            b"srcset" => Self::Srcset,
            b"type" => Self::Type,
            b"xlink:href" => Self::XlinkHref,
            _ => return None,
        })
    }
}

/// What `<link rel>` says about its target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Relation {
    Document,
    /// A part of this page.
    Part,
    /// A host to connect to, and nothing to fetch.
    Hint,
}

impl Relation {
    fn of(rel: Option<Raw<'_>>) -> Self {
        if has_word(rel, &["preconnect", "dns-prefetch"]) {
            Self::Hint
        } else if has_word(rel, &PARTS) {
            Self::Part
        } else {
            Self::Document
        }
    }
}

/// Relations of `<link rel>` that name a part of the page.
const PARTS: [&str; 9] = [
    "stylesheet",
    "icon",
    "apple-touch-icon",
    "mask-icon",
    "manifest",
    "preload",
    "modulepreload",
    "prefetch",
    "prerender",
];

/// Where the URLs of a `srcset` stand. The descriptor after each URL is skipped.
fn candidates(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let start = at + bytes[at..].iter().position(|byte| !is_between(byte))?;
        let length = bytes[start..].iter().position(u8::is_ascii_whitespace);
        let end = length.map_or(bytes.len(), |length| start + length);
        let url = bytes[start..end].trim_ascii_end();
        at = end;
        if let Some(bare) = url.strip_suffix(b",") {
            let commas = bare.iter().rev().take_while(|&&byte| byte == b',').count();
            return Some(start..start + bare.len() - commas);
        }
        // Commas in parentheses are a part of the descriptor.
        let mut depth = 0_usize;
        let is_end = |byte: &u8| {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *byte == b',' && depth == 0
        };
        let length = bytes[end..].iter().position(is_end);
        at = length.map_or(bytes.len(), |length| end + length);
        Some(start..end)
    })
}

/// Where the URL stands in the `content` of `http-equiv=refresh`: `5; url=next` (HTML §4.2.5.3).
pub fn refreshed(content: &[u8]) -> Option<Range<usize>> {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b',');
    let trimmed = content.trim_ascii_start();
    let (time, behind) = trimmed.split_at(trimmed.iter().position(is_between)?);
    let is_time = time
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let mut rest = &behind[behind.iter().take_while(|&byte| is_between(byte)).count()..];
    if let Some((word, value)) = rest.split_at_checked(3)
        && word.eq_ignore_ascii_case(b"url")
        && let Some(value) = value.trim_ascii_start().strip_prefix(b"=")
    {
        rest = value.trim_ascii_start();
    }
    let mut url = rest.trim_ascii_end();
    if let Some((quote @ (b'"' | b'\''), quoted)) = rest.split_first() {
        url = quoted
            .split(|byte| byte == quote)
            .next()
            .unwrap_or_default();
        rest = quoted;
    }
    let start = content.len() - rest.len();
    (is_time && !url.is_empty()).then_some(start..start + url.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_refresh_is_found() {
        for (content, url) in [
            ("0;url=a", Some("a")),
            ("3; URL=\"next.html\"", Some("next.html")),
            ("0, 'b c' d", Some("b c")),
            (" 5;a", Some("a")),
            ("5;a", Some("a")),
            ("5 a", Some("a")),
            ("0;url = https://h/x ", Some("https://h/x")),
            ("5", None),
            ("5;", None),
            ("x;url=a", None),
            ("0;url='", None),
        ] {
            assert_eq!(
                refreshed(content.as_bytes()).map(|range| &content[range]),
                url,
                "{content}"
            );
        }
    }
}
