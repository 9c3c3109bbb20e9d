//! Downloads that go on, times of files, and requests for what has changed.

use super::{reply, sized};
use crate::peer::Step::{Close, Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [resumed(), resumed_more(), times(), conditions(), etags()].concat()
}

const URL: &str = "http://{A}/d/file.txt";
const MODIFIED: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
/// That time in seconds.
const MOMENT: u64 = 784_111_777;

/// Answers to a request for what is behind the first five bytes.
fn resumed() -> Vec<Scenario> {
    let part = |range: &str, body: &str| {
        let range = format!("Content-Range: bytes {range}");
        sized("206 Partial Content", &[&range], body)
    };
    let answers: Vec<(&str, Vec<u8>)> = vec![
        ("part", part("5-10/11", " world")),
        ("part-no-size", part("5-10/*", " world")),
        ("part-other", part("0-10/11", "hello world")),
        ("part-later", part("6-10/11", "world")),
        ("part-empty", part("5-4/5", "")),
        ("part-no-range", sized("206 Partial Content", &[], " world")),
        ("whole", sized("200 OK", &[], "hello world")),
        ("whole-equal", sized("200 OK", &[], "hello")),
        ("whole-empty", sized("200 OK", &[], "")),
        ("whole-unframed", reply("200 OK", &[], "hello world")),
        (
            "whole-range",
            sized("200 OK", &["Content-Range: bytes 5-10/11"], " world"),
        ),
        (
            "past-end",
            sized("416 Too Far", &["Content-Range: bytes */5"], "too far"),
        ),
        (
            "past-end-other",
            sized("416 Too Far", &["Content-Range: bytes */4"], "too far"),
        ),
        ("past-end-unknown", sized("416 Too Far", &[], "too far")),
        ("missing", sized("404 No", &[], "none")),
        ("error", sized("500 Oh", &[], "broken")),
        ("not-modified", reply("304 Not Modified", &[], "")),
    ];
    let chunked = reply(
        "200 OK",
        &["Transfer-Encoding: chunked"],
        "5\r\nhello\r\n0\r\n\r\n",
    );
    let answers = answers.into_iter().chain([("whole-chunked", chunked)]);
    let ways: &[(&str, &[&str])] = &[
        ("end", &["-C", "-", "-o", "part"]),
        ("offset", &["-C", "5", "-o", "part"]),
        ("stdout", &["-C", "5"]),
        ("fail", &["-f", "-C", "-", "-o", "part"]),
    ];
    let mut all = Vec::new();
    for (answer, bytes) in answers {
        for (way, args) in ways {
            all.push(
                Scenario::new(format!("resume/{answer}/{way}"))
                    .play([Take, Send(bytes.clone()), Close])
                    .file("part", "hello")
                    .args([*args, &["-w", "[%{http_code} %{size_download}]", URL]].concat()),
            );
        }
    }
    all
}

fn resumed_more() -> Vec<Scenario> {
    let range = "Content-Range: bytes 5-10/11";
    let cases: &[(&str, &[&str])] = &[
        ("long", &["--continue-at", "5", "-o", "part"]),
        ("remote-name", &["-C", "-", "-O"]),
        (
            "output-dir",
            &["-C", "-", "--output-dir", "d", "-o", "part"],
        ),
        ("range", &["-C", "5", "-r", "1-2", "-o", "part"]),
        (
            "range-header",
            &["-C", "5", "-H", "Range: bytes=1-", "-o", "part"],
        ),
        ("head", &["-I", "-C", "5"]),
        ("dump", &["-C", "-", "-D", "heads", "-o", "part"]),
        ("no-clobber", &["-C", "-", "--no-clobber", "-o", "part"]),
        ("redirect", &["-L", "-C", "-", "-o", "part"]),
        ("bad", &["-C", "x"]),
        ("negative", &["-C", "-5"]),
        ("empty-value", &["-C", ""]),
        ("last", &["-C", "3", "-C", "5", "-o", "part"]),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        Scenario::new(format!("resume-with/{name}"))
            .play([Take, Send(sized("206 Partial Content", &[range], " world"))])
            .file("part", "hello")
            .file("file.txt", "hello")
            .file("d/part", "hello")
            .args([*args, &[URL]].concat())
    };
    let mut all: Vec<Scenario> = cases.iter().map(build).collect();
    let whole = || sized("200 OK", &[], "hello world");
    let fresh = |name: &str, args: &[&str]| {
        Scenario::new(format!("resume-fresh/{name}"))
            .play([Take, Send(whole())])
            .file("empty", "")
            .args([args, &[URL]].concat())
    };
    all.extend([
        fresh("end", &["-C", "-", "-o", "new"]),
        fresh("end-empty", &["-C", "-", "-o", "empty"]),
        fresh("end-stdout", &["-C", "-"]),
        fresh("zero", &["-C", "0", "-o", "new"]),
        fresh("offset", &["-C", "5", "-o", "new"]),
    ]);
    all.push(
        Scenario::new("resume-with/redirected")
            .play([
                Take,
                Send(sized("302 Found", &["Location: /x"], "moved")),
                Take,
                Send(sized("206 Partial Content", &[range], " world")),
            ])
            .file("part", "hello")
            .args(["-L", "-C", "-", "-o", "part", URL]),
    );
    all.push(
        Scenario::new("resume-with/cut")
            .play([
                Take,
                Send(reply(
                    "206 Partial Content",
                    &[range, "Content-Length: 6"],
                    " wo",
                )),
                Close,
            ])
            .file("part", "hello")
            .args(["-C", "-", "-o", "part", URL]),
    );
    all
}

