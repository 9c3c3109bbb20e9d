//! Servers that flood a client: the server's side of a TLS session, whose records a test makes itself.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use courser::{HostConfig, Timeouts, TlsConfig, TlsRoots};
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::cipher::{AeadKey, Iv, MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
use rustls::crypto::tls13::{OkmBlock, expand};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use rustls::{KeyLog, ProtocolVersion, ServerConfig, ServerConnection, StreamOwned};
use rustls::{SupportedCipherSuite, Tls13CipherSuite};

/// A certificate for this machine.
pub(crate) struct Identity {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, key }
    }

    /// What the client needs to trust it.
    pub(crate) fn trusted(&self) -> TlsConfig {
        TlsConfig {
            roots: TlsRoots::None,
            extra_roots: vec![self.certificate.der().to_vec().into()],
            ..TlsConfig::default()
        }
    }

    /// The server's side of a session over a stream. It sends no tickets of its own.
    pub(crate) fn session<S: Read + Write>(&self, stream: S) -> Session<S> {
        let provider = CryptoProvider {
            cipher_suites: vec![TLS13_CHACHA20_POLY1305_SHA256],
            ..ring::default_provider()
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.der().clone()], key)
            .unwrap();
        let secret = Arc::new(Secret::default());
        config.send_tls13_tickets = 0;
        config.enable_secret_extraction = true;
        config.key_log = secret.clone();
        let session = ServerConnection::new(Arc::new(config)).unwrap();
        Session {
            stream: StreamOwned::new(session, stream),
            secret,
        }
    }
}

/// The server's side of a session.
pub(crate) struct Session<S: Read + Write> {
    stream: StreamOwned<ServerConnection, S>,
    secret: Arc<Secret>,
}

impl<S: Read + Write> Session<S> {
    /// Takes over the sending side. The handshake is complete.
    pub(crate) fn flooder(self) -> Flooder<S> {
        let secret = self.secret.0.lock().unwrap().clone();
        let StreamOwned { conn, sock } = self.stream;
        let (sequence, _) = conn.dangerous_extract_secrets().unwrap().tx;
        Flooder {
            stream: sock,
            seal: sealing(&secret),
            secret,
            sequence,
        }
    }

    /// The stream below. The session ends without a word.
    pub(crate) fn into_lower(self) -> S {
        self.stream.sock
    }
}

impl<S: Read + Write> Read for Session<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buf)
    }
}

impl<S: Read + Write> Write for Session<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The secret under which a server sends, as key logs get it.
#[derive(Debug, Default)]
struct Secret(Mutex<Vec<u8>>);

impl KeyLog for Secret {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if label == "SERVER_TRAFFIC_SECRET_0" {
            *self.0.lock().unwrap() = secret.to_vec();
        }
    }
}

/// Sends records that no ordinary server would send, under the keys of a session.
pub(crate) struct Flooder<S> {
    stream: S,
    secret: Vec<u8>,
    seal: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl<S: Write> Flooder<S> {
    /// The bytes of one record.
    pub(crate) fn record(&mut self, content_type: u8, plain: &[u8]) -> Vec<u8> {
        let message = OutboundPlainMessage {
            typ: content_type.into(),
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(plain),
        };
        let record = self.seal.encrypt(message, self.sequence).unwrap();
        self.sequence += 1;
        record.encode()
    }

    /// A KeyUpdate (RFC 8446 §4.6.3), after which the next key is in use.
    pub(crate) fn key_update(&mut self) -> Vec<u8> {
        let record = self.record(HANDSHAKE, &[24, 0, 0, 1, 0]);
        self.secret = derived::<32>(&self.secret, "traffic upd").to_vec();
        self.seal = sealing(&self.secret);
        self.sequence = 0;
        record
    }

    /// Writes what `make` makes, at full speed. True if the client has ended it. With an end of its own, a flood that
    /// the client does not end fails a test and does not hang it.
    pub(crate) fn flood(&mut self, mut make: impl FnMut(&mut Self) -> Vec<u8>) -> bool {
        (0..MOST_RECORDS).any(|_| {
            let bytes = make(self);
            self.stream.write_all(&bytes).is_err()
        })
    }
}

/// A record of as many tickets as it can hold.
pub(crate) fn tickets() -> Vec<u8> {
    const TICKET: &[u8] = b"\x04\0\0\x19\0\0\x0e\x10\0\0\0\0\x01n\0\x0bthe tickets\0\0";
    TICKET.repeat(16_000 / TICKET.len())
}

fn sealing(secret: &[u8]) -> Box<dyn MessageEncrypter> {
    let key = AeadKey::from(derived::<32>(secret, "key"));
    let iv = Iv::new(derived::<12>(secret, "iv"));
    suite().aead_alg.encrypter(key, iv)
}

/// HKDF-Expand-Label without a context (RFC 8446 §7.1).
fn derived<const N: usize>(secret: &[u8], label: &str) -> [u8; N] {
    let label = format!("tls13 {label}");
    let expander = suite()
        .hkdf_provider
        .expander_for_okm(&OkmBlock::new(secret));
    let length = (N as u16).to_be_bytes();
    expand(
        &*expander,
        &[&length, &[label.len() as u8], label.as_bytes(), &[0]],
    )
}

fn suite() -> &'static Tls13CipherSuite {
    match TLS13_CHACHA20_POLY1305_SHA256 {
        SupportedCipherSuite::Tls13(suite) => suite,
        SupportedCipherSuite::Tls12(_) => unreachable!("a suite of TLS 1.3"),
    }
}

/// A configuration without limits of time: what ends a call is never that the machine is busy.
pub(crate) fn patient() -> HostConfig {
    HostConfig {
        timeouts: Timeouts::none(),
        idle_timeout: Duration::MAX,
        ..HostConfig::default()
    }
}

/// Serves each connection with `serve` on a thread of its own. Returns the port.
pub(crate) fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, serve) = (stream.unwrap(), Arc::clone(&serve));
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Reads one head; false at the end of the stream.
pub(crate) fn read_head(stream: &mut impl Read) -> bool {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1..) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// A server that does nothing wrong.
pub(crate) fn healthy() -> u16 {
    listen(
        |mut stream| {
            while read_head(&mut stream) && stream.write_all(OK).is_ok() {}
        },
    )
}

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Content types of records (RFC 8446 §5.1).
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const DATA: u8 = 23;

/// Far more than a client reads before one of its limits ends the connection; and the keys of so many records take
/// longer than the deadlines of the tests.
const MOST_RECORDS: usize = 1_000_000;
