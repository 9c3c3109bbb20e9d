//! Rates over real sockets: what must wait does, however fast the machine is, and nothing is lost on the way. How exact
//! they are is told by the simulation.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use courser::{Rate, Request, Response};
use tests::clients::{any_client, any_config, assert_none_left};
use tests::script::{Server, connection};
use tests::tls::Authority;

use super::response;

fn rate(count: u64, burst: u64) -> Option<Rate> {
    let number = |n| NonZeroU64::new(n).unwrap();
    Some(Rate::per_second(number(count)).burst(number(burst)))
}

/// Bytes that are not all the same.
fn body(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * n) as u8).collect()
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
