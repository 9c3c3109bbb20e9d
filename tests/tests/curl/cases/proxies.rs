//! HTTP and SOCKS proxies: forms of requests, credentials, environment, refusals.

use super::{ok, reply, sized};
use crate::peer::Peer;
use crate::peer::Step::{self, Close, Reset, Send, SendRaw, Take, TakeBytes, Tls, Tunnel};
use crate::scenario::Scenario;
use crate::tls;

pub(super) fn all() -> Vec<Scenario> {
    [http(), environment(), connect(), socks()].concat()
}

fn http() -> Vec<Scenario> {
    let cases: &[(&str, &[&str])] = &[
        ("plain", &["-x", "http://{A}", "http://some.example/x?y"]),
        ("no-scheme", &["-x", "{A}", "http://some.example/x"]),
        ("slash", &["-x", "http://{A}/", "http://some.example/x"]),
        ("port", &["-x", "{A}", "http://some.example:81/x"]),
        ("post", &["-x", "{A}", "-d", "abc", "http://some.example/x"]),
        ("head", &["-x", "{A}", "-I", "http://some.example/x"]),
        ("user", &["-x", "http://u:p@{A}", "http://some.example/x"]),
        (
            "user-option",
            &["-x", "{A}", "-U", "u:p", "http://some.example/x"],
        ),
        (
            "both-users",
            &["-x", "http://u:p@{A}", "-u", "a:b", "http://some.example/x"],
        ),
        (
            "user-encoded",
            &["-x", "http://u%40x:p%3a@{A}", "http://some.example/x"],
        ),
        ("url-user", &["-x", "{A}", "http://a:b@some.example/x"]),
        ("dots", &["-x", "{A}", "http://some.example/a/../b"]),
        ("no-path", &["-x", "{A}", "http://some.example"]),
        ("query", &["-x", "{A}", "http://some.example?q"]),
        ("fragment", &["-x", "{A}", "http://some.example/a#b"]),
        (
            "proxy-header",
            &[
                "-x",
                "{A}",
                "-H",
                "X-A: b",
                "--proxy-header",
                "X-B: c",
                "http://some.example/x",
            ],
        ),
        (
            "authorization-header",
            &[
                "-x",
                "{A}",
                "-H",
                "Proxy-Authorization: own",
                "http://some.example/x",
            ],
        ),
        (
            "authorization-proxy-header",
            &[
                "-x",
                "{A}",
                "-U",
                "u:p",
                "--proxy-header",
                "Proxy-Authorization: own",
                "http://some.example/x",
            ],
        ),
        (
            "authorization-both",
            &[
                "-x",
                "{A}",
                "-U",
                "u:p",
                "-H",
                "Proxy-Authorization: own",
                "http://some.example/x",
            ],
        ),
        (
            "authorization-none",
            &["-H", "Proxy-Authorization: own", "http://{A}/x"],
        ),
        (
            "authorization-noproxy",
            &[
                "-x",
                "http://127.0.0.1:1",
                "--noproxy",
                "127.0.0.1",
                "-H",
                "Proxy-Authorization: own",
                "http://{A}/x",
            ],
        ),
        (
            "host-header",
            &["-x", "{A}", "-H", "Host: other", "http://some.example/x"],
        ),
        (
            "connection-header",
            &[
                "-x",
                "{A}",
                "-H",
                "Proxy-Connection:",
                "http://some.example/x",
            ],
        ),
        ("empty", &["-x", "", "http://{A}/x"]),
        (
            "noproxy",
            &[
                "-x",
                "http://127.0.0.1:1",
                "--noproxy",
                "127.0.0.1",
                "http://{A}/x",
            ],
        ),
        (
            "noproxy-star",
            &["-x", "http://127.0.0.1:1", "--noproxy", "*", "http://{A}/x"],
        ),
        (
            "noproxy-other",
            &[
                "-x",
                "{A}",
                "--noproxy",
                "other.example,example.org",
                "http://some.example/x",
            ],
        ),
        (
            "noproxy-cidr",
            &[
                "-x",
                "http://127.0.0.1:1",
                "--noproxy",
                "127.0.0.0/8",
                "http://{A}/x",
            ],
        ),
        (
            "noproxy-list",
            &[
                "-x",
                "http://127.0.0.1:1",
                "--noproxy",
                "a, localhost ,b",
                "http://localhost:{Ap}/x",
            ],
        ),
        ("bad-scheme", &["-x", "foo://{A}", "http://some.example/x"]),
        ("bad-host", &["-x", "http://", "http://some.example/x"]),
        (
            "path-as-is",
            &["-x", "{A}", "--path-as-is", "http://some.example/a/../b"],
        ),
        ("verbose", &["-v", "-x", "{A}", "http://some.example/x"]),
        (
            "formats",
            &[
                "-w",
                "%{remote_ip} %{remote_port} %{http_connect} %{url_effective}",
                "-x",
                "{A}",
                "http://some.example/x",
            ],
        ),
    ];
    let mut all: Vec<Scenario> = cases
        .iter()
        .map(|(name, args)| {
            Scenario::new(format!("proxy/{name}"))
                .play([
                    Take,
                    Send(if *name == "head" {
                        reply("200 OK", &["Content-Length: 5"], "")
                    } else {
                        ok()
                    }),
                ])
                .args(*args)
        })
        .collect();
    all.push(Scenario::new("proxy/refusing").peer(Peer::Refusing).args([
        "-x",
        "{A}",
        "http://some.example/x",
    ]));
    all.push(
        Scenario::new("proxy/407")
            .play([
                Take,
                Send(sized(
                    "407 Who",
                    &["Proxy-Authenticate: Basic realm=\"x\""],
                    "who",
                )),
            ])
            .args(["-x", "{A}", "-w", "|%{http_code}", "http://some.example/x"]),
    );
    all.push(
        Scenario::new("proxy/two-hosts")
            .routes([("http://a.example/1", ok()), ("http://b.example/2", ok())])
            .args(["-x", "{A}", "http://a.example/1", "http://b.example/2"]),
    );
    all.push(
        Scenario::new("proxy/redirect")
            .routes([
                (
                    "http://a.example/1",
                    sized("302 Found", &["Location: http://b.example/2"], ""),
                ),
                ("http://b.example/2", ok()),
            ])
            .args([
                "-L",
                "-x",
                "http://u:p@{A}",
                "-u",
                "a:b",
                "http://a.example/1",
            ]),
    );
    all
}

