//! The scenarios: each option of `get`, and each exit code, is there once.
//!
//! No scenario depends on who is faster, the programs or a peer. The only limits are those of scenarios in which the
//! peer never answers.

use std::io::Write as _;

use super::peer::Peer;
use super::peer::Step::{self, Close, HalfClose, Reset, Send, Take, TakeBytes, TakeHead, Tls};
use super::scenario::Scenario;
use super::tls::{self, Kind};

/// Every scenario.
pub(crate) fn all() -> Vec<Scenario> {
    let subjects = [
        requests(),
        answers(),
        broken(),
        limits(),
        files(),
        formats(),
        connections(),
        redirects(),
        hosts(),
        codings(),
        retries(),
        proxies(),
        tunnels(),
        socks(),
        certificates(),
        secure_ends(),
    ];
    subjects.concat()
}

/// Names and arguments. Without a URL it is `http://{A}/p?q`.
type Rows<'a> = &'a [(&'a str, &'a str)];

/// What goes out, to a peer that answers with [`ok`].
fn requests() -> Vec<Scenario> {
    let rows: Rows<'_> = &[
        ("request/none", ""),
        ("request/several", "-H 'X-A: b' -H X-A:c -H 'x-b:  d e '"),
        ("request/empty", "-H X-A;"),
        ("request/removed", "-H Accept: -H User-Agent:"),
        (
            "request/replaced",
            "-H 'accept: text/html' -H 'user-agent: me'",
        ),
        ("request/agent", "-A me"),
        ("request/user", "-u a:b:c"),
        ("request/user-in-url", "http://a%40b:c%3ad@{A}/x"),
        ("request/cookie", "-b a=b"),
        ("request/range", "--range 0-4"),
        ("request/method", "-X DELETE"),
        ("request/data", "-d a=b -d c=d"),
        ("request/data-put", "-X PUT -d x"),
        ("request/data-file", "-d @data -d x"),
        ("request/binary-file", "--data-binary @data"),
        ("request/binary-stdin", "--data-binary @-"),
        ("request/verbose-user", "-v -u u:p"),
        ("request/upload", "-T five http://{A}/dir/"),
        ("request/upload-stdin", "-T -"),
        ("request/upload-missing", "-T none"),
        (
            "request/long-names",
            "--request PUT --data x --header A:b --user u:p --user-agent me --cookie c=d",
        ),
        ("url/no-scheme", "{A}/x"),
        ("url/dots-and-fragment", "http://{A}/a/../b/./c?x=/../y#f"),
        ("url/utf-8", "http://{A}/ä?ö"),
        (
            "resolve/name",
            "--resolve some.example:{Ap}:127.0.0.1 http://some.example:{Ap}/x",
        ),
        ("resolve/wrong", "--resolve some.example http://{A}/x"),
        ("family/v4", "-4 http://localhost:{Ap}/x"),
        ("refused/scheme", "foo://{A}/"),
        ("refused/no-host", "http://"),
        ("refused/option", "--no-such-option http://{A}/"),
        ("refused/no-url", "-i"),
        ("refused/number", "-m x http://{A}/"),
        ("refused/head-and-data", "-I -d x http://{A}/"),
        ("refused/rate-unit", "--rate 3/x http://{A}/"),
        (
            "refused/unix-socket",
            "--unix-socket none http://some.example/",
        ),
    ];
    let build = |(name, args): &(&str, &str)| {
        let url = if args.contains("://") || args.contains("{A}") || *args == "-i" {
            ""
        } else {
            " http://{A}/p?q"
        };
        Scenario::new(*name, &format!("{args}{url}"))
            .play([Take, Send(ok())])
            .file("headers", "X-One: 1\r\nX-Two;\nAccept:\n\n")
            .file("data", "a\r\nb\nc")
            .file("five", "12345")
            .file("empty", "")
            .stdin("x\r\ny")
    };
    let mut all: Vec<_> = rows.iter().map(build).collect();
    let go_on = || Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    let large = || "y".repeat(1_500_000);
    for (name, args) in [
        ("request/data-large", "--data-binary @large http://{A}/x"),
        ("request/upload-large", "-T large http://{A}/x"),
    ] {
        all.push(
            Scenario::new(name, args)
                .play([TakeHead, go_on(), TakeBytes(1_500_000), Send(ok())])
                .file("large", large()),
        );
    }
    all.push(
        Scenario::new(
            "request/expected",
            "-H 'Expect: 100-continue' -d abc -i http://{A}/",
        )
        .play([TakeHead, go_on(), TakeBytes(3), Send(ok())]),
    );
    all.push(
        Scenario::new("family/v6", "-6 http://localhost:{Ap}/x")
            .peer(Peer::PlayV6(vec![Take, Send(ok())])),
    );
    all
}

