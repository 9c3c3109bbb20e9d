//! Content codings over real sockets: buffered and streamed, under every framing, kept connections, back-pressure
//! while one read holds far more than the consumer wants.

use std::io::{Read, Write};

use courser::{Codings, HostConfig, Limits, Request, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use tests::clients::{assert_nothing_left, client, client_with, config};
use tests::script::{Gate, Server, connection};

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

/// Neither tiny when coded nor larger than the ratio allows.
fn data() -> Vec<u8> {
    (0..400_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 27) as u8)
        .collect()
}

fn decoding() -> Request {
    let mut request = Request::get("/");
    request.decode(Codings::all());
    request
}

#[test]
fn buffered_and_streamed_under_every_framing() {
    let data = data();
    let coded = gzip(&data);
    let mut until_close = head("Connection: close").into_bytes();
    until_close.extend(&coded);
    for (reply, kept) in [
        (with_length(&coded), 1),
        (chunked(&coded), 1),
        (until_close, 0),
    ] {
        for streamed in [false, true] {
            let gate = Gate::new();
            if kept == 0 {
                gate.open();
            }
            let script = connection().request().send(&reply[..]).wait(&gate).close();
            let server = Server::play([script]);
            let mut client = client(&server);
            let (mut request, mut response) = (decoding(), Response::new());
            let body = if streamed {
                let mut text = Vec::new();
                let mut body = client.open(&mut request, &mut response).unwrap();
                body.read_to_end(&mut text).unwrap();
                body.finish().unwrap();
                text
            } else {
                client.call(&mut request, &mut response).unwrap();
                response.body().to_vec()
            };
            assert!(body == data, "{} bytes", body.len());
            assert!(response.decoded());
            assert_eq!(client.counters().idle, kept);
            gate.open();
            assert_nothing_left(client, &server);
        }
    }
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
