//! Authentication with servers: `--basic`, `--digest`, `--anyauth`, and what servers ask for.

use super::{ok, reply, sized};
use crate::peer::Peer;
use crate::peer::Step::{self, Close, Send, Take};
use crate::scenario::Scenario;

const FORMAT: &str =
    "|%{http_code} %{num_redirects} %{num_connects} %{size_header} %{size_download}";

pub(super) fn all() -> Vec<Scenario> {
    [
        challenges(),
        bodies(),
        outputs(),
        redirects(),
        any(),
        options(),
    ]
    .concat()
}

/// A 401 with these challenges, one in each field.
fn asks(challenges: &[&str]) -> Step {
    let fields: Vec<String> = challenges
        .iter()
        .map(|challenge| format!("WWW-Authenticate: {challenge}"))
        .collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    Send(sized("401 Who", &fields, "who"))
}

/// One request for each reply, on one connection.
fn replies(name: &str, replies: Vec<Step>, args: &[&str]) -> Scenario {
    let steps = replies.into_iter().flat_map(|reply| [Take, reply]);
    Scenario::new(format!("auth/{name}"))
        .play(steps)
        .file("data", "a file\n")
        .args(["-w", FORMAT])
        .args(args)
}

const NONCE: &str = "Digest realm=\"r\", nonce=\"n\"";
const QOP: &str = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"";

