//! Which links of a page are entries of the directory, and what each is called: the child test.
//!
//! A link is an entry when it resolves to exactly one segment below the page, which drops parents, sort links, icons and
//! footers of every server alike. Nearly all entries of nearly all pages are one plain segment, and those are told by
//! their bytes; only the others are resolved as URLs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use percent_encoding::{CONTROLS, percent_encode};
use url::Url;

use super::{Entry, EntryKind, PageLimits};
use crate::find::path;

/// The entries found so far.
pub(super) struct Children<'a> {
    page: &'a Url,
    /// The page's path, canonical.
    directory: String,
    /// The bytes of a URL before the segment.
    prefix: usize,
    /// What references are resolved against, if that is not the page: its first `<base href>`.
    base: Option<Url>,
    limits: PageLimits,
    /// The entries, each name once.
    pub(super) entries: Vec<Entry>,
    hasher: RandomState,
    /// Where each name is in `entries`, by its hash, or by the next free number above.
    by_hash: HashMap<u64, usize, BuildHasherDefault<AlreadyHashed>>,
    /// A link to a directory ended in `/`.
    pub(super) marks_directories: bool,
    pub(super) overlong: usize,
    pub(super) nameless: usize,
}

impl<'a> Children<'a> {
    pub(super) fn new(page: &'a Url, limits: PageLimits) -> Self {
        let authority = page.as_str().len()
            - page.path().len()
            - page.query().map_or(0, |query| query.len() + 1)
            - page.fragment().map_or(0, |fragment| fragment.len() + 1);
        Self {
            page,
            directory: path::canonical(page.path()),
            prefix: authority + page.path().len(),
            base: None,
            limits,
            entries: Vec::new(),
            hasher: RandomState::new(),
            by_hash: HashMap::default(),
            marks_directories: false,
            overlong: 0,
            nameless: 0,
        }
    }

    /// `<base href>`; only the first counts.
    pub(super) fn rebase(&mut self, href: &[u8]) {
        if self.base.is_none() {
            let base = self.page.join(&as_reference(href));
            self.base = Some(base.unwrap_or_else(|_| self.page.clone()));
        }
    }

    /// What a reference on the page means.
    pub(super) fn resolve(&self, href: &[u8]) -> Option<Url> {
        let base = self.base.as_ref().unwrap_or(self.page);
        base.join(&as_reference(href)).ok()
    }

    /// The entry that a link leads to, if it leads to one.
    pub(super) fn link(&mut self, href: &[u8]) -> Option<usize> {
        if href.len() > self.limits.url_bytes {
            self.overlong += usize::from(!has_other_scheme(href));
            return None;
        }
        if self.base.is_none()
            && let Some((segment, slash, is_spelled)) = plain_child(href, self.page.path())
        {
            let segment = if is_spelled {
                Cow::Borrowed(segment)
            } else {
                Cow::Owned(path::normalise_segment(segment))
            };
            return self.segment(segment, slash);
        }
        let target = self.resolve(href)?;
        let (segment, slash) = self.child(&target)?;
        let segment = Cow::Owned(path::normalise_segment(segment));
        self.segment(segment, slash)
    }

    /// The entry of this name, not escaped, as in structured listings.
    pub(super) fn named(&mut self, name: &[u8], kind: EntryKind) -> Option<usize> {
        let segment = path::encode(name);
        if self.is_overlong(segment.len()) {
            return None;
        }
        self.marks_directories |= kind == EntryKind::Directory;
        self.add(segment, name.to_vec(), kind)
    }

    fn is_overlong(&mut self, segment: usize) -> bool {
        let is_overlong = self.prefix + segment > self.limits.url_bytes;
        self.overlong += usize::from(is_overlong);
        is_overlong
    }

