//! Streamed bodies in both directions: how long they may take, who is to blame for a pause, and answers
//! that come before the whole request was sent.

use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use courser::error::{LimitExceeded, TimeLimit};
use courser::net::Net as _;
use courser::net::sim::{Link, Peer, SimNet};
use courser::{
    BatchConfig, Bytes, Call, CallId, Error, ErrorKind, HostClient, HostConfig, Misuse, Phase,
    PipelineClient, PipelineConfig, Request, Response, Timeouts, Waited,
};

use super::{Script, Source, call, host_client, near, next, place, read_to_end, rest, upstream};

const SECOND: Duration = Duration::from_secs(1);
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn client(
    timeouts: Timeouts,
    link: Link,
    script: impl FnMut(&mut Peer<'_>, &[u8]) + 'static,
) -> (HostClient<SimNet>, SimNet) {
    let net = SimNet::new(1);
    net.listen(place(1), link, Script(script));
    let config = HostConfig {
        timeouts,
        ..HostConfig::default()
    };
    let client = host_client(&net, config);
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
    let done = next(client);
    let body = done.streamed();
    done.outcome?;
    read_to_end(client, body.unwrap()).map(|(_, length)| length)
}

fn streamed() -> Call {
    call("/").streaming(true)
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
    assert_kind!(error, ErrorKind::Timeout(TimeLimit::Total));
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

/// Submits a call with a body of that length, and returns how many bytes of it are ready.
fn upload(client: &mut HostClient<SimNet>, length: usize) -> (CallId, Arc<AtomicUsize>) {
    let mut request = Request::new("PUT", "/");
    let source = Source::default();
    let ready = Arc::clone(&source.ready);
    request.body_stream(source, Some(length as u64));
    let id = client.submit(Call::new(request, Response::new()));
    (id, ready)
}

/// Soon full.
fn narrow() -> Link {
    Link {
        window: 1_000,
        ..Link::default()
    }
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
        let waited = client.wait(Some(100 * SECOND)).unwrap();
        assert!(matches!(waited, Waited::TimedOut), "{count}: {waited:?}");
        ready.store(count, SeqCst);
        client.resume(id);
    }
    next(&mut client).outcome.unwrap();
}

/// Nobody can resume a call whose caller waits for it: without an error, it would last until its deadline.
#[test]
fn a_call_that_blocks_has_no_pauses() {
    let (mut client, net) = client(Timeouts::default(), Link::default(), |_, _| {});
    let began = net.now();
    let blocked = || {
        let mut request = Request::put("/", "");
        request.body_stream(Source::default(), Some(1));
        request
    };
    let mut response = Response::new();
    let called = client.call(&mut blocked(), &mut response).map(|_| ());
    let opened = client.open(&mut blocked(), &mut response).map(|_| ());
    let mut batch = client.call_many(
        [Call::new(blocked(), Response::new())],
        BatchConfig::default(),
    );
    let (_, done) = batch.next().unwrap();
    drop(batch);
    for outcome in [called, opened, done.outcome] {
        assert_kind!(
            outcome.unwrap_err(),
            ErrorKind::Misuse(Misuse::NotResumable)
        );
    }
    assert!(net.now() - began < SECOND, "at once");
    assert_eq!(client.in_flight(), 0);
}

/// A body whose source panics, without a message.
fn panics() -> Request {
    struct Panics;
    impl io::Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            resume_unwind(Box::new("planned"))
        }
    }
    let mut request = Request::put("/", "");
    request.body_stream(Panics, None);
    request
}

#[test]
fn a_client_can_be_used_after_the_panic_of_a_source() {
    let answer = |peer: &mut Peer<'_>, data: &[u8]| {
        if data.starts_with(b"GET ") {
            peer.send(OK);
        }
    };
    let (mut client, net) = client(Timeouts::default(), Link::default(), answer);
    let caught = |run: &mut dyn FnMut()| {
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"planned"));
    };
    let mut request = panics();
    let mut response = Response::new();
    caught(&mut || _ = client.call(&mut request, &mut response));
    assert_eq!(request.method(), "PUT", "given back");
    assert_eq!((client.in_flight(), net.open_streams()), (0, 0));
    caught(&mut || _ = client.open(&mut panics(), &mut response).map(|_| ()));
    assert_eq!((client.in_flight(), net.open_streams()), (0, 0));

    // Other calls go on, and each call completes.
    client.submit(call("/").tag(1));
    client.submit(Call::new(panics(), Response::new()).tag(2));
    client.submit(call("/").tag(3));
    caught(&mut || _ = client.wait(None));
    let ended = rest(&mut client).into_iter();
    let mut outcomes: Vec<_> = ended.map(|done| (done.tag, done.outcome)).collect();
    outcomes.sort_by_key(|(tag, _)| *tag);
    let [(1, Ok(())), (2, Err(error)), (3, Ok(()))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_kind!(error, ErrorKind::Misuse(Misuse::BodySource(_)));
    assert_eq!(net.open_streams(), 2);
}