fn challenges() -> Vec<Scenario> {
    let digest = ["--digest", "-u", "u:p", "http://{A}/x?y=z"];
    let fields: &[(&str, &str)] = &[
        ("plain", NONCE),
        ("qop", QOP),
        (
            "qop-list",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth,auth-int\"",
        ),
        (
            "qop-list-spaces",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int , auth\"",
        ),
        (
            "qop-int",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"",
        ),
        ("qop-token", "Digest realm=\"r\", nonce=\"n\", qop=auth"),
        (
            "qop-unknown",
            "Digest realm=\"r\", nonce=\"n\", qop=\"other\"",
        ),
        (
            "md5",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5",
        ),
        (
            "md5-lower",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=md5",
        ),
        (
            "md5-quoted",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=\"MD5\"",
        ),
        (
            "md5-sess",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5-sess",
        ),
        (
            "sha-256",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256",
        ),
        (
            "sha-256-plain",
            "Digest realm=\"r\", nonce=\"n\", algorithm=SHA-256",
        ),
        (
            "sha-256-sess",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256-SESS",
        ),
        (
            "sha-512-256",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-512-256",
        ),
        (
            "sess-without-qop",
            "Digest realm=\"r\", nonce=\"n\", algorithm=MD5-sess",
        ),
        ("unknown", "Digest realm=\"r\", nonce=\"n\", algorithm=NEW"),
        (
            "opaque",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", opaque=\"o\"",
        ),
        (
            "opaque-empty",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", opaque=\"\"",
        ),
        (
            "quoted",
            "Digest realm=\"a \\\"b\\\" c\", nonce=\"n==\", qop=\"auth\", opaque=\"o\\\"p\"",
        ),
        (
            "comma",
            "Digest realm=\"a, b\", nonce=\"n,m\", qop=\"auth\"",
        ),
        ("spaces", "Digest   realm = \"r\" ,  nonce = \"n\""),
        (
            "no-spaces",
            "Digest realm=\"r\",nonce=\"n\",qop=\"auth\",opaque=\"o\"",
        ),
        ("tokens", "Digest realm=r, nonce=n"),
        ("no-realm", "Digest nonce=\"n\""),
        ("realm-empty", "Digest realm=\"\", nonce=\"n\""),
        ("no-nonce", "Digest realm=\"r\""),
        (
            "other-parameters",
            "Digest realm=\"r\", domain=\"/ /y\", nonce=\"n\", charset=UTF-8, new=1",
        ),
        (
            "stale-false",
            "Digest realm=\"r\", nonce=\"n\", stale=false",
        ),
        (
            "userhash",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", userhash=true",
        ),
        (
            "userhash-sha",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256, userhash=true",
        ),
        (
            "userhash-false",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", userhash=false",
        ),
        ("lower", "digest REALM=\"r\", NONCE=\"n\""),
        ("basic", "Basic realm=\"r\""),
        (
            "after-basic",
            "Basic realm=\"b\", Digest realm=\"r\", nonce=\"n\"",
        ),
        ("negotiate", "Negotiate"),
        ("new-scheme", "Digestive realm=\"r\", nonce=\"n\""),
        ("unended", "Digest realm=\"r\", nonce=\"n"),
    ];
    let mut all: Vec<Scenario> = fields
        .iter()
        .map(|(name, field)| {
            replies(
                &format!("digest/{name}"),
                vec![asks(&[field]), Send(ok())],
                &digest,
            )
        })
        .collect();
    let two = |name: &str, steps: Vec<Step>| replies(&format!("digest/{name}"), steps, &digest);
    let stale = "Digest realm=\"r\", nonce=\"m\", qop=\"auth\", stale=true";
    all.extend([
        two("no-challenge", vec![Send(sized("401 Who", &[], "who"))]),
        two("not-asked", vec![Send(ok())]),
        two("refused", vec![asks(&[QOP]), asks(&[QOP])]),
        two(
            "refused-other-nonce",
            vec![asks(&[QOP]), asks(&["Digest realm=\"r\", nonce=\"m\""])],
        ),
        two("stale", vec![asks(&[QOP]), asks(&[stale]), Send(ok())]),
        two(
            "stale-upper",
            vec![
                asks(&[QOP]),
                asks(&["Digest realm=\"r\", nonce=\"m\", stale=TRUE"]),
                Send(ok()),
            ],
        ),
        two("stale-at-once", vec![asks(&[stale]), Send(ok())]),
        two(
            "two-fields",
            vec![asks(&["Basic realm=\"b\"", QOP]), Send(ok())],
        ),
        two(
            "sha-first",
            vec![
                asks(&[
                    "Digest realm=\"r\", nonce=\"n\", algorithm=SHA-256, qop=\"auth\"",
                    QOP,
                ]),
                Send(ok()),
            ],
        ),
        two(
            "unknown-first",
            vec![
                asks(&["Digest realm=\"r\", nonce=\"n\", algorithm=NEW", QOP]),
                Send(ok()),
            ],
        ),
        two(
            "404",
            vec![asks(&[QOP]), Send(sized("404 None", &[], "none"))],
        ),
        two(
            "403",
            vec![Send(sized(
                "403 No",
                &["WWW-Authenticate: Digest realm=\"r\", nonce=\"n\""],
                "no",
            ))],
        ),
        two(
            "chunked",
            vec![
                Send(reply(
                    "401 Who",
                    &[
                        "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"",
                        "Transfer-Encoding: chunked",
                    ],
                    "3\r\nwho\r\n0\r\n\r\n",
                )),
                Send(ok()),
            ],
        ),
        two(
            "interim",
            vec![
                Send(
                    [
                        reply("103 Early", &[], ""),
                        sized(
                            "401 Who",
                            &["WWW-Authenticate: Digest realm=\"r\", nonce=\"n\""],
                            "who",
                        ),
                    ]
                    .concat(),
                ),
                Send(ok()),
            ],
        ),
        Scenario::new("auth/digest/closed")
            .peer(Peer::Play(vec![
                vec![
                    Take,
                    Send(sized(
                        "401 Who",
                        &[
                            "Connection: close",
                            "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"",
                        ],
                        "who",
                    )),
                    Close,
                ],
                vec![Take, Send(ok())],
            ]))
            .args(["-w", FORMAT])
            .args(digest),
        Scenario::new("auth/digest/until-close")
            .peer(Peer::Play(vec![
                vec![
                    Take,
                    Send(reply(
                        "401 Who",
                        &["WWW-Authenticate: Digest realm=\"r\", nonce=\"n\""],
                        "who",
                    )),
                    Close,
                ],
                vec![Take, Send(ok())],
            ]))
            .args(["-w", FORMAT])
            .args(digest),
        Scenario::new("auth/digest/cut")
            .peer(Peer::Play(vec![
                vec![
                    Take,
                    Send(reply(
                        "401 Who",
                        &[
                            "Content-Length: 9",
                            "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"",
                        ],
                        "who",
                    )),
                    Close,
                ],
                vec![Take, Send(ok())],
            ]))
            .args(["-w", FORMAT])
            .args(digest),
    ]);
    all
}

