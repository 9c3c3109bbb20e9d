//! The server, over real connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::served::Served;
use super::*;

#[test]
fn health_and_readiness_are_answered() {
    let served = Served::start();
    for path in ["/healthz", "/readyz"] {
        let answer = served.get(path);
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n"),
            "{answer}"
        );
    }
    served.vitals.note_store(Some("no space left"));
    let answer = served.get("/readyz");
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("no space left"),
        "{answer}"
    );
    assert!(served.get("/healthz").starts_with("HTTP/1.1 200 "));
    served.vitals.note_store(None);
    served.vitals.drain();
    assert!(served.get("/readyz").starts_with("HTTP/1.1 503 "));
    let metrics = served.get("/metrics");
    assert!(
        metrics.contains("application/openmetrics-text") && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    assert!(served.get("/nothing").starts_with("HTTP/1.1 404 "));
}

#[test]
fn requests_by_other_names_or_methods_are_refused() {
    let served = Served::start();
    let status = |request: &str| {
        let request = format!("{request}Connection: close\r\n\r\n");
        served
            .exchange(request)
            .get(9..12)
            .unwrap_or_default()
            .to_owned()
    };
    for (request, expected) in [
        ("GET /healthz HTTP/1.1\r\nHost: localhost:80\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: LOCALHOST\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: [::1]:9\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: 127.9.9.9\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n", "421"),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost.evil.example\r\n",
            "421",
        ),
        ("GET /healthz HTTP/1.1\r\nHost: 10.0.0.1\r\n", "421"),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
            "400",
        ),
        ("GET /healthz HTTP/1.1\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost:\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost:x\r\n", "421"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost:123456\r\n", "421"),
        ("GET /healthz HTTP/1.1\r\nHost: [::1\r\n", "421"),
        (
            "GET /healthz HTTP/1.1\r\nHost: [::1]evil.example\r\n",
            "421",
        ),
        (
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n",
            "405",
        ),
        ("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n", "405"),
    ] {
        assert_eq!(status(request), expected, "{request}");
    }
    let head =
        served.exchange("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n",
        "x".repeat(17 << 10)
    );
    assert_eq!(status(&long), "431");
}

/// Waits for the end of a connection that gets no answer.
#[track_caller]
fn is_cut_off(mut client: TcpStream) {
    let mut rest = Vec::new();
    let end = client.read_to_end(&mut rest);
    let is_timeout = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    assert!(!end.as_ref().is_err_and(is_timeout), "it is still open");
    assert!(
        end.is_err() || rest.is_empty() || rest.starts_with(b"HTTP/1.1 4"),
        "{end:?} {rest:?}"
    );
}

#[test]
fn a_slow_client_is_cut_off() {
    let limits = AdminLimits {
        head: Duration::from_secs(5),
        patience: Duration::from_secs(600),
        ..AdminLimits::default()
    };
    let served = Served::with(limits, "");
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut fresh = served.connect();
    fresh.write_all(&request[..30]).expect("sent");
    let silent = served.connect();
    // So is one that had an answer; the wait between two requests may be longer.
    let mut used = served.connect();
    used.write_all(request).expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok\n") {
        let mut byte = [0];
        used.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    used.write_all(&request[..30]).expect("sent");
    [fresh, silent, used].into_iter().for_each(is_cut_off);
}
