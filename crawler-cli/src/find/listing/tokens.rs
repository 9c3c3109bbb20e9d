//! HTML as a stream of tags, attributes and text (HTML §13.2.5).
//!
//! Index pages are written by programs in plain HTML. [`scan`] reads only plain HTML: it jumps from tag to tag and
//! lends slices of the page. It stops at anything else; then [`read`] reads the page with html5gum, as a browser would.
//! For every page that `scan` accepts, both give the same stream: tests and a fuzz target compare them.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use memchr::{memchr, memchr2, memmem};

/// A receiver of the stream.
pub(super) trait Events {
    /// A start tag; its attributes follow. All names are in lower case.
    fn open(&mut self, name: &[u8]);
    /// An attribute whose value is not empty.
    fn attribute(&mut self, name: &[u8], value: &[u8]);
    /// An end tag.
    fn close(&mut self, name: &[u8]);
    /// Whether the receiver needs text at this point.
    fn wants_text(&self) -> bool;
    /// Text with character references decoded. A text may come in several parts.
    fn text(&mut self, text: &[u8]);
    /// Whether the receiver needs nothing more.
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
    // The content of scripts and styles is text.
    emitter.naively_switch_states(true);
    // The tokenizer yields only when the callback returns a value, which ends the reading.
    let _ = Tokenizer::new_with_emitter(body, emitter).next();
}

/// The page is not plain HTML. The caller discards what `events` has received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NotPlain;

/// Tokenises plain HTML.
///
/// # Errors
/// The page is not plain.
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
    /// Buffer for a name in lower case.
    name: Vec<u8>,
    /// Buffer for a value or text with its references decoded.
    decoded: Vec<u8>,
}

impl<'b> Scanner<'b> {
    /// Reads the markup that begins with the `<` at `at`.
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
        // Values are short: one pass finds references and bytes that are not plain.
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
            decode(value, ReferenceContext::Attribute, &mut self.decoded)?;
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
        // An end tag with attributes is not plain.
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
            // Browsers end a comment at these too.
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
        // A `<script>` inside a `<!--` comment inside a script has its own end tag (HTML §13.2.5).
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
        decode(text, ReferenceContext::Text, &mut self.decoded)?;
        events.text(&self.decoded);
        Ok(())
    }

    /// Reads the tag name at `at` and moves behind it.
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

/// The name of a tag or an attribute in lower case. `buffer` is used only if the name has to be changed.
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

/// The name of the element, if its content is text without tags that is not displayed.
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

/// Where a character reference stands. In an attribute, `&name=` is not a reference (HTML §13.2.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReferenceContext {
    Text,
    Attribute,
}

/// Decodes the usual character references, and replaces CR LF and CR by LF.
fn decode(mut text: &[u8], context: ReferenceContext, out: &mut Vec<u8>) -> Result<(), NotPlain> {
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
            Some(b'=') if context == ReferenceContext::Attribute && name[0] != b'#' => {
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

/// The character of a reference. Only references that occur on index pages are known.
fn reference(name: &[u8]) -> Option<char> {
    if let Some(number) = name.strip_prefix(b"#") {
        let number = std::str::from_utf8(number).ok()?;
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        // Browsers replace controls and noncharacters.
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