/// Answers as servers may give them.
fn answers() -> Vec<Scenario> {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let chunks = "5;a=b\r\nhello\r\n0\r\nT: 1\r\n\r\n";
    let rows: [(&str, &str, Vec<u8>); 10] = [
        (
            "answer/include",
            "-i",
            sized("200 OK", &["X-A: 1"], "hello"),
        ),
        (
            "answer/head",
            "-I",
            reply("200 OK", &["Content-Length: 5"], ""),
        ),
        ("answer/204", "-i", reply("204 No Content", &[], "")),
        (
            "answer/304",
            "-i",
            reply("304 Not Modified", &["Content-Length: 5"], ""),
        ),
        ("answer/404", "", sized("404 No", &[], "none")),
        (
            "answer/404-fail",
            "-f -w %{http_code}",
            sized("404 No", &[], "none"),
        ),
        (
            "answer/chunked",
            "-i",
            reply("200 OK", &["Transfer-Encoding: chunked"], chunks),
        ),
        (
            "answer/103",
            "-i",
            [early.repeat(2).into_bytes(), ok()].concat(),
        ),
        (
            "answer/1.0",
            "-i -w %{http_version}",
            b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec(),
        ),
        (
            "answer/101",
            "-H 'Connection: Upgrade' -H 'Upgrade: x' -i",
            reply("101 X", &["Upgrade: x"], "bytes"),
        ),
    ];
    let build = |(name, args, bytes): (&str, &str, Vec<u8>)| {
        Scenario::new(name, &format!("{args} http://{{A}}/")).play([Take, Send(bytes), Close])
    };
    rows.into_iter().map(build).collect()
}

/// Ends and answers that are errors, each with its exit code.
fn broken() -> Vec<Scenario> {
    let length = |length: &str| reply("200 OK", &[&format!("Content-Length: {length}")], "hello");
    let chunked = |body: &str| reply("200 OK", &["Transfer-Encoding: chunked"], body);
    let rows: [(&str, Vec<u8>); 7] = [
        ("nothing", Vec::new()),
        (
            "head",
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n".to_vec(),
        ),
        ("body", length("10")),
        ("chunk", chunked("5\r\nhel")),
        ("garbage", b"garbage\r\n\r\n".to_vec()),
        ("lengths-differ", length("5\r\nContent-Length: 4")),
        ("chunk-text", chunked("zz\r\nhello\r\n0\r\n\r\n")),
    ];
    let mut all: Vec<_> = rows
        .into_iter()
        .map(|(name, bytes)| {
            Scenario::new(format!("broken/{name}"), "http://{A}/").play([
                Take,
                Send(bytes),
                HalfClose,
            ])
        })
        .collect();
    all.push(Scenario::new("broken/reset", "http://{A}/").play([Take, Reset]));
    all.push(
        Scenario::new(
            "broken/refused",
            "-w '%{http_code} %{num_connects}' http://{A}/",
        )
        .peer(Peer::Refusing),
    );
    all.push(
        Scenario::new("broken/file-kept", "-o out http://{A}/").play([
            Take,
            Send(length("9")),
            Close,
        ]),
    );
    all
}

