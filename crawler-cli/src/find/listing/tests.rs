//! Real pages of real servers, and the links that a listing must not follow.

use super::*;
use EntryKind::{Directory, File, Unknown};

fn read(body: &[u8], page: &str) -> Listing {
    let page = Url::parse(page).expect("a valid page URL");
    parse(body, &page, PageLimits::default()).expect("few links")
}

fn names(listing: &Listing, kind: EntryKind) -> Vec<String> {
    let mut names: Vec<String> = listing
        .entries
        .iter()
        .filter(|entry| entry.kind == kind)
        .map(|entry| String::from_utf8_lossy(&entry.name).into_owned())
        .collect();
    names.sort();
    names
}

/// The sample tree's directories that every server shows.
const DIRECTORIES: [&str; 4] = [
    "dir with space",
    "linkdir",
    "really-long-directory-name-that-exceeds-the-fifty-character-limit-of-nginx",
    "sub",
];

/// The sample tree's files that every server shows.
const FILES: [&str; 28] = [
    "50%.bin",
    "a b.txt",
    "apos'.txt",
    "b1000.bin",
    "b10000.bin",
    "b1023.bin",
    "b1024.bin",
    "b999.bin",
    "b9999.bin",
    "back\\slash.txt",
    "café.txt",
    "co:lon.txt",
    "empty.txt",
    "hash#tag.txt",
    "index-not.html",
    "linux-headers-6.1.0-28-common-rt_6.1.119-1_all.deb-very-long-name.tar.gz",
    "lt<gt>.txt",
    "m1.iso",
    "m1_5.iso",
    "m9_99.iso",
    "one.bin",
    "plus+.txt",
    "q?mark.txt",
    "quo\"te.txt",
    "r[1].txt",
    "semi;colon.txt",
    "tab\there.txt",
    "x&y.html",
];

fn expected(common: &[&str], extra: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = common.iter().chain(extra).map(|&s| s.to_owned()).collect();
    names.sort();
    names
}

macro_rules! page {
    ($name:literal) => {
        include_bytes!(concat!("fixtures/", $name, ".html")).as_slice()
    };
}

/// Which page, what was captured, its path, its shape, and which directories and files it shows beyond the common ones.
type Captured<'a> = (
    &'a str,
    &'a [u8],
    &'a str,
    Shape,
    &'a [&'a str],
    &'a [&'a [&'a str]],
);

#[test]
fn every_captured_listing_gives_the_whole_tree() {
    let hidden = [".hidden"];
    let big = ["g5.iso", "t1.img"];
    let dot = [".dotfile"];
    #[rustfmt::skip]
    let table: [Captured<'_>; 13] = [
        ("apache-plain", page!("apache-plain"), "/plain/", Shape::Apache, &hidden, &[&big, &dot]),
        ("apache-fancy", page!("apache-fancy"), "/fancy/", Shape::Apache, &hidden, &[&big, &dot]),
        ("apache-fancydeb", page!("apache-fancydeb"), "/fancydeb/", Shape::Apache, &hidden, &[&big, &dot]),
        ("apache-table", page!("apache-table"), "/table/", Shape::Apache, &hidden, &[&big, &dot]),
        ("apache-icons", page!("apache-icons"), "/icons2/", Shape::Apache, &hidden, &[&dot]),
        ("apache-styled", page!("apache-styled"), "/styled/", Shape::Apache, &hidden, &[&dot]),
        ("nginx-exact", page!("nginx-exact"), "/exact/", Shape::Nginx, &[], &[&big, &["broken"]]),
        ("nginx-utf8", page!("nginx-utf8"), "/utf8/", Shape::Nginx, &[], &[&big, &["broken"]]),
        ("python", page!("python"), "/", Shape::Python, &hidden, &[&big, &dot, &["broken"]]),
        ("lighttpd", page!("lighttpd"), "/", Shape::Lighttpd, &[], &[&big]),
        ("caddy", page!("caddy"), "/", Shape::Caddy, &hidden, &[&big, &dot, &["broken"]]),
        ("fancyindex", page!("fancyindex"), "/", Shape::Fancyindex, &[], &[&["broken"]]),
        ("apache-table below", page!("apache-table"), "/x%20y/table/", Shape::Apache, &hidden, &[&big, &dot]),
    ];
    for (name, body, path, shape, directories, files) in table {
        let listing = read(body, &format!("http://127.0.0.1:8080{path}"));
        assert_eq!(listing.shape, shape, "{name}");
        assert!(listing.ended, "{name}");
        assert!(listing.marks_directories, "{name}");
        assert_eq!(names(&listing, Unknown), [""; 0], "{name}");
        assert_eq!(
            names(&listing, Directory),
            expected(&DIRECTORIES, directories),
            "{name}"
        );
        let mut common = FILES.to_vec();
        common.push("~tilde");
        assert_eq!(
            names(&listing, File),
            expected(&common, &files.concat()),
            "{name}"
        );
    }
}

