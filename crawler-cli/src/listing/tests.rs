//! Captured pages of real servers, constructed pages of all formats, and links that are not entries.

use super::*;
use EntryKind::{Directory, File, Unknown};

fn read(body: &[u8], page: &str) -> Listing {
    let page = Url::parse(page).expect("a valid page URL");
    parse(body, None, &page, PageLimits::default()).expect("few links")
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

/// The directories of the sample tree that every server shows.
const DIRECTORIES: [&str; 4] = [
    "dir with space",
    "linkdir",
    "really-long-directory-name-that-exceeds-the-fifty-character-limit-of-nginx",
    "sub",
];

/// The files of the sample tree that every server shows.
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

/// Name of the page, captured body, path, shape, and the directories and files that are shown besides the common ones.
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

/// The real size and time of a name in the sample tree.
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
    // Name, body, whether sizes are exact, span of the times in seconds, and whether the times are in UTC.
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
            // Dot files are younger than the rest. Some servers show the time of a symbolic link itself.
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
fn a_server_that_does_not_mark_directories_leaves_the_type_unknown() {
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
        // Not below the page, not direct children, on another host, or not a path.
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
fn bytes_that_are_not_utf8_are_sent_back_unchanged() {
    let listing = read(
        b"<a href=\"../\">..</a><a href=\"caf\xe9.txt\">x</a>",
        "http://h/",
    );
    assert_eq!(listing.entries[0].segment, "caf%E9.txt");
    assert_eq!(listing.entries[0].name, b"caf\xe9.txt");
    // A link to the parent does not prove that the page marks directories.
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
        ..PageLimits::default()
    };
    let three = b"<a href=a><a href=b><a href=c>";
    assert_eq!(
        parse(three, None, &page, limits).map(|l| l.entries.len()),
        Ok(3)
    );
    let four = b"<a href=a><a href=b><a href=c><a href=d>";
    assert_eq!(
        parse(four, None, &page, limits).map(|_| ()),
        Err(PageError::TooManyLinks)
    );
    let long = b"<a href=a><a href=twenty-one-bytes-long><a href=12345678901234>";
    let listing = parse(long, None, &page, limits).expect("few links");
    assert_eq!((listing.entries.len(), listing.overlong.len()), (1, 2));
    assert!(leaves_out(&listing));
}

/// Whether the page has names that are not among its entries.
fn leaves_out(listing: &Listing) -> bool {
    let all = [
        &listing.overlong,
        &listing.nameless,
        &listing.left_out,
        &listing.outside,
    ];
    all.iter().any(|names| !names.is_empty())
}

/// An entry: name, kind, range of the size, and time (seconds, span, UTC).
type Line = (
    String,
    EntryKind,
    Option<(u64, u64)>,
    Option<(i64, u32, bool)>,
);

fn entries(listing: &Listing) -> Vec<Line> {
    let line = |entry: &Entry| {
        (
            String::from_utf8_lossy(&entry.name).into_owned(),
            entry.kind,
            entry.size.map(|size| (size.lo, size.hi)),
            entry
                .modified
                .map(|time| (time.seconds, time.span, time.utc)),
        )
    };
    listing.entries.iter().map(line).collect()
}

fn same(bytes: u64) -> Option<(u64, u64)> {
    Some((bytes, bytes))
}

/// 2024-02-29T23:59:58Z, and the start of this minute.
const LEAP: i64 = 1_709_251_198;
const LEAP_MINUTE: i64 = 1_709_251_140;

#[test]
fn structured_captures_give_the_whole_tree() {
    for (name, body) in [
        (
            "json",
            include_bytes!("fixtures/nginx-autoindex.json").as_slice(),
        ),
        (
            "xml",
            include_bytes!("fixtures/nginx-autoindex.xml").as_slice(),
        ),
    ] {
        let listing = read(body, "http://h/");
        assert_eq!(
            (listing.shape, listing.ended),
            (Shape::Nginx, true),
            "{name}"
        );
        assert_eq!(
            names(&listing, Directory),
            expected(&DIRECTORIES, &[]),
            "{name}"
        );
        let extra = ["g5.iso", "t1.img", "broken", "~tilde"];
        assert_eq!(names(&listing, File), expected(&FILES, &extra), "{name}");
        for entry in &listing.entries {
            let (bytes, seconds) = truth(&entry.name);
            let time = ListedTime {
                seconds,
                span: 1,
                utc: true,
            };
            assert_eq!(entry.modified, Some(time), "{name} {:?}", entry.name);
            let is_file = entry.kind == File && entry.name != b"broken";
            let size = is_file.then(|| SizeRange::exact(bytes));
            assert_eq!(entry.size, size, "{name} {:?}", entry.name);
        }
    }
}

#[test]
fn the_content_type_takes_precedence_over_the_body() {
    let page = Url::parse("http://h/").expect("valid");
    let limits = PageLimits::default();
    let json = br#"[{"name":"a","type":"file","size":1}]"#;
    for (content_type, shape) in [
        (None, Ok(Shape::Nginx)),
        (
            Some(&b"application/json; charset=utf-8"[..]),
            Ok(Shape::Nginx),
        ),
        (Some(b"text/html"), Ok(Shape::Generic)),
        (Some(b"Text/XML"), Err(PageError::NotAListing)),
    ] {
        let shape_read = parse(json, content_type, &page, limits).map(|listing| listing.shape);
        assert_eq!(shape_read, shape, "{content_type:?}");
    }
    for (body, content_type) in [
        (&br#"{"name":"a"}"#[..], "application/json"),
        (br#"["a","b"]"#, "application/json"),
        (br#"[{"id":1}]"#, "application/json"),
        (br#"[{"name":"a"}]"#, "application/json"),
        (b"<rss><channel/></rss>", "text/xml"),
        (b"<?xml version='1.0'?><urlset></urlset>", "application/xml"),
    ] {
        let outcome = parse(body, Some(content_type.as_bytes()), &page, limits);
        assert_eq!(
            outcome.map(|_| ()),
            Err(PageError::NotAListing),
            "{content_type}"
        );
    }
    for (content_type, expected) in [
        ("", true),
        ("text/html;charset=ISO-8859-1", true),
        (" Application/JSON ", true),
        ("text/xml", true),
        ("application/xhtml+xml", true),
        ("application/octet-stream", false),
        ("image/svg+xml", false),
        ("text/plain", false),
    ] {
        assert_eq!(
            is_listing_type(content_type.as_bytes()),
            expected,
            "{content_type}"
        );
    }
}

#[test]
fn json_of_nginx_with_a_callback_and_of_caddy() {
    let jsonp = b"/* callback */\r\ncb([\r\n{ \"name\":\"sub\", \"type\":\"directory\", \"mtime\":\"Thu, 29 Feb 2024 23:59:58 GMT\" }\r\n]);";
    let listing = read(jsonp, "http://h/");
    assert_eq!((listing.shape, listing.ended), (Shape::Nginx, true));
    let time = Some((LEAP, 1, true));
    assert_eq!(
        entries(&listing),
        [("sub".to_owned(), Directory, None, time)]
    );
    for cut in 0..jsonp.len() {
        assert!(!read(&jsonp[..cut], "http://h/").ended, "{cut}");
    }
    let caddy = br#"[{"name":"sub/","size":4096,"url":"./sub/","mod_time":"2024-02-29T23:59:58Z","mode":2147484141,"is_dir":true,"is_symlink":false},
        {"name":"a%20b?.txt","size":3,"url":"./a%2520b%3F.txt","mod_time":"2024-03-01T00:59:58.5+01:00","mode":420,"is_dir":false,"is_symlink":false}]
"#;
    let listing = read(caddy, "http://h/");
    assert_eq!((listing.shape, listing.ended), (Shape::Caddy, true));
    assert_eq!(
        entries(&listing),
        [
            ("sub".to_owned(), Directory, None, time),
            ("a%20b?.txt".to_owned(), File, same(3), time),
        ]
    );
    assert_eq!(listing.entries[1].segment, "a%2520b%3F.txt");
    let empty = read(b"null\n", "http://h/");
    assert_eq!(empty.shape, Shape::Generic, "not asked for as JSON");
    let page = Url::parse("http://h/?limit=2&offset=4").expect("valid");
    let parsed = |body| {
        parse(
            body,
            Some(b"application/json"),
            &page,
            PageLimits::default(),
        )
    };
    let empty = parsed(b"null\n").expect("a listing");
    assert_eq!(
        (empty.shape, empty.ended, empty.next),
        (Shape::Caddy, true, None)
    );
    let full = parsed(caddy).expect("a listing");
    assert_eq!(full.next.as_deref(), Some("/?limit=2&offset=6"));
}

#[test]
fn json_names_that_are_not_utf8_are_sent_back_unchanged() {
    let body = b"[{\"name\":\"caf\xe9\\u0001\",\"type\":\"file\",\"size\":1}]";
    let listing = read(body, "http://h/");
    assert!(listing.ended);
    assert_eq!(listing.entries[0].segment, "caf%E9%01");
    // The cut is inside a character; the text still counts as UTF-8.
    let body = "[{\"name\":\"caf\u{e9}\"".as_bytes();
    assert!(!read(&body[..body.len() - 2], "http://h/").ended);
}

#[test]
fn iis_shows_bytes_and_slashed_dates_before_the_name() {
    let row = |rows: &str| {
        format!(
            "<html><head><title>h - /x/</title></head><body><H1>h - /x/</H1><hr>\r\n\r\n\
             <pre><A HREF=\"/\">[To Parent Directory]</A><br><br>{rows}</pre><hr></body></html>"
        )
    };
    let body = row(
        " 2/29/2024 11:59 PM        &lt;dir&gt; <A HREF=\"/x/file.ext/\">file.ext</A><br>\
         \u{20}6/12/2014  3:25 AM         1572 <A HREF=\"/x/a%20b.txt\">a b.txt</A><br>\
         Monday, January 06, 2025  6:05 AM  7 <A HREF=\"/x/c\">c</A><br>",
    );
    let listing = read(body.as_bytes(), "http://h/x/");
    assert_eq!((listing.shape, listing.ended), (Shape::Iis, true));
    assert_eq!(
        entries(&listing),
        [
            (
                "file.ext".to_owned(),
                Directory,
                None,
                Some((LEAP_MINUTE, 60, false))
            ),
            (
                "a b.txt".to_owned(),
                File,
                same(1572),
                Some((1_402_543_500, 60, false))
            ),
            (
                "c".to_owned(),
                File,
                same(7),
                Some((1_736_143_500, 60, false))
            ),
        ]
    );
    // Without a day above 12, either number can be the month.
    let body = row(" 6/12/2014  3:25 AM  1 <A HREF=\"/x/a\">a</A><br>");
    let listing = read(body.as_bytes(), "http://h/x/");
    let span = (1_417_836_300 - 1_402_543_500) as u32 + 60;
    let time = Some((1_402_543_500, span, false));
    assert_eq!(entries(&listing), [("a".to_owned(), File, same(1), time)]);
}

#[test]
fn jetty_groups_digits_and_writes_paths() {
    let body = "<!DOCTYPE html><html lang=\"en\"><head><title>Directory: /x/</title></head><body>\n\
        <h1 class=\"title\">Directory: /x/</h1>\n<table class=\"listing\">\n<thead><tr>\
        <th class=\"name\"><a href=\"?C=N&amp;O=D\">Name&nbsp; &#8679;</a></th></tr></thead>\n<tbody>\n\
        <tr><td class=\"name\"><a href=\"/x/../\">Parent Directory</a></td><td class=\"lastmodified\"></td><td></td></tr>\n\
        <tr><td class=\"name\"><a href=\"/x/a.txt\">a.txt&nbsp;</a></td><td class=\"lastmodified\">Feb 29, 2024, 11:59:58&#8239;PM&nbsp;</td><td class=\"size\">1,572,864 bytes&nbsp;</td></tr>\n\
        <tr><td class=\"name\"><a href=\"/x/d/\">d/&nbsp;</a></td><td class=\"lastmodified\">Feb 29, 2024, 11:59:58 PM&nbsp;</td><td class=\"size\">4,096 bytes&nbsp;</td></tr>\n\
        </tbody></table></body></html>\n";
    let listing = read(body.as_bytes(), "http://h/x/");
    assert_eq!((listing.shape, listing.ended), (Shape::Jetty, true));
    let time = Some((LEAP, 1, false));
    assert_eq!(
        entries(&listing),
        [
            ("a.txt".to_owned(), File, same(1_572_864), time),
            ("d".to_owned(), Directory, None, time),
        ]
    );
}

#[test]
fn webfs_shows_columns_as_ls_does() {
    let body = "<head><title>h:80/x/</title></head>\n<body bgcolor=white text=black>\n<h1>listing: \n\
        <a href=\"/\">/</a><a href=\"/x/\">x/</a></h1><hr noshade size=1><pre>\n\
        <b>access      user      group     date             size  name</b>\n\n\
        drwxr-xr-x  root      root      Jan 02  2011    &lt;DIR&gt;  <a href=\"sub/\">sub</a>\n\
        -rw-r--r--  root      root      Feb 29  2024  1536 kB  <a href=\"m1_5.iso\">m1_5.iso</a>\n\
        -rw-r--r--      1000      1000  Nov 21 02:04     3  B  <a href=\"a%20b.txt\">a b.txt</a>\n\
        </pre><hr noshade size=1>\n<small><a href=\"http://bytesex.org/webfs.html\">webfs/1.21</a> &nbsp; 21/Nov/2026 02:04:05 GMT</small>\n</body>\n";
    let listing = read(body.as_bytes(), "http://h/x/");
    assert_eq!((listing.shape, listing.ended), (Shape::Webfs, true));
    assert_eq!(
        entries(&listing),
        [
            (
                "sub".to_owned(),
                Directory,
                None,
                Some((1_293_926_400, 86_400, true))
            ),
            (
                "m1_5.iso".to_owned(),
                File,
                Some((1_572_864, 1_573_887)),
                Some((1_709_164_800, 86_400, true))
            ),
            ("a b.txt".to_owned(), File, same(3), None),
        ]
    );
    let end = body.find("</body>").expect("it ends") + "</body".len();
    assert!(!read(&body.as_bytes()[..end], "http://h/x/").ended);
}

#[test]
fn human_sizes_of_nginx_and_fancyindex() {
    let nginx = "<html>\r\n<head><title>Index of /</title></head>\r\n<body>\r\n<h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n\
        <a href=\"m1_5.iso\">m1_5.iso</a>                                           29-Feb-2024 23:59      2M\r\n\
        </pre><hr></body>\r\n</html>\r\n";
    let listing = read(nginx.as_bytes(), "http://h/");
    let time = Some((LEAP_MINUTE, 60, false));
    let size = Some((1_572_864, 2_621_439));
    assert_eq!(
        entries(&listing),
        [("m1_5.iso".to_owned(), File, size, time)]
    );
    let fancy = "<title>Index of /</title><h1>Index of /</h1>\n<table id=\"list\"><thead><tr><th style=\"width:55%\"><a href=\"?C=N&amp;O=A\">File Name</a></th></tr></thead>\n<tbody>\
        <tr><td class=\"link\"><a href=\"../\">Parent directory/</a></td><td class=\"size\">-</td><td class=\"date\">-</td></tr>\r\n\
        <tr><td class=\"link\"><a href=\"m1_5.iso\" title=\"m1_5.iso\">m1_5.iso</a></td><td class=\"size\">1.5 MiB</td><td class=\"date\">2024-Feb-29 23:59</td></tr>\r\n\
        </tbody></table></body></html>";
    let listing = read(fancy.as_bytes(), "http://h/");
    assert_eq!((listing.shape, listing.ended), (Shape::Fancyindex, true));
    let size = Some((1_520_436, 1_625_292));
    assert_eq!(
        entries(&listing),
        [("m1_5.iso".to_owned(), File, size, time)]
    );
}

#[test]
fn the_old_dates_and_the_tables_of_apache() {
    let head = "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">\n\
        <html xmlns=\"http://www.w3.org/1999/xhtml\">\n <head>\n  <title>Index of /x</title>\n </head>\n <body>\n<h1>Index of /x</h1>\n";
    let rows = "<table><tr><td valign=\"top\"><a href=\"sub/\"><img src=\"/icons/folder.gif\" alt=\"[DIR]\" /></a></td>\
        <td><a href=\"sub/\">sub/</a></td><td align=\"right\">29-Feb-2024 23:59  </td><td align=\"right\">  - </td><td>&nbsp;</td></tr>\n\
        <tr><td valign=\"top\"><a href=\"b.bin\"><img src=\"/icons/unknown.gif\" alt=\"[   ]\" /></a></td>\
        <td><a href=\"b.bin\">b.bin</a></td><td align=\"right\">29-Feb-2024 23:59  </td><td align=\"right\">9.8K</td><td>3 files of <a href=\"sub/\">sub</a></td></tr>\n\
        </table>\n</body></html>\n";
    let listing = read(format!("{head}{rows}").as_bytes(), "http://h/x/");
    assert_eq!((listing.shape, listing.ended), (Shape::Apache, true));
    let time = Some((LEAP_MINUTE, 60, false));
    assert_eq!(
        entries(&listing),
        [
            ("sub".to_owned(), Directory, None, time),
            ("b.bin".to_owned(), File, Some((9984, 10_086)), time),
        ]
    );
}

#[test]
fn caddys_newer_table_has_sizes_in_another_attribute() {
    let body = "<!DOCTYPE html><html><body><table><thead><tr><th><a href=\"?sort=namedirfirst&order=desc\">Name</a></th></tr></thead><tbody>\
        <tr class=\"file\"><td></td><td><a href=\"./sub/\"><span class=\"name\">sub/</span></a></td><td>&mdash;</td>\
        <td class=\"timestamp hideable\"><time datetime=\"2024-02-29T23:59:58Z\">02/29/2024</time></td></tr>\
        <tr class=\"file\"><td></td><td><a href=\"./m.iso\"><span class=\"name\">m.iso</span></a></td>\
        <td class=\"size\" data-size=\"1572864\"><div class=\"sizebar\"><div class=\"sizebar-text\">1.5 MiB</div></div></td>\
        <td class=\"timestamp hideable\"><time datetime=\"2024-02-29T23:59:58Z\">02/29/2024</time></td></tr>\
        </tbody></table></body></html>";
    let listing = read(body.as_bytes(), "http://h/");
    assert_eq!((listing.shape, listing.ended), (Shape::Caddy, true));
    let time = Some((LEAP, 1, true));
    assert_eq!(
        entries(&listing),
        [
            ("sub".to_owned(), Directory, None, time),
            ("m.iso".to_owned(), File, same(1_572_864), time),
        ]
    );
}

#[test]
fn any_table_or_list_is_searched_for_dates_and_sizes() {
    let time = Some((LEAP_MINUTE, 60, false));
    let leap = Some((LEAP, 1, true));
    for (row, kind, size, modified) in [
        // Size before date, as on some data portals.
        (
            "<tr><td><a href=x>x</a></td><td>2056139</td><td>2024-02-29T23:59:58.000Z</td></tr>",
            File,
            same(2_056_139),
            leap,
        ),
        (
            "<tr><td>2024-02-29 23:59</td><td>1.5 MiB</td><td><a href=x>x</a></td></tr>",
            File,
            Some((1_468_006, 1_677_722)),
            time,
        ),
        (
            "<pre>\n<a href=x>x</a>   29-Feb-2024 23:59   12,345\n</pre>",
            File,
            same(12_345),
            time,
        ),
        (
            "<tr><td>&lt;DIR&gt;</td><td><a href=x>x</a></td><td>29-Feb-2024 23:59</td></tr>",
            Directory,
            None,
            time,
        ),
        ("<li><a href=x>x</a> (12 KB)</li>", Unknown, None, None),
        (
            "<li><a href=x>x</a> <span>12 KB</span><span>29 Feb 2024 23:59</span></li>",
            File,
            Some((11_000, 13_312)),
            time,
        ),
        // Two dates, two sizes, or an ambiguous number: the value stays unknown.
        (
            "<tr><td><a href=x>x</a></td><td>2024-02-29</td><td>2024-03-01</td><td>3 MB</td></tr>",
            File,
            Some((2_000_000, 4_194_304)),
            None,
        ),
        (
            "<tr><td><a href=x>x</a></td><td>3 MB</td><td>4 MB</td></tr>",
            Unknown,
            None,
            None,
        ),
        (
            "<tr><td>17</td><td><a href=x>x</a></td></tr>",
            Unknown,
            None,
            None,
        ),
        (
            "<tr><td>17</td><td><a href=x>x</a></td><td>29-Feb-2024 23:59</td><td>18</td></tr>",
            Unknown,
            None,
            time,
        ),
    ] {
        let body = format!("<html><ul>{row}<li><a href=other>other</a></li></ul></html>");
        let listing = read(body.as_bytes(), "http://h/");
        assert_eq!(listing.shape, Shape::Generic, "{row}");
        assert_eq!(
            entries(&listing)[0],
            ("x".to_owned(), kind, size, modified),
            "{row}"
        );
    }
}

#[test]
fn several_entries_in_a_row_have_the_text_after_each() {
    let body = b"<p>All of 2020-01-01: <a href=a>a</a> 29-Feb-2024 23:59 3 kB, <a href=b>b</a> 7 kB <a href=c>c</a>";
    let listing = read(body, "http://h/");
    let found = entries(&listing);
    assert_eq!(found[1], ("b".to_owned(), File, Some((6000, 8192)), None));
    assert_eq!(found[2], ("c".to_owned(), Unknown, None, None));
}

const S3: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";

#[test]
fn a_bucket_lists_one_directory_and_its_next_page() {
    let body = format!(
        "{S3}<Name>b</Name><Prefix>p/</Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter>\
         <IsTruncated>true</IsTruncated><NextContinuationToken>1/a+b=</NextContinuationToken>\
         <Contents><Key>p/</Key><LastModified>2024-02-29T23:59:58.000Z</LastModified><Size>0</Size></Contents>\
         <Contents><Key>p/a &amp; b%.txt</Key><LastModified>2024-02-29T23:59:58.000Z</LastModified><ETag>&quot;x&quot;</ETag><Size>3</Size></Contents>\
         <Contents><Key>p/empty/</Key><LastModified>2024-02-29T23:59:58.000Z</LastModified><Size>0</Size></Contents>\
         <CommonPrefixes><Prefix>p/sub/</Prefix></CommonPrefixes>\
         <CommonPrefixes><Prefix>p//</Prefix></CommonPrefixes></ListBucketResult>"
    );
    let page = "http://h/b/?list-type=2&delimiter=%2F&prefix=p%2F&continuation-token=0";
    let listing = read(body.as_bytes(), page);
    assert_eq!((listing.shape, listing.ended), (Shape::S3, true));
    let time = Some((LEAP, 1, true));
    assert_eq!(
        entries(&listing),
        [
            ("a & b%.txt".to_owned(), File, same(3), time),
            ("empty".to_owned(), Directory, None, None),
            ("sub".to_owned(), Directory, None, None),
        ]
    );
    assert_eq!(listing.entries[0].segment, "a%20&%20b%25.txt");
    assert_eq!(
        listing.nameless.names(),
        ["p//"],
        "a path cannot say what `p//` is"
    );
    assert_eq!(listing.directory.as_deref(), Some("/b/p/"));
    assert_eq!(
        listing.next.as_deref(),
        Some("/b/?list-type=2&delimiter=%2F&prefix=p%2F&continuation-token=1%2Fa%2Bb%3D")
    );
    assert_eq!(
        listing.directories.query_of(&listing.entries[2]).as_deref(),
        Some("/b/?list-type=2&delimiter=%2F&prefix=p%2Fsub%2F")
    );
    for cut in 0..body.len() {
        assert!(!read(&body.as_bytes()[..cut], page).ended, "{cut}");
    }
}

#[test]
fn a_bucket_has_as_many_keys_as_it_says() {
    for (count, key, stops, nameless) in [
        ("1", "<Key>a</Key>", false, 0),
        ("7", "<Key>a</Key>", true, 0),
        ("many", "<Key>a</Key>", false, 0),
        ("1", "", false, 1),
    ] {
        let body = format!(
            "{S3}<KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated><Contents>{key}<Size>1</Size></Contents></ListBucketResult>"
        );
        let listing = read(body.as_bytes(), "http://h/?list-type=2&delimiter=/");
        assert_eq!(listing.stops, stops, "{count}");
        assert_eq!(listing.nameless.len(), nameless, "{key}");
        assert_eq!(listing.entries.len(), 1 - nameless);
    }
}

#[test]
fn a_bucket_that_goes_on_says_where() {
    for (word, stops) in [
        ("true", true),
        ("TRUE", true),
        ("1", true),
        ("false", false),
    ] {
        let body = format!("{S3}<IsTruncated> {word}\n</IsTruncated></ListBucketResult>");
        let listing = read(body.as_bytes(), "http://h/?delimiter=/");
        assert_eq!((listing.stops, listing.next), (stops, None), "{word}");
    }
}

/// The first rows of a page that was cut have no columns yet, so that they fit no server.
#[test]
fn a_page_that_was_cut_in_its_first_row_has_no_end() {
    let page = "<html><head><title>Index of /</title></head><body>\r\n<h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n\
                <a href=\"one\">one</a>   01-Jan-2024 00:00   1\r\n</pre><hr></body></html>";
    for cut in 60..page.len() {
        let listing = read(&page.as_bytes()[..cut], "http://h/");
        let is_taken_as_whole =
            listing.ended || (listing.shape == Shape::Generic && !listing.promises_end);
        assert!(!is_taken_as_whole, "{}", &page[..cut]);
    }
}

#[test]
fn documents_without_an_element_are_no_listings() {
    let page = Url::parse("http://h/").expect("a URL");
    let read = |body: &str| {
        parse(
            body.as_bytes(),
            Some(b"text/xml"),
            &page,
            PageLimits::default(),
        )
    };
    assert_eq!(read("Access denied").err(), Some(PageError::NotAListing));
    for cut in [
        "<",
        "<?xml version=\"1.0\"?>",
        "<?xml version=\"1.0\"?><ListBucketRes",
    ] {
        let listing = read(cut).expect("a listing that was cut");
        assert!(!listing.ended && listing.promises_end, "{cut}");
    }
}

#[test]
fn version_1_continues_after_a_marker() {
    let body = |end: &str, delimiter: &str| {
        format!(
            "{S3}<Name>b</Name><Prefix></Prefix><Marker></Marker>{delimiter}<IsTruncated>true</IsTruncated>\
             <Contents><Key>a+b%2Fc.txt</Key><Size>3</Size></Contents>{end}</ListBucketResult>"
        )
    };
    let delimiter = "<Delimiter>%2F</Delimiter><EncodingType>url</EncodingType>";
    let listing = read(
        body("<NextMarker>a+b%2Fc.txt</NextMarker>", "").as_bytes(),
        "http://h/?delimiter=/",
    );
    assert_eq!(
        listing.next.as_deref(),
        Some("/?delimiter=/&marker=a%2Bb%252Fc%2Etxt")
    );
    // The key is `application/x-www-form-urlencoded`.
    let listing = read(body("", delimiter).as_bytes(), "http://h/?delimiter=/");
    assert_eq!(
        listing.next.as_deref(),
        Some("/?delimiter=/&marker=a%20b%2Fc%2Etxt")
    );
    // A cut listing of all keys of the tree: requested again with a delimiter.
    let listing = read(body("", "").as_bytes(), "http://h/");
    assert_eq!(listing.entries.len(), 0);
    assert_eq!(
        listing.next.as_deref(),
        Some("/?list-type=2&delimiter=%2F&prefix=")
    );
    // A complete and flat listing needs no second request.
    let flat = body("", "").replace("<IsTruncated>true", "<IsTruncated>false");
    let listing = read(flat.as_bytes(), "http://h/");
    assert_eq!((listing.entries.len(), listing.next), (1, None));
}

#[test]
fn azure_lists_blobs_and_their_prefixes() {
    let body = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://h/\" ContainerName=\"c\">\
        <Prefix>p/</Prefix><Delimiter>/</Delimiter><Blobs>\
        <Blob><Name>p/a.txt</Name><Properties><Last-Modified>Thu, 29 Feb 2024 23:59:58 GMT</Last-Modified><Content-Length>3</Content-Length></Properties></Blob>\
        <Blob><Name Encoded=\"true\">p/a%EF%BF%BE</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>\
        <BlobPrefix><Name>p/sub/</Name></BlobPrefix></Blobs><NextMarker>m/1</NextMarker></EnumerationResults>";
    let page = "http://h/c/?restype=container&comp=list&delimiter=%2F&prefix=p%2F";
    let listing = read(body.as_bytes(), page);
    assert_eq!((listing.shape, listing.ended), (Shape::Azure, true));
    assert_eq!(
        entries(&listing),
        [
            ("a.txt".to_owned(), File, same(3), Some((LEAP, 1, true))),
            ("a\u{fffe}".to_owned(), File, same(1), None),
            ("sub".to_owned(), Directory, None, None),
        ]
    );
    assert_eq!(
        listing.next,
        Some(format!("{}&marker=m%2F1", &page["http://h".len()..]))
    );
    let last = body.replace("<NextMarker>m/1</NextMarker>", "<NextMarker />");
    assert_eq!(read(last.as_bytes(), page).next, None);
}

/// A server that ignores the prefix lists the same keys for each directory.
#[test]
fn a_bucket_that_ignores_the_prefix_is_listed_once() {
    let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>3</Size></Contents>");
    let keys: String = ["a.txt", "p/b.txt", "p/q/c.txt", "z/d.txt"]
        .map(object)
        .concat();
    let body = format!("{S3}<Prefix/>{keys}<IsTruncated>false</IsTruncated></ListBucketResult>");
    let read = |prefix: &str| {
        let page = format!("http://h/b/?list-type=2&delimiter=%2F&prefix={prefix}");
        read(body.as_bytes(), &page)
    };
    for (prefix, directory, files, directories) in [
        ("", "/b/", &["a.txt"][..], &["p", "z"][..]),
        ("p%2F", "/b/p/", &["b.txt"], &["q"]),
        ("p%2Fq%2F", "/b/p/q/", &["c.txt"], &[]),
        ("z%2F", "/b/z/", &["d.txt"], &[]),
    ] {
        let listing = read(prefix);
        assert_eq!(listing.directory.as_deref(), Some(directory));
        assert_eq!(names(&listing, File), files, "{prefix}");
        assert_eq!(names(&listing, Directory), directories, "{prefix}");
        assert!(listing.nameless.is_empty() && listing.outside.is_empty());
        assert!(!leaves_out(&listing));
    }
    // Nothing is below the prefix: the server has another idea of its keys.
    let listing = read("other%2F");
    assert!(listing.entries.is_empty());
    assert_eq!(
        listing.outside.names(),
        ["a.txt", "p/b.txt", "p/q/c.txt", "z/d.txt"]
    );
}

/// The trap: a directory that the server did not list is taken for an empty one.
#[test]
fn a_bucket_without_objects_is_about_the_prefix_asked_for() {
    for (prefix, is_listing) in [
        ("p/q/", true),
        ("p/q", true),
        (" /p%2Fq/ ", true),
        ("", true),
        ("other/", false),
        ("p/", false),
    ] {
        let body = format!(
            "{S3}<Prefix>{prefix}</Prefix><IsTruncated>false</IsTruncated></ListBucketResult>"
        );
        let page = Url::parse("http://h/b/?list-type=2&delimiter=%2F&prefix=p%2Fq%2F");
        let page = page.expect("a valid page URL");
        let read = parse(body.as_bytes(), None, &page, PageLimits::default());
        assert_eq!(
            read.is_ok_and(|listing| listing.entries.is_empty()),
            is_listing,
            "{prefix}"
        );
        // A further page, of another prefix.
        let object = format!("<Contents><Key>{prefix}b</Key></Contents><IsTruncated>");
        let body = body.replace("<IsTruncated>", &object);
        let page = Url::parse("http://h/b/?list-type=2&prefix=p%2Fq%2F&continuation-token=t");
        let page = page.expect("a valid page URL");
        let read = parse(body.as_bytes(), None, &page, PageLimits::default());
        assert_eq!(read.is_ok(), is_listing, "{prefix}");
    }
}

/// The text of a link shows that it leads to a directory, or that the reference is a name that was not escaped.
#[test]
fn the_text_of_a_link_says_what_the_link_is() {
    let page = |rows: &str| format!("<html><h1>Index of /x/</h1><ul>{rows}</ul></body></html>");
    let row = |href: &str, text: &str| format!("<li><a href=\"{href}\">{text}</a></li>");
    let rows = [
        row("/x/dir", "dir/"),
        row("/x/a%20b", "<b>a b</b>/"),
        row("/x/other", "more/"),
        row("/x/file", "file"),
        "<li><a href=\"/x/folder\" class=\"icon icon-directory\"><span>folder</span></a></li>"
            .to_owned(),
    ];
    let listing = read(page(&rows.concat()).as_bytes(), "http://h/x/");
    assert_eq!(names(&listing, Directory), ["a b", "dir", "folder"]);
    assert!(!leaves_out(&listing));
    // Of what follows `#` and `?`, the server would see nothing, or another file.
    for name in [
        "why?",
        "what?.txt",
        "?help.txt",
        "f?sort=new.txt",
        "a#b",
        "#x",
        "a?C=1",
    ] {
        for prefix in ["", "./", "/x/", "http://h/x/"] {
            let rows = [
                row("file", "file"),
                row(&format!("{prefix}{name}"), name),
                row("?C=N&O=D", "Name"),
            ];
            let listing = read(page(&rows.concat()).as_bytes(), "http://h/x/");
            let mut both = names(&listing, Unknown);
            both.sort_by_key(|it| it != "file");
            assert_eq!(both, ["file", name], "{prefix}");
            assert!(!leaves_out(&listing), "{prefix}{name}");
        }
        let rows = [row("file", "file"), row(&format!("/y/{name}"), name)];
        let listing = read(page(&rows.concat()).as_bytes(), "http://h/x/");
        assert_eq!(names(&listing, Unknown), ["file"], "{name}");
    }
    let rows = [row("a%20#1/", "a #1/"), row("a%20#2", "a #..>")];
    let listing = read(page(&rows.concat()).as_bytes(), "http://h/x/");
    assert_eq!(names(&listing, Directory), ["a #1"]);
    let pre = "<h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n<a href=\"a#b\">a#b</a>  01-Jan-2024 00:00  7\r\n\
               <a href=\"c\">c</a>  01-Jan-2024 00:00  1\r\n<a href=\"c#d\">c</a>  01-Jan-2024 00:00  1\r\n\
               <a href=\"e#f\">f</a>  01-Jan-2024 00:00  1\r\n</pre></html>";
    let listing = read(pre.as_bytes(), "http://h/");
    assert_eq!(names(&listing, File), ["a#b", "c"]);
    assert_eq!(entries(&listing)[0].2, same(7));
    assert_eq!(listing.left_out.names(), ["http://h/e#f"]);
    // A sign, and a URL that is shown as it is, are no names.
    for text in ["#", "?", "https://other.example/?page=1", "/help#top"] {
        let rows = [row("file", "file"), row(text, text)];
        let listing = read(page(&rows.concat()).as_bytes(), "http://h/x/");
        assert!(!leaves_out(&listing), "{text}");
    }
}

#[test]
fn links_in_noscript_are_entries() {
    for page in [
        "<title>Files</title><script>show()</script><noscript><ul><li><a href=a>a</a></li><li><a href=d/>d/</a></li></ul></noscript>",
        "<html><head><title>Index of /</title></head><noscript><table><tr><td><a href=a>a</a></td></tr><tr><td><a href=d/>d</a></td></tr></table></noscript></html>",
    ] {
        let listing = read(page.as_bytes(), "http://h/");
        assert_eq!(names(&listing, File), ["a"]);
        assert_eq!(names(&listing, Directory), ["d"]);
        assert_eq!(listing.doubt, None);
    }
}

#[test]
fn xml_is_not_expanded() {
    let deep = format!("<list>{}", "<file>".repeat(100_000));
    assert!(
        !read(
            format!("<?xml version='1.0'?>{deep}").as_bytes(),
            "http://h/"
        )
        .ended
    );
    let laughs = "<?xml version='1.0'?><!DOCTYPE list [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;\">]><list><file>&b;</file></list>";
    let listing = read(laughs.as_bytes(), "http://h/");
    assert_eq!((listing.entries.len(), listing.ended), (0, false));
}

#[test]
fn the_next_part_of_a_page_has_the_same_path() {
    for (link, next) in [
        ("<a rel=next href='?page=2'>", Some("/x/?page=2")),
        ("<a href='?page=2' rel='nofollow NEXT'>", Some("/x/?page=2")),
        (
            "<link rel=\"next\" href=\"/x/?page=2&amp;n=9\">",
            Some("/x/?page=2&n=9"),
        ),
        ("<a rel=next href='?page=1'>", None),
        ("<a rel=next href='page2/'>", None),
        ("<a rel=next href='http://other/x/?page=2'>", None),
        ("<a rel=prev href='?page=0'>", None),
        ("<a rel=next>x</a><a href='?page=2'>", None),
    ] {
        let listing = read(link.as_bytes(), "http://h/x/?page=1");
        assert_eq!(listing.next.as_deref(), next, "{link}");
    }
}

#[test]
fn no_cut_of_a_known_page_looks_whole() {
    macro_rules! structured {
        ($name:literal) => {
            include_bytes!(concat!("fixtures/", $name)).as_slice()
        };
    }
    for (name, body, end) in [
        ("apache-plain", page!("apache-plain"), "</html>"),
        ("apache-fancy", page!("apache-fancy"), "</html>"),
        ("apache-fancydeb", page!("apache-fancydeb"), "</html>"),
        ("apache-icons", page!("apache-icons"), "</html>"),
        ("apache-table", page!("apache-table"), "</html>"),
        ("apache-styled", page!("apache-styled"), "</html>"),
        ("apache-sub", page!("apache-sub"), "</html>"),
        ("nginx-exact", page!("nginx-exact"), "</html>"),
        ("lighttpd", page!("lighttpd"), "</html>"),
        ("fancyindex", page!("fancyindex"), "</html>"),
        ("caddy", page!("caddy"), "</html>"),
        ("mini_httpd", page!("mini_httpd"), "</html>"),
        ("python", page!("python"), "</html>"),
        ("nginx-json", structured!("nginx-autoindex.json"), "]"),
        ("nginx-xml", structured!("nginx-autoindex.xml"), "</list>"),
    ] {
        let at = memchr::memmem::rfind(body, end.as_bytes()).expect("these pages end");
        let whole = at + end.len();
        // Every cut near the end, and some of the others.
        let step = whole / 10;
        for cut in (0..whole).step_by(step).chain(whole - 80..whole) {
            assert!(!read(&body[..cut], "http://h/").ended, "{name} {cut}");
        }
        assert!(read(&body[..whole], "http://h/").ended, "{name}");
    }
}

#[test]
fn a_file_and_a_directory_may_have_one_name() {
    let page = b"<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n\
        <a href=\"both/\">both/</a>   22-Nov-2026 02:50       -\r\n\
        <a href=\"both\">both</a>   22-Nov-2026 02:50       7\r\n</pre></html>";
    let bucket = br#"<ListBucketResult><Prefix></Prefix><Delimiter>/</Delimiter><Contents><Key>both</Key><Size>7</Size></Contents>
        <CommonPrefixes><Prefix>both/</Prefix></CommonPrefixes></ListBucketResult>"#;
    let json = br#"[{"name":"both","type":"directory"},{"name":"both","type":"file","size":7}]"#;
    for body in [&page[..], bucket, json] {
        let listing = read(body, "http://h.example/?delimiter=/");
        assert_eq!(names(&listing, Directory), ["both"]);
        assert_eq!(names(&listing, File), ["both"]);
        let file = listing.entries.iter().find(|entry| entry.kind == File);
        assert!(file.is_some_and(|file| file.size.is_some()));
    }
    // A page that marks nothing may link to a directory twice.
    let page = b"<title>Index of /</title><a href=sub><img src=i></a><a href=sub/>sub</a>";
    assert_eq!(read(page, "http://h.example/").entries.len(), 1);
}

#[test]
fn a_name_with_half_a_character_is_left_out_alone() {
    let json = br#"[{"name":"a\ud83d\ude00","type":"file"},{"name":"b\ud800","type":"file"},
        {"name":"\udc00\ud83d","type":"file"},{"name":"c\\ud800","type":"file"},{"name":"d\u00e9","type":"file"}]"#;
    let listing = read(json, "http://h.example/");
    assert_eq!(names(&listing, File), ["a\u{1f600}", "c\\ud800", "d\u{e9}"]);
    assert_eq!((listing.nameless.len(), listing.ended), (2, true));
    assert!(read(br#"["\"#, "http://h.example/").entries.is_empty());
}

// ---- links that stand where entries stand

/// The sample pages of servers have no such links.
#[test]
fn nothing_is_left_out_of_a_row_in_silence() {
    let index = |rows: &str| {
        format!(
            "<html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1><hr><pre>{rows}</pre><hr></body></html>"
        )
    };
    let names = |listing: &Listing| -> Vec<String> {
        let entries = listing.entries.iter();
        entries.map(|entry| entry.segment.clone()).collect()
    };
    // A proxy shows `/real/` as `/pub/`.
    let page =
        index("<a href='/other/'>up</a>\n<a href='/real/f1'>f1</a>\n<a href='/real/d/'>d/</a>\n");
    let mapped =
        index("<a href='/real/'>here</a>\n<a href='/real/f1'>f1</a>\n<a href='/real/d/'>d/</a>\n");
    let listing = read(mapped.as_bytes(), "http://h/pub/");
    assert_eq!(names(&listing), ["f1", "d"]);
    assert_eq!(listing.left_out.len(), 0);
    // Not all links lead there.
    let listing = read(page.as_bytes(), "http://h/pub/");
    assert_eq!(names(&listing), [""; 0]);
    assert_eq!(listing.left_out.len(), 3);
    let page = index("<a href='a'>a</a>\n<a href='/real/f1'>f1</a>\n");
    let listing = read(page.as_bytes(), "http://h/pub/");
    assert_eq!(names(&listing), ["a"]);
    assert_eq!(listing.left_out.names(), ["http://h/real/f1"]);
    for (href, left_out) in [
        ("?page=2", true),
        ("?dir=sub", true),
        ("b?dl=1", true),
        ("a?dl=1", false),
        ("?C=M;O=A", false),
        ("?lang=de", false),
        ("../", false),
        ("../other/", false),
        ("/", false),
        ("http://other/x", false),
        ("#top", false),
    ] {
        let page = index(&format!("<a href='a'>a</a>\n<a href='{href}'>x</a>\n"));
        let listing = read(page.as_bytes(), "http://h/pub/");
        assert_eq!(names(&listing), ["a"], "{href}");
        assert_eq!(listing.left_out.len(), usize::from(left_out), "{href}");
    }
    let page = "<html><head><title>Index of /pub/</title></head><body><ul><li><a href='/about'>us</a></li></ul>\
        <table><tr><td><a href='a'>a</a></td></tr></table><p><a href='/legal'>x</a></p></body></html>";
    assert_eq!(read(page.as_bytes(), "http://h/pub/").left_out.len(), 0);
    let many: String = (0..50)
        .map(|n| format!("<a href='/r{n}/x'>x</a>\n"))
        .collect();
    let listing = read(index(&many).as_bytes(), "http://h/pub/");
    assert_eq!(
        (listing.left_out.names().len(), listing.left_out.len()),
        (50, 50)
    );
}

/// A row with the columns of an entry stands for one, whatever its link is.
#[test]
fn rows_whose_link_leads_nowhere_are_named() {
    let row = |href: &str| format!("<a href=\"{href}\">x</a>   18-Jul-2024 10:00    12\n");
    let index = |rows: &str| {
        format!(
            "<html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1><hr><pre>{rows}</pre><hr></body></html>"
        )
    };
    for (href, is_named) in [
        ("b:1.txt", true),
        ("javascript:go('b.txt')", true),
        ("mailto:b@x", true),
        ("ftp://h/x", true),
        ("http://[::bad/b.txt", true),
        ("http://h:99999/b.txt", true),
        ("#b.txt", true),
        ("", true),
        ("../b.txt", true),
        ("../", false),
        ("./", false),
        ("/", false),
        ("?C=M;O=A", false),
    ] {
        let page = index(&(row("a") + &row(href)));
        let listing = read(page.as_bytes(), "http://h/pub/");
        assert_eq!(listing.entries.len(), 1, "{href}");
        assert_eq!(listing.left_out.len(), usize::from(is_named), "{href}");
    }
    // An entry may have further links in its row.
    let page = index(&row("a").replace("x</a>", "x</a> <a href='javascript:info()'>i</a>"));
    let listing = read(page.as_bytes(), "http://h/pub/");
    assert_eq!((listing.entries.len(), listing.left_out.len()), (1, 0));
}

#[test]
fn an_empty_listing_says_nothing_else() {
    let index = |title: &str, text: &str| {
        format!(
            "<html><head><title>Index of {title}</title></head><body><h1>Index of {title}</h1><hr><pre>{text}</pre><hr></body></html>"
        )
    };
    for (title, text, is_empty) in [
        ("/pub/", "<a href=\"../\">../</a>\n", true),
        ("/pub", "<a href=\"../\">../</a>\n", true),
        ("/real/pub/", "<a href=\"../\">../</a>\n", true),
        ("/other/", "<a href=\"../\">../</a>\n", false),
        ("/pub/", "Down for maintenance", false),
        (
            "/pub/",
            "<p>Please wait while we check your browser</p>",
            false,
        ),
        (
            "/pub/",
            "Error: too many connections to the database",
            false,
        ),
    ] {
        let body = index(title, text);
        let listing = read(body.as_bytes(), "http://h/pub/");
        assert_eq!(listing.doubt.is_none(), is_empty, "{title} {text}");
    }
    // Servers that say no more than the path, and something about themselves.
    let up = "<a href=\"../\">..</a>";
    for (title, text, is_empty) in [
        (
            "/pub/",
            format!("{up}/\n<hr>Generated by darkhttpd/1.14"),
            true,
        ),
        (
            "Directory Listing For [/pub/]",
            format!("{up} <h3>Apache Tomcat/9.0</h3>"),
            true,
        ),
        (
            "host - /pub/",
            "<a href=\"/\">[To Parent Directory]</a> v1".to_owned(),
            true,
        ),
        (
            "repo - Revision 12: /pub",
            format!("{up} Powered by Subversion"),
            true,
        ),
        ("/pub/", "Generated by darkhttpd/1.14".to_owned(), false),
        ("/pub/", format!("{up} Error: no such tenant"), false),
        (
            "/other/",
            format!("{up} Generated by darkhttpd/1.14"),
            false,
        ),
        ("Our /republic/pub/", format!("{up} and its beer"), false),
        ("The pub", format!("{up} and its beer"), false),
    ] {
        let body = format!("<html><head><title>{title}</title></head><body>{text}</body></html>");
        let listing = read(body.as_bytes(), "http://h/pub/");
        assert_eq!(listing.doubt.is_none(), is_empty, "{title} {text}");
    }
    // A single link in a sentence is no listing; some links are.
    for (body, is_listing) in [
        ("You must <a href='accept'>accept</a> the terms", false),
        ("<a href='accept'>accept</a>", true),
        (
            "Here are <a href='a'>a</a> and <a href='b'>b</a> and <a href='c'>c</a>, which are all of them",
            true,
        ),
    ] {
        let body = format!("<html><body>{body}</body></html>");
        let listing = read(body.as_bytes(), "http://h/pub/");
        assert_eq!(listing.doubt.is_none(), is_listing, "{body}");
    }
}

/// A proxy that does not rewrite the links of the server behind it.
#[test]
fn rows_that_lead_to_another_server_are_mapped_or_named() {
    let index = |head: &str, rows: &str| {
        format!(
            "<html><head><title>Index of /pub/</title>{head}</head><body><h1>Index of /pub/</h1><hr><pre>{rows}</pre><hr></body></html>"
        )
    };
    let row = |href: &str| format!("<a href=\"{href}\">x</a>   18-Jul-2024 10:00    12\n");
    let outcome = |page: &str| {
        let listing = read(page.as_bytes(), "https://h/pub/");
        let entries = listing.entries.iter();
        let names: Vec<_> = entries.map(|entry| entry.segment.clone()).collect();
        (names.join(" "), listing.left_out.names().join(" "))
    };
    let rows = |server: &str| {
        let up = format!("<a href=\"{server}\">../</a>\n");
        up + &row(&format!("{server}pub/a")) + &row(&format!("{server}pub/d/"))
    };
    let of = |names: &str, left_out: &str| (names.to_owned(), left_out.to_owned());
    for server in [
        "http://backend.internal:8080/",
        "http://h/",
        "https://h:444/",
    ] {
        assert_eq!(
            outcome(&index("", &rows(server))),
            of("a d", ""),
            "{server}"
        );
        let base = format!("<base href=\"{server}pub/\">");
        let page = index(&base, &(row("a") + &row("d/")));
        assert_eq!(outcome(&page), of("a d", ""), "{server}");
        // Without times and sizes.
        let page = index(&base, "<a href=a>a</a>\n<a href=d/>d/</a>\n");
        assert_eq!(outcome(&page), of("a d", ""), "{server}");
    }
    // Only one of the rows leads there: nothing shows what is where.
    let page = index("", &(row("a") + &row("http://b/pub/f")));
    assert_eq!(outcome(&page), of("a", "http://b/pub/f"));
    // The same name is here, too.
    let page = index("", &(row("a") + &row("http://b/pub/a")));
    assert_eq!(outcome(&page), of("a", ""));
    // Two servers, or the files of another path.
    let page = index("", &(row("http://b/pub/f") + &row("http://c/pub/g")));
    assert_eq!(outcome(&page), of("", "http://b/pub/f http://c/pub/g"));
    let page = index("", &(row("http://cdn/x/f") + &row("http://cdn/x/g")));
    assert_eq!(outcome(&page), of("", "http://cdn/x/f http://cdn/x/g"));
    let page = index("<base href=\"http://cdn/x/\">", "<a href=f>f</a>\n");
    assert_eq!(outcome(&page), of("", "http://cdn/x/f"));
    // What links that are no rows lead to is no entry.
    let page = index(
        "",
        &(row("a") + "<a href=\"http://b/pub/\">our sponsor</a>\n"),
    );
    assert_eq!(outcome(&page), of("a", ""));
}

/// Entries stand in any element: a link that shows its own name is one, or is named.
#[test]
fn links_that_show_their_names_are_entries_or_named() {
    let link = |href: &str, text: &str| format!("<a href=\"{href}\">{text}</a>");
    let outcome = |page: &str| {
        let listing = read(page.as_bytes(), "http://h:81/pub/");
        let entries = listing.entries.iter();
        let names: Vec<_> = entries.map(|entry| entry.segment.clone()).collect();
        let left_out = listing.left_out.names().join(" ");
        (names.join(" "), left_out, listing.doubt.is_some())
    };
    let of = |names: &str, left_out: &str| (names.to_owned(), left_out.to_owned(), false);
    for (open, close) in [
        ("<li>", "</li>"),
        ("<div>", "</div>"),
        ("<p>", "</p>"),
        ("<dd>", "</dd>"),
        ("<tr><td>", "</td></tr>"),
        ("", "<br>"),
    ] {
        let page = |links: &[(&str, &str)]| {
            let rows = links.iter().map(|(href, text)| link(href, text));
            let rows: String = rows.map(|row| format!("{open}{row}{close}")).collect();
            let title = "Index of /pub/";
            let head = format!("<html><head><title>{title}</title></head>");
            format!("{head}<body><h1>{title}</h1>{rows}</body></html>")
        };
        let real = [("/real/f", "f"), ("/real/d/", "d/")];
        assert_eq!(outcome(&page(&real)), of("f d", ""), "{open}");
        // The page is asked for by another name of the server.
        let tls = [
            ("own/", "own"),
            ("https://h/pub/f", "f"),
            ("https://h/pub/g", "g"),
        ];
        assert_eq!(outcome(&page(&tls)), of("own f g", ""), "{open}");
        // They are the fewer.
        let one = [("own/", "own"), ("https://h/pub/f", "f")];
        assert_eq!(outcome(&page(&one)), of("own", "https://h/pub/f"), "{open}");
        for (href, text) in [
            ("/real/f", "f"),
            ("/real/d/", "d/"),
            ("#/pub/f", "f"),
            ("#!/f", "f"),
            ("javascript:go('f.txt')", "f.txt"),
            ("ftp://h/pub/f", "f"),
        ] {
            let (names, left_out, _) = outcome(&page(&[("own", "own"), (href, text)]));
            let named = left_out.strip_prefix("http://h:81").unwrap_or(&left_out);
            assert_eq!((&*names, named), ("own", href), "{open}");
        }
        for (href, text) in [
            ("/about", "About us"),
            ("javascript:void(0)", "f"),
            ("https://server.example/dav", "dav"),
            ("https://h/pub/", "pub"),
            ("#top", "top"),
        ] {
            let (names, left_out, _) = outcome(&page(&[("own", "own"), (href, text)]));
            let left_out = left_out.replace("#top", "");
            let is_row = open == "<tr><td>" && href == "/about";
            assert_eq!(
                (&*names, left_out.is_empty()),
                ("own", !is_row),
                "{open} {href}"
            );
        }
        let elsewhere = [("http://a/pub/x", "x"), ("http://b/pub/y", "y")];
        let (names, left_out, doubt) = outcome(&page(&elsewhere));
        assert_eq!((&*names, &*left_out), ("", "http://a/pub/x http://b/pub/y"));
        assert!(doubt || !left_out.is_empty());
    }
}

/// A header or a footer that names places of the site is no part of a listing with rows.
#[test]
fn navigation_beside_rows_is_no_entry() {
    // Below the root, these are no children of the page.
    let site = "<a href=\"/about\">about</a> <a href=\"/ubuntu/\">ubuntu</a> <a href=\"../README\">README</a>";
    let elsewhere = "<a href=\"ftp://ftp.example.org/\">ftp.example.org</a> <a href=\"https://larsjung.de/h5ai/\">h5ai</a> \
        <a href=\"javascript:sort('Size')\">Size</a> <a href=\"mailto:a@h\">a</a> 2024-01-02 10:00<br>";
    for (page, rows, names) in [
        ("http://h/pub/", "<pre><a href=\"../\">../</a>\n</pre>", ""),
        ("http://h/pub/", "<pre><a href=\"x\">x</a>\n</pre>", "x"),
        (
            "http://h/pub/",
            "<pre><a href=\"https://h/pub/x\">x</a>\n<a href=\"https://h/pub/y\">y</a>\n</pre>",
            "x y",
        ),
        (
            "http://h/pub/",
            "<ul><li><a href=\"/real/x\">x</a></li></ul>",
            "x",
        ),
        ("http://h/", "<ul><li><a href=\"x\">x</a></li></ul>", "x"),
        (
            "http://h/",
            "<table><tr><td><a href=\"x\">x</a></td></tr></table>",
            "x",
        ),
    ] {
        let path = &page["http://h".len()..];
        let site = if path == "/" { "" } else { site };
        let title = format!("Index of {path}");
        let body = format!(
            "<html><head><title>{title}</title></head><body>{site} {elsewhere}<h1>{title}</h1><hr>{rows}<hr></body></html>"
        );
        let listing = read(body.as_bytes(), page);
        let found: Vec<_> = listing.entries.iter().map(|it| &*it.segment).collect();
        assert_eq!(found.join(" "), names, "{rows}");
        assert!(!leaves_out(&listing), "{rows} {:?}", listing.left_out);
    }
}

/// An `nginx` listing whose rows stand where no browser with frames shows anything.
#[test]
fn a_known_server_is_not_believed_where_nothing_is_shown() {
    let listing = "<html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1><hr>\
        <pre><a href=\"../\">../</a>\n</pre><hr></body></html>";
    let doubt = |page: &str| {
        let doubt = read(page.as_bytes(), "http://h/pub/").doubt;
        doubt.map(|it| it.kind)
    };
    assert_eq!(doubt(listing), None);
    let framed = format!("<frameset><frame src=x></frameset><noframes>{listing}</noframes>");
    assert_eq!(doubt(&framed), Some(web_page::WebPageKind::Frames));
    let form = listing.replace("<hr>", "<form><input type=password></form><hr>");
    assert_eq!(doubt(&form), Some(web_page::WebPageKind::Login));
    // Beside times and sizes it is part of the frame; beside names alone it is a gate.
    let row = "<a href=a>a</a>   18-Jul-2024 10:00    12\n";
    assert_eq!(
        doubt(&form.replace("</pre>", &format!("{row}</pre>"))),
        None
    );
    let gate = listing
        .replace("nginx", "")
        .replace("<hr><pre>", "<input type=password><ul><li>");
    let gate = gate.replace("</pre>", "<li><a href=help/>help/</a></ul>");
    assert_eq!(doubt(&gate), Some(web_page::WebPageKind::Login));
    let refresh = listing.replace(
        "</head>",
        "<meta http-equiv=refresh content='0;url=/x/'></head>",
    );
    let to = web_page::WebPageKind::Refresh("/x/".to_owned());
    assert_eq!(doubt(&refresh), Some(to));
}

/// A search can start there again.
#[test]
fn the_first_page_of_a_directory_has_no_place_in_its_query() {
    for (target, first) in [
        ("/pub/?page=2", "/pub/"),
        ("/pub/", "/pub/"),
        (
            "/?list-type=2&prefix=a%2F&continuation-token=x",
            "/?list-type=2&prefix=a%2F",
        ),
        (
            "/?prefix=a%2F&marker=b&delimiter=%2F",
            "/?prefix=a%2F&delimiter=%2F",
        ),
    ] {
        assert_eq!(first_page(target), first);
    }
}

/// `Link: rel=next` in a header has the same rule.
#[test]
fn a_next_page_elsewhere_is_named() {
    let outcome = |head: &str| {
        let page = format!(
            "<html><head><title>Index of /pub/</title>{head}</head><body><h1>Index of /pub/</h1><pre>\
             <a href=\"a\">a</a>   18-Jul-2024 10:00    12\n</pre></body></html>"
        );
        let listing = read(page.as_bytes(), "http://h/pub/");
        let next = listing.next.clone().unwrap_or_default();
        (next, listing.left_out.names().join(" "))
    };
    let of = |next: &str, left_out: &str| (next.to_owned(), left_out.to_owned());
    for (href, next, left_out) in [
        ("?p=2", "/pub/?p=2", ""),
        ("2.html", "", "http://h/pub/2.html"),
        ("/list/2", "", "http://h/list/2"),
        ("http://other/pub/?p=2", "", "http://other/pub/?p=2"),
        ("a", "", ""),
        ("#top", "", ""),
    ] {
        let head = format!("<link rel=next href=\"{href}\">");
        assert_eq!(outcome(&head), of(next, left_out), "{href}");
    }
}

/// What a person sees in a browser is an entry, or is named.
#[test]
fn nothing_that_a_page_shows_is_lost() {
    let outcome = |rows: &str| {
        let title = "Index of /d/";
        let page = format!("<html><title>{title}</title><h1>{title}</h1>{rows}</html>");
        let listing = read(page.as_bytes(), "http://h/d/");
        let entries = listing.entries.iter();
        let names: Vec<_> = entries.map(|entry| &*entry.segment).collect();
        let left_out = listing.left_out.names().join(" ");
        (names.join(" "), left_out)
    };
    let x = "<li><a href=x>x</a></li>";
    for (rows, names, left_out) in [
        // Elsewhere.
        (
            "<li><a href=http://m/y/a.iso>a.iso</a></li>",
            "",
            "http://m/y/a.iso",
        ),
        (
            "<li><a href=/other/a.txt>Report A</a></li>",
            "",
            "http://h/other/a.txt",
        ),
        (
            "x<li><a href=https://cdn/y/e.txt>e.txt</a></li>",
            "x",
            "https://cdn/y/e.txt",
        ),
        (
            "x<li><a href=https://cdn/y/e.txt?s=1>e.txt</a></li>",
            "x",
            "https://cdn/y/e.txt?s=1",
        ),
        (
            "x<li><a href='https://h/d/C#.txt'>C#.txt</a></li>",
            "x",
            "https://h/d/C#.txt",
        ),
        (
            "x<li><a href=s/b.txt>s/b.txt</a></li>",
            "x",
            "http://h/d/s/b.txt",
        ),
        (
            "<td><a href=s/b.txt>b.txt</a><td><a href=s/c.txt>c.txt</a>",
            "",
            "http://h/d/s/b.txt http://h/d/s/c.txt",
        ),
        // Fragments and queries.
        ("<a href='a.whl#sha256=0'>a.whl</a><br>", "a.whl", ""),
        (
            "x<li><a href='a.txt?dl=1'>a.txt</a></li>",
            "x",
            "http://h/d/a.txt?dl=1",
        ),
        (
            "x<li><a href='/get?file=a.txt'>a.txt</a></li>",
            "x",
            "http://h/get?file=a.txt",
        ),
        (
            "x<li><a href='?file=a.txt'>a.txt</a></li>",
            "x",
            "http://h/d/?file=a.txt",
        ),
        ("x<li><a href='?lang=de'>de</a></li>", "x", ""),
        // Names that are not escaped, with more or less of them.
        (
            "<li><a href='a#b.txt'><i>📄</i> a#b.txt</a></li>",
            "a%23b.txt",
            "",
        ),
        (
            "<li><a href='a#b.txt'>a#b.txt <small>12 KB</small></a></li>",
            "a%23b.txt",
            "",
        ),
        (
            "<li><a href='what?.txt'>&nbsp;what?.txt</a></li>",
            "what%3F.txt",
            "",
        ),
        ("<li><a href='a#b.txt'>a#b.t…</a></li>", "a%23b.txt", ""),
        ("x<li><a href='b:1.tar'>b:1.tar</a></li>", "x", "b:1.tar"),
        // References that lead nowhere.
        (
            "x<li><a href='javascript:dl(1)'>a.iso</a></li>",
            "x",
            "javascript:dl(1)",
        ),
        ("x<li><a href='#' onclick='dl()'>a.iso</a></li>", "x", "#"),
        ("x<li><a href='data:,a'>a.iso</a></li>", "x", "data:,a"),
        ("x<li><a href='mailto:me@a.iso'>me@a.iso</a></li>", "x", ""),
        ("x<a href='#top'>Top</a>", "x", ""),
        ("<base href='data:,x'>x", "x", ""),
        (
            "<pre><a href='.//a.txt'>a.txt</a>\n<a href='.//s/'>s/</a>\n</pre>",
            "a.txt s",
            "",
        ),
        // Further pages.
        ("x<a href='/d?page=2'>2</a>", "x", "http://h/d?page=2"),
        (
            "x<a href='https://h/d/?page=2'>2</a>",
            "x",
            "https://h/d/?page=2",
        ),
        (
            "x<a href='?C=N;O=A;page=2'>Next</a>",
            "x",
            "http://h/d/?C=N;O=A;page=2",
        ),
        (
            "x<a href='index.php?page=2'>2</a>",
            "x",
            "http://h/d/index.php?page=2",
        ),
        ("x<a href='/d/page/2'>2</a>", "x", "http://h/d/page/2"),
        (
            "x<a href='/list?dir=/d/&page=2'>Next</a>",
            "x",
            "http://h/list?dir=/d/&page=2",
        ),
        ("x<a href='/?p=12'>About</a>", "x", ""),
    ] {
        let rows = match rows.strip_prefix('x') {
            Some(rest) => format!("{x}{rest}"),
            None => rows.replace("'>x", &format!("'>{x}")),
        };
        assert_eq!(
            outcome(&rows),
            (names.to_owned(), left_out.to_owned()),
            "{rows}"
        );
    }
    let long = format!("{x}<li><a href='.{}b'>b</a></li>", "/".repeat(1 << 20));
    assert_eq!(outcome(&long).0, "x b");
    // Nearly all lead to one place.
    let rows = |prefix: &str, count: usize| -> String {
        let row = |n| format!("<li><a href={prefix}f{n}.txt>f{n}.txt</a></li>");
        (0..count).map(row).collect()
    };
    for prefix in ["https://h/d/", "/real/"] {
        let other = "<li><a href=http://mirror/y/c.txt>c.txt</a></li>";
        let (names, left_out) = outcome(&(rows(prefix, 20) + other));
        assert_eq!(names.split(' ').count(), 20, "{prefix}");
        assert_eq!(left_out, "http://mirror/y/c.txt");
    }
    // Beside an empty listing of a known server, such links lead to documents.
    let empty = "<html><head><title>Index of /d/</title></head><body><h1>Index of /d/</h1><hr><pre><a href=\"../\">../</a>\n</pre>\
        <p><a href=https://example.org/terms.pdf>Terms</a> <a href=/feed.xml>RSS</a></p>\
        <ul><li><a href=https://t.example/d.torrent>d.torrent</a></li></ul></body></html>";
    let listing = read(empty.as_bytes(), "http://h/d/");
    assert!(listing.entries.is_empty() && !leaves_out(&listing) && listing.doubt.is_none());
    // Files in full, and more directories that are not.
    let (names, left_out) = outcome(&(rows("", 5) + &rows("https://h/d/g", 3)));
    assert_eq!((names.split(' ').count(), &*left_out), (8, ""));
}
