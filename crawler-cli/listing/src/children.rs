//! The child test: which links of a page are entries of the directory, and the name of each.
//!
//! A link is an entry if it resolves to exactly one segment below the page (RFC 3986 §5). This drops links to parents,
//! sort links, icons and footers, whatever the server. Nearly all entries are one plain segment, which is recognised by
//! its bytes; only other references are resolved as URLs.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use percent_encoding::{CONTROLS, percent_decode, percent_encode};
use url::Url;

use super::left_out::LeftOut;
use super::links::has_page_extension;
use super::web_page::is_name;
use super::{Entry, EntryKind, PageLimits};
use crate::path;

/// The entries found so far.
#[derive(Debug)]
pub(super) struct Children {
    page: Url,
    /// The path of the page in [canonical](path::canonical) form.
    directory: String,
    /// Length of the URL before the segment, in bytes.
    prefix: usize,
    /// The first `<base href>` of the page. Without it, references are resolved against the page.
    base: Option<Url>,
    limits: PageLimits,
    /// A file and a directory may have the same name, as in buckets. Else two links to one name are one entry.
    pub(super) tells_kinds: bool,
    /// A known server wrote the page: it writes no link to another host.
    pub(super) is_known: bool,
    /// The entries. Each name occurs once; of each kind, if the kinds are told.
    pub(super) entries: Vec<Entry>,
    hasher: RandomState,
    /// Index of each name among all entries. The key is the hash of the name, or the next free number after it.
    by_hash: HashMap<u64, usize, BuildHasherDefault<AlreadyHashed>>,
    /// A link to an entry ended in `/`.
    pub(super) marks_directories: bool,
    pub(super) overlong: LeftOut,
    pub(super) nameless: LeftOut,
    /// References in rows of entries that lead to nothing.
    pub(super) useless: LeftOut,
    /// Links of rows to elsewhere, which may be entries: their URLs, the hashes of these, and the number of all.
    strays: Vec<Url>,
    stray_keys: HashSet<u64>,
    strays_len: usize,
    /// Links to other servers that are entries only if the page has none of its own.
    foreign: Vec<Url>,
    /// Links that show their own names and are no entries. They may stand for some where the page has its rows.
    shown: Vec<(Place, Shown)>,
    /// Links to files elsewhere, under titles.
    titled: Vec<Url>,
    /// Where the page has its rows.
    rows: Place,
}

/// Where a link stands. Of a page with rows, other links are navigation.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Place {
    #[default]
    Loose,
    /// In an item of a list.
    Item,
    /// In a cell of a table, or in preformatted text.
    Row,
}

/// A link that shows its own name.
#[derive(Debug)]
enum Shown {
    Away(Url),
    Useless(String),
}

/// Where a link leads.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Link {
    /// To the entry with this index.
    Entry(usize),
    /// To a name on another server (another host, port or scheme), or, from where no entries stand, in another directory.
    Away(Url),
    /// To nothing that can be an entry of any directory, as with `javascript:`, or to the page itself by a part of it.
    Useless(String),
    /// Anywhere else.
    Other,
}

impl Children {
    pub(super) fn new(page: &Url, limits: PageLimits) -> Self {
        let authority = page.as_str().len()
            - page.path().len()
            - page.query().map_or(0, |query| query.len() + 1)
            - page.fragment().map_or(0, |fragment| fragment.len() + 1);
        Self {
            page: page.clone(),
            directory: path::canonical(page.path()),
            prefix: authority + page.path().len(),
            base: None,
            limits,
            tells_kinds: true,
            is_known: false,
            entries: Vec::new(),
            hasher: RandomState::new(),
            by_hash: HashMap::default(),
            marks_directories: false,
            overlong: LeftOut::default(),
            nameless: LeftOut::default(),
            useless: LeftOut::default(),
            strays: Vec::new(),
            stray_keys: HashSet::new(),
            strays_len: 0,
            foreign: Vec::new(),
            shown: Vec::new(),
            titled: Vec::new(),
            rows: Place::Loose,
        }
    }

