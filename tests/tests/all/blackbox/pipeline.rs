//! Pipelining over real sockets: what is sent together, what is refused, and what is not sent on a connection that ends.
//! Which answer belongs to which call, and which call moves on to another connection, is in the campaigns of
//! `engine/tests/sim`.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use courser::{
    Call, Codings, Completion, ErrorKind, LimitExceeded, Limits, Misuse, Overflow, PipelineClient,
    PipelineConfig, Request, Response, Sent, Upstream,
};
use tests::clients::config as host_config;
use tests::script::{Gate, PATIENCE, Script, Server, connection};

use super::{CLOSING, OK, response};

/// One connection.
fn config() -> PipelineConfig {
    let mut host = host_config();
    host.max_connections = NonZeroUsize::MIN;
    PipelineConfig {
        host,
        ..PipelineConfig::default()
    }
}

fn client(server: &Server, config: PipelineConfig) -> PipelineClient {
    PipelineClient::new(Upstream::tcp([server.address()]), config).unwrap()
}

fn call(target: impl Into<String>) -> Call {
    Call::new(Request::get(target), Response::new())
}

fn post(tag: u64) -> Call {
    Call::new(Request::post("/post", "x"), Response::new()).tag(tag)
}

fn calls(numbers: std::ops::Range<u64>) -> impl Iterator<Item = Call> {
    numbers.map(|number| call(format!("/{number}")).tag(number))
}

/// Submits all calls, and returns their completions in the order in which they came.
fn run(client: &mut PipelineClient, calls: impl IntoIterator<Item = Call>) -> Vec<Completion> {
    for call in calls {
        client.submit(call);
    }
    drive(client)
}

fn drive(client: &mut PipelineClient) -> Vec<Completion> {
    let mut completions = Vec::new();
    while let Some(done) = client.wait(Some(PATIENCE)).unwrap() {
        completions.push(done);
    }
    assert_eq!(client.in_flight(), 0, "calls hang: {:?}", client.counters());
    completions
}

fn assert_nothing_left(mut client: PipelineClient, server: &Server) {
    assert_eq!(client.pipeline_counters().pending, 0);
    let began = Instant::now();
    while client.counters().connecting > 0 && began.elapsed() < PATIENCE {
        client.maintain(Duration::from_millis(1)).unwrap();
    }
    let counters = client.counters();
    assert_eq!((counters.busy, counters.waiting), (0, 0), "{counters:?}");
    client.close_idle();
    assert_eq!(client.counters().open, 0);
    drop(client);
    server.wait_all_ended();
}

/// A server that echoes targets.
fn echo() -> Server {
    Server::answer(|request| response(request.target()))
}

/// That many requests, then one answer.
fn requests(count: usize) -> Script {
    (0..count).fold(connection(), |script, _| script.request())
}

// ---- in order

#[test]
fn one_calls_limits_and_codings_are_its_own() {
    let server = echo();
    let mut client = client(&server, config());
    let tight = Limits {
        body_bytes: Some(3),
        ..Limits::default()
    };
    let mut coded = Request::get("/coded");
    coded.decode(Codings::all());
    let coded = Call::new(coded, Response::new()).tag(2);
    let done = run(
        &mut client,
        [call("/fine"), call("/long").tag(1).limits(tight), coded],
    );
    assert_kind!(
        done.iter()
            .find(|done| done.tag == 1)
            .unwrap()
            .outcome
            .as_ref()
            .unwrap_err(),
        ErrorKind::Limit(LimitExceeded::BodyBytes(3))
    );
    // The connection of the failed call is gone; the call behind it was sent again.
    assert!(
        done.iter()
            .filter(|done| done.tag != 1)
            .all(|done| done.outcome.is_ok())
    );
    assert_nothing_left(client, &server);
}

// ---- which connection

#[test]
fn overflow() {
    // Nothing was sent when the newest came.
    for (policy, fail) in [
        (Overflow::Wait, &[][..]),
        (Overflow::RefuseNewest, &[5, 6, 7]),
        (Overflow::DropOldestUnsent, &[0, 1, 2]),
    ] {
        let gate = Gate::new();
        let server = Server::every(requests(2).wait(&gate).send([OK, OK].concat()).always(OK));
        let mut config = config();
        config.max_pending = NonZeroUsize::new(2).unwrap();
        config.max_pending_total = NonZeroUsize::new(5).unwrap();
        config.overflow = policy;
        let mut client = client(&server, config);
        for call in calls(0..8) {
            client.submit(call);
        }
        let mut done = Vec::new();
        while server.requests().len() < 2 {
            done.extend(client.wait(Some(Duration::from_millis(1))).unwrap());
        }
        gate.open_for_all();
        done.extend(drive(&mut client));
        assert_eq!(done.len(), 8);
        let mut failed = Vec::new();
        for done in done {
            if let Err(error) = done.outcome {
                assert_kind!(error, ErrorKind::Limit(LimitExceeded::Pending(5)));
                assert_eq!(error.sent(), Sent::Nothing);
                failed.push(done.tag);
            }
        }
        failed.sort();
        assert_eq!(failed, fail);
        assert_eq!(server.requests().len(), 8 - fail.len());
        assert_nothing_left(client, &server);
    }
}

