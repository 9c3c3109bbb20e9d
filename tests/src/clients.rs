//! Clients for the black-box tests, ways to drive them, and the check that they leave nothing behind.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use courser::error::DnsError;
use courser::{
    Answer, Call, Client, Completion, Config, HostClient, HostConfig, HttpClient, Reply, Resolver,
    Timeouts, Upstream,
};

use crate::script::{PATIENCE, Server};

/// The default configuration with a total deadline, so that an engine that hangs fails a test.
pub fn config() -> HostConfig {
    HostConfig {
        timeouts: Timeouts {
            total: Some(PATIENCE),
            total_streamed: Some(PATIENCE),
            ..Timeouts::default()
        },
        // Many tests say which address must be first.
        random_start: false,
        ..HostConfig::default()
    }
}

/// A client of `server` over TCP with [`config`].
pub fn client(server: &Server) -> HostClient {
    client_with(server, config())
}

/// A client of `server` over TCP.
pub fn client_with(server: &Server, config: HostConfig) -> HostClient {
    HostClient::new(Upstream::tcp([server.address()]), config).expect("a readiness queue")
}

/// Drives the client until nothing is in flight, and returns what completed, in the order of completion.
pub fn drive_all(client: &mut impl HttpClient) -> Vec<Completion> {
    let mut completions = Vec::new();
    while let Some(completion) = client.wait(Some(PATIENCE)).expect("poll").done() {
        completions.push(completion);
    }
    assert_eq!(client.in_flight(), 0, "calls hang: {:?}", client.counters());
    completions
}

/// Submits all calls and returns their completions, sorted by tag.
pub fn run(client: &mut impl HttpClient, calls: impl IntoIterator<Item = Call>) -> Vec<Completion> {
    for call in calls {
        client.submit(call);
    }
    let mut completions = drive_all(client);
    completions.sort_by_key(|completion| completion.tag);
    completions
}

/// The default configuration of a client of any URL, with a total deadline.
pub fn any_config() -> Config {
    Config {
        host: config(),
        ..Config::default()
    }
}

/// A client of any URL that has no names to look up.
pub fn any_client(config: Config) -> Client {
    Client::new(config).expect("a readiness queue")
}

/// Says the same addresses of every name; without addresses, that there is no such name.
pub struct Saying(Vec<IpAddr>);

/// A resolver that says these addresses of every name.
pub fn saying(ips: &[&str]) -> Saying {
    let ips = ips.iter().map(|ip| ip.parse().expect("an address"));
    Saying(ips.collect())
}

impl Resolver for Saying {
    fn lookup(&mut self, _: &str, reply: Reply) {
        let ips = self.0.iter().copied();
        reply.answer(match self.0.is_empty() {
            true => Answer::failed(DnsError::NotFound),
            false => Answer::found(ips, Duration::from_secs(60)),
        });
    }
}

/// A client of any URL with a resolver.
pub fn named_client(config: Config, resolver: impl Resolver + 'static) -> Client {
    Client::with_resolver(config, resolver).expect("a readiness queue")
}

/// With no call in flight nothing may be at work, and all that is open is idle; with the client dropped, the servers have
/// seen every connection end.
pub fn assert_none_left<'a>(
    mut client: impl HttpClient,
    servers: impl IntoIterator<Item = &'a Server>,
) {
    assert_eq!(client.in_flight(), 0);
    // A connection whose call was served by another one may still be on its way.
    let began = Instant::now();
    while client.counters().connecting > 0 && began.elapsed() < PATIENCE {
        client.maintain(STEP).expect("poll");
    }
    let counters = client.counters();
    assert_eq!(counters.waiting, 0, "{counters:?}");
    assert_eq!(counters.open, counters.idle, "{counters:?}");
    drop(client);
    for server in servers {
        server.wait_all_ended();
    }
}

/// One turn of the client's loop while a test watches something else.
const STEP: Duration = Duration::from_millis(1);
