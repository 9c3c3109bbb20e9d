//! HTML as a stream of tags, attributes and text.
//!
//! Index pages are written by programs, in plain HTML, and [`scan`] reads just that: it jumps from tag to tag, and
//! lends the page's own bytes. Where a page is anything but plain it gives up, and [`read`] reads the page with
//! html5gum, as a browser would. For all that `scan` accepts, both give the same stream; tests and a fuzz target hold
//! one against the other.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use memchr::{memchr, memchr2, memmem};

/// What takes the stream.
pub(super) trait Events {
    /// A start tag; its attributes follow. Names are in lower case.
    fn open(&mut self, name: &[u8]);
    /// An attribute whose value is not empty.
    fn attribute(&mut self, name: &[u8], value: &[u8]);
    /// An end tag.
    fn close(&mut self, name: &[u8]);
    /// Whether text that comes now matters.
    fn wants_text(&self) -> bool;
    /// Text, perhaps one part of several, with its references decoded.
    fn text(&mut self, text: &[u8]);
    /// Whether nothing more is wanted.
    fn is_full(&self) -> bool;
}

/// Tokenises as a browser does.
pub(super) fn read(body: &[u8], events: &mut impl Events) {
    let mut attribute = Vec::new();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        match event {
            CallbackEvent::OpenStartTag { name } => events.open(name),
            CallbackEvent::AttributeName { name } => {
                attribute.clear();
                attribute.extend_from_slice(name);
            }
            CallbackEvent::AttributeValue { value } => events.attribute(&attribute, value),
            CallbackEvent::EndTag { name } => events.close(name),
            CallbackEvent::String { value } if events.wants_text() => events.text(value),
            _ => {}
        }
        events.is_full().then_some(())
    });
    // Scripts and styles are text, whatever tags they seem to hold.
    emitter.naively_switch_states(true);
    // Only the callback's wish to stop is ever yielded.
    let _ = Tokenizer::new_with_emitter(body, emitter).next();
}

/// The page has something that is not plain; what `events` got until then is to be forgotten.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NotPlain;

/// Tokenises plain HTML.
pub(super) fn scan(body: &[u8], events: &mut impl Events) -> Result<(), NotPlain> {
    let mut scanner = Scanner {
        body,
        at: 0,
        name: Vec::new(),
        decoded: Vec::new(),
    };
    while !events.is_full() {
        let rest = &body[scanner.at..];
        let length = memchr(b'<', rest).unwrap_or(rest.len());
        if length > 0 && events.wants_text() {
            scanner.text(&rest[..length], events)?;
        }
        scanner.at += length;
        if scanner.at == body.len() {
            break;
        }
        scanner.markup(events)?;
    }
    Ok(())
}

struct Scanner<'b> {
    body: &'b [u8],
    at: usize,
    /// A name in lower case, and a value or a text without references.
    name: Vec<u8>,
    decoded: Vec<u8>,
}

impl<'b> Scanner<'b> {
    /// What begins with the `<` here.
    fn markup(&mut self, events: &mut impl Events) -> Result<(), NotPlain> {
        match self.body.get(self.at + 1).ok_or(NotPlain)? {
            b'a'..=b'z' | b'A'..=b'Z' => self.start_tag(events),
            b'/' => self.end_tag(events),
            b'!' => self.declaration(),
            b'?' => {
                self.skip_past(b">");
                Ok(())
            }
            _ => Err(NotPlain),
        }
    }

    fn start_tag(&mut self, events: &mut impl Events) -> Result<(), NotPlain> {
        self.at += 1;
        let name = self.tag_name()?;
        let name = lower(name, &mut self.name)?;
        let raw = raw_text(name)?;
        events.open(name);
        loop {
            self.skip_blanks();
            match self.body.get(self.at).ok_or(NotPlain)? {
                b'>' => break,
                b'/' => self.at += 1,
                _ => self.attribute(events)?,
            }
        }
        if self.body[self.at - 1] == b'/' && raw.is_some() {
            return Err(NotPlain);
        }
        self.at += 1;
        match raw {
            Some(end) => self.skip_raw(end),
            None => Ok(()),
        }
    }

