//! A page that is read while it arrives gives what the whole page gives.

use super::*;
use crate::find::listing::{Entry, EntryKind, parse};

fn page() -> Url {
    Url::parse("http://h/pub/").expect("a URL")
}

/// Reads a page in pieces of this size.
fn streamed(body: &[u8], content_type: &str, size: usize) -> Result<Listing, StreamError> {
    let limits = PageLimits::default();
    let mut stream = ListingStream::new(&page(), Some(content_type.as_bytes()), limits);
    for piece in body.chunks(size) {
        stream.feed(piece)?;
    }
    stream.finish()
}

fn entries(listing: &mut Listing) -> Vec<Entry> {
    let mut entries = std::mem::take(&mut listing.entries);
    if let Some(spool) = &mut listing.spool {
        while let Some(entry) = spool.read().expect("readable") {
            entries.push(entry);
        }
    }
    entries
}

/// More entries than stay in memory.
const ROWS: usize = 40_000;

fn nginx(rows: usize) -> String {
    let mut body =
        "<html>\r\n<h1>Index of /pub/</h1><hr><pre><a href=\"../\">../</a>\r\n".to_owned();
    for n in 0..rows {
        body += &match n % 10 {
            0 => format!("<a href=\"d{n}/\">d{n}/</a>     29-Feb-2024 23:59      -\r\n"),
            _ => format!("<a href=\"f%20{n}\">f {n}</a>     29-Feb-2024 23:59     {n}\r\n"),
        };
    }
    body + "</pre><hr></body>\r\n</html>\r\n"
}

fn json(rows: usize) -> String {
    let row = |n: usize| {
        format!(
            "{{ \"name\":\"f{n} \\\"}}]\\u00e9\", \"type\":\"file\", \"mtime\":\"Sun, 02 Jan 2011 03:04:05 GMT\", \"size\":{n} }}"
        )
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("[\r\n{}\r\n]\r\n", rows.join(",\r\n"))
}

/// Dates whose order only a late row proves, and names without a mark.
fn table(rows: usize) -> String {
    let mut body = "<title>Index of /pub/</title><table>".to_owned();
    for n in 0..rows {
        let day = if n == rows - 1 { 20 } else { 2 };
        body += &format!(
            "<tr><td><a href=f{n}>f{n}</a></td><td>{day}/1/2024 3:25 AM</td><td>{n} KB</td></tr>"
        );
    }
    body + "</table></html>"
}

#[test]
fn a_stream_gives_what_the_whole_page_gives() {
    let jsonp = format!("/* callback */\r\nf({});", json(ROWS).trim());
    for (body, content_type) in [
        (nginx(ROWS), "text/html"),
        (json(ROWS), "application/json"),
        (jsonp, "application/javascript"),
        (table(ROWS), "text/html; charset=utf-8"),
    ] {
        let whole = parse(
            body.as_bytes(),
            Some(content_type.as_bytes()),
            &page(),
            PageLimits::default(),
        );
        let mut whole = whole.expect("a listing");
        let expected = entries(&mut whole);
        assert_eq!(expected.len(), ROWS, "{content_type}");
        for size in [997, 65_536] {
            let mut listing = streamed(body.as_bytes(), content_type, size).expect("a listing");
            assert!(listing.spool.is_some() && listing.entries.is_empty());
            assert_eq!(
                (listing.shape, listing.ended, listing.len()),
                (whole.shape, true, ROWS)
            );
            assert_eq!(listing.doubt, None);
            assert!(entries(&mut listing) == expected, "{content_type} {size}");
        }
        let cut = &body.as_bytes()[..body.len() - 20];
        let cut = streamed(cut, content_type, 65_536).expect("a part");
        assert!(!cut.ended, "{content_type}");
    }
}

#[test]
fn a_name_counts_once_however_far_apart_its_links_are() {
    let rows = "<a href='d'>d</a>\n<a href='d/'>d/</a>\n";
    let body = nginx(ROWS);
    let end = body.rfind("</pre>").expect("there");
    let again = "<a href=\"d0/\">d0/</a> 29-Feb-2024 23:59 -\r\n<a href=\"f%201\">x</a> 29-Feb-2024 23:59 1\r\n";
    let body = format!("{}{again}{rows}{}", &body[..end], &body[end..]);
    let mut listing = streamed(body.as_bytes(), "text/html", 4096).expect("a listing");
    // A file and a directory may have the same name.
    let entries = entries(&mut listing);
    assert_eq!(entries.len(), ROWS + 2);
    let kinds = entries.iter().filter(|entry| entry.name == b"d");
    let kinds: Vec<EntryKind> = kinds.map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::File, EntryKind::Directory]);
}

#[test]
fn a_large_page_that_is_no_listing_is_named() {
    let mut body = "<title>News</title>".to_owned();
    while body.len() < 2 * BEGINNING {
        body += "<p>Something happened. <a href='/more'>Read on</a></p>";
    }
    let listing = streamed(body.as_bytes(), "text/html", 8192).expect("a page");
    let doubt = listing.doubt.expect("no listing").to_string();
    assert_eq!(doubt, "a web page, titled \"News\"");
    let text = vec![b'x'; 2 * BEGINNING];
    let error = streamed(&text, "application/json", 8192).map(|_| ());
    assert!(matches!(
        error,
        Err(StreamError::Page(PageError::NotAListing))
    ));
}

#[test]
fn limits_hold() {
    let limits = PageLimits {
        streamed_links: 30_000,
        streamed_bytes: 1 << 20,
        ..PageLimits::default()
    };
    let feed = |body: &str, limits| {
        let mut stream = ListingStream::new(&page(), Some(b"text/html"), limits);
        let mut pieces = body.as_bytes().chunks(65_536);
        pieces.try_for_each(|piece| stream.feed(piece))
    };
    let body = nginx(ROWS);
    assert!(matches!(
        feed(&body, limits),
        Err(StreamError::TooLarge(n)) if n == 1 << 20
    ));
    let limits = PageLimits {
        streamed_bytes: u64::MAX,
        ..limits
    };
    assert!(matches!(
        feed(&body, limits),
        Err(StreamError::Page(PageError::TooManyLinks))
    ));
    let broken = format!("{}, nonsense", &json(10_000).trim_end_matches("]\r\n"));
    let listing = streamed(broken.as_bytes(), "application/json", 4096).expect("a part");
    assert_eq!((listing.len(), listing.ended), (10_000, false));
}
