//! TLS sessions over a stream in memory, alone and inside another one. What is plain goes through nothing.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::*;
use crate::net::tls::{GOOD_BUFFER, PemOrDer, TlsConfig, TlsIdentity, TlsRoots};

struct Pipe {
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    /// The most bytes that one call reads or writes.
    step: usize,
    /// Bytes that may be written until the test renews it.
    room: usize,
}

impl LowerStream for Pipe {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = buf.len().min(self.step).min(self.to_client.len());
        if n == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        buf[..n].copy_from_slice(&self.to_client[..n]);
        self.to_client.drain(..n);
        Ok(n)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.step).min(self.room);
        if n == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.room -= n;
        self.to_server.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    /// With a step set, a short read does not mean that the stream is empty.
    fn is_drained(&self, n: usize, room: usize) -> bool {
        n < room.min(self.step)
    }
}

/// For a host name: an identity that trusts its certificate, and its server.
fn side(name: &str) -> (TlsIdentity, ServerConnection) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let config = TlsConfig {
        roots: TlsRoots::None,
        extra_roots: vec![PemOrDer::Bytes(certificate.der().to_vec())],
        ..TlsConfig::default()
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let server = ServerConnection::new(Arc::new(server)).unwrap();
    (config.build().unwrap(), server)
}

/// Passes ciphertext to a server and returns the plaintext.
fn feed(server: &mut ServerConnection, mut input: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    loop {
        let n = server.read_tls(&mut input).unwrap();
        server.process_new_packets().unwrap();
        let mut some = [0; 20_000];
        while let Ok(more @ 1..) = server.reader().read(&mut some) {
            plain.extend_from_slice(&some[..more]);
        }
        if n == 0 || input.is_empty() {
            return plain;
        }
    }
}

fn drain(server: &mut ServerConnection, output: &mut Vec<u8>) {
    while server.wants_write() {
        server.write_tls(output).unwrap();
    }
}

/// The peers of the sessions: a proxy with TLS and the server after it, or one of them.
struct Peers {
    pipe: Pipe,
    /// The outermost first.
    servers: Vec<ServerConnection>,
    plain: Vec<u8>,
    room: usize,
}

impl Peers {
    fn serve(&mut self) {
        let mut data = std::mem::take(&mut self.pipe.to_server);
        for server in &mut self.servers {
            data = feed(server, &data);
        }
        self.plain.extend(data);
        let mut output = Vec::new();
        for server in self.servers.iter_mut().rev() {
            server.writer().write_all(&output).unwrap();
            output.clear();
            drain(server, &mut output);
        }
        self.pipe.to_client.extend(output);
        self.pipe.room = self.room;
    }

    fn send(&mut self, plain: &[u8]) {
        let server = self.servers.last_mut().unwrap();
        server.writer().write_all(plain).unwrap();
        self.serve();
    }
}

/// So many sessions, whose handshakes are done.
fn open(count: usize, step: usize, room: usize) -> (Sessions, Peers, Vec<u8>) {
    let pipe = Pipe {
        to_client: Vec::new(),
        to_server: Vec::new(),
        step,
        room,
    };
    let mut peers = Peers {
        pipe,
        servers: Vec::new(),
        plain: Vec::new(),
        room,
    };
    let mut buf = vec![0; GOOD_BUFFER];
    let mut transport = Transport::new(());
    for name in ["proxy.example", "origin.example"].iter().take(count) {
        let (identity, server) = side(name);
        peers.servers.push(server);
        transport.secure(Tls::new(&identity, name).unwrap());
        loop {
            let lower = &mut peers.pipe;
            let progress = match &mut transport.sessions {
                Sessions::None => unreachable!("there is a session"),
                Sessions::One(tls) => tls.handshake(lower, &mut buf),
                Sessions::Two(both) => {
                    let [outer, inner] = &mut **both;
                    inner.handshake(&mut OuterSession { outer, lower }, &mut buf)
                }
            };
            peers.serve();
            if progress.unwrap() == HandshakeProgress::Done {
                break;
            }
        }
    }
    (transport.sessions, peers, buf)
}

fn is_drained(sessions: &Sessions) -> bool {
    match sessions {
        Sessions::None => true,
        Sessions::One(tls) => tls.is_drained(),
        Sessions::Two(both) => both[1].is_drained(),
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn bytes_go_through_every_shape_at_every_pace() {
    let body = pattern(150_000);
    for (count, (step, room)) in [1, 2].into_iter().flat_map(|count| {
        let paces = [
            (usize::MAX, usize::MAX),
            (1009, usize::MAX),
            (16_411, usize::MAX),
            (usize::MAX, 5000),
            (777, 5000),
        ];
        paces.map(|pace| (count, pace))
    }) {
        let (mut sessions, mut peers, mut buf) = open(count, step, room);
        let mut done = 0;
        while done < body.len() {
            let (head, rest) = body[done..].split_at(100.min(body.len() - done));
            let parts = [IoSlice::new(head), IoSlice::new(rest)];
            match sessions.write(&mut peers.pipe, &mut buf, &parts) {
                Ok(n) => done += n,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            peers.serve();
            assert!(peers.plain.len() >= done);
        }
        assert!(peers.plain == body, "{count} sessions, step {step}");
        let mut got = Vec::new();
        for piece in body.chunks(40_000) {
            peers.send(piece);
            loop {
                match sessions.read(&mut peers.pipe, &mut buf) {
                    Ok(n) => {
                        assert_ne!(n, 0);
                        got.extend_from_slice(&buf[..n]);
                        assert!(!is_drained(&sessions) || peers.pipe.to_client.is_empty());
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                        if is_drained(&sessions) {
                            break;
                        }
                    }
                }
            }
        }
        assert!(got == body, "{count} sessions, step {step}");
    }
}

#[test]
fn closing_sends_close_notify_to_every_peer() {
    for count in [1, 2] {
        let (mut sessions, mut peers, _) = open(count, usize::MAX, usize::MAX);
        sessions.close_notify(&mut peers.pipe);
        peers.serve();
        for server in &mut peers.servers {
            assert!(server.process_new_packets().unwrap().peer_has_closed());
        }
    }
}
