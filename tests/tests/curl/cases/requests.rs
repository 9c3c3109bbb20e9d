//! Requests as they go out: targets, methods, headers, credentials.

use super::{ok, sized};
use crate::peer::Step::{Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let mut all = targets();
    all.extend(headers());
    all.extend(more_headers());
    all.extend(queries());
    all.extend(refused());
    all
}

fn case(name: String, args: &[&str]) -> Scenario {
    Scenario::new(name).play([Take, Send(ok())]).args(args)
}

fn queries() -> Vec<Scenario> {
    let cases: [(&str, &[&str]); 16] = [
        ("one", &["-G", "-d", "a=b", "http://{A}"]),
        (
            "three",
            &["-G", "-d", "a=b", "-d", "c", "-d", "d e", "http://{A}/x"],
        ),
        ("added", &["-G", "-d", "a=b", "http://{A}/x?q=1#f"]),
        ("empty-there", &["-G", "-d", "a=b", "http://{A}/x?"]),
        ("head", &["-I", "-G", "-d", "a", "http://{A}/"]),
        ("method", &["-X", "PUT", "-G", "-d", "a", "http://{A}/"]),
        ("file", &["-G", "-d", "@data", "http://{A}/"]),
        (
            "binary",
            &["-G", "--data-binary", "a+b%20&c", "http://{A}/"],
        ),
        ("none", &["-G", "http://{A}/"]),
        (
            "encoded",
            &["-G", "--data-urlencode", "n=a b&c=\u{e9}", "http://{A}/"],
        ),
        (
            "encoded-file",
            &["-G", "--data-urlencode", "n@data", "http://{A}/"],
        ),
        ("url-query", &["--url-query", "n=a b", "http://{A}/?q"]),
        (
            "url-query-raw",
            &["--url-query", "+n=a+b%20&c", "http://{A}/"],
        ),
        (
            "url-query-two",
            &["--url-query", "a", "--url-query", "=b", "http://{A}/"],
        ),
        (
            "url-query-post",
            &["-d", "x", "--url-query", "a@data", "http://{A}/"],
        ),
        (
            "url-query-get",
            &["-G", "-d", "x", "--url-query", "a=1", "http://{A}/"],
        ),
    ];
    let query = |(name, args): (&str, &[&str])| {
        case(format!("query/{name}"), args).file("data", "a b\n&\r\nc")
    };
    let mut all: Vec<_> = cases.into_iter().map(query).collect();
    for (name, data) in [
        ("text", "a b&c"),
        ("mark", "=a=b"),
        ("name", "n=a b"),
        ("file", "@data"),
        ("name-file", "n@data"),
        ("empty", ""),
        ("utf-8", "\u{e9}=\u{e9}~-._*"),
    ] {
        let args = ["--data-urlencode", data, "-d", "x", "http://{A}/"];
        all.push(query((&format!("data-urlencode/{name}"), &args)));
    }
    all
}