fn limits() -> Vec<Scenario> {
    let close = reply("200 OK", &[], "hello");
    let case = |name: &str, args: &str, bytes: Vec<u8>| {
        Scenario::new(format!("limit/{name}"), &format!("{args} http://{{A}}/")).play([
            Take,
            Send(bytes),
            Close,
        ])
    };
    vec![
        case("size-over", "--max-filesize 4", ok()),
        case("size-equal", "--max-filesize 5", ok()),
        case("size-unannounced", "--max-filesize 4", close),
        Scenario::new(
            "limit/time",
            "-m 3 -w '%{http_code} %{exitcode}' http://{A}/",
        )
        .play([Take]),
        Scenario::new(
            "limit/time-connect",
            "--connect-timeout 3 -k https://localhost:{Ap}/",
        )
        .play([]),
    ]
}

/// Where output goes.
fn files() -> Vec<Scenario> {
    let rows: Rows<'_> = &[
        ("file", "-o out http://{A}/d/f.txt?q"),
        ("two", "-o a -o b http://{A}/d/f.txt?q http://{A}/2"),
        ("one-of-two", "-o a http://{A}/d/f.txt?q http://{A}/2"),
        ("fail", "-f -o none http://{A}/404"),
        ("no-directory", "-o none/out http://{A}/2"),
        ("remote-name", "-O http://{A}/d/f.txt?q"),
        ("no-remote-name", "-O http://{A}/"),
    ];
    let build = |(name, args): &(&str, &str)| {
        Scenario::new(format!("output/{name}"), args)
            .routes([
                ("/d/f.txt?q", ok()),
                ("/2", sized("200 OK", &["X: y"], "two")),
                ("/0", sized("200 OK", &[], "")),
                ("/404", sized("404 No", &[], "none")),
            ])
            .file("old", "old")
    };
    rows.iter().map(build).collect()
}

/// `-w`.
fn formats() -> Vec<Scenario> {
    let codes = "-w '%{http_code} %{exitcode} %{num_redirects} %{num_connects}'";
    let answer = "-w '[%{content_type}] %{size_download} [%{redirect_url}]'";
    let request = "-w '%{method} %{url_effective} %{remote_ip}' -d abc";
    let escapes = "-w '\\n\\t\\r\\q\\\\ %% %{ %} %x a%{nothing}b'";
    let found = sized("302 Found", &["Location: ../x?y#z"], "moved");
    let typed = sized("200 OK", &["Content-Type: text/x; a=b"], "hello");
    [
        ("codes/200", codes, ok()),
        ("codes/failed", codes, Vec::new()),
        ("answer/200", answer, typed),
        ("answer/302", answer, found),
        ("request", request, ok()),
        ("escapes", escapes, ok()),
    ]
    .map(|(name, args, bytes)| {
        Scenario::new(
            format!("format/{name}"),
            &format!("{args} http://{{A}}/a/b?c#d"),
        )
        .play([Take, Send(bytes), Close])
    })
    .into()
}

/// Several requests, and which connection each comes on.
fn connections() -> Vec<Scenario> {
    let good = || [Take, Send(ok())];
    let head = || Send(reply("200 OK", &["Content-Length: 5"], ""));
    let case = |name: &str, args: &str, lists: Vec<Vec<Step>>| {
        Scenario::new(format!("kept/{name}"), args).peer(Peer::Play(lists))
    };
    let (two, twice) = ("http://{A}/1 http://{A}/2", [good(), good()].concat());
    let fails = vec![vec![Take, Close], good().to_vec()];
    let counted = "-w '%{num_connects} ' http://{A}/1 http://{A}/1";
    vec![
        case("two", two, vec![twice.clone()]),
        case("failed-first", two, fails),
        case("counted", counted, vec![twice.clone()]),
        case("rate", &format!("--rate 20/s {two}"), vec![twice.clone()]),
        case(
            "next",
            "-I http://{A}/1 --next -sS -d x http://{A}/2",
            vec![[vec![Take, head()], good().to_vec()].concat()],
        ),
    ]
}

const TALE: &str = "-L -w '|%{http_code} %{num_redirects} %{num_connects} %{url_effective}'";