fn environment() -> Vec<Scenario> {
    let proxied = "http://some.example/x";
    type Case<'a> = (&'a str, &'a [(&'static str, &'a str)], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        ("http_proxy", &[("http_proxy", "http://{A}")], &[proxied]),
        (
            "HTTP_PROXY",
            &[("HTTP_PROXY", "http://127.0.0.1:1")],
            &["http://{A}/x"],
        ),
        ("ALL_PROXY", &[("ALL_PROXY", "http://{A}")], &[proxied]),
        ("all_proxy", &[("all_proxy", "{A}")], &[proxied]),
        (
            "https_proxy",
            &[("https_proxy", "http://127.0.0.1:1")],
            &["http://{A}/x"],
        ),
        (
            "order",
            &[
                ("http_proxy", "http://{A}"),
                ("ALL_PROXY", "http://127.0.0.1:1"),
            ],
            &[proxied],
        ),
        (
            "option",
            &[("http_proxy", "http://127.0.0.1:1")],
            &["-x", "{A}", proxied],
        ),
        (
            "option-empty",
            &[("http_proxy", "http://127.0.0.1:1")],
            &["-x", "", "http://{A}/x"],
        ),
        (
            "no_proxy",
            &[
                ("http_proxy", "http://127.0.0.1:1"),
                ("no_proxy", "127.0.0.1"),
            ],
            &["http://{A}/x"],
        ),
        (
            "NO_PROXY",
            &[
                ("http_proxy", "http://127.0.0.1:1"),
                ("NO_PROXY", "127.0.0.1"),
            ],
            &["http://{A}/x"],
        ),
        (
            "no_proxy-star",
            &[("http_proxy", "http://127.0.0.1:1"), ("NO_PROXY", "*")],
            &["http://{A}/x"],
        ),
        (
            "no_proxy-domain",
            &[
                ("http_proxy", "{A}"),
                ("no_proxy", "example.org,other.example"),
            ],
            &[proxied],
        ),
        (
            "no_proxy-overridden",
            &[("http_proxy", "{A}"), ("no_proxy", "some.example")],
            &["--noproxy", "", proxied],
        ),
        ("user", &[("http_proxy", "http://u:p@{A}")], &[proxied]),
        ("empty", &[("http_proxy", "")], &["http://{A}/x"]),
    ];
    cases
        .iter()
        .map(|(name, environment, args)| {
            let scenario = Scenario::new(format!("proxy/environment/{name}"))
                .play([Take, Send(ok())])
                .args(*args);
            environment.iter().fold(scenario, |s, (n, v)| s.env(n, *v))
        })
        .collect()
}

