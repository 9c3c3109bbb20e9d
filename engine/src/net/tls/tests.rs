//! TLS sessions in memory, with rustls's server as the peer. The wire between them reads and writes as few bytes at a
//! time as a test sets.

mod choices;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, version};

use super::*;
use crate::error::{ContentlessRecords, TlsAlert, TlsPart};

// ---- the wire

/// Both directions of a connection in memory.
struct Wire {
    to_client: VecDeque<u8>,
    to_server: Vec<u8>,
    /// The most bytes that one read of the client returns.
    read_step: usize,
    /// The most bytes that one write of the client takes.
    write_step: usize,
    /// The most bytes that the client may write until the server reads.
    room: usize,
    /// The server has closed its side.
    eof: bool,
    broken: bool,
    reads: usize,
    writes: usize,
}

impl Wire {
    fn new() -> Self {
        Self {
            to_client: VecDeque::new(),
            to_server: Vec::new(),
            read_step: usize::MAX,
            write_step: usize::MAX,
            room: usize::MAX,
            eof: false,
            broken: false,
            reads: 0,
            writes: 0,
        }
    }
}

impl LowerStream for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.to_client.is_empty() {
            return match self.eof {
                true => Ok(0),
                false => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        let room = buf.len().min(self.read_step);
        self.to_client.read(&mut buf[..room])
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if self.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = bytes.len().min(self.write_step).min(self.room);
        if n == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.room -= n;
        self.to_server.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    /// With a step set, a short read does not mean that the wire is empty.
    fn is_drained(&self, n: usize, room: usize) -> bool {
        n < room.min(self.read_step)
    }
}

// ---- certificates

struct Authority(CertifiedIssuer<'static, KeyPair>);

struct Leaf {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn root(&self) -> PemOrDer {
        PemOrDer::Bytes(self.0.pem().into_bytes())
    }

    fn leaf(&self, names: &[&str], edit: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.serial_number = Some(SerialNumber::from(7));
        edit(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Leaf {
            chain: vec![certificate.der().clone()],
            key,
        }
    }

    fn crl(&self, revoked: &[u64], next_update: i32) -> PemOrDer {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(next_update, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .iter()
                .map(|serial| RevokedCertParams {
                    serial_number: SerialNumber::from(*serial),
                    revocation_time: date_time_ymd(2020, 1, 1),
                    reason_code: None,
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.0).unwrap();
        PemOrDer::Bytes(list.pem().unwrap().into_bytes())
    }
}

impl Leaf {
    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }

    fn server(&self) -> ServerConfig {
        self.server_with(rustls::ALL_VERSIONS, None)
    }

    fn server_with(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> ServerConfig {
        let mut provider = ring::default_provider();
        // One cipher suite for all tests, so that `Forger` has to know only one.
        provider
            .cipher_suites
            .retain(|suite| format!("{:?}", suite.suite()).contains("CHACHA20"));
        let provider = Arc::new(provider);
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).unwrap();
                builder.with_client_cert_verifier(
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .unwrap(),
                )
            }
        };
        let mut config = builder
            .with_single_cert(self.chain.clone(), self.key())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}

/// An authority, and a certificate of it for `a.example`.
fn trusted() -> (Authority, Leaf) {
    let authority = Authority::new("authority");
    let leaf = authority.leaf(&["a.example"], |_| ());
    (authority, leaf)
}

/// A configuration that trusts only this authority.
fn trusting(authority: &Authority) -> TlsConfig {
    TlsConfig {
        roots: TlsRoots::None,
        extra_roots: vec![authority.root()],
        ..TlsConfig::default()
    }
}

// ---- a client and a server with a wire between them

struct Pair {
    tls: Tls,
    wire: Wire,
    server: ServerConnection,
    server_error: Option<rustls::Error>,
    buf: Vec<u8>,
}

impl Pair {
    fn new(identity: &TlsIdentity, server: ServerConfig, name: &str) -> Self {
        Self::shared(identity, &Arc::new(server), name)
    }

    fn shared(identity: &TlsIdentity, server: &Arc<ServerConfig>, name: &str) -> Self {
        Self {
            tls: Tls::new(identity, name).unwrap(),
            wire: Wire::new(),
            server: ServerConnection::new(server.clone()).unwrap(),
            server_error: None,
            buf: vec![0; GOOD_BUFFER],
        }
    }

    /// A pair with its handshake done.
    fn ready() -> Self {
        Self::ready_with(rustls::ALL_VERSIONS)
    }

    fn ready_with(versions: &[&'static rustls::SupportedProtocolVersion]) -> Self {
        let (authority, leaf) = trusted();
        let mut server = leaf.server_with(versions, None);
        server.enable_secret_extraction = true;
        let mut pair = Self::new(&trusting(&authority).build().unwrap(), server, "a.example");
        pair.handshake().unwrap();
        pair
    }

    /// Lets the server read, process and write.
    fn serve(&mut self) {
        let mut input = &self.wire.to_server[..];
        while !input.is_empty() {
            // While plaintext waits, rustls's server takes no more.
            if self.server.read_tls(&mut input).is_err() {
                break;
            }
            if let Err(error) = self.server.process_new_packets() {
                self.server_error.get_or_insert(error);
                input = &[];
            }
        }
        let used = self.wire.to_server.len() - input.len();
        self.wire.to_server.drain(..used);
        while self.server.wants_write() {
            self.server.write_tls(&mut self.wire.to_client).unwrap();
        }
    }

    fn handshake(&mut self) -> io::Result<()> {
        for _ in 0..100_000 {
            if self.tls.handshake(&mut self.wire, &mut self.buf)? == HandshakeProgress::Done {
                self.serve();
                return Ok(());
            }
            self.serve();
            if self.wire.room == 0 {
                self.wire.room = 1;
            }
        }
        panic!("the handshake does not end");
    }

    fn fault(&mut self) -> TlsFault {
        fault_of(self.handshake().expect_err("a handshake that fails"))
    }

    /// Reads until there is plaintext or the wire is empty.
    fn read(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let read = self.tls.read(&mut self.wire, &mut self.buf);
            if is_blocked(&read) && !self.tls.is_drained() {
                continue;
            }
            return Ok(self.buf[..read?].to_vec());
        }
    }

    fn write(&mut self, parts: &[&[u8]]) -> io::Result<usize> {
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        self.tls.write(&mut self.wire, &mut self.buf, &slices)
    }

    /// The plaintext that the server has received.
    fn received(&mut self) -> Vec<u8> {
        let mut plain = Vec::new();
        loop {
            self.serve();
            let mut some = [0; 4096];
            match self.server.reader().read(&mut some) {
                Ok(n @ 1..) => plain.extend_from_slice(&some[..n]),
                _ => return plain,
            }
        }
    }

    fn send(&mut self, plain: &[u8]) {
        self.server.writer().write_all(plain).unwrap();
        self.serve();
    }
}

/// A client with this configuration and this server, which the client knows as `a.example`.
fn meet(config: &TlsConfig, server: ServerConfig) -> Pair {
    Pair::new(&config.build().unwrap(), server, "a.example")
}

fn fault_of(error: io::Error) -> TlsFault {
    error.downcast::<TlsFault>().expect("a fault of TLS")
}

fn is_blocked<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Bytes without a short period.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251) as u8).collect()
}