    /// Sets the base from `<base href>`; only the first one counts (HTML §4.2.3).
    pub(super) fn rebase(&mut self, href: &[u8]) {
        if self.base.is_none() {
            let base = self.page.join(&as_reference(href)).ok();
            let base = base.filter(|base| matches!(base.scheme(), "http" | "https"));
            self.base = Some(base.unwrap_or_else(|| self.page.clone()));
        }
    }

    /// Resolves a reference of the page.
    pub(super) fn resolve(&self, href: &[u8]) -> Option<Url> {
        let base = self.base.as_ref().unwrap_or(&self.page);
        base.join(&as_reference(href)).ok()
    }

    /// Where a link leads.
    pub(super) fn link(&mut self, href: &[u8], place: Place) -> Link {
        if let Some(rest) = href.strip_prefix(b".//") {
            // What `find ./` prints; servers take several `/` for one.
            let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
            return self.link(&[b"./", &rest[slashes..]].concat(), place);
        }
        self.rows = self.rows.max(place);
        if href.len() > self.limits.url_bytes {
            if !has_other_scheme(href) {
                self.overlong.add(&as_reference(href));
            }
            return Link::Other;
        }
        if self.base.is_none()
            && let Some((segment, slash, is_normalised)) = plain_child(href, self.page.path())
        {
            let segment = if is_normalised {
                Cow::Borrowed(segment)
            } else {
                Cow::Owned(path::normalise_segment(segment))
            };
            return self.segment(segment, slash).into();
        }
        let useless = || Link::Useless(as_reference(href).into_owned());
        let Some(target) = self.resolve(href) else {
            return useless();
        };
        let is_part = matches!(href.trim_ascii(), [] | [b'#', ..]);
        if is_part || !matches!(target.scheme(), "http" | "https") {
            return useless();
        }
        let Some((segment, slash)) = self.child(&target) else {
            if self.is_further_page(&target) {
                self.add_stray(target);
                return Link::Other;
            }
            // What climbs by `../` says itself that the target is elsewhere.
            let climbs = href.trim_ascii_start().starts_with(b".");
            if self.is_foreign(&target) && !climbs {
                return Link::Away(target);
            }
            if climbs && !self.is_here(&target) {
                return useless();
            }
            return self.stray(target, place == Place::Row);
        };
        let segment = Cow::Owned(path::normalise_segment(segment));
        self.segment(segment, slash).into()
    }

    /// The entry with a name in which the server did not escape `?` or `#`: the reference ends in what the link shows.
    pub(super) fn unescaped(&mut self, href: &[u8], text: &[u8]) -> Option<usize> {
        let href = href.trim_ascii();
        let is_directory = href.ends_with(b"/");
        let whole = href.strip_suffix(b"/").unwrap_or(href);
        let at = memchr::memrchr(b'/', whole).map_or(0, |at| at + 1);
        let name: Cow<'_, [u8]> = percent_decode(&whole[at..]).into();
        let parent = self.resolve(if at == 0 { b"./" } else { &whole[..at] })?;
        let is_here = parent.origin() == self.page.origin()
            && path::canonical(parent.path()) == self.directory;
        if !shows(text, &name) || !is_here {
            return None;
        }
        let kind = match is_directory {
            true => EntryKind::Directory,
            false => EntryKind::Unknown,
        };
        self.named(&name, kind)
    }

    /// Whether a URL is a name on another server.
    fn is_foreign(&self, target: &Url) -> bool {
        let name = path::split_last(target.path());
        target.origin() != self.page.origin()
            && matches!(target.scheme(), "http" | "https")
            && name.is_some_and(|(_, segment, _)| !segment.is_empty())
    }

    /// Notes a link to another server that does not stand in the row of an entry.
    pub(super) fn add_foreign(&mut self, target: Url) {
        let has_room = self.foreign.len() < MOST_STRAYS;
        if has_room && (self.base.is_some() || self.is_of_this_path(&target)) {
            self.foreign.push(target);
        }
    }

    /// Whether the directory of a URL has the path of the page, or what the path of the page ends with: a proxy in front
    /// of a server adds a prefix.
    fn is_of_this_path(&self, target: &Url) -> bool {
        let parent = path::split_last(target.path()).map(|(parent, ..)| path::canonical(parent));
        parent.is_some_and(|parent| match parent.as_str() {
            "/" => self.directory == "/",
            parent => self.directory.ends_with(parent),
        })
    }

