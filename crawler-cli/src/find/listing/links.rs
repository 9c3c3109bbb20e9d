//! All links of an HTML page, for a crawl that follows pages and not only directories. The tokenising is in `tokens`.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher as _;

use url::Url;

use super::children::as_reference;
use super::tokens::{self, Events};
use super::{PageError, PageLimits};

/// The links of a page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Links {
    /// The http and https URLs without fragments, in the order of the page. Each URL occurs once.
    pub urls: Vec<Reference>,
    /// Number of links that were left out because their URL is longer than [`PageLimits::url_bytes`].
    pub overlong: usize,
}

/// One URL that a page refers to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// The URL, without a fragment.
    pub url: Url,
    /// Whether the URL is a part of the page only, such as an image, and not the target of a link.
    pub is_embedded: bool,
}

/// Whether the name in a request target is typical of an HTML page: no extension, or one of the usual ones.
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

/// Extensions of HTML pages.
const PAGES: [&str; 14] = [
    "html", "htm", "xhtml", "xht", "shtml", "shtm", "php", "asp", "aspx", "jsp", "jspx", "cgi",
    "cfm", "do",
];

/// All URLs that `page` refers to: links and embedded parts.
///
/// # Errors
/// The page has more links than [`PageLimits::links`], or more bytes of URLs than [`PageLimits::all_urls_bytes`].
pub fn links(body: &[u8], page: &Url, limits: PageLimits) -> Result<Links, PageError> {
    let mut collector = LinkCollector::new(page, limits);
    if tokens::scan(body, &mut collector).is_err() {
        collector = LinkCollector::new(page, limits);
        tokens::read(body, &mut collector);
    }
    collector.end_tag();
    if collector.count > limits.links {
        return Err(PageError::TooManyLinks);
    }
    if collector.bytes > limits.all_urls_bytes {
        return Err(PageError::TooLongLinks);
    }
    Ok(collector.links)
}

struct LinkCollector<'a> {
    page: &'a Url,
    base: Option<Url>,
    limits: PageLimits,
    count: usize,
    tag: LinkTag,
    /// The source inside a `<noscript>` that is still open.
    noscript: Option<Vec<u8>>,
    /// Bytes of all URLs so far.
    bytes: usize,
    /// Index of each URL in `links`. The key is a pair of hashes of the URL.
    seen: HashMap<[u64; 2], usize>,
    hashers: [RandomState; 2],
    links: Links,
}

/// The start tag whose attributes are read.
#[derive(Default)]
struct LinkTag {
    /// The attribute that holds a URL in this element. Empty: none.
    url_attribute: &'static [u8],
    /// The references found so far, as they are written.
    references: Vec<Vec<u8>>,
    is_base: bool,
    is_embedded: bool,
    is_link: bool,
    /// `rel=preconnect` or `dns-prefetch`: names a host to connect to, and nothing to fetch.
    is_hint: bool,
    is_meta: bool,
    /// `<meta http-equiv=refresh>`
    is_refresh: bool,
}

impl LinkTag {
    fn new(name: &[u8]) -> Self {
        Self {
            url_attribute: match name {
                b"a" | b"area" | b"base" | b"link" => b"href",
                b"img" | b"script" | b"iframe" | b"frame" | b"source" | b"video" | b"audio"
                | b"embed" | b"track" | b"input" => b"src",
                b"object" => b"data",
                b"meta" => b"content",
                _ => b"",
            },
            is_base: name == b"base",
            is_embedded: !matches!(
                name,
                b"a" | b"area" | b"iframe" | b"frame" | b"meta" | b"link"
            ),
            is_link: name == b"link",
            is_meta: name == b"meta",
            ..Self::default()
        }
    }
}

impl<'a> LinkCollector<'a> {
    fn new(page: &'a Url, limits: PageLimits) -> Self {
        Self {
            page,
            base: None,
            limits,
            count: 0,
            tag: LinkTag::default(),
            noscript: None,
            bytes: 0,
            seen: HashMap::new(),
            hashers: [RandomState::new(), RandomState::new()],
            links: Links::default(),
        }
    }

