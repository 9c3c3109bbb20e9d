//! A listing that is too large for memory, read while it arrives. What the page is, and whether it is whole, is known at
//! its end; until then, the entries wait in a file ([`Spool`](super::Spool)).
//!
//! The beginning of the page decides which server wrote it. For each name that is in the file, a hash is kept: a further
//! link to the name is dropped, and can no longer add its size or its kind. With ten million names, two different ones
//! share a hash once in some 400,000 pages.

use std::fmt;
use std::io;

use url::Url;

use super::json::ArrayStream;
use super::rows::Rows;
use super::shape::Shape;
use super::spool::SpoolWriter;
use super::web_page::Signs;
use super::{Format, Listing, PageError, PageLimits, is_utf16};
use crate::markup::html::{Incoming, Raw, Sink};

/// A listing of which a part has arrived.
#[derive(Debug)]
pub struct ListingStream {
    page: Url,
    content_type: Option<Vec<u8>>,
    limits: PageLimits,
    /// Bytes that have arrived.
    received: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The beginning of the page.
    Beginning(Vec<u8>),
    Html(Box<HtmlStream>),
    Json(Box<ArrayStream>),
}

/// Why a listing cannot be read as a stream.
#[derive(Debug)]
pub enum StreamError {
    /// A limit was exceeded, or the page lists no directory.
    Page(PageError),
    /// Pages of this format have to fit into memory.
    Format,
    /// The page has more bytes than this.
    TooLarge(u64),
    /// The entries cannot be written to a file.
    Spool(io::Error),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(error) => error.fmt(f),
            Self::Format => f.write_str("the page does not fit into memory"),
            Self::TooLarge(bytes) => write!(f, "the page has more than {bytes} bytes"),
            Self::Spool(error) => write!(f, "a temporary file for the entries: {error}"),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<PageError> for StreamError {
    fn from(error: PageError) -> Self {
        Self::Page(error)
    }
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        Self::Spool(error)
    }
}

impl ListingStream {
    /// The listing of `page`, as in [`parse`](super::parse).
    pub fn new(page: &Url, content_type: Option<&[u8]>, limits: PageLimits) -> Self {
        Self {
            page: page.clone(),
            content_type: content_type.map(<[u8]>::to_vec),
            limits,
            received: 0,
            state: State::Beginning(Vec::new()),
        }
    }

    /// Takes the next part of the page.
    ///
    /// # Errors
    /// The listing cannot be read; the rest is of no use.
    pub fn feed(&mut self, part: &[u8]) -> Result<(), StreamError> {
        self.received += part.len() as u64;
        if self.received > self.limits.streamed_bytes {
            return Err(StreamError::TooLarge(self.limits.streamed_bytes));
        }
        match &mut self.state {
            State::Beginning(bytes) => {
                bytes.extend_from_slice(part);
                if bytes.len() >= BEGINNING {
                    let bytes = std::mem::take(bytes);
                    self.state = self.begin(&bytes)?;
                    return self.feed_rest(&bytes);
                }
                Ok(())
            }
            _ => self.feed_rest(part),
        }
    }

    fn feed_rest(&mut self, part: &[u8]) -> Result<(), StreamError> {
        match &mut self.state {
            State::Beginning(_) => Ok(()),
            State::Html(html) => html.feed(part),
            State::Json(json) => json.feed(part),
        }
    }

    /// Decides what the page is by its beginning.
    fn begin(&self, bytes: &[u8]) -> Result<State, StreamError> {
        let content_type = self.content_type.as_deref();
        if is_utf16(bytes, content_type) {
            return Err(StreamError::Format);
        }
        let limits = PageLimits {
            links: self.limits.streamed_links,
            ..self.limits
        };
        let format = content_type.and_then(Format::of_type);
        match format.unwrap_or_else(|| Format::of_body(bytes)) {
            Format::Xml => Err(StreamError::Format),
            Format::Json => {
                let json = ArrayStream::new(&self.page, limits)?;
                Ok(State::Json(Box::new(json)))
            }
            Format::Html => {
                let shape = Shape::of_html(bytes);
                // Whether the rows fit is decided here, because the page cannot be read twice.
                let shape = match super::html(bytes, shape, &self.page, limits)? {
                    Some(_) => shape,
                    None => Shape::Generic,
                };
                let html = HtmlStream::new(&self.page, shape, limits)?;
                Ok(State::Html(Box::new(html)))
            }
        }
    }