fn targets() -> Vec<Scenario> {
    let targets = [
        ("empty", ""),
        ("root", "/"),
        ("query-only", "?q=1"),
        ("fragment", "/a#b"),
        ("fragment-only", "#b"),
        ("query-fragment", "/a?b#c?d"),
        ("dots", "/a/../b/./c"),
        ("dots-end", "/a/b/.."),
        ("dots-end-single", "/a/."),
        ("dots-above", "/../../x"),
        ("dots-encoded", "/a/%2e%2e/b/%2E"),
        ("dots-query", "/a?x=/../y"),
        ("dots-three", "/a/.../b"),
        ("dots-then-query", "/a/..?q"),
        ("slashes", "//a//b"),
        ("slashes-dots", "/a//../b"),
        ("odd", "/a|b\"c<>'^`;x=[1]?a=%2f&b"),
        ("backslash", "/a\\b"),
        ("percent", "/a%zz%"),
        ("utf-8", "/\u{e4}?\u{f6}"),
        (
            "long",
            "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ),
        ("colon", "/a:b"),
        ("at", "/@a"),
        ("url-inside", "/http://x/../y"),
    ];
    let mut all = Vec::new();
    for (name, target) in targets {
        let url = format!("http://{{A}}{target}");
        let format = "|%{url_effective}|%{url}";
        all.push(case(format!("target/{name}"), &["-g", "-w", format, &url]));
        all.push(case(
            format!("target/{name}/as-is"),
            &["-g", "--path-as-is", "-w", format, &url],
        ));
    }
    for (name, url) in [
        ("no-scheme", "{A}/x"),
        ("upper-scheme", "HTTP://{A}/x"),
        ("localhost", "localhost:{Ap}/x"),
        ("upper-host", "http://LOCALHOST:{Ap}/x"),
        ("short-ip", "http://127.1:{Ap}/x"),
        ("number-ip", "http://2130706433:{Ap}/x"),
        ("hex-ip", "http://0x7f.1:{Ap}/x"),
        ("octal-ip", "http://0177.0.0.1:{Ap}/x"),
        ("user", "http://u:p@{A}/x"),
        ("user-only", "http://u@{A}/x"),
        ("user-empty", "http://:@{A}/x"),
        ("user-encoded", "http://a%40b:c%3ad@{A}/x"),
        ("password-only", "http://:p@{A}/x"),
        ("user-at", "http://a@b:c@{A}/x"),
        ("port-zeros", "http://127.0.0.1:0{Ap}/x"),
        ("trailing-dot", "http://localhost.:{Ap}/x"),
    ] {
        all.push(case(
            format!("url/{name}"),
            &["-w", "|%{url_effective}", url],
        ));
    }
    all
}

fn headers() -> Vec<Scenario> {
    let cases: &[(&str, &[&str])] = &[
        ("none", &[]),
        ("one", &["-H", "X-A: b"]),
        ("several", &["-H", "X-A: b", "-H", "X-A: c", "-H", "x-b: d"]),
        ("spaces", &["-H", "X-A:   b  c  "]),
        ("no-space", &["-H", "X-A:b"]),
        ("empty", &["-H", "X-A;"]),
        ("removed", &["-H", "Accept:", "-H", "User-Agent:"]),
        ("removed-unknown", &["-H", "X-None:"]),
        (
            "replaced",
            &["-H", "accept: text/html", "-H", "user-agent: me"],
        ),
        ("agent", &["-A", "me"]),
        ("agent-empty", &["-A", ""]),
        ("agent-and-header", &["-A", "one", "-H", "User-Agent: two"]),
        ("host", &["-H", "Host: other.example"]),
        ("host-empty", &["-H", "Host;"]),
        ("host-twice", &["-H", "Host: a", "-H", "Host: b"]),
        ("connection", &["-H", "Connection: keep-alive"]),
        ("te", &["-H", "TE: trailers"]),
        ("file", &["-H", "@headers"]),
        (
            "order",
            &["-H", "B: 1", "-H", "A: 2", "-u", "u:p", "-A", "x"],
        ),
        ("user", &["-u", "user:pass"]),
        ("user-empty-password", &["-u", "user:"]),
        ("user-colons", &["-u", "a:b:c"]),
        ("user-utf-8", &["-u", "\u{e4}:\u{f6}"]),
        (
            "user-and-header",
            &["-u", "u:p", "-H", "Authorization: Bearer x"],
        ),
        ("user-removed", &["-u", "u:p", "-H", "Authorization:"]),
        ("method", &["-X", "DELETE"]),
        ("method-lower", &["-X", "get"]),
        ("method-odd", &["-X", "M-SEARCH"]),
        ("method-head", &["-I", "-X", "GET"]),
        ("data", &["-d", "a=b"]),
        ("data-several", &["-d", "a=b", "-d", "c=d"]),
        ("data-empty", &["-d", ""]),
        (
            "data-type",
            &["-d", "{}", "-H", "Content-Type: application/json"],
        ),
        ("data-type-removed", &["-d", "x", "-H", "Content-Type:"]),
        ("data-put", &["-X", "PUT", "-d", "x"]),
        ("data-get", &["-X", "GET", "-d", "x"]),
        ("data-file", &["-d", "@data"]),
        ("data-binary-file", &["--data-binary", "@data"]),
        ("data-stdin", &["-d", "@-"]),
        ("data-binary-stdin", &["--data-binary", "@-"]),
        (
            "data-mixed",
            &["-d", "x", "--data-binary", "@data", "-d", "@data"],
        ),
        ("data-length", &["-d", "abc", "-H", "Content-Length: 3"]),
        (
            "data-length-removed",
            &["-d", "abc", "-H", "Content-Length:"],
        ),
        (
            "data-chunked",
            &["-d", "abc", "-H", "Transfer-Encoding: chunked"],
        ),
        ("data-expect-removed", &["-d", "abc", "-H", "Expect:"]),
        ("data-order", &["-d", "x", "-H", "B: 1", "-u", "u:p"]),
        ("verbose", &["-v"]),
        ("verbose-post", &["-v", "-d", "x", "-H", "X-A: b"]),
        ("verbose-head", &["-v", "-I"]),
        ("verbose-user", &["-v", "-u", "u:p"]),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        case(
            format!("request/{name}"),
            &[*args, &["http://{A}/p?q"]].concat(),
        )
        .file("headers", "X-One: 1\r\nX-Two;\nAccept:\n\n")
        .file("data", "a\r\nb\n\0c")
        .stdin("x\r\ny")
    };
    cases.iter().map(build).collect()
}

fn more_headers() -> Vec<Scenario> {
    let large = "x".repeat(1_100_000);
    let cases: &[(&str, &[&str])] = &[
        ("data-raw", &["--data-raw", "@data"]),
        ("data-urlencode", &["--data-urlencode", "a=b c&d/\u{e4}"]),
        ("data-urlencode-bare", &["--data-urlencode", "b c"]),
        ("data-urlencode-equals", &["--data-urlencode", "=b c"]),
        ("data-urlencode-file", &["--data-urlencode", "n@data"]),
        ("json", &["--json", "{\"a\":1}"]),
        ("get", &["-G", "-d", "a=b", "-d", "c=d"]),
        ("range", &["-r", "0-4"]),
        ("range-from", &["-r", "5-"]),
        ("range-last", &["-r", "-5"]),
        ("range-several", &["-r", "0-1,3-4"]),
        ("referer", &["-e", "http://from/"]),
        ("bearer", &["--oauth2-bearer", "token"]),
    ];
    let mut all: Vec<Scenario> = cases
        .iter()
        .map(|(name, args)| {
            case(
                format!("request/{name}"),
                &[*args, &["http://{A}/p?q"]].concat(),
            )
            .file("data", "a\r\nb\n\0c")
        })
        .collect();
    all.push(
        Scenario::new("request/data-large")
            .play([Take, Send(sized("200 OK", &[], "got"))])
            .file("large", large)
            .args(["-H", "Expect:", "--data-binary", "@large", "http://{A}/"]),
    );
    all
}

/// Command lines that are refused before anything is sent.
fn refused() -> Vec<Scenario> {
    let cases: &[(&str, &[&str])] = &[
        ("scheme", &["gopherx://{A}/"]),
        ("scheme-ftpx", &["foo://{A}/"]),
        ("no-host", &["http://"]),
        ("no-host-port", &["http://:80/"]),
        ("bad-port", &["http://127.0.0.1:99999/"]),
        ("text-port", &["http://127.0.0.1:x/"]),
        ("space", &["http://{A}/a b"]),
        ("space-host", &["http://a b/"]),
        ("newline", &["http://{A}/a\nb"]),
        ("control", &["http://{A}/a\u{1}b"]),
        ("v6", &["http://[::1/"]),
        ("unknown-option", &["--no-such-option", "http://{A}/"]),
        ("unknown-letter", &["-~", "http://{A}/"]),
        ("no-url", &["-i"]),
        ("missing-value", &["http://{A}/", "-H"]),
        ("bad-number", &["-m", "x", "http://{A}/"]),
        ("negative-number", &["-m", "-1", "http://{A}/"]),
        ("head-and-data", &["-I", "-d", "x", "http://{A}/"]),
        ("no-such-file", &["--data-binary", "@none", "http://{A}/"]),
        ("no-for-value", &["--no-data", "http://{A}/"]),
        ("rate-unit", &["--rate", "3/x", "http://{A}/"]),
        ("filesize-unit", &["--max-filesize", "3z", "http://{A}/"]),
    ];
    let build = |(name, args): &(&str, &[&str])| case(format!("refused/{name}"), args);
    cases.iter().map(build).collect()
}