#[test]
fn after_the_pause_of_a_source_the_limits_count_anew() {
    let deaf = |peer: &mut Peer<'_>, _: &[u8]| peer.stop_reading();
    let (mut client, net) = client(without_total(), narrow(), deaf);
    let (id, ready) = upload(&mut client, 100_000);
    assert!(client.wait(Some(100 * SECOND)).unwrap().done().is_none());
    ready.store(100_000, SeqCst);
    client.resume(id);
    let resumed = net.now();
    let done = next(&mut client);
    let error = done.outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Timeout(TimeLimit::Write));
    let took = net.now() - resumed;
    assert!((30 * SECOND..31 * SECOND).contains(&took), "{took:?}");
}

// ---- answers that come before the whole request was sent

const LENGTH: usize = 200_000;

/// Receives a whole upload of that length, and sends the pieces of an answer: one after the head, the other at the end.
fn early(
    length: usize,
    first: &'static str,
    last: &'static str,
) -> (impl FnMut(&mut Peer<'_>, &[u8]), Arc<AtomicUsize>) {
    let received = Arc::new(AtomicUsize::new(0));
    let (count, mut head) = (Arc::clone(&received), Vec::new());
    let script = move |peer: &mut Peer<'_>, data: &[u8]| {
        let before = count.load(SeqCst);
        let body = match head.ends_with(b"\r\n\r\n") {
            true => data.len(),
            false => {
                head.extend_from_slice(data);
                let end = head.windows(4).position(|end| end == b"\r\n\r\n");
                let Some(end) = end.map(|at| at + 4) else {
                    return;
                };
                peer.send(first);
                let body = head.len() - end;
                head.truncate(end);
                body
            }
        };
        count.store(before + body, SeqCst);
        if before < length && before + body >= length {
            peer.send(last);
            head.clear();
            count.store(0, SeqCst);
        }
    };
    (script, received)
}

fn put(length: usize) -> Call {
    let mut request = Request::new("PUT", "/");
    request.body(vec![b'x'; length]);
    Call::new(request, Response::new()).streaming(true)
}

const FIRST: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n";
const LAST: &str = "0\r\n\r\n";

#[test]
fn an_upload_goes_on_after_the_head_of_a_streamed_response() {
    let (script, _) = early(LENGTH, FIRST, LAST);
    let (mut client, _) = client(Timeouts::default(), narrow(), script);
    for _ in 0..2 {
        client.submit(put(LENGTH));
        let done = next(&mut client);
        let body = done.streamed().unwrap();
        assert_eq!(
            done.request.method(),
            "GET",
            "the request is still being sent"
        );
        let (request, length) = read_to_end(&mut client, body).unwrap();
        assert_eq!((request.unwrap().method(), length), ("PUT", 2));
    }
    let (_, body) = client.open_call(put(LENGTH));
    let mut body = body.unwrap();
    while body.chunk().unwrap().is_some() {}
    assert_eq!(body.take_request().unwrap().method(), "PUT");
    drop(body);
    assert_eq!(client.counters().opened, 1, "the connection was used again");
}

#[test]
fn an_upload_does_not_wait_for_the_consumer_of_the_response() {
    let first: &str = Box::leak(
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}0\r\n\r\n{}",
            "x".repeat(LENGTH)
        )
        .into_boxed_str(),
    );
    let (script, received) = early(2 * LENGTH, first, "");
    let (mut client, _) = client(Timeouts::default(), narrow(), script);
    // All but the last byte, so that the count stays.
    client.submit(put(2 * LENGTH - 1));
    next(&mut client).outcome.unwrap();
    // The consumer is told that there are bytes, and takes nothing.
    assert!(client.readable_body().is_some());
    let waited = client.wait(Some(1000 * SECOND)).unwrap();
    assert!(matches!(waited, Waited::TimedOut), "{waited:?}");
    assert_eq!(client.readable_body(), None, "told once");
    assert_eq!(received.load(SeqCst), 2 * LENGTH - 1);
}

#[test]
fn an_upload_ends_with_a_refusal_that_closes_and_with_a_complete_response() {
    let refusal = "HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 9\r\n\r\n";
    for (first, length) in [(refusal, None), (OK, Some(0))] {
        let (script, received) = early(LENGTH, first, "");
        let (mut client, net) = client(Timeouts::default(), narrow(), script);
        client.submit(put(LENGTH));
        let body = next(&mut client).streamed().unwrap();
        client.wait(Some(SECOND)).unwrap().done();
        let sent = received.load(SeqCst);
        assert!((1..LENGTH / 2).contains(&sent), "{sent}");
        if let Some(length) = length {
            let (_, read) = read_to_end(&mut client, body).unwrap();
            assert_eq!((read, net.open_streams()), (length, 0));
        }
    }
}

