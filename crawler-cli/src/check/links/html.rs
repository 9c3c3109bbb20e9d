//! Links of HTML, by the tokens of `markup`. Which attributes are links: HTML, index of attributes.

use std::borrow::Cow;
use std::ops::Range;

use crate::markup::html::{self, Raw, Sink};

use super::css::{self, CssItem};
use super::output::{Found, OpenLink, Output, collapsed, cut};
use super::{Kind, Syntax, Visitor};

/// A part of a document that is HTML: the whole of it, or raw HTML in Markdown.
pub(super) struct Piece<'p> {
    pub(super) html: &'p str,
    /// Pairs of offsets, in `html` and in the text of the document: where a part of `html` begins.
    pub(super) parts: &'p [(usize, usize)],
    /// In Markdown, a value without quotes cannot hold every URL (CommonMark §6.6).
    pub(super) in_markdown: bool,
}

impl Piece<'_> {
    /// The offset in the text of the document.
    fn at(&self, at: usize) -> usize {
        let after = self.parts.partition_point(|&(start, _)| start <= at);
        let (start, text) = self.parts[after.saturating_sub(1)];
        text + (at - start)
    }

    /// The range in the text of the document. `None` if it lies in several parts, or if not every URL can stand there.
    fn span(&self, span: Range<usize>) -> Option<Range<usize>> {
        let before = &self.html.as_bytes()[..span.start];
        if self.in_markdown && before.last().is_some_and(|&before| before == b'=') {
            return None;
        }
        let (start, end) = (self.at(span.start), self.at(span.end));
        (end - start == span.len()).then_some(start..end)
    }
}

/// What is open between the pieces of a document.
#[derive(Debug, Default)]
pub(super) struct HtmlState {
    /// The `<a>` whose text is read.
    anchor: Option<OpenLink>,
    /// The title so far, between its tags.
    title: Option<String>,
    has_title: bool,
}

impl HtmlState {
    /// Whether an `<a>` is open.
    pub(super) fn is_open(&self) -> bool {
        self.anchor.is_some()
    }

    /// Ends what is open, because no more text belongs to it.
    pub(super) fn end<V: Visitor>(&mut self, output: &mut Output<'_, '_, V>) {
        if let Some(anchor) = self.anchor.take() {
            output.end(anchor, None);
        }
    }
}

/// Reads a piece.
pub(super) fn read<V: Visitor>(
    piece: &Piece<'_>,
    state: &mut HtmlState,
    output: &mut Output<'_, '_, V>,
) {
    let mut sink = LinkSink {
        piece,
        wants_anchors: output.visitor.wants_anchors(),
        state,
        output,
        element: Element::Other,
        attributes: Vec::new(),
        content: Content::Shown,
        templates: 0,
    };
    html::read(piece.html.as_bytes(), &mut sink);
}

/// The URL of the first `<base href>`.
pub(super) fn base(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut tags = memchr::memchr_iter(b'<', bytes);
    let is_base = |word: &[u8]| word.eq_ignore_ascii_case(b"base");
    tags.find(|at| bytes.get(at + 1..at + 5).is_some_and(is_base))?;
    let mut sink = BaseSink::default();
    html::read(bytes, &mut sink);
    sink.base
}

#[derive(Default)]
struct BaseSink {
    is_base: bool,
    href: Option<String>,
    base: Option<String>,
    templates: u32,
}

impl<'d> Sink<'d> for BaseSink {
    fn open(&mut self, name: &[u8]) {
        self.is_base = name == b"base";
        self.templates += u32::from(name == b"template");
        self.href = None;
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        if self.is_base && name == b"href" && self.href.is_none() {
            self.href = Some(decoded(value).trim().to_owned());
        }
    }

    fn opened(&mut self) {
        if self.templates == 0 {
            self.base = self.href.take();
        }
    }

    fn close(&mut self, name: &[u8]) {
        self.templates -= u32::from(name == b"template" && self.templates > 0);
    }

    fn wants_text(&self) -> bool {
        false
    }