    /// The index of the entry with this name. The name is not escaped, as in structured listings.
    pub(super) fn named(&mut self, name: &[u8], kind: EntryKind) -> Option<usize> {
        let segment = path::encode(name);
        if self.is_overlong(&segment, false) {
            return None;
        }
        self.marks_directories |= kind == EntryKind::Directory;
        self.add(segment, name.to_vec(), kind)
    }

    fn is_overlong(&mut self, segment: &str, slash: bool) -> bool {
        let length = self.prefix + segment.len() + usize::from(slash);
        let is_overlong = length > self.limits.url_bytes;
        if is_overlong {
            self.overlong.add(segment);
        }
        is_overlong
    }

    /// Whether a URL is that of the page or of a directory above it.
    pub(super) fn is_here(&self, target: &Url) -> bool {
        let path = path::canonical(target.path());
        let is_above = self.directory.starts_with(&path) || format!("{path}/") == self.directory;
        target.origin() == self.page.origin() && is_above
    }

    /// Notes a link that is no entry, but could stand for one.
    fn stray(&mut self, target: Url, in_row: bool) -> Link {
        let is_here = target.origin() == self.page.origin();
        let path = path::canonical(target.path());
        let is_above = self.directory.starts_with(&path) || format!("{path}/") == self.directory;
        let may_be_entry = match target.query() {
            Some(query) if super::is_sort_query(query) => false,
            // A part of the listing, or another directory, by a query.
            Some(query) if path == self.directory && leads_on(query) => true,
            Some(_) if is_here && is_above => return Link::Away(target),
            // `name?dl=1`, and `a#b` of a server that does not escape names.
            _ if in_row => !is_above,
            _ if is_here && !is_above => return Link::Away(target),
            _ => false,
        };
        if is_here && may_be_entry {
            self.add_stray(target);
        }
        Link::Other
    }

    /// Whether a URL of the host leads to a further page of the listing, by the forms that scripts use.
    fn is_further_page(&self, target: &Url) -> bool {
        let path = path::canonical(target.path());
        let rest = path.strip_prefix(&*self.directory);
        let mut segments = rest
            .into_iter()
            .flat_map(|rest| rest.trim_end_matches('/').split('/'));
        let by_path = segments.next() == Some("page")
            && segments.next().is_some_and(is_number)
            && segments.next().is_none();
        let query = target.query().unwrap_or_default();
        let is_directory =
            |path: &str| format!("{}/", path.trim_end_matches('/')) == self.directory;
        let is_script = rest.is_some_and(|rest| !rest.contains('/'))
            || is_directory(&path)
            || pairs(query).any(|(_, value)| is_directory(value));
        let keys = ["page", "p", "pg", "offset", "start"];
        let is_page = |(key, value): (String, &str)| keys.contains(&&*key) && is_number(value);
        let by_query = is_script && pairs(query).any(is_page);
        target.host() == self.page.host() && (by_path || by_query)
    }

    /// Notes a link that leads away, if its text shows it as a name. Returns one to another server that is not noted. `raw`:
    /// its reference, if that may hold an unescaped name.
    pub(super) fn add_shown(
        &mut self,
        target: Url,
        raw: &[u8],
        text: &[u8],
        place: Place,
    ) -> Option<Url> {
        let name = path::split_last(target.path()).map(|(_, name, _)| path::decode(name));
        let name = name.unwrap_or_default();
        let raw_name = raw.rsplit(|&byte| byte == b'/').next().unwrap_or(raw);
        // A path below the page, as text.
        let is_path = !text.starts_with(b"/") && memchr::memmem::find(text, b"://").is_none();
        let whole = text.strip_suffix(b"/").unwrap_or(text);
        let last = whole.rsplit(|&byte| byte == b'/').next().unwrap_or(whole);
        let is_value = |value: &str| {
            let value: Vec<u8> = percent_decode(value.as_bytes()).collect();
            is_file_name(text) && value.ends_with(text)
        };
        let query = target.query().unwrap_or_default();
        let has_value = pairs(query).any(|(_, value)| is_value(value));
        let is_name = shows(text, &name)
            || is_path && shows(last, &name)
            || is_path && shows(text, raw_name)
            || has_value;
        let is_here = target.origin() == self.page.origin();
        let may_be_elsewhere = !self.is_known || target.host() == self.page.host();
        let is_file = may_be_elsewhere && is_file_name(&name) && !has_page_extension(target.path());
        // Of the root, each name of another site could be an entry.
        let may_be_root = || {
            let is_loose = place == Place::Loose && self.directory == "/";
            !is_loose || target.host() == self.page.host()
        };
        if self.is_spelling(&target)
            || is_name && (is_here || is_file || self.is_of_this_path(&target) && may_be_root())
        {
            self.note_shown(place, Shown::Away(target));
            return None;
        }
        let is_listed = !self.is_known && place > Place::Loose;
        if is_file && is_listed && self.titled.len() < MOST_STRAYS {
            self.titled.push(target.clone());
        }
        (!is_here).then_some(target)
    }

