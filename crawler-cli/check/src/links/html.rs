//! Links of HTML, by the tokens and the table of links in `markup`.

use std::borrow::Cow;

use listing::markup::html::{self, Raw, Sink};
use listing::markup::links::{Element, Form, StartTag, candidates, refreshed};

use super::output::{Found, OpenLink, Output};
use super::{Kind, Visitor};

/// A part of a document that is HTML: the whole of it, or raw HTML in Markdown.
pub(super) struct Piece<'p> {
    pub(super) html: &'p str,
    /// Pairs of offsets, in `html` and in the text of the document: where a part of `html` begins.
    pub(super) parts: &'p [(usize, usize)],
}

impl Piece<'_> {
    /// The offset in the text of the document.
    fn at(&self, at: usize) -> usize {
        let after = self.parts.partition_point(|&(start, _)| start <= at);
        let (start, text) = self.parts[after.saturating_sub(1)];
        text + (at - start)
    }
}

/// What is open between the pieces of a document.
#[derive(Debug, Default)]
pub(super) struct HtmlState {
    /// The `<a>` whose text is read.
    anchor: Option<OpenLink>,
}

impl HtmlState {
    /// Whether an `<a>` is open.
    pub(super) fn is_open(&self) -> bool {
        self.anchor.is_some()
    }

    /// Ends what is open, because no more text belongs to it.
    pub(super) fn end<V: Visitor>(&mut self, output: &mut Output<'_, '_, V>) {
        if let Some(anchor) = self.anchor.take() {
            output.end(anchor);
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
        tag: StartTag::default(),
        is_hidden: false,
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

    fn is_done(&self) -> bool {
        self.base.is_some()
    }
}

struct LinkSink<'p, 's, 't, 'v, V> {
    piece: &'p Piece<'p>,
    wants_anchors: bool,
    state: &'s mut HtmlState,
    output: &'s mut Output<'t, 'v, V>,
    tag: StartTag<'p>,
    /// The text is that of a script or a style sheet.
    is_hidden: bool,
    /// How many `<template>` are open. Their content is no part of the page.
    templates: u32,
}

impl<'p, V: Visitor> Sink<'p> for LinkSink<'p, '_, '_, '_, V> {
    fn open(&mut self, name: &[u8]) {
        self.tag.begin(name);
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'p>) {
        self.tag.attribute(name, value);
    }

    fn opened(&mut self) {
        match self.tag.element() {
            Element::Template => self.templates += 1,
            Element::Script | Element::Style => self.is_hidden = true,
            Element::Break => self.output.text(" "),
            _ => {}
        }
        if self.templates == 0 && self.tag.has_attributes() {
            let tag = std::mem::take(&mut self.tag);
            self.tag(&tag);
            self.tag = tag;
        }
    }

    fn close(&mut self, name: &[u8]) {
        match Element::of(name) {
            Element::Template => self.templates = self.templates.saturating_sub(1),
            Element::Anchor if self.templates == 0 => self.state.end(self.output),
            Element::Script | Element::Style => self.is_hidden = false,
            Element::Break => self.output.text(" "),
            _ => {}
        }
    }

    fn wants_text(&self) -> bool {
        self.templates == 0 && !self.is_hidden && self.output.is_open()
    }

    fn text(&mut self, text: Raw<'p>) {
        self.output.text(&decoded(text));
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
    fn tag(&mut self, tag: &StartTag<'_>) {
        if self.wants_anchors {
            for anchor in tag.anchors() {
                self.output.visitor.anchor(&decoded(anchor));
            }
        }
        for reference in tag.references() {
            let raw = reference.value;
            let kind = match reference.is_embedded {
                true => Kind::Embedded,
                false => Kind::Document,
            };
            match reference.form {
                Form::Url if tag.element() == Element::Anchor => self.anchor(raw),
                Form::Url => self.url(raw, kind, tag.alternative()),
                Form::Candidates => self.candidates(raw),
                Form::Refresh => self.refresh(raw),
            }
        }
        if let Some(alternative) = tag.only_text() {
            self.output.text(&decoded(alternative));
        }
    }

    fn found<'u>(&self, raw: Raw<'u>, kind: Kind) -> Found<'u> {
        Found {
            at: self.piece.at(raw.at),
            url: decoded(raw),
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
        for candidate in candidates(value.as_bytes()) {
            self.output.link(
                Found {
                    at: self.piece.at(raw.at),
                    url: Cow::Borrowed(&value[candidate]),
                    kind: Kind::Embedded,
                },
                "",
            );
        }
    }

    fn refresh(&mut self, raw: Raw<'_>) {
        let value = decoded(raw);
        let Some(range) = refreshed(value.as_bytes()) else {
            return;
        };
        self.output.link(
            Found {
                at: self.piece.at(raw.at),
                url: Cow::Borrowed(&value[range]),
                kind: Kind::Document,
            },
            "",
        );
    }
}

/// The decoded text. A piece is cut only at ASCII characters, so that its slices are whole.
fn decoded(raw: Raw<'_>) -> Cow<'_, str> {
    match raw.decode() {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
