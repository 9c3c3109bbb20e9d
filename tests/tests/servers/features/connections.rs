//! Connections: how long servers keep them, and how they end.

use std::time::{Duration, Instant};

use courser::Response;
use tests::script::PATIENCE;

use super::{present, says_close};
use crate::matrix::{Bench, Outcome};
use crate::running::{self, Flavor};

/// Many calls one after the other use one connection.
pub(crate) fn keep_alive(bench: &Bench<'_>) -> Option<Outcome> {
    const CALLS: u64 = 20;
    let mut client = bench.client()?;
    let mut response = Response::new();
    for _ in 0..CALLS {
        let report = client.get("/hello", &mut response).unwrap();
        bench.assert_hello(&response);
        assert_eq!(report.attempts(), 1);
    }
    match client.counters().opened {
        1 => Some(Outcome::Works),
        opened => {
            assert_eq!(opened, CALLS, "neither kept nor closed: {response:?}");
            assert!(says_close(&response), "{response:?}");
            None
        }
    }
}

/// The server says that a connection ends, after some requests or for a path. No call fails, also without retries.
pub(crate) fn announced_end(bench: &Bench<'_>) -> Option<Outcome> {
    const CALLS: u64 = 12;
    let server = bench.server(Flavor::Ending)?;
    let mut client = running::client(server);
    let mut response = Response::new();
    client.get("/close", &mut response).unwrap();
    if present(&response).is_some() {
        // Proxies, and servers that manage their connections alone, drop the application's wish.
        says_close(&response).then_some(())?;
        let report = client.get("/hello", &mut response).unwrap();
        bench.assert_hello(&response);
        assert_eq!((report.reused(), report.attempts()), (false, 1));
        return Some(Outcome::Works);
    }
    let mut client = running::client(server);
    let mut must_open = true;
    for _ in 0..CALLS {
        let report = client.get("/hello", &mut response).unwrap();
        bench.assert_hello(&response);
        let once = (report.reused(), report.attempts());
        assert_eq!(once, (!must_open, 1), "{response:?}");
        must_open = says_close(&response);
    }
    (client.counters().opened > 1).then_some(Outcome::Works)
}

/// The server closes a connection that is idle: the client sees that at once, and the next call opens another.
pub(crate) fn idle_end(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = running::client(bench.server(Flavor::Ending)?);
    let mut response = Response::new();
    client.get("/hello", &mut response).unwrap();
    if says_close(&response) {
        return None;
    }
    let began = Instant::now();
    while client.counters().idle > 0 {
        if began.elapsed() > PATIENCE {
            return None;
        }
        client.maintain(Duration::from_millis(10)).unwrap();
    }
    assert_eq!(client.counters().open, 0);
    let report = client.get("/hello", &mut response).unwrap();
    bench.assert_hello(&response);
    assert_eq!((report.reused(), report.attempts()), (false, 1));
    Some(Outcome::Works)
}

/// A body without a length ends when the server closes its side.
pub(crate) fn half_close(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut response = Response::new();
    client.get("/until-close", &mut response).unwrap();
    present(&response)?;
    assert_eq!(response.status(), 200);
    let framing = ["content-length", "transfer-encoding"];
    if framing.iter().any(|name| response.header(name).is_some()) {
        return None;
    }
    assert!(response.body().ends_with(b"the end\n"), "{response:?}");
    assert!(says_close(&response), "{response:?}");
    let report = client.get("/hello", &mut response).unwrap();
    bench.assert_hello(&response);
    assert!(!report.reused());
    Some(Outcome::Works)
}
