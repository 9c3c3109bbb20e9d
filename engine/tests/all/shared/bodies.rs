//! Streamed bodies of `Shared` clients.

use std::io::Read;

use super::server::pattern;
use super::*;

fn open(client: &Shared<HostClient>, target: &str) -> Result<courser::SharedBody, courser::Error> {
    client.open(&mut Request::get(target), &mut Response::new())
}

#[test]
fn a_body_is_read_blocking_with_its_trailers_and_report() {
    let server = Server::start();
    let client = default_client(&server);
    let (mut request, mut response) = (Request::get("/bytes/1000000"), Response::new());
    let mut body = client.open(&mut request, &mut response).unwrap();
    assert_eq!(
        (response.status(), request.target()),
        (200, "/bytes/1000000")
    );
    assert_eq!((client.in_flight(), body.report().is_none()), (1, true));
    let mut bytes = Vec::new();
    body.read_to_end(&mut bytes).unwrap();
    assert!(bytes == pattern(0..1_000_000));
    assert_eq!(body.trailers().collect::<Vec<_>>(), [("X-Sum", &b"7"[..])]);
    let report = body.finish().unwrap();
    assert!(report.bytes_in() > 1_000_000);
    assert_eq!(client.in_flight(), 0);
    // The connection serves again.
    assert!(client.get("/", &mut response).unwrap().reused());
    let stats = client.stats();
    assert_eq!((stats.calls, stats.statuses[2]), (2, 2));
}

#[test]
fn a_body_is_awaited_chunk_by_chunk() {
    let server = Server::start();
    let client = default_client(&server);
    let bytes = block_on(async {
        let (head, body) = client.send_streaming(call("/bytes/1000000").tag(3)).await;
        head.outcome.unwrap();
        assert_eq!((head.tag, head.response.status()), (3, 200));
        let mut body = body.unwrap();
        let mut bytes = Vec::new();
        while let Some(chunk) = body.chunk().await.unwrap() {
            // Too little for back-pressure, and one read more.
            assert!(!chunk.is_empty() && chunk.len() <= (64 + 96) * 1024);
            bytes.extend_from_slice(&chunk);
        }
        assert!(body.chunk().await.unwrap().is_none());
        assert!(body.report().is_some());
        bytes
    });
    assert!(bytes == pattern(0..1_000_000));
}

#[test]
fn blocking_and_awaited_reads_can_be_mixed() {
    let server = Server::start();
    let client = default_client(&server);
    let mut body = open(&client, "/bytes/200000").unwrap();
    let (mut bytes, mut buf) = (Vec::new(), [0; 999]);
    let mut turn = 0;
    loop {
        turn += 1;
        let n = match turn % 3 {
            0 => body.read_some(&mut buf).unwrap(),
            1 => block_on(std::future::poll_fn(|context| {
                body.poll_read(context, &mut buf)
            }))
            .unwrap(),
            _ => {
                let chunk = block_on(body.chunk()).unwrap().unwrap_or_default();
                bytes.extend_from_slice(&chunk);
                continue;
            }
        };
        if n == 0 {
            break;
        }
        bytes.extend_from_slice(&buf[..n]);
        assert_eq!(body.read_some(&mut []).unwrap(), 0);
    }
    assert!(bytes == pattern(0..200_000));
}

#[test]
fn a_body_is_delivered_while_it_is_sent() {
    let server = Server::start();
    let client = default_client(&server);
    let mut body = open(&client, "/drip").unwrap();
    let mut buf = [0; 100];
    let n = body.read_some(&mut buf).unwrap();
    assert_eq!(&buf[..n], b"first");
    server.release();
    let n = body.read_some(&mut buf).unwrap();
    assert_eq!(&buf[..n], b"second");
    assert_eq!(body.read_some(&mut buf).unwrap(), 0);
}

