//! Response bodies read piece by piece: back-pressure reaches the server, a truncated body is an error for the
//! reader, and a body left half-read costs its connection.

use std::io::Read;
use std::time::Duration;

use courser::{Bytes, Call, HostConfig, Request, Response};
use tests::clients::{
    assert_nothing_left, client, client_with, config, drive_until, with_longer_limits,
};
use tests::script::{Gate, PATIENCE, Server, connection, eventually};

use super::OK;

#[test]
fn m05_ten_pieces_arrive_as_they_are_sent() {
    let gate = Gate::new();
    let head = connection()
        .request()
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let script = (0..10).fold(head, |script, digit| {
        script.wait(&gate).send(format!("1\r\n{digit}\r\n"))
    });
    let server = Server::play([script.send("0\r\n\r\n").always(OK)]);
    let mut client = client(&server);
    let mut response = Response::new();
    let mut request = Request::get("/");
    let mut body = client.open(&mut request, &mut response).unwrap();
    let mut text: Vec<u8> = Vec::new();
    for _ in 0..10 {
        // Each piece can be read before the next one is sent.
        gate.open();
        let mut piece = [0; 100];
        let count = body.read(&mut piece).unwrap();
        assert_eq!(count, 1);
        text.extend(&piece[..count]);
    }
    assert_eq!(body.read(&mut [0; 100]).unwrap(), 0);
    body.finish().unwrap();
    assert_eq!(text, b"0123456789");
    client.get("/", &mut response).unwrap();
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn m05b_every_framing_streams() {
    let replies = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n012345678", 1),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n5\r\n45678\r\n0\r\n\r\n",
            1,
        ),
        ("HTTP/1.1 400 Bad Request\r\n\r\n012345678", 0),
    ];
    for (reply, kept) in replies {
        let gate = Gate::new();
        let script = connection().request().send(reply).wait(&gate).close();
        let server = Server::play([script]);
        let mut client = client(&server);
        let mut response = Response::new();
        let mut request = Request::get("/");
        let mut body = client.open(&mut request, &mut response).unwrap();
        if kept == 0 {
            gate.open();
        }
        let mut text = String::new();
        body.read_to_string(&mut text).unwrap();
        body.finish().unwrap();
        assert_eq!(text, "012345678");
        assert_eq!(client.counters().idle, kept);
        gate.open();
        assert_nothing_left(client, &server);
    }
}

