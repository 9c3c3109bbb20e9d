//! Versions of HTTP, `Host` left out, and URLs that curl reads kindly.

use super::{ok, reply, sized};
use crate::peer::Peer;
use crate::peer::Step::{Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [versions(), hosts(), urls()].concat()
}

fn case(name: &str, args: &[&str]) -> Scenario {
    Scenario::new(name)
        .play([Take, Send(ok())])
        .file("data", "a file")
        .args(args)
}

fn versions() -> Vec<Scenario> {
    let found = |to: &str| sized("302 Found", &[&format!("Location: {to}")], "");
    vec![
        case("version/1.0", &["-0", "http://{A}/x"]),
        case("version/1.0-long", &["--http1.0", "http://{A}/x"]),
        case("version/1.0-then-1.1", &["-0", "--http1.1", "http://{A}/x"]),
        case("version/1.1-then-1.0", &["--http1.1", "-0", "http://{A}/x"]),
        case("version/1.0-post", &["-0", "-d", "abc", "http://{A}/x"]),
        case("version/1.0-put", &["-0", "-T", "data", "http://{A}/x"]),
        case("version/1.0-head", &["-0", "-I", "http://{A}/x"]),
        case("version/1.0-host", &["-0", "-H", "Host:", "http://{A}/x"]),
        case("version/1.0-verbose", &["-0", "-v", "http://{A}/x"]),
        case(
            "version/1.0-proxy",
            &["-0", "-x", "{A}", "http://some.example/x"],
        ),
        case(
            "version/1.0-large",
            &["-0", "--data-binary", "@large", "http://{A}/x"],
        )
        .file("large", "x".repeat(1_100_000)),
        Scenario::new("version/1.0-stdin")
            .play([])
            .stdin("abc")
            .args(["-0", "-T", "-", "http://{A}/x"]),
        Scenario::new("version/1.0-redirect")
            .play([Take, Send(found("/y")), Take, Send(ok())])
            .args(["-0", "-L", "http://{A}/x"]),
        Scenario::new("version/1.0-two")
            .play([Take, Send(ok()), Take, Send(ok())])
            .args([
                "-0",
                "-w",
                "%{num_connects}",
                "http://{A}/x",
                "http://{A}/y",
            ]),
        Scenario::new("version/1.0-both-ways")
            .peer(Peer::Play(vec![
                vec![
                    Take,
                    Send(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec()),
                ],
                vec![Take, Send(ok())],
            ]))
            .args([
                "-0",
                "-w",
                "%{http_version} %{num_connects}",
                "http://{A}/x",
                "http://{A}/y",
            ]),
        Scenario::new("version/1.0-chunked")
            .play([
                Take,
                Send(reply(
                    "200 OK",
                    &["Transfer-Encoding: chunked"],
                    "5\r\nhello\r\n0\r\n\r\n",
                )),
            ])
            .args(["-0", "http://{A}/x"]),
        Scenario::new("version/next")
            .play([Take, Send(ok()), Take, Send(ok())])
            .args(["-0", "http://{A}/x", "--next", "-sS", "http://{A}/y"]),
        case("version/2", &["--http2", "http://{A}/x"]),
        case(
            "version/digest-1.0",
            &["-0", "--digest", "-u", "u:p", "http://{A}/x"],
        ),
    ]
}

fn hosts() -> Vec<Scenario> {
    let found = |to: &str| sized("302 Found", &[&format!("Location: {to}")], "");
    vec![
        case("host/none", &["-H", "Host:", "http://{A}/x"]),
        case("host/empty", &["-H", "Host;", "http://{A}/x"]),
        case("host/space", &["-H", "Host: ", "http://{A}/x"]),
        case("host/other", &["-H", "Host: other", "http://{A}/x"]),
        case("host/post", &["-H", "Host:", "-d", "abc", "http://{A}/x"]),
        case(
            "host/proxy",
            &["-H", "Host:", "-x", "{A}", "http://some.example/x"],
        ),
        case("host/file", &["-H", "@headers", "http://{A}/x"]).file("headers", "Host:\nX: y\n"),
        case("host/verbose", &["-v", "-H", "Host:", "http://{A}/x"]),
        Scenario::new("host/redirect")
            .play([Take, Send(found("/y")), Take, Send(ok())])
            .args(["-L", "-H", "Host:", "http://{A}/x"]),
    ]
}

fn urls() -> Vec<Scenario> {
    let format = "|%{url_effective} %{scheme} %{remote_ip}";
    let url = |name: &str, url: &str| case(&format!("url/{name}"), &["-w", format, url]);
    let v6 = |name: &str, url: &str| {
        Scenario::new(format!("url/{name}"))
            .peer(Peer::PlayV6(vec![Take, Send(ok())]))
            .args(["-w", format, url])
    };
    let found = |to: &str| sized("302 Found", &[&format!("Location: {to}")], "");
    vec![
        url("three-slashes", "http:///{A}/x"),
        url("one-slash", "http:/{A}/x"),
        url("three-slashes-upper", "HTTP:///{A}/x?q=http:///y"),
        url("three-slashes-user", "http:///u:p@{A}/x"),
        case("url/four-slashes", &["http:////{A}/x"]),
        case("url/no-slash", &["http:{A}/x"]),
        case("url/three-slashes-other", &["gopherx:///{A}/x"]),
        url("slashes-in-path", "http://{A}///x"),
        v6("v6", "http://{A}/x"),
        v6("zone-name", "http://[::1%25lo]:{Ap}/x"),
        v6("zone-number", "http://[::1%251]:{Ap}/x"),
        v6("zone-bare", "http://[::1%lo]:{Ap}/x"),
        v6("zone-user", "http://u:p@[::1%25lo]:{Ap}/x?%25"),
        v6("zone-unknown", "http://[::1%25no-such]:{Ap}/x"),
        v6("zone-no-scheme", "[::1%25lo]:{Ap}/x"),
        Scenario::new("url/zone-redirect")
            .peer(Peer::PlayV6(vec![
                Take,
                Send(found("/y")),
                Take,
                Send(ok()),
            ]))
            .args(["-L", "-w", "%{num_connects}", "http://[::1%25lo]:{Ap}/x"]),
    ]
}
