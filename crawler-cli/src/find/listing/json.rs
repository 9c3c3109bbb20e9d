//! Listings in JSON: nginx with `autoindex_format json` or `jsonp`, and Caddy when it is asked for JSON. Both are an
//! array of objects; one object at a time is held.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::{Map, Value};
use url::Url;

use super::children::Children;
use super::shape::Shape;
use super::{EntryKind, Listing, PageError, PageLimits, time};
use crate::find::range::SizeRange;

pub(super) fn read(body: &[u8], page: &Url, limits: PageLimits) -> Result<Listing, PageError> {
    let (array, is_closed) = without_callback(body);
    if body.trim_ascii().is_empty() {
        return Err(PageError::NotAListing);
    }
    // Names of files are bytes, which nginx writes as they are.
    let (text, is_latin) = match std::str::from_utf8(array) {
        Ok(text) => (Cow::Borrowed(text), false),
        // A cut can fall inside of a character.
        Err(error) if error.error_len().is_none() => {
            let whole = std::str::from_utf8(&array[..error.valid_up_to()]);
            (Cow::Borrowed(whole.unwrap_or("")), false)
        }
        Err(_) => (array.iter().map(|&byte| char::from(byte)).collect(), true),
    };
    let mut items = Items {
        children: Children::new(page, limits),
        limits,
        shape: None,
        is_latin,
        objects: 0,
        error: None,
    };
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let outcome = items
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    if let Some(error) = items.error {
        return Err(error);
    }
    if let Err(error) = &outcome
        && !error.is_eof()
        && items.objects == 0
    {
        return Err(PageError::NotAListing);
    }
    let mut listing = Listing::of(items.children, items.shape.unwrap_or(Shape::Nginx));
    listing.ended = outcome.is_ok() && is_closed;
    Ok(listing)
}

/// The array inside of nginx's JSONP call, and whether the call is whole.
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

/// Takes the objects as they come.
struct Items<'a> {
    children: Children<'a>,
    limits: PageLimits,
    shape: Option<Shape>,
    /// Each character of the text is one byte.
    is_latin: bool,
    objects: usize,
    error: Option<PageError>,
}

impl<'de> DeserializeSeed<'de> for &mut Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of a directory's entries")
    }

    /// `null` is what Caddy makes of an empty directory.
    fn visit_unit<E>(self) -> Result<(), E> {
        self.shape = Some(Shape::Caddy);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Map<String, Value>>()? {
            self.objects += 1;
            let outcome = if self.objects > self.limits.links {
                Err(PageError::TooManyLinks)
            } else {
                self.item(&item)
            };
            if let Err(error) = outcome {
                self.error = Some(error);
                return Err(A::Error::custom(error));
            }
        }
        Ok(())
    }
}

impl Items<'_> {
    fn item(&mut self, item: &Map<String, Value>) -> Result<(), PageError> {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        let name = text("name").ok_or(PageError::NotAListing)?;
        let (shape, kind, modified) = if let Some(kind) = text("type") {
            let kind = match kind {
                "directory" => EntryKind::Directory,
                _ => EntryKind::File,
            };
            (Shape::Nginx, kind, text("mtime"))
        } else {
            let is_directory = item.get("is_dir").and_then(Value::as_bool);
            let kind = match is_directory.ok_or(PageError::NotAListing)? {
                true => EntryKind::Directory,
                false => EntryKind::File,
            };
            (Shape::Caddy, kind, text("mod_time"))
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
        let entry = &mut self.children.entries[at];
        entry.size = item
            .get("size")
            .and_then(Value::as_u64)
            .map(SizeRange::exact);
        entry.modified = modified.and_then(|text| time::exact(text.as_bytes()));
        Ok(())
    }

    fn bytes(&self, text: &str) -> Vec<u8> {
        if !self.is_latin {
            return text.as_bytes().to_vec();
        }
        let mut bytes = Vec::with_capacity(text.len());
        for char in text.chars() {
            match u8::try_from(char) {
                Ok(byte) => bytes.push(byte),
                // From an escape.
                Err(_) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        bytes
    }
}
