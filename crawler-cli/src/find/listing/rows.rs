//! An HTML index page as rows: the link of an entry, and the text beside it that says its size and its time.
//!
//! A row is a table row, a list item, or a line of preformatted text. What the text means is known for the servers that
//! are known; for the others it is searched for what can only be a date and what can only be a size, and nothing is
//! concluded where there are two of either.

use memchr::{memchr, memmem};
use url::Url;

use super::children::Children;
use super::shape::Shape;
use super::size::Style;
use super::time::{self, Order, Shown, Slashed};
use super::tokens::Events;
use super::{EntryKind, PageLimits};
use crate::find::range::{ListedTime, SizeRange};

/// What is known of a page while its tags pass by.
pub(super) struct Rows<'a> {
    shape: Shape,
    limits: PageLimits,
    pub(super) children: Children<'a>,
    pub(super) links: usize,
    tag: Tag,
    /// The reference of this tag, and whether it is said to lead to the next page.
    href: Vec<u8>,
    is_next: bool,
    /// The reference to the next page.
    pub(super) next: Option<Vec<u8>>,
    in_pre: bool,
    in_anchor: bool,
    /// Inside of an element whose text nobody sees.
    hidden: bool,
    row: Row,
    /// Rows with an entry, and those among them that are as the shape's are.
    rows: usize,
    fitting: usize,
    slashed: Vec<(usize, Slashed)>,
    /// The order that some date of the page has shown, and whether another showed the other one.
    order: Option<Order>,
    is_order_unsure: bool,
    pub(super) ended: bool,
}

/// The start tag being read, as far as it matters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tag {
    Anchor,
    Base,
    Link,
    Image,
    Cell,
    Time,
    Other,
}

/// The row being read.
#[derive(Default)]
struct Row {
    /// The text outside of links, with [`BREAK`] where elements meet.
    text: Vec<u8>,
    anchor: Option<Anchor>,
    /// Another entry came before in this row.
    is_shared: bool,
    /// Caddy's exact size, and the time in a `<time>`.
    size: Option<SizeRange>,
    modified: Option<ListedTime>,
    is_directory: bool,
}

/// The link to an entry.
#[derive(Clone, Copy)]
struct Anchor {
    entry: usize,
    /// How much of the row's text was before it.
    at: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(shape: Shape, page: &'a Url, limits: PageLimits) -> Self {
        Self {
            shape,
            limits,
            children: Children::new(page, limits),
            links: 0,
            tag: Tag::Other,
            href: Vec::new(),
            is_next: false,
            next: None,
            in_pre: false,
            in_anchor: false,
            hidden: false,
            row: Row::default(),
            rows: 0,
            fitting: 0,
            slashed: Vec::new(),
            order: None,
            is_order_unsure: false,
            ended: false,
        }
    }

    /// The page is over. Whether its rows are those of its shape.
    pub(super) fn finish(&mut self) -> bool {
        self.end_row();
        let order = self.order.filter(|_| !self.is_order_unsure);
        for (entry, slashed) in self.slashed.drain(..) {
            let entry = &mut self.children.entries[entry];
            entry.modified = entry.modified.or_else(|| slashed.time(order));
        }
        self.rows == 0 || self.fitting > 0
    }

    fn link(&mut self, href: &[u8]) {
        self.links += 1;
        if self.is_full() {
            return;
        }
        let Some(entry) = self.children.link(href) else {
            return;
        };
        if let Some(anchor) = self.row.anchor {
            // The icon of an entry can be a link too.
            if anchor.entry == entry || self.shape != Shape::Generic {
                return;
            }
            // Several entries in a row: each has what follows it.
            self.row.is_shared = true;
            self.end_entry();
            self.row.clear();
        }
        let at = self.row.text.len();
        self.row.anchor = Some(Anchor { entry, at });
    }

    fn end_row(&mut self) {
        self.end_entry();
        self.row.clear();
        self.row.is_shared = false;
    }

