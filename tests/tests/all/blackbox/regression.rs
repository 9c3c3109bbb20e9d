//! What went wrong once: one test for each, named after it.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use courser::{
    Call, Codings, Config, CookieJar, ErrorKind, HostConfig, LatePolicy, LimitExceeded, Limits,
    Observer, ObserverEvent, Read, Request, Response,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use tests::clients::{any_client, any_config, client, client_with, config, drive_all};
use tests::script::{Gate, Server, connection, eventually};

use super::{OK, response};

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
    // Long enough to be sent, on a busy machine too.
    let late = Call::new(Request::get("/"), Response::new()).timeout(Duration::from_secs(1));
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
fn a_buffer_without_room_takes_nothing_and_ends_nothing() {
    let server = Server::every(connection().request().send(response("abcd")));
    let mut client = client(&server);
    client.submit(Call::new(Request::get("/"), Response::new()).streaming(true));
    let id = client.wait(None).unwrap().unwrap().body.unwrap();
    eventually("the whole body is here", || {
        client.maintain(Duration::from_millis(1)).unwrap();
        client.counters().idle == 1
    });
    for _ in 0..3 {
        assert!(matches!(client.read_body(id, &mut []), Ok(Read::Data(0))));
    }
    let mut buf = [0; 16];
    assert!(matches!(client.read_body(id, &mut buf), Ok(Read::Data(4))));
    assert_eq!(&buf[..4], b"abcd");
    assert!(matches!(
        client.read_body(id, &mut []),
        Ok(Read::End { .. })
    ));
}

/// What a call says of its limits holds for all of its body, not for what comes before the first pause alone.
#[test]
fn a_calls_own_limits_hold_when_decoding_goes_on() {
    let zeros = vec![0; 4 << 20];
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&zeros).unwrap();
    let coded = encoder.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        coded.len()
    );
    let reply = [head.as_bytes(), &coded].concat();
    let limits = |decode_ratio| Limits {
        decode_ratio,
        ..Limits::default()
    };
    for (of_client, of_call) in [(None, Some(100)), (Some(100), None)] {
        let server = Server::every(connection().always(&reply));
        let config = HostConfig {
            stream_buffer: 1000,
            codings: Codings::GZIP,
            limits: limits(of_client),
            ..config()
        };
        let mut client = client_with(&server, config);
        let call = Call::new(Request::get("/"), Response::new());
        client.submit(call.streaming(true).limits(limits(of_call)));
        let id = client.wait(None).unwrap().unwrap().body.unwrap();
        let (mut total, mut buf) = (0, vec![0; 64 << 10]);
        let outcome = loop {
            match client.read_body(id, &mut buf) {
                Ok(Read::Data(n)) => total += n,
                Ok(Read::Pending) => {
                    client.wait(None).unwrap();
                    while client.readable_body().is_some() {}
                }
                Ok(Read::End { .. }) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        match of_call {
            None => assert!(outcome.is_ok() && total == zeros.len()),
            Some(ratio) => {
                let error = outcome.unwrap_err();
                assert_kind!(error, ErrorKind::Limit(LimitExceeded::DecodeRatio(n)) if *n == ratio);
                assert!(total < zeros.len());
            }
        }
    }
}

/// There is nothing to look up, so no time is spent on it, and the observer gets no event of it.
#[test]
fn addresses_in_urls_are_not_looked_up() {
    let server = Server::every(connection().always(OK));
    let heard = Arc::new(AtomicUsize::new(0));
    let mut config = any_config();
    config.host.observer = Some(Observer::new({
        let heard = heard.clone();
        move |event| {
            if matches!(event, ObserverEvent::Resolved { .. }) {
                heard.fetch_add(1, Ordering::SeqCst);
            }
        }
    }));
    config
        .host
        .dns
        .resolve("a.example", None, [server.address().ip()]);
    let mut client = any_client(config);
    let port = server.address().port();
    for (host, resolved) in [
        ("127.0.0.1", false),
        ("localhost", false),
        ("a.example", true),
    ] {
        let report = client
            .get(&format!("http://{host}:{port}/"), &mut Response::new())
            .unwrap();
        assert!(report.timings().connect.is_some());
        assert_eq!(report.timings().resolve.is_some(), resolved, "{host}");
    }
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}