/// CONNECT, to a TLS server in the tunnel.
fn connect() -> Vec<Scenario> {
    let established = || Send(b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec());
    let inside = || vec![Tls(tls::server(tls::Kind::Good)), Take, Send(ok())];
    let case = |name: &str, steps: Vec<Step>, args: &[&str]| {
        Scenario::new(format!("proxy/connect/{name}"))
            .play(steps)
            .file("ca.pem", tls::ca_pem())
            .args(
                [
                    &["--http1.1", "--cacert", "ca.pem", "-x", "http://{A}"],
                    args,
                ]
                .concat(),
            )
    };
    let url = "https://localhost:99/x";
    let tunnel = |steps: Vec<Step>| [vec![Take, established()], steps].concat();
    vec![
        case("plain", tunnel(inside()), &[url]),
        case("default-port", tunnel(inside()), &["https://localhost/x"]),
        case("user", tunnel(inside()), &["-U", "u:p", url]),
        case(
            "both-users",
            tunnel(inside()),
            &["-U", "u:p", "-u", "a:b", url],
        ),
        case("verbose", tunnel(inside()), &["-v", url]),
        case("verbose-user", tunnel(inside()), &["-v", "-U", "u:p", url]),
        case("heads", tunnel(inside()), &["-i", url]),
        case(
            "heads-suppressed",
            tunnel(inside()),
            &["-i", "--suppress-connect-headers", url],
        ),
        case(
            "proxy-header",
            tunnel(inside()),
            &[
                "-H",
                "X-A: b",
                "--proxy-header",
                "X-B: c",
                "--proxy-header",
                "X-C: d",
                url,
            ],
        ),
        case(
            "proxy-header-agent",
            tunnel(inside()),
            &["--proxy-header", "User-Agent: other", url],
        ),
        case(
            "proxy-header-file",
            tunnel(inside()),
            &["--proxy-header", "@headers", url],
        )
        .file("headers", "X-B: c\nX-C: d\n"),
        case(
            "authorization-proxy-header",
            tunnel(inside()),
            &[
                "-U",
                "u:p",
                "--proxy-header",
                "Proxy-Authorization: own",
                url,
            ],
        ),
        case(
            "authorization-header",
            tunnel(inside()),
            &["-H", "Proxy-Authorization: own", url],
        ),
        case(
            "407-verbose",
            vec![
                Take,
                Send(sized(
                    "407 Who",
                    &["Proxy-Authenticate: Basic realm=\"x\""],
                    "who",
                )),
                Close,
            ],
            &[
                "-v",
                "-i",
                "-w",
                "%{http_connect} %{http_code} %{size_header}",
                url,
            ],
        ),
        case(
            "403-suppressed",
            vec![Take, Send(sized("403 No", &[], "no")), Close],
            &["-i", "--suppress-connect-headers", url],
        ),
        case(
            "formats",
            tunnel(inside()),
            &[
                "-w",
                "|%{http_connect} %{http_code} %{num_connects} %{size_header} %{remote_port} %{ssl_verify_result}",
                url,
            ],
        ),
        case(
            "named",
            tunnel(inside()),
            &["-A", "me", "-H", "X-A: b", url],
        ),
        case("post", tunnel(inside()), &["-d", "abc", url]),
        case(
            "200-with-length",
            [
                vec![Take, Send(reply("200 OK", &["Content-Length: 5"], ""))],
                inside(),
            ]
            .concat(),
            &[url],
        ),
        case(
            "201",
            [vec![Take, Send(reply("201 OK", &[], ""))], inside()].concat(),
            &[url],
        ),
        case(
            "1.0",
            [
                vec![Take, Send(b"HTTP/1.0 200 OK\r\n\r\n".to_vec())],
                inside(),
            ]
            .concat(),
            &[url],
        ),
        case(
            "interim",
            [
                vec![
                    Take,
                    Send(b"HTTP/1.1 103 X\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".to_vec()),
                ],
                inside(),
            ]
            .concat(),
            &[url],
        ),
        case(
            "403",
            vec![Take, Send(sized("403 No", &[], "no")), Close],
            &["-w", "%{http_connect} %{http_code}", url],
        ),
        case(
            "403-heads",
            vec![Take, Send(sized("403 No", &[], "no")), Close],
            &["-i", url],
        ),
        case(
            "407",
            vec![
                Take,
                Send(sized(
                    "407 Who",
                    &["Proxy-Authenticate: Basic realm=\"x\""],
                    "who",
                )),
                Close,
            ],
            &[url],
        ),
        case(
            "502-chunked",
            vec![
                Take,
                Send(reply(
                    "502 Bad",
                    &["Transfer-Encoding: chunked"],
                    "3\r\nbad\r\n0\r\n\r\n",
                )),
                Close,
            ],
            &[url],
        ),
        case("closed", vec![Take, Close], &[url]),
        case(
            "garbage",
            vec![Take, Send(b"garbage\r\n\r\n".to_vec()), Close],
            &[url],
        ),
        case(
            "cut",
            vec![Take, Send(b"HTTP/1.1 200 OK\r\nX".to_vec()), Close],
            &[url],
        ),
        case("closed-after", vec![Take, established(), Close], &[url]),
        case(
            "not-tls",
            vec![Take, established(), Send(ok()), Close],
            &[url],
        ),
        case(
            "proxytunnel",
            [vec![Take, established(), Take, Send(ok())]].concat(),
            &["-p", "http://some.example/x"],
        ),
        case(
            "proxytunnel-verbose",
            [vec![Take, established(), Take, Send(ok())]].concat(),
            &[
                "-v",
                "-i",
                "--proxytunnel",
                "-U",
                "u:p",
                "http://some.example/x",
            ],
        ),
        case(
            "connect-to-http",
            [vec![Take, established(), Take, Send(ok())]].concat(),
            &[
                "--connect-to",
                "some.example:80:other.example:81",
                "http://some.example/x",
            ],
        ),
        case(
            "connect-to-http-port",
            [vec![Take, established(), Take, Send(ok())]].concat(),
            &["--connect-to", ":::81", "http://some.example/x"],
        ),
        case(
            "connect-to-https",
            tunnel(inside()),
            &["--connect-to", "localhost:99:other.example:81", url],
        ),
        case(
            "connect-to-same",
            vec![Take, Send(ok())],
            &[
                "--connect-to",
                "some.example:80:some.example:80",
                "http://some.example/x",
            ],
        ),
        case(
            "connect-to-another",
            vec![Take, Send(ok())],
            &[
                "--connect-to",
                "an.example:80:other.example:81",
                "http://some.example/x",
            ],
        ),
        Scenario::new("proxy/connect/tunnel")
            .play([Take, established(), Tunnel(1)])
            .play(inside())
            .file("ca.pem", tls::ca_pem())
            .args([
                "--http1.1",
                "--cacert",
                "ca.pem",
                "-x",
                "http://{A}",
                "https://localhost:{Bp}/x",
            ]),
        Scenario::new("proxy/connect/over-tls")
            .play(
                [
                    vec![Tls(tls::server(tls::Kind::Good)), Take, established()],
                    inside(),
                ]
                .concat(),
            )
            .file("ca.pem", tls::ca_pem())
            .args([
                "--http1.1",
                "--cacert",
                "ca.pem",
                "--proxy-cacert",
                "ca.pem",
                "-x",
                "https://localhost:{Ap}",
                "https://localhost:99/x",
            ]),
        Scenario::new("proxy/over-tls")
            .play([Tls(tls::server(tls::Kind::Good)), Take, Send(ok())])
            .file("ca.pem", tls::ca_pem())
            .args([
                "--http1.1",
                "--proxy-cacert",
                "ca.pem",
                "-x",
                "https://localhost:{Ap}",
                "http://some.example/x",
            ]),
        over_tls("unknown", &[]),
        over_tls("insecure", &["--proxy-insecure"]),
        over_tls("server-insecure", &["-k"]),
        over_tls("server-cacert", &["--cacert", "ca.pem"]),
        over_tls("cacert-missing", &["--proxy-cacert", "none.pem"]),
        over_tls("cacert-garbage", &["--proxy-cacert", "garbage.pem"]),
        Scenario::new("proxy/over-tls/insecure-connect")
            .play(
                [
                    vec![Tls(tls::server(tls::Kind::Good)), Take, established()],
                    inside(),
                ]
                .concat(),
            )
            .file("ca.pem", tls::ca_pem())
            .args([
                "--http1.1",
                "--cacert",
                "ca.pem",
                "--proxy-insecure",
                "-x",
                "https://localhost:{Ap}",
                "-w",
                "|%{ssl_verify_result} %{proxy_ssl_verify_result}",
                "https://localhost:99/x",
            ]),
        Scenario::new("proxy/over-tls/reset")
            .play([TakeBytes(1), Reset])
            .args(["-x", "https://localhost:{Ap}", "http://some.example/x"]),
        Scenario::new("proxy/over-tls/closed")
            .play([TakeBytes(1), Close])
            .args(["-x", "https://localhost:{Ap}", "http://some.example/x"]),
    ]
}