    fn attribute(&mut self, events: &mut impl Events) -> Result<(), NotPlain> {
        let start = self.at;
        let is_end = |byte: &u8| is_blank(*byte) || matches!(byte, b'/' | b'>' | b'=');
        let length = self.body[start..].iter().position(is_end).ok_or(NotPlain)?;
        let name = &self.body[start..start + length];
        self.at += length;
        self.skip_blanks();
        if self.body.get(self.at) != Some(&b'=') {
            return lower(name, &mut self.name).map(|_| ());
        }
        self.at += 1;
        self.skip_blanks();
        let rest = &self.body[self.at..];
        let value = match rest.first().ok_or(NotPlain)? {
            quote @ (b'"' | b'\'') => {
                let end = memchr(*quote, &rest[1..]).ok_or(NotPlain)?;
                self.at += end + 2;
                &rest[1..=end]
            }
            b'>' => return Err(NotPlain),
            _ => {
                let is_end = |byte: &u8| is_blank(*byte) || *byte == b'>';
                let end = rest.iter().position(is_end).ok_or(NotPlain)?;
                self.at += end;
                &rest[..end]
            }
        };
        let name = lower(name, &mut self.name)?;
        if value.is_empty() {
            return Ok(());
        }
        // One pass over the value, which is short, for all that is not plain.
        let mut has_references = false;
        for &byte in value {
            match byte {
                b'\r' | 0 => return Err(NotPlain),
                b'&' => has_references = true,
                _ => {}
            }
        }
        if has_references {
            self.decoded.clear();
            decode(value, Place::Attribute, &mut self.decoded)?;
            events.attribute(name, &self.decoded);
        } else {
            events.attribute(name, value);
        }
        Ok(())
    }

    fn end_tag(&mut self, events: &mut impl Events) -> Result<(), NotPlain> {
        self.at += 2;
        if !self.body.get(self.at).is_some_and(u8::is_ascii_alphabetic) {
            return Err(NotPlain);
        }
        let name = self.tag_name()?;
        self.skip_blanks();
        // Attributes have no business here.
        if self.body.get(self.at) != Some(&b'>') {
            return Err(NotPlain);
        }
        self.at += 1;
        events.close(lower(name, &mut self.name)?);
        Ok(())
    }

    /// A comment or the DOCTYPE.
    fn declaration(&mut self) -> Result<(), NotPlain> {
        let rest = &self.body[self.at + 2..];
        if let Some(comment) = rest.strip_prefix(b"--") {
            let end = memmem::find(comment, b"-->");
            let inside = &comment[..end.unwrap_or(comment.len())];
            // These end a comment as well.
            if comment.starts_with(b">")
                || comment.starts_with(b"->")
                || memmem::find(inside, b"--!").is_some()
            {
                return Err(NotPlain);
            }
            self.at += 4;
            self.skip_past(b"-->");
            return Ok(());
        }
        let is_doctype = rest
            .get(..7)
            .is_some_and(|word| word.eq_ignore_ascii_case(b"DOCTYPE"));
        if !is_doctype {
            return Err(NotPlain);
        }
        self.skip_past(b">");
        Ok(())
    }

    /// Skips an element whose content is text without tags, up to its end tag.
    fn skip_raw(&mut self, name: &[u8]) -> Result<(), NotPlain> {
        let rest = &self.body[self.at..];
        let is_end = |at: &usize| {
            let behind = &rest[at + 2..];
            let after = behind.get(name.len());
            behind
                .get(..name.len())
                .is_some_and(|word| word.eq_ignore_ascii_case(name))
                && after.is_some_and(|&byte| is_blank(byte) || matches!(byte, b'/' | b'>'))
        };
        let end = memmem::find_iter(rest, b"</").find(is_end);
        let content = &rest[..end.unwrap_or(rest.len())];
        // A script in a comment in a script has an end tag of its own.
        if name == b"script" && memmem::find(content, b"<!--").is_some() {
            let holds_script = memmem::find_iter(content, b"<").any(|at| {
                content[at + 1..]
                    .get(..6)
                    .is_some_and(|word| word.eq_ignore_ascii_case(name))
            });
            if holds_script {
                return Err(NotPlain);
            }
        }
        self.at += content.len();
        Ok(())
    }

