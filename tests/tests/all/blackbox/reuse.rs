//! A connection serves another call only when that is certain to be right: the end of the message was seen, nothing
//! came behind it, and neither side said close.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use courser::{
    Call, ErrorKind, HostClient, PeerFault, PipelineClient, PipelineConfig, Request, Response,
    Sent, Upstream,
};
use tests::clients::{
    assert_nothing_left, client, client_with, config, drive_all, drive_until, look_away, run,
    unix_client,
};
use tests::script::{Behaviour, Gate, PATIENCE, Script, Server, Transport, connection};

use super::{OK, response};

/// Whether the next call comes on the same connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Same,
    Fresh,
}

#[test]
fn rfc_9112_9_3_persistence() {
    use Next::{Fresh, Same};
    let cases = [
        ("HTTP/1.1", "", Same),
        ("HTTP/1.1", "Connection: keep-alive\r\n", Same),
        ("HTTP/1.1", "Connection: close\r\n", Fresh),
        ("HTTP/1.1", "Connection: Close\r\n", Fresh),
        ("HTTP/1.1", "connection: CLOSE\r\n", Fresh),
        ("HTTP/1.1", "Connection: keep-alive, close\r\n", Fresh),
        ("HTTP/1.1", "Connection: foo ,\tclose , bar\r\n", Fresh),
        (
            "HTTP/1.1",
            "Connection: close\r\nConnection: keep-alive\r\n",
            Fresh,
        ),
        (
            "HTTP/1.1",
            "Connection: keep-alive\r\nConnection: close\r\n",
            Fresh,
        ),
        ("HTTP/1.1", "Connection: closed\r\n", Same),
        ("HTTP/1.1", "Proxy-Connection: close\r\n", Same),
        ("HTTP/1.0", "", Fresh),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", Same),
        ("HTTP/1.0", "Connection: foo, keep-alive\r\n", Same),
        ("HTTP/1.0", "Connection: keep-alive, close\r\n", Fresh),
    ];
    for (version, headers, expected) in cases {
        let reply = format!("{version} 200 OK\r\n{headers}Content-Length: 2\r\n\r\nok");
        assert_next("GET", &reply, expected);
    }
}

