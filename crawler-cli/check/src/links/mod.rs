//! Links out of documents: bytes in, links out. Pure.
//!
//! A [`Document`] is bytes in a [`Format`]. [`Document::read`] tells a [`Visitor`] about each link with the place where
//! it stands, and about anchors if the visitor wants them. Links stream: nothing is kept for a link that
//! was told. Relative URLs are given as written; [`Document::base`] is what they are relative to.
//!
//! ```
//! use check::links::{Document, Format, Link};
//!
//! let document = Document::new(Format::Markdown, b"See\n[the *guide*](guide.md).", None);
//! let mut found = Vec::new();
//! document.read(&mut |link: Link<'_>| {
//!     found.push(format!("{}:{} {} {}", link.line, link.column, link.url, link.text));
//! })?;
//! assert_eq!(found, ["2:1 guide.md the guide"]);
//! # Ok::<(), check::links::XmlError>(())
//! ```
//!
//! Comments switch links off, where a format has comments: `<!-- crawler-check-disable -->` up to
//! `<!-- crawler-check-enable -->` or the end, `<!-- crawler-check-disable-next-line -->`, and
//! `<!-- crawler-check-disable-line -->` for the line of the comment itself. `markdown-link-check-` in place of
//! `crawler-check-` means the same. HTML and Markdown have these comments. They mean nothing in XML.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

mod anchors;
mod bare;
mod heading;
mod html;
mod markdown;
mod output;
mod place;
mod switch;
mod xml;

use encoding_rs::{Encoding, UTF_8};

use html::{HtmlState, Piece};
use listing::markup::encoding::{self, Declaration};
use output::Output;

pub use anchors::Anchors;

/// The syntax of a document.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Format {
    /// CommonMark with GitHub's extensions.
    Markdown,
    /// HTML, and XHTML.
    Html,
    /// XML: sitemaps, lists of sitemaps, feeds (RSS, Atom). Other XML has no links.
    Xml,
}

impl Format {
    /// How many bytes of a document are read, if so many may be. The parser of Markdown takes up to 60 times the memory of
    /// its text.
    pub(super) fn longest(self, most: u64) -> u64 {
        match self {
            Self::Markdown => most.min(8 << 20),
            Self::Html | Self::Xml => most,
        }
    }

    /// The format that the extension of a file name or of the path of a URL stands for. `.gz` is not removed.
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "md" | "markdown" | "mkd" | "mdx" => Some(Self::Markdown),
            "html" | "htm" | "xhtml" | "xht" => Some(Self::Html),
            "xml" | "rss" | "atom" => Some(Self::Xml),
            _ => None,
        }
    }

    /// The format of a `Content-Type`. Its parameters are ignored.
    pub fn of_type(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or("").trim();
        match essence.to_ascii_lowercase().as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "text/markdown" | "text/x-markdown" => Some(Self::Markdown),
            "text/xml" | "application/xml" | "application/rss+xml" | "application/atom+xml" => {
                Some(Self::Xml)
            }
            _ => None,
        }
    }
}

/// A link in a document.
#[derive(Clone, Debug)]
pub struct Link<'d> {
    /// The URL as the format decodes it: without character references and escapes, without blanks around it. Relative
    /// URLs are not resolved. Never empty.
    pub url: Cow<'d, str>,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The column in Unicode code points, from 1; 0 if it is not known. The first character of the attribute's raw value (HTML), of the
    /// link's `[`, `!` or `<` (Markdown), or of the URL.
    pub column: u32,
    /// The text of the link or the alternative text of the image, with blanks collapsed; empty if there is none. At
    /// most [`TEXT_BYTES`].
    pub text: Cow<'d, str>,
    /// What the link is for.
    pub kind: Kind,
}

impl Link<'_> {
    /// The link without its document.
    pub fn into_owned(self) -> Link<'static> {
        Link {
            url: self.url.into_owned().into(),
            text: self.text.into_owned().into(),
            ..self
        }
    }
}

/// What a link is for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Leads to another document. A recursive check follows these.
    Document,
    /// Names a part of this document, such as an image, a script or a style sheet.
    Embedded,
    /// Names a sitemap, from a list of sitemaps.
    Sitemap,
}

/// Longest [`Link::text`] in bytes.
pub const TEXT_BYTES: usize = 1024;

