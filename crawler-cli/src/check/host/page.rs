//! Reads links from the body of a good answer.

use url::Url;

use super::body::AnswerBody;
use crate::check::links::{Document, Format, Link, Visitor, XmlError};
use crate::check::task::{Page, PageLink};

/// The format of the page at this URL; `None` if its body cannot be read. Without a type, a path without an extension is
/// that of HTML.
pub(super) fn format(url: &Url, content_type: Option<&str>) -> Option<Format> {
    let name = url.path().rsplit('/').next().unwrap_or_default();
    match content_type {
        Some(content_type) => Format::of_type(content_type),
        None if name.contains('.') => Format::of_name(name),
        None => Some(Format::Html),
    }
}

/// A page whose body is not read.
pub(super) fn unread(url: &Url) -> Page {
    Page {
        base: url.clone(),
        links: Vec::new(),
        problem: None,
    }
}

/// Reads the links in the body of the answer for this URL.
pub(super) fn read(url: &Url, body: &AnswerBody) -> Page {
    let mut page = unread(url);
    let Some(format) = format(url, body.content_type.as_deref()) else {
        return page;
    };
    let charset = body.content_type.as_deref().and_then(charset);
    let document = Document::new(format, body.start.bytes(), charset);
    if let Some(base) = document.base().and_then(|base| url.join(&base).ok()) {
        page.base = base;
    }
    let mut reader = Reader {
        links: Vec::new(),
        is_full: false,
        fault: None,
    };
    let read = document.read(&mut reader);
    page.problem = match read {
        _ if body.start.is_cut() => Some(format!(
            "only the first {} bytes were read",
            body.start.bytes().len()
        )),
        _ if reader.is_full => Some(format!("only the first {} links were read", Page::LIMIT)),
        Err(error) => Some(error.to_string()),
        Ok(()) => reader.fault.map(|fault| fault.to_string()),
    };
    page.links = reader.links;
    page
}

/// The `charset` parameter of a `Content-Type`.
fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"'))
    })
}

struct Reader {
    links: Vec<PageLink>,
    is_full: bool,
    /// The first.
    fault: Option<XmlError>,
}

impl Visitor for Reader {
    fn link(&mut self, link: Link<'_>) {
        if self.links.len() >= Page::LIMIT {
            self.is_full = true;
            return;
        }
        self.links.push(PageLink {
            url: link.url.into(),
            line: link.line,
            column: link.column,
            text: link.text.into(),
            kind: link.kind,
        });
    }

    fn fault(&mut self, fault: XmlError) {
        self.fault.get_or_insert(fault);
    }

    fn is_done(&self) -> bool {
        self.is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_a_content_type() {
        for (value, expected) in [
            ("text/html", None),
            ("text/html; charset=utf-8", Some("utf-8")),
            (
                "text/html;level=1; Charset=\"ISO-8859-1\"",
                Some("ISO-8859-1"),
            ),
        ] {
            assert_eq!(charset(value), expected);
        }
    }
}