fn bodies() -> Vec<Scenario> {
    let asked = |name: &str, args: &[&str]| {
        let args = [&["--digest", "-u", "u:p"], args].concat();
        replies(
            &format!("body/{name}"),
            vec![asks(&[QOP]), Send(ok())],
            &args,
        )
    };
    let unasked = |name: &str, args: &[&str]| {
        let args = [&["--digest", "-u", "u:p"], args].concat();
        replies(
            &format!("body/unasked-{name}"),
            vec![Send(ok()), Send(ok())],
            &args,
        )
    };
    let large = "x".repeat(1_100_000);
    vec![
        asked("post", &["-d", "abc", "http://{A}/x"]),
        asked("post-empty", &["-d", "", "http://{A}/x"]),
        asked("json", &["--json", "{}", "http://{A}/x"]),
        asked("put", &["-T", "data", "http://{A}/x"]),
        asked("put-stdin", &["-T", "-", "http://{A}/x"]).stdin("from stdin"),
        asked("method", &["-X", "PATCH", "-d", "abc", "http://{A}/x"]),
        asked("method-alone", &["-X", "DELETE", "http://{A}/x"]),
        asked("get-query", &["-G", "-d", "abc", "http://{A}/x"]),
        replies(
            "body/head",
            vec![
                Send(reply(
                    "401 Who",
                    &[
                        "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"",
                        "Content-Length: 3",
                    ],
                    "",
                )),
                Send(reply("200 OK", &["Content-Length: 5"], "")),
            ],
            &["--digest", "-u", "u:p", "-I", "http://{A}/x"],
        ),
        asked("large", &["--data-binary", "@large", "http://{A}/x"]).file("large", large),
        unasked("post", &["-d", "abc", "http://{A}/x"]),
        unasked("put", &["-T", "data", "http://{A}/x"]),
        unasked("get", &["http://{A}/x"]),
        replies(
            "body/404",
            vec![Send(sized("404 None", &[], "none"))],
            &["--digest", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "body/basic-only",
            vec![asks(&["Basic realm=\"r\""])],
            &["--digest", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "body/stale",
            vec![
                asks(&[QOP]),
                asks(&["Digest realm=\"r\", nonce=\"m\", qop=\"auth\", stale=true"]),
                Send(ok()),
            ],
            &["--digest", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "body/refused",
            vec![asks(&[QOP]), asks(&[QOP])],
            &["--digest", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "body/any",
            vec![asks(&[QOP]), Send(ok())],
            &["--anyauth", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "body/any-put",
            vec![asks(&[QOP]), Send(ok())],
            &[
                "--anyauth",
                "-u",
                "u:p",
                "-T",
                "data",
                "http://{A}/x",
                "-H",
                "Expect:",
            ],
        ),
        replies(
            "body/any-unasked",
            vec![Send(ok())],
            &["--anyauth", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "body/basic",
            vec![Send(ok())],
            &["--basic", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
    ]
}

fn outputs() -> Vec<Scenario> {
    let asked = |name: &str, args: &[&str]| {
        let args = [&["--digest", "-u", "u:p"], args].concat();
        replies(
            &format!("output/{name}"),
            vec![asks(&[QOP]), Send(ok())],
            &args,
        )
    };
    let refused = |name: &str, args: &[&str]| {
        let args = [&["--digest", "-u", "u:p"], args].concat();
        replies(
            &format!("output/refused-{name}"),
            vec![asks(&[QOP]), asks(&[QOP])],
            &args,
        )
    };
    vec![
        asked("include", &["-i", "http://{A}/x"]),
        asked("file", &["-o", "out", "http://{A}/x"]),
        asked("name", &["-O", "http://{A}/x.txt"]),
        asked("fail", &["-f", "http://{A}/x"]),
        asked("fail-with-body", &["--fail-with-body", "http://{A}/x"]),
        asked(
            "effective",
            &[
                "-w",
                "%{url_effective} %{method} %{response_code}",
                "http://{A}/x",
            ],
        ),
        refused("fail", &["-f", "http://{A}/x"]),
        refused("fail-with-body", &["--fail-with-body", "http://{A}/x"]),
        refused("include", &["-i", "http://{A}/x"]),
        replies(
            "output/unasked-fail",
            vec![Send(sized("401 Who", &[], "who"))],
            &["-f", "--digest", "-u", "u:p", "http://{A}/x"],
        ),
        replies(
            "output/two",
            vec![asks(&[QOP]), Send(ok()), asks(&[QOP]), Send(ok())],
            &["--digest", "-u", "u:p", "http://{A}/x", "http://{A}/y"],
        ),
        replies(
            "output/cookies",
            vec![
                Send(sized(
                    "401 Who",
                    &[
                        "Set-Cookie: a=b",
                        "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"",
                    ],
                    "who",
                )),
                Send(ok()),
            ],
            &["--digest", "-u", "u:p", "-b", "", "http://{A}/x"],
        ),
    ]
}

fn redirects() -> Vec<Scenario> {
    let found = |to: &str| Send(sized("302 Found", &[&format!("Location: {to}")], ""));
    let kept = |to: &str| Send(sized("307 Kept", &[&format!("Location: {to}")], ""));
    let elsewhere = |name: &str, args: &[&str], second: Vec<Step>| {
        Scenario::new(format!("auth/redirect/{name}"))
            .play([Take, asks(&[QOP]), Take, found("http://localhost:{Bp}/y")])
            .play(second)
            .args(["-L", "--digest", "-u", "u:p", "-w", FORMAT])
            .args(args)
            .args(["http://{A}/x"])
    };
    vec![
        replies(
            "redirect/counted",
            vec![asks(&[QOP]), found("/y"), found("/z"), Send(ok())],
            &["-L", "--digest", "-u", "u:p", "http://{A}/x"],
        ),
        replies(
            "redirect/first",
            vec![found("/y"), asks(&[QOP]), Send(ok())],
            &["-L", "--digest", "-u", "u:p", "http://{A}/x"],
        ),
        replies(
            "redirect/not-followed",
            vec![asks(&[QOP]), found("/y")],
            &[
                "--digest",
                "-u",
                "u:p",
                "-w",
                "%{redirect_url}",
                "http://{A}/x",
            ],
        ),
        replies(
            "redirect/post-302",
            vec![asks(&[QOP]), found("/y"), Send(ok())],
            &["-L", "--digest", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "redirect/post-307",
            vec![asks(&[QOP]), kept("/y"), Send(ok())],
            &["-L", "--digest", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "redirect/post-307-first",
            vec![kept("/y"), asks(&[QOP]), Send(ok())],
            &["-L", "--digest", "-u", "u:p", "-d", "abc", "http://{A}/x"],
        ),
        replies(
            "redirect/asked-again",
            vec![
                asks(&[QOP]),
                found("/y"),
                asks(&["Digest realm=\"s\", nonce=\"m\", stale=true"]),
                Send(ok()),
            ],
            &["-L", "--digest", "-u", "u:p", "http://{A}/x"],
        ),
        replies(
            "redirect/none-allowed",
            vec![asks(&[QOP]), Send(ok())],
            &["--max-redirs", "0", "--digest", "-u", "u:p", "http://{A}/x"],
        ),
        replies(
            "redirect/basic",
            vec![found("/y"), Send(ok())],
            &["-L", "--basic", "-u", "u:p", "http://{A}/x"],
        ),
        elsewhere("elsewhere", &[], vec![Take, Send(ok())]),
        elsewhere("elsewhere-asks", &[], vec![Take, asks(&[QOP])]),
        elsewhere(
            "trusted",
            &["--location-trusted"],
            vec![
                Take,
                asks(&["Digest realm=\"s\", nonce=\"m\", stale=true"]),
                Take,
                Send(ok()),
            ],
        ),
    ]
}

fn any() -> Vec<Scenario> {
    let any = ["--anyauth", "-u", "u:p", "http://{A}/x"];
    let fields: &[(&str, &[&str])] = &[
        ("basic", &["Basic realm=\"b\""]),
        ("digest", &[QOP]),
        (
            "both",
            &["Basic realm=\"b\", Digest realm=\"r\", nonce=\"n\""],
        ),
        ("both-fields", &[QOP, "Basic realm=\"b\""]),
        ("bearer", &["Bearer realm=\"b\""]),
        ("bearer-basic", &["Bearer realm=\"b\"", "Basic realm=\"c\""]),
        ("unknown", &["New token68==, Basic realm=\"c\""]),
        ("unknown-alone", &["New a=b"]),
        ("none", &[]),
        ("bad-digest", &["Digest realm=\"r\"", "Basic realm=\"c\""]),
        ("quoted", &["Basic realm=\"say Digest, Bearer\""]),
    ];
    let mut all: Vec<Scenario> = fields
        .iter()
        .map(|(name, fields)| replies(&format!("any/{name}"), vec![asks(fields), Send(ok())], &any))
        .collect();
    all.extend([
        replies("any/not-asked", vec![Send(ok())], &any),
        replies(
            "any/basic-refused",
            vec![asks(&["Basic realm=\"b\""]), asks(&["Basic realm=\"b\""])],
            &any,
        ),
        replies("any/digest-refused", vec![asks(&[QOP]), asks(&[QOP])], &any),
        replies(
            "any/no-user",
            vec![asks(&[QOP])],
            &["--anyauth", "http://{A}/x"],
        ),
        replies(
            "any/token",
            vec![asks(&["Bearer realm=\"b\""]), Send(ok())],
            &["--anyauth", "--oauth2-bearer", "t", "http://{A}/x"],
        ),
        replies(
            "any/redirect",
            vec![
                asks(&[QOP]),
                Send(sized("302 Found", &["Location: /y"], "")),
                Send(ok()),
            ],
            &["-L", "--anyauth", "-u", "u:p", "http://{A}/x"],
        ),
    ]);
    all
}

fn options() -> Vec<Scenario> {
    let one = |name: &str, args: &[&str]| {
        replies(
            &format!("option/{name}"),
            vec![Send(ok())],
            &[args, &["http://{A}/x"]].concat(),
        )
    };
    let two = |name: &str, args: &[&str], url: &str| {
        replies(
            &format!("option/{name}"),
            vec![asks(&[QOP]), Send(ok())],
            &[args, &[url]].concat(),
        )
    };
    vec![
        one("basic", &["--basic", "-u", "u:p"]),
        one("basic-refused", &["--basic", "-u", "u:p", "-f"]),
        one("no-digest", &["--digest", "--no-digest", "-u", "u:p"]),
        one("token", &["--oauth2-bearer", "t", "-u", "u:p"]),
        one("no-user", &["--digest"]),
        two(
            "basic-and-digest",
            &["--basic", "--digest", "-u", "u:p"],
            "http://{A}/x",
        ),
        two(
            "any-then-digest",
            &["--anyauth", "--digest", "-u", "u:p"],
            "http://{A}/x",
        ),
        two(
            "digest-then-any",
            &["--digest", "--anyauth", "-u", "u:p"],
            "http://{A}/x",
        ),
        two("next", &["--digest", "-u", "u:p"], "http://{A}/x")
            .args(["--next", "-s"])
            .args(["-o", "none", "http://127.0.0.1:1/"]),
        two("url-user", &["--digest"], "http://u:p@{A}/x"),
        two("both-users", &["--digest", "-u", "a:b"], "http://u:p@{A}/x"),
        two("empty-password", &["--digest", "-u", "u:"], "http://{A}/x"),
        two(
            "odd-user",
            &["--digest", "-u", "u\"v\\w:p:q"],
            "http://{A}/x",
        ),
        two(
            "utf-8-user",
            &["--digest", "-u", "\u{e9}:\u{fc}"],
            "http://{A}/x",
        ),
        two(
            "path-as-is",
            &["--digest", "-u", "u:p", "--path-as-is"],
            "http://{A}/a/../b",
        ),
        two("dots", &["--digest", "-u", "u:p"], "http://{A}/a/../b#f"),
        two(
            "host-header",
            &["--digest", "-u", "u:p", "-H", "Host: other"],
            "http://{A}/x",
        ),
        two(
            "own-header",
            &["--digest", "-u", "u:p", "-H", "Authorization: own"],
            "http://{A}/x",
        ),
        one("username-refused", &["--disallow-username-in-url"]),
        replies(
            "option/username-in-url",
            vec![],
            &["--disallow-username-in-url", "http://u:p@127.0.0.1:1/x"],
        ),
        replies(
            "option/username-empty",
            vec![],
            &["--disallow-username-in-url", "http://@127.0.0.1:1/x"],
        ),
        replies(
            "option/username-option",
            vec![Send(ok())],
            &["--disallow-username-in-url", "-u", "u:p", "http://{A}/x"],
        ),
        replies(
            "option/username-redirect",
            vec![Send(sized(
                "302 Found",
                &["Location: http://u:p@{A}/y"],
                "",
            ))],
            &["-L", "--disallow-username-in-url", "http://{A}/x"],
        ),
    ]
}
