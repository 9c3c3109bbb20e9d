//! Statuses, methods and framings that a server may use.

use super::{reply, sized};
use crate::peer::Step::{Close, HalfClose, Send, Take, TakeHead};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [statuses(), framings(), interim(), old(), kept()].concat()
}

const URL: &str = "http://{A}/";

fn statuses() -> Vec<Scenario> {
    let statuses = [
        "200 OK",
        "201 Created",
        "202 Accepted",
        "203 N",
        "206 Partial Content",
        "226 IM",
        "299 X",
        "300 Many",
        "304 Not Modified",
        "400 Bad",
        "401 Unauthorized",
        "403 No",
        "404 Not Found",
        "407 Proxy",
        "410 Gone",
        "416 Range",
        "429 Slow",
        "500 Error",
        "502 Bad",
        "503 Busy",
        "504 Late",
        "599 X",
        "600 X",
        "799 X",
        "999 X",
    ];
    let mut all = Vec::new();
    for status in statuses {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let args: &[&str] = match method {
                "GET" => &[URL],
                "HEAD" => &["-I", URL],
                "POST" => &["-d", "x=1", URL],
                _ => &["-X", "OPTIONS", "-i", URL],
            };
            let body = if method == "HEAD" || status.starts_with("304") {
                ""
            } else {
                "hello"
            };
            all.push(
                Scenario::new(format!("status/{}/{method}", &status[..3]))
                    .play([Take, Send(reply(status, &["Content-Length: 5"], body))])
                    .args(args),
            );
        }
        all.push(
            Scenario::new(format!("status/{}/fail", &status[..3]))
                .play([Take, Send(sized(status, &[], "hello"))])
                .args(["-f", "-w", "%{http_code} %{size_download}", URL]),
        );
    }
    for status in ["204 No Content", "205 Reset", "304 Not Modified"] {
        for (name, headers) in [
            ("bare", &[][..]),
            ("length", &["Content-Length: 0"]),
            ("chunked", &["Transfer-Encoding: chunked"]),
        ] {
            all.push(
                Scenario::new(format!("status/{}/{name}", &status[..3]))
                    .play([Take, Send(reply(status, headers, "")), Close])
                    .args(["-i", URL]),
            );
        }
    }
    all
}

