//! `-L`: codes and methods, forms of `Location`, other hosts, limits, credentials.

use super::{ok, reply, sized};
use crate::peer::Peer;
use crate::peer::Step::{Close, Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [methods(), locations(), hosts(), limits(), shapes()].concat()
}

const TALE: &str =
    "|%{http_code} %{num_redirects} %{num_connects} %{url_effective} %{method} %{size_header}";

fn methods() -> Vec<Scenario> {
    let requests: &[(&str, &[&str])] = &[
        ("GET", &[]),
        ("HEAD", &["-I"]),
        ("POST", &["-d", "a=b"]),
        (
            "POST-chunked",
            &["-d", "a=b", "-H", "Transfer-Encoding: chunked"],
        ),
        (
            "POST-json",
            &["-d", "{}", "-H", "Content-Type: application/json"],
        ),
        ("PUT-data", &["-X", "PUT", "-d", "a=b"]),
        ("PUT-file", &["-H", "Expect:", "-T", "five"]),
        ("DELETE", &["-X", "DELETE"]),
        ("PATCH", &["-X", "PATCH", "-d", "a"]),
        ("post301", &["--post301", "-d", "a=b"]),
        ("post302", &["--post302", "-d", "a=b"]),
        ("post303", &["--post303", "-d", "a=b"]),
    ];
    let mut all = Vec::new();
    for code in [
        "300", "301", "302", "303", "304", "305", "306", "307", "308", "399",
    ] {
        for (name, args) in requests {
            // curl announces a chunked body for the GET that follows, sends none, and waits.
            if *name == "POST-chunked" && matches!(code, "301" | "302" | "303") {
                continue;
            }
            let body = if *name == "HEAD" || code == "304" {
                ""
            } else {
                "moved"
            };
            let length = if body.is_empty() {
                "Content-Length: 0"
            } else {
                "Content-Length: 5"
            };
            let moved = reply(&format!("{code} Moved"), &["Location: /to", length], body);
            let arrived = reply(
                "200 OK",
                &["Content-Length: 5"],
                if *name == "HEAD" { "" } else { "hello" },
            );
            all.push(
                Scenario::new(format!("redirect/{code}/{name}"))
                    .routes([("/from", moved), ("/to", arrived)])
                    .file("five", "12345")
                    .args([&["-L", "-w", TALE], *args, &["http://{A}/from"]].concat()),
            );
        }
    }
    all
}

fn locations() -> Vec<Scenario> {
    let locations = [
        ("absolute", "http://{A}/x"),
        ("relative", "x"),
        ("relative-up", "../x"),
        ("relative-dots", "./x/../y"),
        ("relative-too-far", "../../../../x"),
        ("path", "/x"),
        ("path-dots", "/a/../x/./y"),
        ("path-encoded-dots", "/a/%2e%2e/x"),
        ("query", "?x=1"),
        ("query-path", "/x?y=1&z=/../a"),
        ("fragment", "/x#f"),
        ("fragment-only", "#f"),
        ("protocol-relative", "//{A}/x"),
        ("upper-scheme", "HTTP://{A}/x"),
        ("no-path", "http://{A}"),
        ("no-path-query", "http://{A}?x"),
        ("space", "/a b"),
        ("space-query", "/a?b c"),
        ("utf-8", "/\u{e4}?\u{f6}"),
        ("percent", "/a%20b%zz"),
        ("odd", "/a|b\"c<>'^`[]{}"),
        ("backslash", "/a\\b"),
        ("tab", "/a\tb"),
        ("leading-spaces", "   /x"),
        ("trailing-spaces", "/x   "),
        ("empty", ""),
        ("scheme-only", "http:"),
        ("scheme-slashes", "http://"),
        ("scheme-one-slash", "http:/x"),
        ("no-slashes", "http:x"),
        ("three-slashes", "http:///x"),
        ("other-scheme", "foo://{A}/x"),
        ("file-scheme", "file:///etc/hostname"),
        ("mailto", "mailto:me@example.org"),
        ("javascript", "javascript:alert(1)"),
        ("bad-port", "http://127.0.0.1:99999/"),
        ("text-port", "http://127.0.0.1:x/"),
        ("userinfo", "http://u:p@{A}/x"),
        ("userinfo-only-user", "http://u@{A}/x"),
        ("same", "/d/from"),
        ("double-slash-path", "/x//y"),
        ("colon-segment", "x:y"),
        ("comma", "/x, /y"),
        ("semicolon", ";x"),
        ("dot", "."),
        ("dot-dot", ".."),
    ];
    let mut all = Vec::new();
    for (name, location) in locations {
        let header = format!("Location: {location}");
        let moved = sized("302 Found", &[&header], "moved");
        all.push(
            Scenario::new(format!("location/{name}"))
                .peer(Peer::Play(vec![vec![
                    Take,
                    Send(moved.clone()),
                    Take,
                    Send(ok()),
                    Take,
                    Send(ok()),
                ]]))
                .args([
                    "-L",
                    "--max-redirs",
                    "1",
                    "-w",
                    TALE,
                    "http://{A}/d/from?q#g",
                ]),
        );
        all.push(
            Scenario::new(format!("location/{name}/told"))
                .play([Take, Send(moved)])
                .args([
                    "-w",
                    "|%{redirect_url}|%{num_redirects}",
                    "http://{A}/d/from?q#g",
                ]),
        );
    }
    let two = sized("302 Found", &["Location: /1", "Location: /2"], "");
    let lower = sized("302 Found", &["location: /1"], "");
    let none = sized("302 Found", &[], "moved");
    for (name, moved) in [("twice", two), ("lower-case", lower), ("missing", none)] {
        all.push(
            Scenario::new(format!("location/{name}"))
                .play([Take, Send(moved), Take, Send(ok())])
                .args(["-L", "-w", TALE, "http://{A}/from"]),
        );
    }
    all
}

