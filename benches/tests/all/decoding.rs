//! Decoding content codings allocates nothing after the decoders were created. The allocator counts only the thread of
//! the client. A decoder stays with the response that it has decoded, or with the client if the body was streamed.
//!
//! br is the exception: its decoder cannot be reset, so each body has a new one. No decoder uses more memory with more
//! requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::thread;

use benches::alloc::on_this_thread;
use courser::{Codings, HostClient, HostConfig, Request, Response, Upstream};

#[test]
fn each_coding_in_each_framing() {
    for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
        for streamed in [false, true] {
            let plain = allocations(&[], framing, streamed);
            // Then each connection serves one request, and new connections allocate.
            let is_kept = !matches!(framing, Framing::UntilClose);
            assert!(!is_kept || plain == 0, "{framing:?}: {plain}");
            for coding in CODINGS {
                let count = allocations(&[coding], framing, streamed);
                let most = plain + promised(coding);
                assert!(count <= most, "{coding} {framing:?}: {count}, not {most}");
            }
        }
    }
    let several = ["zstd", "gzip", "gzip"];
    assert_eq!(allocations(&several, Framing::Length, false), 0);
}

/// The allocations of a client whose answers have these codings, when it has made its decoders.
fn allocations(codings: &[&str], framing: Framing, streamed: bool) -> u64 {
    let (mut client, expected) = client(codings, framing);
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let mut buffer = vec![0; 10_000];
    steady(|| {
        if !streamed {
            client.call(&mut request, &mut response).expect("an answer");
            assert_eq!(response.decoded(), !codings.is_empty());
            return assert!(response.body() == expected);
        }
        let mut body = client.open(&mut request, &mut response).expect("a head");
        let mut length = 0;
        loop {
            match body.read_some(&mut buffer).expect("a whole body") {
                0 => break,
                n => length += n,
            }
        }
        body.finish().expect("a whole body");
        assert_eq!(length, expected.len());
    })
}

const CODINGS: [&str; 4] = ["gzip", "deflate", "zstd", "br"];

/// The highest number of allocations in one measurement.
fn promised(coding: &str) -> u64 {
    match coding {
        // The state, the ring buffer, the code tables and the context maps.
        "br" => 16 * REQUESTS,
        _ => 0,
    }
}

/// The allocations of this thread in one measurement.
fn steady(round: impl FnMut()) -> u64 {
    crate::steady(on_this_thread, REQUESTS, round)
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
}

/// A client of a server that sends a body with these codings, and the decoded body.
fn client(codings: &[&str], framing: Framing) -> (HostClient, Vec<u8>) {
    let plain: Vec<u8> = (0..60_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 28) as u8)
        .collect();
    let coded = codings.iter().fold(plain.clone(), |data, coding| {
        coded(coding, &data).expect("memory")
    });
    let mut reply = b"HTTP/1.1 200 OK\r\n".to_vec();
    if !codings.is_empty() {
        reply.extend(format!("Content-Encoding: {}\r\n", codings.join(", ")).bytes());
    }
    match framing {
        Framing::Length => {
            reply.extend(format!("Content-Length: {}\r\n\r\n", coded.len()).bytes());
            reply.extend(coded);
        }
        Framing::Chunked => {
            reply.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in coded.chunks(5000) {
                reply.extend(format!("{:x}\r\n", piece.len()).bytes());
                reply.extend(piece);
                reply.extend(b"\r\n");
            }
            reply.extend(b"0\r\n\r\n");
        }
        Framing::UntilClose => {
            reply.extend(b"Connection: close\r\n\r\n");
            reply.extend(coded);
        }
    }
    let config = HostConfig {
        max_connections: NonZeroUsize::MIN,
        codings: Codings::all(),
        ..HostConfig::default()
    };
    let upstream = Upstream::tcp([serve(reply, matches!(framing, Framing::UntilClose))]);
    (
        HostClient::new(upstream, config).expect("an event queue"),
        plain,
    )
}

fn coded(coding: &str, data: &[u8]) -> std::io::Result<Vec<u8>> {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(data)?;
            encoder.finish()
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(data)?;
            encoder.finish()
        }
        "zstd" => zstd::encode_all(data, 3),
        _ => {
            let mut out = Vec::new();
            brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(data)?;
            Ok(out)
        }
    }
}

/// Starts a server that sends `reply` to each request, and closes the connection after it if `closes`.
fn serve(reply: Vec<u8>, closes: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let address = listener.local_addr().expect("a loopback port");
    let answer = move |mut stream: TcpStream, reply: &[u8]| -> std::io::Result<()> {
        let (mut head, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let n = stream.read(&mut piece)?;
            if n == 0 {
                return Ok(());
            }
            head.extend_from_slice(&piece[..n]);
            if head.ends_with(b"\r\n\r\n") {
                head.clear();
                stream.write_all(reply)?;
                if closes {
                    return Ok(());
                }
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client has only one connection at a time.
            let _ = answer(stream, &reply);
        }
    });
    address
}

const REQUESTS: u64 = 50;
