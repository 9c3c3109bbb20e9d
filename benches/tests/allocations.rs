//! `HostClient` and `Client` allocate nothing for a request over a kept connection once their buffers have grown: counted
//! by the allocator, on the client's thread alone.

use std::num::NonZeroUsize;
use std::thread;

use benches::alloc::on_this_thread;
use benches::serve::Server;
use courser::{Call, Client, Config, HostClient, HostConfig, Request, Response, Upstream};

/// 13 bytes, a head of 20 fields, a chunked body, bodies that do and do not fit into one read.
const PATHS: [&str; 6] = ["/13", "/headers", "/chunked", "/1k", "/16k", "/1m"];

#[test]
fn blocking_get() {
    for path in PATHS {
        let mut client = client(1);
        let mut response = Response::new();
        let count = steady(REQUESTS, || {
            client.get(path, &mut response).expect("an answer");
            assert_eq!(response.status(), 200);
        });
        assert_eq!(count, 0, "{path}");
    }
}

#[test]
fn blocking_call() {
    let mut client = client(1);
    let mut request = Request::post("/13", vec![b'x'; 10_000]);
    request.header("X-Field", "value");
    let mut response = Response::new();
    let count = steady(REQUESTS, || {
        client.call(&mut request, &mut response).expect("an answer");
        assert_eq!(response.status(), 200);
    });
    assert_eq!(count, 0);
}

#[test]
fn submit_and_wait_one() {
    for path in PATHS {
        assert_eq!(submit_and_wait(path, 1), 0, "{path}");
    }
}

#[test]
fn submit_and_wait_many() {
    for path in PATHS {
        assert_eq!(submit_and_wait(path, 64), 0, "{path}");
    }
}

/// A URL with a name and with user information, and a header of the caller's.
#[test]
fn client_of_any_url() {
    let server = Server::bind(0).expect("a loopback port");
    let address = server.address();
    thread::spawn(move || server.run(None));
    let mut config = Config::default();
    config.dns.resolve("a.example", None, [address.ip()]);
    let mut client = Client::new(config).expect("an event queue");
    let mut response = Response::new();
    for host in ["127.0.0.1", "a.example", "user:pass@a.example"] {
        let url = format!("http://{host}:{}/13", address.port());
        let count = steady(REQUESTS, || {
            client.get(&url, &mut response).expect("an answer");
            assert_eq!(response.status(), 200);
        });
        assert_eq!(count, 0, "get {host}");
        let mut request = Request::get(url);
        request.header("X-Field", "value");
        let count = steady(REQUESTS, || {
            client.call(&mut request, &mut response).expect("an answer");
            assert_eq!(response.status(), 200);
        });
        assert_eq!(count, 0, "call {host}");
    }
}

/// Allocations with so many calls in flight at once.
fn submit_and_wait(path: &str, in_flight: usize) -> u64 {
    let mut client = client(in_flight);
    let mut calls: Vec<Call> = (0..in_flight)
        .map(|_| Call::new(Request::get(path), Response::new()))
        .collect();
    steady(REQUESTS.div_ceil(in_flight), || {
        for call in calls.drain(..) {
            client.submit(call);
        }
        while let Some(done) = client.wait(None).expect("an event queue") {
            done.outcome.expect("an answer");
            assert_eq!(done.response.status(), 200);
            calls.push(Call::new(done.request, done.response));
        }
    })
}

/// Allocations of this thread in so many rounds, once they do not become fewer. A buffer still grows when more
/// arrives at once than ever before, which the kernel decides; but that comes to an end, and an allocation that is
/// made for each request does not.
fn steady(rounds: usize, mut round: impl FnMut()) -> u64 {
    let mut window = || {
        let before = on_this_thread();
        for _ in 0..rounds {
            round();
        }
        on_this_thread() - before
    };
    (0..WINDOWS).map(|_| window()).min().unwrap_or(u64::MAX)
}

fn client(connections: usize) -> HostClient {
    let server = Server::bind(0).expect("a loopback port");
    let upstream = Upstream::tcp([server.address()]);
    thread::spawn(move || server.run(None));
    let config = HostConfig {
        max_connections: NonZeroUsize::new(connections).expect("not zero"),
        ..HostConfig::default()
    };
    HostClient::new(upstream, config).expect("an event queue")
}

/// In one window.
const REQUESTS: usize = 50;
const WINDOWS: usize = 8;
