//! The parsers of the crawler with any bytes: listings of any content type, and web pages.

use std::collections::HashSet;

use listing::{EntryKind, Listing, PageError, PageLimits, links, parse};
use url::Url;

/// The first two bytes choose the URL of the page, the limits and the content type. The rest is the page.
pub fn listing(data: &[u8]) {
    let Some((&[page, choice], body)) = data.split_first_chunk() else {
        return;
    };
    let page = Url::parse(PAGES[usize::from(page) % PAGES.len()]).expect("a valid URL");
    let limits = match choice % 2 {
        0 => PageLimits::default(),
        _ => PageLimits {
            links: 8,
            url_bytes: 64,
            ..PageLimits::default()
        },
    };
    let content_type = CONTENT_TYPES[usize::from(choice / 2) % CONTENT_TYPES.len()];
    as_web_page(body, &page, limits);
    match parse(body, content_type, &page, limits) {
        Ok(listing) => {
            check(&listing, &page, limits);
            again(&listing, &page);
        }
        Err(PageError::TooManyLinks) => {
            let begin = body.iter().filter(|byte| b"<{".contains(byte));
            assert!(
                begin.count() > limits.links,
                "too many, but they are not there"
            );
        }
        Err(PageError::NotAListing | PageError::TooLongLinks) => {}
    }
}

fn as_web_page(body: &[u8], page: &Url, limits: PageLimits) {
    if let Ok(links) = links(body, None, page, limits) {
        assert!(links.urls.len() + links.overlong.len() <= limits.links);
        for url in links.urls.iter().map(|reference| &reference.url) {
            assert!(matches!(url.scheme(), "http" | "https") && url.fragment().is_none());
            assert!(url.as_str().len() <= limits.url_bytes);
        }
    }
}

fn check(listing: &Listing, page: &Url, limits: PageLimits) {
    assert!(
        listing.entries.len() + listing.overlong.len() + listing.nameless.len() <= limits.links
    );
    if let Some(next) = &listing.next {
        assert!(next.starts_with('/') && next.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    if let Some(directory) = &listing.directory {
        assert!(directory.starts_with(page.path()) && directory.ends_with('/'));
    }
    let mut names = HashSet::new();
    for entry in &listing.entries {
        let name = &entry.name;
        assert!(names.insert(name), "{name:?} twice");
        assert!(!name.is_empty() && !name.contains(&b'/') && !name.contains(&0));
        assert!(name != b"." && name != b"..");
        assert!(!(listing.marks_directories && entry.kind == EntryKind::Unknown));
        assert!(entry.size.is_none_or(|size| size.lo <= size.hi));
        assert!(!(entry.kind == EntryKind::Directory && entry.size.is_some()));
        assert!(entry.modified.is_none_or(|time| time.span > 0));
        // The segment is sent as it is. It stays below the page, even if a client or server normalises the path.
        assert!(entry.segment.bytes().all(|byte| byte.is_ascii_graphic()));
        let mut url = page.clone();
        url.set_query(None);
        url.set_path(&format!("{}{}", page.path(), entry.segment));
        let below = url.path().strip_prefix(page.path());
        assert_eq!(below, Some(entry.segment.as_str()), "it climbs");
        let decoded: Vec<u8> = percent_encoding::percent_decode_str(&entry.segment).collect();
        assert_eq!(&decoded, name);
        assert_eq!((url.query(), url.fragment()), (None, None));
    }
}

/// Checks that a plain page with the same entries is read as the same entries.
fn again(listing: &Listing, page: &Url) {
    let mut body = String::new();
    for entry in &listing.entries {
        let slash = match entry.kind {
            EntryKind::Directory => "/",
            EntryKind::File | EntryKind::Unknown => "",
        };
        let href = format!("./{}{slash}", entry.segment).replace('&', "&amp;");
        body.push_str(&format!("<a href=\"{href}\">x</a>\n"));
    }
    let limits = PageLimits {
        links: usize::MAX,
        url_bytes: usize::MAX,
        ..PageLimits::default()
    };
    let second = parse(body.as_bytes(), Some(b"text/html"), page, limits).expect("no limit");
    assert_eq!((second.overlong.len(), second.ended), (0, false));
    assert_eq!(second.entries.len(), listing.entries.len());
    for (first, second) in listing.entries.iter().zip(&second.entries) {
        assert_eq!(
            (&first.name, &first.segment),
            (&second.name, &second.segment)
        );
        assert_eq!(
            first.kind == EntryKind::Directory,
            second.kind == EntryKind::Directory
        );
    }
}

const CONTENT_TYPES: [Option<&[u8]>; 4] = [
    None,
    Some(b"text/html"),
    Some(b"application/json"),
    Some(b"text/xml"),
];

const PAGES: [&str; 4] = [
    "http://h/",
    "http://h:8080/a%20b/c/",
    "https://[::1]/%c3%a9/",
    "http://h/x/?C=N;O=D",
];