/// `-L` at one server: codes and methods, forms of `Location`, limits.
fn redirects() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (code, name, args) in [
        (301, "get", ""),
        (301, "post", "-d a=b"),
        (302, "head", "-I"),
        (302, "post", "-d a=b"),
        (303, "post", "-d a=b"),
        (304, "get", ""),
        (307, "post", "-d a=b"),
        (307, "put", "-T five -H Expect:"),
        (308, "post", "-d a=b"),
    ] {
        let body = if name == "head" || code == 304 {
            ""
        } else {
            "moved"
        };
        let arrived = if name == "head" { "" } else { "hello" };
        let length = format!("Content-Length: {}", body.len());
        let moved = reply(&format!("{code} Moved"), &["Location: /to", &length], body);
        all.push(
            Scenario::new(
                format!("redirect/{code}/{name}"),
                &format!("{TALE} {args} http://{{A}}/from"),
            )
            .routes([
                ("/from", moved),
                ("/to", reply("200 OK", &["Content-Length: 5"], arrived)),
            ])
            .file("five", "12345"),
        );
    }
    for (name, location) in [
        ("relative", "./x/../y"),
        ("up", "../../../../x"),
        ("query", "?x=1"),
        ("no-scheme", "//{A}/x"),
        ("no-path", "http://{A}?x"),
        ("space", "   /a b   "),
        ("utf-8", "/\u{e4}?\u{f6}"),
        ("empty", ""),
        ("other-scheme", "foo://{A}/x"),
    ] {
        let moved = sized("302 Found", &[&format!("Location: {location}")], "moved");
        let args = format!("{TALE} --max-redirs 1 http://{{A}}/d/from?q#g");
        let twice = [Take, Send(moved), Take, Send(ok()), Take, Send(ok())];
        all.push(Scenario::new(format!("location/{name}"), &args).play(twice));
    }
    let step = |n: usize| {
        (
            format!("/{n}"),
            sized(
                "301 Moved",
                &[&format!("Location: /{}", n + 1)],
                format!("{n} "),
            ),
        )
    };
    for (name, length, args) in [
        ("51", 51, ""),
        ("limit-1-of-2", 2, "--max-redirs 1"),
        ("limit-none", 60, "--max-redirs -1"),
        ("verbose", 2, "-v"),
        ("file", 2, "-o out"),
    ] {
        let mut routes: Vec<(String, Vec<u8>)> = (0..length).map(step).collect();
        routes.push((format!("/{length}"), ok()));
        all.push(
            Scenario::new(
                format!("chain/{name}"),
                &format!("{TALE} {args} http://{{A}}/0"),
            )
            .routes(routes),
        );
    }
    let closing = sized(
        "302 Found",
        &["Location: /to", "Connection: close"],
        "moved",
    );
    let from = format!("{TALE} http://{{A}}/from");
    all.push(Scenario::new("chain/closing", &from).peer(Peer::Play(vec![
        vec![Take, Send(closing), Close],
        vec![Take, Send(ok())],
    ])));
    all.push(
        Scenario::new("chain/to-refused", &from)
            .play([
                Take,
                Send(sized("302 Found", &["Location: http://{B}/"], "moved")),
            ])
            .peer(Peer::Refusing),
    );
    all
}

/// `-L` to other origins: who gets the credentials.
fn hosts() -> Vec<Scenario> {
    let routes = |location: &str| {
        let moved = sized("302 Found", &[&format!("Location: {location}")], "");
        let back = sized("302 Found", &["Location: http://{A}/end"], "");
        [
            ("/from", moved),
            ("/to", ok()),
            ("/back", back),
            ("/end", ok()),
        ]
    };
    let mut all = Vec::new();
    for (name, location, args) in [
        ("same/user", "http://{A}/to", "-u u:p"),
        ("same/cookie", "http://{A}/to", "-b a=b"),
        ("port/user", "http://{B}/to", "-u u:p"),
        (
            "port/authorization",
            "http://{B}/to",
            "-H 'Authorization: Bearer x'",
        ),
        ("port/cookie-header", "http://{B}/to", "-H 'Cookie: a=b'"),
        ("name/user", "http://localhost:{Ap}/to", "-u u:p"),
        (
            "port/back-again",
            "http://{B}/back",
            "-u u:p -H 'Cookie: a=b'",
        ),
    ] {
        let routes = routes(location);
        all.push(
            Scenario::new(
                format!("origin/{name}"),
                &format!("{TALE} {args} http://{{A}}/from"),
            )
            .routes(routes.clone())
            .routes(routes),
        );
    }
    all
}

