//! The file name for a URL. The mapping is fixed, so that each run finds the files of earlier runs. No I/O.
//!
//! The segments of the URL, decoded once, become directories and the file name. Whatever a server sends, each name is
//! one component of a path and never leads to a parent directory; see [`file_names`](crawl::file_names).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use url::Url;

use super::super::policy::Follow;
use crawl::file_names::{NOTE, PARTIAL, safe};
use listing::path;

/// The path of a file below the directory of all downloads: safe file names. Not empty; the last one is the name of the
/// file.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Name(Vec<Vec<u8>>);

/// The directory of the start, for a search with a single start: files below it are named relative to it. Host, port and
/// canonical path, with a final `/`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) struct Base(String);

impl Base {
    /// The base for a start: the directory of a page, or the listing itself.
    pub(in super::super) fn of(start: &Url, follow: Follow) -> Self {
        let (mut place, _) = place(start.as_str());
        match follow {
            Follow::Pages => place.truncate(place.rfind('/').map_or(0, |at| at + 1)),
            Follow::Listings if place.ends_with('/') => {}
            Follow::Listings => place.push('/'),
        }
        Self(place)
    }

    /// A place relative to the base, if it is below the base. If the start itself is a file, its name.
    fn rest<'p>(&self, place: &'p str) -> Option<&'p str> {
        match self.0.strip_suffix('/') {
            Some(start) if start == place => place.rsplit('/').next(),
            _ => place.strip_prefix(&self.0),
        }
    }
}

/// Host, port and canonical path of a URL, and its query.
fn place(url: &str) -> (String, Option<&str>) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    match rest.split_once('?') {
        Some((path, query)) => (path::canonical(path), Some(query)),
        None => (path::canonical(rest), None),
    }
}

impl Name {
    /// The name for a URL. Outside the base, it consists of the host and the whole path.
    pub(super) fn of(url: &str, base: Option<&Base>) -> Self {
        let (place, query) = place(url);
        let rest = base.and_then(|base| base.rest(&place)).unwrap_or(&place);
        let mut segments: Vec<_> = rest.split('/').map(path::decode).collect();
        if let (Some(query), Some(last)) = (query, segments.last_mut()) {
            last.push(b'?');
            last.extend_from_slice(query.as_bytes());
        }
        Self(segments.iter().map(|segment| safe(segment)).collect())
    }

    /// The directories, outermost first. For the URL of a directory, with its final `/`: the directory itself.
    pub(super) fn directories(&self) -> &[Vec<u8>] {
        self.0.split_last().map_or(&[], |(_, rest)| rest)
    }

    /// The name of the file in the innermost directory.
    pub(super) fn file(&self) -> &[u8] {
        self.0.last().map_or(b"%", Vec::as_slice)
    }

    /// The name of the partial file, which holds the bytes until the download is complete.
    pub(super) fn partial(&self) -> Vec<u8> {
        [b".", self.file(), PARTIAL].concat()
    }

    /// The name of the note that describes the partial file.
    pub(super) fn note(&self) -> Vec<u8> {
        [b".", self.file(), NOTE].concat()
    }

