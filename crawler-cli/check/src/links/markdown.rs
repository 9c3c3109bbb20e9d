//! Links of Markdown: CommonMark with the extensions of GitHub, by pulldown-cmark. Raw HTML is read as HTML.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use listing::markup::references::{self, Context};

use super::bare;
use super::heading::Slugs;
use super::html::{self, HtmlState, Piece};
use super::output::{Found, OpenLink, Output};
use super::{Kind, Visitor};

/// Reads a document.
pub(super) fn read<V: Visitor>(text: &str, output: &mut Output<'_, '_, V>) {
    let start = front_matter(text);
    let mut reader = MarkdownReader {
        text,
        output,
        html: HtmlState::default(),
        block: None,
        ends: Vec::new(),
        links: Vec::new(),
        images: 0,
        in_code: false,
        bare_end: 0,
        heading: None,
        slugs: Slugs::default(),
    };
    for (event, range) in Parser::new_ext(&text[start..], EXTENSIONS).into_offset_iter() {
        if reader.output.is_done() {
            return;
        }
        reader.event(event, range.start + start..range.end + start);
    }
}

/// What GitHub reads.
const EXTENSIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_HEADING_ATTRIBUTES)
    .union(Options::ENABLE_GFM);

/// The length of the metadata at the start of a document: YAML between `---`, or TOML between `+++`.
fn front_matter(text: &str) -> usize {
    let fence = ["---", "+++"]
        .into_iter()
        .find(|fence| text.starts_with(fence));
    let Some(fence) = fence else {
        return 0;
    };
    let mut lines = text.split_inclusive('\n');
    let mut length = match lines.next() {
        Some(first) if first.trim_end() == fence => first.len(),
        _ => return 0,
    };
    for line in lines {
        length += line.len();
        let line = line.trim_end();
        if line == fence || (fence == "---" && line == "...") {
            return length;
        }
    }
    0
}

struct MarkdownReader<'d, 's, 't, 'v, V> {
    text: &'d str,
    output: &'s mut Output<'t, 'v, V>,
    html: HtmlState,
    /// The block of raw HTML that is read.
    block: Option<Block>,
    /// Where the open elements end.
    ends: Vec<usize>,
    /// The open links and images; `None` for one that is not wanted.
    links: Vec<Option<OpenLink>>,
    /// How many of these are images.
    images: usize,
    in_code: bool,
    /// Where the last bare URL ends.
    bare_end: usize,
    /// The text of the heading that is read.
    heading: Option<String>,
    slugs: Slugs,
}

/// A block of raw HTML. In a quote or a list it stands in several parts.
#[derive(Default)]
struct Block {
    parts: Vec<Range<usize>>,
}