/// A proxy under TLS that is not asked for a tunnel.
fn over_tls(name: &str, args: &[&str]) -> Scenario {
    Scenario::new(format!("proxy/over-tls/{name}"))
        .play([Tls(tls::server(tls::Kind::Good)), Take, Send(ok())])
        .file("ca.pem", tls::ca_pem())
        .file("garbage.pem", "none")
        .args(["--http1.1", "-x", "https://localhost:{Ap}"])
        .args(args)
        .args([
            "-w",
            "|%{ssl_verify_result} %{proxy_ssl_verify_result}",
            "http://some.example/x",
        ])
}

fn socks() -> Vec<Scenario> {
    let hello = TakeBytes(3);
    let no_auth = || SendRaw(vec![5, 0]);
    let granted = || SendRaw(vec![5, 0, 0, 1, 127, 0, 0, 1, 0, 80]);
    let refused = |code: u8| SendRaw(vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    // "some.example" has 12 bytes: VER CMD RSV ATYP LEN name port.
    let by_name = || TakeBytes(4 + 1 + 12 + 2);
    let by_v4 = || TakeBytes(4 + 4 + 2);
    let inside = || [Take, Send(ok())];
    let case = |name: &str, steps: Vec<Step>, args: &[&str]| {
        Scenario::new(format!("socks/{name}"))
            .play(steps)
            .args(args)
    };
    let named = |end: Vec<Step>| [vec![hello.clone(), no_auth(), by_name()], end].concat();
    let numbered = |end: Vec<Step>| [vec![hello.clone(), no_auth(), by_v4()], end].concat();
    let go = |head: Step| [vec![head], inside().to_vec()].concat();
    let url = "http://some.example:81/x";
    let mut all = vec![
        case("5h", named(go(granted())), &["-x", "socks5h://{A}", url]),
        case(
            "5-literal",
            numbered(go(granted())),
            &["-x", "socks5://{A}", "http://10.1.2.3:81/x"],
        ),
        case(
            "5h-literal",
            numbered(go(granted())),
            &["-x", "socks5h://{A}", "http://10.1.2.3:81/x"],
        ),
        case(
            "5-resolve",
            numbered(go(granted())),
            &[
                "-x",
                "socks5://{A}",
                "--resolve",
                "some.example:81:10.1.2.3",
                url,
            ],
        ),
        case(
            "5h-option",
            named(go(granted())),
            &["--socks5-hostname", "{A}", url],
        ),
        case(
            "5-option",
            numbered(go(granted())),
            &["--socks5", "{A}", "http://10.1.2.3:81/x"],
        ),
        case(
            "user",
            vec![
                TakeBytes(4),
                SendRaw(vec![5, 2]),
                TakeBytes(5),
                SendRaw(vec![1, 0]),
                by_name(),
                granted(),
                Take,
                Send(ok()),
            ],
            &["-x", "socks5h://u:p@{A}", url],
        ),
        case(
            "user-refused",
            vec![
                TakeBytes(4),
                SendRaw(vec![5, 2]),
                TakeBytes(5),
                SendRaw(vec![1, 1]),
                Close,
            ],
            &["-x", "socks5h://u:p@{A}", url],
        ),
        case(
            "user-not-asked",
            vec![
                TakeBytes(4),
                no_auth(),
                by_name(),
                granted(),
                Take,
                Send(ok()),
            ],
            &["-x", "socks5h://u:p@{A}", url],
        ),
        case(
            "no-method",
            vec![hello.clone(), SendRaw(vec![5, 255]), Close],
            &["-x", "socks5h://{A}", url],
        ),
        case(
            "wrong-version",
            vec![hello.clone(), SendRaw(vec![4, 0]), Close],
            &["-x", "socks5h://{A}", url],
        ),
        case(
            "closed",
            vec![hello.clone(), Close],
            &["-x", "socks5h://{A}", url],
        ),
        case("closed-at-once", vec![Close], &["-x", "socks5h://{A}", url]),
        case(
            "closed-after",
            named(vec![Close]),
            &["-x", "socks5h://{A}", url],
        ),
        case(
            "name-bound",
            named(go(SendRaw(
                [&[5, 0, 0, 3, 3][..], b"abc", &[0, 80]].concat(),
            ))),
            &["-x", "socks5h://{A}", url],
        ),
        case(
            "v6-bound",
            named(go(SendRaw(
                [&[5, 0, 0, 4][..], &[0; 16], &[0, 80]].concat(),
            ))),
            &["-x", "socks5h://{A}", url],
        ),
        case("environment", named(go(granted())), &[url]).env("ALL_PROXY", "socks5h://{A}"),
        Scenario::new("socks/refusing")
            .peer(Peer::Refusing)
            .args(["-x", "socks5h://{A}", url]),
        Scenario::new("socks/tls")
            .play(
                [
                    vec![
                        hello.clone(),
                        no_auth(),
                        TakeBytes(4 + 1 + 9 + 2),
                        granted(),
                        Tls(tls::server(tls::Kind::Good)),
                    ],
                    inside().to_vec(),
                ]
                .concat(),
            )
            .file("ca.pem", tls::ca_pem())
            .args([
                "--http1.1",
                "--cacert",
                "ca.pem",
                "-x",
                "socks5h://{A}",
                "https://localhost:99/x",
            ]),
    ];
    for code in 1..=9 {
        all.push(case(
            &format!("refused-{code}"),
            named(vec![refused(code), Close]),
            &["-x", "socks5h://{A}", url],
        ));
    }
    all
}