    /// The page has ended.
    ///
    /// # Errors
    /// It is no listing, or a file for its entries cannot be written.
    pub fn finish(self) -> Result<Listing, StreamError> {
        match self.state {
            State::Beginning(bytes) => {
                let content_type = self.content_type.as_deref();
                Ok(super::parse(&bytes, content_type, &self.page, self.limits)?)
            }
            State::Html(html) => html.finish(&self.page),
            State::Json(json) => json.finish(&self.page),
        }
    }
}

/// A page of HTML.
#[derive(Debug)]
struct HtmlStream {
    shape: Shape,
    incoming: Incoming,
    readers: Readers,
    spool: SpoolWriter,
    limits: PageLimits,
}

/// What reads the tags.
#[derive(Debug)]
struct Readers {
    rows: Rows,
    /// What speaks for a listing, if the server is not known.
    signs: Option<Signs>,
}

impl HtmlStream {
    fn new(page: &Url, shape: Shape, limits: PageLimits) -> io::Result<Self> {
        Ok(Self {
            shape,
            incoming: Incoming::new(),
            readers: Readers {
                rows: Rows::new(shape, page, limits),
                signs: (shape == Shape::Generic).then(|| Signs::new(page)),
            },
            spool: SpoolWriter::new()?,
            limits,
        })
    }

    fn feed(&mut self, part: &[u8]) -> Result<(), StreamError> {
        let fed = self.incoming.feed(part, &mut self.readers);
        fed.map_err(|_| StreamError::Format)?;
        let rows = &mut self.readers.rows;
        if rows.links > self.limits.links {
            return Err(PageError::TooManyLinks.into());
        }
        if rows.children.entries.len() >= MOST_IN_MEMORY {
            rows.spill(KEPT, &mut self.spool)?;
        }
        Ok(())
    }

    fn finish(mut self, page: &Url) -> Result<Listing, StreamError> {
        self.incoming.finish(&mut self.readers);
        let mut rows = self.readers.rows;
        if rows.links > self.limits.links {
            return Err(PageError::TooManyLinks.into());
        }
        rows.end();
        rows.children.map(self.shape != Shape::Generic);
        rows.spill(0, &mut self.spool)?;
        let order = rows.order();
        let mut listing = super::listing_of(rows, self.shape, page);
        let mut rules = listing.rules;
        rules.order = order;
        rules.sizes_mark_files = self.shape == Shape::Generic && self.spool.has_unsized;
        let has_columns = self.spool.has_columns;
        let signs = self.readers.signs.map(Signs::end);
        let signs = signs.filter(|signs| !has_columns && !signs.is_listing());
        listing.doubt = signs.map(|signs| signs.page(b""));
        listing.spool = Some(self.spool.finish(rules)?);
        Ok(listing)
    }
}

impl<'d> Sink<'d> for Readers {
    fn open(&mut self, name: &[u8]) {
        self.rows.open(name);
        if let Some(signs) = &mut self.signs {
            signs.open(name);
        }
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        self.rows.attribute(name, value);
        if let Some(signs) = &mut self.signs {
            signs.attribute(name, value);
        }
    }

    fn opened(&mut self) {
        self.rows.opened();
        if let Some(signs) = &mut self.signs {
            signs.opened();
        }
    }

    fn close(&mut self, name: &[u8]) {
        self.rows.close(name);
        if let Some(signs) = &mut self.signs {
            signs.close(name);
        }
    }

    fn wants_text(&self) -> bool {
        let signs = self.signs.as_ref();
        self.rows.wants_text() || signs.is_some_and(|signs| signs.wants_text())
    }

    fn text(&mut self, text: Raw<'d>) {
        if self.rows.wants_text() {
            self.rows.text(text);
        }
        if let Some(signs) = self.signs.as_mut().filter(|signs| signs.wants_text()) {
            signs.text(text);
        }
    }

    fn is_done(&self) -> bool {
        self.rows.is_done()
    }
}

/// So many bytes of a page decide what it is.
const BEGINNING: usize = 256 * 1024;

/// With so many entries in memory, most of them are written to the file.
pub(super) const MOST_IN_MEMORY: usize = 16 * 1024;

/// Entries that stay in memory, because further links of the same rows may lead to them.
const KEPT: usize = 1024;
