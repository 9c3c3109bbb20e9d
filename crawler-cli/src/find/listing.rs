//! Directory listings: the bytes of an index page in, the directory's entries out. Pure; no DOM is built.
//!
//! The href decides, never the text of a link, which servers cut and mis-declare. A link is an entry when it resolves
//! to exactly one segment below the page (the child test), which drops parents, sort links, icons and footers of
//! every server alike; what is particular to a server is only how to recognise it and when its page is whole.

use std::collections::HashMap;
use std::fmt;
use std::mem;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use url::Url;

use super::path;
use super::range::{ListedTime, SizeRange};

/// What one page lists.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Who wrote the page.
    pub shape: Shape,
    /// The entries, each name once, in the order of the page.
    pub entries: Vec<Entry>,
    /// Whether the page's `</html>` arrived. The known servers always write it, so that without it the page was cut.
    pub ended: bool,
    /// Whether the page marks a directory with a final `/`, so that its names without one are files.
    pub marks_directories: bool,
    /// Links that were left out because their URL is longer than the limit.
    pub overlong: usize,
}

/// One name in a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The name as it stands in a URL, without a final `/`: the server's own escapes, made safe and with upper-case
    /// digits.
    pub segment: String,
    /// The name's bytes, decoded.
    pub name: Vec<u8>,
    /// File or directory, if the page tells.
    pub kind: EntryKind,
    /// The size, if the page shows one.
    pub size: Option<SizeRange>,
    /// The time of the last change, if the page shows one.
    pub modified: Option<ListedTime>,
}

/// What the page says that an entry is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// Either: this page does not mark its directories.
    Unknown,
}

/// Which server's index page it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// Apache httpd's mod_autoindex, in all its styles.
    Apache,
    /// nginx's autoindex module.
    Nginx,
    /// Python's http.server.
    Python,
    /// Any other page: all its links that pass the child test.
    Generic,
}

impl Shape {
    /// The lower-case name, as in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apache => "apache",
            Self::Nginx => "nginx",
            Self::Python => "python",
            Self::Generic => "generic",
        }
    }

    /// Recognises a page by what its server always writes near its beginning.
    fn of(body: &[u8]) -> Self {
        let start = &body[..body.len().min(SIGNATURE_WINDOW)];
        let has = |needle: &str| memchr::memmem::find(start, needle.as_bytes()).is_some();
        if has("</h1><hr><pre><a href=\"../\">../</a>") {
            Self::Nginx
        } else if has("<title>Directory listing for ") && has("<h1>Directory listing for ") {
            Self::Python
        } else if has("//W3C//DTD ")
            && has("<title>Index of /")
            && (has("<h1>Index of /") || has("<h1 id=\"indextitle\">Index of /"))
        {
            Self::Apache
        } else {
            Self::Generic
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bounds on what one page may cost.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Most links on a page; with more, the page is an error. Default 1,000,000.
    pub links: usize,
    /// Longest URL of an entry in bytes; longer ones are counted in [`Listing::overlong`]. Default 8192.
    pub url_bytes: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            links: 1_000_000,
            url_bytes: 8192,
        }
    }
}

/// The page has more links than [`PageLimits::links`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyLinks;

/// Reads the page `body` that was got from `page`, the URL after redirects, whose path ends in `/`.
///
/// # Errors
/// [`TooManyLinks`]; nothing else is an error here: a page that lists nothing has no entries.
pub fn parse(body: &[u8], page: &Url, limits: PageLimits) -> Result<Listing, TooManyLinks> {
    let shape = Shape::of(body);
    let mut scan = Scan::new(page, limits);
    let mut emitter =
        CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| scan.event(event));
    // Scripts and styles are text, whatever tags they seem to hold.
    emitter.naively_switch_states(true);
    match Tokenizer::new_with_emitter(body, emitter).next() {
        Some(Ok(TooManyLinks)) => Err(TooManyLinks),
        None => Ok(scan.finish(shape)),
    }
}

/// What is known while the tags pass by.
struct Scan<'a> {
    page: &'a Url,
    /// `page`'s path, canonical.
    directory: String,
    /// What references are resolved against: the page, or its first `<base href>`.
    base: Url,
    has_own_base: bool,
    limits: PageLimits,
    links: usize,
    tag: Tag,
    /// The attribute whose value comes next is the first `href` of `tag`.
    in_href: bool,
    entries: Vec<Entry>,
    /// Where each name is in `entries`.
    by_name: HashMap<Vec<u8>, usize>,
    ended: bool,
    marks_directories: bool,
    overlong: usize,
}

/// The start tag being read, as far as it matters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tag {
    Anchor,
    Base,
    Other,
}