    /// Notes a reference that leads nowhere and names what its link shows.
    pub(super) fn add_quoted(&mut self, href: &[u8], place: Place) {
        let href = String::from_utf8_lossy(href).into_owned();
        self.note_shown(place, Shown::Useless(href));
    }

    fn note_shown(&mut self, place: Place, shown: Shown) {
        if self.shown.len() < MOST_STRAYS {
            self.shown.push((place, shown));
        }
    }

    /// Notes a link that stands for an entry and is none.
    pub(super) fn add_stray(&mut self, target: Url) {
        let is_full = self.strays.len() >= MOST_STRAYS;
        let key = self.hasher.hash_one(target.as_str());
        if self.stray_keys.contains(&key) {
            return;
        }
        self.strays_len += 1;
        if !is_full {
            self.stray_keys.insert(key);
            self.strays.push(target);
        }
    }

    /// Takes links that all lead to one other directory for entries, if nothing else is an entry: a proxy shows a server's
    /// directory under another path or name, and the links have those that the server knows. Links to another server are
    /// entries only if the paths agree.
    pub(super) fn map(&mut self) {
        self.map_strays();
        // A page of which each link leads elsewhere is no empty directory.
        if self.entries.is_empty() && self.strays_len == 0 {
            for url in std::mem::take(&mut self.titled) {
                self.add_stray(url);
            }
        }
    }

    fn map_strays(&mut self) {
        for (place, shown) in std::mem::take(&mut self.shown) {
            match shown {
                _ if place < self.rows => {}
                Shown::Away(url) => self.add_stray(url),
                Shown::Useless(href) => self.useless.add(&href),
            }
        }
        if !self.entries.is_empty() {
            return self.map_spellings();
        }
        if self.strays_len == 0 {
            for url in std::mem::take(&mut self.foreign) {
                self.add_stray(url);
            }
        }
        let parent = |url: &Url| Some(path::split_last(url.path())?.0.to_owned());
        let mut counts: HashMap<_, usize> = HashMap::new();
        for url in &self.strays {
            *counts.entry((url.origin(), parent(url))).or_default() += 1;
        }
        // Where most of them lead; of several directories, the deepest.
        let most = self.strays.iter().max_by_key(|url| {
            let parent = parent(url);
            let length = parent.as_ref().map(String::len);
            (counts.get(&(url.origin(), parent)).copied(), length)
        });
        let Some((first, directory)) = most.and_then(|url| Some((url.clone(), parent(url)?)))
        else {
            return;
        };
        let is_of = |url: &Url| {
            url.origin() == first.origin() && url.query().is_none() && url.fragment().is_none()
        };
        // The page may link to the directories above, too.
        let is_above = |url: &Url| {
            let path = url.path();
            is_of(url) && path.ends_with('/') && directory.starts_with(path)
        };
        let is_entry = |url: &Url| is_of(url) && parent(url).as_ref() == Some(&directory);
        let is_whole = self.strays.len() == self.strays_len;
        let is_other = |url: &&Url| !is_entry(url) && !is_above(url);
        let others: Vec<Url> = self.strays.iter().filter(is_other).cloned().collect();
        // Nearly all.
        let agree = others.len() * 10 <= self.strays.len();
        let is_here = first.origin() == self.page.origin();
        let is_below = is_here && path::canonical(&directory).starts_with(&self.directory);
        if !is_whole || !agree || is_below || !(is_here || self.is_of_this_path(&first)) {
            return;
        }
        self.strays_len = others.len();
        for url in std::mem::replace(&mut self.strays, others) {
            if is_entry(&url) && !is_above(&url) {
                self.last_segment(&url);
            }
        }
    }

