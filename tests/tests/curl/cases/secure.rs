//! https: certificates good and bad, versions, client certificates, ends of the stream, redirects between schemes.

use super::{ok, reply, sized};
use crate::peer::Peer;
use crate::peer::Step::{Close, HalfClose, Reset, Send, SendRaw, Take, TakeBytes, Tls};
use crate::scenario::Scenario;
use crate::tls::{self, Kind};

const URL: &str = "https://localhost:{Ap}/x";

pub(super) fn all() -> Vec<Scenario> {
    [certificates(), versions(), clients(), ends(), schemes()].concat()
}

fn case(name: &str, kind: Kind, args: &[&str]) -> Scenario {
    with_files(
        Scenario::new(format!("tls/{name}"))
            .play([Tls(tls::server(kind)), Take, Send(ok())])
            .args(["--http1.1"])
            .args(args),
    )
}

fn with_files(scenario: Scenario) -> Scenario {
    scenario
        .file("ca.pem", tls::ca_pem())
        .file("other-ca.pem", tls::other_ca_pem())
        .file("client.pem", tls::client_pem())
        .file("client.key", tls::client_key())
        .file("both.pem", tls::client_pem() + &tls::client_key())
        .file("wrong.pem", tls::foreign_client_pem())
        .file("wrong.key", tls::foreign_client_key())
        .file("crl.pem", tls::crl_pem())
        .file("garbage.pem", "garbage")
}

fn certificates() -> Vec<Scenario> {
    let kinds = [
        ("good", Kind::Good),
        ("expired", Kind::Expired),
        ("future", Kind::NotYetValid),
        ("wrong-name", Kind::WrongName),
        ("self-signed", Kind::SelfSigned),
        ("unknown-issuer", Kind::UnknownIssuer),
        ("revoked", Kind::Revoked),
        ("no-san", Kind::NoAlternativeName),
        ("wildcard", Kind::Wildcard),
    ];
    let mut all = Vec::new();
    for (name, kind) in kinds {
        let format = "|%{http_code} %{ssl_verify_result} %{scheme}";
        all.push(case(
            &format!("{name}/cacert"),
            kind,
            &["--cacert", "ca.pem", URL],
        ));
        all.push(case(&format!("{name}/default"), kind, &[URL]));
        all.push(case(&format!("{name}/insecure"), kind, &["-k", URL]));
        all.push(case(
            &format!("{name}/crl"),
            kind,
            &["--cacert", "ca.pem", "--crlfile", "crl.pem", URL],
        ));
        all.push(case(
            &format!("{name}/formats"),
            kind,
            &["--cacert", "ca.pem", "-w", format, URL],
        ));
    }
    all.extend([
        case(
            "address",
            Kind::Good,
            &["--cacert", "ca.pem", "https://{A}/x"],
        ),
        case(
            "address-not-named",
            Kind::WrongName,
            &["--cacert", "ca.pem", "https://{A}/x"],
        ),
        case("other-ca", Kind::Good, &["--cacert", "other-ca.pem", URL]),
        case("no-such-ca", Kind::Good, &["--cacert", "none.pem", URL]),
        case("garbage-ca", Kind::Good, &["--cacert", "garbage.pem", URL]),
        case(
            "no-such-crl",
            Kind::Good,
            &["--cacert", "ca.pem", "--crlfile", "none.pem", URL],
        ),
        case(
            "garbage-crl",
            Kind::Good,
            &["--cacert", "ca.pem", "--crlfile", "garbage.pem", URL],
        ),
        case(
            "resolved",
            Kind::Good,
            &[
                "--cacert",
                "ca.pem",
                "--resolve",
                "some.example:{Ap}:127.0.0.1",
                "https://some.example:{Ap}/x",
            ],
        ),
        case(
            "resolved-wrong",
            Kind::Good,
            &[
                "--cacert",
                "ca.pem",
                "--resolve",
                "no.example:{Ap}:127.0.0.1",
                "https://no.example:{Ap}/x",
            ],
        ),
        case(
            "wildcard-name",
            Kind::Wildcard,
            &[
                "--cacert",
                "ca.pem",
                "--resolve",
                "a.wild.example:{Ap}:127.0.0.1",
                "https://a.wild.example:{Ap}/x",
            ],
        ),
        case(
            "wildcard-deep",
            Kind::Wildcard,
            &[
                "--cacert",
                "ca.pem",
                "--resolve",
                "a.b.wild.example:{Ap}:127.0.0.1",
                "https://a.b.wild.example:{Ap}/x",
            ],
        ),
        case(
            "connect-to",
            Kind::Good,
            &[
                "--cacert",
                "ca.pem",
                "--connect-to",
                "some.example:443:127.0.0.1:{Ap}",
                "https://some.example/x",
            ],
        ),
        case(
            "host-header",
            Kind::Good,
            &["--cacert", "ca.pem", "-H", "Host: other", URL],
        ),
        case("verbose", Kind::Good, &["--cacert", "ca.pem", "-v", URL]),
        case(
            "post",
            Kind::Good,
            &["--cacert", "ca.pem", "-d", "abc", URL],
        ),
        case("head", Kind::Good, &["--cacert", "ca.pem", "-I", URL]),
        case(
            "url",
            Kind::Good,
            &[
                "--cacert",
                "ca.pem",
                "-w",
                "|%{url_effective}",
                "https://u:p@localhost:{Ap}/a/../b#c",
            ],
        ),
    ]);
    all
}

