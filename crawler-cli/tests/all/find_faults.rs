//! Servers that fail once, at random, or always. Every loss is reported, nothing is found twice, and each search ends.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::common::{Answer, Script, find, index, lines, page, response, stderr};
use crawler_cli::find::{Event, Find, Policy};

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
            "GET /loops/" => page(&["loop/", "f"]).into(),
            _ if request.starts_with("GET /loops/") => page(&["loop/", "f"]).into(),
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

#[test]
fn a_loop_of_links_ends_and_is_named() {
    let server = world();
    let output = find(&[&server.url("/loops/")]);
    assert_eq!(output.status.code(), Some(1));
    let found = lines(&output.stdout);
    let distinct: BTreeSet<&String> = found.iter().collect();
    assert_eq!(found.len(), distinct.len());
    assert!(found.contains(&server.url("/loops/loop/f")));
    assert!(
        stderr(&output).contains("loop of links"),
        "{}",
        stderr(&output)
    );
    assert!(server.requests().len() < 20);
}

#[test]
fn one_directory_that_always_fails_is_named_with_its_cause() {
    type Fault = fn() -> Answer;
    let faults: [(Fault, &str, &[&str]); 8] = [
        (
            || response(500, "", "").into(),
            "the server answered 500",
            &["--retries", "1"],
        ),
        (
            || response(404, "", "").into(),
            "the server answered 404",
            &[],
        ),
        (
            || response(503, "", "").into(),
            "the server answered 503",
            &["--patience", "2"],
        ),
        (
            || busy().into(),
            "the server answered 503",
            &["--patience", "2"],
        ),
        (|| Answer::Reset, "Connection reset", &["--retries", "1"]),
        (
            || Answer::Stall,
            "timed out",
            &["--retries", "1", "--timeout", "4"],
        ),
        (
            || cut(&page(&["f"])).into(),
            "the connection closed inside the response",
            &["--retries", "1"],
        ),
        (
            || html("<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n").into(),
            "the listing was cut short",
            &["--retries", "1"],
        ),
    ];
    // The cases run at the same time, because they mostly wait.
    thread::scope(|scope| {
        for (fault, cause, options) in faults {
            scope.spawn(move || {
                let server = Script::start(move |request| match request {
                    "GET /" => page(&["a/", "bad/", "c/"]).into(),
                    "GET /bad/" => fault(),
                    _ => page(&["f"]).into(),
                });
                let start = server.url("/");
                let output = find(&[&[start.as_str()], options].concat());
                assert_eq!(output.status.code(), Some(1), "{cause}");
                let expected = ["/", "/a/", "/a/f", "/bad/", "/c/", "/c/f"];
                let expected = expected.map(|path| server.url(path));
                assert_eq!(lines(&output.stdout), expected, "{cause}");
                let errors = stderr(&output);
                let unread: Vec<&str> = errors
                    .lines()
                    .filter(|line| line.starts_with("crawler-cli find: "))
                    .collect();
                let url = server.url("/bad/: ");
                assert!(unread.len() == 1 && unread[0].contains(&url), "{errors}");
                assert!(unread[0].contains(cause), "{cause} in {errors}");
                assert!(errors.ends_with("; 1 UNREAD\n"), "{errors}");
            });
        }
    });
}