fn codings() -> Vec<Scenario> {
    let text: Vec<u8> = b"hello, hello, hello, world. ".repeat(400);
    let half = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() / 2);
        bytes
    };
    let rows: Vec<(&str, &str, Vec<u8>)> = vec![
        ("gzip", "gzip", gzip(&text)),
        ("deflate", "deflate", zlib(&text)),
        ("br", "br", brotli(&text)),
        ("zstd", "zstd", zstd(&text)),
        ("two", "gzip, br", brotli(&gzip(&text))),
        ("gzip-plain", "gzip", text.clone()),
        ("gzip-cut", "gzip", half(gzip(&text))),
    ];
    let mut all: Vec<_> = rows
        .into_iter()
        .map(|(name, coding, body)| {
            let bytes = sized("200 OK", &[&format!("Content-Encoding: {coding}")], body);
            Scenario::new(format!("coding/{name}"), "--compressed http://{A}/")
                .play([Take, Send(bytes)])
        })
        .collect();
    let coded = sized("200 OK", &["Content-Encoding: gzip"], gzip(&text));
    let case = |name: &str, args: &str| {
        let bytes = coded.clone();
        Scenario::new(format!("coding/{name}"), &format!("{args} http://{{A}}/"))
            .play([Take, Send(bytes)])
    };
    all.extend([case("as-is", "-o out")]);
    all
}

/// The pause before each repetition is a second.
fn retries() -> Vec<Scenario> {
    let busy = || vec![Take, Send(sized("503 Busy", &[], "busy")), Close];
    let fine = || vec![Take, Send(ok())];
    let missing = || vec![Take, Send(sized("404 No", &[], "none"))];
    let case = |name: &str, args: &str, lists: Vec<Vec<Step>>| {
        Scenario::new(
            format!("retry/{name}"),
            &format!("--retry 1 {args} -w |%{{http_code}} http://{{A}}/"),
        )
        .peer(Peer::Play(lists))
    };
    vec![
        case("503", "", vec![busy(), fine()]),
        case("503-twice", "", vec![busy(), busy()]),
        case("503-post", "-f -d x", vec![busy(), fine()]),
        case("404", "", vec![missing(), fine()]),
        case("empty", "", vec![vec![Take, Close], fine()]),
    ]
}

/// Requests in the form for proxies, and what the environment says.
fn proxies() -> Vec<Scenario> {
    let dead = "http://127.0.0.1:1";
    type Row<'a> = (&'a str, &'a [(&'static str, &'a str)], &'a str);
    let rows: &[Row<'_>] = &[
        ("plain", &[], "-x http://{A} http://some.example/x?y"),
        ("post", &[], "-x {A} -d abc http://some.example/x"),
        (
            "users",
            &[],
            "-x http://u%40x:p@{A} -u a:b http://some.example/x",
        ),
        ("empty", &[("http_proxy", dead)], "-x '' http://{A}/x"),
        (
            "noproxy",
            &[],
            "-x http://127.0.0.1:1 --noproxy a,127.0.0.1 http://{A}/x",
        ),
        (
            "noproxy-network",
            &[],
            "-x http://127.0.0.1:1 --noproxy 127.0.0.0/8 http://{A}/x",
        ),
        (
            "environment",
            &[("http_proxy", "http://u:p@{A}")],
            "http://some.example/x",
        ),
        ("environment-upper", &[("HTTP_PROXY", dead)], "http://{A}/x"),
        (
            "environment-all",
            &[("ALL_PROXY", "{A}")],
            "http://some.example/x",
        ),
        (
            "environment-no",
            &[("http_proxy", dead), ("no_proxy", "127.0.0.1")],
            "http://{A}/x",
        ),
    ];
    let build = |(name, environment, args): &Row<'_>| {
        let scenario = Scenario::new(format!("proxy/{name}"), args).play([Take, Send(ok())]);
        environment.iter().fold(scenario, |s, (n, v)| s.env(n, *v))
    };
    let mut all: Vec<_> = rows.iter().map(build).collect();
    all.push(Scenario::new("proxy/refusing", "-x {A} http://some.example/x").peer(Peer::Refusing));
    let asks = ["Proxy-Authenticate: Basic realm=\"x\""];
    all.push(
        Scenario::new("proxy/407", "-x {A} -w |%{http_code} http://some.example/x")
            .play([Take, Send(sized("407 Who", &asks, "who"))]),
    );
    all
}