    /// Adds the references of the tag, once all its attributes are known.
    fn end_tag(&mut self) {
        let tag = std::mem::take(&mut self.tag);
        if tag.is_base {
            if let Some(reference) = tag.references.first()
                && self.base.is_none()
            {
                self.base = self.page.join(&as_reference(reference)).ok();
            }
            return;
        }
        if tag.is_hint || (tag.is_meta && !tag.is_refresh) {
            return;
        }
        for reference in &tag.references {
            let reference = match tag.is_meta {
                true => refreshed(reference),
                false => Some(reference.as_slice()),
            };
            self.count += 1;
            if let Some(reference) = reference
                && !self.is_full()
            {
                self.link(reference, tag.is_embedded);
            }
        }
    }

    fn link(&mut self, reference: &[u8], is_embedded: bool) {
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
            return;
        }
        let hashes = [&self.hashers[0], &self.hashers[1]].map(|state| state.hash_one(url.as_str()));
        match self.seen.entry(hashes) {
            // A URL that is linked anywhere on the page is not only embedded.
            Entry::Occupied(seen) => self.links.urls[*seen.get()].is_embedded &= is_embedded,
            Entry::Vacant(new) => {
                self.bytes += url.as_str().len();
                new.insert(self.links.urls.len());
                self.links.urls.push(Reference { url, is_embedded });
            }
        }
    }
}