    /// Takes links to this directory under another scheme or port of its host for entries, if they are some, or more than
    /// the others: a proxy for TLS stands before the server, which writes some of its links in full.
    fn map_spellings(&mut self) {
        let (spellings, strays): (Vec<Url>, _) =
            (self.strays.iter().cloned()).partition(|url| self.is_spelling(url));
        if spellings.len() <= self.entries.len().min(1) {
            return;
        }
        self.strays_len -= spellings.len();
        self.strays = strays;
        for url in spellings {
            self.last_segment(&url);
        }
    }

    /// Whether a URL is a child of this directory under another scheme or port of its host.
    fn is_spelling(&self, url: &Url) -> bool {
        let parent = path::split_last(url.path()).map(|(parent, ..)| path::canonical(parent));
        url.host() == self.page.host()
            && url.origin() != self.page.origin()
            && url.query().is_none()
            && url.fragment().is_none()
            && parent.as_deref() == Some(&self.directory)
    }

    /// The index of the entry whose name is the last segment of this URL, wherever the URL leads.
    pub(super) fn last_segment(&mut self, url: &Url) -> Option<usize> {
        let (_, segment, slash) = path::split_last(url.path())?;
        self.segment(Cow::Owned(path::normalise_segment(segment)), slash)
    }

    /// The links that may be entries and were left out.
    pub(super) fn left_out(&self) -> LeftOut {
        let is_known = |url: &Url| {
            let entry = match self.is_foreign(url) {
                true => path::split_last(url.path()).map(|(_, name, _)| path::decode(name)),
                false => self.child_without_query(url),
            };
            entry.is_some_and(|name| self.has(&name))
        };
        let mut left_out = self.useless.clone();
        for url in self.strays.iter().filter(|url| !is_known(url)) {
            left_out.add(url.as_str());
        }
        left_out.add_unnamed(self.strays_len - self.strays.len());
        left_out
    }

