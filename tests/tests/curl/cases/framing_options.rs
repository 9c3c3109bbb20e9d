//! `--raw`, `--ignore-content-length`, `--request-target`, `--stderr` and `-N`.

use super::{ok, reply, sized};
use crate::peer::Peer;
use crate::peer::Step::{Close, Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [raw(), lengths(), targets(), messages()].concat()
}

fn raw() -> Vec<Scenario> {
    // "hello" in gzip.
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0";
    let chunked = ["Transfer-Encoding: chunked"];
    let answers: Vec<(&str, Vec<u8>)> = vec![
        ("sized", ok()),
        (
            "chunked",
            reply("200 OK", &chunked, "5\r\nhello\r\n0\r\n\r\n"),
        ),
        (
            "chunks",
            reply("200 OK", &chunked, "2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\n\r\n"),
        ),
        (
            "trailers",
            reply("200 OK", &chunked, "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"),
        ),
        ("cut", reply("200 OK", &chunked, "5\r\nhel")),
        ("gzip", sized("200 OK", &["Content-Encoding: gzip"], gzip)),
        (
            "unknown-coding",
            sized("200 OK", &["Content-Encoding: odd"], "hello"),
        ),
        ("unframed", reply("200 OK", &[], "hello")),
    ];
    let ways: &[(&str, &[&str])] = &[
        ("plain", &["--raw"]),
        ("compressed", &["--raw", "--compressed"]),
        ("include", &["--raw", "-i", "-w", "[%{size_download}]"]),
        ("off", &["--raw", "--no-raw"]),
    ];
    let mut all = Vec::new();
    for (answer, bytes) in answers {
        for (way, args) in ways {
            all.push(
                Scenario::new(format!("raw/{answer}/{way}"))
                    .play([Take, Send(bytes.clone()), Close])
                    .args([*args, &["http://{A}/"]].concat()),
            );
        }
    }
    all
}

fn lengths() -> Vec<Scenario> {
    let with =
        |length: &str, body: &str| reply("200 OK", &[&format!("Content-Length: {length}")], body);
    let chunked = reply(
        "200 OK",
        &["Transfer-Encoding: chunked"],
        "5\r\nhello\r\n0\r\n\r\n",
    );
    let answers = [
        ("right", with("5", "hello")),
        ("short", with("2", "hello")),
        ("long", with("50", "hello")),
        ("zero", with("0", "hello")),
        ("chunked", chunked),
        ("none", reply("200 OK", &[], "hello")),
    ];
    let build = |(name, bytes): (&str, Vec<u8>)| {
        Scenario::new(format!("ignore-length/{name}"))
            .play([Take, Send(bytes), Close])
            .args(["--ignore-content-length", "http://{A}/"])
    };
    answers.into_iter().map(build).collect()
}

fn targets() -> Vec<Scenario> {
    let url = "http://{A}/path?query#fragment";
    let cases: &[(&str, &[&str])] = &[
        ("star", &["-X", "OPTIONS", "--request-target", "*", url]),
        ("path", &["--request-target", "/other?q", url]),
        ("relative", &["--request-target", "other", url]),
        ("absolute", &["--request-target", "http://else/x", url]),
        ("dots", &["--request-target", "/a/../b", url]),
        ("fragment", &["--request-target", "/a#b", url]),
        ("post", &["--request-target", "/other", "-d", "x", url]),
        ("glob", &["--request-target", "/other", "http://{A}/{a,b}"]),
        ("verbose", &["-v", "--request-target", "/other", url]),
        (
            "shown",
            &["-w", "%{url_effective}", "--request-target", "/other", url],
        ),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        Scenario::new(format!("request-target/{name}"))
            .play([Take, Send(ok()), Take, Send(ok())])
            .args(*args)
    };
    let mut all: Vec<Scenario> = cases.iter().map(build).collect();
    all.push(
        Scenario::new("request-target/proxy")
            .peer(Peer::Play(vec![vec![Take, Send(ok())]]))
            .args([
                "-x",
                "http://{A}",
                "--request-target",
                "/other",
                "http://h.test/x",
            ]),
    );
    all
}

fn messages() -> Vec<Scenario> {
    let url = "http://{A}/";
    let cases: &[(&str, &[&str])] = &[
        (
            "file",
            &["--stderr", "err", "-w", "%{stderr}told%{stdout}out", url],
        ),
        ("dash", &["--stderr", "-", "-w", "%{stderr}told", url]),
        ("good", &["--stderr", "err", url]),
        ("no-directory", &["--stderr", "none/err", url]),
        ("over", &["--stderr", "old", url]),
        (
            "last",
            &[
                "--stderr",
                "one",
                "--stderr",
                "two",
                "-w",
                "%{stderr}told",
                url,
            ],
        ),
        ("no-buffer", &["-N", url]),
        ("no-buffer-long", &["--no-buffer", url]),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        Scenario::new(format!("messages/{name}"))
            .play([Take, Send(ok())])
            .file("old", "old")
            .args(*args)
    };
    cases.iter().map(build).collect()
}
