//! An HTML index page as rows: the link of an entry, and the text beside the link that shows its size and time.
//!
//! A row is a table row, a list item, or a line of preformatted text. For known servers the columns of the text are
//! known. The text of other pages is searched for text that can only be a date and text that can only be a size; if a
//! row has two dates, or two sizes, none is used.

use memchr::{memchr, memmem};
use percent_encoding::percent_decode;
use url::Url;

use super::PageLimits;
use super::children::{Children, Link, Place, is_file_name};
use super::shape::Shape;
use super::size::Style;
use super::time::{self, DateOrder, ParsedTime, SlashedDate};
use super::web_page::is_name;
use crate::markup::html::{Raw, Sink};
use crate::range::{ListedTime, SizeRange};

/// Collects the rows of a page from its tags, attributes and texts.
#[derive(Debug)]
pub(super) struct Rows {
    shape: Shape,
    limits: PageLimits,
    pub(super) children: Children,
    pub(super) links: usize,
    tag: Tag,
    /// The reference of this tag.
    href: Vec<u8>,
    /// The tag has `rel=next`.
    is_next: bool,
    /// The reference to the next page.
    pub(super) next: Option<Vec<u8>>,
    in_pre: bool,
    /// Inside a cell of the body of a table.
    in_cell: bool,
    /// Inside an item of a list.
    in_item: bool,
    in_anchor: bool,
    /// The link that is being read.
    reading: Reading,
    /// Inside an element whose text is not displayed.
    hidden: bool,
    row: Row,
    /// Number of rows with an entry.
    rows: usize,
    /// Number of these rows whose text has the columns of the shape.
    fitting: usize,
    /// Entries, by index, whose date waits for the order of day and month.
    slashed: Vec<(usize, SlashedDate)>,
    /// The first order of day and month that a date of the page proved.
    order: Option<DateOrder>,
    /// Two dates of the page proved different orders.
    is_order_unsure: bool,
    pub(super) ended: bool,
    pub(super) asks_password: bool,
    /// The page has a start tag to the end tag that it should have.
    pub(super) opened: bool,
}

/// The start tag whose attributes are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tag {
    Anchor,
    Base,
    Link,
    Image,
    Cell,
    Time,
    Input,
    Other,
}

/// The row being read.
#[derive(Debug, Default)]
struct Row {
    /// The text outside links, with [`BREAK`] between elements.
    text: Vec<u8>,
    anchor: Option<Anchor>,
    /// A link to no entry, and the length of the row's text before the link, in bytes.
    other: Option<(Other, usize)>,
    /// The row has an earlier entry.
    is_shared: bool,
    /// The exact size in an attribute of Caddy.
    size: Option<SizeRange>,
    /// The time in `<time datetime>`.
    modified: Option<ListedTime>,
    is_directory: bool,
}

/// A link from its start tag to its end.
#[derive(Debug, Default)]
struct Reading {
    /// The reference, if it may hold a name in which `?` and `#` are not escaped. The text decides.
    raw: Vec<u8>,
    /// Where it leads, if the text decides whether it stands for an entry.
    away: Option<Url>,
    /// A reference that leads nowhere, which may be empty.
    useless: Vec<u8>,
    leads_nowhere: bool,
    text: Vec<u8>,
    /// The entry that it leads to.
    entry: Option<usize>,
}

impl Reading {
    /// Whether the text matters that the link shows.
    fn wants_text(&self) -> bool {
        !self.raw.is_empty() || self.away.is_some() || self.leads_nowhere
    }

    fn clear(&mut self) {
        self.raw.clear();
        self.away = None;
        self.useless.clear();
        self.leads_nowhere = false;
        self.text.clear();
        self.entry = None;
    }
}

/// A link that is no entry, but may stand for one.
#[derive(Debug)]
enum Other {
    /// To another server.
    Foreign(Url),
    /// A reference that leads nowhere.
    Useless(String),
}

/// The link to an entry.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    entry: usize,
    /// Length of the row's text before the link, in bytes.
    at: usize,
}

