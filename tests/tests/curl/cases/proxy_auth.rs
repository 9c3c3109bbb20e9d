//! Authentication with proxies: `--proxy-basic`, `--proxy-digest`, `--proxy-anyauth`, forwarding and tunnels.

use super::{ok, sized};
use crate::peer::Peer;
use crate::peer::Step::{self, Close, Send, Take};
use crate::scenario::Scenario;

const FORMAT: &str = "|%{http_code} %{http_connect} %{num_redirects}";
const DIGEST: &str = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"";

pub(super) fn all() -> Vec<Scenario> {
    [forwarding(), tunnels()].concat()
}

fn asks(challenge: &str) -> Step {
    let field = format!("Proxy-Authenticate: {challenge}");
    Send(sized("407 Who", &[&field], "who"))
}

fn refuses(challenge: &str) -> Vec<Step> {
    let field = format!("Proxy-Authenticate: {challenge}");
    let answer = sized("407 Who", &["Connection: close", &field], "who");
    vec![Take, Send(answer), Close]
}

fn forwarding() -> Vec<Scenario> {
    let case = |name: &str, replies: Vec<Step>, args: &[&str]| {
        let steps = replies.into_iter().flat_map(|reply| [Take, reply]);
        Scenario::new(format!("proxy-auth/{name}"))
            .play(steps)
            .args(["-w", FORMAT])
            .args(args)
            .args(["http://some.example/x?y"])
    };
    let digest = ["-x", "{A}", "--proxy-digest", "-U", "u:p"];
    let any = ["-x", "{A}", "--proxy-anyauth", "-U", "u:p"];
    let with = |args: &[&'static str], more: &[&'static str]| [args, more].concat();
    let server = Send(sized(
        "401 Who",
        &["WWW-Authenticate: Digest realm=\"s\", nonce=\"m\""],
        "who",
    ));
    vec![
        case(
            "basic",
            vec![Send(ok())],
            &["-x", "{A}", "--proxy-basic", "-U", "u:p"],
        ),
        case(
            "basic-refused",
            vec![asks("Basic realm=\"b\"")],
            &["-x", "{A}", "--proxy-basic", "-U", "u:p"],
        ),
        case("digest", vec![asks(DIGEST), Send(ok())], &digest),
        case("digest-not-asked", vec![Send(ok())], &digest),
        case("digest-refused", vec![asks(DIGEST), asks(DIGEST)], &digest),
        case(
            "digest-stale",
            vec![
                asks(DIGEST),
                asks("Digest realm=\"r\", nonce=\"m\", stale=true"),
                Send(ok()),
            ],
            &digest,
        ),
        case(
            "digest-basic-only",
            vec![asks("Basic realm=\"b\"")],
            &digest,
        ),
        case(
            "digest-url-user",
            vec![asks(DIGEST), Send(ok())],
            &["-x", "http://u:p@{A}", "--proxy-digest"],
        ),
        case(
            "digest-post",
            vec![asks(DIGEST), Send(ok())],
            &with(&digest, &["-d", "abc"]),
        ),
        case(
            "digest-post-not-asked",
            vec![Send(ok()), Send(ok())],
            &with(&digest, &["-d", "abc"]),
        ),
        case(
            "digest-include",
            vec![asks(DIGEST), Send(ok())],
            &with(&digest, &["-i"]),
        ),
        case(
            "digest-fail",
            vec![asks(DIGEST), Send(ok())],
            &with(&digest, &["-f"]),
        ),
        case(
            "digest-no-user",
            vec![asks(DIGEST)],
            &["-x", "{A}", "--proxy-digest"],
        ),
        case(
            "any-basic",
            vec![asks("Basic realm=\"b\""), Send(ok())],
            &any,
        ),
        case(
            "any-digest",
            vec![
                asks("Basic realm=\"b\", Digest realm=\"r\", nonce=\"n\""),
                Send(ok()),
            ],
            &any,
        ),
        case(
            "any-refused",
            vec![asks("Basic realm=\"b\""), asks("Basic realm=\"b\"")],
            &any,
        ),
        case("any-not-asked", vec![Send(ok())], &any),
        case(
            "both-asked",
            vec![asks(DIGEST), Send(ok())],
            &["-x", "{A}", "--proxy-basic", "--proxy-digest", "-U", "u:p"],
        ),
        case(
            "server-too",
            vec![asks(DIGEST), server.clone(), Send(ok())],
            &with(&digest, &["--digest", "-u", "a:b"]),
        ),
        case(
            "server-too-post",
            vec![asks(DIGEST), server, Send(ok())],
            &with(&digest, &["--digest", "-u", "a:b", "-d", "abc"]),
        ),
        case(
            "redirect",
            vec![
                asks(DIGEST),
                Send(sized("302 Found", &["Location: /z"], "")),
                Send(ok()),
            ],
            &with(&digest, &["-L"]),
        ),
        Scenario::new("proxy-auth/noproxy")
            .play([Take, Send(ok())])
            .args([
                "-x",
                "http://127.0.0.1:1",
                "--noproxy",
                "*",
                "--proxy-digest",
                "-U",
                "u:p",
                "http://{A}/x",
            ]),
        Scenario::new("proxy-auth/environment")
            .play([Take, asks(DIGEST), Take, Send(ok())])
            .args(["--proxy-digest", "http://some.example/x"])
            .env("http_proxy", "http://u:p@{A}"),
        Scenario::new("proxy-auth/not-a-proxy")
            .play([Take, asks(DIGEST)])
            .args(["--proxy-digest", "-U", "u:p", "-w", FORMAT, "http://{A}/x"]),
    ]
}

