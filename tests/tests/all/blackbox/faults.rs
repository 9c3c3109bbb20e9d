//! Peers that break off, lie about lengths, send garbage or never stop: each ends in the right error, within the
//! limits, and leaves no connection behind. What happens at which stage of a call is in the tables of `catalogue`.

use courser::{ErrorKind, HostConfig, LimitExceeded, Limits, PeerFault, Request, Response, Sent};
use tests::clients::{assert_nothing_left, client, client_with, config};
use tests::script::{Gate, Script, Server, connection};

const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n";
const TO_CLOSE: &str = "HTTP/1.1 200 OK\r\n\r\n01234";

#[test]
fn fault_03_reset_on_accept() {
    let server = Server::play([connection().reset()]);
    let mut client = client(&server);
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert_ne!(error.sent(), Sent::Partial);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_04_reset_after_the_request() {
    for mut request in [Request::get("/"), Request::post("/", "x")] {
        let server = Server::play([connection().request().reset()]);
        let mut client = client(&server);
        let error = client.call(&mut request, &mut Response::new()).unwrap_err();
        assert_eq!(error.sent(), Sent::NoReplyByte);
        assert_eq!(server.lines().len(), 1);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_06b_an_end_at_every_byte_is_truncation() {
    let whole =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: t\r\n\r\n";
    for cut in 0..whole.len() {
        let server = Server::play([connection().request().send(&whole[..cut]).close()]);
        let mut client = client(&server);
        let error = client.get("/", &mut Response::new()).unwrap_err();
        let expected = if cut == 0 {
            PeerFault::Empty
        } else {
            PeerFault::Truncated
        };
        assert!(
            matches!(error.kind(), ErrorKind::Peer(fault) if *fault == expected),
            "cut at {cut}: {error:?}"
        );
    }
}

#[test]
fn fault_06c_a_body_without_length_ends_well_with_the_connection() {
    for end in [Script::close, Script::half_close] {
        let server = Server::play([end(connection().request().send(TO_CLOSE))]);
        let mut client = client(&server);
        let mut response = Response::new();
        client.get("/", &mut response).unwrap();
        assert_eq!(response.body(), b"01234");
        assert_eq!(client.counters().open, 0);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_06d_the_partial_body_comes_with_the_error() {
    for bytes in [LENGTH, CHUNKED] {
        let server = Server::play([connection().request().send(bytes).close()]);
        let mut client = client(&server);
        let mut response = Response::new();
        client.get("/", &mut response).unwrap_err();
        assert_eq!((response.status(), response.body()), (200, &b"01234"[..]));
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_14_garbage_fails_at_the_first_impossible_byte() {
    // The server keeps the connection open: the verdict may not wait for more.
    let garbage: [&[u8]; 9] = [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"220 mail.example ESMTP\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
        b"\0\0\0\0",
        b"<html>",
        b"HTTP/2.0 200 OK\r\n",
        b"ICY 200 OK\r\n",
        b"http/1.1 200 OK\r\n",
    ];
    for bytes in garbage {
        let server = Server::play([connection().request().send(bytes)]);
        let mut client = client(&server);
        let error = client.get("/", &mut Response::new()).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Peer(PeerFault::BadStatusLine)),
            "{bytes:?}: {error:?}"
        );
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_15_endless_heads_are_cut_at_the_limit() {
    let one_line = connection()
        .request()
        .send("HTTP/1.1 200 OK\r\nX: ")
        .flood("x".repeat(1000));
    let many_lines = connection()
        .request()
        .send("HTTP/1.1 200 OK\r\n")
        .flood("X: y\r\n".repeat(100));
    let no_line = connection()
        .request()
        .send("HTTP/1.1 200 ")
        .flood("x".repeat(1000));
    for script in [one_line, many_lines, no_line] {
        let server = Server::play([script]);
        let mut client = client(&server);
        let error = client.get("/", &mut Response::new()).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Limit(LimitExceeded::HeadBytes(_) | LimitExceeded::HeaderCount(_))
            ),
            "{error:?}"
        );
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_15b_the_header_limits_are_exact() {
    let head = "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nContent-Length: 0\r\n\r\n";
    let limits = |head_bytes, header_count| Limits {
        head_bytes,
        header_count,
        ..Limits::default()
    };
    let cases = [
        (limits(head.len(), 3), None),
        (
            limits(head.len() - 1, 3),
            Some(LimitExceeded::HeadBytes(head.len() - 1)),
        ),
        (limits(head.len(), 2), Some(LimitExceeded::HeaderCount(2))),
    ];
    for (limits, expected) in cases {
        let server = Server::every(connection().always(head));
        let mut client = client_with(&server, HostConfig { limits, ..config() });
        let outcome = client.get("/", &mut Response::new());
        assert_eq!(limit_of(outcome), expected);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_16_endless_interim_responses_are_cut() {
    let script = connection()
        .request()
        .flood("HTTP/1.1 103 Early Hints\r\n\r\n");
    let server = Server::play([script]);
    let mut client = client(&server);
    let outcome = client.get("/", &mut Response::new());
    assert_eq!(
        limit_of(outcome),
        Some(LimitExceeded::InterimResponses(100))
    );
    assert_nothing_left(client, &server);
}

#[test]
fn fault_16b_a_hundred_interim_responses_are_shown_and_one_more_is_too_many() {
    for (count, expected) in [
        (100, None),
        (101, Some(LimitExceeded::InterimResponses(100))),
    ] {
        let mut reply = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(count);
        reply.push_str(super::OK);
        let server = Server::play([connection().request().send(reply)]);
        let mut client = client(&server);
        let mut response = Response::new();
        let outcome = client.get("/", &mut response);
        assert_eq!(limit_of(outcome), expected);
        if expected.is_none() {
            assert_eq!(response.status(), 200);
            assert_eq!(response.interim().count(), count);
            assert!(response.interim().all(|head| head.status() == 103));
        }
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_17_endless_bodies_are_cut_at_the_limit() {
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let chunked = connection()
        .request()
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .flood(chunk);
    let to_close = connection()
        .request()
        .send("HTTP/1.1 200 OK\r\n\r\n")
        .flood("x".repeat(1000));
    for script in [chunked, to_close] {
        let server = Server::play([script]);
        let mut client = client_with(&server, body_limit(1_000_000));
        let mut response = Response::new();
        let outcome = client.get("/", &mut response);
        assert_eq!(limit_of(outcome), Some(LimitExceeded::BodyBytes(1_000_000)));
        assert!(Vec::from(response.take_body()).capacity() < 4_000_000);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn m04_body_limits_are_exact_for_every_framing() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n3\r\n678\r\n0\r\n\r\n";
    let trailer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n3\r\n678\r\n0\r\nA: b\r\n\r\n";
    let to_close = "HTTP/1.1 200 OK\r\n\r\n012345";
    let cases = [
        (length, 10, true),
        (length, 100, true),
        (length, 9, false),
        (chunked, 9, true),
        (chunked, 100, true),
        (chunked, 8, false),
        (chunked, 2, false),
        (trailer, 9, true),
        (trailer, 2, false),
        (to_close, 6, true),
        (to_close, 106, true),
        (to_close, 5, false),
    ];
    for (reply, limit, fits) in cases {
        let server = Server::play([connection().request().send(reply).close()]);
        let mut client = client_with(&server, body_limit(limit));
        let outcome = client.get("/", &mut Response::new());
        let expected = (!fits).then_some(LimitExceeded::BodyBytes(limit));
        assert_eq!(limit_of(outcome), expected, "{reply:?} {limit}");
        assert_nothing_left(client, &server);
    }
}

#[test]
fn m04b_five_gigabytes_promised_and_none_sent_allocate_nothing() {
    let gate = Gate::new();
    let promise = "HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n";
    let server = Server::play([connection().request().send(promise).wait(&gate).close()]);
    let unlimited = Limits {
        body_bytes: None,
        ..Limits::default()
    };
    let config = HostConfig {
        limits: unlimited,
        ..config()
    };
    let mut client = client_with(&server, config);
    gate.open();
    let mut response = Response::new();
    let error = client.get("/", &mut response).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Peer(PeerFault::Truncated)),
        "{error:?}"
    );
    assert_eq!(response.status(), 200);
    assert!(Vec::from(response.take_body()).capacity() <= 1 << 20);
    assert_nothing_left(client, &server);
}

#[test]
fn m04c_a_promise_over_the_limit_is_refused_before_the_body() {
    let promise = "HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n";
    let server = Server::play([connection().request().send(promise)]);
    let mut client = client(&server);
    let outcome = client.get("/", &mut Response::new());
    assert_eq!(limit_of(outcome), Some(LimitExceeded::BodyBytes(64 << 20)));
    assert_nothing_left(client, &server);
}

#[test]
fn fault_18_chunked_overhead_is_bounded() {
    let head = connection()
        .request()
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let extension = format!("1;{}\r\nx\r\n", "e".repeat(1000));
    let long_extension = format!("1;{}", "e".repeat(1000));
    let trailers = format!("T: {}\r\n", "t".repeat(1000));
    let scripts = [
        head.clone().flood(extension),
        head.clone().flood(long_extension),
        head.clone().flood("0"),
        head.send("0\r\n").flood(trailers),
    ];
    for script in scripts {
        let server = Server::play([script]);
        let mut client = client(&server);
        let error = client.get("/", &mut Response::new()).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Limit(
                    LimitExceeded::ChunkLine(_)
                        | LimitExceeded::ChunkOverhead(_)
                        | LimitExceeded::TrailerBytes(_)
                ) | ErrorKind::Peer(PeerFault::BadChunk)
            ),
            "{error:?}"
        );
        assert_nothing_left(client, &server);
    }
}

#[test]
fn fault_18b_one_byte_chunks_are_fine() {
    let mut reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    reply.push_str(&"1\r\nx\r\n".repeat(10_000));
    reply.push_str("0\r\n\r\n");
    let server = Server::every(connection().always(reply));
    let mut client = client(&server);
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    assert_eq!(response.body().len(), 10_000);
    assert_eq!(client.counters().idle, 1);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_19_lengths_that_lie_or_make_no_sense() {
    let cases = [
        ("+5", PeerFault::BadContentLength),
        ("-5", PeerFault::BadContentLength),
        ("0x5", PeerFault::BadContentLength),
        ("5_0", PeerFault::BadContentLength),
        ("5a", PeerFault::BadContentLength),
        ("\"5\"", PeerFault::BadContentLength),
        ("", PeerFault::BadContentLength),
        ("18446744073709551616", PeerFault::BadContentLength),
        ("5,6", PeerFault::ConflictingContentLength),
        (
            "5\r\nContent-Length: 6",
            PeerFault::ConflictingContentLength,
        ),
    ];
    for (value, expected) in cases {
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n01234");
        assert_fault(&reply, expected);
    }
}

#[test]
fn fault_19b_codings_that_nobody_asked_for() {
    for value in [
        "deflate",
        "identity",
        "",
        "chunked, gzip",
        "gzip, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        let reply = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {value}\r\n\r\n0\r\n\r\n");
        assert_fault(&reply, PeerFault::UnsupportedTransferEncoding);
    }
}

#[test]
fn fault_19c_broken_chunks() {
    for body in [
        "foo\r\n",
        "-1\r\nx\r\n",
        "0x1\r\nx\r\n",
        "\r\n",
        "10000000000000005\r\n01234\r\n",
        "3\r\nabcd\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
    ] {
        let reply = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_fault(&reply, PeerFault::BadChunk);
    }
}

#[test]
fn a_head_dripped_byte_by_byte_is_the_same_head() {
    let reply = "HTTP/1.1 200 OK\r\nA: b\r\nFolded: one\r\n two\r\nTransfer-Encoding: chunked\r\n\r\n\
        2\r\nok\r\n0\r\nSum: 1\r\n\r\n";
    let server = Server::every(connection().request().drip(reply).request().drip(reply));
    let mut client = client(&server);
    let mut response = Response::new();
    for _ in 0..2 {
        client.get("/", &mut response).unwrap();
        assert_eq!(response.header("folded"), Some(&b"one two"[..]));
        assert_eq!(response.body(), b"ok");
        assert_eq!(response.trailers().next(), Some(("Sum", &b"1"[..])));
    }
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn retained_memory_is_given_back_above_the_cap() {
    let big = super::response(vec![b'x'; 8 << 20]);
    let server = Server::answer(move |request| match request.target().as_str() {
        "/big" => big.clone(),
        _ => super::response("small"),
    });
    let mut client = client(&server);
    let mut response = Response::new();
    response.set_retained(64 * 1024);
    client.get("/big", &mut response).unwrap();
    assert_eq!(response.body().len(), 8 << 20);
    client.get("/small", &mut response).unwrap();
    assert!(Vec::from(response.take_body()).capacity() <= 64 * 1024);
    assert_nothing_left(client, &server);
}

/// The server sends `reply` and keeps the connection open: the verdict may not wait for its end.
fn assert_fault(reply: &str, expected: PeerFault) {
    let server = Server::play([connection().request().send(reply)]);
    let mut client = client(&server);
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Peer(fault) if *fault == expected),
        "{reply:?}: {error:?}"
    );
    assert_nothing_left(client, &server);
}

fn limit_of<T>(outcome: Result<T, courser::Error>) -> Option<LimitExceeded> {
    match outcome {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::Limit(limit) => Some(*limit),
            other => panic!("{other:?}"),
        },
    }
}

fn body_limit(bytes: u64) -> HostConfig {
    HostConfig {
        limits: Limits {
            body_bytes: Some(bytes),
            ..Limits::default()
        },
        ..config()
    }
}