    /// The path relative to the directory of all downloads.
    pub(super) fn path(&self) -> PathBuf {
        let segments = self.0.iter();
        segments.map(|segment| OsStr::from_bytes(segment)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crawl::file_names::MOST_BYTES;

    fn name(url: &str, start: &str) -> String {
        name_of(url, start, Follow::Listings)
    }

    fn name_of(url: &str, start: &str, follow: Follow) -> String {
        let start = Url::parse(start).expect("a URL");
        let path = Name::of(url, Some(&Base::of(&start, follow))).path();
        path.to_string_lossy().into_owned()
    }

    #[test]
    fn files_are_named_relative_to_their_start() {
        for (url, start, file) in [
            ("http://h/pub/a/b%20c/x.iso", "http://h/pub", "a/b c/x.iso"),
            ("http://h/pub/a/b%20c/x.iso", "http://h/pub/a/b c/", "x.iso"),
            ("http://h/pub/x.iso", "http://h/pub/x.iso", "x.iso"),
            ("http://h/%7Ea/x.iso", "http://h/~a/", "x.iso"),
            ("https://h/pub/x.iso", "http://h/pub/", "x.iso"),
            ("http://h/a%2520b", ROOT, "a%20b"),
            ("http://h/caf%C3%A9", ROOT, "caf\u{e9}"),
            ("http://h/a?b=/../c", ROOT, "a?b=%2F..%2Fc"),
            ("http://h/", ROOT, "%"),
            ("http://h/a/?p=1", ROOT, "a/?p=1"),
            ("http://h/a/?p=1", "http://h/a/", "?p=1"),
            // Not below the start.
            ("http://h/docs/x.iso", "http://h/pub/", "h/docs/x.iso"),
            ("http://h/public/x.iso", "http://h/pub", "h/public/x.iso"),
            ("http://h:81/pub/x.iso", "http://h/pub/", "h:81/pub/x.iso"),
            // Nothing leads up or elsewhere.
            ("http://h/%2e%2e/%2E%2E/x", ROOT, "%2E%2E/%2E%2E/x"),
            ("http://h/../../x", ROOT, "%2E%2E/%2E%2E/x"),
            ("http://h/.", ROOT, "%2E"),
            ("http://h/a%2F..%2F..%2Fetc", ROOT, "a%2F..%2F..%2Fetc"),
            ("http://h/%2Fetc%2Fpasswd", ROOT, "%2Fetc%2Fpasswd"),
            ("http://h/a%5C..%5Cb", ROOT, "a%5C..%5Cb"),
            ("http://h/a%00b", ROOT, "a%00b"),
            (
                "http://h/a%1B%5B2J%0D%7F%C2%9B",
                ROOT,
                "a%1B[2J%0D%7F%C2%9B",
            ),
            ("http://h/a//b", ROOT, "a/%/b"),
        ] {
            assert_eq!(name(url, start), file, "{url}");
        }
        let page = |url| name_of(url, "http://h/pub/index.html", Follow::Pages);
        assert_eq!(page("http://h/pub/a/b.html"), "a/b.html");
        assert_eq!(page("http://h/pub/index.html/b"), "index.html/b");
        assert_eq!(page("http://h/index.html"), "h/index.html");
        let whole = Name::of("http://h:81/pub/a/x.iso", None);
        assert_eq!(whole.path(), PathBuf::from("h:81/pub/a/x.iso"));
        let raw = Name::of("http://h/%FFx", None);
        assert_eq!(raw.file(), b"\xFFx");
    }

    #[test]
    fn long_and_reserved_names_get_a_hash() {
        let long = |end: &str| {
            name(
                &format!("http://h/{}{end}.tar.gz", "\u{e9}".repeat(200)),
                ROOT,
            )
        };
        assert!(long("a").len() <= MOST_BYTES);
        assert!(long("a").ends_with(".gz"));
        assert_ne!(long("a"), long("b"));
        assert_eq!(long("a"), long("a"));
        let fits = "x".repeat(MOST_BYTES);
        assert_eq!(name(&format!("http://h/{fits}"), ROOT), fits);
        for ours in [".x.courser-part", ".x.Courser-NOTE"] {
            let other = name(&format!("http://h/{ours}"), ROOT);
            assert!(other.contains('~') && !other.ends_with(ours), "{other}");
        }
    }

    const ROOT: &str = "http://h/";

    proptest! {
        #[test]
        fn every_name_is_one_component(segment: Vec<u8>) {
            let name = safe(&segment);
            prop_assert!(!name.is_empty() && name.len() <= MOST_BYTES);
            prop_assert!(name != b"." && name != b"..");
            prop_assert!(!name.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0..=31 | 127)));
        }
    }
}