    fn text(&mut self, _: Raw<'d>) {}

    fn comment(&mut self, _: Raw<'d>) {}

    fn is_done(&self) -> bool {
        self.base.is_some()
    }
}

struct LinkSink<'p, 's, 't, 'v, V> {
    piece: &'p Piece<'p>,
    wants_anchors: bool,
    state: &'s mut HtmlState,
    output: &'s mut Output<'t, 'v, V>,
    element: Element,
    /// The attributes of the start tag that mean something, each once.
    attributes: Vec<(Attribute, Raw<'p>)>,
    content: Content,
    /// How many `<template>` are open. Their content is no part of the page.
    templates: u32,
}

/// What the text of the innermost element with special text is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Content {
    Shown,
    Script,
    Style,
}

impl<'p, V: Visitor> Sink<'p> for LinkSink<'p, '_, '_, '_, V> {
    fn open(&mut self, name: &[u8]) {
        self.element = Element::of(name);
        self.attributes.clear();
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'p>) {
        let Some(attribute) = Attribute::of(name) else {
            return;
        };
        if self.attributes.iter().all(|(seen, _)| *seen != attribute) {
            self.attributes.push((attribute, value));
        }
    }

    fn opened(&mut self) {
        match self.element {
            Element::Template => self.templates += 1,
            Element::Script => self.content = Content::Script,
            Element::Style => self.content = Content::Style,
            Element::Title if self.wants_anchors && !self.state.has_title => {
                self.state.title = Some(String::new());
            }
            Element::Break => self.output.text(" "),
            _ => {}
        }
        if self.templates == 0 && !self.attributes.is_empty() {
            let attributes = std::mem::take(&mut self.attributes);
            self.tag(&attributes);
            self.attributes = attributes;
        }
    }

    fn close(&mut self, name: &[u8]) {
        match Element::of(name) {
            Element::Template => self.templates = self.templates.saturating_sub(1),
            Element::Anchor if self.templates == 0 => self.state.end(self.output),
            Element::Script | Element::Style => self.content = Content::Shown,
            Element::Title => self.end_title(),
            Element::Break => self.output.text(" "),
            _ => {}
        }
    }

    fn wants_text(&self) -> bool {
        self.templates == 0
            && match self.content {
                Content::Shown => self.output.is_open() || self.state.title.is_some(),
                Content::Script => false,
                Content::Style => true,
            }
    }

    fn text(&mut self, text: Raw<'p>) {
        if self.content == Content::Style {
            self.style_sheet(text);
            return;
        }
        let text = decoded(text);
        if let Some(title) = &mut self.state.title {
            let room = super::TEXT_BYTES.saturating_sub(title.len());
            title.push_str(cut(&text, room));
        }
        self.output.text(&text);
    }

    fn comment(&mut self, comment: Raw<'p>) {
        let end = self.piece.at(comment.span().end);
        self.output.comment(&decoded(comment), end);
    }

    fn is_done(&self) -> bool {
        self.output.is_done()
    }
}

impl<V: Visitor> LinkSink<'_, '_, '_, '_, V> {
    /// Reads a start tag.
    fn tag(&mut self, attributes: &[(Attribute, Raw<'_>)]) {
        let value = |wanted| {
            let mut attributes = attributes.iter();
            attributes.find_map(|(attribute, value)| (*attribute == wanted).then_some(*value))
        };
        if self.wants_anchors {
            let name = value(Attribute::Name).filter(|_| self.element == Element::Anchor);
            for anchor in [value(Attribute::Id), name].into_iter().flatten() {
                self.output.visitor.anchor(&decoded(anchor));
            }
        }
        let rel = value(Attribute::Rel).filter(|_| self.element == Element::Link);
        let rel = Relation::of(rel);
        for &(attribute, raw) in attributes {
            let Some((kind, form)) = self.element.url(attribute) else {
                continue;
            };
            let kind = match rel {
                Relation::Hint => continue,
                Relation::Part => Kind::Embedded,
                Relation::Document => kind,
            };
            match form {
                Form::Url if self.element == Element::Anchor => self.anchor(raw),
                Form::Url => self.url(raw, kind, value(Attribute::Alt)),
                Form::Candidates => self.candidates(raw),
                Form::Refresh if is_refresh(value(Attribute::HttpEquiv)) => self.refresh(raw),
                Form::Image if is_image(value(Attribute::Type)) => {
                    self.url(raw, kind, value(Attribute::Alt));
                }
                Form::Style => self.style(raw),
                Form::Refresh | Form::Image => {}
            }
        }
        if self.element == Element::Image
            && value(Attribute::Src).is_none()
            && let Some(alt) = value(Attribute::Alt)
        {
            self.output.text(&decoded(alt));
        }
    }

    fn found<'u>(&self, raw: Raw<'u>, kind: Kind) -> Found<'u> {
        Found {
            at: self.piece.at(raw.at),
            url: decoded(raw),
            span: self.piece.span(raw.span()),
            syntax: Syntax::Markup,
            kind,
        }
    }

    fn anchor(&mut self, raw: Raw<'_>) {
        self.state.end(self.output);
        self.state.anchor = self.output.begin(self.found(raw, Kind::Document));
    }

    fn url(&mut self, raw: Raw<'_>, kind: Kind, alt: Option<Raw<'_>>) {
        let alt = alt.map(decoded).unwrap_or_default();
        self.output.link(self.found(raw, kind), &alt);
    }

    /// The images that `srcset` offers (HTML §4.8.4.2.1). Their place is that of the attribute.
    fn candidates(&mut self, raw: Raw<'_>) {
        let value = decoded(raw);
        let is_exact = matches!(value, Cow::Borrowed(_));
        for candidate in candidates(&value) {
            let span = raw.at + candidate.start..raw.at + candidate.end;
            self.output.link(
                Found {
                    at: self.piece.at(raw.at),
                    url: Cow::Borrowed(&value[candidate]),
                    span: self.piece.span(span).filter(|_| is_exact),
                    syntax: Syntax::Markup,
                    kind: Kind::Embedded,
                },
                "",
            );
        }
    }

    fn refresh(&mut self, raw: Raw<'_>) {
        let value = decoded(raw);
        let is_exact = matches!(value, Cow::Borrowed(_));
        let Some(range) = refreshed(&value) else {
            return;
        };
        // A quote in a new URL would end the URL.
        let is_quoted = value[..range.start].ends_with(['"', '\'']);
        let span = raw.at + range.start..raw.at + range.end;
        self.output.link(
            Found {
                at: self.piece.at(raw.at),
                url: Cow::Borrowed(&value[range]),
                span: self.piece.span(span).filter(|_| is_exact && !is_quoted),
                syntax: Syntax::Markup,
                kind: Kind::Document,
            },
            "",
        );
    }

    /// A `style` attribute. The place of its URLs is that of the attribute.
    fn style(&mut self, raw: Raw<'_>) {
        // Nearly all `style` attributes have no URL.
        if memchr::memchr(b'(', raw.bytes).is_none() && memchr::memchr(b'&', raw.bytes).is_none() {
            return;
        }
        let value = decoded(raw);
        css::read(&value, &mut |item| {
            let CssItem::Url(_, url) = item else {
                return;
            };
            self.output.link(
                Found {
                    at: self.piece.at(raw.at),
                    url,
                    // In both syntaxes: not edited.
                    span: None,
                    syntax: Syntax::Css,
                    kind: Kind::Embedded,
                },
                "",
            );
        });
    }

    /// The content of a `<style>`. The places of its URLs are their own.
    fn style_sheet(&mut self, raw: Raw<'_>) {
        let text = &self.piece.html[raw.span()];
        css::read(text, &mut |item| match item {
            CssItem::Url(range, url) => {
                let span = raw.at + range.start..raw.at + range.end;
                self.output.link(
                    Found {
                        at: self.piece.at(span.start),
                        url,
                        span: self.piece.span(span),
                        syntax: Syntax::Css,
                        kind: Kind::Embedded,
                    },
                    "",
                );
            }
            CssItem::Comment(range) => {
                let end = self.piece.at(raw.at + range.end);
                self.output.comment(&text[range], end);
            }
        });
    }

    fn end_title(&mut self) {
        if let Some(title) = self.state.title.take() {
            self.state.has_title = true;
            self.output.visitor.title(&collapsed(&title));
        }
    }
}

/// The elements that mean something here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Element {
    Anchor,
    Area,
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
    Title,
    Other,
}

impl Element {
    fn of(name: &[u8]) -> Self {
        match name {
            b"a" => Self::Anchor,
            b"area" => Self::Area,
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
            b"title" => Self::Title,
            _ => Self::Other,
        }
    }

