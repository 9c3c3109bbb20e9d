//! The server, over real connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use super::*;
use crate::watch::metrics::Sources;

fn server(limits: AdminLimits) -> (Admin, Arc<Vitals>) {
    let vitals = Arc::new(Vitals::new(Instant::now()));
    let sources = Sources {
        checks: Arc::default(),
        store: Arc::default(),
        rejected: Arc::default(),
        vitals: Arc::clone(&vitals),
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let admin = Admin::start(any, limits, Metrics::new(sources), Arc::clone(&vitals));
    (admin.expect("started"), vitals)
}

fn connect(admin: &Admin) -> TcpStream {
    let client = TcpStream::connect(admin.address()).expect("connected");
    // Nothing here takes this long.
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("set");
    client
}

/// What the server answers until it closes the connection.
fn exchange(admin: &Admin, request: &str) -> String {
    let mut client = connect(admin);
    client.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("answered");
    answer
}

fn get(admin: &Admin, path: &str) -> String {
    exchange(
        admin,
        &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n"),
    )
}

#[test]
fn health_and_readiness_are_answered() {
    let (admin, vitals) = server(AdminLimits::default());
    for path in ["/healthz", "/readyz"] {
        let answer = get(&admin, path);
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n"),
            "{answer}"
        );
    }
    vitals.note_store(Some("no space left"));
    let answer = get(&admin, "/readyz");
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("no space left"),
        "{answer}"
    );
    assert!(get(&admin, "/healthz").starts_with("HTTP/1.1 200 "));
    vitals.note_store(None);
    vitals.drain();
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 503 "));
    let metrics = get(&admin, "/metrics");
    assert!(
        metrics.contains("application/openmetrics-text") && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    assert!(get(&admin, "/version").contains(env!("CARGO_PKG_VERSION")));
    assert!(get(&admin, "/").starts_with("HTTP/1.1 404 "));
}

#[test]
fn requests_by_other_names_or_methods_are_refused() {
    let (admin, _) = server(AdminLimits::default());
    let status = |request: &str| {
        let request = format!("{request}Connection: close\r\n\r\n");
        exchange(&admin, &request)
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
            "421",
        ),
        ("GET /healthz HTTP/1.1\r\n", "421"),
        (
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n",
            "405",
        ),
        ("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n", "405"),
    ] {
        assert_eq!(status(request), expected, "{request}");
    }
    let head = exchange(
        &admin,
        "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
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

#[test]
fn a_slow_client_is_cut_off() {
    let limits = AdminLimits {
        patience: Duration::from_secs(1),
        connections: 1,
    };
    let (admin, _) = server(limits);
    let mut slow = connect(&admin);
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc")
        .expect("sent");
    // Its place is taken until it is cut off; then the next one gets it.
    assert!(get(&admin, "/healthz").starts_with("HTTP/1.1 200 "));
    let mut rest = Vec::new();
    let end = slow.read_to_end(&mut rest);
    assert!(
        end.is_err() || rest.is_empty() || rest.starts_with(b"HTTP/1.1 4"),
        "{end:?} {rest:?}"
    );
}

#[test]
fn only_loopback_addresses_are_taken() {
    let vitals = Arc::new(Vitals::new(Instant::now()));
    let sources = Sources {
        checks: Arc::default(),
        store: Arc::default(),
        rejected: Arc::default(),
        vitals: Arc::clone(&vitals),
    };
    let all = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Admin::start(all, AdminLimits::default(), Metrics::new(sources), vitals);
    assert_eq!(
        refused.expect_err("refused").kind(),
        io::ErrorKind::PermissionDenied
    );
}