impl<V: Visitor> MarkdownReader<'_, '_, '_, '_, V> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                self.ends.push(range.end);
                self.open(tag, range);
            }
            Event::End(tag) => {
                self.ends.pop();
                self.close(tag);
            }
            Event::Text(text) if !self.in_code => self.words(&text, range),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.plain(&text);
            }
            Event::SoftBreak | Event::HardBreak => {
                self.output.text(" ");
                if let Some(heading) = &mut self.heading {
                    heading.push('\n');
                }
            }
            Event::Html(_) => {
                if let Some(block) = &mut self.block {
                    block.push(range);
                }
            }
            Event::InlineHtml(html) => self.inline_html(&html, range),
            Event::FootnoteReference(label) => self.anchor(&format!("fnref-{label}")),
            _ => {}
        }
    }

    fn open(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => self.reference(link_type, dest_url, Kind::Document, range),
            Tag::Image {
                link_type,
                dest_url,
                ..
            } => {
                self.images += 1;
                self.reference(link_type, dest_url, Kind::Embedded, range);
            }
            Tag::CodeBlock(_) | Tag::MetadataBlock(_) => self.in_code = true,
            Tag::HtmlBlock => self.block = Some(Block::default()),
            Tag::Heading { id, .. } => {
                self.heading = Some(String::new());
                if let Some(id) = id {
                    self.anchor(&id);
                }
            }
            Tag::FootnoteDefinition(label) => self.anchor(&format!("fn-{label}")),
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Link => self.end_reference(),
            TagEnd::Image => {
                self.images -= 1;
                self.end_reference();
            }
            TagEnd::CodeBlock | TagEnd::MetadataBlock(_) => self.in_code = false,
            TagEnd::HtmlBlock => {
                if let Some(block) = self.block.take() {
                    self.html_block(&block);
                }
            }
            TagEnd::Heading(_) => {
                self.html.end(self.output);
                if let Some(heading) = self.heading.take()
                    && self.output.visitor.wants_anchors()
                {
                    let slug = self.slugs.of(&heading);
                    self.output.visitor.anchor(&slug);
                }
            }
            TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item => self.html.end(self.output),
            _ => {}
        }
    }

    fn anchor(&mut self, anchor: &str) {
        if self.output.visitor.wants_anchors() {
            self.output.visitor.anchor(anchor);
        }
    }

    fn reference(&mut self, link_type: LinkType, url: CowStr<'_>, kind: Kind, range: Range<usize>) {
        let url = match link_type {
            LinkType::Email => format!("mailto:{url}").into(),
            _ => url,
        };
        let link = self.output.begin(Found {
            at: range.start,
            url: Cow::Borrowed(&url),
            kind,
        });
        self.links.push(link);
    }

    fn end_reference(&mut self) {
        if let Some(Some(link)) = self.links.pop() {
            self.output.end(link);
        }
    }

    /// Text that is no markup.
    fn plain(&mut self, text: &str) {
        self.output.text(text);
        if let Some(heading) = &mut self.heading
            && self.images == 0
        {
            heading.push_str(text);
        }
    }

    /// Text, which can hold bare URLs (GFM §6.9).
    fn words(&mut self, text: &str, range: Range<usize>) {
        if self.block.is_some() {
            return;
        }
        self.plain(text);
        if !self.links.is_empty() || self.html.is_open() {
            return;
        }
        let from = range.start.max(self.bare_end);
        if from >= range.end {
            return;
        }
        let end = self
            .ends
            .last()
            .map_or(range.end, |&end| end.max(range.end));
        let mut starts = BareStarts::new(self.text, from..range.end);
        while let Some(start) = starts.next(self.bare_end) {
            let found = start..start + bare_length(&self.text[start..end]);
            self.bare_end = found.end;
            let raw = &self.text[found.clone()];
            if raw.ends_with("://") {
                continue;
            }
            let url = match is_www(raw) {
                true => Cow::Owned(format!("http://{}", unescaped(raw))),
                false => unescaped(raw),
            };
            self.output.link(
                Found {
                    at: found.start,
                    url,
                    kind: Kind::Document,
                },
                raw,
            );
        }
    }

    /// Raw HTML between text. Where a line of a quote begins inside, the parser has removed its `>`.
    fn inline_html(&mut self, html: &str, range: Range<usize>) {
        let mut at = range.start;
        let mut parts = Vec::new();
        let mut copied = 0;
        for line in html.split_inclusive('\n') {
            let rest = &self.text[at..range.end];
            at += rest.find(line).unwrap_or(0);
            parts.push((copied, at));
            copied += line.len();
            at = (at + line.len()).min(range.end);
        }
        self.piece(html, &parts);
    }

    /// A block of raw HTML.
    fn html_block(&mut self, block: &Block) {
        let (mut html, mut parts) = (String::new(), Vec::new());
        match block.parts.as_slice() {
            [range] => self.piece(&self.text[range.clone()], &[(0, range.start)]),
            ranges => {
                for range in ranges {
                    parts.push((html.len(), range.start));
                    html.push_str(&self.text[range.clone()]);
                }
                self.piece(&html, &parts);
            }
        }
    }

    fn piece(&mut self, html: &str, parts: &[(usize, usize)]) {
        if !parts.is_empty() {
            html::read(&Piece { html, parts }, &mut self.html, self.output);
        }
    }
}

