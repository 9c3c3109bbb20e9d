//! Retries, breakers and pauses, to the millisecond of virtual time.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::net::sim::{ScriptedAnswer, SimNet};
use courser::policy::{BreakerConfig, FailureClass, RetryOn, RetryRule, Statuses};
use courser::{Call, Client, Config, ErrorKind, HostConfig, Phase, Request, Response, Retry, Sent};

use super::{MS, hear, host_client, next, one};

#[test]
fn a_call_that_waits_for_its_retry_holds_no_connection() {
    let net = SimNet::new(1);
    let is_busy = Cell::new(true);
    let heard = hear(&net, 1, move |peer, _| {
        let head = match is_busy.take() {
            true => "503 Busy\r\nRetry-After: 30",
            false => "200 OK",
        };
        peer.send(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"));
    });
    let mut config = one();
    let busy = RetryOn::Status(Statuses::none().and(503..=503));
    config.retry.rules = vec![RetryRule::new(busy)];
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
    assert_eq!((heard.borrow().len(), client.in_flight()), (2, 0));
}

#[test]
fn a_hook_sees_how_far_each_attempt_got() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| peer.reset());
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
    let config = HostConfig {
        retry,
        ..HostConfig::default()
    };
    let mut client = host_client(&net, config);
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
