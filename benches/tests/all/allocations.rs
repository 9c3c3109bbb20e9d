//! `HostClient`, `Client` and `PipelineClient` allocate nothing for a request over a kept connection after their
//! buffers have grown. The allocator counts only the thread of the client.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;

use benches::alloc::on_this_thread;
use courser::{
    Call, Client, Completion, Config, Error, HostClient, HostConfig, PipelineClient,
    PipelineConfig, Report, Request, Response, Upstream,
};

use crate::server;

/// A body of 13 bytes, a head of 20 fields, a chunked body, and bodies that fit or do not fit into one read.
const PATHS: [&str; 6] = ["/13", "/headers", "/chunked", "/1k", "/16k", "/1m"];

#[test]
fn blocking_get() {
    fn run<C: Subject>(path: &str) {
        let (mut client, base) = start::<C>(1);
        let target = format!("{base}{path}");
        let mut response = Response::new();
        let count = steady(REQUESTS, || {
            client.get(&target, &mut response).expect("an answer");
            assert_eq!(response.status(), 200);
        });
        assert_eq!(count, 0, "{target}");
    }
    for path in PATHS {
        run::<HostClient>(path);
        run::<Client>(path);
        run::<PipelineClient>(path);
    }
}

#[test]
fn blocking_call() {
    fn run<C: Subject>() {
        let (mut client, base) = start::<C>(1);
        let mut request = Request::post(format!("{base}/13"), vec![b'x'; 10_000]);
        request.add_header("X-Field", "value");
        let mut response = Response::new();
        let count = steady(REQUESTS, || {
            client.call(&mut request, &mut response).expect("an answer");
            assert_eq!(response.status(), 200);
        });
        assert_eq!(count, 0, "{base}");
    }
    run::<HostClient>();
    run::<Client>();
    run::<PipelineClient>();
}

#[test]
fn streamed_body() {
    fn run<C: Subject>(path: &str) {
        let (mut client, base) = start::<C>(1);
        let mut request = Request::get(format!("{base}{path}"));
        let mut response = Response::new();
        let mut buffer = vec![0; 16 * 1024];
        let mut bytes = 0;
        let count = steady(REQUESTS, || {
            bytes = client
                .stream(&mut request, &mut response, &mut buffer)
                .expect("a body");
            assert_eq!(response.status(), 200);
        });
        assert!(bytes >= 13, "{bytes}");
        assert_eq!(count, 0, "{base}{path}");
    }
    for path in PATHS {
        run::<HostClient>(path);
        run::<Client>(path);
    }
}

/// A chunk is the memory that was read into, so each costs a counter of its clones. Two buffers take turns, and one of
/// them grows anew for each body.
#[test]
fn streamed_chunks() {
    let (mut client, base) = start::<HostClient>(1);
    let mut request = Request::get(format!("{base}/1m"));
    let mut response = Response::new();
    let mut chunks = 0;
    let mut surplus = || {
        let before = on_this_thread();
        chunks = 0;
        let mut body = client.open(&mut request, &mut response).expect("an answer");
        while body.chunk().expect("a body").is_some() {
            chunks += 1;
        }
        (on_this_thread() - before).saturating_sub(chunks)
    };
    let least = (0..REQUESTS).map(|_| surplus()).min();
    assert!(least < Some(16), "{least:?}");
}

#[test]
fn one_call_and_many() {
    for path in PATHS {
        for calls in [1, 64] {
            assert_eq!(submit_and_wait::<HostClient>(path, calls), 0, "{path}");
            assert_eq!(submit_and_wait::<Client>(path, calls), 0, "{path} by URL");
            let count = submit_and_wait::<PipelineClient>(path, calls);
            assert_eq!(count, 0, "{path}, {calls} pipelined");
        }
    }
}

#[test]
fn answers_beside_many_pending() {
    for pending in [1, 64, 1500] {
        let pending = NonZeroUsize::new(pending).expect("not zero");
        let config = PipelineConfig {
            host: HostConfig {
                max_connections: NonZeroUsize::new(2).expect("not zero"),
                ..HostConfig::default()
            },
            max_pending: pending,
            ..PipelineConfig::default()
        };
        let client = PipelineClient::new(Upstream::tcp([server()]), config);
        let mut client = client.expect("an event queue");
        let all = 2 * pending.get() as u64;
        for _ in 0..all {
            client.submit(Call::new(Request::get("/13"), Response::new()));
        }
        let least = steady(4 * all, || {
            let done = client.wait(None).expect("an event queue").done();
            let done = done.expect("a completion");
            done.outcome.expect("an answer");
            client.submit(Call::new(done.request, done.response));
        });
        // More than a thousand calls in one iteration leave tables that shrink again, once for all calls.
        assert!(200 * least <= 4 * all, "{pending} pending: {least}");
    }
}

