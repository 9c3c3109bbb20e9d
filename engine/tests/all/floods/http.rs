//! Floods of HTTP, of its codings and of proxies: each has a limit, which ends the call.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use courser::{
    Call, Client, Codings, Config, Error, ErrorKind, HostConfig, LimitExceeded, Limits, Proxies,
    Request, Response,
};

use super::server::{OK, healthy, listen, patient, pour, read_head};

/// A server that reads a request, sends `first`, and then `piece` without end.
fn flooding(first: &'static [u8], piece: &'static [u8]) -> u16 {
    listen(move |mut stream| {
        if read_head(&mut stream) && stream.write_all(first).is_ok() {
            pour(&stream, piece);
        }
    })
}

fn client(proxies: Proxies) -> Client {
    let host = HostConfig {
        limits: Limits {
            body_bytes: Some(MOST),
            ..Limits::default()
        },
        codings: Codings::all(),
        ..patient()
    };
    Client::new(Config {
        host,
        proxies,
        ..Config::default()
    })
    .unwrap()
}

/// Why a call to such a server fails. A call to a healthy server succeeds meanwhile.
fn failure(mut client: Client, url: &str) -> Error {
    let good = format!("http://127.0.0.1:{}/", healthy());
    for (tag, url) in [url, &good].into_iter().enumerate() {
        let call = Call::new(Request::get(url), Response::new());
        client.submit(call.tag(tag as u64));
    }
    let mut failure = None;
    for _ in 0..2 {
        let done = client.wait(None).unwrap().expect("a completion");
        match (done.tag, done.outcome) {
            (0, Err(error)) => failure = Some(error),
            (1, Ok(())) => {}
            (tag, outcome) => panic!("call {tag}: {outcome:?}"),
        }
    }
    failure.unwrap()
}

fn limit_of(first: &'static [u8], piece: &'static [u8]) -> LimitExceeded {
    let url = format!("http://127.0.0.1:{}/", flooding(first, piece));
    match failure(client(Proxies::none()), &url).kind() {
        ErrorKind::Limit(limit) => *limit,
        other => panic!("{other:?}"),
    }
}

/// Coded bodies whose pieces decode to nothing.
#[test]
fn codings_without_content() {
    const GZIP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
    const NAME: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\0\0\0\0\0\xff";
    const DEFLATE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n\x78\x9c";
    const BR: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\x0c";
    const ZSTD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n\r\n";
    const MEMBER: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0";
    for (first, piece) in [
        (GZIP, MEMBER),
        (NAME, b"endless"),
        (DEFLATE, b"\0\0\0\xff\xff"),
        (BR, b"\x06"),
        (ZSTD, b"\x28\xb5\x2f\xfd\x20\0\x01\0\0"),
        (ZSTD, b"\x50\x2a\x4d\x18\0\0\0\0"),
    ] {
        let limit = limit_of(first, piece);
        assert_eq!(limit, LimitExceeded::BodyBytes(MOST), "{piece:?}");
    }
}

#[test]
fn proxies() {
    let target = "http://a.example/";
    let answers = flooding(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n");
    let methods = listen(|mut stream| {
        let mut hello = [0; 3];
        if stream.read_exact(&mut hello).is_ok() {
            pour(&stream, b"\x05\0");
        }
    });
    for proxy in [
        format!("http://127.0.0.1:{answers}"),
        format!("socks5h://127.0.0.1:{methods}"),
    ] {
        let proxy: courser::Proxy = proxy.parse().unwrap();
        let proxies = Proxies::all(proxy.with_tunnels()).except("127.0.0.1");
        let error = failure(client(proxies), target);
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::Proxy(_)), "{kind:?}");
    }
}

/// Bytes, or whole answers, that no call waits for end the connection.
#[test]
fn after_the_answer() {
    for piece in [&b"\0surplus"[..], OK] {
        let is_over = Arc::new(AtomicBool::new(false));
        let port = listen({
            let is_over = Arc::clone(&is_over);
            move |mut stream| {
                if read_head(&mut stream) && stream.write_all(OK).is_ok() && !pour(&stream, piece) {
                    is_over.store(true, Ordering::SeqCst);
                }
            }
        });
        let mut client = client(Proxies::none());
        let mut response = Response::new();
        let url = format!("http://127.0.0.1:{port}/");
        client.get(&url, &mut response).unwrap();
        assert_eq!(response.body(), b"ok");
        let good = format!("http://127.0.0.1:{}/", healthy());
        client.get(&good, &mut response).unwrap();
        // Until only the connection to the healthy server is left.
        while client.counters().open > 1 {
            client.get(&good, &mut response).unwrap();
            client.maintain(Duration::from_millis(1)).unwrap();
        }
        let is_over = is_over.load(Ordering::SeqCst);
        assert!(!is_over, "the server has ended the connection");
    }
}

/// The limit on bodies: one that is soon reached.
const MOST: u64 = 1024 * 1024;
