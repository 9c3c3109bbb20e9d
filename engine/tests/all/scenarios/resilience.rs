//! Retries, breakers and pauses, to the millisecond of virtual time.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::net::Net as _;
use courser::net::sim::{Peer, ScriptedAnswer, SimNet, SimServer};
use courser::policy::{BreakerConfig, FailureClass, RetryOn, RetryRule, Statuses};
use courser::{
    Backoff, Call, Client, Config, ErrorKind, HostConfig, Phase, Request, Response, Retry, Sent,
};

use super::{MS, host_client, near, next, place};

/// Answers each request with the next of these, and notes when it came; after the last one, always with the last one.
#[derive(Clone)]
struct Answers {
    answers: Vec<String>,
    came: Arc<Mutex<Vec<Duration>>>,
    began: std::time::Instant,
}

impl Answers {
    fn new(net: &SimNet, answers: impl IntoIterator<Item: std::fmt::Display>) -> Self {
        let answer = |status| format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nhi");
        Self {
            answers: answers.into_iter().map(answer).collect(),
            came: Arc::default(),
            began: net.now(),
        }
    }

    fn came(&self) -> Vec<Duration> {
        self.came.lock().unwrap().clone()
    }
}

impl SimServer for Answers {
    fn on_data(&mut self, peer: &mut Peer<'_>, _: &[u8]) {
        let mut came = self.came.lock().unwrap();
        let answer = came.len().min(self.answers.len() - 1);
        came.push(peer.now() - self.began);
        peer.send(self.answers[answer].clone().into_bytes());
    }
}

/// Without jitter: the pauses are those of the server, or none.
fn on_503() -> Retry {
    let rule = RetryRule {
        backoff: Backoff::NONE,
        attempts: NonZeroU32::new(4).unwrap(),
        ..RetryRule::new(RetryOn::Status(Statuses::none().and(503..=503)))
    };
    Retry {
        rules: vec![rule],
        ..Retry::default()
    }
}

fn with(retry: Retry) -> HostConfig {
    HostConfig {
        retry,
        ..HostConfig::default()
    }
}

#[test]
fn a_call_that_waits_for_its_retry_holds_no_connection() {
    let net = SimNet::new(1);
    let server = Answers::new(&net, ["503 Busy\r\nRetry-After: 30", "200 OK"]);
    net.listen(place(1), near(), server.clone());
    let mut config = with(on_503());
    config.max_connections = 1.try_into().unwrap();
    let mut client = host_client(&net, config);
    let patient = client.submit(Call::new(Request::get("/"), Response::new()));
    assert!(client.wait(Some(1000 * MS)).unwrap().done().is_none());
    let counters = client.counters();
    assert_eq!((counters.busy, counters.waiting, counters.idle), (0, 0, 1));
    // Another call has the connection meanwhile.
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    assert_eq!(response.status(), 200);
    assert!(client.cancel(patient));
    let done = next(&mut client);
    assert_kind!(done.outcome.unwrap_err(), ErrorKind::Cancelled);
    assert!(client.wait(Some(60_000 * MS)).unwrap().done().is_none());
    assert_eq!((server.came().len(), client.in_flight()), (2, 0));
}

struct Resets;

impl SimServer for Resets {
    fn on_data(&mut self, peer: &mut Peer<'_>, _: &[u8]) {
        peer.reset();
    }
}

#[test]
fn a_hook_sees_how_far_each_attempt_got() {
    let net = SimNet::new(1);
    net.listen(place(1), near(), Resets);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let retry = Retry {
        hook: Some(Arc::new({
            let seen = Arc::clone(&seen);
            move |failed| {
                let (error, elapsed) = (failed.error, failed.elapsed);
                let got = (error.phase(), error.sent(), failed.bytes_sent, elapsed);
                seen.lock().unwrap().push((failed.attempt, got));
                (failed.attempt < 3).then_some(100 * MS)
            }
        })),
        ..Retry::default()
    };
    let mut client = host_client(&net, with(retry));
    client.get("/", &mut Response::new()).unwrap_err();
    let seen = seen.lock().unwrap().clone();
    let head = seen[0].1.2;
    assert!(head > 40, "{head}");
    let attempt = |n: u32| {
        let got = (
            Phase::FirstByte,
            Sent::NoReplyByte,
            head * u64::from(n),
            (n - 1) * 100 * MS,
        );
        (n, got)
    };
    assert_eq!(seen, [attempt(1), attempt(2), attempt(3)]);
}

#[test]
fn a_host_whose_breaker_is_open_is_not_forgotten() {
    let net = SimNet::new(1);
    let resolver = net.resolver(|_, _| ScriptedAnswer::Never);
    let mut config = Config::default();
    config.host.breaker = Some(BreakerConfig {
        open_for: 60_000 * MS,
        consecutive: NonZeroU32::new(1),
        ..BreakerConfig::default()
    });
    let mut client = Client::with_net(config, net.clone(), resolver).unwrap();
    let mut get = |time| {
        client.maintain(time * MS).unwrap();
        let outcome = client.get("http://10.0.0.1/", &mut Response::new());
        let refused =
            matches!(outcome, Err(error) if matches!(error.kind(), ErrorKind::BreakerOpen(_)));
        (refused, client.hosts())
    };
    assert_eq!(get(0), (false, 1));
    assert_eq!(get(30_000), (true, 1));
    assert_eq!(get(29_000), (true, 1));
    // It is half open, which cannot be told from closed after that time.
    assert_eq!(get(5_000), (false, 1));
    client.maintain(200_000 * MS).unwrap();
    client.maintain(Duration::ZERO).unwrap();
    assert_eq!(client.hosts(), 0);
}

/// A rule has its own number of attempts, and each opening that fails is one.
#[test]
fn refused_connections_are_attempts() {
    let rule = RetryRule {
        attempts: NonZeroU32::new(7).unwrap(),
        ..RetryRule::new(RetryOn::Failure(FailureClass::Refused))
    };
    let config = HostConfig {
        retry: Retry {
            rules: vec![rule],
            ..Retry::default()
        },
        retry_budget: None,
        stats: true,
        ..HostConfig::default()
    };
    let net = SimNet::new(1);
    let mut client = host_client(&net, config);
    let done = client.perform(Call::new(Request::get("/"), Response::new()));
    assert_kind!(done.outcome.unwrap_err(), ErrorKind::Io(_));
    assert_eq!((done.report.attempts(), client.stats().retries), (7, 6));
}
