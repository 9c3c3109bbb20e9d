//! `crawler-cli find --links page`: links of web pages below the start.

use std::process::Output;
use std::sync::OnceLock;

use crate::common::{Script, find, lines, response, stderr};

fn html(body: &str) -> Vec<u8> {
    let body = format!("<!doctype html><html><body>{body}</body></html>");
    response(200, "Content-Type: text/html\r\n", body)
}

fn text(body: &str) -> Vec<u8> {
    response(200, "Content-Type: text/plain\r\n", body)
}

fn moved(to: &str) -> Vec<u8> {
    response(301, &format!("Location: {to}\r\n"), "")
}

/// Runs a search that follows pages. Returns its results without the address of the server, its standard error and its
/// exit code.
fn pages(site: &Script, start: &str, args: &[&str]) -> (Vec<String>, String, Option<i32>) {
    searched(
        site,
        &[&[&site.url(start), "--links", "page"], args].concat(),
    )
}

/// Runs a search without the summary line.
fn quiet(args: &[&str]) -> Output {
    find(&[&["--summary", "none"], args].concat())
}

fn searched(site: &Script, args: &[&str]) -> (Vec<String>, String, Option<i32>) {
    let output = quiet(args);
    let host = site.url("");
    let errors = stderr(&output).replace(&host, "");
    let found = lines(&output.stdout);
    let found = found.into_iter().map(|line| line.replace(&host, ""));
    (sorted(found.collect()), errors, output.status.code())
}

fn sorted(mut requests: Vec<String>) -> Vec<String> {
    requests.sort();
    requests
}