fn versions() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (server, kind) in [
        ("both", Kind::Good),
        ("only-1.2", Kind::Only12),
        ("only-1.3", Kind::Only13),
    ] {
        for option in ["--tlsv1.2", "--tlsv1.3"] {
            all.push(case(
                &format!("version/{server}/{option}"),
                kind,
                &[option, "--cacert", "ca.pem", URL],
            ));
        }
        for most in ["1.2", "1.3"] {
            all.push(case(
                &format!("version/{server}/max-{most}"),
                kind,
                &["--tls-max", most, "--cacert", "ca.pem", URL],
            ));
        }
    }
    all
}

fn clients() -> Vec<Scenario> {
    let ca = ["--cacert", "ca.pem"];
    let with = |name: &str, args: &[&str]| {
        case(
            &format!("client/{name}"),
            Kind::AsksClient,
            &[&ca, args, &[URL]].concat(),
        )
    };
    vec![
        with("given", &["--cert", "client.pem", "--key", "client.key"]),
        with("one-file", &["--cert", "both.pem"]),
        with("short", &["-E", "both.pem"]),
        with("none", &[]),
        with("foreign", &["--cert", "wrong.pem", "--key", "wrong.key"]),
        with("mismatch", &["--cert", "client.pem", "--key", "wrong.key"]),
        with("missing", &["--cert", "none.pem"]),
        with(
            "missing-key",
            &["--cert", "client.pem", "--key", "none.key"],
        ),
        with("no-key", &["--cert", "client.pem"]),
        with("garbage", &["--cert", "garbage.pem"]),
    ]
}