fn times() -> Vec<Scenario> {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("file", &[MODIFIED], &["-R", "-o", "x"]),
        ("long", &[MODIFIED], &["--remote-time", "-o", "x"]),
        ("remote-name", &[MODIFIED], &["-RO"]),
        ("none", &[], &["-R", "-o", "x"]),
        ("bad", &["Last-Modified: nonsense"], &["-R", "-o", "x"]),
        (
            "asctime",
            &["Last-Modified: Sun Nov  6 08:49:37 1994"],
            &["-R", "-o", "x"],
        ),
        (
            "rfc-850",
            &["Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"],
            &["-R", "-o", "x"],
        ),
        ("head", &[MODIFIED], &["-I", "-R", "-o", "x"]),
        ("stdout", &[MODIFIED], &["-R"]),
        ("off", &[MODIFIED], &["-R", "--no-remote-time", "-o", "x"]),
        ("without", &[MODIFIED], &["-o", "x"]),
        ("old-file", &[MODIFIED], &["-R", "-o", "old"]),
    ];
    let mut all: Vec<Scenario> = cases
        .iter()
        .map(|(name, headers, args)| {
            Scenario::new(format!("remote-time/{name}"))
                .play([Take, Send(sized("200 OK", headers, "body"))])
                .file("old", "old")
                .args([*args, &[URL]].concat())
        })
        .collect();
    all.push(
        Scenario::new("remote-time/status")
            .play([Take, Send(sized("404 No", &[MODIFIED], "none"))])
            .args(["-R", "-o", "x", URL]),
    );
    all.push(
        Scenario::new("remote-time/empty")
            .play([Take, Send(sized("200 OK", &[MODIFIED], ""))])
            .args(["-R", "-o", "x", URL]),
    );
    all
}

fn conditions() -> Vec<Scenario> {
    let dates: &[(&str, &str)] = &[
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("date-not", "-Sun, 06 Nov 1994 08:49:37 GMT"),
        ("date-equal", "=Sun, 06 Nov 1994 08:49:37 GMT"),
        ("earlier", "Sun, 06 Nov 1994 08:49:36 GMT"),
        ("later", "Sun, 06 Nov 1994 08:49:38 GMT"),
        ("earlier-not", "-Sun, 06 Nov 1994 08:49:36 GMT"),
        ("later-not", "-Sun, 06 Nov 1994 08:49:38 GMT"),
        ("no-weekday", "06 Nov 1994 08:49:37 GMT"),
        ("zone", "6 Nov 1994 08:49:37 +0100"),
        ("compact", "19941107"),
        ("month-first", "Nov 7 1994"),
        ("file", "dated"),
        ("file-not", "-dated"),
        ("nonsense", "no such thing"),
        ("empty", ""),
    ];
    let answers: &[(&str, Vec<u8>)] = &[
        ("dated", sized("200 OK", &[MODIFIED], "body")),
        ("undated", sized("200 OK", &[], "body")),
        ("unchanged", reply("304 Not Modified", &[MODIFIED], "")),
    ];
    let mut all = Vec::new();
    for (date, text) in dates {
        for (answer, bytes) in answers {
            all.push(
                Scenario::new(format!("time-cond/{date}/{answer}"))
                    .play([Take, Send(bytes.clone())])
                    .file("dated", "dated")
                    .time("dated", MOMENT)
                    .file("old", "old")
                    .args(["-z", text, "-o", "old", "-w", "%{http_code}", URL]),
            );
        }
    }
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let with: &[(&str, &[&str])] = &[
        ("long", &["--time-cond", date]),
        ("stdout", &["-z", date]),
        ("head", &["-I", "-z", date]),
        ("range", &["-r", "0-1", "-z", date]),
        ("data", &["-d", "x", "-z", date]),
        ("header", &["-H", "If-Modified-Since: own", "-z", date]),
        ("header-removed", &["-H", "If-Modified-Since:", "-z", date]),
        ("last", &["-z", "20010101", "-z", date]),
        ("new-file", &["-z", "new", "-o", "new"]),
        ("remote-time", &["-R", "-z", "dated", "-o", "dated"]),
        ("include", &["-i", "-z", date]),
        ("fail", &["-f", "-z", date]),
    ];
    for (name, args) in with {
        all.push(
            Scenario::new(format!("time-cond-with/{name}"))
                .play([Take, Send(sized("200 OK", &[MODIFIED], "body"))])
                .file("dated", "dated")
                .time("dated", MOMENT)
                .args([*args, &["-w", "[%{http_code}]", URL]].concat()),
        );
    }
    all
}

