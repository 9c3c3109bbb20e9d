//! Passes links on to the visitor, with their places. A link whose text follows is held until its text is known, and so
//! are the links inside: links are told in the order of their places.

use std::borrow::Cow;
use std::ops::Range;

use super::place::{Place, Places};
use super::switch::Switch;
use super::{Kind, Link, TEXT_BYTES, Visitor};

/// A link without its text.
#[derive(Debug)]
pub(super) struct Found<'u> {
    /// The offset that is reported as the place.
    pub(super) at: usize,
    pub(super) url: Cow<'u, str>,
    pub(super) kind: Kind,
}

/// A link whose text follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OpenLink(u64);

#[derive(Debug)]
pub(super) struct Output<'t, 'v, V> {
    pub(super) visitor: &'v mut V,
    places: Places<'t>,
    switch: Switch<'t>,
    held: Vec<Held>,
    /// How many of the held links are open.
    open: usize,
    /// The number of the first held link.
    first: u64,
    /// The URLs of the held links.
    urls: String,
    /// The texts of the held links.
    texts: String,
}

#[derive(Debug)]
struct Held {
    place: Place,
    url: Range<usize>,
    kind: Kind,
    text: Range<usize>,
    is_open: bool,
}

impl<'t, 'v, V: Visitor> Output<'t, 'v, V> {
    pub(super) fn new(text: &'t str, visitor: &'v mut V) -> Self {
        Self {
            visitor,
            places: Places::new(text),
            switch: Switch::new(text),
            held: Vec::new(),
            open: 0,
            first: 0,
            urls: String::new(),
            texts: String::new(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.visitor.is_done()
    }

    /// The place of an offset, for errors.
    pub(super) fn place(&mut self, at: usize) -> Place {
        self.places.of(at)
    }

    /// A comment that ends at `end`.
    pub(super) fn comment(&mut self, comment: &str, end: usize) {
        let places = &mut self.places;
        self.switch.comment(comment, || places.of(end).line);
    }

    /// A link with its text, which is a part of the texts of the open links too.
    pub(super) fn link(&mut self, found: Found<'_>, text: &str) {
        let Some((found, place)) = self.wanted(found) else {
            return;
        };
        if self.open > 0 {
            // The text of an image is a part of the text of the link around it.
            let start = self.texts.len();
            self.texts.push_str(cut(text, TEXT_BYTES));
            self.hold(found, place, start..self.texts.len(), false);
            return;
        }
        self.visitor.link(Link {
            url: found.url,
            line: place.line,
            column: place.column,
            text: collapsed(text),
            kind: found.kind,
        });
    }

    /// A link whose text follows. `None` if the link is not wanted.
    pub(super) fn begin(&mut self, found: Found<'_>) -> Option<OpenLink> {
        let (found, place) = self.wanted(found)?;
        let start = self.texts.len();
        self.hold(found, place, start..start, true);
        let last = self.held.len().checked_sub(1)?;
        Some(OpenLink(self.first + last as u64))
    }

    /// Whether text belongs to a link.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Text of the open links.
    pub(super) fn text(&mut self, text: &str) {
        if self.open > 0 {
            self.texts.push_str(text);
            if self.texts.len() > HELD_BYTES {
                self.flush();
            }
        }
    }

    /// The text of an open link is complete.
    pub(super) fn end(&mut self, link: OpenLink) {
        let index = link.0.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let Some(held) = index.and_then(|index| self.held.get_mut(index)) else {
            return;
        };
        if held.is_open {
            held.is_open = false;
            held.text.end = self.texts.len();
            self.open -= 1;
        }
        if self.open == 0 {
            self.flush();
        }
    }

    /// Tells all held links, with the texts that they have so far.
    pub(super) fn flush(&mut self) {
        for held in self.held.drain(..) {
            self.first += 1;
            let end = match held.is_open {
                true => self.texts.len(),
                false => held.text.end,
            };
            self.visitor.link(Link {
                url: Cow::Borrowed(&self.urls[held.url]),
                line: held.place.line,
                column: held.place.column,
                text: collapsed(&self.texts[held.text.start..end]),
                kind: held.kind,
            });
        }
        self.open = 0;
        self.urls.clear();
        self.texts.clear();
    }

    /// The link without blanks around its URL, with its place. `None` if its URL is empty, or if a comment switches the
    /// link off.
    fn wanted<'u>(&mut self, mut found: Found<'u>) -> Option<(Found<'u>, Place)> {
        let trimmed = found.url.trim_matches(is_trimmed);
        if trimmed.is_empty() {
            return None;
        }
        if trimmed.len() < found.url.len() {
            found.url = match found.url {
                Cow::Borrowed(url) => Cow::Borrowed(url.trim_matches(is_trimmed)),
                Cow::Owned(_) => Cow::Owned(trimmed.to_owned()),
            };
        }
        let place = self.places.of(found.at);
        self.switch
            .wants(found.at, place.line)
            .then_some((found, place))
    }

    fn hold(&mut self, found: Found<'_>, place: Place, text: Range<usize>, is_open: bool) {
        let start = self.urls.len();
        self.urls.push_str(&found.url);
        self.held.push(Held {
            place,
            url: start..self.urls.len(),
            kind: found.kind,
            text,
            is_open,
        });
        self.open += usize::from(is_open);
        if self.held.len() >= HELD || self.urls.len() > HELD_BYTES {
            self.flush();
        }
    }
}

/// What the URL parser removes around a URL: C0 controls and spaces (WHATWG URL §4.4).
fn is_trimmed(char: char) -> bool {
    char <= ' '
}

/// At most this number of bytes of a text, cut between characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The text without blanks around it, and with one space for blanks inside; at most [`TEXT_BYTES`].
pub(super) fn collapsed(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let is_plain = |text: &str| {
        let mut was_blank = false;
        text.bytes().all(|byte| {
            let is_double = was_blank && byte == b' ';
            was_blank = byte == b' ';
            !is_double && (byte == b' ' || !byte.is_ascii_whitespace())
        })
    };
    let start = cut(text, TEXT_BYTES);
    if is_plain(start) {
        return Cow::Borrowed(start.trim_end());
    }
    let mut collapsed = String::new();
    for word in text.split_ascii_whitespace() {
        if !collapsed.is_empty() {
            collapsed.push(' ');
        }
        collapsed.push_str(cut(word, TEXT_BYTES));
        if collapsed.len() > TEXT_BYTES {
            return Cow::Owned(cut(&collapsed, TEXT_BYTES).to_owned());
        }
    }
    Cow::Owned(collapsed)
}

/// Most links that are held, and most bytes of their URLs and texts. Then they are told with the texts that are known.
const HELD: usize = 256;
const HELD_BYTES: usize = 64 * 1024;
