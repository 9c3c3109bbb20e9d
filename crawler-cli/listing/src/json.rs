//! Listings in JSON: nginx with `autoindex_format json` or `jsonp`, and Caddy for `Accept: application/json`. Both are
//! an array of objects. The reader keeps one object at a time in memory.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use url::Url;

use super::children::Children;
use super::shape::Shape;
use super::{EntryKind, Listing, PageError, PageLimits, time};
use crate::range::SizeRange;

pub(super) fn read(body: &[u8], page: &Url, limits: PageLimits) -> Result<Listing, PageError> {
    let (array, is_closed) = without_callback(body);
    if body.trim_ascii().is_empty() {
        return Err(PageError::NotAListing);
    }
    // nginx writes the bytes of file names unchanged, so that the text need not be UTF-8.
    let (text, is_latin) = match std::str::from_utf8(array) {
        Ok(text) => (Cow::Borrowed(text), false),
        // The page was cut inside a character.
        Err(error) if error.error_len().is_none() => {
            let whole = std::str::from_utf8(&array[..error.valid_up_to()]);
            (Cow::Borrowed(whole.unwrap_or("")), false)
        }
        Err(_) => (array.iter().map(|&byte| char::from(byte)).collect(), true),
    };
    let mut reader = ArrayReader::new(page, limits);
    reader.is_latin = is_latin;
    let text = without_lone_surrogates(&text);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let outcome = reader
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    if let Some(error) = reader.error {
        return Err(error);
    }
    if let Err(error) = &outcome
        && !error.is_eof()
        && reader.objects == 0
    {
        return Err(PageError::NotAListing);
    }
    let mut listing = Listing::of(reader.children, reader.shape.unwrap_or(Shape::Nginx));
    listing.ended = outcome.is_ok() && is_closed;
    Ok(listing)
}

/// The text with an escaped NUL, which no name can have, in place of each half of a surrogate pair that stands alone: such
/// a name was no UTF-8, and is left out and counted, instead of the whole page.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        at += found;
        let Some(unit) = escaped_unit(&text.as_bytes()[at..]) else {
            // An escape of one character, such as `\\`.
            at = (at + 2).min(text.len());
            continue;
        };
        let low = escaped_unit(text.as_bytes().get(at + 6..).unwrap_or_default());
        let is_pair = (0xD800..0xDC00).contains(&unit)
            && low.is_some_and(|low| (0xDC00..0xE000).contains(&low));
        if !is_pair && (0xD800..0xE000).contains(&unit) {
            out.push_str(&text[copied..at]);
            out.push_str("\\u0000");
            copied = at + 6;
        }
        at += if is_pair { 12 } else { 6 };
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(out + &text[copied..]),
    }
}

/// The number of the escape `\uXXXX` at the start.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

/// The array inside nginx's JSONP call, and whether the call is complete.
fn without_callback(body: &[u8]) -> (&[u8], bool) {
    let body = body.trim_ascii();
    let Some(call) = body.strip_prefix(b"/* callback */") else {
        return (body, true);
    };
    let Some(at) = memchr::memchr(b'(', call) else {
        return (b"", false);
    };
    let inside = &call[at + 1..];
    match inside.strip_suffix(b");") {
        Some(array) => (array, true),
        None => (inside, false),
    }
}

/// Reads the array and adds one entry for each object.
#[derive(Debug)]
struct ArrayReader {
    children: Children,
    limits: PageLimits,
    shape: Option<Shape>,
    /// The text was not UTF-8: each character represents one byte.
    is_latin: bool,
    objects: usize,
    error: Option<PageError>,
}

impl<'de> DeserializeSeed<'de> for &mut ArrayReader {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut ArrayReader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of a directory's entries")
    }

    /// Caddy writes `null` for an empty directory.
    fn visit_unit<E>(self) -> Result<(), E> {
        self.shape = Some(Shape::Caddy);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<JsonEntry<'de>>()? {
            self.objects += 1;
            let outcome = if self.objects > self.limits.links {
                Err(PageError::TooManyLinks)
            } else {
                self.add(&item)
            };
            if let Err(error) = outcome {
                self.error = Some(error);
                return Err(A::Error::custom(error));
            }
        }
        Ok(())
    }
}

impl ArrayReader {
    fn new(page: &Url, limits: PageLimits) -> Self {
        Self {
            children: Children::new(page, limits),
            limits,
            shape: None,
            is_latin: false,
            objects: 0,
            error: None,
        }
    }

    fn add(&mut self, item: &JsonEntry<'_>) -> Result<(), PageError> {
        let name = item.name.as_deref().ok_or(PageError::NotAListing)?;
        let (shape, is_directory, modified) = match &item.kind {
            Some(kind) => (Shape::Nginx, kind == "directory", &item.mtime),
            None => {
                let is_directory = item.is_dir.ok_or(PageError::NotAListing)?;
                (Shape::Caddy, is_directory, &item.mod_time)
            }
        };
        let kind = match is_directory {
            true => EntryKind::Directory,
            false => EntryKind::File,
        };
        self.shape = self.shape.or(Some(shape));
        let name = self.bytes(name);
        let name = match shape {
            Shape::Caddy => name.strip_suffix(b"/").unwrap_or(&name),
            _ => &name,
        };
        let Some(at) = self.children.named(name, kind) else {
            return Ok(());
        };
        let Some(entry) = self.children.entry(at) else {
            return Ok(());
        };
        entry.size = item.size.map(SizeRange::exact);
        entry.modified = modified
            .as_ref()
            .and_then(|text| time::exact(text.as_bytes()));
        Ok(())
    }

    fn bytes<'t>(&self, text: &'t str) -> Cow<'t, [u8]> {
        if !self.is_latin {
            return Cow::Borrowed(text.as_bytes());
        }
        let mut bytes = Vec::with_capacity(text.len());
        for char in text.chars() {
            match u8::try_from(char) {
                Ok(byte) => bytes.push(byte),
                // The character came from a `\u` escape.
                Err(_) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Cow::Owned(bytes)
    }
}

/// The fields of one object that are read. A value of an unexpected type counts as missing.
#[derive(Default)]
struct JsonEntry<'de> {
    name: Option<Cow<'de, str>>,
    /// `type`
    kind: Option<Cow<'de, str>>,
    mtime: Option<Cow<'de, str>>,
    is_dir: Option<bool>,
    mod_time: Option<Cow<'de, str>>,
    size: Option<u64>,
}

impl<'de> Deserialize<'de> for JsonEntry<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = JsonEntry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonEntry<'de>, A::Error> {
        let mut object = JsonEntry::default();
        while let Some(key) = map.next_key::<Scalar<'de>>()? {
            let value: Scalar<'de> = map.next_value()?;
            match key.text().as_deref() {
                Some("name") => object.name = value.text(),
                Some("type") => object.kind = value.text(),
                Some("mtime") => object.mtime = value.text(),
                Some("mod_time") => object.mod_time = value.text(),
                Some("is_dir") => {
                    object.is_dir = match value {
                        Scalar::Flag(flag) => Some(flag),
                        _ => None,
                    }
                }
                Some("size") => {
                    object.size = match value {
                        Scalar::Number(number) => Some(number),
                        _ => None,
                    }
                }
                _ => {}
            }
        }
        Ok(object)
    }
}

/// A value of an object, if its type is one that is read.
enum Scalar<'de> {
    Text(Cow<'de, str>),
    Number(u64),
    Flag(bool),
    Other,
}

impl<'de> Scalar<'de> {
    fn text(self) -> Option<Cow<'de, str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    /// The text has an escape, so that it cannot be borrowed.
    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Flag(flag))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scalar<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}