/// CONNECT, to a TLS server in the tunnel.
fn tunnels() -> Vec<Scenario> {
    let established = || Send(b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec());
    let good = || {
        vec![
            Take,
            established(),
            Tls(tls::server(Kind::Good)),
            Take,
            Send(ok()),
        ]
    };
    let case = |name: &str, args: &str, steps: Vec<Step>| {
        let args = format!("--cacert ca.pem -x http://{args} https://localhost:99/x");
        with_files(Scenario::new(format!("tunnel/{name}"), &args).play(steps))
    };
    vec![
        case("good", "{A} -A me -H 'X-A: b'", good()),
        case("users", "u:p@{A} -u a:b", good()),
        case(
            "403",
            "{A} -w %{http_code}",
            vec![Take, Send(sized("403 No", &[], "no")), Close],
        ),
        case("closed", "{A}", vec![Take, Close]),
    ]
}

fn socks() -> Vec<Scenario> {
    let hello = TakeBytes(3);
    let said = |bytes: &[u8]| Send(bytes.to_vec());
    let granted = || said(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]);
    // "some.example" has 12 bytes: VER CMD RSV ATYP LEN name port.
    let (by_name, by_v4) = (TakeBytes(4 + 1 + 12 + 2), TakeBytes(4 + 4 + 2));
    let way = |request: &Step, end: Vec<Step>| {
        [vec![hello.clone(), said(&[5, 0]), request.clone()], end].concat()
    };
    let inside = || vec![granted(), Take, Send(ok())];
    let login = |verdict: u8| {
        vec![
            TakeBytes(4),
            said(&[5, 2]),
            TakeBytes(5),
            said(&[1, verdict]),
        ]
    };
    let case = |name: &str, args: &str, steps: Vec<Step>| {
        Scenario::new(format!("socks/{name}"), args).play(steps)
    };
    let named = "http://some.example:81/x";
    let secure = [
        vec![
            hello.clone(),
            said(&[5, 0]),
            TakeBytes(4 + 1 + 9 + 2),
            granted(),
        ],
        vec![Tls(tls::server(Kind::Good)), Take, Send(ok())],
    ];
    let refused = vec![said(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]), Close];
    let user = [login(0), vec![by_name.clone()], inside()].concat();
    vec![
        case(
            "name",
            &format!("-x socks5h://{{A}} {named}"),
            way(&by_name, inside()),
        ),
        case(
            "address",
            "-x socks5://{A} http://10.1.2.3:81/x",
            way(&by_v4, inside()),
        ),
        case("user", &format!("-x socks5h://u:p@{{A}} {named}"), user),
        case(
            "user-refused",
            &format!("-x socks5h://u:p@{{A}} {named}"),
            [login(1), vec![Close]].concat(),
        ),
        case(
            "refused",
            &format!("-x socks5h://{{A}} {named}"),
            way(&by_name, refused),
        ),
        with_files(case(
            "tls",
            "--cacert ca.pem -x socks5h://{A} https://localhost:99/x",
            secure.concat(),
        )),
    ]
}

const SECURE: &str = "https://localhost:{Ap}/x";