/// What the sample tree's names are in truth: size and time.
fn truth(name: &[u8]) -> (u64, i64) {
    const USUAL: i64 = 1_709_251_198; // 2024-02-29T23:59:58Z
    const OLD: i64 = 1_293_937_445; // 2011-01-02T03:04:05Z
    match name {
        b"b999.bin" => (999, USUAL),
        b"b1000.bin" => (1000, USUAL),
        b"b1023.bin" => (1023, USUAL),
        b"b1024.bin" => (1024, USUAL),
        b"b9999.bin" => (9999, USUAL),
        b"b10000.bin" => (10_000, USUAL),
        b"m1.iso" => (1 << 20, 1_751_371_200),
        b"m1_5.iso" => (3 << 19, USUAL),
        b"m9_99.iso" => (10_485_759, USUAL),
        b"g5.iso" => (5 << 30, USUAL),
        b"t1.img" => (1 << 40, USUAL),
        b"empty.txt" => (0, 0),
        b"one.bin" => (1, OLD),
        b"sub" | b"linkdir" => (0, OLD),
        b"broken" => (7, USUAL),
        b"tab\there.txt" => (2, USUAL),
        b"50%.bin" => (3, USUAL),
        _ => (3, USUAL),
    }
}

#[test]
fn every_captured_listing_gives_sizes_and_times() {
    // The page, whether its sizes are exact, the seconds that its times leave open, and whether they are in UTC.
    for (name, body, exact, span, utc) in [
        ("apache-fancy", page!("apache-fancy"), false, 60, false),
        (
            "apache-fancydeb",
            page!("apache-fancydeb"),
            false,
            60,
            false,
        ),
        ("apache-table", page!("apache-table"), false, 60, false),
        ("apache-icons", page!("apache-icons"), false, 60, false),
        ("apache-styled", page!("apache-styled"), false, 60, false),
        ("nginx-exact", page!("nginx-exact"), true, 60, false),
        ("nginx-utf8", page!("nginx-utf8"), true, 60, false),
        ("lighttpd", page!("lighttpd"), false, 1, false),
        ("fancyindex", page!("fancyindex"), true, 60, false),
        ("caddy", page!("caddy"), true, 1, true),
        ("mini_httpd", page!("mini_httpd"), true, 60, false),
    ] {
        let listing = read(body, "http://h/");
        let mut checked = 0;
        for entry in &listing.entries {
            let shown = String::from_utf8_lossy(&entry.name).into_owned();
            // Two are younger than the rest; and of a link, some show the time of the link itself.
            let shows_links = matches!(name, "mini_httpd" | "caddy");
            if shown.starts_with('.') || (shows_links && shown == "linkdir") {
                continue;
            }
            let (bytes, seconds) = truth(&entry.name);
            let floor = seconds - seconds % i64::from(span);
            let time = ListedTime {
                seconds: floor,
                span,
                utc,
            };
            assert_eq!(entry.modified, Some(time), "{name} {shown}");
            checked += 1;
            if entry.kind == Directory {
                assert_eq!(entry.size, None, "{name} {shown}");
            } else if name == "mini_httpd" && shown.starts_with("sub") {
                assert_eq!(entry.size, Some(SizeRange::exact(4096)));
            } else if name != "mini_httpd" || bytes > 3 {
                let size = entry.size.expect("a size");
                assert!(
                    size.lo <= bytes && bytes <= size.hi,
                    "{name} {shown} {size:?}"
                );
                assert!(
                    !exact || size.known() == Some(bytes),
                    "{name} {shown} {size:?}"
                );
            }
        }
        assert!(checked > 30, "{name}");
    }
    for body in [page!("apache-plain"), page!("python")] {
        let listing = read(body, "http://h/");
        let bare = |entry: &Entry| entry.size.is_none() && entry.modified.is_none();
        assert!(listing.entries.iter().all(bare));
    }
}