impl<'a> Scan<'a> {
    fn new(page: &'a Url, limits: PageLimits) -> Self {
        Self {
            page,
            directory: path::canonical(page.path()),
            base: page.clone(),
            has_own_base: false,
            limits,
            links: 0,
            tag: Tag::Other,
            in_href: false,
            entries: Vec::new(),
            by_name: HashMap::new(),
            ended: false,
            marks_directories: false,
            overlong: 0,
        }
    }

    fn event(&mut self, event: CallbackEvent<'_>) -> Option<TooManyLinks> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.in_href = false;
                self.tag = match name {
                    b"a" => Tag::Anchor,
                    b"base" => Tag::Base,
                    _ => Tag::Other,
                };
            }
            CallbackEvent::AttributeName { name } => {
                self.in_href = name == b"href" && self.tag != Tag::Other;
            }
            CallbackEvent::AttributeValue { value } if mem::take(&mut self.in_href) => {
                // Only the first href of a tag counts.
                match mem::replace(&mut self.tag, Tag::Other) {
                    Tag::Base => self.base(value),
                    Tag::Anchor => {
                        self.links += 1;
                        if self.links > self.limits.links {
                            return Some(TooManyLinks);
                        }
                        self.link(value);
                    }
                    Tag::Other => {}
                }
            }
            CallbackEvent::EndTag { name: b"html" } => self.ended = true,
            _ => {}
        }
        None
    }

    fn base(&mut self, href: &[u8]) {
        if self.has_own_base {
            return;
        }
        self.has_own_base = true;
        if let Ok(base) = self.page.join(&as_reference(href)) {
            self.base = base;
        }
    }

    fn link(&mut self, href: &[u8]) {
        let reference = as_reference(href);
        if reference.len() > self.limits.url_bytes {
            self.overlong += 1;
            return;
        }
        let Ok(target) = self.base.join(&reference) else {
            return;
        };
        let Some((segment, kind)) = self.child(&target) else {
            return;
        };
        if target.as_str().len() > self.limits.url_bytes {
            self.overlong += 1;
            return;
        }
        self.marks_directories |= kind == EntryKind::Directory;
        self.add(segment, kind);
    }

    /// The child test: `target`'s last segment, if `target` is a direct child of the page. Directories end in `/`.
    fn child<'t>(&self, target: &'t Url) -> Option<(&'t str, EntryKind)> {
        if target.scheme() != self.page.scheme()
            || target.host() != self.page.host()
            || target.port() != self.page.port()
            || target.fragment().is_some()
            || !target.query().is_none_or(is_sort_query)
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
        let kind = if slash {
            EntryKind::Directory
        } else {
            EntryKind::Unknown
        };
        Some((segment, kind))
    }

    fn add(&mut self, raw: &str, kind: EntryKind) {
        let segment = path::normalise_segment(raw);
        let name = path::decode(&segment);
        // A name that holds a separator is no single segment to whoever decodes it: `..%2F..` would climb.
        if name.contains(&b'/') || name.contains(&0) || name == b"." || name == b".." {
            return;
        }
        if let Some(&at) = self.by_name.get(&name) {
            if kind == EntryKind::Directory {
                self.entries[at].kind = kind;
            }
            return;
        }
        self.by_name.insert(name.clone(), self.entries.len());
        self.entries.push(Entry {
            segment,
            name,
            kind,
            size: None,
            modified: None,
        });
    }

    fn finish(mut self, shape: Shape) -> Listing {
        let marks_directories = self.marks_directories || shape != Shape::Generic;
        if marks_directories {
            for entry in &mut self.entries {
                if entry.kind == EntryKind::Unknown {
                    entry.kind = EntryKind::File;
                }
            }
        }
        Listing {
            shape,
            entries: self.entries,
            ended: self.ended,
            marks_directories,
            overlong: self.overlong,
        }
    }
}

/// The reference in an attribute. Bytes that are not UTF-8 are escaped one by one, so that the server gets them back.
fn as_reference(href: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(href.trim_ascii()) {
        Ok(text) => text.into(),
        Err(_) => percent_encoding::percent_encode(href.trim_ascii(), percent_encoding::CONTROLS)
            .to_string()
            .into(),
    }
}

/// Whether a query only chooses how an index page looks, so that the URL without it names the same thing.
pub(super) fn is_sort_query(query: &str) -> bool {
    query.split(['&', ';']).all(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        SORT_KEYS.contains(&key)
    })
}

/// Apache (`C` column, `O` order, `F` format, `V` version sort, `P` pattern), Caddy (the words), and those that
/// imitate them.
const SORT_KEYS: [&str; 9] = ["", "C", "O", "F", "V", "P", "sort", "order", "layout"];

/// How far into a page a signature is looked for. Apache writes at most a style sheet link before its heading.
const SIGNATURE_WINDOW: usize = 4096;

#[cfg(test)]
mod tests;