fn tunnels() -> Vec<Scenario> {
    let established = || Send(b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec());
    let opened = || vec![Take, established(), Take, Send(ok())];
    let case = |name: &str, connections: Vec<Vec<Step>>, args: &[&str]| {
        Scenario::new(format!("proxy-auth/tunnel/{name}"))
            .peer(Peer::Play(connections))
            .args(["-p", "-x", "{A}", "-U", "u:p", "-w", FORMAT])
            .args(args)
            .args(["http://some.example/x"])
    };
    vec![
        case(
            "digest",
            vec![refuses(DIGEST), opened()],
            &["--proxy-digest"],
        ),
        case(
            "digest-include",
            vec![refuses(DIGEST), opened()],
            &["--proxy-digest", "-i"],
        ),
        case(
            "digest-post",
            vec![refuses(DIGEST), opened()],
            &["--proxy-digest", "-d", "abc"],
        ),
        case(
            "digest-refused",
            vec![refuses(DIGEST), refuses(DIGEST)],
            &["--proxy-digest"],
        ),
        case(
            "digest-stale",
            vec![
                refuses(DIGEST),
                refuses("Digest realm=\"r\", nonce=\"m\", stale=true"),
                opened(),
            ],
            &["--proxy-digest"],
        ),
        case(
            "any-basic",
            vec![refuses("Basic realm=\"b\""), opened()],
            &["--proxy-anyauth"],
        ),
        case(
            "any-digest",
            vec![refuses(DIGEST), opened()],
            &["--proxy-anyauth"],
        ),
        case(
            "any-refused",
            vec![refuses("Basic realm=\"b\""), refuses("Basic realm=\"b\"")],
            &["--proxy-anyauth"],
        ),
        case(
            "any-unknown",
            vec![refuses("New a=b")],
            &["--proxy-anyauth"],
        ),
        case("not-asked", vec![opened()], &["--proxy-digest"]),
        case("basic", vec![opened()], &["--proxy-basic"]),
        case(
            "basic-refused",
            vec![refuses("Basic realm=\"b\"")],
            &["--proxy-basic"],
        ),
        Scenario::new("proxy-auth/tunnel/two")
            .peer(Peer::Play(vec![
                refuses(DIGEST),
                vec![Take, established(), Take, Send(ok()), Take, Send(ok())],
            ]))
            .args([
                "-p",
                "-x",
                "{A}",
                "-U",
                "u:p",
                "--proxy-digest",
                "-w",
                FORMAT,
            ])
            .args(["http://some.example/x", "http://some.example/y"]),
        Scenario::new("proxy-auth/tunnel/server-too")
            .peer(Peer::Play(vec![
                refuses(DIGEST),
                vec![
                    Take,
                    established(),
                    Take,
                    Send(sized(
                        "401 Who",
                        &["WWW-Authenticate: Digest realm=\"s\", nonce=\"m\""],
                        "who",
                    )),
                    Take,
                    Send(ok()),
                ],
            ]))
            .args([
                "-p",
                "-x",
                "{A}",
                "-U",
                "u:p",
                "--proxy-digest",
                "--digest",
                "-u",
                "a:b",
            ])
            .args(["-d", "abc", "-w", FORMAT, "http://some.example/x"]),
        Scenario::new("proxy-auth/tunnel/kept")
            .play([vec![Take, asks(DIGEST)], opened()].concat())
            .args([
                "-p",
                "-x",
                "{A}",
                "-U",
                "u:p",
                "--proxy-digest",
                "-w",
                FORMAT,
            ])
            .args(["http://some.example/x"]),
    ]
}