impl Rows {
    pub(super) fn new(shape: Shape, page: &Url, limits: PageLimits) -> Self {
        let mut children = Children::new(page, limits);
        // Other pages may link to a directory with and without the final `/`.
        children.tells_kinds = shape.marks_directories();
        children.is_known = shape != Shape::Generic;
        Self {
            shape,
            limits,
            children,
            links: 0,
            tag: Tag::Other,
            href: Vec::new(),
            is_next: false,
            next: None,
            in_pre: false,
            in_cell: false,
            in_item: false,
            in_anchor: false,
            reading: Reading::default(),
            hidden: false,
            row: Row::default(),
            rows: 0,
            fitting: 0,
            slashed: Vec::new(),
            order: None,
            is_order_unsure: false,
            ended: false,
            asks_password: false,
            opened: false,
        }
    }

    /// Ends the page. Returns whether the rows fit the shape: at least one does, or there are no rows.
    pub(super) fn finish(&mut self) -> bool {
        self.end_row();
        // Dates of the page have proved one order of day and month, or none.
        let order = self.order.filter(|_| !self.is_order_unsure);
        for (entry, slashed) in self.slashed.drain(..) {
            if let Some(entry) = self.children.entry(entry) {
                entry.modified = entry.modified.or_else(|| slashed.time(order));
            }
        }
        self.rows == 0 || self.fitting > 0
    }

    fn link(&mut self, href: &[u8]) {
        self.links += 1;
        if self.is_full() {
            return;
        }
        match may_be_raw(href) {
            true => self.reading.raw.extend_from_slice(href),
            false => self.reading.entry = self.follow(href),
        }
    }

    /// The entry that a reference leads to.
    fn follow(&mut self, href: &[u8]) -> Option<usize> {
        let place = self.place();
        let at = self.row.text.len();
        match self.children.link(href, place) {
            Link::Entry(entry) => {
                self.enter(entry);
                return Some(entry);
            }
            Link::Away(url) => self.reading.away = Some(url),
            Link::Useless(text) => {
                self.reading.leads_nowhere = true;
                self.reading.useless.extend_from_slice(href);
                if place != Place::Loose {
                    self.row.other.get_or_insert((Other::Useless(text), at));
                }
            }
            Link::Other => {}
        }
        None
    }

    fn place(&self) -> Place {
        match self.in_item {
            _ if self.in_pre || self.in_cell => Place::Row,
            true => Place::Item,
            false => Place::Loose,
        }
    }

    /// Begins the row of an entry at its link.
    fn enter(&mut self, entry: usize) {
        if let Some(anchor) = self.row.anchor {
            // The icon of an entry can be a link to the same entry.
            if anchor.entry == entry || self.shape != Shape::Generic {
                return;
            }
            // Several entries in a row: the text after each link belongs to its entry.
            self.row.is_shared = true;
            self.end_entry();
            self.row.clear();
        }
        let at = self.row.text.len();
        self.row.anchor = Some(Anchor { entry, at });
    }

    /// Ends a link: its text may show what it leads to.
    fn end_anchor(&mut self) {
        self.in_anchor = false;
        let mut reading = std::mem::take(&mut self.reading);
        let text = reading.text.trim_ascii();
        if !reading.raw.is_empty() {
            reading.entry = match self.children.unescaped(&reading.raw, text) {
                Some(entry) => {
                    self.enter(entry);
                    Some(entry)
                }
                None => {
                    // The fragment is no part of what is asked for: `a.whl#sha256=0`.
                    let raw = &reading.raw;
                    let path = raw.split(|&byte| byte == b'#').next().unwrap_or(raw);
                    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
                    let name: Vec<u8> = percent_decode(name).collect();
                    self.follow(if is_name(text, &name) { path } else { raw })
                }
            };
        }
        let away = reading.away.take().or_else(|| self.reading.away.take());
        let place = self.place();
        let raw = &reading.raw;
        let rest = away.and_then(|url| self.children.add_shown(url, raw, text, place));
        if let Some(url) = rest {
            let at = self.row.text.len();
            match place == Place::Row {
                true if self.row.other.is_none() => {
                    self.row.other = Some((Other::Foreign(url), at))
                }
                _ => self.children.add_foreign(url),
            }
        }
        reading.useless.append(&mut self.reading.useless);
        reading.leads_nowhere |= self.reading.leads_nowhere;
        if reading.leads_nowhere && is_quoted(&reading.useless, text) {
            self.row.other = None;
            self.children.add_quoted(&reading.useless, place);
        }
        if let Some(at) = reading.entry
            && let Some(name) = text.strip_suffix(b"/")
            && let Some(entry) = self.children.entry(at)
            && entry.name == name.trim_ascii_end()
        {
            entry.mark_directory();
        }
        reading.clear();
        self.reading = reading;
    }

