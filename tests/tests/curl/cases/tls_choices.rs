//! What TLS offers and insists on: folders of authorities, suites, groups, pinned keys, types of files, passwords.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use super::ok;
use crate::peer::Step::{Send, Take, Tls};
use crate::scenario::Scenario;
use crate::tls::{self, Kind};

const URL: &str = "https://localhost:{Ap}/x";

pub(super) fn all() -> Vec<Scenario> {
    [offers(), pins(), folders(), keys(), proxies()].concat()
}

fn case(name: &str, kind: Kind, args: &[&str]) -> Scenario {
    Scenario::new(format!("tls/choice/{name}"))
        .play([Tls(tls::server(kind)), Take, Send(ok())])
        .file("ca.pem", tls::ca_pem())
        .args(["--http1.1", "--cacert", "ca.pem"])
        .args(args)
        .args([URL])
}

/// The handshake is never begun.
fn refused(name: &str, args: &[&str]) -> Scenario {
    case(name, Kind::Good, args)
}

fn offers() -> Vec<Scenario> {
    vec![
        case(
            "ciphers",
            Kind::Only12,
            &["--ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"],
        ),
        case(
            "ciphers-list",
            Kind::Only12,
            &[
                "--ciphers",
                "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305",
            ],
        ),
        case(
            "ciphers-default",
            Kind::Only12,
            &["--ciphers", "DEFAULT@SECLEVEL=1"],
        ),
        case(
            "ciphers-high",
            Kind::Only12,
            &["--ciphers", "HIGH:!aNULL:!MD5"],
        ),
        case(
            "ciphers-other",
            Kind::Only12,
            &["--ciphers", "ECDHE-RSA-AES128-GCM-SHA256"],
        ),
        case(
            "ciphers-1.3",
            Kind::Only13,
            &["--ciphers", "ECDHE-RSA-AES128-GCM-SHA256"],
        ),
        refused("ciphers-unknown", &["--ciphers", "none"]),
        refused("ciphers-empty", &["--ciphers", ""]),
        case(
            "tls13",
            Kind::Only13,
            &["--tls13-ciphers", "TLS_CHACHA20_POLY1305_SHA256"],
        ),
        case(
            "tls13-list",
            Kind::Only13,
            &[
                "--tls13-ciphers",
                "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384",
            ],
        ),
        case(
            "tls13-for-1.2",
            Kind::Only12,
            &["--tls13-ciphers", "TLS_AES_128_GCM_SHA256"],
        ),
        refused("tls13-unknown", &["--tls13-ciphers", "none"]),
        case("curves", Kind::Good, &["--curves", "X25519"]),
        case("curves-list", Kind::Good, &["--curves", "P-384:prime256v1"]),
        refused("curves-unknown", &["--curves", "none"]),
        case("at-least-1", Kind::Good, &["--tlsv1"]),
        case("at-least-1-short", Kind::Only12, &["-1"]),
        case("at-least-1.0", Kind::Only12, &["--tlsv1.0"]),
        case("at-least-1.1", Kind::Only13, &["--tlsv1.1"]),
        case("at-least-last", Kind::Only12, &["--tlsv1.3", "--tlsv1"]),
        case("no-alpn", Kind::Good, &["--no-alpn"]),
        case("alpn", Kind::Good, &["--alpn"]),
        case("no-sessionid", Kind::Good, &["--no-sessionid"]),
        case("no-revoke", Kind::Good, &["--ssl-no-revoke"]),
    ]
}

fn pins() -> Vec<Scenario> {
    let (server, pem, der) = tls::with_known_key();
    let hash = format!("sha256//{}", BASE64_STANDARD.encode(Sha256::digest(&der)));
    let other = format!("sha256//{}", BASE64_STANDARD.encode([0; 32]));
    let both = format!("{other};{hash}");
    let pin = |name: &str, args: &[&str]| {
        Scenario::new(format!("tls/choice/pin-{name}"))
            .play([Tls(server.clone()), Take, Send(ok())])
            .file("ca.pem", tls::ca_pem())
            .file("key.pem", pem.clone())
            .file("key.der", der.clone())
            .file("garbage", "garbage")
            .args(["--http1.1"])
            .args(args)
            .args(["-w", "|%{http_code} %{ssl_verify_result}", URL])
    };
    let trusted =
        |name: &str, value: &str| pin(name, &["--cacert", "ca.pem", "--pinnedpubkey", value]);
    vec![
        trusted("hash", &hash),
        trusted("hashes", &both),
        trusted("pem", "key.pem"),
        trusted("der", "key.der"),
        trusted("other", &other),
        trusted("garbage", "garbage"),
        trusted("missing", "none.pem"),
        trusted("no-hash", "sha256//"),
        trusted("bad-hash", "sha256//!!!"),
        pin("insecure", &["-k", "--pinnedpubkey", &hash]),
        pin("insecure-other", &["-k", "--pinnedpubkey", &other]),
        pin("untrusted", &["--pinnedpubkey", &hash]),
        Scenario::new("tls/choice/pin-plain")
            .play([Take, Send(ok())])
            .args(["--pinnedpubkey", "none.pem", "http://{A}/x"]),
    ]
}

