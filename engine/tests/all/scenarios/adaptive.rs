//! Adaptive limits on the first byte, which follow the usual latency of the host, to the millisecond of virtual time.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use courser::error::TimeLimit;
use courser::net::Net as _;
use courser::net::sim::{Peer, SimNet, SimServer};
use courser::policy::{AdaptiveTimeout, BalanceConfig};
use courser::{
    Error, ErrorKind, HostClient, HostConfig, Phase, PipelineClient, PipelineConfig, Request,
    Response, Sent, Timeouts, Upstream,
};

use super::{MS, call, host_client, ip, near, next, place, upstream};

/// Answers after a pause, with a further pause between head and body.
#[derive(Clone, Default)]
struct Slow {
    before: Rc<Cell<Duration>>,
    within: Rc<Cell<Duration>>,
    /// How long the next answer takes instead.
    once: Rc<Cell<Option<Duration>>>,
}

impl SimServer for Slow {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        for _ in String::from_utf8_lossy(data).matches(" HTTP/1.1\r\n") {
            peer.wait(self.once.take().unwrap_or(self.before.get()));
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
            peer.wait(self.within.get());
            peer.send("hi");
        }
    }
}

fn served(n: u8, net: &SimNet) -> Slow {
    let server = Slow::default();
    server.before.set(100 * MS);
    net.listen(place(n), near(), server.clone());
    server
}

fn rules() -> AdaptiveTimeout {
    AdaptiveTimeout {
        factor: 2.0,
        min: 20 * MS,
        max: 5_000 * MS,
        min_samples: 10,
        ..AdaptiveTimeout::default()
    }
}

fn config() -> HostConfig {
    HostConfig {
        adaptive: Some(rules()),
        stats: true,
        ..HostConfig::default()
    }
}

/// Makes the next answer never come. Returns the error of a call, and the time after which the call got it.
fn cut_off(client: &mut HostClient<SimNet>, net: &SimNet, server: &Slow) -> (Error, Duration) {
    server.once.set(Some(3_600_000 * MS));
    let began = net.now();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    (error, net.now() - began)
}

fn assert_adaptive(error: &Error) {
    assert_kind!(error, ErrorKind::Timeout(TimeLimit::Adaptive));
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::FirstByte, Sent::NoReplyByte)
    );
}

fn learn(client: &mut HostClient<SimNet>) {
    for _ in 0..30 {
        client.get("/", &mut Response::new()).unwrap();
    }
}

/// Twice that, rounded up by at most an eighth.
fn is_twice(limit: Duration, usual: Duration) -> bool {
    limit >= 2 * usual && limit <= 2 * usual * 9 / 8 + MS
}

#[test]
fn a_call_beyond_the_usual_latency_fails() {
    let net = SimNet::new(1);
    let server = served(1, &net);
    // The time of the body does not count.
    server.within.set(900 * MS);
    let mut client = host_client(&net, config());
    // No latency is known yet, so the longest limit holds.
    let (error, took) = cut_off(&mut client, &net, &server);
    assert_adaptive(&error);
    assert_eq!(took, 5_000 * MS);
    assert_eq!(
        error.to_string(),
        "10.0.0.1: waiting for the first byte timed out (adaptive first-byte limit)"
    );
    learn(&mut client);
    let (error, took) = cut_off(&mut client, &net, &server);
    assert_adaptive(&error);
    assert!(is_twice(took, 100 * MS), "{took:?}");
    let stats = client.stats();
    assert_eq!((stats.adaptive_timeouts, stats.failures.timeout), (2, 2));
    assert_eq!(stats.first_byte_limit, Some(took));
    assert_eq!((client.counters().open, net.open_streams()), (0, 0));
}

#[test]
fn only_completed_calls_are_recorded() {
    let net = SimNet::new(1);
    let server = served(1, &net);
    let mut client = host_client(&net, config());
    learn(&mut client);
    // Deadlines, cancelled calls, and calls with a limit of their own are not recorded.
    let patient = Timeouts {
        first_byte: Some(60_000 * MS),
        ..Timeouts::default()
    };
    for _ in 0..100 {
        server.once.set(Some(10_000 * MS));
        let patiently = call("/").timeouts(patient.clone());
        client.perform(patiently).outcome.unwrap();
        server.once.set(Some(10_000 * MS));
        client.perform(call("/").timeout(MS)).outcome.unwrap_err();
        server.once.set(Some(10_000 * MS));
        let id = client.submit(call("/"));
        assert!(client.wait(Some(MS)).unwrap().done().is_none());
        assert!(client.cancel(id));
        next(&mut client).outcome.unwrap_err();
    }
    assert!(is_twice(cut_off(&mut client, &net, &server).1, 100 * MS));
    // Streamed answers are recorded when they have been read.
    server.before.set(400 * MS);
    for _ in 0..600 {
        let mut response = Response::new();
        if let Ok(body) = client.open(&mut Request::get("/"), &mut response) {
            body.finish().unwrap();
        }
    }
    assert!(is_twice(cut_off(&mut client, &net, &server).1, 400 * MS));
}

#[test]
fn each_of_several_addresses_has_its_own_limit() {
    let net = SimNet::new(1);
    let servers = [served(1, &net), served(2, &net)];
    servers[1].before.set(400 * MS);
    let balance = BalanceConfig {
        fail_over: false,
        ..BalanceConfig::default()
    };
    let config = HostConfig {
        balance: Some(balance),
        random_start: false,
        ..config()
    };
    let upstream = Upstream::tcp([1, 2].map(|n| (ip(n), 80).into()));
    let mut client = HostClient::with_net(upstream, config, net.clone()).unwrap();
    // They take turns.
    learn(&mut client);
    for (server, usual) in servers.iter().zip([100, 400]) {
        let (error, took) = cut_off(&mut client, &net, server);
        assert_adaptive(&error);
        assert!(is_twice(took, usual * MS), "{took:?}");
    }
}

#[test]
fn in_a_pipeline_the_wait_begins_when_an_answer_is_next() {
    let net = SimNet::new(1);
    let server = served(1, &net);
    let mut config = PipelineConfig {
        host: config(),
        ..PipelineConfig::default()
    };
    config.host.max_connections = 1.try_into().unwrap();
    let mut client = PipelineClient::with_net(upstream(), config, net.clone()).unwrap();
    // The last call waits for three seconds, most of the time for the others.
    for _ in 0..30 {
        client.submit(call("/"));
    }
    while let Some(done) = client.wait(None).unwrap().done() {
        done.outcome.unwrap();
    }
    server.once.set(Some(3_600_000 * MS));
    let began = net.now();
    let error = client.perform(call("/")).outcome.unwrap_err();
    assert_adaptive(&error);
    let took = net.now() - began;
    assert!(is_twice(took, 100 * MS), "{took:?}");
}