fn hosts() -> Vec<Scenario> {
    let secrets: &[(&str, &[&str])] = &[
        ("none", &[]),
        ("user", &["-u", "u:p"]),
        ("header", &["-H", "Authorization: Bearer x"]),
        ("cookie-header", &["-H", "Cookie: a=b"]),
        ("cookie", &["-b", "a=b"]),
        ("host-header", &["-H", "Host: named"]),
        ("other-header", &["-H", "X-Secret: x"]),
        ("bearer", &["--oauth2-bearer", "token"]),
        ("trusted-user", &["--location-trusted", "-u", "u:p"]),
        (
            "trusted-header",
            &["--location-trusted", "-H", "Authorization: Bearer x"],
        ),
    ];
    let places = [
        ("same", "http://{A}/to"),
        ("port", "http://{B}/to"),
        ("name", "http://localhost:{Ap}/to"),
        ("both", "http://localhost:{Bp}/to"),
    ];
    let mut all = Vec::new();
    for (place, location) in places {
        for (secret, args) in secrets {
            let header = format!("Location: {location}");
            let moved = sized("302 Found", &[&header], "");
            let routes = [("/from", moved), ("/to", ok())];
            all.push(
                Scenario::new(format!("redirect/to-{place}/{secret}"))
                    .routes(routes.clone())
                    .routes(routes)
                    .args([&["-L", "-w", TALE], *args, &["http://{A}/from"]].concat()),
            );
        }
        let header = format!("Location: {location}");
        let moved = sized("307 Moved", &[&header], "");
        let routes = [("/from", moved), ("/to", ok())];
        all.push(
            Scenario::new(format!("redirect/to-{place}/url-user-POST"))
                .routes(routes.clone())
                .routes(routes)
                .args(["-L", "-w", TALE, "-d", "abc", "http://u:p@{A}/from"]),
        );
        // There and back again.
        let header = format!("Location: {location}");
        let there = [
            ("/from", sized("302 Found", &[&header], "")),
            ("/end", ok()),
        ];
        let back = [
            ("/to", sized("302 Found", &["Location: http://{A}/end"], "")),
            ("/end", ok()),
        ];
        let (there, back) = if location.contains("{Ap}") || location.contains("{A}") {
            let both = [there.as_slice(), back.as_slice()].concat();
            (both.clone(), both)
        } else {
            (there.to_vec(), back.to_vec())
        };
        all.push(
            Scenario::new(format!("redirect/to-{place}/and-back"))
                .routes(there)
                .routes(back)
                .args([
                    "-L",
                    "-w",
                    TALE,
                    "-u",
                    "u:p",
                    "-H",
                    "Cookie: a=b",
                    "http://{A}/from",
                ]),
        );
    }
    all
}