#[test]
fn a_server_that_does_not_mark_directories_leaves_the_type_open() {
    let listing = read(page!("mini_httpd"), "http://127.0.0.1/");
    assert_eq!(listing.shape, Shape::MiniHttpd);
    assert!(!listing.marks_directories);
    assert_eq!(names(&listing, Directory), [""; 0]);
    assert_eq!(names(&listing, File), [""; 0]);
    let unknown = names(&listing, Unknown);
    assert!(unknown.contains(&"sub".to_owned()) && unknown.contains(&"one.bin".to_owned()));
    assert!(!unknown.contains(&".".to_owned()) && !unknown.contains(&"..".to_owned()));
}

#[test]
fn apaches_absolute_parent_link_is_no_entry() {
    let listing = read(page!("apache-sub"), "http://127.0.0.1/fancydeb/sub/");
    assert_eq!(names(&listing, Directory), [""; 0]);
    assert_eq!(names(&listing, File), ["f1.txt"]);
}

#[test]
fn a_cut_page_shows_no_end_wherever_it_is_cut() {
    for body in [page!("apache-table"), page!("nginx-exact"), page!("python")] {
        let end =
            memchr::memmem::find(body, b"</html>").expect("these pages end") + "</html>".len();
        for cut in [end - 1, end - 8, end / 2, end / 3, 200] {
            assert!(!read(&body[..cut], "http://h/").ended, "{cut}");
        }
        assert!(read(&body[..end], "http://h/").ended);
    }
}

#[test]
fn only_direct_children_are_entries() {
    let page = "http://127.0.0.1:8080/pub/caf%C3%A9/";
    for (href, expected) in [
        ("a.txt", Some(("a.txt", "a.txt"))),
        ("sub/", Some(("sub", "sub"))),
        ("./co:lon.txt", Some(("co:lon.txt", "co:lon.txt"))),
        ("/pub/caf%c3%a9/x", Some(("x", "x"))),
        ("/pub/café/x", Some(("x", "x"))),
        ("http://127.0.0.1:8080/pub/caf%C3%A9/x", Some(("x", "x"))),
        ("//127.0.0.1:8080/pub/caf%C3%A9/x", Some(("x", "x"))),
        ("caf%c3%a9.txt", Some(("caf%C3%A9.txt", "café.txt"))),
        ("a b.txt", Some(("a%20b.txt", "a b.txt"))),
        ("50%.bin", Some(("50%25.bin", "50%.bin"))),
        ("r[1].txt", Some(("r%5B1%5D.txt", "r[1].txt"))),
        ("plus+.txt", Some(("plus+.txt", "plus+.txt"))),
        ("q%3Fmark", Some(("q%3Fmark", "q?mark"))),
        ("  padded.txt\n", Some(("padded.txt", "padded.txt"))),
        ("x/../y", Some(("y", "y"))),
        ("sub/?C=N;O=D", Some(("sub", "sub"))),
        ("sub/?sort=name&order=asc", Some(("sub", "sub"))),
        ("...", Some(("...", "..."))),
        // Not below, not direct, not here, or not a path at all.
        ("", None),
        (".", None),
        ("./", None),
        ("..", None),
        ("../", None),
        ("/", None),
        ("/pub/", None),
        ("/icons/", None),
        ("/pub/caf%C3%A9", None),
        ("a/b", None),
        ("a//", None),
        ("%2e%2e/", None),
        ("..%2F..%2Fetc/", None),
        ("a%2Fb", None),
        ("nul%00.txt", None),
        ("?C=N;O=D", None),
        ("?C=N&O=A", None),
        ("sub/?dir=x", None),
        ("a.txt#top", None),
        ("#top", None),
        ("co:lon.txt", None),
        ("mailto:root@example.org", None),
        ("javascript:void(0)", None),
        ("https://127.0.0.1:8080/pub/caf%C3%A9/x", None),
        ("http://127.0.0.1/pub/caf%C3%A9/x", None),
        ("https://other/f.iso", None),
        ("http://[", None),
    ] {
        let escaped = href.replace('&', "&amp;").replace('"', "&quot;");
        let body = format!("<html><a href=\"{escaped}\">x</a></html>");
        let listing = read(body.as_bytes(), page);
        let found = listing.entries.first().map(|entry| {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            (entry.segment.clone(), name)
        });
        let expected = expected.map(|(segment, name)| (segment.to_owned(), name.to_owned()));
        assert_eq!(found, expected, "{href}");
    }
}