    /// What the row says of its entry.
    fn end_entry(&mut self) {
        let Some(anchor) = self.row.anchor.take() else {
            return;
        };
        self.rows += 1;
        let (mut before, after) = self.row.text.split_at(anchor.at);
        if self.row.is_shared {
            before = b"";
        }
        let mut said = match self.shape {
            Shape::Apache => time_then_size(after, Style::Apache).or(Some(Said::default())),
            Shape::Nginx => time_then_size(after, Style::Nginx),
            Shape::Lighttpd => {
                // It marks directories outside of the link.
                let columns = after.strip_prefix(b"/").unwrap_or(after);
                time_then_size(columns, Style::Lighttpd)
            }
            Shape::MiniHttpd | Shape::Jetty => time_then_size(after, Style::Unknown),
            Shape::Fancyindex => size_then_time(after, Style::Fancyindex),
            Shape::Iis => time_then_size(before, Style::Unknown),
            Shape::Webfs => webfs(before),
            Shape::Caddy => self.row.modified.map(|_| Said::default()),
            Shape::Python => Some(Said::default()),
            _ => Some(search(before, after)),
        };
        // A row that says nothing contradicts no shape.
        let is_silent = || trim_start(before).is_empty() && trim_start(after).is_empty();
        self.fitting += usize::from(said.is_some() || is_silent());
        let said = said.get_or_insert_default();
        let entry = &mut self.children.entries[anchor.entry];
        if entry.kind == EntryKind::Unknown && (self.row.is_directory || said.is_directory) {
            entry.kind = EntryKind::Directory;
        }
        entry.size = entry.size.or(self.row.size).or(said.size);
        entry.modified = entry.modified.or(self.row.modified);
        match said.modified {
            Some(Shown::Time(time)) => entry.modified = entry.modified.or(Some(time)),
            Some(Shown::Slashed(slashed)) => {
                let order = slashed.order();
                self.is_order_unsure |=
                    order.is_some() && self.order.is_some() && order != self.order;
                self.order = self.order.or(order);
                self.slashed.push((anchor.entry, slashed));
            }
            None => {}
        }
    }

    fn push_text(&mut self, text: &[u8]) {
        let room = ROW_BYTES.saturating_sub(self.row.text.len());
        self.row
            .text
            .extend_from_slice(&text[..text.len().min(room)]);
    }

    /// Elements meet here, so that their texts are not one word.
    fn separate(&mut self) {
        if self.row.text.last().is_some_and(|&last| last != BREAK) {
            self.push_text(&[BREAK]);
        }
    }
}

