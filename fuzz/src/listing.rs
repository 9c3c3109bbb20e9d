//! Index pages of any bytes, read by the crawler.

use std::collections::HashSet;

use crawler_cli::find::listing::{EntryKind, Listing, PageLimits, parse};
use url::Url;

/// The first two bytes choose where the page was and the limits, the rest is the page.
pub fn listing(data: &[u8]) {
    let Some((&[page, limits], body)) = data.split_first_chunk() else {
        return;
    };
    let page = Url::parse(PAGES[usize::from(page) % PAGES.len()]).expect("a valid URL");
    let limits = match limits % 2 {
        0 => PageLimits::default(),
        _ => PageLimits {
            links: 8,
            url_bytes: 64,
        },
    };
    let Ok(listing) = parse(body, None, &page, limits) else {
        let links = body
            .windows(2)
            .filter(|tag| tag.eq_ignore_ascii_case(b"<a"));
        assert!(
            links.count() > limits.links,
            "too many, but they are not there"
        );
        return;
    };
    check(&listing, &page, limits);
    again(&listing, &page);
}

fn check(listing: &Listing, page: &Url, limits: PageLimits) {
    assert!(listing.entries.len() + listing.overlong <= limits.links);
    let mut names = HashSet::new();
    for entry in &listing.entries {
        let name = &entry.name;
        assert!(names.insert(name), "{name:?} twice");
        assert!(!name.is_empty() && !name.contains(&b'/') && !name.contains(&0));
        assert!(name != b"." && name != b"..");
        assert!(!(listing.marks_directories && entry.kind == EntryKind::Unknown));
        // As the crawler asks for it. It stays below the page, whoever normalises it on the way.
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

/// A page that lists the same entries plainly is read as the same.
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
    };
    let second = parse(body.as_bytes(), None, page, limits).expect("no limit");
    assert_eq!((second.overlong, second.ended), (0, false));
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

const PAGES: [&str; 4] = [
    "http://h/",
    "http://h:8080/a%20b/c/",
    "https://[::1]/%c3%a9/",
    "http://h/x/?C=N;O=D",
];
