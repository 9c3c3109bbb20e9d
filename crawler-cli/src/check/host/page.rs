//! Reads links and anchors from the body of a good answer.

use url::Url;

use super::body::AnswerBody;
use crate::check::links::{Anchors, Document, Format, Link, Visitor};
use crate::check::task::{Page, PageLink, Want};

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
pub(super) fn unread(url: &Url, format: Option<Format>) -> Page {
    Page {
        base: url.clone(),
        format,
        anchors: None,
        links: Vec::new(),
        problem: None,
    }
}

/// Reads what is wanted from the body of the answer for this URL.
pub(super) fn read(url: &Url, want: Want, body: &AnswerBody) -> Page {
    let format = format(url, body.content_type.as_deref());
    let mut page = unread(url, format);
    let Some(format) = format else {
        return page;
    };
    let charset = body.content_type.as_deref().and_then(charset);
    let document = Document::new(format, body.start.bytes(), charset);
    if let Some(base) = document.base().and_then(|base| url.join(&base).ok()) {
        page.base = base;
    }
    let mut reader = Reader {
        links: want.links.then_some(&mut page.links),
        anchors: want.anchors.then(|| Anchors::new(format)),
        is_full: false,
    };
    let read = document.read(&mut reader);
    let is_full = reader.is_full;
    page.anchors = reader.anchors;
    page.problem = match read {
        _ if body.start.is_cut() => Some(format!(
            "only the first {} bytes were read",
            body.start.bytes().len()
        )),
        _ if is_full => Some(format!("only the first {} links were read", Page::LIMIT)),
        Err(error) => Some(error.to_string()),
        Ok(()) => None,
    };
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

struct Reader<'p> {
    links: Option<&'p mut Vec<PageLink>>,
    anchors: Option<Anchors>,
    is_full: bool,
}

impl Visitor for Reader<'_> {
    fn link(&mut self, link: Link<'_>) {
        let Some(links) = &mut self.links else {
            return;
        };
        if links.len() >= Page::LIMIT {
            self.is_full = true;
            return;
        }
        links.push(PageLink {
            url: link.url.into(),
            line: link.line,
            column: link.column,
            text: link.text.into(),
            kind: link.kind,
        });
    }

    fn wants_anchors(&self) -> bool {
        self.anchors.is_some()
    }

    fn anchor(&mut self, anchor: &str) {
        if let Some(anchors) = &mut self.anchors {
            anchors.insert(anchor);
        }
    }

    fn is_done(&self) -> bool {
        self.is_full && self.anchors.is_none()
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
