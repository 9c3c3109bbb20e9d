//! Content codings over real sockets: kept connections, back-pressure while one read holds far more than the consumer
//! wants. Every coding under every framing is in `engine/src/proto/coding/tests.rs`.

use std::io::{Read, Write};

use courser::{Codings, HostConfig, Limits, Request, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use tests::clients::{assert_nothing_left, client_with, config};
use tests::script::{Server, connection};

use super::OK;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn head(framing: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n{framing}\r\n\r\n")
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let mut reply = head(&format!("Content-Length: {}", body.len())).into_bytes();
    reply.extend(body);
    reply
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut reply = head("Transfer-Encoding: chunked").into_bytes();
    for piece in body.chunks(1000) {
        reply.extend(format!("{:x}\r\n", piece.len()).bytes());
        reply.extend(piece);
        reply.extend(b"\r\n");
    }
    reply.extend(b"0\r\n\r\n");
    reply
}

fn decoding() -> Request {
    let mut request = Request::get("/");
    request.decode(Codings::all());
    request
}

/// The client's configuration asks; a request can say no.
#[test]
fn the_configuration_asks_for_all_requests() {
    let reply = with_length(&gzip(b"hello"));
    let script = connection()
        .request()
        .send(&reply[..])
        .request()
        .send(&reply[..]);
    let server = Server::play([script.always(OK)]);
    let config = HostConfig {
        codings: Codings::all(),
        ..config()
    };
    let mut client = client_with(&server, config);
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    assert_eq!((response.decoded(), response.body()), (true, &b"hello"[..]));
    let mut plain = Request::get("/");
    plain.decode(Codings::none());
    client.call(&mut plain, &mut response).unwrap();
    assert_eq!(
        (response.decoded(), response.body()),
        (false, &gzip(b"hello")[..])
    );
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

/// One read holds a thousand times what the consumer wants: decoding waits for the consumer, the end of the body comes
/// to it like any other, and the connection is kept.
#[test]
fn one_read_of_much_waits_for_the_consumer() {
    let zeros = 2_000_000;
    let coded = gzip(&vec![0; zeros]);
    assert!(coded.len() < 3_000, "fits into one read");
    for reply in [with_length(&coded), chunked(&coded)] {
        for stream_buffer in [1000, 65_536] {
            let server = Server::play([connection().request().send(&reply[..]).always(OK)]);
            let config = HostConfig {
                stream_buffer,
                limits: Limits {
                    decode_ratio: None,
                    decoded_bytes: Some(1), // of no concern to streamed bodies
                    ..Limits::default()
                },
                ..config()
            };
            let mut client = client_with(&server, config);
            let (mut request, mut response) = (decoding(), Response::new());
            let mut body = client.open(&mut request, &mut response).unwrap();
            let (mut count, mut piece) = (0, vec![1; 100_000]);
            loop {
                let n = body.read(&mut piece).unwrap();
                assert!(n <= stream_buffer, "{n} bytes were waiting");
                assert!(piece[..n].iter().all(|&byte| byte == 0));
                count += n;
                if n == 0 {
                    break;
                }
            }
            assert_eq!(count, zeros);
            body.finish().unwrap();
            client.get("/", &mut response).unwrap();
            assert_eq!(server.accepted(), 1);
            assert_nothing_left(client, &server);
        }
    }
}

/// A byte behind a response whose decoding was held back is surplus like any other.
#[test]
fn surplus_behind_a_held_body_costs_the_connection() {
    let coded = gzip(&vec![0; 100_000]);
    let reply = [&with_length(&coded)[..], b"x"].concat();
    let server = Server::play([
        connection().request().send(&reply[..]),
        connection().always(OK),
    ]);
    let config = HostConfig {
        stream_buffer: 1000,
        ..config()
    };
    let mut client = client_with(&server, config);
    let (mut request, mut response) = (decoding(), Response::new());
    let mut body = client.open(&mut request, &mut response).unwrap();
    let mut text = Vec::new();
    assert_eq!(body.read_to_end(&mut text).unwrap(), 100_000);
    body.finish().unwrap();
    assert_eq!(client.counters().idle, 0);
    client.get("/", &mut response).unwrap();
    assert_eq!(server.accepted(), 2);
    assert_nothing_left(client, &server);
}