#[test]
fn an_unread_body_stops_its_server_and_no_other_call() {
    const BYTES: usize = 200_000_000;
    let server = Server::start();
    let client = default_client(&server);
    let unread = open(&client, &format!("/bytes/{BYTES}")).unwrap();
    let mut response = Response::new();
    // Each call is an iteration of the loop, which would read on without back-pressure.
    for _ in 0..2_000 {
        client.get("/", &mut response).unwrap();
    }
    // The system buffers far less than this for a connection.
    assert!(server.written() < BYTES / 4, "{}", server.written());
    drop(unread);
    server.wait_gone(1);
    assert!(server.written() < BYTES / 4);
}

#[test]
fn a_dropped_body_ends_its_call() {
    let server = Server::start();
    let client = default_client(&server);
    let before_its_head = client.send_streaming(call("/held"));
    server.wait_held(1);
    drop(before_its_head);
    drop(open(&client, "/drip").unwrap());
    while client.in_flight() > 0 {
        thread::yield_now();
    }
    server.release();
    server.wait_gone(2);
    // With a head that was not taken.
    let untaken = client.send_streaming(call("/bytes/10000000"));
    while server.written() == 0 {
        thread::yield_now();
    }
    drop(untaken);
    while client.in_flight() > 0 {
        thread::yield_now();
    }
    assert_eq!(client.stats().failures.cancelled, 3);
}

#[test]
fn a_body_that_ends_early_is_an_error() {
    let server = Server::start();
    let client = default_client(&server);
    let mut body = open(&client, "/cut").unwrap();
    let mut buf = [0; 100];
    let n = body.read_some(&mut buf).unwrap();
    assert_eq!(&buf[..n], b"first");
    let error = body.read_some(&mut buf).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::Peer(courser::error::PeerFault::Truncated)
    ));
    let error = body.finish().unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::Misuse(Misuse::UnknownBody)
    ));
    assert_eq!(client.in_flight(), 0);
}

#[test]
fn a_call_without_a_head_has_no_body() {
    let server = Server::start();
    let client = default_client(&server);
    let error = open(&client, "no target").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(_)));
    let (head, body) = block_on(client.send_streaming(call("no target")));
    assert!(head.outcome.is_err() && body.is_none());
    client.shutdown_now();
    let error = open(&client, "/").unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::Stopped(Stopped::ShutDown)
    ));
    let (head, body) = block_on(client.send_streaming(call("/").tag(4)));
    assert!(head.outcome.is_err() && body.is_none() && head.tag == 4);
}

#[test]
fn a_shutdown_waits_for_bodies_until_its_limit() {
    let server = Server::start();
    let client = default_client(&server);
    let mut body = open(&client, "/drip").unwrap();
    let mut buf = [0; 100];
    assert_eq!(body.read_some(&mut buf).unwrap(), 5);
    let ending = thread::spawn({
        let client = client.clone();
        move || client.shutdown(LONG)
    });
    server.release();
    assert_eq!(body.read_some(&mut buf).unwrap(), 6);
    body.finish().unwrap();
    assert_eq!(ending.join().unwrap(), 0);

    let server = Server::start();
    let client = default_client(&server);
    let mut body = open(&client, "/drip").unwrap();
    assert_eq!(client.shutdown_now(), 1);
    let error = loop {
        // The part that had come is still there.
        match body.read_some(&mut buf) {
            Ok(n) => assert_eq!(n, 5),
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind(), ErrorKind::Cancelled));
}

#[test]
fn a_panic_ends_bodies() {
    quiet_panics();
    let server = Server::start();
    let client = default_client(&server);
    let mut body = open(&client, "/drip").unwrap();
    let mut buf = [0; 100];
    assert_eq!(body.read_some(&mut buf).unwrap(), 5);
    let mut request = Request::post("/", "");
    request.body_stream(Explosive, None);
    client.call(&mut request, &mut Response::new()).unwrap_err();
    let error = body.read_some(&mut buf).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::Stopped(Stopped::Panicked)
    ));
    assert_eq!(client.in_flight(), 0);
}