impl Events for Rows<'_> {
    fn open(&mut self, name: &[u8]) {
        self.href.clear();
        self.is_next = false;
        self.tag = match name {
            b"a" => {
                self.in_anchor = true;
                self.tag = Tag::Anchor;
                return;
            }
            b"td" | b"th" => Tag::Cell,
            b"img" => Tag::Image,
            b"time" => Tag::Time,
            b"base" => Tag::Base,
            b"link" => Tag::Link,
            _ => Tag::Other,
        };
        match name {
            b"tr" | b"li" | b"br" | b"hr" | b"p" | b"ul" | b"ol" | b"table" => {
                self.in_anchor = false;
                self.end_row();
            }
            b"pre" => {
                self.end_row();
                self.in_anchor = false;
                self.in_pre = true;
            }
            b"script" | b"style" | b"title" => self.hidden = true,
            _ => self.separate(),
        }
    }

    fn attribute(&mut self, name: &[u8], value: &[u8]) {
        match (self.tag, name) {
            (Tag::Anchor, b"href") => {
                self.keep_href(value);
                // Only the first counts.
                self.tag = Tag::Link;
                self.link(value);
            }
            (Tag::Link, b"href") => self.keep_href(value),
            (Tag::Anchor | Tag::Link, b"rel") => {
                let mut words = value.split(u8::is_ascii_whitespace);
                self.is_next = words.any(|word| word.eq_ignore_ascii_case(b"next"));
                if self.is_next && !self.href.is_empty() && self.next.is_none() {
                    self.next = Some(self.href.clone());
                }
            }
            (Tag::Base, b"href") => self.children.rebase(value),
            (Tag::Image, b"alt") if value == b"[DIR]" => self.row.is_directory = true,
            (Tag::Time, b"datetime") => {
                self.row.modified = self.row.modified.or_else(|| time::exact(value));
            }
            (Tag::Cell, b"data-order" | b"data-size") if self.shape == Shape::Caddy => {
                // Directories have -1.
                let size = Style::Unknown
                    .read(value)
                    .filter(|size| size.known().is_some());
                self.row.size = self.row.size.or(size);
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &[u8]) {
        match name {
            b"a" => {
                self.in_anchor = false;
                return;
            }
            b"tr" | b"li" | b"ul" | b"ol" | b"table" => {
                self.in_anchor = false;
                self.end_row();
            }
            b"pre" => {
                self.end_row();
                self.in_pre = false;
            }
            b"script" | b"style" | b"title" => self.hidden = false,
            _ => self.separate(),
        }
        self.ended |= name == self.shape.last_tag();
    }

    fn wants_text(&self) -> bool {
        !self.hidden && !self.in_anchor
    }

    fn text(&mut self, mut text: &[u8]) {
        if self.in_pre {
            while let Some(end) = memchr(b'\n', text) {
                if self.row.anchor.is_some() {
                    self.push_text(&text[..end]);
                }
                self.end_row();
                text = &text[end + 1..];
            }
        }
        self.push_text(text);
    }

    fn is_full(&self) -> bool {
        self.links > self.limits.links
    }
}

impl Rows<'_> {
    fn keep_href(&mut self, value: &[u8]) {
        if self.href.is_empty() {
            self.href.extend_from_slice(value);
            if self.is_next && self.next.is_none() {
                self.next = Some(self.href.clone());
            }
        }
    }
}

impl Row {
    fn clear(&mut self) {
        self.text.clear();
        self.anchor = None;
        self.size = None;
        self.modified = None;
        self.is_directory = false;
    }
}

/// What a row's text says.
#[derive(Clone, Copy, Default)]
struct Said {
    size: Option<SizeRange>,
    modified: Option<Shown>,
    is_directory: bool,
}

/// Columns for the time and for the size, in this order. Without a time the columns are others.
fn time_then_size(text: &[u8], style: Style) -> Option<Said> {
    let text = trim_start(text);
    let (modified, length) = time::at_start(text)?;
    let text = trim_start(&text[length..]);
    Some(Said {
        modified: Some(modified),
        ..size(text, style)
    })
}

fn size_then_time(text: &[u8], style: Style) -> Option<Said> {
    let text = trim_start(text);
    let end = text.iter().position(|&byte| byte == BREAK)?;
    let said = size(text, style);
    let (modified, _) = time::at_start(trim_start(&text[end..]))?;
    Some(Said {
        modified: Some(modified),
        ..said
    })
}

/// The size, `-` or `<dir>` that `text` begins with. Its unit can be a word of its own.
fn size(text: &[u8], style: Style) -> Said {
    let (first, rest) = word(text);
    if first.eq_ignore_ascii_case(b"<dir>") {
        return Said {
            is_directory: true,
            ..Said::default()
        };
    }
    let unit = trim_start(rest.strip_prefix(b" ").unwrap_or_default());
    let size = Some(word(unit).0)
        .filter(|unit| unit.first().is_some_and(u8::is_ascii_alphabetic))
        .and_then(|unit| style.read(&[first, b" ", unit].concat()))
        .or_else(|| style.read(first));
    Said {
        size,
        ..Said::default()
    }
}