fn framings() -> Vec<Scenario> {
    let large: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let chunked = |body: &str| reply("200 OK", &["Transfer-Encoding: chunked"], body);
    let cases: Vec<(&str, Vec<u8>, bool)> = vec![
        ("length", sized("200 OK", &[], "hello"), false),
        ("length-0", sized("200 OK", &[], ""), false),
        ("length-large", sized("200 OK", &[], &large), false),
        (
            "length-spaces",
            reply("200 OK", &["Content-Length:   5  "], "hello"),
            false,
        ),
        (
            "length-tab",
            reply("200 OK", &["Content-Length:\t5"], "hello"),
            false,
        ),
        (
            "length-case",
            reply("200 OK", &["cOnTeNt-lEnGtH: 5"], "hello"),
            false,
        ),
        (
            "length-zeros",
            reply("200 OK", &["Content-Length: 0005"], "hello"),
            false,
        ),
        (
            "length-twice",
            reply(
                "200 OK",
                &["Content-Length: 5", "Content-Length: 5"],
                "hello",
            ),
            false,
        ),
        (
            "length-list",
            reply("200 OK", &["Content-Length: 5, 5"], "hello"),
            false,
        ),
        (
            "length-close",
            reply(
                "200 OK",
                &["Content-Length: 5", "Connection: close"],
                "hello",
            ),
            true,
        ),
        ("chunked", chunked("5\r\nhello\r\n0\r\n\r\n"), false),
        ("chunked-empty", chunked("0\r\n\r\n"), false),
        (
            "chunked-many",
            chunked("1\r\nh\r\n2\r\nel\r\n2\r\nlo\r\n0\r\n\r\n"),
            false,
        ),
        (
            "chunked-zeros",
            chunked("0005\r\nhello\r\n000\r\n\r\n"),
            false,
        ),
        (
            "chunked-upper",
            chunked("A\r\nhellohello\r\n0\r\n\r\n"),
            false,
        ),
        (
            "chunked-extension",
            chunked("5;a=b;c=\"d;e\"\r\nhello\r\n0;x\r\n\r\n"),
            false,
        ),
        (
            "chunked-trailers",
            chunked("5\r\nhello\r\n0\r\nT: 1\r\nU: 2\r\n\r\n"),
            false,
        ),
        (
            "chunked-case",
            reply(
                "200 OK",
                &["transfer-encoding: Chunked"],
                "5\r\nhello\r\n0\r\n\r\n",
            ),
            false,
        ),
        (
            "chunked-and-length",
            reply(
                "200 OK",
                &["Transfer-Encoding: chunked", "Content-Length: 3"],
                "5\r\nhello\r\n0\r\n\r\n",
            ),
            false,
        ),
        (
            "length-and-chunked",
            reply(
                "200 OK",
                &["Content-Length: 3", "Transfer-Encoding: chunked"],
                "5\r\nhello\r\n0\r\n\r\n",
            ),
            false,
        ),
        ("close", reply("200 OK", &[], "hello"), true),
        ("close-empty", reply("200 OK", &[], ""), true),
        ("close-large", reply("200 OK", &[], &large), true),
        (
            "close-said",
            reply("200 OK", &["Connection: close"], "hello"),
            true,
        ),
        (
            "surplus",
            reply("200 OK", &["Content-Length: 5"], "hello, world"),
            true,
        ),
        (
            "surplus-chunked",
            chunked("5\r\nhello\r\n0\r\n\r\nmore"),
            true,
        ),
        (
            "no-reason",
            reply("200", &["Content-Length: 5"], "hello"),
            false,
        ),
        (
            "empty-reason",
            reply("200 ", &["Content-Length: 5"], "hello"),
            false,
        ),
        (
            "empty-value",
            reply("200 OK", &["X:", "Content-Length: 5"], "hello"),
            false,
        ),
        (
            "odd-bytes",
            reply("200 OK", &["X: \u{e9}\u{1f}", "Content-Length: 5"], "hello"),
            false,
        ),
        (
            "many-headers",
            reply(
                "200 OK",
                &[&"X: y\r\n".repeat(90), "Content-Length: 5"].map(str::trim_end),
                "hello",
            ),
            false,
        ),
    ];
    let mut all = Vec::new();
    for (name, bytes, close) in cases {
        for (method, args) in [("GET", &["-i", URL][..]), ("HEAD", &["-I", URL])] {
            let head = bytes.windows(4).position(|w| w == b"\r\n\r\n");
            let sent = match (method, head) {
                ("HEAD", Some(at)) => bytes[..at + 4].to_vec(),
                _ => bytes.clone(),
            };
            let mut steps = vec![Take, Send(sent)];
            steps.extend(close.then_some(Close));
            all.push(
                Scenario::new(format!("framing/{name}/{method}"))
                    .play(steps)
                    .args(args),
            );
        }
        let mut steps = vec![Take, Send(bytes)];
        steps.extend(close.then_some(HalfClose));
        all.push(
            Scenario::new(format!("framing/{name}/POST"))
                .play(steps)
                .args([
                    "-d",
                    "x",
                    "-w",
                    "|%{size_download} %{size_header} %{num_headers}",
                    URL,
                ]),
        );
    }
    all
}