impl Events for LinkCollector<'_> {
    fn open(&mut self, name: &[u8]) {
        self.end_tag();
        self.tag = LinkTag::new(name);
        if name == b"noscript" {
            self.noscript = Some(Vec::new());
        }
    }

    fn attribute(&mut self, name: &[u8], value: &[u8]) {
        let tag = &mut self.tag;
        match name {
            _ if name == tag.url_attribute => tag.references.push(value.to_vec()),
            b"srcset" if tag.url_attribute == b"src" => tag.references.extend(candidates(value)),
            b"poster" if tag.url_attribute == b"src" => tag.references.push(value.to_vec()),
            b"http-equiv" => tag.is_refresh = value.eq_ignore_ascii_case(b"refresh"),
            b"rel" => {
                let words = value.split(u8::is_ascii_whitespace);
                let is = |wanted: &[&str]| {
                    let mut words = words.clone();
                    words.any(|word| {
                        wanted
                            .iter()
                            .any(|wanted| word.eq_ignore_ascii_case(wanted.as_bytes()))
                    })
                };
                tag.is_hint |= is(&["preconnect", "dns-prefetch"]);
                tag.is_embedded |= tag.is_link && is(&EMBEDDED);
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &[u8]) {
        if name == b"noscript"
            && let Some(source) = self.noscript.take()
        {
            self.end_tag();
            tokens::read(&source, self);
            self.end_tag();
            self.noscript = None;
        }
    }

    fn wants_text(&self) -> bool {
        self.noscript.is_some()
    }

    fn text(&mut self, text: &[u8]) {
        if let Some(source) = &mut self.noscript {
            source.extend_from_slice(text);
        }
    }

    fn is_full(&self) -> bool {
        self.count > self.limits.links || self.bytes > self.limits.all_urls_bytes
    }
}

/// Relations of `<link rel>` that name a part of the page.
const EMBEDDED: [&str; 9] = [
    "stylesheet",
    "icon",
    "apple-touch-icon",
    "mask-icon",
    "manifest",
    "preload",
    "modulepreload",
    "prefetch",
    "prerender",
];

/// The URLs of the images that `srcset` offers (HTML §4.8.4.2.1). The descriptor after each URL is skipped.
fn candidates(value: &[u8]) -> Vec<Vec<u8>> {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    let mut found = Vec::new();
    let mut rest = value;
    while let Some(start) = rest.iter().position(|byte| !is_between(byte)) {
        rest = &rest[start..];
        let end = rest.iter().position(u8::is_ascii_whitespace);
        let (url, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let bare = url.strip_suffix(b",");
        found.push(bare.unwrap_or(url).to_vec());
        rest = match bare {
            Some(_) => behind,
            None => {
                &behind[behind
                    .iter()
                    .position(|&byte| byte == b',')
                    .unwrap_or(behind.len())..]
            }
        };
    }
    found
}

/// The URL in the `content` of `http-equiv=refresh`: `5; url=next`.
fn refreshed(content: &[u8]) -> Option<&[u8]> {
    let (_, rest) = content.split_at(content.iter().position(|byte| b";,".contains(byte))? + 1);
    let rest = rest.trim_ascii();
    let rest = match rest.get(..3) {
        Some(word) if word.eq_ignore_ascii_case(b"url") => {
            let rest = rest[3..].trim_ascii_start();
            rest.strip_prefix(b"=")?.trim_ascii()
        }
        _ => rest,
    };
    let quoted = [b'"', b'\''].into_iter().find_map(|quote| {
        let rest = rest.strip_prefix(&[quote])?;
        rest.split(|&byte| byte == quote).next()
    });
    Some(quoted.unwrap_or(rest)).filter(|url| !url.is_empty())
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
    fn all_references_of_a_page_are_found_once() {
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
    fn urls_that_are_linked_anywhere_are_not_embedded() {
        let body = "<link rel=next href=2><link rel='shortcut icon' href=i><link rel=stylesheet href=s>\
            <link rel=alternate hreflang=de href=de><img src=both><a href=both>1</a><a href=i2>2</a><img src=i2>";
        assert_eq!(
            read(body, "http://h/"),
            [
                "http://h/2",
                "+http://h/i",
                "+http://h/s",
                "http://h/de",
                "http://h/both",
                "http://h/i2"
            ]
        );
    }

    #[test]
    fn images_refreshes_and_noscript_count() {
        let body = "<meta http-equiv=Refresh content='3; URL=\"next.html\"'><meta name=description content='1; url=no'>\
            <img srcset='a.png 1x, b.png 2x,c.png' src=a.png><video poster=p.jpg></video>\
            <picture><source srcset='x,y.webp 100w'></picture>\
            <noscript><iframe src=\"toc.html\"></iframe><img src=pixel.gif></noscript><a href=after>1</a>";
        assert_eq!(
            read(body, "http://h/"),
            [
                "http://h/next.html",
                "+http://h/a.png",
                "+http://h/b.png",
                "+http://h/c.png",
                "+http://h/p.jpg",
                "+http://h/x,y.webp",
                "http://h/toc.html",
                "+http://h/pixel.gif",
                "http://h/after",
            ]
        );
        for (content, url) in [
            ("0;url=a", Some("a")),
            ("0, 'b c' d", Some("b c")),
            ("5;a", Some("a")),
            ("5", None),
            ("5;", None),
            ("5; url a", None),
        ] {
            assert_eq!(
                refreshed(content.as_bytes()),
                url.map(str::as_bytes),
                "{content}"
            );
        }
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
            ..PageLimits::default()
        };
        let two = links(b"<a href=x><a href=long-name>", &page, limits);
        let two = two.expect("two links");
        assert_eq!((two.urls.len(), two.overlong), (1, 1));
        let three = links(b"<a href=x><a href=x><img src=x>", &page, limits);
        assert_eq!(three, Err(PageError::TooManyLinks));
        let limits = PageLimits {
            all_urls_bytes: 20,
            ..PageLimits::default()
        };
        assert!(links(b"<a href=1><a href=2><a href=1>", &page, limits).is_ok());
        let long = links(b"<a href=1><a href=2><a href=3>", &page, limits);
        assert_eq!(long, Err(PageError::TooLongLinks));
    }
}