/// `drwxr-xr-x  root      root      Jan 02  2011    <DIR>  `. The time is in UTC, and that of this half-year has no year.
fn webfs(text: &[u8]) -> Option<Said> {
    let perms = trim_start(text);
    if !perms
        .first()
        .is_some_and(|first| b"-dlbcps".contains(first))
        || perms.len() < WEBFS_TIME
    {
        return None;
    }
    let columns = &perms[WEBFS_TIME..];
    let modified = match time::at_start(columns) {
        Some((Shown::Time(time), _)) => Some(Shown::Time(ListedTime { utc: true, ..time })),
        _ => None,
    };
    let said = size(trim_start(columns.get(WEBFS_TIME_BYTES..)?), Style::Webfs);
    Some(Said {
        modified,
        is_directory: perms[0] == b'd',
        ..said
    })
}

/// Looks for a date and a size in any text.
fn search(before: &[u8], after: &[u8]) -> Said {
    let mut found = Search::default();
    found.look(after);
    found.look(before);
    // A number alone is a size only in a table of files, and those have dates.
    let bare = found.bare.filter(|_| found.dates == 1 && found.bares == 1);
    Said {
        size: match found.sizes {
            0 => bare,
            1 => found.size,
            _ => None,
        },
        modified: found.date.filter(|_| found.dates == 1),
        is_directory: found.is_directory,
    }
}

#[derive(Default)]
struct Search {
    date: Option<Shown>,
    dates: usize,
    /// With a unit.
    size: Option<SizeRange>,
    sizes: usize,
    /// Without one.
    bare: Option<SizeRange>,
    bares: usize,
    is_directory: bool,
}

impl Search {
    fn look(&mut self, mut text: &[u8]) {
        loop {
            text = trim_start(text);
            if text.is_empty() {
                return;
            }
            if let Some((date, length)) = time::at_start(text) {
                self.date = Some(date);
                self.dates += 1;
                text = &text[length..];
                continue;
            }
            let (first, rest) = word(text);
            text = rest;
            if first.eq_ignore_ascii_case(b"<dir>") {
                self.is_directory = true;
            }
            if !first.first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let is_bare = first
                .iter()
                .all(|b| b.is_ascii_digit() || b",'.".contains(b));
            if is_bare && let Some(behind) = rest.strip_prefix(b" ") {
                let (unit, behind) = word(trim_start(behind));
                let size = Style::Unknown.read(&[first, b" ", unit].concat());
                if unit.first().is_some_and(u8::is_ascii_alphabetic) && size.is_some() {
                    self.size = size;
                    self.sizes += 1;
                    text = behind;
                    continue;
                }
            }
            let Some(size) = Style::Unknown.read(first) else {
                continue;
            };
            if is_bare {
                self.bare = Some(size);
                self.bares += 1;
            } else {
                self.size = Some(size);
                self.sizes += 1;
            }
        }
    }
}

/// The first word of `text`, and the rest.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let is_end = |&byte: &u8| matches!(byte, BREAK | b' ' | b'\t' | b'\n' | b'\r' | 0x0C);
    let end = text.iter().position(is_end).unwrap_or(text.len());
    // Some put a no-break space behind a number.
    let end = memmem::find(&text[..end], NO_BREAK_SPACE).unwrap_or(end);
    text.split_at(end)
}

fn trim_start(mut text: &[u8]) -> &[u8] {
    loop {
        // Columns are padded with many of these.
        let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
        text = &text[spaces..];
        match text {
            [BREAK | b'\t' | b'\n' | b'\r' | 0x0C, rest @ ..] => text = rest,
            [0xC2, 0xA0, rest @ ..] => text = rest,
            _ => return text,
        }
    }
}

/// U+00A0
const NO_BREAK_SPACE: &[u8] = b"\xC2\xA0";

/// Stands where elements meet. No page needs this control character.
const BREAK: u8 = 0x1F;

/// How much of a row's text is kept. The columns of every server fit many times over.
const ROW_BYTES: usize = 1024;

/// Where webfs writes the time, behind the permissions and two names of eight characters, and how wide that is.
const WEBFS_TIME: usize = 32;
const WEBFS_TIME_BYTES: usize = 12;
