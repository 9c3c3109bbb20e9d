//! URLs of CSS (CSS Syntax 3): `url()` and `@import`. URLs in comments and strings, of `@namespace`, and those that only
//! name a part of the document itself (`url(#a)`) are no links.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

/// What a style sheet holds.
pub(super) enum CssItem<'t> {
    /// A URL, with its place as written, without quotes.
    Url(Range<usize>, Cow<'t, str>),
    /// The content of a comment.
    Comment(Range<usize>),
}

/// Gives the URLs and comments of a style sheet.
pub(super) fn read<'t>(text: &'t str, give: &mut impl FnMut(CssItem<'t>)) {
    let mut reader = CssReader {
        text,
        at: 0,
        rule: Rule::Other,
    };
    while let Some(item) = reader.next() {
        match item {
            CssItem::Url(_, url) if url.starts_with('#') || url.is_empty() => {}
            item => give(item),
        }
    }
}

/// Which at-rule the reader is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rule {
    /// `@import`, before its URL.
    Import,
    /// Up to `;` or `{`: strings are no URLs, and neither is `url()` in `@namespace`.
    Namespace,
    Other,
}

struct CssReader<'t> {
    text: &'t str,
    at: usize,
    rule: Rule,
}

impl<'t> CssReader<'t> {
    fn next(&mut self) -> Option<CssItem<'t>> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = &bytes[self.at..];
            self.at += rest.iter().position(|&byte| STOPS[usize::from(byte)])?;
            match bytes[self.at] {
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => return Some(self.comment()),
                quote @ (b'"' | b'\'') => {
                    let range = self.string(quote);
                    if self.rule == Rule::Import {
                        self.rule = Rule::Other;
                        return Some(self.url(range));
                    }
                }
                b'(' => {
                    let is_url = self.is_behind(b"url");
                    self.at += 1;
                    if is_url
                        && let Some(range) = self.url_token()
                        && self.rule != Rule::Namespace
                    {
                        self.rule = Rule::Other;
                        return Some(self.url(range));
                    }
                }
                b'@' => self.at_rule(),
                b'\\' => self.skip_escape(),
                b';' | b'{' | b'}' => {
                    self.rule = Rule::Other;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    fn url(&self, range: Range<usize>) -> CssItem<'t> {
        CssItem::Url(range.clone(), decode(&self.text[range]))
    }

    fn comment(&mut self) -> CssItem<'t> {
        let start = self.at + 2;
        let length = memmem::find(&self.text.as_bytes()[start..], b"*/");
        let end = length.map_or(self.text.len(), |length| start + length);
        self.at = (end + 2).min(self.text.len());
        CssItem::Comment(start..end)
    }

    /// Reads the string at `at`. A line end that is not escaped ends it too.
    fn string(&mut self, quote: u8) -> Range<usize> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        self.at = start;
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'\\' => self.skip_escape(),
                b'\n' | b'\r' | 0x0C => break,
                _ if byte == quote => {
                    self.at += 1;
                    return start..self.at - 1;
                }
                _ => self.at += 1,
            }
        }
        start..self.at
    }

    /// Reads what follows `url(`. `None`: this is no URL.
    fn url_token(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        self.skip_blanks();
        if let Some(quote @ (b'"' | b'\'')) = bytes.get(self.at) {
            return Some(self.string(*quote));
        }
        let start = self.at;
        let mut is_bad = false;
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b')' => break,
                b'\\' => self.skip_escape(),
                _ => {
                    is_bad |= matches!(byte, b'"' | b'\'' | b'(');
                    self.at += 1;
                }
            }
        }
        let raw = &self.text[start..self.at];
        let url = raw.trim_ascii_end();
        let is_one = !url.bytes().any(|byte| byte.is_ascii_whitespace());
        self.at = (self.at + 1).min(bytes.len());
        (is_one && !is_bad).then_some(start..start + url.len())
    }

    fn at_rule(&mut self) {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let is = |name: &[u8]| {
            let word = rest.get(..name.len());
            let is_name = word.is_some_and(|word| word.eq_ignore_ascii_case(name));
            is_name && !rest.get(name.len()).copied().is_some_and(is_ident)
        };
        self.rule = if is(b"import") {
            Rule::Import
        } else if is(b"namespace") {
            Rule::Namespace
        } else {
            Rule::Other
        };
        self.at += 1;
    }

    /// Whether this name ends at `at`.
    fn is_behind(&self, name: &[u8]) -> bool {
        let before = &self.text.as_bytes()[..self.at];
        let Some(start) = before.len().checked_sub(name.len()) else {
            return false;
        };
        let is_ident = start > 0 && is_ident(before[start - 1]);
        before[start..].eq_ignore_ascii_case(name) && !is_ident
    }

    fn skip_blanks(&mut self) {
        let rest = self.text.as_bytes()[self.at..].iter();
        self.at += rest.take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// Goes behind the `\` and the character that it escapes.
    fn skip_escape(&mut self) {
        let escaped = self.text[self.at + 1..].chars().next();
        self.at += 1 + escaped.map_or(0, char::len_utf8);
    }
}

fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'\\') || !byte.is_ascii()
}

/// Decodes escapes (CSS Syntax 3 §4.3.7).
fn decode(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut decoded = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit);
        let digits = digits.count();
        if digits > 0 {
            let code = u32::from_str_radix(&rest[..digits], 16).ok();
            let char = code.filter(|&code| code != 0).and_then(char::from_u32);
            decoded.push(char.unwrap_or('\u{FFFD}'));
            rest = &rest[digits..];
            rest = rest.strip_prefix("\r\n").unwrap_or_else(|| {
                rest.strip_prefix(|char: char| char.is_ascii_whitespace())
                    .unwrap_or(rest)
            });
            continue;
        }
        // An escaped line end is nothing.
        let line_end = ["\r\n", "\n", "\r", "\u{c}"].into_iter();
        if let Some(behind) = line_end.filter_map(|end| rest.strip_prefix(end)).next() {
            rest = behind;
        } else if let Some(char) = rest.chars().next() {
            decoded.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Bytes that can begin something of interest.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut i = 0;
    while i < STOP_BYTES.len() {
        stops[STOP_BYTES[i] as usize] = true;
        i += 1;
    }
    stops
};
const STOP_BYTES: &[u8] = b"/\"'(@\\;{}";