fn limits() -> Vec<Scenario> {
    let step = |n: usize| {
        let header = format!("Location: /{}", n + 1);
        (
            format!("/{n}"),
            sized("301 Moved", &[&header], format!("{n} ")),
        )
    };
    let chain = |name: &str, length: usize, args: &[&str]| {
        let mut routes: Vec<(String, Vec<u8>)> = (0..length).map(step).collect();
        routes.push((format!("/{length}"), ok()));
        Scenario::new(format!("redirect/chain/{name}"))
            .routes(routes)
            .args([&["-w", TALE, "-L"], args, &["http://{A}/0"]].concat())
    };
    let around = sized("302 Found", &["Location: /"], "");
    vec![
        chain("3", 3, &[]),
        chain("50", 50, &[]),
        chain("51", 51, &[]),
        chain("limit-0", 1, &["--max-redirs", "0"]),
        chain("limit-1", 1, &["--max-redirs", "1"]),
        chain("limit-1-of-2", 2, &["--max-redirs", "1"]),
        chain("limit-none", 60, &["--max-redirs", "-1"]),
        chain("limit-text", 1, &["--max-redirs", "x"]),
        chain("heads", 2, &["-i"]),
        chain("heads-only", 2, &["-I"]),
        chain("fail", 2, &["-f"]),
        chain("verbose", 2, &["-v"]),
        chain("file", 2, &["-o", "out"]),
        Scenario::new("redirect/chain/loop")
            .routes([("/", around)])
            .args(["-L", "-w", TALE, "http://{A}/"]),
        Scenario::new("redirect/chain/two-urls")
            .routes([step(0), step(1), ("/2".to_owned(), ok())])
            .args(["-L", "-w", TALE, "http://{A}/0", "http://{A}/1"]),
    ]
}

fn shapes() -> Vec<Scenario> {
    let location = "Location: /to";
    let case = |name: &str, moved: Vec<u8>, close: bool, args: &[&str]| {
        let mut first = vec![Take, Send(moved)];
        if close {
            first.push(Close);
        } else {
            first.extend([Take, Send(ok())]);
        }
        Scenario::new(format!("redirect/shape/{name}"))
            .peer(Peer::Play(vec![first, vec![Take, Send(ok())]]))
            .args([&["-L", "-w", TALE], args, &["http://{A}/from"]].concat())
    };
    let found = "302 Found";
    vec![
        case(
            "chunked",
            reply(
                found,
                &[location, "Transfer-Encoding: chunked"],
                "5\r\nmoved\r\n0\r\n\r\n",
            ),
            false,
            &[],
        ),
        case(
            "closing",
            sized(found, &[location, "Connection: close"], "moved"),
            true,
            &[],
        ),
        case(
            "close-framed",
            reply(found, &[location], "moved"),
            true,
            &[],
        ),
        case(
            "cut",
            reply(found, &[location, "Content-Length: 9"], "moved"),
            true,
            &[],
        ),
        case(
            "bad-chunk",
            reply(found, &[location, "Transfer-Encoding: chunked"], "zz\r\n"),
            true,
            &[],
        ),
        case(
            "large",
            sized(found, &[location], "z".repeat(100_000)),
            false,
            &[],
        ),
        case("to-404", sized(found, &[location], ""), false, &["-f"]),
        case(
            "filesize",
            sized(found, &[location], "moved"),
            false,
            &["--max-filesize", "5"],
        ),
        case(
            "interim",
            [
                b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n".to_vec(),
                sized(found, &[location], ""),
            ]
            .concat(),
            false,
            &["-i"],
        ),
        Scenario::new("redirect/shape/to-refused")
            .play([
                Take,
                Send(sized(found, &["Location: http://{B}/"], "moved")),
            ])
            .peer(Peer::Refusing)
            .args(["-L", "-w", TALE, "http://{A}/"]),
        Scenario::new("redirect/shape/to-silence")
            .play([
                Take,
                Send(sized(found, &["Location: http://{B}/"], "moved")),
            ])
            .play([Take, Close])
            .args(["-L", "-w", TALE, "http://{A}/"]),
    ]
}
