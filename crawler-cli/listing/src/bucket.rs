//! The objects of a bucket (S3, Azure Blob Storage) as a directory tree. Keys are flat: a `/` in a key makes
//! directories by convention only. Only a listing that is requested with a delimiter shows a single directory. Of a
//! server that ignores the prefix that is asked for, only the keys with this prefix count. `xml` reads the elements.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};
use url::Url;

use super::children::Children;
use super::shape::Shape;
use super::{Directories, EntryKind, LeftOut, Listing, PageError, PageLimits};
use crate::path;
use crate::range::{ListedTime, SizeRange};

/// The content of one page of a bucket.
pub(super) struct Bucket<'a> {
    page: &'a Url,
    shape: Shape,
    /// The prefix that the server says it lists.
    pub(super) prefix: Vec<u8>,
    pub(super) is_delimited: bool,
    /// Keys and prefixes are `application/x-www-form-urlencoded`.
    pub(super) is_encoded: bool,
    pub(super) is_truncated: bool,
    /// How many keys and prefixes the page has, as the server says.
    pub(super) count: Option<u64>,
    /// Where the next page begins, in version 2 of the S3 protocol.
    pub(super) token: Option<Vec<u8>>,
    /// Where the next page begins, in version 1 and in Azure.
    pub(super) marker: Option<Vec<u8>>,
    pub(super) objects: Vec<Object>,
}

/// An object, or a common prefix of several objects.
#[derive(Default)]
pub(super) struct Object {
    pub(super) key: Vec<u8>,
    pub(super) is_prefix: bool,
    /// The key is percent-encoded, because it has characters that XML does not allow.
    pub(super) is_encoded: bool,
    pub(super) size: Option<SizeRange>,
    pub(super) modified: Option<ListedTime>,
}

impl<'a> Bucket<'a> {
    /// An empty page of S3 or Azure.
    pub(super) fn new(page: &'a Url, shape: Shape) -> Self {
        Self {
            page,
            shape,
            prefix: Vec::new(),
            is_delimited: false,
            is_encoded: false,
            is_truncated: false,
            count: None,
            token: None,
            marker: None,
            objects: Vec::new(),
        }
    }

    /// # Errors
    /// The server lists another prefix than that asked for.
    pub(super) fn finish(self, limits: PageLimits) -> Result<Listing, PageError> {
        let asked = self.asked();
        if self.lists_another(asked.as_deref()) {
            return Err(PageError::NotAListing);
        }
        let prefix = match &asked {
            Some(asked) => asked.clone(),
            None => self.decoded(&self.prefix).into_owned(),
        };
        let end = prefix.iter().rposition(|&byte| byte == b'/');
        let directory = &prefix[..end.map_or(0, |at| at + 1)];
        let mut children = Children::new(self.page, limits);
        let mut is_flat = true;
        let mut outside = LeftOut::default();
        for object in &self.objects {
            let key = self.key(object);
            // The server ignores the prefix, and lists the same for each directory.
            if asked.as_ref().is_some_and(|asked| !key.starts_with(asked)) {
                outside.add(&String::from_utf8_lossy(&key));
                continue;
            }
            is_flat &= Self::object(object, &key, directory, &mut children);
        }
        // Other directories have them, unless the server has another idea of keys than the request.
        let is_elsewhere = !children.entries.is_empty() || self.is_truncated || self.is_further();
        let mut listing = Listing::of(children, self.shape);
        let was_asked = self.page.query_pairs().any(|(key, _)| key == "delimiter");
        // A flat listing of the whole tree was cut or has subdirectories. A request with a delimiter lists one
        // directory.
        if !self.is_delimited && !was_asked && (!is_flat || self.is_truncated) {
            listing.entries.clear();
            listing.nameless = LeftOut::default();
            listing.overlong = LeftOut::default();
            listing.next = Some(self.target(&prefix));
        } else {
            listing.next = self.next();
        }
        if !is_elsewhere {
            listing.outside = outside;
        }
        let has_less = self
            .count
            .is_some_and(|count| count > self.objects.len() as u64);
        listing.stops = (has_less || self.is_truncated) && listing.next.is_none();
        listing.directory = Some(format!("{}{}", self.page.path(), encoded_path(directory)));
        listing.directories = Directories::Query(self.target(directory));
        Ok(listing)
    }