/// URLs with a host name and with user information, and a header field from the caller.
#[test]
fn client_of_any_url() {
    let address = server();
    let mut config = Config::default();
    config.host.dns.resolve("a.example", None, [address.ip()]);
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
        request.add_header("X-Field", "value");
        let count = steady(REQUESTS, || {
            client.call(&mut request, &mut response).expect("an answer");
            assert_eq!(response.status(), 200);
        });
        assert_eq!(count, 0, "call {host}");
    }
}

/// The allocations of this thread.
fn steady(rounds: u64, round: impl FnMut()) -> u64 {
    crate::steady(on_this_thread, rounds, round)
}

/// The allocations with this number of simultaneous calls.
fn submit_and_wait<C: Subject>(path: &str, in_flight: usize) -> u64 {
    let (mut client, base) = start::<C>(in_flight);
    let target = format!("{base}{path}");
    let mut calls: Vec<Call> = (0..in_flight)
        .map(|_| Call::new(Request::get(&target), Response::new()))
        .collect();
    steady(REQUESTS.div_ceil(in_flight as u64), || {
        for call in calls.drain(..) {
            client.submit(call);
        }
        while let Some(done) = client.wait().expect("an event queue") {
            done.outcome.expect("an answer");
            assert_eq!(done.response.status(), 200);
            calls.push(Call::new(done.request, done.response));
        }
    })
}

/// A client with this number of connections, and the prefix of its targets.
fn start<C: Subject>(connections: usize) -> (C, String) {
    let config = HostConfig {
        max_connections: NonZeroUsize::new(connections).expect("not zero"),
        ..HostConfig::default()
    };
    C::of(server(), config)
}

/// A client.
trait Subject: Sized {
    fn of(server: SocketAddr, config: HostConfig) -> (Self, String);
    fn get(&mut self, target: &str, response: &mut Response) -> Result<Report, Error>;
    fn call(&mut self, request: &mut Request, response: &mut Response) -> Result<Report, Error>;
    /// Reads the whole body in pieces, and returns its length.
    fn stream(
        &mut self,
        request: &mut Request,
        response: &mut Response,
        buffer: &mut [u8],
    ) -> Result<usize, Error>;
    fn submit(&mut self, call: Call);
    fn wait(&mut self) -> io::Result<Option<Completion>>;
}

macro_rules! subject {
    ($client:ty, $of:expr) => {
        impl Subject for $client {
            fn of(server: SocketAddr, config: HostConfig) -> (Self, String) {
                $of(server, config)
            }

            fn get(&mut self, target: &str, response: &mut Response) -> Result<Report, Error> {
                self.get(target, response)
            }

            fn call(
                &mut self,
                request: &mut Request,
                response: &mut Response,
            ) -> Result<Report, Error> {
                self.call(request, response)
            }

            fn stream(
                &mut self,
                request: &mut Request,
                response: &mut Response,
                buffer: &mut [u8],
            ) -> Result<usize, Error> {
                let mut body = self.open(request, response)?;
                let mut bytes = 0;
                loop {
                    match body.read_some(buffer)? {
                        0 => break,
                        n => bytes += n,
                    }
                }
                body.finish()?;
                Ok(bytes)
            }

            fn submit(&mut self, call: Call) {
                self.submit(call);
            }

            fn wait(&mut self) -> io::Result<Option<Completion>> {
                Ok(self.wait(None)?.done())
            }
        }
    };
}

subject!(HostClient, |server, config| {
    let client = HostClient::new(Upstream::tcp([server]), config);
    (client.expect("an event queue"), String::new())
});

subject!(Client, |server: SocketAddr, host: HostConfig| {
    let config = Config {
        max_connections: host.max_connections,
        host,
        ..Config::default()
    };
    let client = Client::new(config).expect("an event queue");
    (client, format!("http://{server}"))
});

subject!(PipelineClient, |server, mut host: HostConfig| {
    // The number of connections is also the number of calls on each connection.
    let connections = host.max_connections.get().isqrt();
    host.max_connections = NonZeroUsize::new(connections).expect("not zero");
    let config = PipelineConfig {
        host,
        ..PipelineConfig::default()
    };
    let client = PipelineClient::new(Upstream::tcp([server]), config);
    (client.expect("an event queue"), String::new())
});

/// Number of requests in one measurement.
const REQUESTS: u64 = 50;