#[test]
fn a_delay_gathers_what_is_submitted_meanwhile() {
    let server = Server::play([requests(2).send([OK, OK].concat())]);
    let mut config = config();
    config.max_batch_delay = Duration::from_secs(3600);
    let mut client = client(&server, config);
    client.submit(call("/first"));
    assert!(
        client
            .wait(Some(Duration::from_millis(20)))
            .unwrap()
            .is_none()
    );
    assert!(server.requests().is_empty());
    // So much that it does not wait for more.
    let mut large = Request::new("PUT", "/");
    large.body(vec![b'x'; 20_000]);
    client.submit(Call::new(large, Response::new()).tag(1));
    assert_eq!(drive(&mut client).len(), 2);
    assert_nothing_left(client, &server);
}

// ---- ends of connections

#[test]
fn nothing_is_sent_behind_a_request_that_says_close() {
    let server = Server::play([
        requests(2).send([OK, CLOSING].concat()).close(),
        connection().always(OK),
    ]);
    let mut client = client(&server, config());
    let mut closing = Request::get("/closing");
    closing.header("Connection", "close");
    let closing = Call::new(closing, Response::new()).tag(1);
    let done = run(&mut client, [call("/0"), closing, post(2)]);
    assert!(done.iter().all(|done| done.outcome.is_ok()), "{done:?}");
    assert_eq!(server.lines()[2..], ["POST /post HTTP/1.1"]);
    assert_eq!(server.served_by(), [0, 0, 1]);
    assert_eq!(server.stray(), b"");
    assert_eq!(done[2].report.attempts(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn rfc_9112_nothing_is_sent_on_a_connection_that_is_known_to_end() {
    let heads = [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    ];
    for head in heads {
        let gate = Gate::new();
        let first = connection().request().send(head).wait(&gate);
        let first = first.send("ok").close();
        let server = Server::play([first, connection().always(OK)]);
        let mut client = client(&server, config());
        client.submit(call("/first"));
        let mut done = Vec::new();
        while gate.arrived() == 0 {
            done.extend(client.wait(Some(Duration::from_millis(1))).unwrap());
        }
        // The head may still be on its way: what is sent before it is there may move on.
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            done.extend(client.wait(Some(Duration::from_millis(1))).unwrap());
        }
        client.submit(post(1));
        done.extend(client.wait(Some(Duration::from_millis(1))).unwrap());
        gate.open_for_all();
        done.extend(drive(&mut client));
        assert!(done.iter().all(|done| done.outcome.is_ok()), "{done:?}");
        assert_eq!(server.served_by(), [0, 1]);
        assert_eq!(server.stray(), b"");
        assert_nothing_left(client, &server);
    }
}

// ---- servers that do not cope

#[test]
fn servers_that_do_not_cope_get_one_request_at_a_time() {
    let http10 = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let behaviours = [
        // It closes after the first, said or unsaid.
        requests(2).send(CLOSING).close(),
        requests(2).send(OK).close(),
        requests(2).send(http10).close(),
        // Out of framing.
        requests(2).send([OK, "nonsense\r\n\r\n"].concat()),
        // One answer too many.
        requests(4).send([OK; 5].concat()),
    ];
    for (n, first) in behaviours.into_iter().enumerate() {
        let server = Server::play([first, connection().always(OK)]);
        let mut config = config();
        config.distrust = Duration::from_secs(3600);
        let mut client = client(&server, config);
        let done = run(&mut client, calls(0..4));
        let failed = done.iter().filter(|done| done.outcome.is_err()).count();
        assert!(failed <= usize::from(n == 3), "{n}: {done:?}");
        let counters = client.pipeline_counters();
        assert_eq!((counters.serial, counters.broken), (true, 1), "{n}");
        // Each is sent after the answer to the one before.
        let done = run(&mut client, calls(0..4));
        for done in &done {
            assert!(done.outcome.is_ok() && done.report.timings().in_front.is_none());
        }
        assert_nothing_left(client, &server);
    }
}

// ---- what is refused

#[test]
fn what_would_hold_up_others_is_refused() {
    let server = echo();
    let mut client = client(&server, config());
    let mut stream = Request::new("POST", "/");
    stream.body_stream(std::io::Cursor::new(b"x"), None);
    let mut expect = Request::post("/", "x");
    expect.expect_continue(Duration::from_secs(1));
    let mut upgrade = Request::get("/");
    upgrade.header("Upgrade", "x");
    let connect = Request::new("CONNECT", "h:1");
    for request in [stream, expect, upgrade, connect] {
        let done = run(&mut client, [Call::new(request, Response::new())]).remove(0);
        let error = done.outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Misuse(Misuse::NotPipelined(_)));
    }
    let error = client
        .open(&mut Request::get("/"), &mut Response::new())
        .err()
        .unwrap();
    assert_kind!(error, ErrorKind::Misuse(Misuse::NotPipelined(_)));
    assert_eq!(server.accepted(), 0);
}