/// The limit on the bytes of bodies that a client holds for all calls together.
#[test]
fn calls_that_hold_too_much_together_fail_and_the_others_go_on() {
    const HALF: usize = 400_000;
    const LIMIT: u64 = 1_000_000;
    let client = |held_bytes| {
        let net = SimNet::new(1);
        let in_halves = |peer: &mut Peer<'_>, _: &[u8]| {
            let length = 2 * HALF;
            peer.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
            ));
            peer.send(vec![b'x'; HALF]);
            peer.wait(SECOND);
            peer.send(vec![b'x'; HALF]);
        };
        net.listen(place(1), near(), Script(in_halves));
        let config = HostConfig {
            held_bytes: Some(held_bytes),
            ..HostConfig::default()
        };
        host_client(&net, config)
    };
    let mut all = client(LIMIT);
    for _ in 0..4 {
        all.submit(call("/"));
    }
    let (mut failed, mut served) = (0, 0);
    while let Some(done) = all.wait(None).unwrap().done() {
        match done.outcome {
            Ok(()) => served += 1,
            Err(error) => {
                assert_kind!(error, ErrorKind::Limit(LimitExceeded::HeldBytes(LIMIT)));
                failed += 1;
            }
        }
    }
    // Four halves are too much, and so are two whole bodies.
    assert!(
        served >= 1 && failed >= 2 && served + failed == 4,
        "{failed} failed"
    );
    // Bodies that were taken do not count, nor do those that a consumer reads as they come.
    for _ in 0..5 {
        let mut response = Response::new();
        all.get("/", &mut response).unwrap();
        assert_eq!(response.body().len(), 2 * HALF);
    }
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let mut one = client(1);
    let mut body = one.open(&mut request, &mut response).unwrap();
    let read = io::Read::read_to_end(&mut body, &mut Vec::new());
    assert_eq!(read.unwrap(), 2 * HALF);
}

/// On one connection: when the limit ends it, the calls behind move on, and fail as long as the bodies before are held.
#[test]
fn pipelined_answers_count_until_they_are_taken() {
    let net = SimNet::new(1);
    let answers = |peer: &mut Peer<'_>, data: &[u8]| {
        for _ in data.windows(4).filter(|end| end == b"\r\n\r\n") {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n");
            peer.send(vec![b'x'; 400_000]);
        }
    };
    net.listen(place(1), near(), Script(answers));
    let mut config = PipelineConfig::default();
    config.host.held_bytes = Some(1_000_000);
    config.host.max_connections = NonZeroUsize::MIN;
    let mut client = PipelineClient::with_net(upstream(), config, net).unwrap();
    for _ in 0..4 {
        client.submit(call("/"));
    }
    client.maintain(10 * SECOND).unwrap(); // until all have ended, and none is taken
    let ended = rest(&mut client);
    let errors = ended.iter().filter_map(|done| done.outcome.as_ref().err());
    let held =
        |error: &&Error| matches!(error.kind(), ErrorKind::Limit(LimitExceeded::HeldBytes(_)));
    assert_eq!((ended.len(), errors.clone().count()), (4, 2));
    assert!(errors.filter(held).count() >= 1);
}

/// Pieces can be copied or taken, in any order.
#[test]
fn a_body_is_copied_and_taken_by_turns() {
    const LENGTH: usize = 300_000;
    let body: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
    let sent = body.clone();
    let (mut client, _) = client(Timeouts::default(), Link::default(), move |peer, _| {
        peer.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"
        ));
        peer.send(sent.clone());
    });
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let mut received = client.open(&mut request, &mut response).unwrap();
    let (mut all, mut kept): (Vec<u8>, Vec<(usize, Bytes)>) = (Vec::new(), Vec::new());
    let mut piece = [0; 1000];
    loop {
        let n = received.read_some(&mut piece).unwrap();
        all.extend(&piece[..n]);
        let Some(chunk) = received.chunk().unwrap() else {
            break;
        };
        all.extend(&chunk);
        // A chunk that the caller keeps is not overwritten by later ones.
        kept.push((all.len(), chunk));
    }
    assert!(received.chunk().unwrap().is_none());
    received.finish().unwrap();
    assert!(all == body);
    for (end, chunk) in kept {
        assert!(chunk == body[end - chunk.len()..end]);
    }
    client.get("/", &mut response).unwrap();
    assert_eq!(client.counters().opened, 1);
}
