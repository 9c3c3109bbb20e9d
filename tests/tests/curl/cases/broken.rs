//! Responses that break the protocol: those of `data`, and cuts and resets at each place.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::peer::Step::{Close, HalfClose, Reset, Send, SendRaw, Take};
use crate::scenario::Scenario;

const URL: &str = "http://{A}/";

pub(super) fn all() -> Vec<Scenario> {
    [
        judged("llhttp-response.jsonl"),
        judged("h11-client.jsonl"),
        ended(),
        malformed(),
    ]
    .concat()
}

/// Without their keep-alive: each server closes, so that a lenient program ends too.
fn judged(file: &str) -> Vec<Scenario> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(file);
    let text = fs::read_to_string(path).expect("the judged responses");
    let scenario = |line: &str| {
        let case: Value = serde_json::from_str(line).expect("a JSON object");
        let field = |value: &Value| value.as_str().expect("a string").to_owned();
        let bytes = BASE64_STANDARD.decode(field(&case["response_b64"]));
        let method = field(&case["request"]["method"]);
        let args: Vec<&str> = match method.as_str() {
            "GET" => vec![URL],
            "HEAD" => vec!["-I", URL],
            method => vec!["-X", method, URL],
        };
        Scenario::new(format!("data/{}", field(&case["id"])))
            .play([Take, SendRaw(bytes.expect("base64")), HalfClose])
            .args(args)
    };
    text.lines().map(scenario).collect()
}

