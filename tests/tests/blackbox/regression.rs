//! What went wrong once: one test for each, named after it.

use std::num::NonZeroUsize;
use std::time::Duration;

use courser::{
    Call, ErrorKind, HostConfig, LatePolicy, LimitExceeded, Limits, PeerFault, Phase, Read,
    Request, Response, Sent,
};
use tests::clients::{client, client_with, config, drive_all, drive_until, look_away};
use tests::script::{Gate, Server, connection, eventually};

use crate::{OK, response};

#[test]
fn bytes_that_come_with_the_connection_are_never_an_answer() {
    let greeted = Gate::new();
    let greeting = connection()
        .send(response("EVIL"))
        .mark(&greeted)
        .always(OK);
    let plain = || connection().always(OK);
    let server = Server::play([greeting, plain(), plain(), plain()]);
    let config = HostConfig {
        min_idle: 1,
        ..config()
    };
    let mut client = client_with(&server, config);
    client.maintain(Duration::ZERO).unwrap();
    greeted.wait_arrived(1);
    look_away();
    // The connection and the greeting are there at the same poll, or one after the other.
    let mut response = Response::new();
    let outcome = client.get("/", &mut response);
    assert_ne!(response.body(), b"EVIL");
    if let Err(error) = outcome {
        assert!(
            matches!(error.kind(), ErrorKind::Peer(PeerFault::Unsolicited)),
            "{error:?}"
        );
        assert_eq!(
            (error.phase(), error.sent()),
            (Phase::Connect, Sent::Nothing)
        );
    }
}

#[test]
fn a_body_that_was_complete_before_its_head_was_taken_is_told_of() {
    let server = Server::every(connection().request().send(response("abcd")).always(OK));
    let mut client = client(&server);
    for tag in 0..2 {
        let call = Call::new(Request::get("/"), Response::new());
        client.submit(call.streaming(true).tag(tag));
    }
    eventually("both answers are in", || {
        client.maintain(Duration::from_millis(1)).unwrap();
        client.counters().idle == 2
    });
    assert_eq!(client.readable_body(), None, "no head has been given");
    let mut ended = 0;
    while client.in_flight() > 0 {
        client.wait(None).unwrap();
        while let Some(id) = client.readable_body() {
            let mut buf = [0; 64];
            loop {
                match client.read_body(id, &mut buf).unwrap() {
                    Read::Data(n) => assert_eq!(&buf[..n], b"abcd"),
                    Read::Pending => break,
                    Read::End { .. } => {
                        ended += 1;
                        break;
                    }
                }
            }
        }
    }
    assert_eq!(ended, 2);
}

#[test]
fn a_call_cancelled_before_it_was_begun_has_sent_nothing() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let id = client.submit(Call::new(Request::post("/", "x"), Response::new()));
    assert!(client.cancel(id));
    let done = drive_all(&mut client).remove(0);
    let error = done.outcome.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Cancelled));
    assert_eq!((error.phase(), error.sent()), (Phase::Queue, Sent::Nothing));
    assert_eq!(server.accepted(), 0);
}

#[test]
fn endless_durations_are_as_good_as_never() {
    let gate = Gate::new();
    let script = connection()
        .head()
        .send("HTTP/1.1 100 Continue\r\n\r\n")
        .read(1)
        .send(OK)
        .request()
        .wait(&gate)
        .send(OK);
    let server = Server::every(script);
    let mut config = config();
    config.idle_timeout = Duration::MAX;
    config.max_age = Some(Duration::MAX);
    config.late = LatePolicy::Drain {
        up_to: Duration::MAX,
    };
    config.timeouts.connect = Some(Duration::MAX);
    config.timeouts.first_byte = Some(Duration::MAX);
    let mut client = client_with(&server, config);
    let mut request = Request::post("/", "x");
    request.expect_continue(Duration::MAX);
    client.call(&mut request, &mut Response::new()).unwrap();
    let late = Call::new(Request::get("/"), Response::new()).timeout(Duration::from_millis(20));
    client.submit(late);
    assert!(
        drive_all(&mut client)
            .remove(0)
            .outcome
            .unwrap_err()
            .is_timeout()
    );
    assert_eq!(client.counters().draining, 1);
    gate.open();
}

#[test]
fn the_most_headers_are_the_same_however_the_head_is_cut() {
    let lines: String = (0..1500).map(|n| format!("x{n}: y\r\n")).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n");
    for server in [
        Server::every(connection().request().send(&head)),
        Server::every(connection().request().drip(&head)),
    ] {
        let limits = Limits {
            header_count: 5000,
            ..Limits::default()
        };
        let mut client = client_with(&server, HostConfig { limits, ..config() });
        let error = client.get("/", &mut Response::new()).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Limit(LimitExceeded::HeaderCount(_))
            ),
            "{error:?}"
        );
    }
}

#[test]
fn a_body_that_was_refused_before_it_was_asked_for_is_not_sent() {
    let gate = Gate::new();
    let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\n";
    let server = Server::every(connection().head().send(refusal).wait(&gate).send("no"));
    let mut client = client(&server);
    let mut request = Request::post("/", "secret");
    request.expect_continue(Duration::from_millis(10));
    client.submit(Call::new(request, Response::new()));
    drive_until(&mut client, "the head of the refusal is sent", |_, _| {
        gate.arrived() == 1
    });
    client.maintain(Duration::from_millis(40)).unwrap(); // four times the wait for 100
    gate.open();
    let done = drive_all(&mut client).remove(0);
    assert_eq!(
        (done.response.status(), done.response.body()),
        (417, &b"no"[..])
    );
    drop(client);
    server.wait_all_ended();
    assert_eq!(server.stray(), b"");
}

#[test]
fn a_consumer_that_always_leaves_a_byte_neither_stalls_nor_hoards() {
    let body = vec![b'x'; 4 << 20];
    let server = Server::every(connection().request().send(response(&body)));
    let config = HostConfig {
        stream_buffer: 4096,
        max_connections: NonZeroUsize::MIN,
        ..config()
    };
    let mut client = client_with(&server, config);
    client.submit(Call::new(Request::get("/"), Response::new()).streaming(true));
    let id = client
        .wait(None)
        .unwrap()
        .and_then(|done| done.body)
        .unwrap();
    let (mut total, mut buf) = (0, vec![0; 1000]);
    loop {
        match client.read_body(id, &mut buf).unwrap() {
            Read::Data(n) => total += n,
            Read::Pending => {
                client.wait(None).unwrap();
                while client.readable_body().is_some() {}
            }
            Read::End { .. } => break,
        }
    }
    assert_eq!(total, body.len());
}