/// Gets what a document holds. A closure `FnMut(Link<'_>)` is a visitor that wants only links.
pub trait Visitor {
    /// A link. Links come in the order of their places.
    fn link(&mut self, link: Link<'_>);
    /// Whether [`anchor`](Self::anchor) is wanted. Default: no.
    fn wants_anchors(&self) -> bool {
        false
    }
    /// The name of a place that a fragment can mean, decoded: an `id`, the `name` of an `<a>`, the slug of a heading.
    fn anchor(&mut self, _anchor: &str) {}
    /// XML is wrong at a place, and only the entry there is lost, or less. Default: ignored.
    fn fault(&mut self, _fault: XmlError) {}
    /// Whether nothing more is wanted, so that the reading ends. Default: no.
    fn is_done(&self) -> bool {
        false
    }
}

impl<F: FnMut(Link<'_>)> Visitor for F {
    fn link(&mut self, link: Link<'_>) {
        self(link);
    }
}

/// A document to be read.
#[derive(Clone, Debug)]
pub struct Document<'d> {
    format: Format,
    encoding: &'static Encoding,
    text: Cow<'d, str>,
}

impl<'d> Document<'d> {
    /// Takes bytes in this format. The encoding is that of the byte order mark, else `charset` (the label in
    /// `Content-Type`), else what the document declares, else UTF-8. UTF-8 is not copied; other encodings are.
    /// Bytes that are wrong in the encoding become U+FFFD. An unknown label counts as none.
    pub fn new(format: Format, bytes: &'d [u8], charset: Option<&str>) -> Self {
        let declaration = match format {
            Format::Html => Declaration::Html,
            Format::Xml => Declaration::Xml,
            Format::Markdown => Declaration::Nowhere,
        };
        let known = encoding::encoding(bytes, charset, declaration);
        let (encoding, start) = known.unwrap_or((UTF_8, 0));
        Self {
            format,
            encoding,
            text: encoding.decode_without_bom_handling(&bytes[start..]).0,
        }
    }

    /// The encoding, in which the queries of its links are sent.
    pub fn encoding(&self) -> &'static Encoding {
        self.encoding
    }

    /// The URL of the first `<base href>`, decoded: relative URLs of the document are relative to this URL, which is
    /// relative to that of the document. `None` for formats without such an element.
    pub fn base(&self) -> Option<String> {
        match self.format {
            Format::Html => html::base(&self.text),
            _ => None,
        }
    }

    /// Tells the visitor what the document holds.
    ///
    /// # Errors
    /// The document is [`Format::Xml`], and its rest cannot be read. The links before that place were told.
    pub fn read(&self, visitor: &mut impl Visitor) -> Result<(), XmlError> {
        let mut output = Output::new(&self.text, visitor);
        let mut result = Ok(());
        match self.format {
            Format::Markdown => markdown::read(&self.text, &mut output),
            Format::Html => {
                let piece = Piece {
                    html: &self.text,
                    parts: &[(0, 0)],
                };
                html::read(&piece, &mut HtmlState::default(), &mut output);
            }
            Format::Xml => result = xml::read(&self.text, &mut output),
        }
        output.flush();
        result
    }
}

/// A fault of XML.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct XmlError {
    /// The line, from 1.
    pub line: u32,
    /// The column in code points, from 1.
    pub column: u32,
    /// What is wrong there.
    pub fault: XmlFault,
}

/// What is wrong with XML.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum XmlFault {
    /// The document ends before its root element ends: it was cut.
    Cut,
    /// The syntax is wrong.
    Malformed,
    /// An entity that XML does not define. It is kept as text.
    Entity,
    /// A sitemap has more URLs than its protocol allows. All are told.
    TooMany,
    /// The elements are nested deeper than any known format has.
    TooDeep,
}

impl XmlError {
    /// Whether each link of the document is told in spite of this.
    pub fn loses_nothing(&self) -> bool {
        matches!(self.fault, XmlFault::Entity | XmlFault::TooMany)
    }
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.fault {
            XmlFault::Cut => "the XML document ends before its root element: it is cut",
            XmlFault::Malformed => "the XML document is malformed",
            XmlFault::Entity => "the XML document uses an entity that is not known, kept as text",
            XmlFault::TooMany => "the sitemap has more than 50,000 URLs; all are read",
            XmlFault::TooDeep => "the elements of the XML document are nested too deeply",
        };
        write!(f, "{what} (line {}, column {})", self.line, self.column)
    }
}

impl Error for XmlError {}

#[cfg(test)]
mod tests;
