//! All links of an HTML page, for a crawl that follows pages and not only directories.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher as _;

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use super::children::as_reference;
use super::{LeftOut, PageError, PageLimits};
use crate::markup::encoding::{Declaration, encoding, join};
use crate::markup::html::Raw;
use crate::markup::{self, links::Visitor};

/// The links of a page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Links {
    /// The http and https URLs without fragments, in the order of the page. Each URL occurs once.
    pub urls: Vec<Reference>,
    /// Whether the page asks robots not to follow its links: `<meta name="robots" content="nofollow">`, or `none`.
    pub is_nofollow: bool,
    /// Links that were left out because their URL is longer than [`PageLimits::url_bytes`].
    pub overlong: LeftOut,
}

/// One URL that a page refers to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// The URL, without a fragment.
    pub url: Url,
    /// Whether the URL is a part of the page only, such as an image, and not the target of a link.
    pub is_embedded: bool,
    /// Whether each link to the URL has `rel="nofollow"`.
    pub is_nofollow: bool,
}

/// Whether the name in a request target is typical of an HTML page: no extension, or one of the usual ones.
pub fn is_page_name(target: &str) -> bool {
    extension(target).is_none_or(is_page_extension)
}

/// Whether the name in a request target has one of the usual extensions of HTML pages.
pub fn has_page_extension(target: &str) -> bool {
    extension(target).is_some_and(is_page_extension)
}

fn extension(target: &str) -> Option<&str> {
    let path = target.split('?').next().unwrap_or(target);
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(name.rsplit_once('.')?.1)
}

fn is_page_extension(extension: &str) -> bool {
    let mut pages = PAGES.iter();
    pages.any(|page| page.eq_ignore_ascii_case(extension))
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
pub fn links(
    body: &[u8],
    content_type: Option<&[u8]>,
    page: &Url,
    limits: PageLimits,
) -> Result<Links, PageError> {
    let charset = super::charset(content_type);
    let encoding = encoding(body, charset, Declaration::Html).map(|(encoding, _)| encoding);
    let encoding = encoding.unwrap_or(UTF_8);
    // Without a known encoding, the server gets its bytes back.
    let text = match encoding == UTF_8 {
        true => Cow::Borrowed(body),
        false => Cow::Owned(encoding.decode(body).0.into_owned().into_bytes()),
    };
    let mut collector = LinkCollector {
        page,
        base: None,
        encoding,
        limits,
        count: 0,
        bytes: 0,
        seen: HashMap::new(),
        hashers: [RandomState::new(), RandomState::new()],
        links: Links::default(),
    };
    markup::links::read(&text, &mut collector);
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
    encoding: &'static Encoding,
    limits: PageLimits,
    count: usize,
    /// Bytes of all URLs so far.
    bytes: usize,
    /// Index of each URL in `links`. The key is a pair of hashes of the URL.
    seen: HashMap<[u64; 2], usize>,
    hashers: [RandomState; 2],
    links: Links,
}

impl<'d> Visitor<'d> for LinkCollector<'_> {
    fn reference(&mut self, reference: markup::links::Reference<'_>) {
        if reference.url.is_empty() || self.is_done() {
            return;
        }
        self.count += 1;
        if !self.is_done() {
            self.link(reference);
        }
    }

    fn base(&mut self, href: Raw<'d>) {
        // As in browsers, a base that could not be asked is none.
        let base = self.page.join(&as_reference(&href.decode())).ok();
        self.base = base.filter(|base| matches!(base.scheme(), "http" | "https"));
    }

    fn is_nofollow(&mut self) {
        self.links.is_nofollow = true;
    }

    fn is_done(&self) -> bool {
        self.count > self.limits.links || self.bytes > self.limits.all_urls_bytes
    }
}