    fn end_row(&mut self) {
        self.end_anchor();
        self.end_entry();
        self.row.clear();
        self.row.is_shared = false;
    }

    /// Reads the text of the row into its entry.
    fn end_entry(&mut self) {
        let Some(anchor) = self.row.anchor.take() else {
            return self.end_other();
        };
        self.rows += 1;
        let (mut before, after) = self.row.text.split_at(anchor.at);
        if self.row.is_shared {
            before = b"";
        }
        let mut read = self.columns(before, after);
        // A row without text contradicts no shape.
        let has_no_text = || trim_start(before).is_empty() && trim_start(after).is_empty();
        self.fitting += usize::from(read.is_some() || has_no_text());
        let columns = read.get_or_insert_default();
        let Some(entry) = self.children.entry(anchor.entry) else {
            return;
        };
        if self.row.is_directory || columns.is_directory {
            entry.mark_directory();
        }
        entry.size = entry.size.or(self.row.size).or(columns.size);
        entry.modified = entry.modified.or(self.row.modified);
        match columns.modified {
            Some(ParsedTime::Time(time)) => entry.modified = entry.modified.or(Some(time)),
            Some(ParsedTime::Slashed(slashed)) => {
                let order = slashed.order();
                self.is_order_unsure |=
                    order.is_some() && self.order.is_some() && order != self.order;
                self.order = self.order.or(order);
                self.slashed.push((anchor.entry, slashed));
            }
            None => {}
        }
    }

    /// Ends a row whose only link leads to no entry. With the columns of an entry, the row stands for one.
    fn end_other(&mut self) {
        let Some((other, at)) = self.row.other.take() else {
            return;
        };
        let (before, after) = self.row.text.split_at(at);
        let columns = self.columns(before, after).unwrap_or_default();
        let is_row = columns.modified.is_some()
            || columns.size.is_some()
            || self.row.modified.is_some()
            || self.row.size.is_some();
        match other {
            Other::Foreign(url) if is_row => self.children.add_stray(url),
            Other::Foreign(url) => self.children.add_foreign(url),
            Other::Useless(href) if is_row => self.children.useless.add(&href),
            Other::Useless(_) => {}
        }
    }

    /// The columns of the text before and after a link. `None`: the text has not those of the shape.
    fn columns(&self, before: &[u8], after: &[u8]) -> Option<Columns> {
        match self.shape {
            Shape::Apache => time_then_size(after, Style::Apache).or(Some(Columns::default())),
            Shape::Nginx => time_then_size(after, Style::Nginx),
            Shape::Lighttpd => {
                // lighttpd writes the `/` of a directory after the link.
                let after = after.strip_prefix(b"/").unwrap_or(after);
                time_then_size(after, Style::Lighttpd)
            }
            Shape::MiniHttpd | Shape::Jetty => time_then_size(after, Style::Unknown),
            Shape::Fancyindex => size_then_time(after, Style::Fancyindex),
            Shape::Iis => time_then_size(before, Style::Unknown),
            Shape::Webfs => webfs(before),
            Shape::Caddy => self.row.modified.map(|_| Columns::default()),
            Shape::Python => Some(Columns::default()),
            _ => Some(search(before, after)),
        }
    }

    fn push_text(&mut self, text: &[u8]) {
        let room = ROW_BYTES.saturating_sub(self.row.text.len());
        self.row
            .text
            .extend_from_slice(&text[..text.len().min(room)]);
    }

    /// Marks the border between two elements, so that their texts do not become one word.
    fn separate(&mut self) {
        if self.row.text.last().is_some_and(|&last| last != BREAK) {
            self.push_text(&[BREAK]);
        }
    }
}