// ---- handshakes

#[test]
fn a_name_can_be_an_address_have_a_dot_or_be_another() {
    let authority = Authority::new("authority");
    let leaf = authority.leaf(&["a.example", "127.0.0.1", "::1"], |_| ());
    for name in "a.example A.Example a.example. 127.0.0.1 [::1] ::1".split(' ') {
        let mut pair = Pair::new(&trusting(&authority).build().unwrap(), leaf.server(), name);
        pair.handshake().unwrap();
    }
    let config = TlsConfig {
        server_name: Some("a.example".to_owned()),
        ..trusting(&authority)
    };
    let mut pair = Pair::new(&config.build().unwrap(), leaf.server(), "other.example");
    pair.handshake().unwrap();
    assert_eq!(pair.server.server_name(), Some("a.example"));
    let identity = trusting(&authority).build().unwrap();
    for name in ["", "a b", "a..b", "-", "[::1", "fe80::1%eth0"] {
        let fault = Tls::new(&identity, name).err().unwrap();
        assert_eq!(fault, TlsFault::ServerName(name.to_owned()));
    }
}

#[test]
fn each_bad_certificate_has_its_own_fault() {
    let authority = Authority::new("authority");
    let other = Authority::new("other");
    let trust = trusting(&authority);
    let fault = |config: &TlsConfig, leaf: &Leaf| meet(config, leaf.server()).fault();

    let expired = authority.leaf(&["a.example"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    let years = 5 * 365 * 86_400;
    assert!(matches!(fault(&trust, &expired), TlsFault::Expired { ago } if ago.as_secs() > years));

    let early = authority.leaf(&["a.example"], |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
    });
    assert!(matches!(fault(&trust, &early), TlsFault::NotYetValid { ahead } if !ahead.is_zero()));

    let names = ["b.example", "*.c.example", "10.0.0.1"];
    let wrong = TlsFault::WrongName {
        expected: "a.example".to_owned(),
        presented: names.map(str::to_owned).to_vec(),
    };
    assert_eq!(fault(&trust, &authority.leaf(&names, |_| ())), wrong);

    let foreign = other.leaf(&["a.example"], |_| ());
    for config in [&trust, &TlsConfig::default()] {
        assert_eq!(fault(config, &foreign), TlsFault::UnknownIssuer);
    }

    let for_clients = authority.leaf(&["a.example"], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    let as_authority = authority.leaf(&["a.example"], |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    for leaf in [for_clients, as_authority] {
        assert!(matches!(fault(&trust, &leaf), TlsFault::BadCertificate(_)));
    }
}

/// Of two configurations of rustls, one trusts the authority of the server.
#[test]
fn a_configuration_of_the_caller_decides() {
    let authority = Authority::new("nobody trusts");
    let server = authority.leaf(&["a.example"], |_| ()).server();
    let meet = |roots: RootCertStore| {
        let provider = Arc::new(ring::default_provider());
        let own = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let config = TlsConfig {
            rustls: Some(Arc::new(own)),
            ..TlsConfig::default()
        };
        meet(&config, server.clone())
    };
    let mut trusting = RootCertStore::empty();
    trusting.add(authority.0.der().clone()).unwrap();
    meet(trusting).handshake().unwrap();
    let fault = meet(RootCertStore::empty()).fault();
    assert_eq!(fault, TlsFault::UnknownIssuer);
}

#[test]
fn a_self_signed_certificate_is_trusted_if_configured() {
    let self_signed = |last_year| {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let chain = vec![params.self_signed(&key).unwrap().der().clone()];
        Leaf { chain, key }
    };
    let giving = |given: &Leaf| TlsConfig {
        roots: TlsRoots::None,
        extra_roots: vec![given.chain[0].to_vec().into()],
        ..TlsConfig::default()
    };
    let meet = |config: &TlsConfig, leaf: &Leaf, name| {
        Pair::new(&config.build().unwrap(), leaf.server(), name)
    };
    let fault = |config: &TlsConfig, leaf: &Leaf, name| meet(config, leaf, name).fault();
    let (ours, expired) = (self_signed(4000), self_signed(2020));
    let trust = giving(&ours);
    meet(&trust, &ours, "a.example").handshake().unwrap();
    let wrong = fault(&trust, &ours, "b.example");
    assert!(matches!(wrong, TlsFault::WrongName { .. }));
    let late = fault(&giving(&expired), &expired, "a.example");
    assert!(matches!(late, TlsFault::Expired { .. }));
    let foreign = fault(&giving(&self_signed(4000)), &ours, "a.example");
    assert!(matches!(foreign, TlsFault::BadCertificate(why) if why.contains("self-signed")));
    // Nothing can revoke this certificate.
    let authority = Authority::new("authority");
    let with_lists = TlsConfig {
        crls: vec![authority.crl(&[], 4000)],
        ..trust
    };
    let listed = fault(&with_lists, &ours, "a.example");
    assert!(matches!(listed, TlsFault::BadCertificate(_)));
}

#[test]
fn a_refused_certificate_sends_an_alert() {
    let authority = Authority::new("authority");
    let leaf = Authority::new("other").leaf(&["a.example"], |_| ());
    let mut pair = meet(&trusting(&authority), leaf.server());
    pair.fault();
    pair.serve();
    let alert = rustls::Error::AlertReceived(rustls::AlertDescription::UnknownCA);
    assert_eq!(pair.server_error, Some(alert));
    // Every further call returns the same fault.
    assert_eq!(fault_of(pair.read().unwrap_err()), TlsFault::UnknownIssuer);
    assert_eq!(
        fault_of(pair.write(&[b"x"]).unwrap_err()),
        TlsFault::UnknownIssuer
    );
}

#[test]
fn revocation_lists_are_applied() {
    let (authority, leaf) = trusted();
    let outcome = |crls: Vec<PemOrDer>, allow_unknown_revocation| {
        let config = TlsConfig {
            crls,
            allow_unknown_revocation,
            ..trusting(&authority)
        };
        let mut pair = meet(&config, leaf.server());
        pair.handshake().map_err(fault_of)
    };
    assert_eq!(outcome(vec![authority.crl(&[8], 4000)], false), Ok(()));
    assert_eq!(
        outcome(vec![authority.crl(&[8, 7], 4000)], false),
        Err(TlsFault::Revoked)
    );
    assert!(matches!(
        outcome(vec![authority.crl(&[8], 2021)], false),
        Err(TlsFault::CrlExpired { ago }) if !ago.is_zero()
    ));
    let unrelated = Authority::new("other").crl(&[7], 4000);
    assert_eq!(
        outcome(vec![unrelated.clone()], false),
        Err(TlsFault::RevocationUnknown)
    );
    assert_eq!(outcome(vec![unrelated], true), Ok(()));
}

#[test]
fn insecure_accepts_any_certificate_but_no_wrong_signature() {
    let authority = Authority::new("authority");
    let config = TlsConfig {
        insecure: true,
        ..TlsConfig::default()
    };
    let bad = authority.leaf(&["b.example"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        let server = bad.server_with(versions, None);
        meet(&config, server).handshake().unwrap();
        // A certificate whose key the server does not have.
        let stolen = Leaf {
            chain: bad.chain.clone(),
            key: KeyPair::generate().unwrap(),
        };
        let mut server = bad.server_with(versions, None);
        let key = ring::default_provider()
            .key_provider
            .load_private_key(stolen.key())
            .unwrap();
        let shown = rustls::sign::CertifiedKey::new(stolen.chain, key);
        server.cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(shown));
        let fault = meet(&config, server).fault();
        assert!(matches!(fault, TlsFault::BadCertificate(_)), "{fault:?}");
    }
}

#[test]
fn versions_can_be_limited_and_must_meet() {
    let (authority, leaf) = trusted();
    let config = |min_version, max_version| {
        let config = TlsConfig {
            min_version,
            max_version,
            ..trusting(&authority)
        };
        config.build().unwrap()
    };
    let only_1_2 = config(TlsVersion::V1_2, TlsVersion::V1_2);
    let mut pair = Pair::new(&only_1_2, leaf.server(), "a.example");
    pair.handshake().unwrap();
    assert_eq!(pair.tls.info().unwrap().version, TlsVersion::V1_2);
    let only_1_3 = config(TlsVersion::V1_3, TlsVersion::V1_3);
    for (identity, server) in [(only_1_2, &version::TLS13), (only_1_3, &version::TLS12)] {
        let server = leaf.server_with(&[server], None);
        let fault = Pair::new(&identity, server, "a.example").fault();
        assert!(matches!(fault, TlsFault::ProtocolMismatch(_)), "{fault:?}");
    }
}

#[test]
fn a_server_may_ignore_alpn_but_not_choose_another_protocol() {
    let (authority, leaf) = trusted();
    let outcome = |alpn, protocols: &[&[u8]]| {
        let mut server = leaf.server();
        server.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let config = TlsConfig {
            alpn,
            ..trusting(&authority)
        };
        let mut pair = meet(&config, server);
        let outcome = pair.handshake().map_err(fault_of);
        outcome.map(|()| pair.tls.info().unwrap().alpn)
    };
    let both: [&[u8]; 2] = [b"h2", b"http/1.1"];
    assert_eq!(outcome(true, &[]), Ok(None));
    assert_eq!(outcome(true, &both), Ok(Some(b"http/1.1".to_vec())));
    assert_eq!(outcome(true, &[b"h2"]), Err(TlsFault::Alpn));
    // Nothing is offered if told so.
    assert_eq!(outcome(false, &both), Ok(None));
}

#[test]
fn the_client_shows_its_certificate() {
    let (authority, leaf) = trusted();
    let own = authority.leaf(&["client"], |_| ());
    let with = TlsConfig {
        client: Some(ClientCertificate {
            chain: own.chain[0].to_vec().into(),
            key: own.key.serialize_pem().into_bytes().into(),
        }),
        ..trusting(&authority)
    };
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        let server = leaf.server_with(versions, Some(&authority));
        let mut pair = meet(&with, server);
        pair.handshake().unwrap();
        assert_eq!(pair.server.peer_certificates(), Some(&own.chain[..]));
    }
    // Without a certificate, TLS 1.2 fails during the handshake, and TLS 1.3 after it (RFC 8446 §4.4.2.4).
    let without = trusting(&authority).build().unwrap();
    let server = leaf.server_with(&[&version::TLS12], Some(&authority));
    let fault = Pair::new(&without, server, "a.example").fault();
    assert!(matches!(fault, TlsFault::Alert(_)), "{fault:?}");
    let server = leaf.server_with(&[&version::TLS13], Some(&authority));
    let mut pair = Pair::new(&without, server, "a.example");
    pair.handshake().unwrap();
    let fault = fault_of(pair.read().unwrap_err());
    assert_eq!(fault, TlsFault::Alert(TlsAlert(116)));
}

#[test]
fn sessions_are_resumed_unless_disabled() {
    let (authority, leaf) = trusted();
    for version in [&version::TLS12, &version::TLS13] {
        let server = Arc::new(leaf.server_with(&[version], None));
        let identity = trusting(&authority).build().unwrap();
        let visit = |identity: &TlsIdentity| {
            let mut pair = Pair::shared(identity, &server, "a.example");
            pair.handshake().unwrap();
            pair.write(&[b"x"]).unwrap();
            assert_eq!(pair.received(), b"x");
            assert!(is_blocked(&pair.read())); // takes the tickets
            let resumed = pair.tls.info().unwrap().resumed;
            let kind = pair.server.handshake_kind();
            assert_eq!(resumed, kind == Some(HandshakeKind::Resumed));
            assert_eq!(pair.tls.info().unwrap().certificates.len(), 1);
            resumed
        };
        assert!(!visit(&identity));
        assert!(visit(&identity));
        assert!(visit(&identity.clone()));
        let config = TlsConfig {
            resumption: 0,
            ..trusting(&authority)
        };
        let forgetful = config.build().unwrap();
        assert!(!visit(&forgetful));
        assert!(!visit(&forgetful));
    }
}

/// How a handshake fails with a peer that says this and ends the connection, in reads of at most so many bytes.
fn fault_after(answer: &[u8], step: usize) -> TlsFault {
    let mut tls = Tls::new(&TlsConfig::default().build().unwrap(), "a.example").unwrap();
    let mut wire = Wire::new();
    let mut buf = vec![0; MIN_BUFFER];
    let progress = tls.handshake(&mut wire, &mut buf).unwrap();
    assert_eq!(progress, HandshakeProgress::Blocked);
    wire.to_client.extend(answer);
    wire.eof = true;
    wire.read_step = step;
    fault_of(tls.handshake(&mut wire, &mut buf).unwrap_err())
}

/// A TLS record that is not a ServerHello: an alert.
const ALERT: &[u8] = b"\x15\x03\x03\x00\x02\x02\x28";

#[test]
fn bytes_that_are_not_tls() {
    for step in [1, 2, 5, usize::MAX] {
        for (answer, fault) in [
            (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], TlsFault::NotTls),
            (b"220 mail.example ESMTP\r\n", TlsFault::NotTls),
            (&[0xff; 100], TlsFault::NotTls),
            (b"", TlsFault::HandshakeEof),
            (b"\x16\x03\x03\x00\x40", TlsFault::HandshakeEof),
            (ALERT, TlsFault::Alert(TlsAlert(40))),
        ] {
            assert_eq!(fault_after(answer, step), fault);
        }
        let early = fault_after(b"\x17\x03\x03\x00\x02ab", step);
        assert!(matches!(early, TlsFault::BadRecord(_)), "{early:?}");
        let nonsense = fault_after(b"\x16\x03\x03\x00\x08\x02\x00\x00\x04abcd", step);
        assert!(
            matches!(nonsense, TlsFault::BadRecord(_) | TlsFault::NotTls),
            "{nonsense:?}"
        );
    }
}

/// A handshake message that is longer than the buffer ends the session and causes no endless loop.
#[test]
fn a_message_too_large_for_the_buffer_ends_the_session() {
    let first = b"\x16\x03\x03\x40\x00\x02\x00\xff\xff";
    let mut answer = [&first[..], &[0; 16_380]].concat();
    for _ in 0..4 {
        answer.extend(b"\x16\x03\x03\x40\x00");
        answer.extend([0; 16_384]);
    }
    let fault = fault_after(&answer, usize::MAX);
    assert!(matches!(fault, TlsFault::BadRecord(_)), "{fault:?}");
}

#[test]
fn an_alert_is_read_after_a_failed_write() {
    let identity = TlsConfig::default().build().unwrap();
    let outcome = |answer: &[u8]| {
        let mut tls = Tls::new(&identity, "a.example").unwrap();
        let mut wire = Wire::new();
        wire.broken = true;
        wire.eof = true;
        wire.to_client.extend(answer);
        tls.handshake(&mut wire, &mut vec![0; MIN_BUFFER])
            .unwrap_err()
    };
    assert_eq!(fault_of(outcome(ALERT)), TlsFault::Alert(TlsAlert(40)));
    assert_eq!(outcome(b"").kind(), io::ErrorKind::BrokenPipe);
}

// ---- bytes at every pace

#[test]
fn a_handshake_at_every_pace() {
    let (authority, leaf) = trusted();
    let identity = trusting(&authority).build().unwrap();
    for version in [&version::TLS12, &version::TLS13] {
        for step in [1, 2, 3, 5, 7, 61, 1009] {
            let server = leaf.server_with(&[version], None);
            let mut pair = Pair::new(&identity, server, "a.example");
            pair.wire.read_step = step;
            pair.wire.write_step = step;
            pair.wire.room = 0;
            pair.handshake().unwrap();
            pair.wire.room = usize::MAX;
            pair.wire.write_step = usize::MAX;
            assert_eq!(pair.write(&[b"hello"]).unwrap(), 5);
            assert_eq!(pair.received(), b"hello");
            // Small records, and one of the largest size.
            let sent = pattern(20_000);
            sent[..3000].chunks(40).for_each(|piece| pair.send(piece));
            pair.send(&sent[3000..]);
            let mut got = Vec::new();
            while let Ok(more) = pair.read() {
                assert!(!more.is_empty());
                got.extend(more);
            }
            assert!(got == sent, "{step}");
        }
    }
}

/// After a read that has drained the stream, no further read is needed; after any other read, there is one.
#[test]
fn drained_means_that_nothing_is_left() {
    let mut pair = Pair::ready();
    assert!(is_blocked(&pair.read())); // takes the tickets
    pair.send(b"one");
    pair.wire.reads = 0;
    assert_eq!(pair.read().unwrap(), b"one");
    assert!(pair.tls.is_drained());
    assert_eq!(pair.wire.reads, 1);
    let long = pattern(200_000);
    pair.send(&long[..60_000]);
    pair.send(&long[60_000..120_000]);
    let mut got = Vec::new();
    loop {
        got.extend(pair.read().unwrap());
        if pair.tls.is_drained() {
            break;
        }
    }
    assert_eq!(got, &long[..120_000]);
    // The end came with the last bytes: the read that returns these bytes must not report an empty stream.
    pair.send(b"last");
    pair.server.send_close_notify();
    pair.serve();
    assert_eq!(pair.read().unwrap(), b"last");
    assert!(!pair.tls.is_drained());
    assert_eq!(pair.read().unwrap(), b"");
}

#[test]
fn a_write_counts_whole_records_only() {
    let mut pair = Pair::ready();
    // Room for less than the record.
    pair.wire.room = 20;
    assert!(is_blocked(&pair.write(&[b"request", b" body"])));
    assert!(is_blocked(&pair.write(&[b"request", b" body"])));
    assert_eq!(pair.wire.room, 0);
    assert_eq!(pair.received(), b"");
    pair.wire.room = usize::MAX;
    assert_eq!(
        pair.write(&[b"request", b" body", b" and more"]).unwrap(),
        21
    );
    assert_eq!(pair.received(), b"request body and more");
    assert_eq!(pair.tls.out.bytes.capacity(), 0);
}

/// One write for as many records as the buffer holds, and a record for as many parts as it holds.
#[test]
fn records_go_out_together() {
    let mut pair = Pair::ready();
    let body = pattern(64 * 1024);
    pair.wire.writes = 0;
    let n = pair.write(&[&body]).unwrap();
    assert_eq!((n, pair.wire.writes), (body.len(), 1));
    assert_eq!(pair.received(), body);

    // Requests that are written together, as a client that pipelines does.
    let request = b"GET /a/path/like/many/others HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let requests = request.repeat(500);
    let parts: Vec<_> = requests.chunks(60).collect();
    pair.wire.writes = 0;
    let n = pair.write(&parts).unwrap();
    assert_eq!((n, pair.wire.writes), (requests.len(), 1));
    let records = n.div_ceil(MAX_PLAINTEXT);
    assert_eq!(pair.wire.to_server.len(), n + records * (5 + 1 + 16));
    assert_eq!(pair.received(), requests);
}

#[test]
fn a_write_error_is_returned_after_counted_bytes() {
    let mut pair = Pair::ready();
    let body = pattern(40_000);
    pair.wire.room = 20_000;
    assert_eq!(pair.write(&[&body]).unwrap(), MAX_PLAINTEXT);
    pair.wire.broken = true;
    let error = pair.write(&[&body[MAX_PLAINTEXT..]]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    // A caller that does not repeat its bytes gets an error.
    pair.wire.broken = false;
    pair.wire.room = usize::MAX;
    let error = pair.write(&[b"another"]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

// ---- what comes after the handshake

#[test]
fn the_end_is_clean_only_with_close_notify() {
    for version in [&version::TLS12, &version::TLS13] {
        let mut pair = Pair::ready_with(&[version]);
        pair.send(b"all");
        pair.server.send_close_notify();
        pair.serve();
        pair.wire.eof = true;
        assert_eq!(pair.read().unwrap(), b"all");
        assert_eq!(pair.read().unwrap(), b"");
        assert_eq!(pair.read().unwrap(), b"");

        let mut pair = Pair::ready_with(&[version]);
        pair.send(b"some");
        pair.wire.eof = true;
        assert_eq!(pair.read().unwrap(), b"some");
        let error = pair.read().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(fault_of(error), TlsFault::Truncated);

        // In the middle of a record.
        let mut pair = Pair::ready_with(&[version]);
        pair.send(b"some");
        pair.wire.to_client.pop_back();
        pair.wire.eof = true;
        assert_eq!(fault_of(pair.read().unwrap_err()), TlsFault::Truncated);
    }
}

#[test]
fn closing_sends_close_notify() {
    for version in [&version::TLS12, &version::TLS13] {
        let mut pair = Pair::ready_with(&[version]);
        pair.tls.close_notify(&mut pair.wire);
        pair.serve();
        let state = pair.server.process_new_packets().unwrap();
        assert!(state.peer_has_closed());
        // Not before the handshake, not twice, and not after an incomplete record.
        let n = pair.wire.to_server.len();
        pair.tls.close_notify(&mut pair.wire);
        assert_eq!(pair.wire.to_server.len(), n);
        let mut pair = Pair::ready_with(&[version]);
        pair.wire.room = 10;
        assert!(is_blocked(&pair.write(&[b"request"])));
        pair.wire.room = usize::MAX;
        pair.tls.close_notify(&mut pair.wire);
        assert_eq!(pair.wire.to_server.len(), 10);
    }
}

#[test]
fn a_tampered_record_ends_the_session_after_the_data_before_it() {
    for version in [&version::TLS12, &version::TLS13] {
        let mut pair = Pair::ready_with(&[version]);
        pair.send(b"good");
        let before = pair.wire.to_client.len();
        pair.send(b"changed");
        pair.wire.to_client[before + 10] ^= 1;
        assert_eq!(pair.read().unwrap(), b"good");
        assert!(!pair.tls.is_drained());
        let fault = fault_of(pair.read().unwrap_err());
        assert!(matches!(fault, TlsFault::BadRecord(_)), "{fault:?}");
        pair.serve();
        assert!(matches!(
            pair.server_error,
            Some(rustls::Error::AlertReceived(
                rustls::AlertDescription::BadRecordMac
            ))
        ));
    }
}

/// A request for renegotiation is refused (RFC 5246 §7.4.1.1), and the session continues. A server that keeps asking
/// ends the session.
#[test]
fn renegotiation_is_refused() {
    let mut pair = Pair::ready_with(&[&version::TLS12]);
    let mut peer = Forger::take(&mut pair);
    peer.send(&mut pair, 22, b"\0\0\0\0");
    peer.send(&mut pair, 23, b"still here");
    assert_eq!(pair.read().unwrap(), b"still here");
    assert!(!pair.wire.to_server.is_empty(), "the refusal went out");
    let fault = (0..10).find_map(|_| {
        peer.send(&mut pair, 22, b"\0\0\0\0");
        pair.read()
            .err()
            .filter(|error| error.kind() != io::ErrorKind::WouldBlock)
    });
    let expected = TlsFault::Contentless(ContentlessRecords::Renegotiations);
    assert_eq!(fault_of(fault.unwrap()), expected);
}

/// The answer to a KeyUpdate goes before the next write, and the session continues with the new keys.
#[test]
fn key_updates_are_answered() {
    let mut pair = Pair::ready_with(&[&version::TLS13]);
    for round in 0..5 {
        pair.server.refresh_traffic_keys().unwrap();
        pair.send(b"under new keys");
        assert_eq!(pair.read().unwrap(), b"under new keys");
        assert_eq!(
            pair.write(&[b"as ", b"are these"]).unwrap(),
            12,
            "round {round}"
        );
        assert_eq!(pair.received(), b"as are these");
        assert_eq!(pair.server_error, None);
    }
    // The answer waits because the wire is full.
    pair.server.refresh_traffic_keys().unwrap();
    pair.send(b"again");
    pair.wire.room = 5;
    assert_eq!(pair.read().unwrap(), b"again");
    assert!(is_blocked(&pair.write(&[b"late"])));
    pair.wire.room = usize::MAX;
    assert_eq!(pair.write(&[b"late"]).unwrap(), 4);
    assert_eq!(pair.received(), b"late");
}

/// A handshake message may come in pieces, with writes of the client between them.
#[test]
fn a_ticket_in_pieces_does_not_stop_a_write() {
    let mut pair = Pair::ready_with(&[&version::TLS13]);
    assert!(is_blocked(&pair.read()));
    let mut peer = Forger::take(&mut pair);
    for cut in 1..TICKET.len() {
        peer.send(&mut pair, 22, &TICKET[..cut]);
        assert!(is_blocked(&pair.read()));
        let before = pair.wire.to_server.len();
        assert_eq!(pair.write(&[b"abc"]).unwrap(), 3);
        assert_eq!(pair.wire.to_server.len() - before, 5 + 3 + 17);
        peer.send(&mut pair, 22, &TICKET[cut..]);
        assert!(is_blocked(&pair.read()), "cut at {cut}");
        assert_eq!(pair.tls.leftover.capacity(), 0);
        peer.send(&mut pair, 23, b"xyz");
        assert_eq!(pair.read().unwrap(), b"xyz");
    }
}

#[test]
fn alerts_after_the_handshake() {
    for version in [&version::TLS12, &version::TLS13] {
        // A fatal alert after data.
        let mut pair = Pair::ready_with(&[version]);
        let mut peer = Forger::take(&mut pair);
        peer.send(&mut pair, 23, b"data");
        peer.send(&mut pair, 21, &[2, 80]);
        assert_eq!(pair.read().unwrap(), b"data");
        let fault = fault_of(pair.read().unwrap_err());
        assert_eq!(fault, TlsFault::Alert(TlsAlert(80)));
        // Bytes after close_notify are ignored.
        let mut pair = Pair::ready_with(&[version]);
        let mut peer = Forger::take(&mut pair);
        peer.send(&mut pair, 21, &[1, 0]);
        peer.send(&mut pair, 23, b"too late");
        assert_eq!(pair.read().unwrap(), b"");
        assert_eq!(pair.read().unwrap(), b"");
    }
}

/// Too many records without content end the session.
#[test]
fn records_without_content_are_limited() {
    let fault_after = |content_type, plain: &[u8], version| {
        let mut pair = Pair::ready_with(&[version]);
        let mut peer = Forger::take(&mut pair);
        for _ in 0..1000 {
            peer.send(&mut pair, content_type, plain);
        }
        fault_of(pair.read().unwrap_err())
    };
    for (content_type, plain, records, version) in [
        (23, &b""[..], ContentlessRecords::Empty, &version::TLS12),
        (23, b"", ContentlessRecords::Empty, &version::TLS13),
        (22, b"", ContentlessRecords::Empty, &version::TLS13),
        (21, &[1, 90], ContentlessRecords::Warnings, &version::TLS12),
        (21, &[1, 90], ContentlessRecords::Warnings, &version::TLS13),
        (22, TICKET, ContentlessRecords::Tickets, &version::TLS13),
    ] {
        let fault = fault_after(content_type, plain, version);
        assert_eq!(fault, TlsFault::Contentless(records), "{version:?}");
    }
    let mut pair = Pair::ready_with(&[&version::TLS13]);
    for _ in 0..100 {
        pair.server.refresh_traffic_keys().unwrap();
        pair.serve();
    }
    let fault = fault_of(pair.read().unwrap_err());
    assert_eq!(fault, TlsFault::Contentless(ContentlessRecords::KeyUpdates));
    // Of all kinds together, each of which makes the others look harmless to rustls.
    let mut contentless = Contentless::default();
    for has_content in [false, true, false] {
        assert_eq!(contentless.count(200_000, has_content, 0), None);
    }
    let any = TlsFault::Contentless(ContentlessRecords::Any);
    assert_eq!(contentless.count(100_000, false, 0), Some(any));
}

/// As many tickets as any server sends, in the midst of content, do no harm, and one read reads the stream once.
#[test]
fn tickets_within_the_limit_are_taken() {
    let mut pair = Pair::ready_with(&[&version::TLS13]);
    assert!(is_blocked(&pair.read())); // the server's own tickets
    let own = pair.tls.conn.tls13_tickets_received();
    let mut peer = Forger::take(&mut pair);
    let most = 256 - own as usize;
    peer.send(&mut pair, 22, &TICKET.repeat(most));
    peer.send(&mut pair, 23, b"content");
    assert_eq!(pair.read().unwrap(), b"content");
    // The limit is over the whole session, so the content in between does not matter. The content with the ticket that
    // is one too many still arrives.
    peer.send(&mut pair, 23, b"last");
    peer.send(&mut pair, 22, TICKET);
    assert_eq!(pair.read().unwrap(), b"last");
    let fault = fault_of(pair.read().unwrap_err());
    assert_eq!(fault, TlsFault::Contentless(ContentlessRecords::Tickets));
}

/// A read returns after one read of the stream, though what came brought nothing.
#[test]
fn a_read_without_content_returns() {
    let mut pair = Pair::ready_with(&[&version::TLS13]);
    assert!(is_blocked(&pair.read()));
    let mut peer = Forger::take(&mut pair);
    for _ in 0..10 {
        peer.send(&mut pair, 22, TICKET);
    }
    (pair.wire.read_step, pair.wire.reads) = (50, 0);
    let read = pair.tls.read(&mut pair.wire, &mut pair.buf);
    assert!(is_blocked(&read) && !pair.tls.is_drained());
    assert_eq!(pair.wire.reads, 1);
    assert!(is_blocked(&pair.read()) && pair.tls.is_drained());
}

/// A message of type NewSessionTicket (RFC 8446 §4.6.1).
const TICKET: &[u8] = b"\x04\0\0\x17\0\0\x0e\x10\0\0\0\0\x01n\0\x09the ticke\0\0";

/// Data that the server sends together with the end of its handshake is returned by the first read.
#[test]
fn data_sent_with_the_handshake_is_kept() {
    let (authority, leaf) = trusted();
    let mut server = leaf.server_with(&[&version::TLS13], None);
    server.send_half_rtt_data = true;
    let mut pair = meet(&trusting(&authority), server);
    let progress = pair.tls.handshake(&mut pair.wire, &mut pair.buf).unwrap();
    assert_eq!(progress, HandshakeProgress::Blocked);
    pair.serve();
    pair.send(&pattern(30_000)); // before the client's Finished, which TLS 1.3 allows
    let progress = pair.tls.handshake(&mut pair.wire, &mut pair.buf).unwrap();
    assert_eq!(progress, HandshakeProgress::Done);
    assert!(!pair.tls.is_drained());
    assert_eq!(pair.write(&[b"x"]).unwrap(), 1);
    assert_eq!(pair.received(), b"x");
    assert_eq!(pair.read().unwrap(), pattern(30_000));
    assert!(is_blocked(&pair.read()));
    assert_eq!(pair.tls.early_plaintext.capacity(), 0);
}

/// Encrypts records that no rustls server would send, with the keys of such a server.
struct Forger {
    seal: Box<dyn rustls::crypto::cipher::MessageEncrypter>,
    sequence: u64,
}

impl Forger {
    /// Replaces the server of the pair.
    fn take(pair: &mut Pair) -> Self {
        use rustls::{ConnectionTrafficSecrets, SupportedCipherSuite};
        let idle = ServerConnection::new(Arc::new(
            Authority::new("idle").leaf(&["idle"], |_| ()).server(),
        ));
        let server = std::mem::replace(&mut pair.server, idle.unwrap());
        let suite = server.negotiated_cipher_suite().unwrap();
        let (sequence, secrets) = server.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else {
            panic!("the tests use one cipher suite");
        };
        let seal = match suite {
            SupportedCipherSuite::Tls12(suite) => suite.aead_alg.encrypter(key, iv.as_ref(), &[]),
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, iv),
        };
        Self { seal, sequence }
    }

    fn send(&mut self, pair: &mut Pair, content_type: u8, plain: &[u8]) {
        use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
        let message = OutboundPlainMessage {
            typ: content_type.into(),
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(plain),
        };
        let record = self.seal.encrypt(message, self.sequence).unwrap();
        self.sequence += 1;
        pair.wire.to_client.extend(record.encode());
    }
}

// ---- what the environment says

/// Runs a test of this file again in a process with this environment variable. True in that process.
fn with_variable(test: &str, name: &str, value: &std::path::Path) -> bool {
    const CHILD: &str = "COURSER_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("net::tls::tests::{test}")])
        .env(CHILD, "1")
        .env_remove("SSL_CERT_DIR")
        .env(name, value)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    false
}

#[test]
fn a_key_log_that_cannot_be_written_is_an_error() {
    let path = std::path::Path::new("/no/such/directory/keys");
    if with_variable(
        "a_key_log_that_cannot_be_written_is_an_error",
        "SSLKEYLOGFILE",
        path,
    ) {
        let mut config = TlsConfig {
            key_log: true,
            ..TlsConfig::default()
        };
        let error = config.build().unwrap_err();
        assert_eq!((error.part(), error.path()), (TlsPart::KeyLog, Some(path)));
        config.key_log = false;
        config.build().unwrap();
    }
}

#[cfg(feature = "native-roots")]
mod native_roots {
    use std::path::Path;

    use super::*;

    /// A configuration that trusts the authorities of the system.
    fn native() -> TlsConfig {
        TlsConfig {
            roots: TlsRoots::Native,
            ..TlsConfig::default()
        }
    }

    /// The test is its own process: it writes the certificate to the file before the file is read.
    #[test]
    fn the_system_s_authorities_are_trusted() {
        let path = std::env::temp_dir().join(format!("courser-roots-{}.pem", std::process::id()));
        let name = "native_roots::the_system_s_authorities_are_trusted";
        if !with_variable(name, "SSL_CERT_FILE", &path) {
            return;
        }
        let path = std::env::var_os("SSL_CERT_FILE").unwrap();
        let (authority, other) = (Authority::new("authority"), Authority::new("other"));
        std::fs::write(&path, authority.0.pem()).unwrap();
        let identity = native().build();
        std::fs::remove_file(&path).unwrap();
        let identity = identity.unwrap();
        let leaf = |authority: &Authority| authority.leaf(&["a.example"], |_| ()).server();
        Pair::new(&identity, leaf(&authority), "a.example")
            .handshake()
            .unwrap();
        let fault = Pair::new(&identity, leaf(&other), "a.example").fault();
        assert_eq!(fault, TlsFault::UnknownIssuer);
    }

    #[test]
    fn without_authorities_there_is_an_error() {
        let name = "native_roots::without_authorities_there_is_an_error";
        for file in ["/no/such/file.pem", "/dev/null"] {
            if with_variable(name, "SSL_CERT_FILE", Path::new(file)) {
                let error = native().build().unwrap_err();
                assert_eq!(error.part(), TlsPart::Roots);
                let path = std::env::var("SSL_CERT_FILE").unwrap();
                let is_missing = !Path::new(&path).exists();
                assert_eq!(error.to_string().contains(&path), is_missing, "{error}");
                return;
            }
        }
    }
}
