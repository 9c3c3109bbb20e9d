//! Servers that fail once, at random, or always. Every loss is reported, nothing is found twice, and each search ends.
use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::common::{Answer, Script, find, index, lines, page, response, stderr};

fn busy() -> Vec<u8> {
    response(503, "Retry-After: 1\r\n", "")
}

/// The first half of a response.
fn cut(whole: &[u8]) -> Vec<u8> {
    whole[..whole.len() / 2].to_vec()
}

fn html(body: &str) -> Vec<u8> {
    response(200, "Content-Type: text/html\r\n", body)
}

/// A mirror with names as on real servers. The first response for each `once` directory fails.
fn world() -> Script {
    let asked: Mutex<BTreeSet<String>> = Mutex::default();
    Script::start(move |request| -> Answer {
        let is_first = asked.lock().expect("no panic").insert(request.to_owned());
        match request {
            "GET /pub/" => {
                let mut page = index(&[
                    "a%20b/",
                    "50%25/",
                    "caf%C3%A9/",
                    "tom&#39;s/",
                    "/pub/rooted/",
                    "unmarked/",
                    "once-500/",
                    "once-503/",
                    "once-reset/",
                    "once-cut/",
                    "once-short/",
                ]);
                // Other spellings of the same names, and links to other directories.
                for again in ["./a%20b/", "/pub/50%25/", "caf%c3%a9/", "/", "../other/"] {
                    let row = format!("<a href=\"{again}\">x</a>\r\n</pre>");
                    page = page.replacen("</pre>", &row, 1);
                }
                html(&page).into()
            }
            "GET /pub/unmarked/" => html(
                "<title>Index</title><a href=.>.</a><a href=sub>sub</a><a href=plain>plain</a>",
            )
            .into(),
            "HEAD /pub/unmarked/sub" => {
                response(301, "Location: /pub/unmarked/sub/\r\n", "").into()
            }
            "HEAD /pub/unmarked/plain" => response(200, "", "").into(),
            "GET /pub/once-500/" if is_first => response(500, "", "").into(),
            "GET /pub/once-503/" if is_first => busy().into(),
            "GET /pub/once-reset/" if is_first => Answer::Reset,
            "GET /pub/once-cut/" if is_first => cut(&page(&["f"])).into(),
            // The page is cut, but its Content-Length is right.
            "GET /pub/once-short/" if is_first => {
                html("<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n").into()
            }
            _ if request.starts_with("GET /pub/") => page(&["f", "q%3Fx%23.txt"]).into(),
            _ => response(404, "", "").into(),
        }
    })
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice() {
    let server = world();
    let output = find(&[&server.url("/pub/")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut expected: Vec<String> = ["", "unmarked/", "unmarked/plain"]
        .map(|path| server.url(&format!("/pub/{path}")))
        .to_vec();
    for directory in [
        "a%20b",
        "50%25",
        "caf%C3%A9",
        "tom's",
        "rooted",
        "unmarked/sub",
        "once-500",
        "once-503",
        "once-reset",
        "once-cut",
        "once-short",
    ] {
        for name in ["", "f", "q%3Fx%23.txt"] {
            expected.push(server.url(&format!("/pub/{directory}/{name}")));
        }
    }
    expected.sort();
    assert_eq!(lines(&output.stdout), expected);
    // 13 directories, 2 names that could be directories, and 5 repeated requests.
    assert_eq!(server.requests().len(), 13 + 2 + 5);
}

/// A page that lists no directory is not an empty directory: what it is is told, and nothing is known about the directory.
#[test]
fn a_page_that_is_no_listing_is_not_an_empty_directory() {
    let server = Script::start(|request| match request {
        "GET /pub/" => page(&["challenge/", "hidden/", "real/"]),
        "GET /pub/challenge/" => {
            html("<title>Just a moment...\u{1b}[2J</title><script>go()</script></html>")
        }
        "GET /pub/hidden/" => {
            html("<h1>Welcome</h1><a href=about.html>About us</a><a href=/shop/>Shop</a></html>")
        }
        "GET /pub/real/" => page(&[]),
        "HEAD /pub/hidden/about.html" => response(200, "", ""),
        _ => response(404, "", ""),
    });
    let start = server.url("/pub/");
    let output = find(&[&start]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for line in [
        "/pub/challenge/: not a directory listing: a web page, titled \"Just a moment...\\u{1b}[2J\"",
        "/pub/hidden/: not a directory listing: a web page",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    // Only what is known to be empty is empty.
    let empty = find(&[&start, "-empty"]);
    assert_eq!(lines(&empty.stdout), [server.url("/pub/real/")]);
    let accepted = find(&[&start, "--accept-pages"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", stderr(&accepted));
    let about = server.url("/pub/hidden/about.html");
    assert!(lines(&accepted.stdout).contains(&about));
}

#[test]
fn a_listing_of_two_byte_characters_is_read() {
    let listing =
        "\u{feff}<title>Index of /</title><a href=\"caf\u{e9}.txt\">caf\u{e9}.txt</a></html>";
    let body: Vec<u8> = listing.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let server = Script::start(move |request| match request {
        "GET /" => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat()
        }
        "HEAD /caf%C3%A9.txt" => response(200, "", ""),
        _ => response(404, "", ""),
    });
    let output = find(&[&server.url("/")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(lines(&output.stdout).contains(&server.url("/caf%C3%A9.txt")));
}
