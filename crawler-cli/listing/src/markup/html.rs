//! HTML as a stream of tags, attributes, texts and comments (HTML §13.2.5). No DOM is built.
//!
//! The tokeniser jumps from tag to tag and lends slices of the page with their places. The stream is the one that
//! html5gum gives, which reads text byte by byte: it takes 3.4 times as long for listings, and 20 times for prose. Tests
//! compare the two. Scripting is off: the content of `<noscript>` is markup.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use super::references::{self, Context};

/// A receiver of the stream. Names are in lower case, but a name of more than [`NAME`] bytes is given as written.
pub trait Sink<'d> {
    /// A start tag begins. Its attributes follow, and then [`opened`](Self::opened).
    fn open(&mut self, name: &[u8]);
    /// An attribute of the start tag. The same name may come again: the first one counts (HTML §13.2.5.33).
    fn attribute(&mut self, name: &[u8], value: Raw<'d>);
    /// The start tag is complete. A tag that the end of the page cuts is no tag, and is not completed.
    fn opened(&mut self);
    /// An end tag.
    fn close(&mut self, _name: &[u8]) {}
    /// Whether text is wanted at this point.
    fn wants_text(&self) -> bool {
        false
    }
    /// Text. One text may come in several parts.
    fn text(&mut self, _text: Raw<'d>) {}
    /// The content of a comment.
    fn comment(&mut self, _comment: Raw<'d>) {}
    /// Whether nothing more is wanted.
    fn is_done(&self) -> bool;
}

/// Longest name of a tag or an attribute that is given in lower case.
pub const NAME: usize = 32;

/// A text or a value as it stands in the page.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'d> {
    /// The bytes, as written.
    pub bytes: &'d [u8],
    /// Where the bytes begin in the page.
    pub at: usize,
    /// Where character references are known.
    context: Option<Context>,
}

impl<'d> Raw<'d> {
    /// The text with character references decoded, and CR LF and CR replaced by LF.
    pub fn decode(self) -> Cow<'d, [u8]> {
        references::decode(self.bytes, self.context)
    }

    /// Where the bytes stand in the page.
    pub fn span(self) -> Range<usize> {
        self.at..self.at + self.bytes.len()
    }
}

/// Tokenises a page.
pub fn read<'d>(page: &'d [u8], sink: &mut impl Sink<'d>) {
    let mut tokeniser = Tokeniser {
        page,
        at: 0,
        is_xml: is_xml(page),
        foreign: 0,
    };
    tokeniser.read(sink);
}

/// Whether a page that begins so is XHTML.
fn is_xml(page: &[u8]) -> bool {
    let start = page.trim_ascii_start();
    start.starts_with(b"<?xml") || start.starts_with(b"\xEF\xBB\xBF<?xml")
}

#[derive(Clone, Copy)]
struct Tokeniser<'d> {
    page: &'d [u8],
    at: usize,
    /// The page is XHTML: `<script/>` is a whole element.
    is_xml: bool,
    /// How many elements `svg` and `math` are open. Their content follows the rules of XML in part.
    foreign: u32,
}

impl<'d> Tokeniser<'d> {
    /// Gives the rest of the page.
    fn read(&mut self, sink: &mut impl Sink<'d>) {
        while !sink.is_done() {
            self.skip_text(sink);
            // The end of the page ends the last markup.
            if self.at == self.page.len() || self.markup(sink).is_none() {
                break;
            }
        }
    }

    /// Gives the text before the next markup.
    fn skip_text(&mut self, sink: &mut impl Sink<'d>) {
        let start = self.at;
        self.at = self.next_markup(start).unwrap_or(self.page.len());
        self.give_text(start..self.at, Some(Context::Text), sink);
    }

    /// Where the next markup begins.
    fn next_markup(&self, mut from: usize) -> Option<usize> {
        loop {
            let at = from + memchr(b'<', &self.page[from..])?;
            if self.is_markup(at) {
                return Some(at);
            }
            from = at + 1;
        }
    }

    /// Whether the `<` at `at` begins markup.
    fn is_markup(&self, at: usize) -> bool {
        match self.page.get(at + 1) {
            Some(b'/') => self.page.len() > at + 2,
            Some(next) => next.is_ascii_alphabetic() || matches!(next, b'!' | b'?'),
            None => false,
        }
    }

    fn give_text(&self, range: Range<usize>, context: Option<Context>, sink: &mut impl Sink<'d>) {
        if !range.is_empty() && sink.wants_text() {
            sink.text(self.raw(range, context));
        }
    }