    /// `target`'s last segment, if `target` is a direct child of the page, and whether a `/` follows it.
    fn child<'t>(&self, target: &'t Url) -> Option<(&'t str, bool)> {
        if target.scheme() != self.page.scheme()
            || target.host() != self.page.host()
            || target.port() != self.page.port()
            || target.fragment().is_some()
            || !target.query().is_none_or(super::is_sort_query)
        {
            return None;
        }
        let (parent, segment, slash) = path::split_last(target.path())?;
        if segment.is_empty() {
            return None;
        }
        if parent != self.page.path() && path::canonical(parent) != self.directory {
            return None;
        }
        Some((segment, slash))
    }

    fn segment(&mut self, segment: Cow<'_, str>, slash: bool) -> Option<usize> {
        if self.is_overlong(segment.len() + usize::from(slash)) {
            return None;
        }
        let kind = if slash {
            EntryKind::Directory
        } else {
            EntryKind::Unknown
        };
        // Only what had to be spelled can hold an escape.
        let name = match &segment {
            Cow::Borrowed(spelled) => spelled.as_bytes().to_vec(),
            Cow::Owned(segment) => path::decode(segment),
        };
        let entry = self.add(segment.into_owned(), name, kind);
        self.marks_directories |= slash && entry.is_some();
        entry
    }

    fn add(&mut self, segment: String, name: Vec<u8>, kind: EntryKind) -> Option<usize> {
        if name == b"." || name == b".." {
            return None;
        }
        // A name that holds a separator is no single segment to whoever decodes it: `..%2F..` would climb.
        if name.is_empty() || memchr::memchr2(b'/', 0, &name).is_some() {
            self.nameless += 1;
            return None;
        }
        let mut key = self.hasher.hash_one(name.as_slice());
        while let Some(&at) = self.by_hash.get(&key) {
            let entry = &mut self.entries[at];
            if entry.name == name {
                if kind != EntryKind::Unknown {
                    entry.kind = kind;
                }
                return Some(at);
            }
            key = key.wrapping_add(1);
        }
        let at = self.entries.len();
        self.by_hash.insert(key, at);
        self.entries.push(Entry {
            segment,
            name,
            kind,
            size: None,
            modified: None,
        });
        Some(at)
    }
}

/// Hashes what is a keyed hash already.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
}

/// The segment that `href` is, relative to `directory` or below it by its absolute path, if that can be told without
/// resolving it; whether a `/` follows, and whether it is spelled as [`path::normalise_segment`] would spell it.
fn plain_child<'h>(href: &'h [u8], directory: &str) -> Option<(&'h str, bool, bool)> {
    if !directory.ends_with('/') {
        return None;
    }
    // A colon would end a scheme, were it not behind a `/`.
    let (rest, colon) = if let Some(rest) = href.strip_prefix(b"./") {
        (rest, true)
    } else if let Some(rest) = href.strip_prefix(directory.as_bytes()) {
        (rest, true)
    } else {
        (href, false)
    };
    let (segment, slash) = match rest.strip_suffix(b"/") {
        Some(segment) => (segment, true),
        None => (rest, false),
    };
    let class = segment
        .iter()
        .fold(0, |class, &byte| class | CLASSES[usize::from(byte)]);
    if segment.is_empty() || class & NOT_PLAIN != 0 || (class & COLON != 0 && !colon) {
        return None;
    }
    let segment = std::str::from_utf8(segment).ok()?;
    Some((segment, slash, class == 0))
}

/// What each byte of a segment asks for; nothing, for those that stay as they are.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0u8;
    loop {
        classes[byte as usize] = match byte {
            b'/' | b'\\' | b'?' | b'#' => NOT_PLAIN,
            b':' => COLON,
            b'-' | b'.' | b'_' | b'~' | b'+' => 0,
            _ if byte.is_ascii_alphanumeric() => 0,
            _ if byte.is_ascii_graphic() => SPELL,
            _ => NOT_PLAIN,
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// Only a URL parser knows.
const NOT_PLAIN: u8 = 1;
/// Plain where no scheme can be.
const COLON: u8 = 2;
/// An escape, or to be escaped.
const SPELL: u8 = 4;

/// Links that no directory holds, and that may be long.
fn has_other_scheme(href: &[u8]) -> bool {
    [&b"data:"[..], b"javascript:", b"mailto:"]
        .iter()
        .any(|scheme| {
            let start = href.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
}

/// The reference in an attribute. Bytes that are not UTF-8 are escaped one by one, so that the server gets them back.
pub(super) fn as_reference(href: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(href.trim_ascii()) {
        Ok(text) => text.into(),
        Err(_) => percent_encode(href.trim_ascii(), CONTROLS)
            .to_string()
            .into(),
    }
}
