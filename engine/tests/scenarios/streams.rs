//! Streamed bodies in both directions: how long they may take.

use std::time::{Duration, Instant};

use courser::net::sim::{Link, Peer, SimNet, SimServer};
use courser::net::{Address, Net as _};
use courser::{
    Call, ErrorKind, HostClient, HostConfig, Phase, Read, Request, Response, TimeLimit,
    Timeouts, Upstream,
};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a script on each piece of data.
struct Script<F>(F);

impl<F: FnMut(&mut Peer<'_>, &[u8])> SimServer for Script<F> {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        (self.0)(peer, data);
    }
}

fn client(
    timeouts: Timeouts,
    link: Link,
    script: impl FnMut(&mut Peer<'_>, &[u8]) + 'static,
) -> (HostClient<SimNet>, SimNet) {
    let net = SimNet::new(1);
    let place = Address::Tcp(([10, 0, 0, 1], 80).into());
    net.listen(place, link, Script(script));
    let config = HostConfig {
        timeouts,
        ..HostConfig::default()
    };
    let upstream = Upstream::tcp([([10, 0, 0, 1], 80).into()]);
    let client = HostClient::with_net(upstream, config, net.clone()).unwrap();
    (client, net)
}

/// Sends a head, and a byte of the body every ten seconds, ten times.
fn slow_download(peer: &mut Peer<'_>, _: &[u8]) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    for _ in 0..10 {
        peer.wait(10 * SECOND);
        peer.send("x");
    }
}

/// Waits for the head of a streamed response, and reads the body to its end.
fn read_all(client: &mut HostClient<SimNet>) -> Result<usize, courser::Error> {
    let done = client.wait(None).unwrap().unwrap();
    done.outcome?;
    let (id, mut length) = (done.body.unwrap(), 0);
    loop {
        match client.read_body(id, &mut [0; 99])? {
            Read::Data(n) => length += n,
            Read::Pending => {
                client.wait(None).unwrap();
                client.readable_body();
            }
            Read::End { .. } => return Ok(length),
        }
    }
}

fn streamed() -> Call {
    Call::new(Request::get("/"), Response::new()).streaming(true)
}

#[test]
fn by_default_a_streamed_body_may_take_longer_than_the_total_timeout() {
    let (mut client, net) = client(Timeouts::default(), Link::default(), slow_download);
    let began = net.now();
    client.submit(streamed());
    assert_eq!(read_all(&mut client).unwrap(), 10);
    assert!(net.now() - began > 100 * SECOND);
    // A body in memory does not.
    let began = net.now();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert_total(&error, Phase::Body);
    assert_eq!(net.now() - began, 60 * SECOND);
}

fn assert_total(error: &courser::Error, phase: Phase) {
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
        "{error:?}"
    );
    assert_eq!(error.phase(), phase);
}

#[test]
fn limits_that_were_set_for_it_cover_a_streamed_body() {
    let limit = 35 * SECOND;
    let streamed_total = Timeouts {
        total_streamed: Some(limit),
        ..Timeouts::default()
    };
    type Limited = fn(Call, Instant) -> Call;
    let cases: [(Timeouts, Limited); 4] = [
        (streamed_total.clone(), |call, _| call),
        (Timeouts::default(), |call, _| call.timeout(35 * SECOND)),
        (Timeouts::default(), |call, now| {
            call.deadline(now + 35 * SECOND)
        }),
        (Timeouts::default(), |call, _| {
            call.timeouts(Timeouts {
                total_streamed: Some(35 * SECOND),
                ..Timeouts::default()
            })
        }),
    ];
    for (timeouts, own) in cases {
        let (mut client, net) = client(timeouts, Link::default(), slow_download);
        let began = net.now();
        client.submit(own(streamed(), began));
        assert_total(&read_all(&mut client).unwrap_err(), Phase::Body);
        assert_eq!(net.now() - began, limit);
        assert_eq!(net.open_streams(), 0);
    }
}

#[test]
fn the_head_of_a_streamed_response_must_come_within_the_total_timeout() {
    let silent = |_: &mut Peer<'_>, _: &[u8]| {};
    for total_streamed in [None, Some(1000 * SECOND)] {
        let timeouts = Timeouts {
            total_streamed,
            ..Timeouts::default()
        };
        let (mut client, net) = client(timeouts, Link::default(), silent);
        let began = net.now();
        client.submit(streamed());
        assert_total(&read_all(&mut client).unwrap_err(), Phase::FirstByte);
        assert_eq!(net.now() - began, 60 * SECOND);
    }
}
