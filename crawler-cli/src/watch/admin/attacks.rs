//! What an attacker would try, over real connections: to pass for somebody else, or to lead a request elsewhere.

use super::served::Served;
use super::*;

#[test]
fn only_names_of_the_service_are_answered() {
    let served = Served::with(
        AdminLimits::default(),
        "[http]\nnames = ['watch.example.org']\n",
    );
    for (request, expected) in [
        ("GET /healthz HTTP/1.1\r\nHost: watch.example.org\r\n", 200),
        (
            "GET /healthz HTTP/1.1\r\nHost: Watch.Example.ORG:443\r\n",
            200,
        ),
        ("GET /healthz HTTP/1.1\r\nHost: example.org\r\n", 421),
        (
            "GET /healthz HTTP/1.1\r\nHost: a.watch.example.org\r\n",
            421,
        ),
        ("GET /healthz HTTP/1.1\r\nHost: 192.0.2.1\r\n", 421),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
            400,
        ),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n",
            200,
        ),
        (
            "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n",
            421,
        ),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n",
            421,
        ),
    ] {
        assert_eq!(served.status(request), expected, "{request}");
    }
}

#[test]
fn paths_lead_nowhere_else() {
    let served = Served::start();
    for path in [
        "/../metrics",
        "/x/../metrics",
        "/%2e%2e/metrics",
        "//metrics",
        "/metrics/",
        "/metrics%00",
        "/%6detrics",
    ] {
        let answer = served.get(path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
}

#[test]
fn all_answers_have_the_fields_that_protect_a_browser() {
    let served = Served::start();
    let get = |path: &str| served.get(path).to_lowercase();
    for answer in [
        get("/"),
        get("/metrics"),
        get("/nothing"),
        served
            .exchange("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            .to_lowercase(),
    ] {
        for field in [
            "content-security-policy: default-src 'none'; ",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: same-origin",
            "x-frame-options: deny",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(answer.contains(field), "{field}: {answer}");
        }
    }
}