impl LinkCollector<'_> {
    fn link(&mut self, reference: markup::links::Reference<'_>) {
        let base = self.base.as_ref().unwrap_or(self.page);
        let Ok(mut url) = join(base, &as_reference(reference.url), self.encoding) else {
            return;
        };
        if !matches!(url.scheme(), "http" | "https") {
            return;
        }
        url.set_fragment(None);
        if url.as_str().len() > self.limits.url_bytes {
            self.links.overlong.add(url.as_str());
            return;
        }
        let hashes = [&self.hashers[0], &self.hashers[1]].map(|state| state.hash_one(url.as_str()));
        match self.seen.entry(hashes) {
            // A URL that is linked anywhere on the page is not only embedded.
            Entry::Occupied(seen) => {
                let known = &mut self.links.urls[*seen.get()];
                known.is_embedded &= reference.is_embedded;
                known.is_nofollow &= reference.is_nofollow;
            }
            Entry::Vacant(new) => {
                self.bytes += url.as_str().len();
                new.insert(self.links.urls.len());
                self.links.urls.push(Reference {
                    url,
                    is_embedded: reference.is_embedded,
                    is_nofollow: reference.is_nofollow,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, page: &str) -> Vec<String> {
        let page = Url::parse(page).expect("a valid URL");
        let links = links(body.as_bytes(), None, &page, PageLimits::default()).expect("few links");
        let urls = links.urls.into_iter();
        urls.map(|reference| match reference.is_embedded {
            true => format!("+{}", reference.url),
            false => reference.url.into(),
        })
        .collect()
    }

    /// As browsers do: the query in the encoding of the page, the path in UTF-8.
    #[test]
    fn references_are_sent_in_the_encoding_of_the_page() {
        let page = Url::parse("http://h/").expect("a URL");
        let body = b"<a href=\"/s?q=\xf2\">1</a> <a href=\"/\xef\xf3\">2</a> <a href=http:x>3</a>";
        let read = |body: &[u8], content_type: Option<&[u8]>| {
            let links = links(body, content_type, &page, PageLimits::default());
            let urls = links.expect("few links").urls.into_iter();
            urls.map(|it| it.url.into()).collect::<Vec<String>>()
        };
        let expected = ["http://h/s?q=%F2", "http://h/%D0%BF%D1%83", "http://h/x"];
        let declared = [b"<meta charset=windows-1251>", &body[..]].concat();
        assert_eq!(read(&declared, None), expected);
        let content_type = &b"text/html; charset=windows-1251"[..];
        assert_eq!(read(body, Some(content_type)), expected);
        // Not known: the bytes of the page.
        assert_eq!(
            read(body, None)[..2],
            ["http://h/s?q=%F2", "http://h/%EF%F3"]
        );
    }

    /// Each URL once; with `+` if it is only embedded.
    #[test]
    fn all_references_of_a_page_are_found_once() {
        for (page, body, urls) in [
            (
                "http://h/p/index.html?q=1",
                "<html><head><link rel=stylesheet href=/s.css><link href=//cdn.example rel=preconnect>\
                 <script src=s.js></script></head><body><a href='../up/'>u</a><a href='#top'>t</a>\
                 <A HREF='x.html#a'>1</A><a href=x.html>2</a><img alt=x src='i.png?a=1&amp;b=2'>\
                 <a href='mailto:x@y'>m</a><a href='javascript:void(0)'>j</a><a href='https://other/x'>o</a>\
                 <iframe src=f.html></iframe><object data=d.pdf></object><a name=x data-href=no>n</a>\
                 <!-- <a href=no.html> --></body></html>",
                "+http://h/s.css +http://h/p/s.js http://h/up/ http://h/p/index.html?q=1 http://h/p/x.html \
                 +http://h/p/i.png?a=1&b=2 https://other/x http://h/p/f.html +http://h/p/d.pdf",
            ),
            // What is linked anywhere is not embedded.
            (
                "http://h/",
                "<link rel=next href=2><link rel='shortcut icon' href=i><link rel=stylesheet href=s>\
                 <link rel=alternate hreflang=de href=de><img src=both><a href=both>1</a><a href=i2>2</a><img src=i2>",
                "http://h/2 +http://h/i +http://h/s http://h/de http://h/both http://h/i2",
            ),
            (
                "http://h/p/",
                "<template><base href='/t/'><a href=t>t</a></template>\
                 <base href='/q/'><base href='/r/'><a href=x>x</a>",
                "http://h/q/x",
            ),
            (
                "http://h/p/",
                "<base href='data:,'><a href=x>x</a>",
                "http://h/p/x",
            ),
        ] {
            assert_eq!(read(body, page).join(" "), urls);
        }
    }

    #[test]
    fn what_robots_may_not_follow_is_known() {
        let of = |body: &str| {
            let page = Url::parse("http://h/").expect("a valid URL");
            let links = super::links(body.as_bytes(), None, &page, PageLimits::default());
            links.expect("few links")
        };
        let links = of(
            "<a href=a rel='noopener NoFollow'>a</a><a href=b rel=nofollower>b</a>\
             <a href=c rel=nofollow>c</a><a href=c>c</a><link rel=nofollow href=d>",
        );
        let marked = links.urls.iter().filter(|url| url.is_nofollow);
        assert_eq!(marked.map(|url| url.url.path()).collect::<Vec<_>>(), ["/a"]);
        for (meta, is_nofollow) in [
            ("", false),
            ("name=robots content=nofollow", true),
            ("content='noindex, NOFOLLOW' name=ROBOTS", true),
            ("name=robots content=none", true),
            ("name=robots content=noindex", false),
            ("name=description content=nofollow", false),
        ] {
            let links = of(&format!("<meta {meta}><a href=x>"));
            assert_eq!(links.is_nofollow, is_nofollow, "{meta}");
        }
    }

    #[test]
    fn limits_hold() {
        let page = Url::parse("http://h/").expect("a valid URL");
        let limits = PageLimits {
            links: 2,
            url_bytes: 12,
            ..PageLimits::default()
        };
        let two = links(b"<a href=x><a href=long-name>", None, &page, limits);
        let two = two.expect("two links");
        assert_eq!((two.urls.len(), two.overlong.len()), (1, 1));
        let three = links(b"<a href=x><a href=x><img src=x>", None, &page, limits);
        assert_eq!(three, Err(PageError::TooManyLinks));
        let limits = PageLimits {
            all_urls_bytes: 20,
            ..PageLimits::default()
        };
        assert!(links(b"<a href=1><a href=2><a href=1>", None, &page, limits).is_ok());
        let long = links(b"<a href=1><a href=2><a href=3>", None, &page, limits);
        assert_eq!(long, Err(PageError::TooLongLinks));
    }
}