    /// Whether the page is about another prefix, and has nothing below the one that was asked for: what that has stays
    /// unknown. A server that ignores prefixes names none.
    fn lists_another(&self, asked: Option<&[u8]>) -> bool {
        let Some(asked) = asked else {
            return false;
        };
        let bare = |prefix: &[u8]| {
            let decoded: Vec<u8> = percent_decode(prefix.trim_ascii()).collect();
            let start = decoded.strip_prefix(b"/").unwrap_or(&decoded);
            start.strip_suffix(b"/").unwrap_or(start).to_vec()
        };
        let prefix = bare(&self.prefix);
        let has_some = || {
            self.objects
                .iter()
                .any(|it| self.key(it).starts_with(asked))
        };
        !prefix.is_empty() && prefix != bare(asked) && !has_some()
    }

    /// The prefix that the request asks for, if any.
    fn asked(&self) -> Option<Vec<u8>> {
        let mut pairs = self.page.query_pairs();
        let (_, prefix) = pairs.find(|(key, _)| key == "prefix")?;
        let is_plain = !prefix.contains(char::REPLACEMENT_CHARACTER);
        (is_plain && !prefix.is_empty()).then(|| prefix.into_owned().into_bytes())
    }

    /// Whether the request asks for a further page of a directory.
    fn is_further(&self) -> bool {
        let mut pairs = self.page.query_pairs();
        pairs.any(|(key, _)| matches!(&*key, "continuation-token" | "marker" | "start-after"))
    }

    fn key<'o>(&self, object: &'o Object) -> Cow<'o, [u8]> {
        match object.is_encoded {
            true => percent_decode(&object.key).collect::<Vec<u8>>().into(),
            false => self.decoded(&object.key),
        }
    }

    /// Adds one object. Returns false if the object is not directly in the directory.
    fn object(object: &Object, key: &[u8], directory: &[u8], children: &mut Children) -> bool {
        if key.is_empty() {
            children.nameless.add("an object without a key");
            return true;
        }
        let Some(name) = key.strip_prefix(directory) else {
            children.nameless.add(&String::from_utf8_lossy(key));
            return true;
        };
        // An object that represents the directory itself.
        if name.is_empty() {
            return true;
        }
        let (name, kind) = match memchr::memchr(b'/', name) {
            Some(at) => (&name[..at], EntryKind::Directory),
            None => (name, EntryKind::File),
        };
        // URL paths cannot carry `//`, `.` and `..`: clients and servers may shorten them.
        if matches!(name, b"" | b"." | b"..") {
            children.nameless.add(&String::from_utf8_lossy(key));
            return true;
        }
        if let Some(at) = children.named(name, kind)
            && kind == EntryKind::File
        {
            children.entries[at].size = object.size;
            children.entries[at].modified = object.modified;
        }
        kind == EntryKind::File || object.is_prefix
    }

    /// The request target of the next page: that of this page, with the key at which the next page begins.
    fn next(&self) -> Option<String> {
        let (key, value) = match (&self.token, &self.marker) {
            (Some(token), _) => ("continuation-token", Cow::Borrowed(token.as_slice())),
            (None, Some(marker)) => ("marker", self.decoded(marker)),
            // Version 1 without a delimiter names no marker: the last key is the marker.
            (None, None) if self.is_truncated => {
                ("marker", self.decoded(&self.objects.last()?.key))
            }
            (None, None) => return None,
        };
        let mut target = format!("{}?", self.page.path());
        for pair in self.page.query().unwrap_or("").split('&') {
            let name = pair.split('=').next().unwrap_or("");
            if !matches!(name, "" | "continuation-token" | "marker" | "start-after") {
                target.push_str(pair);
                target.push('&');
            }
        }
        target.push_str(key);
        target.push('=');
        target.extend(percent_encode(&value, NON_ALPHANUMERIC));
        Some(target)
    }

    /// The request target of the listing of this prefix, with a delimiter.
    fn target(&self, prefix: &[u8]) -> String {
        let list_request = match self.shape {
            Shape::Azure => "restype=container&comp=list",
            _ => "list-type=2",
        };
        let prefix = percent_encode(prefix, NON_ALPHANUMERIC);
        format!(
            "{}?{list_request}&delimiter=%2F&prefix={prefix}",
            self.page.path()
        )
    }

    fn decoded<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if !self.is_encoded {
            return Cow::Borrowed(text);
        }
        let spaced: Vec<u8> = text
            .iter()
            .map(|&byte| if byte == b'+' { b' ' } else { byte })
            .collect();
        Cow::Owned(percent_decode(&spaced).collect())
    }
}

fn encoded_path(directory: &[u8]) -> String {
    let segments: Vec<String> = directory
        .split(|&byte| byte == b'/')
        .map(path::encode)
        .collect();
    segments.join("/")
}