/// Pieces can be copied or taken, in any order.
#[test]
fn a_body_is_copied_and_taken_by_turns() {
    const LENGTH: usize = 300_000;
    let body: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
    let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").into_bytes();
    reply.extend(&body);
    let server = Server::play([connection().request().send(reply).always(OK)]);
    let mut client = client(&server);
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
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn m05c_a_cut_body_is_an_error_for_its_reader() {
    let cut = [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n0123",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n0\r\n",
    ];
    for reply in cut {
        let server = Server::play([connection().request().send(reply).close()]);
        let mut client = client(&server);
        let mut response = Response::new();
        let mut request = Request::get("/");
        let mut body = client.open(&mut request, &mut response).unwrap();
        let mut text = Vec::new();
        let error = body.read_to_end(&mut text).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error:?}");
        assert_eq!(text, b"0123", "{reply:?}");
        drop(body);
        assert_eq!(client.counters().open, 0);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn m05d_trailers_come_at_the_end() {
    let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: 1\r\nSum: 2\r\n\r\n";
    let server = Server::every(connection().always(reply));
    let mut client = client(&server);
    let mut response = Response::new();
    let mut request = Request::get("/");
    let mut body = client.open(&mut request, &mut response).unwrap();
    let mut text = String::new();
    body.read_to_string(&mut text).unwrap();
    assert_eq!(text, "ok");
    let trailers: Vec<_> = body.trailers().collect();
    assert_eq!(trailers, [("Sum", &b"1"[..]), ("Sum", &b"2"[..])]);
    body.finish().unwrap();
    assert_eq!(client.counters().idle, 1);
    assert_nothing_left(client, &server);
}

#[test]
fn m05e_responses_without_a_body_end_at_once() {
    let cases = [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    for (method, reply) in cases {
        let server = Server::every(connection().always(reply));
        let mut client = client(&server);
        for _ in 0..2 {
            let mut response = Response::new();
            let mut request = Request::new(method, "/");
            let mut body = client.open(&mut request, &mut response).unwrap();
            assert_eq!(body.read(&mut [0; 10]).unwrap(), 0, "{reply:?}");
            body.finish().unwrap();
        }
        assert_eq!(server.accepted(), 1, "{reply:?}");
        assert_nothing_left(client, &server);
    }
}

#[test]
fn m05f_time_in_which_the_reader_is_behind_is_not_the_server_s() {
    let total = 4 << 20;
    let reply = super::response(vec![b'x'; total]);
    let server = Server::every(connection().always(reply));
    with_longer_limits(|limit| {
        let mut config = config();
        config.timeouts.between_bytes = Some(limit);
        let mut client = client_with(&server, config);
        client.submit(Call::new(Request::get("/"), Response::new()).streaming(true));
        let head = drive_until(&mut client, "the head is there", |_, done| !done.is_empty());
        let Some(id) = head[0].body else {
            return false;
        };
        client.maintain(limit * 3).unwrap();
        let mut buffer = vec![0; 64 * 1024];
        let mut received = 0;
        loop {
            match client.read_body(id, &mut buffer) {
                Ok(courser::Read::Data(count)) => received += count,
                Ok(courser::Read::Pending) => {
                    assert!(client.wait(Some(PATIENCE)).unwrap().is_none());
                }
                Ok(courser::Read::End { .. }) => break,
                // The server did pause for so long.
                Err(error) => {
                    assert!(error.is_timeout(), "{error:?}");
                    return false;
                }
            }
            while client.readable_body().is_some() {}
        }
        assert_eq!(received, total);
        assert_nothing_left(client, &server);
        true
    });
}

#[test]
fn m05g_a_server_that_stalls_is_noticed_while_streaming() {
    let gate = Gate::new();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n0123";
    let server = Server::play([connection().request().send(head).wait(&gate)]);
    let mut config = config();
    config.timeouts.between_bytes = Some(Duration::from_millis(50));
    let mut client = client_with(&server, config);
    let mut response = Response::new();
    let mut request = Request::get("/");
    let mut body = client.open(&mut request, &mut response).unwrap();
    let mut text = Vec::new();
    let error = body.read_to_end(&mut text).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error:?}");
    assert_eq!(text, b"0123");
    drop(body);
    gate.open();
    assert_nothing_left(client, &server);
}

#[test]
fn m06_a_body_left_half_read_costs_its_connection() {
    let server = Server::play([
        connection()
            .request()
            .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n0123"),
        connection().always(OK),
    ]);
    let mut config = config();
    config.max_connections = 1.try_into().unwrap();
    let mut client = client_with(&server, config);
    let mut response = Response::new();
    let mut request = Request::get("/");
    let mut body = client.open(&mut request, &mut response).unwrap();
    body.read_exact(&mut [0; 4]).unwrap();
    drop(body);
    client.get("/", &mut response).unwrap();
    assert_eq!(response.body(), b"ok");
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn m06b_finishing_early_lets_the_next_call_succeed() {
    let server = Server::play([
        connection()
            .request()
            .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")
            .always(OK),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    let mut response = Response::new();
    let mut request = Request::get("/");
    let mut body = client.open(&mut request, &mut response).unwrap();
    body.read_exact(&mut [0; 10]).unwrap();
    body.finish().unwrap();
    client.get("/", &mut response).unwrap();
    assert_eq!(response.body(), b"ok");
    assert_nothing_left(client, &server);
}

#[test]
fn a_slow_reader_slows_the_server_down() {
    // Far more than the buffers of two sockets and one stream hold.
    let chunk = vec![b'x'; 64 * 1024];
    let total = 64 << 20;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n");
    let sent = Gate::new();
    let script = (0..total / chunk.len()).fold(
        connection().request().small_buffers().send(head),
        |script, _| script.send(&chunk).mark(&sent),
    );
    let server = Server::play([script]);
    let config = HostConfig {
        stream_buffer: 256 * 1024,
        ..config()
    };
    let mut client = client_with(&server, config);
    let call = Call::new(Request::get("/"), Response::new()).streaming(true);
    client.submit(call);
    let head = drive_until(&mut client, "the head is there", |_, done| !done.is_empty());
    let id = head[0].body.unwrap();
    head[0].outcome.as_ref().unwrap();
    assert_eq!(head[0].response.status(), 200);
    // Driven, but not read from: what the server gets rid of comes to an end.
    let mut quiet = 0;
    let mut seen = 0;
    eventually("the server is stuck", || {
        client.maintain(Duration::from_millis(1)).unwrap();
        quiet = if sent.arrived() == seen { quiet + 1 } else { 0 };
        seen = sent.arrived();
        quiet == 100
    });
    let pushed = seen * chunk.len();
    assert!(pushed < 16 << 20, "the server could push {pushed} bytes");
    // Reading all of it lets the server go on to the end.
    let mut buffer = vec![0; 128 * 1024];
    let mut received = 0;
    loop {
        match client.read_body(id, &mut buffer).unwrap() {
            courser::Read::Data(count) => {
                assert!(buffer[..count].iter().all(|byte| *byte == b'x'));
                received += count;
            }
            courser::Read::Pending => {
                assert!(client.wait(Some(PATIENCE)).unwrap().is_none());
                assert_eq!(client.readable_body(), Some(id));
            }
            courser::Read::End { .. } => break,
        }
    }
    assert_eq!(received, total);
    assert_eq!(client.counters().idle, 1);
    assert_nothing_left(client, &server);
}

#[test]
fn cancelling_a_streamed_body_frees_its_slot() {
    let server = Server::play([
        connection()
            .request()
            .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123"),
        connection().always(OK),
    ]);
    let mut config = config();
    config.max_connections = 1.try_into().unwrap();
    let mut client = client_with(&server, config);
    client.submit(Call::new(Request::get("/"), Response::new()).streaming(true));
    let head = drive_until(&mut client, "the head is there", |_, done| !done.is_empty());
    let id = head[0].body.unwrap();
    assert!(client.cancel(id));
    assert!(client.read_body(id, &mut [0; 10]).is_err());
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}