fn etags() -> Vec<Scenario> {
    let tag = "ETag: \"new\"";
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("save", &[tag], &["--etag-save", "new"]),
        ("save-none", &[], &["--etag-save", "new"]),
        ("save-over", &[tag], &["--etag-save", "old"]),
        ("save-weak", &["ETag: W/\"w\""], &["--etag-save", "new"]),
        ("save-upper", &["ETAG:   \"u\"  "], &["--etag-save", "new"]),
        ("save-bare", &["etag: bare"], &["--etag-save", "new"]),
        ("save-dash", &[tag], &["--etag-save", "-"]),
        (
            "save-missing-directory",
            &[tag],
            &["--etag-save", "none/new"],
        ),
        ("save-output", &[tag], &["--etag-save", "new", "-o", "x"]),
        ("save-head", &[tag], &["-I", "--etag-save", "new"]),
        ("compare", &[tag], &["--etag-compare", "old"]),
        ("compare-missing", &[tag], &["--etag-compare", "none"]),
        ("compare-empty", &[tag], &["--etag-compare", "empty"]),
        ("compare-lines", &[tag], &["--etag-compare", "lines"]),
        (
            "compare-header",
            &[tag],
            &["--etag-compare", "old", "-H", "If-None-Match: \"x\""],
        ),
        (
            "both",
            &[tag],
            &["--etag-compare", "old", "--etag-save", "old"],
        ),
        (
            "both-missing",
            &[tag],
            &["--etag-compare", "new", "--etag-save", "new"],
        ),
        (
            "both-other",
            &[tag],
            &["--etag-compare", "old", "--etag-save", "new"],
        ),
        (
            "two-urls",
            &[tag],
            &["--etag-compare", "old", "--etag-save", "new", URL],
        ),
    ];
    let files = |scenario: Scenario| {
        scenario
            .file("old", "\"old\"\n")
            .file("empty", "")
            .file("lines", "\"one\"\r\n\n")
    };
    let mut all = Vec::new();
    for (name, headers, args) in cases {
        let answer = || Send(sized("200 OK", headers, "body"));
        all.push(files(
            Scenario::new(format!("etag/{name}"))
                .play([Take, answer(), Take, answer()])
                .args([*args, &[URL]].concat()),
        ));
    }
    for (name, headers) in [("tag", &[tag][..]), ("no-tag", &[])] {
        all.push(files(
            Scenario::new(format!("etag/unchanged-{name}"))
                .play([Take, Send(reply("304 Not Modified", headers, ""))])
                .args([
                    "--etag-compare",
                    "old",
                    "--etag-save",
                    "old",
                    "-o",
                    "empty",
                    URL,
                ]),
        ));
    }
    all.push(files(
        Scenario::new("etag/redirect")
            .play([
                Take,
                Send(sized("302 Found", &["Location: /x"], "moved")),
                Take,
                Send(sized("200 OK", &[tag], "body")),
            ])
            .args(["-L", "--etag-save", "new", URL]),
    ));
    all.push(files(
        Scenario::new("etag/failed")
            .play([Take, Send(sized("404 No", &[tag], "none"))])
            .args(["-f", "--etag-save", "new", URL]),
    ));
    all
}
