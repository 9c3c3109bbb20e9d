//! Character references of HTML (HTML §13.2.5.72): `&amp;`, `&#233;`.

use std::borrow::Cow;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use memchr::{memchr, memchr2, memchr3};

/// Where a character reference stands. In an attribute, `&name=` and `&namex` are no references without `;`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Context {
    /// The text of an element.
    Text,
    /// The value of an attribute. A NUL becomes U+FFFD.
    Attribute,
}

/// Decodes character references, and replaces CR LF and CR by LF. Without a context there are no references.
pub fn decode(text: &[u8], context: Option<Context>) -> Cow<'_, [u8]> {
    let plain = match context {
        Some(Context::Attribute) => memchr3(b'&', b'\r', 0, text),
        Some(Context::Text) => memchr2(b'&', b'\r', text),
        None => memchr(b'\r', text),
    };
    let Some(plain) = plain else {
        return Cow::Borrowed(text);
    };
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut length = plain;
    loop {
        decoded.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        match rest {
            [] => return Cow::Owned(decoded),
            [b'\r', b'\n', ..] => rest = &rest[1..],
            [b'\r', ..] => {
                decoded.push(b'\n');
                rest = &rest[1..];
            }
            [0, ..] if context == Some(Context::Attribute) => {
                decoded.extend_from_slice("\u{FFFD}".as_bytes());
                rest = &rest[1..];
            }
            [b'&', ..] if let Some(context) = context => rest = one(rest, context, &mut decoded),
            _ => {
                decoded.push(rest[0]);
                rest = &rest[1..];
            }
        }
        let next = memchr3(b'&', b'\r', 0, rest);
        length = next.unwrap_or(rest.len());
    }
}

/// Decodes what the `&` begins. Returns the rest.
fn one<'t>(text: &'t [u8], context: Context, decoded: &mut Vec<u8>) -> &'t [u8] {
    let name = text[1..].iter();
    let is_number = text.get(1) == Some(&b'#');
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || (is_number && **byte == b'#');
    // No name of an entity is longer than 31 bytes, but numbers can have any number of zeros.
    let limit = if is_number { usize::MAX } else { LONGEST };
    let length = name.take_while(is_name).take(limit).count();
    let (reference, rest) = text.split_at(1 + length);
    let name = &reference[1..];
    if let Some(char) = usual(name)
        && let Some(rest) = rest.strip_prefix(b";")
    {
        decoded.push(char);
        return rest;
    }
    if name.is_empty() {
        decoded.push(b'&');
        return rest;
    }
    // The byte behind the name decides whether a reference without `;` is one.
    let (reference, rest) = match rest.first() {
        Some(b';' | b'=') => text.split_at(2 + length),
        _ => (reference, rest),
    };
    by_html5gum(reference, context, decoded);
    rest
}

/// More than the longest name of an entity.
const LONGEST: usize = 40;

/// The references that nearly all pages use.
fn usual(name: &[u8]) -> Option<u8> {
    Some(match name {
        b"amp" => b'&',
        b"lt" => b'<',
        b"gt" => b'>',
        b"quot" => b'"',
        b"#39" => b'\'',
        _ => return None,
    })
}

/// html5gum has the table of entities.
fn by_html5gum(reference: &[u8], context: Context, decoded: &mut Vec<u8>) {
    let mut page = Vec::with_capacity(reference.len() + 8);
    if context == Context::Attribute {
        page.extend_from_slice(b"<a b=\"");
    }
    page.extend_from_slice(reference);
    if context == Context::Attribute {
        page.extend_from_slice(b"\">");
    }
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        if let CallbackEvent::AttributeValue { value } | CallbackEvent::String { value } = event {
            decoded.extend_from_slice(value);
        }
        None
    });
    let _ = Tokenizer::new_with_emitter(page.as_slice(), emitter).next();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In pages, the streams of html5gum say how they are decoded.
    #[test]
    fn references_of_other_documents_are_decoded_too() {
        assert_eq!(&*decode(b"&amp;\r\0", None), b"&amp;\n\0");
    }
}
