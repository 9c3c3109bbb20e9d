//! All links of a web page, for a crawl that follows pages and not only directories.

use std::collections::HashSet;

use url::Url;

use super::children::as_reference;
use super::tokens::{self, Events};
use super::{PageError, PageLimits};

/// Where a page leads to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Links {
    /// The URLs, http and https, without fragments, each once, in the order of the page.
    pub urls: Vec<Reference>,
    /// Links that were left out because their URL is longer than the limit.
    pub overlong: usize,
}

/// What a page refers to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// Where.
    pub url: Url,
    /// Whether it is a part of the page, such as an image; and not a place to go to.
    pub is_embedded: bool,
}

/// Whether a request target, by its name alone, is most likely that of a page.
pub fn is_page_name(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or(target);
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) => PAGES
            .iter()
            .any(|page| page.eq_ignore_ascii_case(extension)),
        None => true,
    }
}

/// Extensions of pages.
const PAGES: [&str; 14] = [
    "html", "htm", "xhtml", "xht", "shtml", "shtm", "php", "asp", "aspx", "jsp", "jspx", "cgi",
    "cfm", "do",
];

/// All that `page` refers to: links, and what it embeds.
///
/// # Errors
/// The page has too many links.
pub fn links(body: &[u8], page: &Url, limits: PageLimits) -> Result<Links, PageError> {
    let mut scan = Scan::new(page, limits);
    if tokens::scan(body, &mut scan).is_err() {
        scan = Scan::new(page, limits);
        tokens::read(body, &mut scan);
    }
    scan.end_tag();
    if scan.is_full() {
        return Err(PageError::TooManyLinks);
    }
    Ok(scan.links)
}

struct Scan<'a> {
    page: &'a Url,
    base: Option<Url>,
    limits: PageLimits,
    count: usize,
    /// The attribute of this tag that refers to something, and what it says.
    wanted: &'static [u8],
    reference: Vec<u8>,
    is_base: bool,
    /// Says to whom to connect, and not what to get.
    is_hint: bool,
    is_embedded: bool,
    seen: HashSet<Url>,
    links: Links,
}

impl<'a> Scan<'a> {
    fn new(page: &'a Url, limits: PageLimits) -> Self {
        Self {
            page,
            base: None,
            limits,
            count: 0,
            wanted: b"",
            reference: Vec::new(),
            is_base: false,
            is_hint: false,
            is_embedded: false,
            seen: HashSet::new(),
            links: Links::default(),
        }
    }

    /// All attributes of the tag are known.
    fn end_tag(&mut self) {
        if self.reference.is_empty() {
            return;
        }
        let reference = std::mem::take(&mut self.reference);
        if self.is_base {
            if self.base.is_none() {
                self.base = self.page.join(&as_reference(&reference)).ok();
            }
            return;
        }
        if !self.is_hint {
            self.count += 1;
            if !self.is_full() {
                self.link(&reference);
            }
        }
    }

    fn link(&mut self, reference: &[u8]) {
        let base = self.base.as_ref().unwrap_or(self.page);
        let Ok(mut url) = base.join(&as_reference(reference)) else {
            return;
        };
        if !matches!(url.scheme(), "http" | "https") {
            return;
        }
        url.set_fragment(None);
        if url.as_str().len() > self.limits.url_bytes {
            self.links.overlong += 1;
        } else if self.seen.insert(url.clone()) {
            self.links.urls.push(Reference {
                url,
                is_embedded: self.is_embedded,
            });
        }
    }
}

impl Events for Scan<'_> {
    fn open(&mut self, name: &[u8]) {
        self.end_tag();
        self.is_base = name == b"base";
        self.is_hint = false;
        self.is_embedded = !matches!(name, b"a" | b"area" | b"iframe" | b"frame");
        self.wanted = match name {
            b"a" | b"area" | b"base" | b"link" => b"href",
            b"img" | b"script" | b"iframe" | b"frame" | b"source" | b"video" | b"audio"
            | b"embed" | b"track" => b"src",
            b"object" => b"data",
            _ => b"",
        };
    }

    fn attribute(&mut self, name: &[u8], value: &[u8]) {
        if name == self.wanted && self.reference.is_empty() {
            self.reference.extend_from_slice(value);
        } else if name == b"rel" {
            let mut words = value.split(u8::is_ascii_whitespace);
            self.is_hint |= words.any(|word| {
                word.eq_ignore_ascii_case(b"preconnect")
                    || word.eq_ignore_ascii_case(b"dns-prefetch")
            });
        }
    }

    fn close(&mut self, _: &[u8]) {}

    fn wants_text(&self) -> bool {
        false
    }

    fn text(&mut self, _: &[u8]) {}

    fn is_full(&self) -> bool {
        self.count > self.limits.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, page: &str) -> Vec<String> {
        let page = Url::parse(page).expect("a valid URL");
        let links = links(body.as_bytes(), &page, PageLimits::default()).expect("few links");
        let urls = links.urls.into_iter();
        urls.map(|reference| match reference.is_embedded {
            true => format!("+{}", reference.url),
            false => reference.url.into(),
        })
        .collect()
    }

    #[test]
    fn all_that_a_page_refers_to_is_found_once() {
        let body = "<html><head><link rel=stylesheet href=/s.css><link href=//cdn.example rel=preconnect>\
            <script src=s.js></script></head><body><a href='../up/'>u</a><a href='#top'>t</a>\
            <A HREF='x.html#a'>1</A><a href=x.html>2</a><img alt=x src='i.png?a=1&amp;b=2'>\
            <a href='mailto:x@y'>m</a><a href='javascript:void(0)'>j</a><a href='https://other/x'>o</a>\
            <iframe src=f.html></iframe><object data=d.pdf></object><a name=x data-href=no>n</a>\
            <!-- <a href=no.html> --></body></html>";
        assert_eq!(
            read(body, "http://h/p/index.html?q=1"),
            [
                "+http://h/s.css",
                "+http://h/p/s.js",
                "http://h/up/",
                "http://h/p/index.html?q=1",
                "http://h/p/x.html",
                "+http://h/p/i.png?a=1&b=2",
                "https://other/x",
                "http://h/p/f.html",
                "+http://h/p/d.pdf",
            ]
        );
    }

    #[test]
    fn the_base_is_that_of_the_page() {
        let body = "<base href='/q/'><base href='/r/'><a href=x>x</a>";
        assert_eq!(read(body, "http://h/p/"), ["http://h/q/x"]);
    }

    #[test]
    fn limits_hold() {
        let page = Url::parse("http://h/").expect("a valid URL");
        let limits = PageLimits {
            links: 2,
            url_bytes: 12,
        };
        let two = links(b"<a href=x><a href=long-name>", &page, limits);
        let two = two.expect("two links");
        assert_eq!((two.urls.len(), two.overlong), (1, 1));
        let three = links(b"<a href=x><a href=x><img src=x>", &page, limits);
        assert_eq!(three, Err(PageError::TooManyLinks));
    }
}