fn folders() -> Vec<Scenario> {
    let folder = |name: &str, args: &[&str], environment: &[(&'static str, &str)]| {
        let scenario = Scenario::new(format!("tls/choice/folder-{name}"))
            .play([Tls(tls::server(Kind::Good)), Take, Send(ok())])
            .folder("certs")
            .folder("empty")
            .file("certs/ca.pem", tls::ca_pem())
            .hashed("certs/ca.pem", "certs")
            .file("ca.pem", tls::ca_pem())
            .args(["--http1.1"])
            .args(args)
            .args([URL]);
        environment
            .iter()
            .fold(scenario, |scenario, (name, value)| {
                scenario.env(name, *value)
            })
    };
    vec![
        folder("given", &["--capath", "certs"], &[]),
        folder("empty", &["--capath", "empty"], &[]),
        folder("both", &["--capath", "empty", "--cacert", "ca.pem"], &[]),
        folder("missing", &["--capath", "none"], &[]),
        folder("insecure", &["-k", "--capath", "none"], &[]),
        folder("environment", &[], &[("SSL_CERT_DIR", "certs")]),
        folder("environment-file", &[], &[("SSL_CERT_FILE", "ca.pem")]),
        folder(
            "environment-first",
            &[],
            &[("SSL_CERT_DIR", "empty"), ("SSL_CERT_FILE", "ca.pem")],
        ),
        folder(
            "environment-two",
            &[],
            &[("SSL_CERT_DIR", "certs"), ("SSL_CERT_FILE", "none.pem")],
        ),
        folder(
            "environment-bundle",
            &[],
            &[("CURL_CA_BUNDLE", "ca.pem"), ("SSL_CERT_DIR", "empty")],
        ),
        folder("environment-missing", &[], &[("SSL_CERT_DIR", "none")]),
        folder("environment-list", &[], &[("SSL_CERT_DIR", "none:certs")]),
        folder(
            "option-first",
            &["--capath", "empty"],
            &[("CURL_CA_BUNDLE", "ca.pem")],
        ),
        folder(
            "option-first-file",
            &["--cacert", "ca.pem"],
            &[("SSL_CERT_DIR", "none")],
        ),
    ]
}

fn keys() -> Vec<Scenario> {
    let with = |name: &str, args: &[&str]| {
        case(&format!("key-{name}"), Kind::AsksClient, args)
            .file("client.pem", tls::client_pem())
            .file("client.der", tls::client_der())
            .file("client.key", tls::client_key())
            .file("client.key.der", tls::client_key_der())
            .file("secret.key", tls::client_key_with("secret"))
            .file(
                "both.pem",
                tls::client_pem() + &tls::client_key_with("secret"),
            )
            .file("a:b.pem", tls::client_pem())
    };
    vec![
        with(
            "pem",
            &[
                "--cert-type",
                "PEM",
                "--cert",
                "client.pem",
                "--key-type",
                "PEM",
                "--key",
                "client.key",
            ],
        ),
        with(
            "der",
            &[
                "--cert-type",
                "DER",
                "--cert",
                "client.der",
                "--key-type",
                "DER",
                "--key",
                "client.key.der",
            ],
        ),
        with(
            "mixed",
            &[
                "--cert",
                "client.pem",
                "--key-type",
                "der",
                "--key",
                "client.key.der",
            ],
        ),
        with(
            "not-der",
            &[
                "--cert-type",
                "DER",
                "--cert",
                "client.pem",
                "--key",
                "client.key",
            ],
        ),
        with(
            "not-pem",
            &[
                "--cert-type",
                "PEM",
                "--cert",
                "client.der",
                "--key",
                "client.key",
            ],
        ),
        with("p12", &["--cert-type", "P12", "--cert", "client.pem"]),
        with(
            "unknown-type",
            &["--cert-type", "NEW", "--cert", "client.pem"],
        ),
        with(
            "unknown-key-type",
            &[
                "--cert",
                "client.pem",
                "--key",
                "client.key",
                "--key-type",
                "NEW",
            ],
        ),
        with(
            "password",
            &["--cert", "client.pem:secret", "--key", "secret.key"],
        ),
        with(
            "pass",
            &[
                "--cert",
                "client.pem",
                "--key",
                "secret.key",
                "--pass",
                "secret",
            ],
        ),
        with("one-file", &["-E", "both.pem:secret"]),
        with(
            "wrong-password",
            &["--cert", "client.pem:wrong", "--key", "secret.key"],
        ),
        with(
            "needless-password",
            &["--cert", "client.pem:secret", "--key", "client.key"],
        ),
        with("colon", &["--cert", "a\\:b.pem", "--key", "client.key"]),
        with(
            "colon-password",
            &["--cert", "a\\:b.pem:secret", "--key", "secret.key"],
        ),
    ]
}

/// The same for an https proxy.
fn proxies() -> Vec<Scenario> {
    let (server, _, der) = tls::with_known_key();
    let hash = format!("sha256//{}", BASE64_STANDARD.encode(Sha256::digest(&der)));
    let proxy = |name: &str, args: &[&str]| {
        Scenario::new(format!("tls/choice/proxy-{name}"))
            .play([Tls(server.clone()), Take, Send(ok())])
            .file("ca.pem", tls::ca_pem())
            .folder("certs")
            .file("certs/ca.pem", tls::ca_pem())
            .hashed("certs/ca.pem", "certs")
            .args(["-x", "https://localhost:{Ap}"])
            .args(args)
            .args(["http://some.example/x"])
    };
    let trusted =
        |name: &str, args: &[&str]| proxy(name, &[&["--proxy-cacert", "ca.pem"], args].concat());
    vec![
        proxy("capath", &["--proxy-capath", "certs"]),
        trusted("pin", &["--proxy-pinnedpubkey", &hash]),
        trusted("pin-other", &["--proxy-pinnedpubkey", "sha256//AAAA"]),
        trusted(
            "ciphers",
            &["--proxy-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"],
        ),
        trusted("ciphers-unknown", &["--proxy-ciphers", "none"]),
        trusted(
            "tls13",
            &["--proxy-tls13-ciphers", "TLS_AES_128_GCM_SHA256"],
        ),
        trusted("tlsv1", &["--proxy-tlsv1"]),
        trusted("server-ciphers", &["--ciphers", "none"]),
    ]
}