fn interim() -> Vec<Scenario> {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let case = |name: &str, bytes: String, args: &[&str]| {
        Scenario::new(format!("interim/{name}"))
            .play([Take, Send(bytes.into_bytes())])
            .args([args, &[URL]].concat())
    };
    vec![
        case("100", format!("{go_on}{last}"), &[]),
        case("100-shown", format!("{go_on}{last}"), &["-i"]),
        case(
            "103-shown",
            format!("{early}{last}"),
            &["-i", "-w", "%{size_header}"],
        ),
        case("many", format!("{}{last}", early.repeat(5)), &["-i"]),
        case(
            "102",
            format!("HTTP/1.1 102 Processing\r\n\r\n{last}"),
            &["-i"],
        ),
        case("199", format!("HTTP/1.1 199 X\r\n\r\n{last}"), &["-i"]),
        case(
            "with-length",
            format!("HTTP/1.1 103 X\r\nContent-Length: 9\r\n\r\n{last}"),
            &["-i"],
        ),
        case("post", format!("{go_on}{last}"), &["-d", "x", "-i"]),
        case(
            "head",
            format!("{early}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            &["-I"],
        ),
        Scenario::new("interim/expected")
            .play([
                TakeHead,
                Send(go_on.into()),
                crate::peer::Step::TakeBytes(3),
                Send(last.into()),
            ])
            .args(["-H", "Expect: 100-continue", "-d", "abc", "-i", URL]),
        Scenario::new("interim/refused")
            .play([
                TakeHead,
                Send(sized(
                    "417 Expectation Failed",
                    &["Connection: close"],
                    "no",
                )),
                Close,
            ])
            .args(["-H", "Expect: 100-continue", "-d", "abc", "-i", URL]),
        Scenario::new("interim/only")
            .play([Take, Send(go_on.into()), Close])
            .args([URL]),
        Scenario::new("interim/101")
            .play([
                Take,
                Send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes".to_vec()),
                Close,
            ])
            .args(["-H", "Connection: Upgrade", "-H", "Upgrade: x", "-i", URL]),
    ]
}

fn old() -> Vec<Scenario> {
    let case = |name: &str, bytes: &str, args: &[&str]| {
        Scenario::new(format!("http10/{name}"))
            .play([Take, Send(bytes.as_bytes().to_vec()), Close])
            .args([args, &[URL]].concat())
    };
    vec![
        case(
            "close",
            "HTTP/1.0 200 OK\r\n\r\nhello",
            &["-w", "%{http_version}"],
        ),
        case(
            "length",
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            &["-i"],
        ),
        case(
            "length-short",
            "HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            &[],
        ),
        case(
            "length-surplus",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nhello",
            &[],
        ),
        case(
            "chunked",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            &[],
        ),
        case(
            "head",
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
            &["-I"],
        ),
        case("404", "HTTP/1.0 404 Not Found\r\n\r\nnone", &["-f"]),
        case("post", "HTTP/1.0 201 Made\r\n\r\nmade", &["-d", "x"]),
    ]
}

/// Several requests, and which connection each came on.
fn kept() -> Vec<Scenario> {
    let ok = || Send(sized("200 OK", &[], "hello"));
    let chunked = || {
        Send(reply(
            "200 OK",
            &["Transfer-Encoding: chunked"],
            "2\r\nhi\r\n0\r\n\r\n",
        ))
    };
    let closing = || Send(sized("200 OK", &["Connection: close"], "hello"));
    let case = |name: &str, lists: Vec<Vec<crate::peer::Step>>, args: &[&str]| {
        Scenario::new(format!("kept/{name}"))
            .peer(crate::peer::Peer::Play(lists))
            .args(args)
    };
    let (one, two, three) = ("http://{A}/1", "http://{A}/2", "http://{A}/3");
    vec![
        case("two", vec![vec![Take, ok(), Take, ok()]], &[one, two]),
        case(
            "three",
            vec![vec![Take, ok(), Take, chunked(), Take, ok()]],
            &[one, two, three],
        ),
        case(
            "closed",
            vec![vec![Take, closing(), Close], vec![Take, ok()]],
            &[one, two],
        ),
        case(
            "closed-1.0",
            vec![
                vec![
                    Take,
                    Send(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec()),
                    Close,
                ],
                vec![Take, ok()],
            ],
            &[one, two],
        ),
        case(
            "keep-alive-1.0",
            vec![vec![
                Take,
                Send(
                    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi"
                        .to_vec(),
                ),
                Take,
                ok(),
            ]],
            &[one, two],
        ),
        case(
            "close-requested",
            vec![vec![Take, ok(), Close], vec![Take, ok()]],
            &["-H", "Connection: close", one, two],
        ),
        case(
            "head-then-get",
            vec![vec![
                Take,
                Send(reply("200 OK", &["Content-Length: 5"], "")),
                Take,
                ok(),
            ]],
            &["-I", one, "--next", "-s", two],
        ),
        case(
            "error-then-get",
            vec![vec![Take, Send(sized("500 X", &[], "bad")), Take, ok()]],
            &[one, two],
        ),
        case(
            "failed-then-get",
            vec![vec![Take, Close], vec![Take, ok()]],
            &[one, two],
        ),
        case(
            "get-then-failed",
            vec![vec![Take, closing(), Close], vec![Take, Close]],
            &[one, two],
        ),
        case(
            "fail-early",
            vec![vec![Take, Close]],
            &["--fail-early", one, two],
        ),
        case(
            "same-twice",
            vec![vec![Take, ok(), Take, ok()]],
            &[one, one, "-w", "%{num_connects} %{urlnum}\\n"],
        ),
    ]
}