    fn raw(&self, range: Range<usize>, context: Option<Context>) -> Raw<'d> {
        Raw {
            at: range.start,
            bytes: &self.page[range],
            context,
        }
    }

    /// Reads the markup that begins with the `<` at `at`. `None`: the page ends inside.
    fn markup(&mut self, sink: &mut impl Sink<'d>) -> Option<()> {
        match self.page[self.at + 1] {
            b'/' => match self.page[self.at + 2] {
                b'>' => {
                    self.at += 3;
                    Some(())
                }
                next if next.is_ascii_alphabetic() => self.end_tag(sink),
                _ => self.bogus_comment(self.at + 2, sink),
            },
            b'!' => self.declaration(sink),
            b'?' => self.bogus_comment(self.at + 1, sink),
            _ => self.start_tag(sink),
        }
    }

    fn start_tag(&mut self, sink: &mut impl Sink<'d>) -> Option<()> {
        self.at += 1;
        let name = self.tag_name()?;
        let mut buffer = [0; NAME];
        let name = lower(name, &mut buffer);
        sink.open(name);
        let is_empty = self.attributes(|name, value| sink.attribute(name, value))?;
        sink.opened();
        let is_foreign = self.foreign > 0 || matches!(name, b"svg" | b"math");
        if is_empty && (self.is_xml || is_foreign) {
            sink.close(name);
            return Some(());
        }
        match name {
            b"svg" | b"math" => self.foreign += 1,
            b"title" if self.foreign > 0 => {}
            b"title" | b"textarea" => self.raw_text(name, Some(Context::Text), sink),
            b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => {
                self.raw_text(name, None, sink);
            }
            b"script" => self.script(sink),
            b"plaintext" => {
                let start = self.at;
                self.at = self.page.len();
                self.give_text(start..self.at, None, sink);
            }
            _ => {}
        }
        Some(())
    }

    fn end_tag(&mut self, sink: &mut impl Sink<'d>) -> Option<()> {
        self.at += 2;
        let name = self.tag_name()?;
        // End tags can have attributes, which mean nothing.
        self.attributes(|_, _| {})?;
        let mut buffer = [0; NAME];
        let name = lower(name, &mut buffer);
        if matches!(name, b"svg" | b"math") {
            self.foreign = self.foreign.saturating_sub(1);
        }
        sink.close(name);
        Some(())
    }

    /// Reads the tag name at `at`.
    fn tag_name(&mut self) -> Option<&'d [u8]> {
        let rest = &self.page[self.at..];
        let is_end = |byte: &u8| is_blank(*byte) || matches!(byte, b'/' | b'>');
        let length = rest.iter().position(is_end)?;
        self.at += length;
        Some(&rest[..length])
    }

    /// Reads the attributes at `at`, and goes behind the tag. Returns whether the tag ends in `/>`.
    fn attributes(&mut self, mut give: impl FnMut(&[u8], Raw<'d>)) -> Option<bool> {
        let mut is_behind_slash = false;
        loop {
            match *self.page.get(self.at)? {
                b'>' => {
                    self.at += 1;
                    return Some(is_behind_slash);
                }
                b'/' => {
                    is_behind_slash = true;
                    self.at += 1;
                }
                byte if is_blank(byte) => {
                    is_behind_slash = false;
                    self.at += 1;
                }
                _ => {
                    is_behind_slash = false;
                    let (name, value) = self.attribute()?;
                    give(lower(name, &mut [0; NAME]), value);
                }
            }
        }
    }

    fn attribute(&mut self) -> Option<(&'d [u8], Raw<'d>)> {
        let rest = &self.page[self.at..];
        // A name may begin with `=`.
        let is_end = |byte: &u8| is_blank(*byte) || matches!(byte, b'/' | b'>' | b'=');
        let length = 1 + rest[1..].iter().position(is_end)?;
        let name = &rest[..length];
        self.at += length;
        self.skip_blanks();
        if *self.page.get(self.at)? != b'=' {
            return Some((name, self.value(self.at..self.at)));
        }
        self.at += 1;
        self.skip_blanks();
        let start = self.at;
        let rest = &self.page[start..];
        let value = match *rest.first()? {
            b'>' => start..start,
            quote @ (b'"' | b'\'') => {
                let length = memchr(quote, &rest[1..])?;
                self.at = start + length + 2;
                start + 1..start + 1 + length
            }
            _ => {
                let is_end = |byte: &u8| is_blank(*byte) || *byte == b'>';
                self.at = start + rest.iter().position(is_end)?;
                start..self.at
            }
        };
        Some((name, self.value(value)))
    }

    fn value(&self, range: Range<usize>) -> Raw<'d> {
        self.raw(range, Some(Context::Attribute))
    }

    fn skip_blanks(&mut self) {
        while self.page.get(self.at).is_some_and(|&byte| is_blank(byte)) {
            self.at += 1;
        }
    }

    /// A comment, the DOCTYPE, or a CDATA section.
    fn declaration(&mut self, sink: &mut impl Sink<'d>) -> Option<()> {
        let rest = &self.page[self.at + 2..];
        if rest.starts_with(b"--") {
            return self.comment(sink);
        }
        if rest.starts_with(b"[CDATA[") && (self.is_xml || self.foreign > 0) {
            let start = self.at + 9;
            let length = memmem::find(&self.page[start..], b"]]>");
            let end = length.map_or(self.page.len(), |length| start + length);
            self.at = (end + 3).min(self.page.len());
            self.give_text(start..end, None, sink);
            return Some(());
        }
        let is_doctype = |word: &[u8]| word.eq_ignore_ascii_case(b"DOCTYPE");
        if rest.get(..7).is_some_and(is_doctype) {
            self.at += 2 + memchr(b'>', rest)? + 1;
            return Some(());
        }
        self.bogus_comment(self.at + 2, sink)
    }

    fn comment(&mut self, sink: &mut impl Sink<'d>) -> Option<()> {
        let start = self.at + 4;
        let rest = &self.page[start..];
        let (length, behind) = if rest.starts_with(b">") {
            (0, 1)
        } else if rest.starts_with(b"->") {
            (0, 2)
        } else {
            comment_end(rest)
        };
        self.at = start + behind;
        sink.comment(self.raw(start..start + length, None));
        Some(())
    }

    /// Markup that is read as a comment, up to the next `>`.
    fn bogus_comment(&mut self, start: usize, sink: &mut impl Sink<'d>) -> Option<()> {
        let length = memchr(b'>', &self.page[start..]);
        let end = length.map_or(self.page.len(), |length| start + length);
        self.at = (end + 1).min(self.page.len());
        sink.comment(self.raw(start..end, None));
        Some(())
    }

    /// The content of an element that holds no tags, up to its end tag.
    fn raw_text(&mut self, name: &[u8], context: Option<Context>, sink: &mut impl Sink<'d>) {
        let start = self.at;
        let rest = &self.page[start..];
        let mut ends = memmem::find_iter(rest, b"</");
        let end = ends.find(|&at| is_tag(&rest[at + 2..], name));
        self.at = end.map_or(self.page.len(), |end| start + end);
        self.give_text(start..self.at, context, sink);
    }

    fn script(&mut self, sink: &mut impl Sink<'d>) {
        let start = self.at;
        self.at += script_length(&self.page[start..]);
        self.give_text(start..self.at, None, sink);
    }
}

