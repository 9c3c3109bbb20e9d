//! Retries, breakers and pauses, to the millisecond of virtual time.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::net::sim::{Link, Peer, ScriptedAnswer, SimNet, SimServer};
use courser::net::{Address, Net as _};
use courser::{
    Backoff, BreakerConfig, Call, Client, Config, ErrorKind, FailureClass, HostClient, HostConfig,
    Phase, Request, Response, Retry, RetryOn, RetryRule, Sent, Statuses, Upstream,
};

const MS: Duration = Duration::from_millis(1);

/// Answers each request with the next of these, and notes when it came; after the last one, always with the last one.
#[derive(Clone)]
struct Answers {
    answers: Vec<String>,
    came: Arc<Mutex<Vec<Duration>>>,
    began: std::time::Instant,
}

impl Answers {
    fn new(net: &SimNet, answers: impl IntoIterator<Item = &'static str>) -> Self {
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

fn here() -> Address {
    Address::Tcp(([10, 0, 0, 1], 80).into())
}

/// No latency, one segment.
fn near() -> Link {
    Link {
        latency: Duration::ZERO..=Duration::ZERO,
        segment: usize::MAX..=usize::MAX,
        ..Link::default()
    }
}

fn client(net: &SimNet, config: HostConfig) -> HostClient<SimNet> {
    let upstream = Upstream::tcp([([10, 0, 0, 1], 80).into()]);
    HostClient::with_net(upstream, config, net.clone()).unwrap()
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
fn after_the_last_retry_the_answer_is_the_result() {
    for (answer, retry, requests) in [
        ("503 Busy", on_503(), 4),
        ("503 Busy\r\nRetry-After: 61", on_503(), 1),
        ("503 Busy\r\nRetry-After: 59", on_503(), 1), // the deadline is before the end of the pause
        ("500 Oops", on_503(), 1),
        (
            "503 Busy\r\nRetry-After: 2",
            Retry {
                max_elapsed: Some(3000 * MS),
                ..on_503()
            },
            2,
        ),
        (
            "503 Busy",
            Retry {
                max_attempts: NonZeroU32::MIN,
                ..on_503()
            },
            1,
        ),
    ] {
        let net = SimNet::new(1);
        let server = Answers::new(&net, [answer]);
        net.listen(here(), near(), server.clone());
        let mut config = with(retry);
        config.timeouts.total = Some(59_000 * MS);
        let mut client = client(&net, config);
        let mut response = Response::new();
        client.get("/", &mut response).unwrap();
        assert_eq!(response.body(), b"hi");
        assert_eq!(server.came().len(), requests, "{answer}");
    }
}

#[test]
fn a_streamed_answer_is_judged_by_its_head() {
    let net = SimNet::new(1);
    let server = Answers::new(&net, ["503 Busy\r\nRetry-After: 1", "200 OK"]);
    net.listen(here(), near(), server.clone());
    let mut client = client(&net, with(on_503()));
    let mut response = Response::new();
    let body = client.open(&mut Request::get("/"), &mut response).unwrap();
    assert!(body.finish().unwrap().bytes_in() > 0);
    assert_eq!((response.status(), server.came().len()), (200, 2));
}

#[test]
fn a_call_that_waits_for_its_retry_holds_no_connection() {
    let net = SimNet::new(1);
    let server = Answers::new(&net, ["503 Busy\r\nRetry-After: 30", "200 OK"]);
    net.listen(here(), near(), server.clone());
    let mut config = with(on_503());
    config.max_connections = 1.try_into().unwrap();
    let mut client = client(&net, config);
    let patient = client.submit(Call::new(Request::get("/"), Response::new()));
    assert!(client.wait(Some(1000 * MS)).unwrap().is_none());
    let counters = client.counters();
    assert_eq!((counters.busy, counters.waiting, counters.idle), (0, 0, 1));
    // Another call has the connection meanwhile.
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    assert_eq!(response.status(), 200);
    assert!(client.cancel(patient));
    let done = client.wait(None).unwrap().unwrap();
    assert!(matches!(
        done.outcome.unwrap_err().kind(),
        ErrorKind::Cancelled
    ));
    assert!(client.wait(Some(60_000 * MS)).unwrap().is_none());
    assert_eq!((server.came().len(), client.in_flight()), (2, 0));
}

#[test]
fn a_server_that_restarts_is_waited_for() {
    let net = SimNet::new(1);
    let rule = RetryRule {
        attempts: NonZeroU32::new(20).unwrap(),
        backoff: Backoff {
            initial: 50 * MS,
            ..Backoff::default()
        },
        ..RetryRule::new(RetryOn::Failure(FailureClass::Refused))
    };
    let retry = Retry {
        max_attempts: NonZeroU32::new(20).unwrap(),
        rules: vec![rule],
        ..Retry::default()
    };
    let mut client = client(&net, with(retry));
    let began = net.now();
    client.submit(Call::new(Request::get("/"), Response::new()));
    assert!(client.wait(Some(1000 * MS)).unwrap().is_none());
    let server = Answers::new(&net, ["200 OK"]);
    net.listen(here(), near(), server.clone());
    let done = client.wait(None).unwrap().unwrap();
    assert_eq!(done.response.status(), 200);
    let took = net.now() - began;
    assert!(took >= 1000 * MS && took < 5000 * MS, "{took:?}");
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
    net.listen(here(), near(), Resets);
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
    let mut client = client(&net, with(retry));
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

// ---- breakers

fn breaker(consecutive: u32) -> BreakerConfig {
    BreakerConfig {
        consecutive: NonZeroU32::new(consecutive),
        ..BreakerConfig::default()
    }
}

#[test]
fn a_cancelled_probe_makes_room_for_another() {
    let net = SimNet::new(1);
    let config = HostConfig {
        breaker: Some(breaker(1)),
        ..HostConfig::default()
    };
    let mut client = client(&net, config);
    client.get("/", &mut Response::new()).unwrap_err();
    client.maintain(5000 * MS).unwrap();
    net.listen(here(), near(), Answers::new(&net, ["200 OK"]));
    let probe = client.submit(Call::new(Request::get("/"), Response::new()));
    assert!(client.wait(Some(Duration::ZERO)).unwrap().is_none());
    assert!(client.cancel(probe));
    client.wait(None).unwrap().unwrap().outcome.unwrap_err();
    client.get("/", &mut Response::new()).unwrap();
}

struct HalfAnAnswer;

impl SimServer for HalfAnAnswer {
    fn on_data(&mut self, peer: &mut Peer<'_>, _: &[u8]) {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
    }
}

#[test]
fn a_probe_whose_body_is_dropped_makes_room_for_another() {
    let net = SimNet::new(1);
    let config = HostConfig {
        breaker: Some(breaker(1)),
        ..HostConfig::default()
    };
    let mut client = client(&net, config);
    client.get("/", &mut Response::new()).unwrap_err();
    net.listen(here(), near(), HalfAnAnswer);
    client.maintain(5000 * MS).unwrap();
    // It was not read to its end, so it is not known how it would have ended.
    drop(client.open(&mut Request::get("/"), &mut Response::new()));
    net.listen(here(), near(), Answers::new(&net, ["200 OK"]));
    client.get("/", &mut Response::new()).unwrap();
}

#[test]
fn a_host_whose_breaker_is_open_is_not_forgotten() {
    let net = SimNet::new(1);
    let resolver = net.resolver(|_, _| ScriptedAnswer::Never);
    let mut config = Config::default();
    config.host.breaker = Some(BreakerConfig {
        open_for: 60_000 * MS,
        ..breaker(1)
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
