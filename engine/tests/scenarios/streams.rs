//! Streamed bodies in both directions: how long they may take, and who is to blame for a pause.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use courser::net::sim::{Link, Peer, SimNet, SimServer};
use courser::net::{Address, Net as _};
use courser::{
    Call, CallId, ErrorKind, HostClient, HostConfig, Phase, Read, Request, Response, TimeLimit,
    Timeouts, Upstream,
};

const SECOND: Duration = Duration::from_secs(1);
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

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

/// A body whose source has as many bytes as the test says.
struct Source {
    ready: Arc<AtomicUsize>,
    given: usize,
}

impl io::Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = buffer.len().min(self.ready.load(SeqCst) - self.given);
        if n == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        buffer[..n].fill(b'x');
        self.given += n;
        Ok(n)
    }
}

/// Submits a call with a body of that length, and returns how many bytes of it are ready.
fn upload(client: &mut HostClient<SimNet>, length: usize) -> (CallId, Arc<AtomicUsize>) {
    let ready = Arc::default();
    let mut request = Request::new("PUT", "/");
    let source = Source {
        ready: Arc::clone(&ready),
        given: 0,
    };
    request.body_stream(source, Some(length as u64));
    let id = client.submit(Call::new(request, Response::new()));
    (id, ready)
}

fn without_total() -> Timeouts {
    Timeouts {
        total: None,
        first_byte: Some(30 * SECOND),
        ..Timeouts::default()
    }
}

#[test]
fn the_peer_is_not_to_blame_for_the_pauses_of_a_source() {
    let mut received = Vec::new();
    let whole = move |peer: &mut Peer<'_>, data: &[u8]| {
        received.extend_from_slice(data);
        if received.ends_with(b"\r\n\r\nxxx") {
            peer.send(OK);
        }
    };
    let (mut client, _) = client(without_total(), Link::default(), whole);
    let (id, ready) = upload(&mut client, 3);
    for count in 1..=3 {
        assert!(
            client.wait(Some(100 * SECOND)).unwrap().is_none(),
            "{count}"
        );
        ready.store(count, SeqCst);
        client.resume(id);
    }
    client.wait(None).unwrap().unwrap().outcome.unwrap();
}

#[test]
fn after_the_pause_of_a_source_the_limits_count_anew() {
    let link = Link {
        window: 1_000,
        ..Link::default()
    };
    let deaf = |peer: &mut Peer<'_>, _: &[u8]| peer.stop_reading();
    let (mut client, net) = client(without_total(), link, deaf);
    let (id, ready) = upload(&mut client, 100_000);
    assert!(client.wait(Some(100 * SECOND)).unwrap().is_none());
    ready.store(100_000, SeqCst);
    client.resume(id);
    let resumed = net.now();
    let done = client.wait(None).unwrap().unwrap();
    let error = done.outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Write)),
        "{error:?}"
    );
    let took = net.now() - resumed;
    assert!((30 * SECOND..31 * SECOND).contains(&took), "{took:?}");
}

#[test]
fn the_total_timeout_goes_on_while_a_source_pauses() {
    let (mut client, net) = client(Timeouts::default(), Link::default(), |_, _| {});
    let began = net.now();
    upload(&mut client, 3);
    let done = client.wait(None).unwrap().unwrap();
    assert_total(&done.outcome.unwrap_err(), Phase::Send);
    assert_eq!(net.now() - began, 60 * SECOND);
}
