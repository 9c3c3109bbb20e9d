//! A connection serves another call only when that is certain to be right: the end of the message was seen, nothing
//! came behind it, and neither side said close. Which answers say so is in the tables of `engine/src/proto/tests.rs`.

use courser::{ErrorKind, PeerFault, Request, Response, Sent};
use tests::clients::{assert_nothing_left, client, look_away};
use tests::script::{Gate, Script, Server, connection, eventually};

use super::OK;

/// Nor does the end of an idle connection disturb the next call.
#[test]
fn fault_20_unsolicited_bytes_on_an_idle_connection_answer_nobody() {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let after = Gate::new();
    let endings: [&dyn Fn(Script) -> Script; 3] = [&Script::close, &Script::reset, &|script| {
        script.send(evil).wait(&after)
    }];
    for end in endings {
        let before = Gate::new();
        let dying = connection().request().send(OK).wait(&before);
        let server = Server::play([end(dying), connection().always(OK)]);
        let mut client = client(&server);
        let mut response = Response::new();
        client.get("/", &mut response).unwrap();
        before.open();
        eventually("it has happened", || server.ended() + after.arrived() == 1);
        look_away();
        let report = client
            .call(&mut Request::post("/", "once"), &mut response)
            .unwrap();
        assert_eq!((report.attempts(), report.reused()), (1, false));
        assert_eq!(response.body(), b"ok");
        assert_eq!(server.served_by(), [0, 1]);
        after.open();
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_24c_a_post_is_never_sent_twice() {
    // The connection dies at the very moment of reuse: after it has read the request.
    let server = Server::play([
        connection().request().send(OK).request().reset(),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    let error = client
        .call(&mut Request::post("/", "once"), &mut Response::new())
        .unwrap_err();
    assert_eq!(error.sent(), Sent::NoReplyByte);
    assert_eq!(server.lines(), ["GET / HTTP/1.1", "POST / HTTP/1.1"]);
    assert_nothing_left(client, &server);
}

#[test]
fn h01_a_head_answered_with_a_body_costs_the_connection_not_the_next_call() {
    let body = "chunk".repeat(10);
    let reply =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n32\r\n{body}\r\n0\r\n\r\n");
    let server = Server::every(connection().request().send(&reply).request().send(&reply));
    let mut client = client(&server);
    let mut response = Response::new();
    for _ in 0..2 {
        client.call(&mut Request::head("/"), &mut response).unwrap();
        assert_eq!((response.status(), response.body()), (200, &b""[..]));
    }
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn a_101_without_having_asked_is_an_error_and_never_pooled() {
    let switching =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nDATA";
    let server = Server::play([
        connection().request().send(switching),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert_kind!(error, ErrorKind::Peer(PeerFault::UnexpectedUpgrade));
    assert_eq!(client.counters().open, 0);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}
