//! `crawler-cli find` beyond listings: links of web pages, sitemaps, and redirects to other hosts.

mod common;

use std::io::Write as _;
use std::process::Output;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use common::{Script, crawler, find, lines, page, response, stderr};
use flate2::Compression;
use flate2::write::GzEncoder;

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
fn links_of_pruned_and_excluded_pages_are_not_followed() {
    let site = Script::start(|request| match request {
        "GET /" => html("<a href=a>1</a><a href=b>2</a><a href=c/>3</a><a href=d.html>4</a>"),
        "GET /a" => html("<a href=hidden>5</a>"),
        "GET /d.html" => html("<a href=e.html>6</a>"),
        "GET /e.html" => html(""),
        other => panic!("{other} was asked for"),
    });
    let exclude = ["--exclude", "*/b", "--exclude", "*/c/"];
    let (found, _, code) = pages(
        &site,
        "/",
        &[&exclude[..], &["-name", "a", "-prune", "-o", "-print"]].concat(),
    );
    assert_eq!(
        (found, code),
        (
            sorted(vec!["/".into(), "/d.html".into(), "/e.html".into()]),
            Some(0)
        )
    );
    // Pages that are not included are still read for their links.
    let include = ["--include", "*/e.html", "-type", "f", "-name", "*.html"];
    let (found, ..) = pages(
        &site,
        "/",
        &[&exclude[..], &["--exclude", "*/a"], &include].concat(),
    );
    assert_eq!(found, ["/e.html"]);
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

/// Two hosts whose pages link to each other.
fn two_hosts() -> (Script, Arc<OnceLock<String>>, Script) {
    let other = Arc::new(OnceLock::new());
    let first = Script::start({
        let other = Arc::clone(&other);
        move |request| match request {
            "GET /robots.txt" => response(404, "", ""),
            "GET /in/" => {
                let other: &String = other.get().expect("it is up");
                html(&format!(
                    "<a href={other}/>1</a><a href={other}/private/x>2</a><img src={other}/i.png>"
                ))
            }
            "GET /in/back" => html(""),
            unknown => panic!("{unknown} was asked for"),
        }
    });
    let second = Script::start({
        let first = first.url("");
        move |request| match request {
            "GET /robots.txt" => text("User-agent: *\nDisallow: /private/\n"),
            "GET /" => html(&format!(
                "<a href={first}/in/back>1</a><a href={first}/out>2</a><a href=sub/page>3</a>"
            )),
            "GET /sub/page" => html(""),
            unknown => panic!("{unknown} was asked for"),
        }
    });
    other.set(second.url("")).expect("not yet");
    (first, other, second)
}

#[test]
fn other_hosts_are_searched_only_if_allowed() {
    for (args, spans) in [
        (&[][..], false),
        (&["--domains", "example.org"], false),
        (&["--span-hosts"], true),
        (&["--domains", "127.0.0.1"], true),
    ] {
        let (first, _, second) = two_hosts();
        let start = first.url("/in/");
        let output = find(&[&[start.as_str(), "--links", "page", "--robots=on"], args].concat());
        let mut expected = vec![start];
        if spans {
            let of_second = ["/", "/i.png", "/sub/page"].map(|path| second.url(path));
            expected.extend(of_second.into_iter().chain([first.url("/in/back")]));
            let errors = stderr(&output);
            assert!(
                errors.contains("/private/x: not read: robots.txt"),
                "{errors}"
            );
            assert_eq!(output.status.code(), Some(1));
        } else {
            assert_eq!(second.requests(), [""; 0], "{args:?}");
            assert_eq!(output.status.code(), Some(0));
        }
        assert_eq!(lines(&output.stdout), sorted(expected), "{args:?}");
    }
}

#[test]
fn a_start_and_a_directory_that_were_moved_are_searched_where_they_are() {
    let second = Script::start(|request| match request {
        "GET /mirror/" => page(&["a/", "x"]),
        "GET /mirror/a/" => page(&["y"]),
        "GET /sub/" => page(&["z"]),
        other => panic!("{other} was asked for"),
    });
    let to = second.url("");
    let first = Script::start(move |request| match request {
        "GET /pub/" => moved(&format!("{to}/mirror/")),
        "GET /top/" => page(&["sub/"]),
        "GET /top/sub/" => moved(&format!("{to}/sub/")),
        other => panic!("{other} was asked for"),
    });
    let output = quiet(&[&first.url("/pub/"), "--span-hosts"]);
    assert_eq!(stderr(&output), "");
    let expected =
        ["/mirror/", "/mirror/a/", "/mirror/a/y", "/mirror/x"].map(|path| second.url(path));
    assert_eq!(lines(&output.stdout), expected);
    let output = quiet(&[&first.url("/top/"), "--span-hosts"]);
    assert_eq!(stderr(&output), "");
    let expected = [
        first.url("/top/"),
        first.url("/top/sub/"),
        second.url("/sub/z"),
    ];
    assert_eq!(lines(&output.stdout), sorted(expected.to_vec()));
    // Without --span-hosts, the message names the target of the redirect.
    let output = quiet(&[&first.url("/pub/")]);
    assert!(stderr(&output).contains(&format!("redirects to {}", second.url("/mirror/"))));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn redirect_loops_of_starts_end() {
    let back = Arc::new(OnceLock::<String>::new());
    let second = Script::start({
        let back = Arc::clone(&back);
        move |_| moved(back.get().expect("it is up"))
    });
    let to = second.url("/b/");
    let first = Script::start(move |_| moved(&to));
    back.set(first.url("/a/")).expect("not yet");
    for links in ["listing", "page"] {
        let output = quiet(&[&first.url("/a/"), "--span-hosts", "--links", links]);
        let errors = stderr(&output);
        assert!(errors.contains("/b/: redirects to itself"), "{errors}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    }
}

const MAP: &str = "<?xml version=\"1.0\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\
    <url><loc>SITE/cat/a.html</loc><lastmod>2024-05-06</lastmod></url>\
    <url><loc>SITE/cat/b.iso</loc><lastmod>2020-01-01T00:00:00Z</lastmod></url>\
    <url><loc>SITE/cat/dir/</loc></url><url><loc>SITE/above</loc></url>\
    <url><loc>http://elsewhere.example/cat/x</loc></url></urlset>";

/// A site with a sitemap in each format.
fn mapped() -> (Script, Arc<OnceLock<String>>) {
    let own = Arc::new(OnceLock::<String>::new());
    let site = Script::start({
        let own = Arc::clone(&own);
        move |request| {
            let own = own.get().expect("it is up");
            let map = MAP.replace("SITE", own);
            match request {
                "GET /cat/map.xml" => response(200, "Content-Type: application/xml\r\n", map),
                "GET /cat/map.xml.gz" => {
                    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
                    packed.write_all(map.as_bytes()).expect("memory");
                    response(
                        200,
                        "Content-Type: application/gzip\r\n",
                        packed.finish().expect("memory"),
                    )
                }
                "GET /cat/map.txt" => text(&format!(
                    "{own}/cat/a.html\r\n{own}/cat/b.iso\n{own}/cat/dir/\n"
                )),
                "GET /cat/index.xml" => response(
                    200,
                    "",
                    format!(
                        "<sitemapindex><sitemap><loc>{own}/cat/map.xml</loc></sitemap>\
                         <sitemap><loc>{own}/cat/index.xml</loc></sitemap></sitemapindex>"
                    ),
                ),
                "GET /cat/moved.xml" => moved("map.xml"),
                "GET /cat/foreign.xml" => response(
                    200,
                    "",
                    "<urlset><url><loc>http://elsewhere.example/</loc></url></urlset>",
                ),
                "GET /cat/broken.xml" => response(200, "", "<urlset><url><loc>http://x/"),
                "GET /cat/dir/" => page(&["in-dir"]),
                "GET /cat/a.html" => html("<a href=linked>1</a>"),
                "HEAD /cat/b.iso" => text(""),
                "GET /cat/linked" => html(""),
                other => panic!("{other} was asked for"),
            }
        }
    });
    own.set(site.url("")).expect("not yet");
    (site, own)
}

#[test]
fn sitemaps_in_all_formats_are_starts() {
    for map in ["map.xml", "map.xml.gz", "map.txt", "index.xml", "moved.xml"] {
        let (site, _) = mapped();
        let url = site.url(&format!("/cat/{map}"));
        let (found, errors, code) = searched(&site, &["--sitemap", &url]);
        assert_eq!((errors.as_str(), code), ("", Some(0)), "{map}");
        assert_eq!(
            found,
            ["/cat/a.html", "/cat/b.iso", "/cat/dir/", "/cat/dir/in-dir"],
            "{map}"
        );
        let more = usize::from(matches!(map, "index.xml" | "moved.xml"));
        assert_eq!(site.requests().len(), 2 + more, "{map}");
    }
}

#[test]
fn a_sitemap_has_times_and_leads_to_pages() {
    let (site, _) = mapped();
    let map = site.url("/cat/map.xml");
    let newer = ["-type", "f", "-newermt", "2022-01-01"];
    let (found, ..) = searched(
        &site,
        &[&["--sitemap", &map, "--exclude", "*/dir/"], &newer[..]].concat(),
    );
    assert_eq!(found, ["/cat/a.html"]);
    assert_eq!(site.requests().len(), 1);
    let (found, errors, _) = searched(
        &site,
        &["--sitemap", &map, "--links", "page", "--exclude", "*/dir/"],
    );
    assert_eq!(errors, "");
    assert_eq!(found, ["/cat/a.html", "/cat/b.iso", "/cat/linked"]);
}

#[test]
fn sitemaps_without_usable_urls_are_reported() {
    let (site, _) = mapped();
    for (map, message) in [
        ("foreign.xml", "none of its locations is part of the search"),
        ("broken.xml", "no whole sitemap"),
    ] {
        let url = site.url(&format!("/cat/{map}"));
        let (found, errors, code) = searched(&site, &["--sitemap", &url]);
        assert_eq!((found.len(), code), (0, Some(1)), "{map}");
        assert!(
            errors.contains(&format!("/cat/{map}: ")) && errors.contains(message),
            "{errors}"
        );
    }
    let output = find(&["--sitemap", "map.xml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("map.xml: not an absolute URL"));
}

/// A search that is killed while it reads the second host continues there.
#[test]
fn a_killed_search_over_several_hosts_continues() {
    let place = tempfile::tempdir().expect("a directory");
    let (state, out) = (place.path().join("state"), place.path().join("out"));
    let child = Arc::new(std::sync::Mutex::new(None::<std::process::Child>));
    let second = Script::start({
        let child = Arc::clone(&child);
        move |request| {
            if request == "GET /c"
                && let Some(mut child) = child.lock().expect("no test panicked here").take()
            {
                child.kill().expect("SIGKILL");
                child.wait().expect("a child");
            }
            match request {
                "GET /b" => html("<a href=c>1</a><a href=d>2</a>"),
                "GET /c" | "GET /d" => html("<a href=b>1</a><img src=i.png>"),
                other => panic!("{other} was asked for"),
            }
        }
    });
    let to = second.url("/b");
    let first = Script::start(move |request| match request {
        "GET /a" => html(&format!("<a href={to}>1</a>")),
        other => panic!("{other} was asked for"),
    });
    let search = || {
        let mut command = crawler(&[
            "find",
            &first.url("/a"),
            "--links",
            "page",
            "--span-hosts",
            "-j1",
        ]);
        let out = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&out);
        command.arg("--state").arg(&state);
        command
            .stdout(out.expect("a file for results"))
            .stderr(std::process::Stdio::null());
        command.spawn().expect("the program runs")
    };
    // The lock is held during the start, so that a fast search cannot reach the kill before the child is stored.
    let mut running = child.lock().expect("no test panicked here");
    *running = Some(search());
    drop(running);
    while child.lock().expect("no test panicked here").is_some() {
        std::thread::yield_now();
    }
    assert!(state.exists());
    assert_eq!(search().wait().expect("a child").code(), Some(0));
    let expected = ["/b", "/c", "/d", "/i.png"].map(|path| second.url(path));
    let expected = sorted([&[first.url("/a")][..], &expected].concat());
    assert_eq!(lines(&std::fs::read(&out).expect("results")), expected);
}

#[test]
fn files_of_other_hosts_are_downloaded_below_their_names() {
    let second = Script::start(|request| match request {
        "HEAD /x/file.bin" | "GET /x/file.bin" => text("theirs"),
        other => panic!("{other} was asked for"),
    });
    let to = second.url("/x/file.bin");
    let first = Script::start(move |request| match request {
        "GET /a/" => html(&format!("<a href={to}>1</a><a href=d/own.html>2</a>")),
        "GET /a/d/own.html" => html(""),
        other => panic!("{other} was asked for"),
    });
    let place = tempfile::tempdir().expect("a directory");
    let output = quiet(&[
        &first.url("/a/"),
        "--links",
        "page",
        "--span-hosts",
        "--download",
        place.path().to_str().expect("UTF-8"),
    ]);
    assert_eq!(stderr(&output), "");
    let theirs = place
        .path()
        .join(second.address.to_string())
        .join("x/file.bin");
    assert_eq!(std::fs::read(theirs).expect("a file"), b"theirs");
    assert!(place.path().join("d/own.html").exists());
}

#[test]
fn urls_of_a_host_that_was_given_up_are_reported_once() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = dead.local_addr().expect("an address");
    drop(dead);
    let asked = Arc::new(OnceLock::new());
    let site = Script::start(move |request| match request {
        "GET /" => html(&format!("<a href=a>1</a><a href=http://{address}/1>2</a>")),
        // Read after the host was given up.
        "GET /a" => html(&format!(
            "<a href=b>3</a><a href=http://{address}/2>4</a><a href=http://{address}/1>5</a>"
        )),
        "GET /b" => {
            asked.set(()).expect("once");
            html(&format!(
                "<a href=http://{address}/2>6</a><img src=http://{address}/i.png>"
            ))
        }
        other => panic!("{other} was asked for"),
    });
    let args = ["--span-hosts", "--retries", "0", "-j", "1"];
    let (found, errors, code) = pages(&site, "/", &args);
    let image = format!("http://{address}/i.png");
    // The order depends on the ports of the hosts, which are random.
    assert_eq!(
        sorted(found),
        sorted(vec!["/".into(), "/a".into(), "/b".into(), image])
    );
    assert_eq!(code, Some(1));
    for target in ["/1: ", "/2: "] {
        assert_eq!(
            errors.matches(&format!("{address}{target}")).count(),
            1,
            "{errors}"
        );
    }
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
fn two_pages_that_redirect_to_each_other_are_reported() {
    let site = Script::start(|request| match request {
        "GET /" => html("<a href=a>1</a><a href=b>2</a>"),
        "GET /a" => moved("b"),
        "GET /b" => moved("a"),
        other => panic!("{other} was asked for"),
    });
    let (found, errors, code) = pages(&site, "/", &["-j", "1"]);
    assert_eq!((found, code), (vec!["/".to_owned()], Some(1)));
    assert_eq!(errors.matches("redirects to itself").count(), 1, "{errors}");
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

#[test]
fn urls_in_a_sitemap_and_a_listing_are_found_once() {
    let own = Arc::new(OnceLock::<String>::new());
    let site = Script::start({
        let own = Arc::clone(&own);
        move |request| match request {
            "GET /map.txt" => {
                let own = own.get().expect("it is up");
                text(&format!(
                    "{own}/d/\n{own}/d/f\n{own}/pub/?C=N;O=D\n{own}/d/e/\n"
                ))
            }
            "GET /d/" => page(&["f", "g", "e/"]),
            "GET /pub/" => page(&["p"]),
            "GET /d/e/" => page(&["h"]),
            other => panic!("{other} was asked for"),
        }
    });
    own.set(site.url("")).expect("not yet");
    let (map, start) = (site.url("/map.txt"), site.url("/d/"));
    let expected = ["/d/", "/d/e/", "/d/e/h", "/d/f", "/d/g", "/pub/", "/pub/p"];
    let (found, errors, code) = searched(&site, &["--sitemap", &map, "-j", "1"]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    assert_eq!(found, expected);
    let (found, ..) = searched(&site, &[&start, "--sitemap", &map, "-j", "1"]);
    assert_eq!(found, expected);
    // With tests that need requests.
    let (found, ..) = searched(&site, &["--sitemap", &map, "-type", "d", "!", "-empty"]);
    assert_eq!(found, ["/d/", "/d/e/", "/pub/"]);
}

#[test]
fn endless_chains_of_sitemaps_end() {
    let own = Arc::new(OnceLock::<String>::new());
    let site = Script::start({
        let own = Arc::clone(&own);
        move |request| {
            let number = |prefix| {
                request
                    .strip_prefix(prefix)
                    .and_then(|n| n.parse::<u32>().ok())
            };
            if let Some(number) = number("GET /deep/") {
                let own = own.get().expect("it is up");
                let next = format!(
                    "<sitemapindex><sitemap><loc>{own}/deep/{}</loc></sitemap></sitemapindex>",
                    number + 1
                );
                return response(200, "", next);
            }
            match number("GET /moved/") {
                Some(number) => moved(&format!("/moved/{}", number + 1)),
                None => panic!("{request} was asked for"),
            }
        }
    });
    own.set(site.url("")).expect("not yet");
    for (map, message) in [
        ("/deep/1", "deeper than 3"),
        ("/moved/1", "more than 5 redirects"),
    ] {
        let (_, errors, code) = searched(&site, &["--sitemap", &site.url(map)]);
        assert_eq!(code, Some(1));
        assert!(errors.contains(message), "{errors}");
    }
}

#[test]
fn patterns_do_not_make_a_search_incomplete() {
    let (site, _) = mapped();
    let map = site.url("/cat/index.xml");
    let args = [
        "--sitemap",
        &map,
        "--include",
        "*.none",
        "--exclude",
        "*/dir/",
        "--exclude",
        "*/map.xml",
    ];
    let (found, errors, code) = searched(&site, &args);
    assert_eq!((found.len(), errors.as_str(), code), (0, "", Some(0)));
}

/// Fails if links to a host are followed while the redirect of its robots.txt has not been followed.
#[test]
fn a_robots_txt_that_was_moved_is_not_forgotten_for_links() {
    let second = Script::start(|request| match request {
        "GET /robots.txt" => moved("/r.txt"),
        "GET /r.txt" => text("User-agent: *\nDisallow: /no\n"),
        "GET /1" | "GET /2" => html(""),
        other => panic!("{other} was asked for"),
    });
    let to = second.url("");
    let first = Script::start(move |request| match request {
        "GET /robots.txt" => response(404, "", ""),
        "GET /" => html(&format!("<a href={to}/1>1</a><a href=a>2</a>")),
        "GET /a" => html(&format!("<a href={to}/2>3</a><a href={to}/no>4</a>")),
        other => panic!("{other} was asked for"),
    });
    let output = quiet(&[
        &first.url("/"),
        "--links",
        "page",
        "--span-hosts",
        "--robots=on",
        "--min-delay",
        "0.2",
    ]);
    assert!(
        stderr(&output).contains("/no: not read: robots.txt"),
        "{}",
        stderr(&output)
    );
    assert_eq!(lines(&output.stdout).len(), 4);
}

/// The files are linked, embedded or redirected to, and the hosts get no other requests.
#[test]
fn files_of_other_hosts_are_fetched_by_the_robots_txt_of_their_host() {
    let place = tempfile::tempdir().expect("a directory");
    let second = Script::start(|request| match request {
        "GET /robots.txt" => text("User-agent: *\nDisallow: /private/\n"),
        "GET /i.png" => text("picture"),
        "GET /moved.png" => moved("/private/moved.png"),
        other => panic!("{other} was asked for"),
    });
    let third = Script::start(|request| match request {
        "GET /robots.txt" => response(403, "", ""),
        "GET /private/i.png" => text("theirs"),
        other => panic!("{other} was asked for"),
    });
    let silent = Script::start(|request| match request {
        "GET /robots.txt" => response(500, "", ""),
        other => panic!("{other} was asked for"),
    });
    let images = [
        second.url("/private/i.png"),
        second.url("/i.png"),
        second.url("/moved.png"),
        third.url("/private/i.png"),
        silent.url("/i.png"),
    ];
    let body = images.iter().map(|image| format!("<img src={image}>"));
    let body: String = body.chain(["<img src=private/i.png>".into()]).collect();
    let first = Script::start(move |request| match request {
        "GET /robots.txt" => text("User-agent: *\nDisallow: /i.png\nDisallow: /private/\n"),
        "GET /" => html(&body),
        other => panic!("{other} was asked for"),
    });
    let output = quiet(&[
        &first.url("/"),
        "--robots=on",
        "--links",
        "page",
        "--span-hosts",
        "--retries",
        "0",
        "--download",
        place.path().to_str().expect("UTF-8"),
        "-name",
        "*.png",
    ]);
    let errors = stderr(&output);
    for (url, cause) in [
        (first.url("/private/i.png"), "robots.txt"),
        (second.url("/private/i.png"), "robots.txt"),
        (second.url("/moved.png"), "robots.txt"),
        (
            silent.url("/i.png"),
            "not read: robots.txt could not be read: the server answered 500",
        ),
    ] {
        let line = errors.lines().find(|line| line.contains(&url));
        assert!(line.is_some_and(|line| line.contains(cause)), "{errors}");
    }
    assert_eq!(errors.lines().count(), 4, "{errors}");
    for (host, file, content) in [
        (&second, "i.png", "picture"),
        (&third, "private/i.png", "theirs"),
    ] {
        let file = place.path().join(host.address.to_string()).join(file);
        assert_eq!(std::fs::read(file).expect("a file"), content.as_bytes());
        assert_eq!(host.requests()[0], "GET /robots.txt");
    }
    assert_eq!(silent.requests(), ["GET /robots.txt"]);
}

#[test]
fn a_file_that_waits_for_the_robots_txt_is_fetched_after_the_end_of_the_search() {
    let place = tempfile::tempdir().expect("a directory");
    let second = Script::start(|request| match request {
        "GET /robots.txt" => response(404, "", ""),
        "GET /i.png" => text("picture"),
        other => panic!("{other} was asked for"),
    });
    let to = second.url("/i.png");
    let first = Script::start(move |request| match request {
        "GET /robots.txt" => response(404, "", ""),
        "GET /" => html(&format!("<img src={to}><a href=more>1</a>")),
        other => panic!("{other} was asked for"),
    });
    let output = quiet(&[
        &first.url("/"),
        "--robots=on",
        "--links",
        "page",
        "--span-hosts",
        "--download",
        place.path().to_str().expect("UTF-8"),
        "-name",
        "*.png",
        "-print",
        "-quit",
    ]);
    assert_eq!(stderr(&output), "");
    assert_eq!(lines(&output.stdout), [second.url("/i.png")]);
    assert_eq!(second.requests(), ["GET /robots.txt", "GET /i.png"]);
}

#[test]
fn files_outside_the_start_are_downloaded_below_their_host_and_path() {
    let place = tempfile::tempdir().expect("a directory");
    let own = Arc::new(OnceLock::<String>::new());
    let site = Script::start({
        let own = Arc::clone(&own);
        move |request| match request {
            "GET /pub/" => page(&["a.txt"]),
            "GET /docs/map.txt" => text(&format!("{}/docs/a.txt", own.get().expect("it is up"))),
            "GET /pub/a.txt" => text("published"),
            "GET /docs/a.txt" => text("documents"),
            other => panic!("{other} was asked for"),
        }
    });
    own.set(site.url("")).expect("not yet");
    let output = quiet(&[
        &site.url("/pub/"),
        "--sitemap",
        &site.url("/docs/map.txt"),
        "--download",
        place.path().to_str().expect("UTF-8"),
    ]);
    assert_eq!(stderr(&output), "");
    let read = |file: &str| std::fs::read(place.path().join(file)).expect("a file");
    assert_eq!(read("a.txt"), b"published");
    assert_eq!(read(&format!("{}/docs/a.txt", site.address)), b"documents");
}

#[test]
fn the_address_of_a_host_with_downloads_only_is_learned() {
    let place = tempfile::tempdir().expect("a directory");
    // Both responses wait for each other: as long as the address of a host is unknown, it gets one request at a time.
    let both = std::sync::Barrier::new(2);
    let second = Script::start(move |request| match request {
        "GET /0.png" => text("picture"),
        "GET /1.png" | "GET /2.png" => {
            both.wait();
            text("picture")
        }
        other => panic!("{other} was asked for"),
    });
    let images = [0, 1, 2].map(|n| format!("<img src={}>", second.url(&format!("/{n}.png"))));
    let first = Script::start(move |_| html(&images.concat()));
    let output = quiet(&[
        &first.url("/"),
        "--links",
        "page",
        "--span-hosts",
        "--per-address",
        "--download",
        place.path().to_str().expect("UTF-8"),
    ]);
    assert_eq!(stderr(&output), "");
    assert_eq!(second.requests().len(), 3);
}

// ---- links without end

/// A calendar, and pages that each link to two others.
#[test]
fn pages_without_end_have_an_end_that_is_named() {
    let server = Script::start(|request| {
        let target = request.rsplit(' ').next().unwrap_or_default();
        let number = target
            .rsplit('=')
            .next()
            .and_then(|n| n.parse::<u64>().ok());
        let number = number.unwrap_or(1);
        let links = match target.starts_with("/calendar") {
            true => format!("<a href='?m={}'>next</a>", number + 1),
            false => format!(
                "<a href='?n={}'>a</a><a href='?n={}'>b</a>",
                2 * number,
                2 * number + 1
            ),
        };
        html(&links)
    });
    for start in ["/calendar/", "/tree/"] {
        let start = server.url(start);
        let before = server.requests().len();
        let output = find(&[&start, "--links", "page", "--max-pages", "30"]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(server.requests().len() - before, 31);
        let reason = "links lead to more than 30 pages of this host (--max-pages)";
        assert_eq!(text.matches(reason).count(), 1, "{text}");
        assert!(text.contains("; 1 UNREAD"), "{text}");
    }
}

/// The shortest way counts, however slow its pages are.
#[test]
fn the_distance_from_a_start_is_limited() {
    let server = Script::start(|request| match request {
        "GET /" => html("<a href=slow.html>s</a><a href=a.html>a</a>"),
        "GET /slow.html" => {
            thread::sleep(Duration::from_millis(300));
            html("<a href=near.html>n</a>")
        }
        "GET /a.html" => html("<a href=b.html>b</a>"),
        "GET /b.html" => html("<a href=near.html>n</a><a href=far.html>f</a>"),
        "GET /near.html" => html("<a href=last.html>l</a><img src=pixel.gif>"),
        _ => html(""),
    });
    for (most, expected, status) in [
        ("0", &["/"][..], 1),
        (
            "2",
            &[
                "/",
                "/a.html",
                "/b.html",
                "/near.html",
                "/pixel.gif",
                "/slow.html",
            ],
            1,
        ),
        (
            "3",
            &[
                "/",
                "/a.html",
                "/b.html",
                "/far.html",
                "/last.html",
                "/near.html",
                "/pixel.gif",
                "/slow.html",
            ],
            0,
        ),
    ] {
        let (found, text, code) = pages(&server, "/", &["--max-link-depth", most]);
        assert_eq!(found, expected, "{most}: {text}");
        assert_eq!(code, Some(status), "{most}: {text}");
        let told = format!("more than {most} links from a start (--max-link-depth)");
        assert_eq!(
            text.matches(&told).count(),
            usize::from(status == 1),
            "{text}"
        );
    }
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
    let output = find(&[&start, "--links", "page", "--nofollow", "off"]);
    assert_eq!(
        lines(&output.stdout),
        found(&["/", "/a.html", "/b/", "/b/c.html", "/b/d.png"])
    );
}