impl<'d> Sink<'d> for Rows {
    fn open(&mut self, name: &[u8]) {
        self.href.clear();
        self.is_next = false;
        self.opened |= name == b"html";
        self.tag = match name {
            b"a" => {
                self.end_anchor();
                self.in_anchor = true;
                self.tag = Tag::Anchor;
                return;
            }
            b"td" | b"th" => {
                self.in_cell = name == b"td";
                Tag::Cell
            }
            b"img" => Tag::Image,
            b"time" => Tag::Time,
            b"base" => Tag::Base,
            b"link" => Tag::Link,
            b"input" => Tag::Input,
            _ => Tag::Other,
        };
        match name {
            b"tr" | b"li" | b"br" | b"hr" | b"p" | b"ul" | b"ol" | b"table" => {
                self.end_row();
                self.in_item |= name == b"li";
            }
            b"pre" => {
                self.end_row();
                self.in_pre = true;
            }
            b"script" | b"style" | b"title" => self.hidden = true,
            _ => self.separate(),
        }
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        let is_link = (self.tag, name) == (Tag::Anchor, &b"href"[..]);
        if self.tag == Tag::Other || (value.bytes.is_empty() && !is_link) {
            return;
        }
        let value = &*value.decode();
        match (self.tag, name) {
            (Tag::Anchor, b"href") => {
                self.keep_href(value);
                // Only the first href of a tag counts.
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
            (Tag::Link, b"class") if self.in_anchor => {
                let mut words = value.split(u8::is_ascii_whitespace);
                if words.any(|word| word == b"icon-directory")
                    && let Some(at) = self.reading.entry
                    && let Some(entry) = self.children.entry(at)
                {
                    entry.mark_directory();
                }
            }
            (Tag::Base, b"href") => self.children.rebase(value),
            (Tag::Input, b"type") => {
                self.asks_password |= value.trim_ascii().eq_ignore_ascii_case(b"password");
            }
            (Tag::Image, b"alt") if value == b"[DIR]" => self.row.is_directory = true,
            (Tag::Time, b"datetime") => {
                self.row.modified = self.row.modified.or_else(|| time::exact(value));
            }
            (Tag::Cell, b"data-order" | b"data-size") if self.shape == Shape::Caddy => {
                // Caddy writes -1 for directories.
                let size = Style::Unknown
                    .read(value)
                    .filter(|size| size.known().is_some());
                self.row.size = self.row.size.or(size);
            }
            _ => {}
        }
    }

    fn opened(&mut self) {}

    fn close(&mut self, name: &[u8]) {
        match name {
            b"a" => {
                self.end_anchor();
                return;
            }
            b"tr" | b"li" | b"ul" | b"ol" | b"table" => {
                self.in_cell = false;
                self.end_row();
                self.in_item = false;
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
        !self.hidden
            && (!self.in_anchor || self.shape == Shape::Generic || self.reading.wants_text())
    }

    fn text(&mut self, text: Raw<'d>) {
        let text = text.decode();
        if self.in_anchor {
            let room = ROW_BYTES.saturating_sub(self.reading.text.len());
            let text = &text[..text.len().min(room)];
            return self.reading.text.extend_from_slice(text);
        }
        self.words(&text);
    }

    fn is_done(&self) -> bool {
        self.is_full()
    }
}

impl Rows {
    fn words(&mut self, mut text: &[u8]) {
        if self.in_pre {
            while let Some(end) = memchr(b'\n', text) {
                if self.row.anchor.is_some() || self.row.other.is_some() {
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
        self.other = None;
        self.size = None;
        self.modified = None;
        self.is_directory = false;
    }
}

/// Whether the end of a reference has `?` or `#`, and is more than a sign.
fn may_be_raw(href: &[u8]) -> bool {
    let href = href.strip_suffix(b"/").unwrap_or(href);
    let name = href.rsplit(|&byte| byte == b'/').next().unwrap_or(href);
    name.iter().any(|byte| b"?#".contains(byte)) && name.iter().any(u8::is_ascii_alphanumeric)
}

/// Whether a reference that leads nowhere names what its link shows: `#/x`, `javascript:go('x')`, `a:b.txt`; or the link
/// shows a file, as with `javascript:go(7)`.
fn is_quoted(href: &[u8], text: &[u8]) -> bool {
    let text = text.strip_suffix(b"/").unwrap_or(text);
    let scheme = href.split(|&byte| byte == b':').next().unwrap_or(href);
    let scheme = scheme.to_ascii_lowercase();
    let opens = matches!(&*scheme, b"javascript" | b"data" | b"blob" | b"magnet");
    let is_message = matches!(&*scheme, b"mailto" | b"tel" | b"http" | b"https");
    let is_file = opens || href.trim_ascii().is_empty() || href.starts_with(b"#") || text == href;
    if is_file && !is_message && is_file_name(text) {
        return true;
    }
    let at = memmem::rfind(href, text);
    at.filter(|_| !text.is_empty()).is_some_and(|at| {
        let after = &href[at + text.len()..];
        // After `//`, a host follows.
        let begins = href[..at].last().is_some_and(|byte| b"/'\"".contains(byte))
            && !href[..at].ends_with(b"//");
        begins && after.first().is_none_or(|byte| b"/'\"".contains(byte))
    })
}

/// The columns of a row's text.
#[derive(Clone, Copy, Default)]
struct Columns {
    size: Option<SizeRange>,
    modified: Option<ParsedTime>,
    is_directory: bool,
}

/// Columns for time and size, in this order. `None`: no time, so the text has other columns.
fn time_then_size(text: &[u8], style: Style) -> Option<Columns> {
    let text = trim_start(text);
    let (modified, length) = time::at_start(text)?;
    let text = trim_start(&text[length..]);
    Some(Columns {
        modified: Some(modified),
        ..size(text, style)
    })
}

fn size_then_time(text: &[u8], style: Style) -> Option<Columns> {
    let text = trim_start(text);
    let end = text.iter().position(|&byte| byte == BREAK)?;
    let columns = size(text, style);
    let (modified, _) = time::at_start(trim_start(&text[end..]))?;
    Some(Columns {
        modified: Some(modified),
        ..columns
    })
}

/// The size, `-` or `<dir>` at the start of `text`. The unit of the size can be a separate word.
fn size(text: &[u8], style: Style) -> Columns {
    let (first, rest) = word(text);
    if first.eq_ignore_ascii_case(b"<dir>") {
        return Columns {
            is_directory: true,
            ..Columns::default()
        };
    }
    let unit = trim_start(rest.strip_prefix(b" ").unwrap_or_default());
    let size = Some(word(unit).0)
        .filter(|unit| unit.first().is_some_and(u8::is_ascii_alphabetic))
        .and_then(|unit| style.read(&[first, b" ", unit].concat()))
        .or_else(|| style.read(first));
    Columns {
        size,
        ..Columns::default()
    }
}

/// `drwxr-xr-x  root      root      Jan 02  2011    <DIR>  `. The time is in UTC. A time within the last half-year has
/// no year and is not read.
fn webfs(text: &[u8]) -> Option<Columns> {
    let perms = trim_start(text);
    if !perms
        .first()
        .is_some_and(|first| b"-dlbcps".contains(first))
        || perms.len() < WEBFS_TIME
    {
        return None;
    }
    let rest = &perms[WEBFS_TIME..];
    let modified = match time::at_start(rest) {
        Some((ParsedTime::Time(time), _)) => {
            Some(ParsedTime::Time(ListedTime { utc: true, ..time }))
        }
        _ => None,
    };
    let columns = size(trim_start(rest.get(WEBFS_TIME_BYTES..)?), Style::Webfs);
    Some(Columns {
        modified,
        is_directory: perms[0] == b'd',
        ..columns
    })
}

/// Searches the text of an unknown page for a date and a size.
fn search(before: &[u8], after: &[u8]) -> Columns {
    let mut found = ColumnSearch::default();
    found.scan(after);
    found.scan(before);
    // A number without a unit is a size only in a table of files. Such a table has dates.
    let bare = found.bare.filter(|_| found.dates == 1 && found.bares == 1);
    Columns {
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
struct ColumnSearch {
    date: Option<ParsedTime>,
    dates: usize,
    /// The last size with a unit.
    size: Option<SizeRange>,
    sizes: usize,
    /// The last number without a unit.
    bare: Option<SizeRange>,
    bares: usize,
    is_directory: bool,
}

impl ColumnSearch {
    fn scan(&mut self, mut text: &[u8]) {
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
    // Some servers write a no-break space after a number.
    let end = memmem::find(&text[..end], NO_BREAK_SPACE).unwrap_or(end);
    text.split_at(end)
}

fn trim_start(mut text: &[u8]) -> &[u8] {
    loop {
        // Columns are padded with many spaces.
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

/// Separates the texts of two elements. Pages do not use this control character.
const BREAK: u8 = 0x1F;

/// How many bytes of a row's text are kept. The columns of every known server are far shorter.
const ROW_BYTES: usize = 1024;

/// Column of the time on pages of webfs, after the permissions, the user and the group.
const WEBFS_TIME: usize = 32;
/// Width of the time on pages of webfs.
const WEBFS_TIME_BYTES: usize = 12;