#[test]
fn all_links_below_the_start_are_followed_once() {
    let site = Script::start(|request| match request {
        "GET /docs/" => html(
            "<a href=guide>1</a><a href='guide#part'>2</a><a href=/docs/api/>3</a><a href='../up.html'>up</a>\
             <a href=//elsewhere.example/docs/>out</a><a href='guide?v=2&amp;w=3'>4</a><a href='?C=N;O=D'>sort</a>\
             <img src=logo.png><script src=/docs/x.js></script><a href=manual.pdf>5</a><a href=mailto:a@b>m</a>",
        ),
        "GET /docs/guide" => {
            html("<base href=/docs/deep/><a href=page.html>6</a><a href=/docs/>home</a>")
        }
        "GET /docs/guide?v=2&w=3" => html("<a href=./>home</a><a href=caf%c3%a9>7</a>"),
        "GET /docs/api/" => {
            html("<iframe src=frame.php></iframe><a href=v1.2/>8</a><a href=../guide>9</a>")
        }
        "GET /docs/deep/page.html" | "GET /docs/api/frame.php" | "GET /docs/caf%C3%A9" => html(""),
        // The content type decides, not the name.
        "HEAD /docs/api/v1.2/" => panic!("a directory is no file"),
        "GET /docs/api/v1.2/" => text("not a page, <a href=no>no</a>"),
        "HEAD /docs/manual.pdf" => response(200, "Content-Type: application/pdf\r\n", ""),
        other => panic!("{other} was asked for"),
    });
    let (found, errors, code) = pages(&site, "/docs/", &[]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    assert_eq!(
        found,
        [
            "/docs/",
            "/docs/api/",
            "/docs/api/frame.php",
            "/docs/api/v1.2/",
            "/docs/caf%C3%A9",
            "/docs/deep/page.html",
            "/docs/guide",
            "/docs/guide?v=2&w=3",
            "/docs/logo.png",
            "/docs/manual.pdf",
            "/docs/x.js",
        ]
    );
    assert_eq!(site.requests().len(), 9, "{:?}", site.requests());
}

#[test]
fn a_name_that_could_be_a_page_is_probed_first() {
    let site = Script::start(|request| {
        match request {
        "GET /" => html("<a href=release-1.2>1</a><a href=big.iso>2</a><a href=old.iso>3</a><a href=no.iso>4</a>"),
        "HEAD /release-1.2" => response(200, "Content-Type: text/html\r\n", ""),
        "GET /release-1.2" => html("<a href=notes>5</a>"),
        "GET /notes" => html(""),
        "HEAD /big.iso" => {
            b"HTTP/1.1 200 OK\r\nContent-Length: 7000000000\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n".to_vec()
        }
        // As long as HEAD has not succeeded on this server, GET follows HEAD.
        "HEAD /no.iso" | "HEAD /old.iso" | "GET /no.iso" | "GET /old.iso" => response(404, "", ""),
        other => panic!("{other} was asked for"),
    }
    });
    let (found, errors, code) = pages(&site, "/", &["-printf", "%p %s\n"]);
    assert_eq!(code, Some(1));
    let broken = lines(errors.as_bytes());
    assert_eq!(broken.len(), 2, "{errors}");
    assert!(
        broken[0].contains("/no.iso") && broken[0].contains("404"),
        "{errors}"
    );
    assert!(broken[1].contains("/old.iso"), "{errors}");
    assert_eq!(
        found[1..],
        ["/big.iso 7000000000", "/notes 41", "/release-1.2 60"]
    );
}

#[test]
fn redirects_are_followed_within_the_search_and_found_where_they_leave_it() {
    let site = Script::start(|request| match request {
        "GET /a/" => html(
            "<a href=new>1</a><a href=old>2</a><a href=out>3</a><a href=x>4</a><a href=self>5</a>",
        ),
        "GET /a/new" => html(""),
        "GET /a/old" => moved("/a/new#part"),
        "GET /a/out" => moved("/b/"),
        "GET /a/x" => moved("/a/y"),
        "GET /a/y" => moved("x"),
        "GET /a/self" => moved("/a/self"),
        other => panic!("{other} was asked for"),
    });
    let (found, errors, code) = pages(&site, "/a/", &[]);
    assert_eq!(found, ["/a/", "/a/new", "/a/out"]);
    assert_eq!(code, Some(1));
    let loops = lines(errors.as_bytes());
    assert_eq!(loops.len(), 2, "{errors}");
    assert!(
        loops
            .iter()
            .all(|line| line.contains("redirects to itself")),
        "{errors}"
    );
}

#[test]
fn links_of_pruned_pages_are_not_followed() {
    let site = Script::start(|request| match request {
        "GET /" => html("<a href=a>1</a><a href=b>2</a><a href=c/>3</a><a href=d.html>4</a>"),
        "GET /a" | "GET /b" | "GET /c/" => html("<a href=hidden>5</a>"),
        "GET /d.html" => html("<a href=e.html>6</a>"),
        "GET /e.html" => html(""),
        other => panic!("{other} was asked for"),
    });
    let (found, _, code) = pages(&site, "/", &["-name", "[abc]", "-prune", "-o", "-print"]);
    assert_eq!(
        (found, code),
        (
            sorted(vec!["/".into(), "/d.html".into(), "/e.html".into()]),
            Some(0)
        )
    );
}

#[test]
fn depth_kind_and_parser_of_pages_are_reported() {
    let site = Script::start(|request| match request {
        "GET /s/" => html("<a href=d/>1</a><a href=d/e/f>2</a><img src=i.png>"),
        "GET /s/d/" | "GET /s/d/e/f" => html(""),
        other => panic!("{other} was asked for"),
    });
    let (found, ..) = pages(&site, "/s/", &["-maxdepth", "1", "-printf", "%d %y %p\n"]);
    assert_eq!(found, ["0 d /s/", "1 d /s/d/", "1 f /s/i.png"]);
    let (found, ..) = pages(&site, "/s/", &["-type", "f", "--json"]);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|line| line.contains(r#""listing":"page""#)),
        "{found:?}"
    );
}

#[test]
fn cut_pages_are_requested_again() {
    let site = Script::start({
        let first = OnceLock::new();
        move |request| {
            match request {
            "GET /" if first.set(()).is_ok() => {
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html><a href=a>1</a>".to_vec()
            }
            "GET /" => b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html><a href=a>1</a><a href=b>2</a></HTML>\n".to_vec(),
            "GET /a" | "GET /b" => html(""),
            other => panic!("{other} was asked for"),
        }
        }
    });
    let (found, _, code) = pages(&site, "/", &[]);
    assert_eq!(
        (found, code),
        (sorted(vec!["/".into(), "/a".into(), "/b".into()]), Some(0))
    );
}

#[test]
fn pages_that_others_embed_are_read_and_found_once() {
    let site = Script::start(|request| match request {
        "GET /" => html("<embed src=x.html><a href=b.html>1</a>"),
        // A second link to x.html, after the first was found.
        "GET /b.html" => html("<a href=x.html>2</a>"),
        "GET /x.html" => html("<a href=y.html>3</a>"),
        "GET /y.html" => html("<embed src=b.html>"),
        other => panic!("{other} was asked for"),
    });
    let (found, errors, code) = pages(&site, "/", &[]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    assert_eq!(found, ["/", "/b.html", "/x.html", "/y.html"]);
}

#[test]
fn pages_are_never_empty_and_their_links_are_followed() {
    let site = Script::start(|request| match request {
        "GET /" => html("<a href=d/>1</a><a href=f.html>2</a>"),
        "GET /d/" => html("<a href=g.html>3</a>"),
        "GET /f.html" => response(200, "Content-Type: text/html\r\n", ""),
        "GET /d/g.html" => html(""),
        other => panic!("{other} was asked for"),
    });
    let (found, _, code) = pages(&site, "/", &["-empty"]);
    assert_eq!((found, code), (vec!["/f.html".to_owned()], Some(0)));
    let (found, ..) = pages(&site, "/", &["!", "-empty"]);
    assert_eq!(found, ["/", "/d/", "/d/g.html"]);
}

#[test]
fn a_path_that_begins_with_two_slashes_is_no_host() {
    let site = Script::start(|request| match request {
        "GET //pub/" => html("<a href=x.html>1</a><a href=//pub/y>2</a>"),
        "GET //pub/x.html" => html(""),
        other => panic!("{other} was asked for"),
    });
    let (found, errors, code) = pages(&site, "//pub/", &[]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    assert_eq!(found, ["//pub/", "//pub/x.html"]);
    // A bucket whose listing has an empty prefix, that of its root.
    let bucket = "<ListBucketResult><Prefix></Prefix><Delimiter>/</Delimiter><IsTruncated>false</IsTruncated>\
        <CommonPrefixes><Prefix>x/</Prefix></CommonPrefixes></ListBucketResult>";
    let site = Script::start(move |request| match request {
        "GET //aaaa/" => response(200, "Content-Type: application/xml\r\n", bucket),
        _ => response(404, "", ""),
    });
    let (found, _, code) = searched(&site, &[&site.url("//aaaa/")]);
    assert_eq!(code, Some(1));
    assert_eq!(found, ["//aaaa/", "//aaaa/x/"]);
}

#[test]
fn without_head_the_first_byte_of_possible_files_is_requested() {
    let site = Script::start(|request| match request {
        "GET /" => html("<a href=big.iso>1</a><a href=v1.2>2</a>"),
        "HEAD /big.iso" | "HEAD /v1.2" => response(405, "", ""),
        "GET /big.iso" => response(
            206,
            "Content-Type: a/b\r\nContent-Range: bytes 0-0/7000000000\r\n",
            "x",
        ),
        "GET /v1.2" => html("<a href=page>3</a>"),
        "GET /page" => html(""),
        other => panic!("{other} was asked for"),
    });
    let (found, errors, code) = pages(&site, "/", &["-type", "f", "-printf", "%p %s\n"]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    assert_eq!(found, ["/big.iso 7000000000", "/page 41", "/v1.2 59"]);
}

// ---- links without end

/// A calendar.
#[test]
fn pages_without_end_have_an_end_that_is_named() {
    let server = Script::start(|request| {
        let month = request
            .rsplit('=')
            .next()
            .and_then(|n| n.parse::<u64>().ok());
        html(&format!("<a href='?m={}'>next</a>", month.unwrap_or(1) + 1))
    });
    let start = server.url("/calendar/");
    let output = find(&[&start, "--links", "page", "--max-pages", "30"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(server.requests().len(), 31);
    let reason = "links lead to more than 30 pages of this host (--max-pages)";
    assert_eq!(text.matches(reason).count(), 1, "{text}");
    assert!(text.contains("; 1 UNREAD"), "{text}");
}

#[test]
fn a_broken_link_is_told_with_its_page() {
    let server = Script::start(|request| match request {
        "GET /" => html("<a href=a/>a</a>"),
        "GET /a/" => html("<a href=gone.html>x</a>"),
        _ => response(404, "", ""),
    });
    let output = find(&[&server.url("/"), "--links", "page"]);
    let (gone, page) = (server.url("/a/gone.html"), server.url("/a/"));
    let line = format!("crawler-cli find: {gone}: the server answered 404 (linked from {page})\n");
    assert!(stderr(&output).contains(&line), "{}", stderr(&output));
}

#[test]
fn links_that_robots_may_not_follow_are_left_out() {
    let server = Script::start(|request| match request {
        "GET /" => html("<a href=a.html rel=nofollow>a</a><a href=b/>b</a>"),
        "GET /b/" => {
            html("<meta name=robots content='noindex,nofollow'><a href=c.html>c</a><img src=d.png>")
        }
        _ => html(""),
    });
    let start = server.url("/");
    let found =
        |paths: &[&str]| -> Vec<String> { paths.iter().map(|path| server.url(path)).collect() };
    let output = find(&[&start, "--links", "page"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output.stdout), found(&["/", "/b/", "/b/d.png"]));
}