#[test]
fn rfc_9112_6_3_framing_decides_over_reuse() {
    use Next::{Fresh, Same};
    let cases = [
        (
            "GET",
            "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            Same,
        ),
        (
            "GET",
            "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n",
            Same,
        ),
        (
            "GET",
            "200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
            Same,
        ),
        // Chunked wins over a length, and the connection is not trusted any further.
        (
            "GET",
            "200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            Fresh,
        ),
        // No body, whatever the headers say.
        ("HEAD", "200 OK\r\n\r\n", Same),
        ("HEAD", "200 OK\r\nContent-Length: 5\r\n\r\n", Same),
        ("HEAD", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Same),
        ("GET", "204 No Content\r\n\r\n", Same),
        (
            "GET",
            "304 Not Modified\r\nContent-Length: 1235\r\n\r\n",
            Same,
        ),
        (
            "GET",
            "103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            Same,
        ),
        // Bytes where none may be are surplus.
        ("GET", "200 OK\r\nContent-Length: 2\r\n\r\nok!", Fresh),
        (
            "GET",
            "200 OK\r\nContent-Length: 2\r\n\r\nok\r\n\r\n\r\n",
            Fresh,
        ),
        (
            "GET",
            "200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
            Fresh,
        ),
        (
            "GET",
            "204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Fresh,
        ),
        (
            "GET",
            "304 Not Modified\r\nContent-Length: 2\r\n\r\nok",
            Fresh,
        ),
        ("HEAD", "200 OK\r\nContent-Length: 2\r\n\r\nok", Fresh),
        (
            "GET",
            "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n!",
            Fresh,
        ),
    ];
    for (method, reply, expected) in cases {
        assert_next(method, &format!("HTTP/1.1 {reply}"), expected);
    }
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
fn h01b_a_head_without_a_length_keeps_the_connection() {
    let server = Server::every(connection().always("HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"));
    let mut client = client(&server);
    for _ in 0..10 {
        client
            .call(&mut Request::head("/"), &mut Response::new())
            .unwrap();
    }
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn a_request_that_says_close_is_the_last_on_its_connection() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let mut request = Request::get("/");
    request.header("Connection", "foo, Close");
    for _ in 0..2 {
        client.call(&mut request, &mut Response::new()).unwrap();
        assert_eq!(client.counters().open, 0);
    }
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_24_a_connection_closed_while_idle_is_noticed_before_a_post() {
    let endings: [fn(Script) -> Script; 2] = [Script::close, Script::reset];
    for end in endings {
        let gate = Gate::new();
        let dying = connection().request().send(OK).wait(&gate);
        let server = Server::play([end(dying), connection().always(OK)]);
        let mut client = client(&server);
        client.get("/", &mut Response::new()).unwrap();
        gate.open();
        server.wait_ended(1);
        look_away();
        let report = client
            .call(&mut Request::post("/", "once"), &mut Response::new())
            .unwrap();
        assert_eq!(report.attempts(), 1);
        assert!(!report.reused());
        assert_eq!(server.lines(), ["GET / HTTP/1.1", "POST / HTTP/1.1"]);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_24d_the_same_over_a_unix_socket() {
    let gate = Gate::new();
    let script = connection().request().send(OK).wait(&gate).close();
    let server = Server::start(
        Transport::Unix,
        Behaviour::List(vec![script, connection().always(OK)]),
    );
    let mut client = unix_client(&server);
    client.get("/", &mut Response::new()).unwrap();
    gate.open();
    server.wait_ended(1);
    look_away();
    client
        .call(&mut Request::post("/", "once"), &mut Response::new())
        .unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_24b_idle_closes_empty_the_pool_while_the_client_is_driven() {
    let gate = Gate::new();
    let server = Server::play([connection().request().send(OK).wait(&gate).close()]);
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(client.counters().idle, 1);
    gate.open();
    drive_until(&mut client, "the close is noticed", |client, _| {
        client.counters().open == 0
    });
    assert_nothing_left(client, &server);
}

#[test]
fn ten_dead_connections_do_not_fail_a_call() {
    let (answer, death) = (Gate::new(), Gate::new());
    let dying = connection()
        .request()
        .wait(&answer)
        .send(OK)
        .wait(&death)
        .close();
    let mut scripts = vec![dying; 10];
    scripts.push(connection().always(OK));
    let server = Server::play(scripts);
    let mut client = client(&server);
    for _ in 0..10 {
        client.submit(Call::new(Request::get("/"), Response::new()));
    }
    drive_until(&mut client, "all are asked", |_, _| answer.arrived() == 10);
    answer.open_for_all();
    drive_all(&mut client);
    assert_eq!(client.counters().idle, 10);
    death.open_for_all();
    server.wait_ended(10);
    look_away();
    for method in ["GET", "POST"] {
        client
            .call(&mut Request::new(method, "/"), &mut Response::new())
            .unwrap();
    }
    assert_eq!(server.lines().len(), 12);
    assert_eq!(client.counters().open, 1);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_20_unsolicited_bytes_on_an_idle_connection_answer_nobody() {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    for unsolicited in [
        evil,
        "\r\n",
        "x",
        "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    ] {
        let (before, after) = (Gate::new(), Gate::new());
        let poisoned = connection()
            .request()
            .send(OK)
            .wait(&before)
            .send(unsolicited)
            .wait(&after);
        let server = Server::play([poisoned, connection().always(OK)]);
        let mut client = client(&server);
        client.get("/", &mut Response::new()).unwrap();
        before.open();
        after.wait_arrived(1);
        look_away();
        let mut response = Response::new();
        client
            .call(&mut Request::post("/", "x"), &mut response)
            .unwrap();
        assert_eq!(response.body(), b"ok", "{unsolicited:?}");
        assert_eq!(server.served_by(), [0, 1], "{unsolicited:?}");
        after.open();
        assert_nothing_left(client, &server);
    }
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
    assert!(
        matches!(error.kind(), ErrorKind::Peer(PeerFault::UnexpectedUpgrade)),
        "{error:?}"
    );
    assert_eq!(client.counters().open, 0);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn a_101_that_was_asked_for_is_the_final_response_and_never_pooled() {
    let switching =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let server = Server::play([
        connection().request().send(switching),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    let mut request = Request::get("/chat");
    request
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket");
    let mut response = Response::new();
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(response.status(), 101);
    assert_eq!(client.counters().idle, 0);
    client.get("/", &mut response).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn a_connection_that_switched_protocols_can_be_taken_over() {
    let cases = [
        (
            "GET",
            "/chat",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello",
        ),
        (
            "CONNECT",
            "example.com:443",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhello",
        ),
    ];
    for (method, target, reply) in cases {
        let server = Server::play([connection()
            .request()
            .send(reply)
            .read(4)
            .send("pong")
            .close()]);
        let mut client = client(&server);
        let mut request = Request::new(method, target);
        request
            .header("Connection", "Upgrade")
            .header("Upgrade", "x");
        client.submit(Call::new(request, Response::new()));
        let mut completion = drive_all(&mut client).remove(0);
        completion.outcome.unwrap();
        let mut stream = completion.response.take_upgraded().expect("the connection");
        assert!(completion.response.take_upgraded().is_none(), "twice");
        stream.write_all(b"ping").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "hellopong", "with what came along with the head");
        drop(stream);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn a_2xx_to_connect_ends_at_its_head_and_is_never_pooled() {
    let tunnel = "HTTP/1.1 200 Connection established\r\nContent-Length: 99\r\n\r\n";
    let server = Server::play([connection().request().send(tunnel), connection().always(OK)]);
    let mut client = client(&server);
    let mut response = Response::new();
    client
        .call(
            &mut Request::new("CONNECT", "example.com:443"),
            &mut response,
        )
        .unwrap();
    assert_eq!((response.status(), response.body()), (200, &b""[..]));
    assert_eq!(server.lines(), ["CONNECT example.com:443 HTTP/1.1"]);
    assert_eq!(client.counters().idle, 0);
    client.get("/", &mut response).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_07_a_fin_behind_a_complete_response_is_no_error() {
    let server = Server::play([
        connection().request().send(OK).close(),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    assert_eq!(response.body(), b"ok");
    server.wait_ended(1);
    look_away();
    client
        .call(&mut Request::post("/", "x"), &mut response)
        .unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_08_a_half_close_behind_a_complete_response_is_a_close() {
    let server = Server::play([
        connection().request().send(OK).half_close(),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    drive_until(&mut client, "the half close is noticed", |client, _| {
        client.counters().open == 0
    });
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
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
fn a_server_that_closes_whenever_it_likes_never_fails_a_get() {
    // Each connection serves one or two calls and then closes without a word, while four calls at a time go on.
    let server = Server::every(connection().request().send(OK).request().send(OK).close());
    let mut config = config();
    config.max_connections = 4.try_into().unwrap();
    let mut client = client_with(&server, config);
    for _ in 0..25 {
        let calls = (0..8).map(|tag| Call::new(Request::get("/"), Response::new()).tag(tag));
        for completion in run(&mut client, calls) {
            completion.outcome.unwrap();
            assert_eq!(completion.response.body(), b"ok");
        }
    }
    assert_nothing_left(client, &server);
}

/// Makes a call that is answered with exactly `reply`, and then another one.
fn assert_next(method: &str, reply: &str, expected: Next) {
    let sent = Gate::new();
    let first = connection()
        .request()
        .send(reply)
        .wait(&sent)
        .request()
        .send(OK);
    let server = Server::play([first, connection().always(OK)]);
    let mut client = client(&server);
    let mut response = Response::new();
    client
        .call(&mut Request::new(method, "/"), &mut response)
        .unwrap_or_else(|error| panic!("{method} {reply:?}: {error:?}"));
    // All that the server has to say is said; whatever of it is surplus must be noticed by now.
    sent.wait_arrived(1);
    sent.open();
    look_away();
    client.get("/", &mut response).unwrap();
    assert_eq!(response.body(), b"ok", "{method} {reply:?}");
    let next = match server.served_by()[1] {
        0 => Next::Same,
        _ => Next::Fresh,
    };
    assert_eq!(next, expected, "{method} {reply:?}");
    assert_nothing_left(client, &server);
}

/// A server that sends a second answer after each answer to `method`. Counts these when they are in the client's socket.
fn poisoner(method: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, poisoned) = (listener.local_addr().unwrap(), Arc::default());
    let count = Arc::clone(&poisoned);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || poison(&stream, method, &count));
        }
    });
    (address, poisoned)
}

fn poison(mut stream: &TcpStream, method: &str, count: &AtomicUsize) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut buffer = [0; 4096];
    loop {
        // The requests of the test have no body, and each comes in one piece.
        let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        let answer = match buffer.starts_with(b"HEAD") {
            true => head,
            false => OK,
        };
        stream.write_all(answer.as_bytes()).ok()?;
        if buffer[..n].starts_with(method.as_bytes()) {
            stream.write_all(&response("evil")).ok()?;
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Calls with one method, and with the other as soon as the bytes behind the first answer are there.
fn call_after_poison(
    [first, second]: [&str; 2],
    poisoned: &AtomicUsize,
    mut call: impl FnMut(&mut Request, &mut Response),
) {
    for round in 1..=100 {
        let mut response = Response::new();
        call(&mut Request::new(first, "/"), &mut response);
        let began = Instant::now();
        while poisoned.load(Ordering::SeqCst) < round {
            assert!(began.elapsed() < PATIENCE, "{first} was not received");
            std::hint::spin_loop();
        }
        call(&mut Request::new(second, "/"), &mut response);
        assert_eq!(
            response.body(),
            b"ok",
            "round {round}, {second} after {first}"
        );
    }
}

/// Behind an answer that must have no body, and before a request that must not be repeated.
#[test]
fn rfc_9112_6_3_bytes_that_are_there_do_not_answer_the_next_request() {
    for methods in [["HEAD", "GET"], ["GET", "POST"]] {
        let (address, poisoned) = poisoner(methods[0]);
        let mut client = HostClient::new(Upstream::tcp([address]), config()).unwrap();
        call_after_poison(methods, &poisoned, |request, response| {
            client.call(request, response).unwrap();
        });
        let (address, poisoned) = poisoner(methods[0]);
        let mut config = PipelineConfig {
            host: config(),
            ..PipelineConfig::default()
        };
        config.host.max_connections = NonZeroUsize::MIN;
        let mut client = PipelineClient::new(Upstream::tcp([address]), config).unwrap();
        call_after_poison(methods, &poisoned, |request, response| {
            client.call(request, response).unwrap();
        });
    }
}