/// The length of the comment that starts here, without and with its end. A comment ends at `-->` or `--!>`.
fn comment_end(rest: &[u8]) -> (usize, usize) {
    let mut from = 0;
    while let Some(at) = memmem::find(&rest[from..], b"--") {
        let start = from + at;
        let dashes = rest[start..].iter().take_while(|&&byte| byte == b'-');
        let dashes = dashes.count();
        let behind = start + dashes;
        match &rest[behind..] {
            [b'>', ..] => return (behind - 2, behind + 1),
            [b'!', b'>', ..] => return (behind - 2, behind + 2),
            _ => from = behind,
        }
    }
    // The end of the page ends the comment too, and dashes before that are no content.
    let ends = [&b"--!"[..], b"--", b"-"];
    let content = ends.iter().find_map(|end| rest.strip_suffix(*end));
    (content.unwrap_or(rest).len(), rest.len())
}

/// How long the content of a `<script>` is. Inside `<!--` and `-->`, a further `<script>` has its own end tag (HTML
/// §13.2.5.17 to §13.2.5.31).
fn script_length(rest: &[u8]) -> usize {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Plain,
        Escaped,
        DoubleEscaped,
    }
    let (mut state, mut at) = (State::Plain, 0);
    // Where the `--` of the `<!--` stands: it can be a part of the `-->`.
    let mut escaped_at = 0;
    loop {
        let found = match state {
            State::Plain => memchr(b'<', &rest[at..]),
            State::Escaped | State::DoubleEscaped => memchr2(b'<', b'>', &rest[at..]),
        };
        let Some(found) = found else {
            return rest.len();
        };
        let here = at + found;
        at = here + 1;
        let is_end_tag = rest[at..].starts_with(b"/") && is_tag(&rest[at + 1..], b"script");
        if rest[here] == b'>' {
            if rest[escaped_at..here].ends_with(b"--") {
                state = State::Plain;
            }
            continue;
        }
        match state {
            State::Plain | State::Escaped if is_end_tag => return here,
            State::Plain if rest[here..].starts_with(b"<!--") => {
                state = State::Escaped;
                escaped_at = here + 2;
            }
            State::Escaped if is_tag(&rest[at..], b"script") => state = State::DoubleEscaped,
            State::DoubleEscaped if is_end_tag => state = State::Escaped,
            _ => {}
        }
    }
}

/// Whether the rest of the page begins with this tag name, behind `<` or `</`.
fn is_tag(rest: &[u8], name: &[u8]) -> bool {
    let word = rest.get(..name.len());
    let is_name = word.is_some_and(|word| word.eq_ignore_ascii_case(name));
    let after = rest.get(name.len());
    is_name && after.is_some_and(|&byte| is_blank(byte) || matches!(byte, b'/' | b'>'))
}

/// The name in lower case. A NUL stays: no name that means anything holds one.
fn lower<'n>(name: &'n [u8], buffer: &'n mut [u8; NAME]) -> &'n [u8] {
    if name.len() > NAME || name.iter().all(u8::is_ascii_lowercase) {
        return name;
    }
    let buffer = &mut buffer[..name.len()];
    buffer.copy_from_slice(name);
    buffer.make_ascii_lowercase();
    buffer
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0C)
}

#[cfg(test)]
mod tests;