    /// The entry with this index.
    pub(super) fn entry(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Whether there is an entry with this name.
    fn has(&self, name: &[u8]) -> bool {
        let mut key = self.hasher.hash_one(name);
        while let Some(&at) = self.by_hash.get(&key) {
            if self.entries[at].name == name {
                return true;
            }
            key = key.wrapping_add(1);
        }
        false
    }

    /// The name of the entry that a link leads to but for what follows the path: `x` for `x?dl=1` and `x#part`.
    fn child_without_query(&self, url: &Url) -> Option<Vec<u8>> {
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let (segment, _) = self.child(&url)?;
        Some(path::decode(segment))
    }

    /// The last segment of `target` and whether a `/` follows it, if `target` is a direct child of the page.
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
        if self.is_overlong(&segment, slash) {
            return None;
        }
        let kind = if slash {
            EntryKind::Directory
        } else {
            EntryKind::Unknown
        };
        // A borrowed segment was plain: it holds no escape.
        let name = match &segment {
            Cow::Borrowed(plain) => plain.as_bytes().to_vec(),
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
        // A server that decodes a name with a separator sees several segments: `..%2F..` would leave the directory.
        if name.is_empty() || memchr::memchr2(b'/', 0, &name).is_some() {
            self.nameless.add(&segment);
            return None;
        }
        let mut key = self.hasher.hash_one(name.as_slice());
        while let Some(&at) = self.by_hash.get(&key) {
            let entry = &mut self.entries[at];
            let is_directory = |kind| kind == EntryKind::Directory;
            let is_same_kind = is_directory(entry.kind) == is_directory(kind);
            if entry.name == name && (is_same_kind || !self.tells_kinds) {
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

impl From<Option<usize>> for Link {
    fn from(entry: Option<usize>) -> Self {
        entry.map_or(Self::Other, Self::Entry)
    }
}

/// Whether a query leads to another directory, by the keys that scripts use.
fn leads_on(query: &str) -> bool {
    let keys = ["dir", "path", "folder", "directory", "subdir", "cwd"];
    pairs(query).any(|(key, value)| keys.contains(&&*key) && !value.is_empty())
}

/// The keys, in lower case, and the values of a query.
fn pairs(query: &str) -> impl Iterator<Item = (String, &str)> {
    query.split(['&', ';']).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key.to_ascii_lowercase(), value)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text of a link shows this name: as it is, cut, or, of a file, before or after something else.
fn shows(text: &[u8], name: &[u8]) -> bool {
    if is_name(text, name) {
        return true;
    }
    let one_line = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let whole = one_line(text);
    let (text, name) = (whole.strip_suffix('/').unwrap_or(&whole), one_line(name));
    let has_more = || {
        let before = text
            .strip_suffix(&*name)
            .is_some_and(|it| it.ends_with(' '));
        before
            || text
                .strip_prefix(&*name)
                .is_some_and(|it| it.starts_with(' '))
    };
    !name.is_empty() && (text == name || is_file_name(name.as_bytes()) && has_more())
}

/// Whether a text is the name of a file, by its extension.
pub(super) fn is_file_name(text: &[u8]) -> bool {
    let mut parts = text.rsplitn(2, |&byte| byte == b'.');
    let (extension, stem) = (parts.next().unwrap_or_default(), parts.next());
    stem.is_some_and(|stem| !stem.is_empty())
        && extension.len() <= LONGEST_EXTENSION
        && extension.iter().all(u8::is_ascii_alphanumeric)
        && extension.iter().any(u8::is_ascii_alphabetic)
}

const LONGEST_EXTENSION: usize = 8;

/// The largest number of links that are remembered in case that they are entries.
const MOST_STRAYS: usize = 100_000;

/// A hasher for keys that are keyed hashes already.
#[derive(Debug, Default)]
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

/// The segment that `href` names below `directory`, if this is clear without resolving `href`. `href` is relative, or
/// an absolute path that starts with `directory`. Also returns whether a `/` follows, and whether the segment is
/// unchanged by [`path::normalise_segment`].
fn plain_child<'h>(href: &'h [u8], directory: &str) -> Option<(&'h str, bool, bool)> {
    if !directory.ends_with('/') {
        return None;
    }
    // A colon before the first `/` would end a scheme.
    let (rest, allows_colon) = if let Some(rest) = href.strip_prefix(b"./") {
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
    if segment.is_empty() || class & NOT_PLAIN != 0 || (class & COLON != 0 && !allows_colon) {
        return None;
    }
    let segment = std::str::from_utf8(segment).ok()?;
    Some((segment, slash, class == 0))
}

/// The class of each byte of a segment. 0: the byte stays as it is.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0u8;
    loop {
        classes[byte as usize] = match byte {
            b'/' | b'\\' | b'?' | b'#' => NOT_PLAIN,
            b':' => COLON,
            b'-' | b'.' | b'_' | b'~' | b'+' => 0,
            _ if byte.is_ascii_alphanumeric() => 0,
            _ if byte.is_ascii_graphic() => NEEDS_ESCAPE,
            _ => NOT_PLAIN,
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// The reference has to be resolved as a URL.
const NOT_PLAIN: u8 = 1;
/// Plain only where no scheme can stand.
const COLON: u8 = 2;
/// An escape, or a byte that has to be escaped.
const NEEDS_ESCAPE: u8 = 4;

/// Whether the scheme is one of those whose links are never entries and may be very long.
fn has_other_scheme(href: &[u8]) -> bool {
    [&b"data:"[..], b"javascript:", b"mailto:"]
        .iter()
        .any(|scheme| {
            let start = href.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
}

/// The reference in an attribute. If it is not UTF-8, its non-ASCII bytes are percent-encoded one by one, so that the
/// server receives the same bytes.
pub(super) fn as_reference(href: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(href.trim_ascii()) {
        Ok(text) => text.into(),
        Err(_) => percent_encode(href.trim_ascii(), CONTROLS)
            .to_string()
            .into(),
    }
}