/// The connection ends at each place of a reply, properly or not.
fn ended() -> Vec<Scenario> {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let places = [
        ("nothing", String::new()),
        ("version", "HTTP/1.1".into()),
        ("status-line", "HTTP/1.1 200 OK".into()),
        ("first-line", "HTTP/1.1 200 OK\r\n".into()),
        ("name", "HTTP/1.1 200 OK\r\nContent-Le".into()),
        ("head", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n".into()),
        ("body-0", head.into()),
        ("body-5", format!("{head}hello")),
        ("close-body", "HTTP/1.1 200 OK\r\n\r\nhello".into()),
        ("chunk-0", chunked.into()),
        ("chunk-size", format!("{chunked}5")),
        ("chunk-line", format!("{chunked}5\r\n")),
        ("chunk-data", format!("{chunked}5\r\nhel")),
        ("chunk-end", format!("{chunked}5\r\nhello")),
        ("chunk-done", format!("{chunked}5\r\nhello\r\n")),
        ("last-chunk", format!("{chunked}5\r\nhello\r\n0\r\n")),
        ("trailer", format!("{chunked}5\r\nhello\r\n0\r\nX: y\r\n")),
        ("interim", "HTTP/1.1 100 Continue\r\n\r\n".into()),
    ];
    let mut all = Vec::new();
    for (place, bytes) in places {
        for (how, end) in [("close", Close), ("reset", Reset)] {
            all.push(
                Scenario::new(format!("ended/{place}/{how}"))
                    .play([Take, Send(bytes.clone().into_bytes()), end])
                    .args([URL]),
            );
        }
    }
    all.push(
        Scenario::new("ended/before-the-request/close")
            .play([Close])
            .args([URL]),
    );
    all.push(
        Scenario::new("ended/refused")
            .peer(crate::peer::Peer::Refusing)
            .args(["-w", "%{http_code} %{num_connects}", URL]),
    );
    all
}

fn malformed() -> Vec<Scenario> {
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases = [
        ("garbage", "garbage\r\n\r\n".to_owned()),
        ("html", "<html>hello</html>".into()),
        ("http-0.9-like", "hello".into()),
        (
            "http-2",
            "HTTP/2 200\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "http-1.2",
            "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "http-3.0",
            "HTTP/3.0 200 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "lower-case",
            "http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "no-status",
            "HTTP/1.1 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "short-status",
            "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "long-status",
            "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "status-000",
            "HTTP/1.1 000 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "bare-lf",
            "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello".into(),
        ),
        (
            "leading-crlf",
            "\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "no-colon",
            format!("{ok}no colon\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        (
            "space-before-colon",
            format!("{ok}Content-Length : 5\r\n\r\nhello"),
        ),
        (
            "empty-name",
            format!("{ok}: x\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        (
            "folded",
            format!("{ok}X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        (
            "folded-first",
            format!("{ok} a: b\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        (
            "nul-in-value",
            format!("{ok}X: a\0b\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        (
            "nul-in-status",
            "HTTP/1.1 200 O\0K\r\nContent-Length: 5\r\n\r\nhello".into(),
        ),
        (
            "length-negative",
            format!("{ok}Content-Length: -5\r\n\r\nhello"),
        ),
        (
            "length-plus",
            format!("{ok}Content-Length: +5\r\n\r\nhello"),
        ),
        (
            "length-hex",
            format!("{ok}Content-Length: 0x5\r\n\r\nhello"),
        ),
        (
            "length-tail",
            format!("{ok}Content-Length: 5x\r\n\r\nhello"),
        ),
        (
            "length-text",
            format!("{ok}Content-Length: five\r\n\r\nhello"),
        ),
        ("length-empty", format!("{ok}Content-Length:\r\n\r\nhello")),
        (
            "length-overflow",
            format!("{ok}Content-Length: 99999999999999999999\r\n\r\nhello"),
        ),
        (
            "length-differs",
            format!("{ok}Content-Length: 5\r\nContent-Length: 4\r\n\r\nhello"),
        ),
        (
            "length-list-differs",
            format!("{ok}Content-Length: 5, 4\r\n\r\nhello"),
        ),
        (
            "coding-unknown",
            format!("{ok}Transfer-Encoding: rot13\r\n\r\nuryyb"),
        ),
        (
            "coding-identity",
            format!("{ok}Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        (
            "coding-twice",
            format!("{ok}Transfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ),
        (
            "coding-not-last",
            format!("{ok}Transfer-Encoding: chunked, rot13\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ),
        ("chunk-no-size", format!("{chunked}\r\nhello\r\n0\r\n\r\n")),
        ("chunk-text", format!("{chunked}zz\r\nhello\r\n0\r\n\r\n")),
        (
            "chunk-negative",
            format!("{chunked}-5\r\nhello\r\n0\r\n\r\n"),
        ),
        ("chunk-hex", format!("{chunked}0x5\r\nhello\r\n0\r\n\r\n")),
        (
            "chunk-overflow",
            format!("{chunked}fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        ),
        ("chunk-space", format!("{chunked}5 \r\nhello\r\n0\r\n\r\n")),
        ("chunk-lf", format!("{chunked}5\nhello\n0\n\n")),
        (
            "chunk-too-long",
            format!("{chunked}5\r\nhello!\r\n0\r\n\r\n"),
        ),
        (
            "chunk-too-short",
            format!("{chunked}5\r\nhell\r\n0\r\n\r\n"),
        ),
        (
            "chunk-second-bad",
            format!("{chunked}5\r\nhello\r\nxyz\r\n"),
        ),
        (
            "trailer-bad",
            format!("{chunked}5\r\nhello\r\n0\r\nno colon\r\n\r\n"),
        ),
        (
            "head-500k",
            format!(
                "{ok}X: {}\r\nContent-Length: 5\r\n\r\nhello",
                "y".repeat(500_000)
            ),
        ),
        (
            "head-90k-line",
            format!(
                "{ok}X: {}\r\nContent-Length: 5\r\n\r\nhello",
                "y".repeat(90_000)
            ),
        ),
        ("interim-101", "HTTP/1.1 101 X\r\n\r\nhello".into()),
        (
            "interim-forever",
            "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000),
        ),
    ];
    let case = |(name, bytes): (&str, String)| {
        Scenario::new(format!("malformed/{name}"))
            .play([Take, Send(bytes.into_bytes()), HalfClose])
            .args([URL])
    };
    cases.into_iter().map(case).collect()
}
