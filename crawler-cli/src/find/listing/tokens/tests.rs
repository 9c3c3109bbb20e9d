//! For every page that [`scan`] accepts, [`scan`] and [`read`] give the same stream.

use proptest::prelude::*;

use super::*;

/// The recorded stream. Adjacent texts are joined.
#[derive(Debug, Default, Eq, PartialEq)]
struct Stream {
    events: Vec<(char, Vec<u8>, Vec<u8>)>,
    hidden: bool,
}

impl Events for Stream {
    fn open(&mut self, name: &[u8]) {
        self.hidden |= matches!(name, b"script" | b"style" | b"title");
        self.events.push(('<', name.to_vec(), Vec::new()));
    }

    fn attribute(&mut self, name: &[u8], value: &[u8]) {
        self.events.push(('=', name.to_vec(), value.to_vec()));
    }

    fn close(&mut self, name: &[u8]) {
        self.hidden &= !matches!(name, b"script" | b"style" | b"title");
        self.events.push(('>', name.to_vec(), Vec::new()));
    }

    fn wants_text(&self) -> bool {
        !self.hidden
    }

    fn text(&mut self, text: &[u8]) {
        match self.events.last_mut() {
            Some(('.', _, before)) => before.extend_from_slice(text),
            _ => self.events.push(('.', Vec::new(), text.to_vec())),
        }
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// Returns whether the page is plain. Panics if it is plain and the two streams differ.
fn compare(body: &[u8]) -> bool {
    let (mut scanned, mut reference) = (Stream::default(), Stream::default());
    let is_plain = scan(body, &mut scanned).is_ok();
    if is_plain {
        read(body, &mut reference);
        assert_eq!(scanned.events, reference.events, "{}", body.escape_ascii());
    }
    is_plain
}

#[test]
fn captured_pages_are_plain() {
    macro_rules! pages {
        ($($name:literal),*) => {
            [$(($name, include_bytes!(concat!("../fixtures/", $name, ".html")).as_slice())),*]
        };
    }
    for (name, body) in pages![
        "apache-plain",
        "apache-fancy",
        "apache-fancydeb",
        "apache-icons",
        "apache-table",
        "apache-styled",
        "apache-sub",
        "nginx-exact",
        "nginx-utf8",
        "lighttpd",
        "fancyindex",
        "caddy",
        "mini_httpd",
        "python"
    ] {
        // mini_httpd does not escape the names in its link texts.
        assert_eq!(compare(body), name != "mini_httpd", "{name}");
        for cut in (0..body.len()).step_by(997) {
            compare(&body[..cut]);
        }
    }
}

#[test]
fn other_pages_are_rejected() {
    for (body, is_plain) in [
        ("<a href=x>y</a>", true),
        ("<A HREF=\"x\" >y</A >", true),
        ("<a href='x&amp;y&order=asc&#x27;'>y</a>", true),
        ("<br/><img src=x />", true),
        ("a & b &; &nbsp;c\r\nd\re", true),
        ("<!-- <a href=no> --><p>", true),
        ("<!doctype html><?xml version='1.0'?><p>", true),
        (
            "<script>if (a</b>) '</scripty>' <!-- x --></script ><p>",
            true,
        ),
        ("<STYLE>a{content:\"</p>\"}</Style><p>", true),
        ("<title>a</b></title>", true),
        ("<p>a<!-- never ends", true),
        ("a < b", false),
        ("<p", false),
        ("<a href=\"x", false),
        ("</a href=x>", false),
        ("</ a>", false),
        ("<![CDATA[x]]>", false),
        ("<!--> <a href=x> -->", false),
        ("<!-- --!> <a href=x> -->", false),
        ("<script><!-- <script> </script> --></script>", false),
        ("<textarea><a href=x></textarea>", false),
        ("&copy 2024", false),
        ("<a href='?a&copy'>", false),
        ("&#0;", false),
        ("<a =x>", false),
        ("<a href=>", false),
        ("<a\0b>", false),
    ] {
        assert_eq!(compare(body.as_bytes()), is_plain, "{body}");
    }
}

/// Pieces of pages; their concatenations are plain or not.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "<a href=\"", "<A HREF='", "<a href=", "\">", "'>", ">", "</a>", "</A >", "<td class=\"s\">", "</td>",
            "<pre>", "</pre>", "<hr>", "<br/>", "<br />", "<img src=\"/i.gif\" alt=\"[DIR]\">", "<tr>", "</tr>",
            "<title>", "</title>", "<script>", "</script>", "<style>", "</style", "<!-- ", "-->", "--!>", "<!", "<?",
            "<!DOCTYPE html>", "</", "<", ">", "\"", "'", "=", "/", "&", ";", "&amp;", "&nbsp;", "&#39;", "&#x3c;",
            "&#x80;", "&lt", "&copy;", "&order=", "&#", "\r\n", "\r", "\n", " ", "\t", "\0", "-", "!", "]]>",
            "<![CDATA[", "<time datetime=\"2024-02-29T23:59:58Z\">", "../", "x.txt", "sub/", "?C=N;O=D", "é",
            "29-Feb-2024 23:59", "1.0K", "<textarea>", "<a name=x href=y>", "a=b", "<b", "a",
        ]).prop_map(str::to_owned),
        1 => "[a-z<>&;'\"=/! \\-]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn both_give_the_same_stream(pieces in prop::collection::vec(piece(), 0..24)) {
        compare(pieces.concat().as_bytes());
    }
}
