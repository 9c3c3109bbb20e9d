//! Links of HTML, as `markup` reads them, with their places and texts.

use std::borrow::Cow;

use listing::markup::html::Raw;
use listing::markup::links::{self, Reference};

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
    let mut links = PieceLinks {
        piece,
        wants_anchors: output.visitor.wants_anchors(),
        state,
        output,
    };
    links::read(piece.html.as_bytes(), &mut links);
}

/// The URL of the first `<base href>`.
pub(super) fn base(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut tags = memchr::memchr_iter(b'<', bytes);
    let is_base = |word: &[u8]| word.eq_ignore_ascii_case(b"base");
    tags.find(|at| bytes.get(at + 1..at + 5).is_some_and(is_base))?;
    let mut base = Base(None);
    links::read(bytes, &mut base);
    base.0
}

struct Base(Option<String>);

impl<'d> links::Visitor<'d> for Base {
    fn reference(&mut self, _: Reference<'_>) {}

    fn base(&mut self, href: Raw<'d>) {
        self.0 = Some(decoded(href).trim().to_owned());
    }

    fn is_done(&self) -> bool {
        self.0.is_some()
    }
}

struct PieceLinks<'p, 's, 't, 'v, V> {
    piece: &'p Piece<'p>,
    wants_anchors: bool,
    state: &'s mut HtmlState,
    output: &'s mut Output<'t, 'v, V>,
}

impl<'p, V: Visitor> links::Visitor<'p> for PieceLinks<'p, '_, '_, '_, V> {
    fn reference(&mut self, reference: Reference<'_>) {
        let found = Found {
            at: self.piece.at(reference.at),
            url: String::from_utf8_lossy(reference.url),
            kind: match reference.is_embedded {
                true => Kind::Embedded,
                false => Kind::Document,
            },
        };
        if reference.is_anchor {
            self.end_anchor();
            self.state.anchor = self.output.begin(found);
        } else {
            let alternative = reference.alternative.map(decoded).unwrap_or_default();
            self.output.link(found, &alternative);
        }
    }

    fn anchor(&mut self, name: Raw<'p>) {
        if self.wants_anchors {
            self.output.visitor.anchor(&decoded(name));
        }
    }

    fn end_anchor(&mut self) {
        self.state.end(self.output);
    }

    fn wants_text(&self) -> bool {
        self.output.is_open()
    }

    fn text(&mut self, text: &[u8]) {
        self.output.text(&String::from_utf8_lossy(text));
    }

    fn comment(&mut self, comment: Raw<'p>) {
        let end = self.piece.at(comment.span().end);
        self.output.comment(&decoded(comment), end);
    }

    fn is_done(&self) -> bool {
        self.output.is_done()
    }
}

/// The decoded text. A piece is cut only at ASCII characters, so that its slices are whole.
fn decoded(raw: Raw<'_>) -> Cow<'_, str> {
    match raw.decode() {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