#[test]
fn bytes_that_are_not_utf8_reach_the_server_again() {
    let listing = read(
        b"<a href=\"../\">..</a><a href=\"caf\xe9.txt\">x</a>",
        "http://h/",
    );
    assert_eq!(listing.entries[0].segment, "caf%E9.txt");
    assert_eq!(listing.entries[0].name, b"caf\xe9.txt");
    // A link to the parent says nothing about how the page marks directories.
    assert_eq!(listing.entries[0].kind, Unknown);
}

#[test]
fn two_links_to_one_name_are_one_entry() {
    let body = b"<a href='sub/'><img src='/icons/folder.gif'></a> <a href='sub/'>sub</a> \
        <a href='caf%c3%a9'>1</a><a href='caf%C3%A9'>2</a><a href='./caf%C3%A9?C=M'>3</a>";
    let listing = read(body, "http://h/");
    assert_eq!(names(&listing, Directory), ["sub"]);
    assert_eq!(names(&listing, File), ["café"]);
}

#[test]
fn a_base_element_moves_references_but_not_the_scope() {
    let body = b"<base href='/pub/'><base href='/elsewhere/'><a href='a.txt'>in</a><a href='/b.txt'>out</a>";
    assert_eq!(read(body, "http://h/pub/").entries.len(), 1);
    assert_eq!(read(body, "http://h/other/").entries.len(), 0);
}

#[test]
fn scripts_comments_and_other_attributes_hold_no_links() {
    let body = b"<script>var s = \"<a href='no.txt'>\";</script><style>a{content:\"<a href='no.txt'>\"}</style>\
        <!-- <a href='no.txt'> --><link href='no.css'><a name='x' data-href='no'>n</a>\
        <A HREF=yes.txt HREF=no.txt title=\"a>b\">y</A>";
    let listing = read(body, "http://h/");
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(listing.entries[0].segment, "yes.txt");
}

#[test]
fn limits_are_errors_or_counted() {
    let page = Url::parse("http://h/").expect("valid");
    let limits = PageLimits {
        links: 3,
        url_bytes: 20,
    };
    let three = b"<a href=a><a href=b><a href=c>";
    assert_eq!(parse(three, &page, limits).map(|l| l.entries.len()), Ok(3));
    let four = b"<a href=a><a href=b><a href=c><a href=d>";
    assert_eq!(
        parse(four, &page, limits).map(|_| ()),
        Err(PageError::TooManyLinks)
    );
    let long = b"<a href=a><a href=twenty-one-bytes-long><a href=12345678901234>";
    let listing = parse(long, &page, limits).expect("few links");
    assert_eq!((listing.entries.len(), listing.overlong), (1, 2));
}