/// The trap: a server that asks for two hours is asked again sooner, or waited for longer than the user wants.
#[test]
fn a_wait_that_is_longer_than_the_patience_ends_the_attempts_at_a_url() {
    let server = Script::start(|request| match request {
        "GET /" => page(&["a/", "busy/", "c/"]),
        "GET /busy/" => response(429, "Retry-After: 7200\r\n", ""),
        _ => page(&["f"]),
    });
    let output = find(&[&server.url("/"), "--patience", "3600"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = ["/", "/a/", "/a/f", "/busy/", "/c/", "/c/f"];
    assert_eq!(lines(&output.stdout), expected.map(|path| server.url(path)));
    let cause = format!(
        "{}: the server answered 429 and asks to wait 7200 s, which ends after the patience of 3600 s",
        server.url("/busy/")
    );
    assert!(stderr(&output).contains(&cause), "{}", stderr(&output));
    let asked = server.requests();
    assert_eq!(
        asked
            .iter()
            .filter(|line| line.as_str() == "GET /busy/")
            .count(),
        1
    );
}

/// A cache answers 410 once while it is purged, and a directory is gone for good.
#[test]
fn what_is_gone_is_requested_again_before_it_is_reported() {
    let asked: Mutex<BTreeSet<String>> = Mutex::default();
    let server = Script::start(move |request| {
        let is_first = asked.lock().expect("no panic").insert(request.to_owned());
        match request {
            "GET /" => page(&["gone/", "purged/"]),
            "GET /gone/" => response(410, "", ""),
            "GET /purged/" if is_first => response(410, "", ""),
            _ => page(&["f"]),
        }
    });
    let mut policy = Policy::default();
    policy.host.robots = false;
    policy.host.retry.gone_pause = Duration::from_millis(10);
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    Find::new()
        .start(&server.url("/"))
        .expect("a URL")
        .policy(policy)
        .run(|event| {
            match event {
                Event::Found(entry) => found.push(entry.url.to_owned()),
                Event::Unread(entry) => unread.push(format!("{}: {}", entry.url, entry.cause)),
                _ => {}
            }
            ControlFlow::Continue(())
        });
    assert!(found.contains(&server.url("/purged/f")), "{found:?}");
    let gone = format!("{}: the server answered 410", server.url("/gone/"));
    assert_eq!(unread, [gone]);
    let requests = server.requests();
    let count = |target: &str| requests.iter().filter(|line| *line == target).count();
    assert_eq!((count("GET /gone/"), count("GET /purged/")), (3, 2));
}

/// `percent` of 100 responses are a reset, 500, 503 with `Retry-After`, a stall, or cut.
fn unreliable(seed: u64, percent: u64) -> Script {
    let asked: Mutex<BTreeMap<String, u32>> = Mutex::default();
    Script::start(move |request| -> Answer {
        let directories: Vec<String> = (0..WIDTH).map(|n| format!("d{n}/")).collect();
        let depth = request.matches('/').count() - 1;
        let below: Vec<&str> = directories.iter().map(String::as_str).collect();
        let whole = match depth {
            0 | 1 => page(&[&below[..], &["f"]].concat()),
            _ => page(&["f", "g"]),
        };
        let attempt = {
            let mut asked = asked.lock().expect("no panic");
            let attempts = asked.entry(request.to_owned()).or_default();
            *attempts += 1;
            *attempts
        };
        // The outcome does not depend on the order of requests.
        let mut hasher = DefaultHasher::new();
        (seed, request, attempt).hash(&mut hasher);
        let random = hasher.finish();
        if random % 100 >= percent {
            return whole.into();
        }
        match random / 100 % 5 {
            0 => Answer::Reset,
            1 => response(500, "", "").into(),
            2 => response(503, "Retry-After: 0\r\n", "").into(),
            3 => Answer::Stall,
            _ => cut(&whole).into(),
        }
    })
}

/// Number of subdirectories of a directory.
const WIDTH: usize = 8;

#[test]
fn failures_at_random_cost_nothing_but_time() {
    let mut policy = Policy::default();
    policy.host.robots = false;
    policy.host.retry.first_pause = Duration::from_millis(5);
    policy.host.retry.longest_pause = Duration::from_millis(20);
    let directories = 1 + WIDTH + WIDTH * WIDTH;
    let files = 1 + WIDTH + 2 * WIDTH * WIDTH;
    // With 40 percent, some URL fails four times in a row in nearly every run.
    thread::scope(|scope| {
        for (percent, seed) in [(12, 1), (12, 2), (12, 3), (12, 4), (40, 1), (40, 2)] {
            let policy = policy.clone();
            scope.spawn(move || {
                let server = unreliable(seed, percent);
                let mut found = Vec::new();
                let summary = Find::new()
                    .start(&server.url("/"))
                    .expect("a URL")
                    .policy(policy)
                    .connections(NonZeroUsize::new(16).expect("not 0"))
                    .timeout(Duration::from_secs(3))
                    .run(|event| {
                        match event {
                            Event::Found(entry) => found.push(entry.url.to_owned()),
                            Event::Unread(unread) => {
                                panic!("seed {seed}, {}: {}", unread.url, unread.cause)
                            }
                            _ => {}
                        }
                        ControlFlow::Continue(())
                    });
                assert!(summary.is_complete(), "seed {seed} of {percent} %");
                assert_eq!(found.len(), directories + files);
                let distinct: BTreeSet<&String> = found.iter().collect();
                assert_eq!(distinct.len(), found.len(), "nothing comes twice");
                assert!(summary.counts.retries > 0);
            });
        }
    });
}

/// A page that lists no directory is not an empty directory: what it is is told, and nothing is known about the directory.
#[test]
fn a_page_that_is_no_listing_is_not_an_empty_directory() {
    let server = Script::start(|request| match request {
        "GET /pub/" => page(&[
            "challenge/",
            "frames/",
            "hidden/",
            "login/",
            "moved/",
            "real/",
        ]),
        "GET /pub/challenge/" => {
            html("<title>Just a moment...\u{1b}[2J</title><script>go()</script></html>")
        }
        "GET /pub/frames/" => html("<frameset><frame src=list.html></frameset></html>"),
        "GET /pub/hidden/" => {
            html("<h1>Welcome</h1><a href=about.html>About us</a><a href=/shop/>Shop</a></html>")
        }
        "GET /pub/login/" => html("<form><input type=password name=p></form></html>"),
        "GET /pub/moved/" => html("<meta http-equiv=refresh content='0;url=/new/'></html>"),
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
        "/pub/frames/: not a directory listing: a page of frames",
        "/pub/hidden/: not a directory listing: a web page",
        "/pub/login/: not a directory listing: a page that asks for a password",
        "/pub/moved/: not a directory listing: a page that leads to /new/ by meta refresh",
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

#[test]
fn a_name_is_followed_eight_times_in_a_path() {
    let server = Script::start(|request| match request {
        _ if request.starts_with("GET /") => page(&["again/", "f"]),
        _ => response(404, "", ""),
    });
    let output = find(&[&server.url("/"), "-type", "f"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(lines(&output.stdout).len(), 9);
    assert!(text.contains("more than 8 times in the path"), "{text}");
}

/// A file and a directory of one name, as a bucket has them, are both found, and both are read.
#[test]
fn a_file_and_a_directory_of_one_name_are_found() {
    let server = Script::start(|request| match request {
        "GET /pub/" => page(&["both", "both/"]),
        "GET /pub/both/" => page(&["inside"]),
        "GET /pub/both" => response(200, "", "the file"),
        "GET /pub/both/inside" => response(200, "", "inside"),
        _ => response(404, "", ""),
    });
    let start = server.url("/pub/");
    let output = find(&[&start]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = ["", "both", "both/", "both/inside"];
    assert_eq!(
        lines(&output.stdout),
        expected.map(|path| format!("{start}{path}"))
    );
    // On a disk only one of them has room: what is left out is told.
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().display().to_string();
    let output = find(&[&start, "-type", "f", "--download", &disk]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("both"), "{}", stderr(&output));
}
