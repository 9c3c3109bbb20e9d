//! Streamed bodies of `Shared` clients.

use super::*;

fn open(client: &Shared<HostClient>, target: &str) -> Result<courser::SharedBody, courser::Error> {
    client.open(&mut Request::get(target), &mut Response::new())
}

#[test]
fn an_unread_body_stops_its_server_and_no_other_call() {
    const BYTES: usize = 200_000_000;
    let (server, client) = started();
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
    let (server, client) = started();
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
fn a_call_without_a_head_has_no_body() {
    let (_server, client) = started();
    let error = open(&client, "no target").unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(_));
    let (head, body) = block_on(client.send_streaming(call("no target")));
    assert!(head.outcome.is_err() && body.is_none());
    client.shutdown_now();
    let error = open(&client, "/").unwrap_err();
    assert_kind!(error, ErrorKind::Stopped(Stopped::ShutDown));
    let (head, body) = block_on(client.send_streaming(call("/").tag(4)));
    assert!(head.outcome.is_err() && body.is_none() && head.tag == 4);
}

#[test]
fn a_shutdown_waits_for_bodies_until_its_limit() {
    let (server, client) = started();
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

    let (_server, client) = started();
    let mut body = open(&client, "/drip").unwrap();
    assert_eq!(client.shutdown_now(), 1);
    let error = loop {
        // The part that had come is still there.
        match body.read_some(&mut buf) {
            Ok(n) => assert_eq!(n, 5),
            Err(error) => break error,
        }
    };
    assert_kind!(error, ErrorKind::Cancelled);
}