    fn text(&mut self, text: &'b [u8], events: &mut impl Events) -> Result<(), NotPlain> {
        if memchr2(b'&', b'\r', text).is_none() {
            events.text(text);
            return Ok(());
        }
        self.decoded.clear();
        decode(text, Place::Text, &mut self.decoded)?;
        events.text(&self.decoded);
        Ok(())
    }

    /// The name here, and goes behind it.
    fn tag_name(&mut self) -> Result<&'b [u8], NotPlain> {
        let rest = &self.body[self.at..];
        let is_end = |byte: &u8| is_blank(*byte) || matches!(byte, b'/' | b'>');
        let length = rest.iter().position(is_end).ok_or(NotPlain)?;
        self.at += length;
        Ok(&rest[..length])
    }

    fn skip_blanks(&mut self) {
        while self.body.get(self.at).is_some_and(|&byte| is_blank(byte)) {
            self.at += 1;
        }
    }

    /// Goes behind the next `end`, or to the end of the page.
    fn skip_past(&mut self, end: &[u8]) {
        let found = memmem::find(&self.body[self.at..], end);
        self.at = found.map_or(self.body.len(), |at| self.at + at + end.len());
    }
}

/// A name of a tag or an attribute in lower case, in `buffer` if it is not so already.
fn lower<'n>(name: &'n [u8], buffer: &'n mut Vec<u8>) -> Result<&'n [u8], NotPlain> {
    if !name.is_empty() && name.iter().all(u8::is_ascii_lowercase) {
        return Ok(name);
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'_');
    if name.is_empty() || !name.iter().all(is_plain) {
        return Err(NotPlain);
    }
    buffer.clear();
    buffer.extend(name.iter().map(u8::to_ascii_lowercase));
    Ok(buffer)
}

/// The element, if its content is text without tags, which is not shown.
fn raw_text(name: &[u8]) -> Result<Option<&'static [u8]>, NotPlain> {
    match name {
        b"script" => Ok(Some(b"script")),
        b"style" => Ok(Some(b"style")),
        b"title" => Ok(Some(b"title")),
        b"textarea" | b"xmp" | b"iframe" | b"noembed" | b"noframes" | b"noscript"
        | b"plaintext" => Err(NotPlain),
        _ => Ok(None),
    }
}

/// Where a reference stands: in an attribute, `&name=` is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Text,
    Attribute,
}

/// Decodes the usual references, and makes line ends one LF.
fn decode(mut text: &[u8], place: Place, out: &mut Vec<u8>) -> Result<(), NotPlain> {
    while let Some(at) = memchr2(b'&', b'\r', text) {
        out.extend_from_slice(&text[..at]);
        let rest = &text[at + 1..];
        if text[at] == b'\r' {
            if rest.first() != Some(&b'\n') {
                out.push(b'\n');
            }
            text = rest;
            continue;
        }
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'#';
        let length = rest.iter().take_while(is_name).count();
        let (name, behind) = rest.split_at(length);
        match behind.first() {
            _ if name.is_empty() => {
                out.push(b'&');
                text = rest;
            }
            Some(b';') => {
                let char = reference(name).ok_or(NotPlain)?;
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                text = &behind[1..];
            }
            Some(b'=') if place == Place::Attribute && name[0] != b'#' => {
                out.push(b'&');
                out.extend_from_slice(name);
                text = behind;
            }
            _ => return Err(NotPlain),
        }
    }
    out.extend_from_slice(text);
    Ok(())
}

/// The references that index pages have.
fn reference(name: &[u8]) -> Option<char> {
    if let Some(number) = name.strip_prefix(b"#") {
        let number = std::str::from_utf8(number).ok()?;
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        // Controls and what is no character have replacements.
        let is_plain = matches!(code, 0x09 | 0x0A | 0x20..=0x7E | 0xA0..=0xD7FF | 0xE000..=0xFDCF | 0xFDF0..=0xFFFD);
        return char::from_u32(code).filter(|_| is_plain);
    }
    Some(match name {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        b"nbsp" => '\u{a0}',
        b"mdash" => '\u{2014}',
        b"darr" => '\u{2193}',
        b"uarr" => '\u{2191}',
        _ => return None,
    })
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0C)
}

#[cfg(test)]
mod tests;
