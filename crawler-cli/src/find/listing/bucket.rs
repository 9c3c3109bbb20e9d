//! The objects of a bucket (S3, Azure Blob Storage) as a directory tree. Keys are flat: a `/` in a key makes
//! directories by convention only. Only a listing that is requested with a delimiter shows a single directory. `xml`
//! reads the elements.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};
use url::Url;

use super::children::Children;
use super::shape::Shape;
use super::{Directories, EntryKind, Listing, PageLimits};
use crate::find::path;
use crate::find::range::{ListedTime, SizeRange};

/// The content of one page of a bucket.
pub(super) struct Bucket<'a> {
    page: &'a Url,
    shape: Shape,
    /// The prefix that was requested.
    pub(super) prefix: Vec<u8>,
    pub(super) is_delimited: bool,
    /// Keys and prefixes are `application/x-www-form-urlencoded`.
    pub(super) is_encoded: bool,
    pub(super) is_truncated: bool,
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
    pub(super) fn s3(page: &'a Url) -> Self {
        Self::new(page, Shape::S3)
    }

    pub(super) fn azure(page: &'a Url) -> Self {
        Self::new(page, Shape::Azure)
    }

    fn new(page: &'a Url, shape: Shape) -> Self {
        Self {
            page,
            shape,
            prefix: Vec::new(),
            is_delimited: false,
            is_encoded: false,
            is_truncated: false,
            token: None,
            marker: None,
            objects: Vec::new(),
        }
    }

    pub(super) fn finish(self, limits: PageLimits) -> Listing {
        let prefix = self.decoded(&self.prefix).into_owned();
        let end = prefix.iter().rposition(|&byte| byte == b'/');
        let directory = &prefix[..end.map_or(0, |at| at + 1)];
        let mut children = Children::new(self.page, limits);
        let mut is_flat = true;
        for object in &self.objects {
            is_flat &= self.object(object, directory, &mut children);
        }
        let mut listing = Listing::of(children, self.shape);
        let was_asked = self.page.query_pairs().any(|(key, _)| key == "delimiter");
        // A flat listing of the whole tree was cut or has subdirectories. A request with a delimiter lists one
        // directory.
        if !self.is_delimited && !was_asked && (!is_flat || self.is_truncated) {
            listing.entries.clear();
            listing.nameless = 0;
            listing.overlong = 0;
            listing.next = Some(self.target(&prefix));
        } else {
            listing.next = self.next();
        }
        listing.directory = Some(format!("{}{}", self.page.path(), encoded_path(directory)));
        listing.directories = Directories::Query(self.target(directory));
        listing
    }

    /// Adds one object. Returns false if the object is not directly in the directory.
    fn object(&self, object: &Object, directory: &[u8], children: &mut Children<'_>) -> bool {
        let key = if object.is_encoded {
            percent_decode(&object.key).collect::<Vec<u8>>().into()
        } else {
            self.decoded(&object.key)
        };
        let Some(name) = key.strip_prefix(directory) else {
            children.nameless += 1;
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
            children.nameless += 1;
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