/// `-k`, `--cacert`, `-E` and `--key`.
fn certificates() -> Vec<Scenario> {
    let resolved =
        "--cacert ca.pem --resolve some.example:{Ap}:127.0.0.1 https://some.example:{Ap}/x";
    let rows = [
        ("good", Kind::Good, "--cacert ca.pem"),
        ("good-unknown", Kind::Good, ""),
        ("good-insecure", Kind::Good, "-k"),
        ("expired", Kind::Expired, "--cacert ca.pem"),
        ("wrong-name", Kind::WrongName, "--cacert ca.pem"),
        ("self-signed-insecure", Kind::SelfSigned, "-k"),
        ("no-such-ca", Kind::Good, "--cacert none.pem"),
        ("resolved", Kind::Good, resolved),
        (
            "client",
            Kind::AsksClient,
            "--cacert ca.pem -E client.pem --key client.key",
        ),
        (
            "client-one-file",
            Kind::AsksClient,
            "--cacert ca.pem --cert both.pem",
        ),
        ("client-none", Kind::AsksClient, "--cacert ca.pem"),
        (
            "client-mismatch",
            Kind::AsksClient,
            "--cacert ca.pem -E client.pem --key wrong.key",
        ),
    ];
    let build = |(name, kind, args): (&str, Kind, &str)| {
        let url = if args.contains("https:") { "" } else { SECURE };
        let steps = [Tls(tls::server(kind)), Take, Send(ok())];
        with_files(Scenario::new(format!("tls/{name}"), &format!("{args} {url}")).play(steps))
    };
    rows.into_iter().map(build).collect()
}

/// How the stream ends, and redirects between the schemes.
fn secure_ends() -> Vec<Scenario> {
    let open = || Tls(tls::server(Kind::Good));
    let args = format!("--cacert ca.pem {SECURE}");
    let case =
        |name: &str, steps: Vec<Step>| Scenario::new(format!("tls/end/{name}"), &args).play(steps);
    let unframed = || Send(reply("200 OK", &[], "hello"));
    let to = |location: &str| Send(sized("302 Found", &[&format!("Location: {location}")], ""));
    let follow = "-L --cacert ca.pem -u u:p -w '|%{url_effective} %{num_connects}'";
    let all = vec![
        case(
            "unframed-notified",
            vec![open(), Take, unframed(), HalfClose],
        ),
        case("unframed-cut", vec![open(), Take, unframed(), Close]),
        case("framed-cut", vec![open(), Take, Send(ok()), Close]),
        case("at-once", vec![TakeBytes(1), Close]),
        case(
            "not-tls",
            vec![
                TakeBytes(1),
                Send(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
                Close,
            ],
        ),
        Scenario::new("tls/kept", &format!("{args} {SECURE}")).play([
            open(),
            Take,
            Send(ok()),
            Take,
            Send(ok()),
        ]),
        Scenario::new("tls/up", &format!("{follow} http://localhost:{{Ap}}/from"))
            .play([Take, to("https://localhost:{Bp}/to")])
            .play([open(), Take, Send(ok())]),
        Scenario::new(
            "tls/down",
            &format!("{follow} https://localhost:{{Ap}}/from"),
        )
        .play([open(), Take, to("http://localhost:{Bp}/to")])
        .play([Take, Send(ok())]),
    ];
    all.into_iter().map(with_files).collect()
}

fn with_files(scenario: Scenario) -> Scenario {
    scenario
        .file("ca.pem", tls::ca_pem())
        .file("client.pem", tls::client_pem())
        .file("client.key", tls::client_key())
        .file("both.pem", tls::client_pem() + &tls::client_key())
        .file("wrong.key", tls::wrong_key())
}

/// `HTTP/1.1` with these lines, an empty one and this body.
fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for header in headers {
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.as_ref());
    bytes
}

/// A reply framed by its length.
fn sized(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = format!("Content-Length: {}", body.as_ref().len());
    reply(status, &[headers, &[&length]].concat(), body)
}

/// The plainest reply.
fn ok() -> Vec<u8> {
    sized("200 OK", &[], "hello")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4096, 5, 20);
    encoder.write_all(bytes).expect("memory");
    drop(encoder);
    encoded
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).expect("memory")
}
