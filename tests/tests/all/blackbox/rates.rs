//! Rates over real sockets: what must wait does, however fast the machine is, and nothing is lost on the way. How exact
//! they are is told by the simulation.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use courser::{Call, ErrorKind, HostConfig, Phase, Rate, Request, Response, TimeLimit};
use tests::clients::{
    any_client, any_config, assert_none_left, assert_nothing_left, client_with, config, run,
};
use tests::script::{Server, connection};
use tests::tls::Authority;

use super::{OK, response};

fn rate(count: u64, burst: u64) -> Option<Rate> {
    let number = |n| NonZeroU64::new(n).unwrap();
    Some(Rate::per_second(number(count)).burst(number(burst)))
}

/// Bytes that are not all the same.
fn body(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * n) as u8).collect()
}

#[test]
fn r01_requests_come_no_faster_than_allowed() {
    let server = Server::every(connection().always(OK));
    let mut client = client_with(
        &server,
        HostConfig {
            rate: rate(100, 3),
            ..config()
        },
    );
    let began = Instant::now();
    let calls = (0..13).map(|tag| Call::new(Request::get("/"), Response::new()).tag(tag));
    let done = run(&mut client, calls);
    assert!(began.elapsed() >= Duration::from_millis(100));
    assert!(done.iter().all(|done| done.outcome.is_ok()));
    assert_eq!(done.iter().filter(|done| done.report.held()).count(), 10);
    assert_nothing_left(client, &server);
}

#[test]
fn r02_a_call_that_waits_for_its_turn_has_no_connection_and_its_deadline() {
    let server = Server::every(connection().always(OK));
    let mut client = client_with(
        &server,
        HostConfig {
            min_delay: Some(Duration::from_secs(3600)),
            ..config()
        },
    );
    client.get("/", &mut Response::new()).unwrap();
    let call = Call::new(Request::get("/"), Response::new()).timeout(Duration::from_millis(50));
    let done = run(&mut client, [call]);
    let error = done.into_iter().next().unwrap().outcome.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)));
    assert_eq!(error.phase(), Phase::Queue);
    assert_eq!((server.accepted(), server.lines().len()), (1, 1));
    assert_nothing_left(client, &server);
}

#[test]
fn r03_bodies_come_and_go_at_their_rates_unharmed() {
    let down = body(80_000);
    let server = Server::every(connection().always(response(&down)));
    let mut client = client_with(
        &server,
        HostConfig {
            bytes_in: rate(400_000, 16_384),
            bytes_out: rate(400_000, 16_384),
            ..config()
        },
    );
    let began = Instant::now();
    let mut received = Response::new();
    client.get("/", &mut received).unwrap();
    // All but the first 16 KiB, and after a pause all but what the rate gives in 80 ms.
    let least = Duration::from_millis((80_000 - 16_384) / 400);
    assert!(began.elapsed() >= least);
    assert_eq!(received.body(), down);
    let (began, up) = (Instant::now(), body(50_000));
    let mut request = Request::post("/", up.clone());
    client.call(&mut request, &mut received).unwrap();
    assert!(began.elapsed() >= Duration::from_millis((50_000 - 32_000) / 400));
    assert_eq!(server.requests()[1].body(), up);
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn r04_tls_goes_at_the_rate_of_its_bytes() {
    let authority = Authority::new("authority");
    let acceptor = authority.leaf(&["127.0.0.1"]).acceptor();
    let down = body(80_000);
    let server = Server::every(connection().tls(&acceptor).always(response(&down)));
    let mut config = any_config();
    config.host.tls = authority.trusted();
    config.host.bytes_in = rate(400_000, 1);
    config.bytes_out = rate(20_000, 1);
    let mut client = any_client(config);
    let url = format!("https://{}/", server.address());
    let mut received = Response::new();
    for _ in 0..2 {
        let began = Instant::now();
        let mut request = Request::post(&*url, body(1000));
        client.call(&mut request, &mut received).unwrap();
        assert!(began.elapsed() >= Duration::from_millis((80_000 - 32_000) / 400));
        assert_eq!(received.body(), down);
    }
    assert_eq!(server.accepted(), 1);
    assert_none_left(client, [&server]);
}
