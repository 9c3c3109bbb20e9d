//! Captured pages of real servers, constructed pages of all formats, and links that are not entries.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use super::*;
use EntryKind::{Directory, File, Unknown};

fn read(body: impl AsRef<[u8]>, page: &str) -> Listing {
    let page = Url::parse(page).expect("a valid page URL");
    parse(body.as_ref(), None, &page, PageLimits::default()).expect("few links")
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

/// The entries, each on a line: `d`, `f` or `?`, the name, the size or its bounds, and the time with its span in seconds
/// and, if it is in UTC, `Z`.
fn shown(listing: &Listing) -> String {
    let line = |entry: &Entry| {
        let kind = match entry.kind {
            Directory => 'd',
            File => 'f',
            Unknown => '?',
        };
        let mut line = format!("{kind} {}", String::from_utf8_lossy(&entry.name));
        match entry.size {
            Some(size) if size.lo == size.hi => line += &format!(" {}", size.lo),
            Some(size) => line += &format!(" {}-{}", size.lo, size.hi),
            None => {}
        }
        if let Some(time) = entry.modified {
            let at = jiff::Timestamp::from_second(time.seconds).expect("a time");
            let zone = if time.utc { "Z" } else { "" };
            line += &format!(" {}/{}{zone}", at.strftime("%F %T"), time.span);
        }
        line
    };
    let lines: Vec<String> = listing.entries.iter().map(line).collect();
    lines.join("\n")
}

/// What becomes of the links of a page: the entries, and behind `|` what is left out.
fn outcome(body: &str, page: &str) -> String {
    let listing = read(body, page);
    let names: Vec<_> = listing.entries.iter().map(|it| &*it.segment).collect();
    let names = names.join(" ");
    match listing.left_out.is_empty() {
        true => names,
        false => format!("{names} | {}", listing.left_out.names().join(" "))
            .trim_start()
            .into(),
    }
}

/// The rows of a table: a page, `=>`, and what is made of it. `¶` stands for the end of a line, and `#` begins a comment.
pub(super) fn rows(table: &str) -> impl Iterator<Item = (String, &str)> {
    let rows = table.lines().map(str::trim);
    rows.filter(|row| !row.is_empty() && !row.starts_with('#'))
        .map(|row| {
            let (page, made) = row.rsplit_once("=>").expect("two columns");
            (page.trim().replace('¶', "\n"), made.trim())
        })
}

/// The page of an nginx server for `/pub/`.
fn index(rows: &str) -> String {
    format!(
        "<html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1><hr><pre>{rows}</pre><hr></body></html>"
    )
}

/// A row of such a page, with time and size.
fn row(href: &str) -> String {
    format!("<a href=\"{href}\">x</a>   18-Jul-2024 10:00    12\n")
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

/// The sample tree: each name with its kind, size and time, as nginx shows them in JSON.
fn sample_tree() -> BTreeMap<String, (EntryKind, u64, i64)> {
    let json = include_str!("fixtures/nginx-autoindex.json");
    let entries: Vec<serde_json::Value> = serde_json::from_str(json).expect("JSON");
    let entry = |entry: &serde_json::Value| {
        let text = |field: &str| entry[field].as_str().expect("a text").to_owned();
        let is_directory = text("type") == "directory";
        let kind = if is_directory { Directory } else { File };
        let time = httpdate::parse_http_date(&text("mtime")).expect("a time");
        let time = time.duration_since(UNIX_EPOCH).expect("no year before");
        // The broken link has none.
        let size = entry["size"]
            .as_u64()
            .unwrap_or(if is_directory { 0 } else { 7 });
        (text("name"), (kind, size, time.as_secs() as i64))
    };
    entries.iter().map(entry).collect()
}

/// A captured page of the sample tree.
struct Capture {
    name: &'static str,
    body: &'static [u8],
    shape: Shape,
    /// The page shows the directory `.hidden` and the file `.dotfile`, too.
    shows_dots: bool,
    /// What it does not show.
    missing: &'static [&'static str],
    /// Whether the sizes that it shows are exact, the span of its times in seconds, and whether these are in UTC.
    columns: Option<(bool, u32, bool)>,
}

macro_rules! capture {
    ($name:literal, $shape:ident, $shows_dots:literal, $missing:expr, $columns:expr) => {
        Capture {
            name: $name,
            body: include_bytes!(concat!("fixtures/", $name)),
            shape: Shape::$shape,
            shows_dots: $shows_dots,
            missing: $missing,
            columns: $columns,
        }
    };
}

#[rustfmt::skip]
const CAPTURES: [Capture; 15] = [
    capture!("apache-plain.html", Apache, true, &["broken"], None),
    capture!("apache-fancy.html", Apache, true, &["broken"], Some((false, 60, false))),
    capture!("apache-fancydeb.html", Apache, true, &["broken"], Some((false, 60, false))),
    capture!("apache-table.html", Apache, true, &["broken"], Some((false, 60, false))),
    capture!("apache-icons.html", Apache, true, &["broken", "g5.iso", "t1.img"], Some((false, 60, false))),
    capture!("apache-styled.html", Apache, true, &["broken", "g5.iso", "t1.img"], Some((false, 60, false))),
    capture!("nginx-exact.html", Nginx, false, &[], Some((true, 60, false))),
    capture!("nginx-utf8.html", Nginx, false, &[], Some((true, 60, false))),
    capture!("nginx-autoindex.json", Nginx, false, &[], Some((true, 1, true))),
    capture!("nginx-autoindex.xml", Nginx, false, &[], Some((true, 1, true))),
    capture!("python.html", Python, true, &[], None),
    capture!("lighttpd.html", Lighttpd, false, &["broken"], Some((false, 1, false))),
    capture!("caddy.html", Caddy, true, &[], Some((true, 1, true))),
    capture!("fancyindex.html", Fancyindex, false, &["g5.iso", "t1.img"], Some((true, 60, false))),
    capture!("mini_httpd.html", MiniHttpd, true, &["g5.iso", "t1.img"], Some((true, 60, false))),
];

#[test]
fn every_captured_listing_gives_the_whole_tree() {
    let tree = sample_tree();
    for capture in &CAPTURES {
        let name = capture.name;
        let expected = |kinds: &[EntryKind]| {
            let shown = tree.iter().filter(|(name, (it, ..))| {
                kinds.contains(it) && !capture.missing.contains(&name.as_str())
            });
            let mut names: Vec<&str> = shown.map(|(name, _)| name.as_str()).collect();
            let dotted = [(Directory, ".hidden"), (File, ".dotfile")];
            let dotted = dotted.iter().filter(|(kind, _)| kinds.contains(kind));
            names.extend(dotted.filter(|_| capture.shows_dots).map(|(_, name)| name));
            names.sort_unstable();
            names
        };
        let marks_directories = capture.shape != Shape::MiniHttpd;
        let [directories, files, unknown]: [&[_]; 3] = match marks_directories {
            true => [&[Directory], &[File], &[]],
            false => [&[], &[], &[Directory, File]],
        };
        for path in ["/", "/x%20y/table/"] {
            let listing = read(capture.body, &format!("http://127.0.0.1:8080{path}"));
            assert_eq!(listing.shape, capture.shape, "{name}");
            assert!(listing.ended, "{name}");
            assert_eq!(listing.marks_directories, marks_directories, "{name}");
            assert_eq!(names(&listing, Directory), expected(directories), "{name}");
            assert_eq!(names(&listing, File), expected(files), "{name}");
            assert_eq!(names(&listing, Unknown), expected(unknown), "{name}");
        }
    }
}

#[test]
fn every_captured_listing_gives_sizes_and_times() {
    let tree = sample_tree();
    for capture in &CAPTURES {
        let name = capture.name;
        let listing = read(capture.body, "http://h/");
        let Some((exact, span, utc)) = capture.columns else {
            let bare = |entry: &Entry| entry.size.is_none() && entry.modified.is_none();
            assert!(listing.entries.iter().all(bare), "{name}");
            continue;
        };
        let is_mini = capture.shape == Shape::MiniHttpd;
        let mut checked = 0;
        for entry in &listing.entries {
            let shown = String::from_utf8_lossy(&entry.name).into_owned();
            // Dot files are younger than the rest. Some servers show the time of a symbolic link itself.
            let shows_links = is_mini || capture.shape == Shape::Caddy;
            if shown.starts_with('.') || (shows_links && shown == "linkdir") {
                continue;
            }
            let (_, bytes, seconds) = tree[&shown];
            let seconds = seconds - seconds % i64::from(span);
            let time = ListedTime { seconds, span, utc };
            assert_eq!(entry.modified, Some(time), "{name} {shown}");
            checked += 1;
            let has_no_size = shown == "broken" && name.starts_with("nginx-autoindex");
            if entry.kind == Directory || has_no_size {
                assert_eq!(entry.size, None, "{name} {shown}");
            } else if is_mini && shown.starts_with("sub") {
                assert_eq!(entry.size, Some(SizeRange::exact(4096)));
            } else if !is_mini || bytes > 3 {
                let size = entry.size.expect("a size");
                let has_bytes = size.lo <= bytes && bytes <= size.hi;
                assert!(has_bytes, "{name} {shown} {size:?}");
                let is_known = size.known() == Some(bytes);
                assert!(!exact || is_known, "{name} {shown} {size:?}");
            }
        }
        assert!(checked > 30, "{name}");
    }
}

#[test]
fn no_cut_of_a_known_page_looks_whole() {
    for Capture { name, body, .. } in &CAPTURES {
        let end = match name.rsplit('.').next() {
            Some("json") => "]",
            Some("xml") => "</list>",
            _ => "</html>",
        };
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
fn only_direct_children_are_entries() {
    let entry_of = |href: &str| {
        let escaped = href.replace('&', "&amp;").replace('"', "&quot;");
        let body = format!("<html><a href=\"{escaped}\">x</a></html>");
        let listing = read(body, "http://127.0.0.1:8080/pub/caf%C3%A9/");
        let entry = listing.entries.into_iter().next();
        entry.map_or(String::new(), |entry| entry.segment)
    };
    for (href, segment) in [
        ("a.txt", "a.txt"),
        ("sub/", "sub"),
        ("./co:lon.txt", "co:lon.txt"),
        ("/pub/caf%c3%a9/x", "x"),
        ("/pub/café/x", "x"),
        ("http://127.0.0.1:8080/pub/caf%C3%A9/x", "x"),
        ("//127.0.0.1:8080/pub/caf%C3%A9/x", "x"),
        ("caf%c3%a9.txt", "caf%C3%A9.txt"),
        ("a b.txt", "a%20b.txt"),
        ("50%.bin", "50%25.bin"),
        ("50%25.bin", "50%25.bin"),
        ("%4", "%254"),
        ("r[1]{2}.txt", "r%5B1%5D%7B2%7D.txt"),
        ("plus+;'=@:.txt", "plus+;'=@:.txt"),
        ("plus%2b.txt", "plus%2B.txt"),
        ("q%3Fmark", "q%3Fmark"),
        ("  padded.txt\n", "padded.txt"),
        ("x/../y", "y"),
        ("sub/?C=N;O=D", "sub"),
        ("sub/?sort=name&order=asc", "sub"),
        ("...", "..."),
    ] {
        assert_eq!(entry_of(href), segment, "{href}");
    }
    // Not below the page, not direct children, on another host, or not a path.
    let others = "|.|./|..|../|/|/pub/|/icons/|/pub/caf%C3%A9|a/b|a//|%2e%2e/|..%2F..%2Fetc/|a%2Fb|nul%00.txt|?C=N;O=D|\
        ?C=N&O=A|sub/?dir=x|a.txt#top|#top|co:lon.txt|mailto:root@example.org|https://other/f.iso|http://[";
    for href in others.split('|') {
        assert_eq!(entry_of(href), "", "{href}");
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
    assert_eq!(shown(&listing), "d sub\nf café");
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
    let three = "<a href=a><a href=b><a href=c>";
    let four = "<a href=a><a href=b><a href=c><a href=d>";
    let long = "<a href=a><a href=twenty-one-bytes-long><a href=12345678901234>";
    for (body, counts) in [
        (three, Ok((3, 0))),
        (four, Err(PageError::TooManyLinks)),
        (long, Ok((1, 2))),
    ] {
        let listing = parse(body.as_bytes(), None, &page, limits);
        let made = listing.map(|it| (it.entries.len(), it.overlong.len()));
        assert_eq!(made, counts, "{body}");
    }
}

#[test]
fn the_content_type_takes_precedence_over_the_body() {
    let page = Url::parse("http://h/").expect("valid");
    let json = r#"[{"name":"a","type":"file","size":1}]"#;
    let none = Err(PageError::NotAListing);
    for (content_type, body, shape) in [
        ("", json, Ok(Shape::Nginx)),
        ("application/json; charset=utf-8", json, Ok(Shape::Nginx)),
        ("text/html", json, Ok(Shape::Generic)),
        ("Text/XML", json, none),
        ("application/json", r#"{"name":"a"}"#, none),
        ("application/json", r#"["a","b"]"#, none),
        ("application/json", r#"[{"id":1}]"#, none),
        ("application/json", r#"[{"name":"a"}]"#, none),
        ("text/xml", "<rss><channel/></rss>", none),
        ("application/xml", "<?xml version='1.0'?><urlset/>", none),
        ("text/xml", "Access denied", none),
    ] {
        let content_type = Some(content_type.as_bytes());
        let listing = parse(body.as_bytes(), content_type, &page, PageLimits::default());
        let shape_read = listing.map(|listing| listing.shape);
        assert_eq!(shape_read, shape, "{content_type:?} {body}");
    }
    let listings =
        "|text/html;charset=ISO-8859-1| Application/JSON |text/xml|application/xhtml+xml";
    for content_type in listings.split('|') {
        assert!(is_listing_type(content_type.as_bytes()), "{content_type}");
    }
    for content_type in ["application/octet-stream", "image/svg+xml", "text/plain"] {
        assert!(!is_listing_type(content_type.as_bytes()), "{content_type}");
    }
}

/// Pages that were written after the sources of servers, and what they show. No cut of them looks whole.
#[test]
fn each_server_shows_sizes_and_times_in_its_own_way() {
    for (shape, page, entries) in [
        (
            Shape::Iis,
            "<html><head><title>h - /x/</title></head><body><H1>h - /x/</H1><hr>\r\n\r\n\
             <pre><A HREF=\"/\">[To Parent Directory]</A><br><br>\
             \u{20}2/29/2024 11:59 PM        &lt;dir&gt; <A HREF=\"/x/file.ext/\">file.ext</A><br>\
             \u{20}6/12/2014  3:25 AM         1572 <A HREF=\"/x/a%20b.txt\">a b.txt</A><br>\
             Monday, January 06, 2025  6:05 AM  7 <A HREF=\"/x/c\">c</A><br></pre><hr></body></html>",
            "d file.ext 2024-02-29 23:59:00/60\n\
             f a b.txt 1572 2014-06-12 03:25:00/60\n\
             f c 7 2025-01-06 06:05:00/60",
        ),
        // Without a day above 12, either number can be the month.
        (
            Shape::Iis,
            "<html><head><title>h - /x/</title></head><body><H1>h - /x/</H1><hr>\r\n\r\n\
             <pre><A HREF=\"/\">[To Parent Directory]</A><br><br>\
             \u{20}6/12/2014  3:25 AM  1 <A HREF=\"/x/a\">a</A><br></pre><hr></body></html>",
            "f a 1 2014-06-12 03:25:00/15292860",
        ),
        (
            Shape::Jetty,
            "<!DOCTYPE html><html lang=\"en\"><head><title>Directory: /x/</title></head><body>\n\
             <h1 class=\"title\">Directory: /x/</h1>\n<table class=\"listing\">\n<thead><tr>\
             <th class=\"name\"><a href=\"?C=N&amp;O=D\">Name&nbsp; &#8679;</a></th></tr></thead>\n<tbody>\n\
             <tr><td class=\"name\"><a href=\"/x/../\">Parent Directory</a></td><td class=\"lastmodified\"></td><td></td></tr>\n\
             <tr><td class=\"name\"><a href=\"/x/a.txt\">a.txt&nbsp;</a></td><td class=\"lastmodified\">Feb 29, 2024, 11:59:58&#8239;PM&nbsp;</td><td class=\"size\">1,572,864 bytes&nbsp;</td></tr>\n\
             <tr><td class=\"name\"><a href=\"/x/d/\">d/&nbsp;</a></td><td class=\"lastmodified\">Feb 29, 2024, 11:59:58 PM&nbsp;</td><td class=\"size\">4,096 bytes&nbsp;</td></tr>\n\
             </tbody></table></body></html>\n",
            "f a.txt 1572864 2024-02-29 23:59:58/1\n\
             d d 2024-02-29 23:59:58/1",
        ),
        (
            Shape::Webfs,
            "<head><title>h:80/x/</title></head>\n<body bgcolor=white text=black>\n<h1>listing: \n\
             <a href=\"/\">/</a><a href=\"/x/\">x/</a></h1><hr noshade size=1><pre>\n\
             <b>access      user      group     date             size  name</b>\n\n\
             drwxr-xr-x  root      root      Jan 02  2011    &lt;DIR&gt;  <a href=\"sub/\">sub</a>\n\
             -rw-r--r--  root      root      Feb 29  2024  1536 kB  <a href=\"m1_5.iso\">m1_5.iso</a>\n\
             -rw-r--r--      1000      1000  Nov 21 02:04     3  B  <a href=\"a%20b.txt\">a b.txt</a>\n\
             </pre><hr noshade size=1>\n<small><a href=\"http://bytesex.org/webfs.html\">webfs/1.21</a> &nbsp; 21/Nov/2026 02:04:05 GMT</small>\n</body>\n",
            "d sub 2011-01-02 00:00:00/86400Z\n\
             f m1_5.iso 1572864-1573887 2024-02-29 00:00:00/86400Z\n\
             f a b.txt 3",
        ),
        // Rounded sizes.
        (
            Shape::Nginx,
            "<html>\r\n<head><title>Index of /</title></head>\r\n<body>\r\n<h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n\
             <a href=\"m1_5.iso\">m1_5.iso</a>                                           29-Feb-2024 23:59      2M\r\n\
             </pre><hr></body>\r\n</html>\r\n",
            "f m1_5.iso 1572864-2621439 2024-02-29 23:59:00/60",
        ),
        (
            Shape::Fancyindex,
            "<title>Index of /</title><h1>Index of /</h1>\n<table id=\"list\"><thead><tr><th style=\"width:55%\"><a href=\"?C=N&amp;O=A\">File Name</a></th></tr></thead>\n<tbody>\
             <tr><td class=\"link\"><a href=\"../\">Parent directory/</a></td><td class=\"size\">-</td><td class=\"date\">-</td></tr>\r\n\
             <tr><td class=\"link\"><a href=\"m1_5.iso\" title=\"m1_5.iso\">m1_5.iso</a></td><td class=\"size\">1.5 MiB</td><td class=\"date\">2024-Feb-29 23:59</td></tr>\r\n\
             </tbody></table></body></html>",
            "f m1_5.iso 1520436-1625292 2024-02-29 23:59:00/60",
        ),
        // The old dates and the tables of XHTML.
        (
            Shape::Apache,
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">\n\
             <html xmlns=\"http://www.w3.org/1999/xhtml\">\n <head>\n  <title>Index of /x</title>\n </head>\n <body>\n<h1>Index of /x</h1>\n\
             <table><tr><td valign=\"top\"><a href=\"sub/\"><img src=\"/icons/folder.gif\" alt=\"[DIR]\" /></a></td>\
             <td><a href=\"sub/\">sub/</a></td><td align=\"right\">29-Feb-2024 23:59  </td><td align=\"right\">  - </td><td>&nbsp;</td></tr>\n\
             <tr><td valign=\"top\"><a href=\"b.bin\"><img src=\"/icons/unknown.gif\" alt=\"[   ]\" /></a></td>\
             <td><a href=\"b.bin\">b.bin</a></td><td align=\"right\">29-Feb-2024 23:59  </td><td align=\"right\">9.8K</td><td>3 files of <a href=\"sub/\">sub</a></td></tr>\n\
             </table>\n</body></html>\n",
            "d sub 2024-02-29 23:59:00/60\n\
             f b.bin 9984-10086 2024-02-29 23:59:00/60",
        ),
        // The newer table has sizes in another attribute.
        (
            Shape::Caddy,
            "<!DOCTYPE html><html><body><table><thead><tr><th><a href=\"?sort=namedirfirst&order=desc\">Name</a></th></tr></thead><tbody>\
             <tr class=\"file\"><td></td><td><a href=\"./sub/\"><span class=\"name\">sub/</span></a></td><td>&mdash;</td>\
             <td class=\"timestamp hideable\"><time datetime=\"2024-02-29T23:59:58Z\">02/29/2024</time></td></tr>\
             <tr class=\"file\"><td></td><td><a href=\"./m.iso\"><span class=\"name\">m.iso</span></a></td>\
             <td class=\"size\" data-size=\"1572864\"><div class=\"sizebar\"><div class=\"sizebar-text\">1.5 MiB</div></div></td>\
             <td class=\"timestamp hideable\"><time datetime=\"2024-02-29T23:59:58Z\">02/29/2024</time></td></tr>\
             </tbody></table></body></html>",
            "d sub 2024-02-29 23:59:58/1Z\n\
             f m.iso 1572864 2024-02-29 23:59:58/1Z",
        ),
        (
            Shape::Caddy,
            CADDY,
            "d sub 2024-02-29 23:59:58/1Z\nf a%20b?.txt 3 2024-02-29 23:59:58/1Z",
        ),
        // With a callback.
        (
            Shape::Nginx,
            "/* callback */\r\ncb([\r\n{ \"name\":\"sub\", \"type\":\"directory\", \"mtime\":\"Thu, 29 Feb 2024 23:59:58 GMT\" }\r\n]);",
            "d sub 2024-02-29 23:59:58/1Z",
        ),
    ] {
        let listing = read(page, "http://h/x/");
        assert_eq!((listing.shape, listing.ended), (shape, true), "{page}");
        assert_eq!(shown(&listing), entries, "{page}");
        for cut in 0..page.trim_end().len() {
            assert!(
                !read(&page.as_bytes()[..cut], "http://h/x/").ended,
                "{page} {cut}"
            );
        }
    }
}

const CADDY: &str = r#"[{"name":"sub/","size":4096,"url":"./sub/","mod_time":"2024-02-29T23:59:58Z","mode":2147484141,"is_dir":true,"is_symlink":false},
    {"name":"a%20b?.txt","size":3,"url":"./a%2520b%3F.txt","mod_time":"2024-03-01T00:59:58.5+01:00","mode":420,"is_dir":false,"is_symlink":false}]
"#;

#[test]
fn caddy_goes_on_where_its_limit_ends() {
    let listing = read(CADDY, "http://h/");
    assert_eq!(listing.entries[1].segment, "a%2520b%3F.txt");
    let empty = read("null\n", "http://h/");
    assert_eq!(empty.shape, Shape::Generic, "not asked for as JSON");
    let page = Url::parse("http://h/?limit=2&offset=4").expect("valid");
    for (body, next) in [("null\n", None), (CADDY, Some("/?limit=2&offset=6"))] {
        let json = Some(&b"application/json"[..]);
        let listing = parse(body.as_bytes(), json, &page, PageLimits::default());
        let listing = listing.expect("a listing");
        assert_eq!((listing.shape, listing.ended), (Shape::Caddy, true));
        assert_eq!(listing.next.as_deref(), next);
    }
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
fn a_name_with_half_a_character_is_left_out_alone() {
    let json = br#"[{"name":"a\ud83d\ude00","type":"file"},{"name":"b\ud800","type":"file"},
        {"name":"\udc00\ud83d","type":"file"},{"name":"c\\ud800","type":"file"},{"name":"d\u00e9","type":"file"}]"#;
    let listing = read(json, "http://h.example/");
    assert_eq!(names(&listing, File), ["a\u{1f600}", "c\\ud800", "d\u{e9}"]);
    assert_eq!((listing.nameless.len(), listing.ended), (2, true));
    assert!(read(br#"["\"#, "http://h.example/").entries.is_empty());
}

#[test]
fn any_table_or_list_is_searched_for_dates_and_sizes() {
    for (row, entry) in rows(
        "
        # Size before date, as on some data portals.
        <tr><td><a href=x>x</a></td><td>2056139</td><td>2024-02-29T23:59:58.000Z</td></tr> => f x 2056139 2024-02-29 23:59:58/1Z
        <tr><td>2024-02-29 23:59</td><td>1.5 MiB</td><td><a href=x>x</a></td></tr> => f x 1468006-1677722 2024-02-29 23:59:00/60
        <pre>¶<a href=x>x</a>   29-Feb-2024 23:59   12,345¶</pre> => f x 12345 2024-02-29 23:59:00/60
        <tr><td>&lt;DIR&gt;</td><td><a href=x>x</a></td><td>29-Feb-2024 23:59</td></tr> => d x 2024-02-29 23:59:00/60
        <li><a href=x>x</a> (12 KB)</li> => ? x
        <li><a href=x>x</a> <span>12 KB</span><span>29 Feb 2024 23:59</span></li> => f x 11000-13312 2024-02-29 23:59:00/60
        # Two dates, two sizes, or an ambiguous number: the value stays unknown.
        <tr><td><a href=x>x</a></td><td>2024-02-29</td><td>2024-03-01</td><td>3 MB</td></tr> => f x 2000000-4194304
        <tr><td><a href=x>x</a></td><td>3 MB</td><td>4 MB</td></tr> => ? x
        <tr><td>17</td><td><a href=x>x</a></td></tr> => ? x
        <tr><td>17</td><td><a href=x>x</a></td><td>29-Feb-2024 23:59</td><td>18</td></tr> => ? x 2024-02-29 23:59:00/60
        ",
    ) {
        let body = format!("<html><ul>{row}<li><a href=other>other</a></li></ul></html>");
        let listing = read(&body, "http://h/");
        assert_eq!(listing.shape, Shape::Generic, "{row}");
        assert_eq!(shown(&listing).lines().next(), Some(entry), "{row}");
    }
    // Several entries in a row have the text after each.
    let body = "<p>All of 2020-01-01: <a href=a>a</a> 29-Feb-2024 23:59 3 kB, <a href=b>b</a> 7 kB <a href=c>c</a>";
    let entries = shown(&read(body, "http://h/"));
    assert!(entries.ends_with("\nf b 6000-8192\n? c"), "{entries}");
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
    let listing = read(&body, page);
    assert_eq!((listing.shape, listing.ended), (Shape::S3, true));
    let entries = "f a & b%.txt 3 2024-02-29 23:59:58/1Z\nd empty\nd sub";
    assert_eq!(shown(&listing), entries);
    assert_eq!(listing.entries[0].segment, "a%20&%20b%25.txt");
    // A path cannot say what it is.
    assert_eq!(listing.nameless.names(), ["p//"]);
    assert_eq!(listing.directory.as_deref(), Some("/b/p/"));
    let next = "/b/?list-type=2&delimiter=%2F&prefix=p%2F&continuation-token=1%2Fa%2Bb%3D";
    assert_eq!(listing.next.as_deref(), Some(next));
    let below = listing.directories.query_of(&listing.entries[2]);
    let query = "/b/?list-type=2&delimiter=%2F&prefix=p%2Fsub%2F";
    assert_eq!(below.as_deref(), Some(query));
    for cut in 0..body.len() {
        assert!(!read(&body[..cut], page).ended, "{cut}");
    }
}

#[test]
fn a_bucket_says_how_many_keys_it_has_and_whether_it_goes_on() {
    let one = "<Contents><Key>a</Key><Size>1</Size></Contents>";
    let nameless = "<Contents><Size>1</Size></Contents>";
    for (count, goes_on, objects, stops, counts) in [
        ("1", "false", one, false, (1, 0)),
        ("7", "false", one, true, (1, 0)),
        ("many", "false", one, false, (1, 0)),
        ("1", "false", nameless, false, (0, 1)),
        ("0", " TRUE\n", "", true, (0, 0)),
        ("0", "1", "", true, (0, 0)),
    ] {
        let body = format!(
            "{S3}<KeyCount>{count}</KeyCount><IsTruncated>{goes_on}</IsTruncated>{objects}</ListBucketResult>"
        );
        let listing = read(&body, "http://h/?list-type=2&delimiter=/");
        assert_eq!((listing.stops, listing.next), (stops, None), "{body}");
        assert_eq!(
            (listing.entries.len(), listing.nameless.len()),
            counts,
            "{body}"
        );
    }
}

/// The first rows of a page that was cut have no columns yet, so that they fit no server.
#[test]
fn a_page_that_was_cut_in_its_first_row_has_no_end() {
    let page = "<html><head><title>Index of /</title></head><body>\r\n<h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n\
                <a href=\"one\">one</a>   01-Jan-2024 00:00   1\r\n</pre><hr></body></html>";
    for cut in 60..page.len() {
        let listing = read(&page[..cut], "http://h/");
        let is_taken_as_whole =
            listing.ended || (listing.shape == Shape::Generic && !listing.promises_end);
        assert!(!is_taken_as_whole, "{}", &page[..cut]);
    }
    // XML of which nothing but its declaration came.
    let page = Url::parse("http://h/").expect("a URL");
    let declaration = "<?xml version=\"1.0\"?>";
    for cut in ["<", declaration, &format!("{declaration}<ListBucketRes")] {
        let listing = parse(
            cut.as_bytes(),
            Some(b"text/xml"),
            &page,
            PageLimits::default(),
        );
        let listing = listing.expect("a listing that was cut");
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
    let marker = body("<NextMarker>a+b%2Fc.txt</NextMarker>", "");
    // The key is `application/x-www-form-urlencoded`.
    let encoded = "<Delimiter>%2F</Delimiter><EncodingType>url</EncodingType>";
    // A cut listing of all keys of the tree: requested again with a delimiter.
    let whole = "/?list-type=2&delimiter=%2F&prefix=";
    let limited = "/?delimiter=/";
    for (body, page, next) in [
        (marker, limited, "/?delimiter=/&marker=a%2Bb%252Fc%2Etxt"),
        (
            body("", encoded),
            limited,
            "/?delimiter=/&marker=a%20b%2Fc%2Etxt",
        ),
        (body("", ""), "/", whole),
    ] {
        let listing = read(&body, &format!("http://h{page}"));
        assert_eq!(listing.next.as_deref(), Some(next));
        assert!(page != "/" || listing.entries.is_empty());
    }
    // A complete and flat listing needs no second request.
    let flat = body("", "").replace("<IsTruncated>true", "<IsTruncated>false");
    let listing = read(flat, "http://h/");
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
    let listing = read(body, page);
    assert_eq!((listing.shape, listing.ended), (Shape::Azure, true));
    let entries = "f a.txt 3 2024-02-29 23:59:58/1Z\nf a\u{fffe} 1\nd sub";
    assert_eq!(shown(&listing), entries);
    let next = format!("{}&marker=m%2F1", &page["http://h".len()..]);
    assert_eq!(listing.next, Some(next));
    let last = body.replace("<NextMarker>m/1</NextMarker>", "<NextMarker />");
    assert_eq!(read(last, page).next, None);
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
    for (prefix, directory, entries) in [
        ("", "/b/", "f a.txt 3\nd p\nd z"),
        ("p%2F", "/b/p/", "f b.txt 3\nd q"),
        ("p%2Fq%2F", "/b/p/q/", "f c.txt 3"),
        ("z%2F", "/b/z/", "f d.txt 3"),
    ] {
        let listing = read(prefix);
        assert_eq!(listing.directory.as_deref(), Some(directory));
        assert_eq!(shown(&listing), entries, "{prefix}");
        assert!(!leaves_out(&listing), "{prefix}");
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
    let is_read = |body: &str, page: &str| {
        let page = Url::parse(page).expect("a valid page URL");
        parse(body.as_bytes(), None, &page, PageLimits::default()).is_ok()
    };
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
        let page = "http://h/b/?list-type=2&delimiter=%2F&prefix=p%2Fq%2F";
        assert_eq!(is_read(&body, page), is_listing, "{prefix}");
        // A further page, of another prefix.
        let object = format!("<Contents><Key>{prefix}b</Key></Contents><IsTruncated>");
        let body = body.replace("<IsTruncated>", &object);
        let page = "http://h/b/?list-type=2&prefix=p%2Fq%2F&continuation-token=t";
        assert_eq!(is_read(&body, page), is_listing, "{prefix}");
    }
}

/// The text of a link shows that it leads to a directory, or that the reference is a name that was not escaped.
#[test]
fn the_text_of_a_link_says_what_the_link_is() {
    let page = |rows: &str| format!("<html><h1>Index of /x/</h1><ul>{rows}</ul></body></html>");
    let row = |href: &str, text: &str| format!("<li><a href=\"{href}\">{text}</a></li>");
    let read_rows = |rows: &str| read(page(rows), "http://h/x/");
    let rows = [
        row("/x/dir", "dir/"),
        row("/x/a%20b", "<b>a b</b>/"),
        row("/x/other", "more/"),
        row("/x/file", "file"),
        "<li><a href=\"/x/folder\" class=\"icon icon-directory\"><span>folder</span></a></li>"
            .to_owned(),
    ];
    let listing = read_rows(&rows.concat());
    assert_eq!(names(&listing, Directory), ["a b", "dir", "folder"]);
    assert!(!leaves_out(&listing));
    // Of what follows `#` and `?`, the server would see nothing, or another file.
    let file = row("file", "file");
    let hrefs = "why? what?.txt ?help.txt f?sort=new.txt a#b #x a?C=1";
    for name in hrefs.split(' ') {
        for prefix in ["", "./", "/x/", "http://h/x/"] {
            let named = row(&format!("{prefix}{name}"), name);
            let listing = read_rows(&[&*file, &named, &row("?C=N&O=D", "Name")].concat());
            let mut both = names(&listing, Unknown);
            both.sort_by_key(|it| it != "file");
            assert_eq!(both, ["file", name], "{prefix}");
            assert!(!leaves_out(&listing), "{prefix}{name}");
        }
        let listing = read_rows(&[&*file, &row(&format!("/y/{name}"), name)].concat());
        assert_eq!(names(&listing, Unknown), ["file"], "{name}");
    }
    let listing = read_rows(&(row("a%20#1/", "a #1/") + &row("a%20#2", "a #..>")));
    assert_eq!(names(&listing, Directory), ["a #1"]);
    // A sign, and a URL that is shown as it is, are no names.
    for text in ["#", "?", "https://other.example/?page=1", "/help#top"] {
        let listing = read_rows(&[&*file, &row(text, text)].concat());
        assert!(!leaves_out(&listing), "{text}");
    }
    let row = |href: &str, text: &str, size: u8| {
        format!("<a href=\"{href}\">{text}</a>  01-Jan-2024 00:00  {size}\r\n")
    };
    let rows = [
        "<a href=\"../\">../</a>\r\n".to_owned(),
        row("a#b", "a#b", 7),
        row("c", "c", 1),
        row("c#d", "c", 1),
        row("e#f", "f", 1),
    ];
    let page = index(&rows.concat());
    let made = outcome(&page, "http://h/pub/");
    assert_eq!(made, "a%23b c | http://h/pub/e#f");
    assert!(shown(&read(&page, "http://h/pub/")).starts_with("f a#b 7 "));
}

#[test]
fn links_in_noscript_are_entries() {
    for page in [
        "<title>Files</title><script>show()</script><noscript><ul><li><a href=a>a</a></li><li><a href=d/>d/</a></li></ul></noscript>",
        "<html><head><title>Index of /</title></head><noscript><table><tr><td><a href=a>a</a></td></tr><tr><td><a href=d/>d</a></td></tr></table></noscript></html>",
    ] {
        let listing = read(page, "http://h/");
        assert_eq!(shown(&listing), "f a\nd d");
        assert_eq!(listing.doubt, None);
    }
}

#[test]
fn xml_is_not_expanded() {
    let deep = format!("<?xml version='1.0'?><list>{}", "<file>".repeat(100_000));
    assert!(!read(deep, "http://h/").ended);
    let laughs = "<?xml version='1.0'?><!DOCTYPE list [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;\">]><list><file>&b;</file></list>";
    let listing = read(laughs, "http://h/");
    assert_eq!((listing.entries.len(), listing.ended), (0, false));
}

/// `Link: rel=next` in a header has the same rule.
#[test]
fn the_next_part_of_a_page_has_the_same_path() {
    for (link, next) in rows(
        "
        <a rel=next href='?page=2'> => /x/?page=2
        <a href='?page=2' rel='nofollow NEXT'> => /x/?page=2
        <link rel='next' href='/x/?page=2&amp;n=9'> => /x/?page=2&n=9
        <a rel=next href='?page=1'> =>
        <a rel=next href='page2/'> =>
        <a rel=next href='http://other/x/?page=2'> =>
        <a rel=prev href='?page=0'> =>
        <a rel=next>x</a><a href='?page=2'> =>
        ",
    ) {
        let listing = read(&link, "http://h/x/?page=1");
        assert_eq!(listing.next.unwrap_or_default(), next, "{link}");
    }
    // Another next page is named, unless it is an entry or the page itself.
    for (href, made) in rows(
        "
        ?p=2 => a
        2.html => a | http://h/pub/2.html
        /list/2 => a | http://h/list/2
        http://other/pub/?p=2 => a | http://other/pub/?p=2
        a => a
        #top => a
        ",
    ) {
        let link = format!("<link rel=next href='{href}'></head>");
        let page = index(&row("a")).replace("</head>", &link);
        assert_eq!(outcome(&page, "http://h/pub/"), made, "{href}");
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

// ---- links that stand where entries stand

/// The sample pages of servers have no such links.
#[test]
fn nothing_is_left_out_of_a_row_in_silence() {
    for (rows, made) in rows(
        "
        # A proxy shows `/real/` as `/pub/`.
        <a href='/real/'>here</a>¶<a href='/real/f1'>f1</a>¶<a href='/real/d/'>d/</a>¶ => f1 d
        # Not all links lead there.
        <a href='/other/'>up</a>¶<a href='/real/f1'>f1</a>¶<a href='/real/d/'>d/</a>¶ => | http://h/other/ http://h/real/f1 http://h/real/d/
        <a href='a'>a</a>¶<a href='/real/f1'>f1</a>¶ => a | http://h/real/f1
        <a href='a'>a</a>¶<a href='?page=2'>x</a>¶ => a | http://h/pub/?page=2
        <a href='a'>a</a>¶<a href='?dir=sub'>x</a>¶ => a | http://h/pub/?dir=sub
        <a href='a'>a</a>¶<a href='b?dl=1'>x</a>¶ => a | http://h/pub/b?dl=1
        <a href='a'>a</a>¶<a href='a?dl=1'>x</a>¶ => a
        <a href='a'>a</a>¶<a href='?C=M;O=A'>x</a>¶ => a
        <a href='a'>a</a>¶<a href='?lang=de'>x</a>¶ => a
        <a href='a'>a</a>¶<a href='../'>x</a>¶ => a
        <a href='a'>a</a>¶<a href='../other/'>x</a>¶ => a
        <a href='a'>a</a>¶<a href='/'>x</a>¶ => a
        <a href='a'>a</a>¶<a href='http://other/x'>x</a>¶ => a
        <a href='a'>a</a>¶<a href='#top'>x</a>¶ => a
        ",
    ) {
        assert_eq!(outcome(&index(&rows), "http://h/pub/"), made, "{rows}");
    }
    let many = |n| format!("<a href='/r{n}/x'>x</a>\n");
    let many: String = (0..50).map(many).collect();
    let left_out = read(index(&many), "http://h/pub/").left_out;
    assert_eq!((left_out.names().len(), left_out.len()), (50, 50));
}

/// A row with the columns of an entry stands for one, whatever its link is.
#[test]
fn rows_whose_link_leads_nowhere_are_named() {
    let named = "b:1.txt|javascript:go('b.txt')|mailto:b@x|ftp://h/x|http://[::bad/b.txt|http://h:99999/b.txt|#b.txt||../b.txt";
    let others = "../|./|/|?C=M;O=A";
    for (hrefs, is_named) in [(named, true), (others, false)] {
        for href in hrefs.split('|') {
            let listing = read(index(&(row("a") + &row(href))), "http://h/pub/");
            assert_eq!(listing.entries.len(), 1, "{href}");
            assert_eq!(listing.left_out.len(), usize::from(is_named), "{href}");
        }
    }
    // An entry may have further links in its row.
    let page = index(&row("a").replace("x</a>", "x</a> <a href='javascript:info()'>i</a>"));
    assert_eq!(outcome(&page, "http://h/pub/"), "a");
}

#[test]
fn an_empty_listing_says_nothing_else() {
    let up = "<a href=\"../\">../</a>\n";
    for (title, text, is_empty) in [
        ("/pub/", up, true),
        ("/pub", up, true),
        ("/real/pub/", up, true),
        ("/other/", up, false),
        ("/pub/", "Down for maintenance", false),
        ("/pub/", "<p>Please wait while we check your browser", false),
        ("/pub/", "Error: too many connections", false),
    ] {
        let listing = read(index(text).replace("/pub/", title), "http://h/pub/");
        assert_eq!(listing.doubt.is_none(), is_empty, "{title} {text}");
    }
}

/// A proxy that does not rewrite the links of the server behind it.
#[test]
fn rows_that_lead_to_another_server_are_mapped_or_named() {
    let with_base = |base: &str, rows: &str| {
        index(rows).replace("</head>", &format!("<base href=\"{base}\"></head>"))
    };
    let made = |page: &str| outcome(page, "https://h/pub/");
    for server in [
        "http://backend.internal:8080/",
        "http://h/",
        "https://h:444/",
    ] {
        let up = format!("<a href=\"{server}\">../</a>\n");
        let rows = row(&format!("{server}pub/a")) + &row(&format!("{server}pub/d/"));
        assert_eq!(made(&index(&(up + &rows))), "a d", "{server}");
        // The second time without times and sizes.
        let base = format!("{server}pub/");
        for rows in [
            row("a") + &row("d/"),
            "<a href=a>a</a>\n<a href=d/>d/</a>\n".into(),
        ] {
            assert_eq!(made(&with_base(&base, &rows)), "a d", "{server}");
        }
    }
    for (hrefs, expected) in rows(
        "
        # Only one of the rows leads there: nothing shows what is where.
        a http://b/pub/f => a | http://b/pub/f
        # The same name is here, too.
        a http://b/pub/a => a
        # Two servers, or the files of another path.
        http://b/pub/f http://c/pub/g => | http://b/pub/f http://c/pub/g
        http://cdn/x/f http://cdn/x/g => | http://cdn/x/f http://cdn/x/g
        ",
    ) {
        let page = index(&hrefs.split(' ').map(row).collect::<String>());
        assert_eq!(made(&page), expected);
    }
    let page = with_base("http://cdn/x/", "<a href=f>f</a>\n");
    assert_eq!(made(&page), "| http://cdn/x/f");
    // What links that are no rows lead to is no entry.
    let page = index(&(row("a") + "<a href=\"http://b/pub/\">our sponsor</a>\n"));
    assert_eq!(made(&page), "a");
}

/// Entries stand in any element: a link that shows its own name is one, or is named.
#[test]
fn links_that_show_their_names_are_entries_or_named() {
    for (open, close) in [
        ("<li>", "</li>"),
        ("<div>", "</div>"),
        ("<p>", "</p>"),
        ("<dd>", "</dd>"),
        ("<tr><td>", "</td></tr>"),
        ("", "<br>"),
    ] {
        for (links, expected) in rows(
            "
            <a href=/real/f>f</a><a href=/real/d/>d/</a> => f d
            # The page is asked for by another name of the server.
            <a href=own/>own</a><a href=https://h/pub/f>f</a><a href=https://h/pub/g>g</a> => own f g
            # They are the fewer.
            OWN<a href=https://h/pub/f>f</a> => own | https://h/pub/f
            OWN<a href=/real/f>f</a> => own | http://h:81/real/f
            OWN<a href=/real/d/>d/</a> => own | http://h:81/real/d/
            OWN<a href=#/pub/f>f</a> => own | #/pub/f
            OWN<a href=#!/f>f</a> => own | #!/f
            OWN<a href=javascript:go('f.txt')>f.txt</a> => own | javascript:go('f.txt')
            OWN<a href=ftp://h/pub/f>f</a> => own | ftp://h/pub/f
            # No names. A part of the page may be told or not.
            OWN<a href=/about>About us</a> => own
            OWN<a href=javascript:void(0)>f</a> => own
            OWN<a href=https://server.example/dav>dav</a> => own
            OWN<a href=https://h/pub/>pub</a> => own
            OWN<a href=#top>top</a> => own
            <a href=http://a/pub/x>x</a><a href=http://b/pub/y>y</a> => | http://a/pub/x http://b/pub/y
            ",
        ) {
            let links = links.replace("OWN", "<a href=own>own</a>");
            let links = links.replace("<a", &format!("{open}<a"));
            let links = links.replace("</a>", &format!("</a>{close}"));
            let title = "Index of /pub/";
            let head = format!("<html><head><title>{title}</title></head>");
            let page = format!("{head}<body><h1>{title}</h1>{links}</body></html>");
            let made = outcome(&page, "http://h:81/pub/").replace(" | #top", "");
            let is_row = open == "<tr><td>" && links.contains("/about");
            let expected = match is_row {
                true => "own | http://h:81/about",
                false => expected,
            };
            assert_eq!(made, expected, "{links}");
        }
    }
}

/// A header or a footer that names places of the site is no part of a listing with rows.
#[test]
fn navigation_beside_rows_is_no_entry() {
    // Below the root, these are no children of the page.
    let site = "<a href=\"/about\">about</a> <a href=\"/ubuntu/\">ubuntu</a> <a href=\"../README\">README</a>";
    let elsewhere = "<a href=\"ftp://ftp.example.org/\">ftp.example.org</a> <a href=\"https://larsjung.de/h5ai/\">h5ai</a> \
        <a href=\"javascript:sort('Size')\">Size</a> <a href=\"mailto:a@h\">a</a> 2024-01-02 10:00<br>";
    for (row, names) in rows(
        "
        /pub/ <pre><a href='../'>../</a>¶</pre> =>
        /pub/ <pre><a href='x'>x</a>¶</pre> => x
        /pub/ <pre><a href='https://h/pub/x'>x</a>¶<a href='https://h/pub/y'>y</a>¶</pre> => x y
        /pub/ <ul><li><a href='/real/x'>x</a></li></ul> => x
        / <ul><li><a href='x'>x</a></li></ul> => x
        / <table><tr><td><a href='x'>x</a></td></tr></table> => x
        ",
    ) {
        let (path, rows) = row.split_once(' ').expect("a path");
        let site = if path == "/" { "" } else { site };
        let title = format!("Index of {path}");
        let body = format!(
            "<html><head><title>{title}</title></head><body>{site} {elsewhere}<h1>{title}</h1><hr>{rows}<hr></body></html>"
        );
        let page = format!("http://h{path}");
        assert_eq!(outcome(&body, &page), names, "{rows}");
        assert!(!leaves_out(&read(&body, &page)), "{rows}");
    }
    // Links in a list and in text beside a table.
    let page = "<html><head><title>Index of /pub/</title></head><body><ul><li><a href='/about'>us</a></li></ul>\
        <table><tr><td><a href='a'>a</a></td></tr></table><p><a href='/legal'>x</a></p></body></html>";
    assert_eq!(outcome(page, "http://h/pub/"), "a");
}

/// An `nginx` listing whose rows stand where no browser with frames shows anything.
#[test]
fn a_known_server_is_not_believed_where_nothing_is_shown() {
    use web_page::WebPageKind::{Frames, Login, Refresh};
    let listing = index("<a href=\"../\">../</a>\n");
    let form = listing.replace("<hr>", "<form><input type=password></form><hr>");
    let gate = listing.replace("<hr><pre>", "<input type=password><ul><li>");
    let refresh = "<meta http-equiv=refresh content='0;url=/x/'></head>";
    for (page, kind) in [
        (listing.clone(), None),
        (
            format!("<frameset><frame src=x></frameset><noframes>{listing}</noframes>"),
            Some(Frames),
        ),
        (form.clone(), Some(Login)),
        // Beside times and sizes it is part of the frame; beside names alone it is a gate.
        (form.replace("</pre>", &(row("a") + "</pre>")), None),
        (
            gate.replace("</pre>", "<li><a href=help/>help/</a></ul>"),
            Some(Login),
        ),
        (
            listing.replace("</head>", refresh),
            Some(Refresh("/x/".to_owned())),
        ),
    ] {
        let doubt = read(&page, "http://h/pub/").doubt;
        assert_eq!(doubt.map(|it| it.kind), kind, "{page}");
    }
}

/// A search can start there again.
#[test]
fn the_first_page_of_a_directory_has_no_place_in_its_query() {
    for (target, first) in rows(
        "
        /pub/?page=2 => /pub/
        /pub/ => /pub/
        /?list-type=2&prefix=a%2F&continuation-token=x => /?list-type=2&prefix=a%2F
        /?prefix=a%2F&marker=b&delimiter=%2F => /?prefix=a%2F&delimiter=%2F
        ",
    ) {
        assert_eq!(first_page(&target), first);
    }
}

/// What a person sees in a browser is an entry, or is named.
#[test]
fn nothing_that_a_page_shows_is_lost() {
    let title = "<title>Index of /d/</title><h1>Index of /d/</h1>";
    let made = |links: &str| outcome(&format!("<html>{title}{links}</html>"), "http://h/d/");
    let x = "<li><a href=x>x</a></li>";
    for (links, expected) in rows(
        "
        # Elsewhere.
        <li><a href=http://m/y/a.iso>a.iso</a></li> => | http://m/y/a.iso
        <li><a href=/other/a.txt>Report A</a></li> => | http://h/other/a.txt
        X<li><a href=https://cdn/y/e.txt>e.txt</a></li> => x | https://cdn/y/e.txt
        X<li><a href=https://cdn/y/e.txt?s=1>e.txt</a></li> => x | https://cdn/y/e.txt?s=1
        X<li><a href='https://h/d/C#.txt'>C#.txt</a></li> => x | https://h/d/C#.txt
        X<li><a href=s/b.txt>s/b.txt</a></li> => x | http://h/d/s/b.txt
        <td><a href=s/b.txt>b.txt</a><td><a href=s/c.txt>c.txt</a> => | http://h/d/s/b.txt http://h/d/s/c.txt
        # Fragments and queries.
        <a href='a.whl#sha256=0'>a.whl</a><br> => a.whl
        X<li><a href='a.txt?dl=1'>a.txt</a></li> => x | http://h/d/a.txt?dl=1
        X<li><a href='/get?file=a.txt'>a.txt</a></li> => x | http://h/get?file=a.txt
        X<li><a href='?file=a.txt'>a.txt</a></li> => x | http://h/d/?file=a.txt
        X<li><a href='?lang=de'>de</a></li> => x
        # Names that are not escaped, with more or less of them.
        <li><a href='a#b.txt'><i>📄</i> a#b.txt</a></li> => a%23b.txt
        <li><a href='a#b.txt'>a#b.txt <small>12 KB</small></a></li> => a%23b.txt
        <li><a href='what?.txt'>&nbsp;what?.txt</a></li> => what%3F.txt
        <li><a href='a#b.txt'>a#b.t…</a></li> => a%23b.txt
        X<li><a href='b:1.tar'>b:1.tar</a></li> => x | b:1.tar
        # References that lead nowhere.
        X<li><a href='javascript:dl(1)'>a.iso</a></li> => x | javascript:dl(1)
        X<li><a href='#' onclick='dl()'>a.iso</a></li> => x | #
        X<li><a href='data:,a'>a.iso</a></li> => x | data:,a
        X<li><a href='mailto:me@a.iso'>me@a.iso</a></li> => x
        X<a href='#top'>Top</a> => x
        <base href='data:,x'>X => x
        <pre><a href='.//a.txt'>a.txt</a>¶<a href='.//s/'>s/</a>¶</pre> => a.txt s
        # Further pages.
        X<a href='/d?page=2'>2</a> => x | http://h/d?page=2
        X<a href='https://h/d/?page=2'>2</a> => x | https://h/d/?page=2
        X<a href='?C=N;O=A;page=2'>Next</a> => x | http://h/d/?C=N;O=A;page=2
        X<a href='index.php?page=2'>2</a> => x | http://h/d/index.php?page=2
        X<a href='/d/page/2'>2</a> => x | http://h/d/page/2
        X<a href='/list?dir=/d/&page=2'>Next</a> => x | http://h/list?dir=/d/&page=2
        X<a href='/?p=12'>About</a> => x
        ",
    ) {
        assert_eq!(made(&links.replace('X', x)), expected, "{links}");
    }
    let long = format!("{x}<li><a href='.{}b'>b</a></li>", "/".repeat(1 << 20));
    assert_eq!(made(&long), "x b");
    // Nearly all lead to one place.
    let rows = |prefix: &str, count: usize| -> String {
        let row = |n| format!("<li><a href={prefix}f{n}.txt>f{n}.txt</a></li>");
        (0..count).map(row).collect()
    };
    let all = |prefix: &str, count: usize| -> String {
        let names: Vec<_> = (0..count).map(|n| format!("{prefix}f{n}.txt")).collect();
        names.join(" ")
    };
    for prefix in ["https://h/d/", "/real/"] {
        let other = "<li><a href=http://mirror/y/c.txt>c.txt</a></li>";
        let expected = all("", 20) + " | http://mirror/y/c.txt";
        assert_eq!(made(&(rows(prefix, 20) + other)), expected);
    }
    // Files in full, and more directories that are not.
    let both = rows("", 5) + &rows("https://h/d/g", 3);
    assert_eq!(made(&both), format!("{} {}", all("", 5), all("g", 3)));
    // Beside an empty listing of a known server, such links lead to documents.
    let empty = "<html><head><title>Index of /d/</title></head><body><h1>Index of /d/</h1><hr><pre><a href=\"../\">../</a>\n</pre>\
        <p><a href=https://example.org/terms.pdf>Terms</a> <a href=/feed.xml>RSS</a></p>\
        <ul><li><a href=https://t.example/d.torrent>d.torrent</a></li></ul></body></html>";
    let listing = read(empty, "http://h/d/");
    assert!(listing.entries.is_empty() && !leaves_out(&listing) && listing.doubt.is_none());
}