/// How the stream ends.
fn ends() -> Vec<Scenario> {
    let case = |name: &str, steps: Vec<crate::peer::Step>| {
        with_files(Scenario::new(format!("tls/end/{name}")).play(steps).args([
            "--http1.1",
            "--cacert",
            "ca.pem",
            URL,
        ]))
    };
    let open = || Tls(tls::server(Kind::Good));
    // All of the client's first message: it comes in one piece.
    let hello = || TakeBytes(1);
    let unframed = || Send(reply("200 OK", &[], "hello"));
    let short = || Send(reply("200 OK", &["Content-Length: 9"], "hello"));
    vec![
        case(
            "unframed-notified",
            vec![open(), Take, unframed(), HalfClose],
        ),
        case("unframed-cut", vec![open(), Take, unframed(), Close]),
        case("framed-cut", vec![open(), Take, Send(ok()), Close]),
        case("short-notified", vec![open(), Take, short(), HalfClose]),
        case("short-cut", vec![open(), Take, short(), Close]),
        case("short-reset", vec![open(), Take, short(), Reset]),
        case("empty-notified", vec![open(), Take, HalfClose]),
        case("empty-cut", vec![open(), Take, Close]),
        case(
            "chunked-cut",
            vec![
                open(),
                Take,
                Send(reply(
                    "200 OK",
                    &["Transfer-Encoding: chunked"],
                    "5\r\nhello\r\n",
                )),
                Close,
            ],
        ),
        // What comes before the peer has read the first message may find the client still connecting.
        case("at-once", vec![hello(), Close]),
        case("reset-at-once", vec![hello(), Reset]),
        case(
            "not-tls",
            vec![
                hello(),
                SendRaw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
                Close,
            ],
        ),
        case("garbage", vec![hello(), SendRaw(vec![0xff; 100]), Close]),
        case(
            "alert",
            vec![hello(), SendRaw(vec![21, 3, 3, 0, 2, 2, 40]), Close],
        ),
        case("after-handshake", vec![open(), Close]),
        with_files(
            Scenario::new("tls/end/refused")
                .peer(Peer::Refusing)
                .args(["--cacert", "ca.pem", URL]),
        ),
        with_files(
            Scenario::new("tls/end/silent")
                .play([])
                .args(["-m", "0.5", "--cacert", "ca.pem", URL]),
        ),
        with_files(
            Scenario::new("tls/end/silent-connect-timeout")
                .play([])
                .args(["--connect-timeout", "0.5", "--cacert", "ca.pem", URL]),
        ),
        with_files(
            Scenario::new("tls/kept")
                .play([open(), Take, Send(ok()), Take, Send(ok())])
                .args([
                    "--http1.1",
                    "--cacert",
                    "ca.pem",
                    "-w",
                    "%{num_connects}",
                    URL,
                    "https://localhost:{Ap}/y",
                ]),
        ),
        with_files(
            Scenario::new("tls/plain-port")
                .play([Take, Send(ok())])
                .args(["--cacert", "ca.pem", "-m", "5", "http://localhost:{Ap}/"]),
        ),
    ]
}

/// Redirects between http and https.
fn schemes() -> Vec<Scenario> {
    let to = |location: &str| sized("302 Found", &[&format!("Location: {location}")], "");
    let args = [
        "-L",
        "--http1.1",
        "--cacert",
        "ca.pem",
        "-u",
        "u:p",
        "-w",
        "|%{url_effective} %{num_connects}",
    ];
    vec![
        with_files(
            Scenario::new("tls/redirect/up")
                .play([Take, Send(to("https://localhost:{Bp}/to"))])
                .play([Tls(tls::server(Kind::Good)), Take, Send(ok())])
                .args(args)
                .args(["http://localhost:{Ap}/from"]),
        ),
        with_files(
            Scenario::new("tls/redirect/down")
                .play([
                    Tls(tls::server(Kind::Good)),
                    Take,
                    Send(to("http://localhost:{Bp}/to")),
                ])
                .play([Take, Send(ok())])
                .args(args)
                .args(["https://localhost:{Ap}/from"]),
        ),
        with_files(
            Scenario::new("tls/redirect/same")
                .play([
                    Tls(tls::server(Kind::Good)),
                    Take,
                    Send(to("/to")),
                    Take,
                    Send(ok()),
                ])
                .args(args)
                .args(["https://localhost:{Ap}/from"]),
        ),
        with_files(
            Scenario::new("tls/redirect/protocol-relative")
                .play([
                    Tls(tls::server(Kind::Good)),
                    Take,
                    Send(to("//localhost:{Ap}/to")),
                    Take,
                    Send(ok()),
                ])
                .args(args)
                .args(["https://localhost:{Ap}/from"]),
        ),
    ]
}