impl Block {
    fn push(&mut self, range: Range<usize>) {
        match self.parts.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.parts.push(range),
        }
    }
}

/// Where bare URLs begin in a range of the text.
struct BareStarts<'t> {
    text: &'t str,
    range: Range<usize>,
    /// The next URL with a scheme, and the next one with `www.`. Each is searched for only when it is passed.
    absolute: Option<usize>,
    www: Option<usize>,
}

impl<'t> BareStarts<'t> {
    fn new(text: &'t str, range: Range<usize>) -> Self {
        Self {
            text,
            absolute: next_absolute(text, range.clone()),
            www: next_www(text, range.clone()),
            range,
        }
    }

    /// The next start that is not before `from`.
    fn next(&mut self, from: usize) -> Option<usize> {
        let rest = from.max(self.range.start)..self.range.end;
        if rest.start >= rest.end {
            return None;
        }
        if self.absolute.is_some_and(|start| start < from) {
            self.absolute = next_absolute(self.text, rest.clone());
        }
        if self.www.is_some_and(|start| start < from) {
            self.www = next_www(self.text, rest);
        }
        match (self.absolute, self.www) {
            (Some(absolute), Some(www)) => Some(absolute.min(www)),
            (absolute, www) => absolute.or(www),
        }
    }
}

/// The length of the bare URL that the text begins with. What is no text for the parser, such as `_`, can be a part of
/// the URL.
fn bare_length(text: &str) -> usize {
    // A host without a scheme is not searched for a colon, which may be far behind it.
    let host = match is_www(text) {
        true => 0,
        false => text.find(':').map_or(0, |colon| colon + "://".len()),
    };
    let length = bare::length_in_markdown(&text[host..]);
    // Brackets that begin a link are no part of the URL.
    let rest = &text[host..host + length];
    let link = memmem::find(rest.as_bytes(), b"](");
    let bracket = link.map(|link| rest[..link].rfind('[').unwrap_or(link));
    host + bracket.unwrap_or(length)
}

fn next_absolute(text: &str, range: Range<usize>) -> Option<usize> {
    let inside = text.get(range.clone())?;
    bare::next(inside, 0).map(|found| range.start + found.start)
}

/// Where `www.` begins a word that is a host (GFM §6.9).
fn next_www(text: &str, range: Range<usize>) -> Option<usize> {
    let inside = &text.as_bytes()[range.clone()];
    let mut found = memmem::find_iter(inside, b"www.").map(|at| range.start + at);
    found.find(|&at| {
        let before = text[..at].chars().next_back();
        let is_start =
            before.is_none_or(|before| before.is_whitespace() || "*_~(".contains(before));
        let rest = &text[at + 4..];
        is_start && rest.starts_with(|char: char| char.is_alphanumeric())
    })
}

fn is_www(raw: &str) -> bool {
    raw.starts_with("www.")
}

/// Decodes backslash escapes and character references (CommonMark §2.4 and §2.5).
fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains(['\\', '&']) {
        return Cow::Borrowed(raw);
    }
    let mut decoded = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(['\\', '&']) {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let next = rest[1..].chars().next();
        if rest.starts_with('\\')
            && let Some(escaped) = next.filter(char::is_ascii_punctuation)
        {
            decoded.push(escaped);
            rest = &rest[2..];
            continue;
        }
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
        let name = rest
            .bytes()
            .skip(1)
            .take(REFERENCE)
            .take_while(is_name)
            .count();
        let length = 1 + name;
        if rest.starts_with('&') && rest[length..].starts_with(';') {
            let reference = references::decode(&rest.as_bytes()[..=length], Some(Context::Text));
            decoded.push_str(&String::from_utf8_lossy(&reference));
            rest = &rest[length + 1..];
        } else {
            decoded.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// More than the longest name of an entity.
const REFERENCE: usize = 40;