    /// What an attribute of this element refers to, and in which form.
    fn url(self, attribute: Attribute) -> Option<(Kind, Form)> {
        Some(match (self, attribute) {
            (_, Attribute::Style) => (Kind::Embedded, Form::Style),
            (Self::Anchor, Attribute::Href | Attribute::XlinkHref)
            | (Self::Area | Self::Link, Attribute::Href)
            | (Self::Frame, Attribute::Src)
            | (Self::Quote, Attribute::Cite) => (Kind::Document, Form::Url),
            (Self::Meta, Attribute::Content) => (Kind::Document, Form::Refresh),
            (Self::Input, Attribute::Src) => (Kind::Embedded, Form::Image),
            (Self::Embed | Self::Image | Self::Media | Self::Script, Attribute::Src)
            | (Self::Media, Attribute::Poster)
            | (Self::Object, Attribute::Data)
            | (Self::Body, Attribute::Background)
            | (Self::SvgImage, Attribute::Href | Attribute::XlinkHref) => {
                (Kind::Embedded, Form::Url)
            }
            (Self::Image | Self::Media, Attribute::Srcset)
            | (Self::Link, Attribute::ImageSrcset) => (Kind::Embedded, Form::Candidates),
            _ => return None,
        })
    }
}

/// How URLs are written in an attribute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Url,
    /// A URL of an image, if the element is an image.
    Image,
    Candidates,
    Refresh,
    Style,
}

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
    Style,
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
            b"style" => Self::Style,
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
        let Some(rel) = rel else {
            return Self::Document;
        };
        let is = |wanted: &[&str]| {
            let mut words = rel.bytes.split(u8::is_ascii_whitespace);
            words.any(|word| {
                wanted
                    .iter()
                    .any(|wanted| word.eq_ignore_ascii_case(wanted.as_bytes()))
            })
        };
        if is(&["preconnect", "dns-prefetch"]) {
            Self::Hint
        } else if is(&PARTS) {
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

fn is_refresh(http_equiv: Option<Raw<'_>>) -> bool {
    http_equiv.is_some_and(|value| value.bytes.trim_ascii().eq_ignore_ascii_case(b"refresh"))
}

fn is_image(input_type: Option<Raw<'_>>) -> bool {
    input_type.is_some_and(|value| value.bytes.trim_ascii().eq_ignore_ascii_case(b"image"))
}

/// The decoded text. A piece is cut only at ASCII characters, so that its slices are whole.
fn decoded(raw: Raw<'_>) -> Cow<'_, str> {
    match raw.decode() {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Where the URLs of a `srcset` stand. The descriptor after each URL is skipped.
fn candidates(value: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = value.as_bytes();
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
fn refreshed(content: &str) -> Option<Range<usize>> {
    let is_between = |char: char| char.is_ascii_whitespace() || matches!(char, ';' | ',');
    let trimmed = content.trim_start();
    let (time, behind) = trimmed.split_at(trimmed.find(is_between)?);
    let is_time = time
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let behind = behind.trim_start_matches(is_between);
    let mut rest = behind;
    if let Some(word) = rest.get(..3)
        && word.eq_ignore_ascii_case("url")
        && let Some(value) = rest[3..].trim_start().strip_prefix('=')
    {
        rest = value.trim_start();
    }
    let mut url = rest.trim_end();
    let quote = rest
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''));
    if let Some(quote) = quote {
        url = rest[1..].split(quote).next().unwrap_or("");
        rest = &rest[1..];
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
                refreshed(content).map(|range| &content[range]),
                url,
                "{content}"
            );
        }
    }

    #[test]
    fn candidates_are_separated_by_commas_and_blanks() {
        for (value, urls) in [
            ("a.png 1x, b.png 2x,c.png", &["a.png", "b.png", "c.png"][..]),
            ("x,y.webp 100w", &["x,y.webp"]),
            (" , a.png,, b.png , ", &["a.png", "b.png"]),
            ("a (x,y) 1x, b", &["a", "b"]),
            (
                "data:image/png;base64,AA== 1x, b",
                &["data:image/png;base64,AA==", "b"],
            ),
            ("", &[]),
        ] {
            let found: Vec<&str> = candidates(value).map(|range| &value[range]).collect();
            assert_eq!(found, urls, "{value}");
        }
    }
}
