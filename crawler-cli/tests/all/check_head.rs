//! `check --urls` at servers that treat HEAD wrongly: class, cause and the requests for each URL.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use crate::common::{Answer, Script, crawler, response, stderr};
use serde_json::Value;

/// What a server answers to a request, as in `GET /a`.
type React = fn(&str) -> Answer;

/// A server, its class and cause, and the methods of its requests. `GET*` is a GET of the first byte.
type Row = (
    &'static str,
    React,
    &'static str,
    Option<&'static str>,
    &'static [&'static str],
);

fn status(request: &str, status: u16, headers: &str) -> Answer {
    let body = if request.starts_with("HEAD") {
        ""
    } else {
        "12345678"
    };
    let head =
        format!("HTTP/1.1 {status} X\r\nContent-Length: 8\r\nConnection: close\r\n{headers}");
    format!("{head}\r\n{body}").into_bytes().into()
}

/// Answers HEAD in one way and GET with 200.
fn head(request: &str, of_head: impl FnOnce() -> Answer) -> Answer {
    match request.starts_with("HEAD") {
        true => of_head(),
        false => status(request, 200, ""),
    }
}

fn bytes(bytes: &[u8]) -> Answer {
    bytes.to_vec().into()
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("right", |r| status(r, 200, ""), "ok", None, &["HEAD"]),
    ("405", |r| head(r, || status(r, 405, "")), "ok", None, &["HEAD", "GET*"]),
    ("501", |r| head(r, || status(r, 501, "")), "ok", None, &["HEAD", "GET*"]),
    ("403", |r| head(r, || status(r, 403, "")), "ok", None, &["HEAD", "GET*"]),
    ("404", |r| head(r, || status(r, 404, "")), "ok", None, &["HEAD", "GET*"]),
    ("410", |r| head(r, || status(r, 410, "")), "ok", None, &["HEAD", "GET*"]),
    ("500", |r| head(r, || status(r, 500, "")), "ok", None, &["HEAD", "GET*"]),
    ("reset", |r| head(r, || Answer::Reset), "ok", None, &["HEAD", "GET*"]),
    ("end", |r| head(r, || bytes(b"")), "ok", None, &["HEAD", "GET*"]),
    ("garbage", |r| head(r, || bytes(b"220 mail\r\n\r\n")), "ok", None, &["HEAD", "GET*"]),
    ("body after HEAD", |_| response(200, "", "12345678").into(), "ok", None, &["HEAD"]),
    ("416", |r| status(r, if r.starts_with("HEAD") { 400 } else { 416 }, ""), "ok", None, &["HEAD", "GET*"]),
    ("long body", |r| match r.starts_with("HEAD") {
        true => status(r, 405, ""),
        false => response(200, "", vec![b'x'; 4 << 20]).into(),
    }, "ok", None, &["HEAD", "GET*"]),
    ("gone", |r| status(r, 410, ""), "neg", Some("status_410"), &["HEAD", "GET*"]),
    ("missing", |r| status(r, 404, ""), "neg", Some("status_404"), &["HEAD", "GET*"]),
    ("teapot", |r| status(r, 418, ""), "unk", Some("status_4xx"), &["HEAD", "GET*"]),
    ("login", |r| status(r, 401, ""), "unk", Some("auth"), &["HEAD"]),
    ("999", |r| status(r, 999, ""), "unk", Some("blocked"), &["HEAD", "GET*"]),
    ("challenge", |r| status(r, 503, "cf-mitigated: challenge\r\n"), "unk", Some("blocked"), &["HEAD", "GET*", "GET"]),
    ("forbidden", |r| status(r, 403, ""), "unk", Some("blocked"), &["HEAD", "GET*", "GET"]),
    ("a day", |r| status(r, 429, "Retry-After: 86400\r\n"), "unk", Some("throttled"), &["HEAD"]),
    ("loop", |r| status(r, 302, "Location: /a\r\n"), "net", Some("redirect_loop"), &["HEAD"]),
    ("no Location", |r| status(r, 302, ""), "net", Some("protocol"), &["HEAD"]),
    ("to dead", |r| status(r, if r.ends_with("/a") { 302 } else { 404 }, "Location: /b\r\n"), "neg", Some("status_404"), &["HEAD"]),
    ("to root", |r| status(r, if r.ends_with("/a") { 301 } else { 200 }, "Location: /\r\n"), "ok", None, &["HEAD"]),
    ("broken", |r| status(r, 502, ""), "net", Some("status_502"), &["HEAD", "GET*", "GET", "GET"]),
];

/// The methods of the requests for a path.
fn methods(server: &Script, path: &str) -> Vec<String> {
    let heads = server.heads();
    let of_path = heads.iter().filter_map(|head| {
        let mut words = head.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let is_ranged = head
            .to_ascii_lowercase()
            .contains("\r\nrange: bytes=0-0\r\n");
        (target == path).then(|| format!("{method}{}", if is_ranged { "*" } else { "" }))
    });
    of_path.collect()
}

fn check(urls: &[String], args: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let list = dir.path().join("urls.txt");
    fs::write(&list, urls.join("\n")).expect("written");
    let list = list.to_str().expect("UTF-8");
    let all = [&["check", "--json", "--rate", "0", "--urls", list], args].concat();
    crawler(&all).output().expect("the program runs")
}

/// The records by URL.
fn records(output: &Output) -> BTreeMap<String, Value> {
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let records = lines.filter(|line| !line.is_empty()).map(|line| {
        let record: Value = serde_json::from_slice(line).expect("JSON");
        (record["url"].as_str().expect("a URL").to_owned(), record)
    });
    records.collect()
}

#[test]
fn each_server_gets_its_class_its_cause_and_no_more_requests_than_needed() {
    let servers: Vec<Script> = ROWS.iter().map(|row| Script::start(row.1)).collect();
    let urls: Vec<String> = servers.iter().map(|server| server.url("/a")).collect();
    let output = check(&urls, &["--retries", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let records = records(&output);
    assert_eq!(records.len(), ROWS.len());
    for ((row, server), url) in ROWS.iter().zip(&servers).zip(&urls) {
        let (name, _, class, cause, requests) = *row;
        let record = &records[url];
        assert_eq!(record["class"], class, "{name}: {record}");
        assert_eq!(record["cause"].as_str(), cause, "{name}: {record}");
        assert_eq!(methods(server, "/a"), requests, "{name}");
        let attempts = if name == "broken" { 2 } else { 1 };
        assert_eq!(record["attempts"], attempts, "{name}: {record}");
    }
}

#[test]
fn a_good_host_costs_one_request_a_url_and_a_lying_one_two_more_in_all() {
    let good = Script::start(|request| match request.ends_with('7') {
        true => status(request, 404, ""),
        false => status(request, 200, ""),
    });
    let lying = Script::start(|request| head(request, || status(request, 404, "")));
    let urls = |server: &Script| -> Vec<String> {
        (0..100).map(|n| server.url(&format!("/{n}"))).collect()
    };
    let all = [urls(&good), urls(&lying)].concat();
    let output = check(&all, &["--robots", "off"]);
    let classes = records(&output);
    let negative = classes.values().filter(|record| record["class"] == "neg");
    assert_eq!((classes.len(), negative.count()), (200, 10));
    assert_eq!(good.requests().len(), 110);
    assert_eq!(lying.requests().len(), 102);
}
