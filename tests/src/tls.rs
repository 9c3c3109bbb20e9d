//! TLS for scripted servers: authorities, certificates of every kind, and the server's side of sessions, which
//! [`Script::tls`](crate::script::Script::tls) lays over a connection, also one over another.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser::{ClientCertificate, TlsConfig, TlsRoots};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use socket2::Socket;

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// One that signs itself.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// A configuration that trusts this authority alone.
    pub fn trusted(&self) -> TlsConfig {
        TlsConfig {
            roots: TlsRoots::None,
            extra_roots: vec![self.pem().into_bytes().into()],
            ..TlsConfig::default()
        }
    }

    /// Its certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these names, or addresses.
    pub fn leaf(&self, names: &[&str]) -> Leaf {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.0).expect("a certificate");
        Leaf {
            certificate: signed.der().clone(),
            pem: signed.pem(),
            key,
        }
    }
}

/// A certificate of a server or of a client, with its key.
pub struct Leaf {
    certificate: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

impl Leaf {
    /// The certificate and its key, for our side.
    pub fn for_client(&self) -> ClientCertificate {
        ClientCertificate {
            chain: self.pem.clone().into_bytes().into(),
            key: self.key.serialize_pem().into_bytes().into(),
        }
    }

    /// Writes both to files, for servers that are programs.
    pub fn write_to(&self, directory: &Path) -> io::Result<(PathBuf, PathBuf)> {
        let (chain, key) = (directory.join("chain.pem"), directory.join("key.pem"));
        std::fs::write(&chain, &self.pem)?;
        std::fs::write(&key, self.key.serialize_pem())?;
        Ok((chain, key))
    }

    /// A server that shows this certificate, speaks both versions, prefers `h2` and remembers sessions.
    pub fn acceptor(&self) -> Acceptor {
        self.acceptor_of(None, false)
    }

    /// The same; demands certificates of that authority.
    pub fn acceptor_demanding(&self, clients: &Authority) -> Acceptor {
        self.acceptor_of(Some(clients), true)
    }

    /// The same; asks for certificates of that authority, and does without.
    pub fn acceptor_asking(&self, clients: &Authority) -> Acceptor {
        self.acceptor_of(Some(clients), false)
    }

    fn acceptor_of(&self, clients: Option<&Authority>, must: bool) -> Acceptor {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).expect("a root");
                let roots = Arc::new(roots);
                let mut verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                if !must {
                    verifier = verifier.allow_unauthenticated();
                }
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).expect("a key");
        let chain = vec![self.certificate.clone()];
        let mut config = builder.with_single_cert(chain, key).expect("a certificate");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Acceptor {
            config: Arc::new(config),
        }
    }
}

/// The server's side of TLS. Clones share the sessions that they remember.
#[derive(Clone)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
}

impl Acceptor {
    /// Changes its configuration; what it remembers stays.
    pub fn edit(mut self, edit: impl FnOnce(&mut ServerConfig)) -> Self {
        edit(Arc::make_mut(&mut self.config));
        self
    }
}

/// What a server saw of a handshake that it completed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Session {
    /// By a session from before.
    pub resumed: bool,
    /// The name that the client asked for.
    pub server_name: Option<String>,
    /// How many certificates the client showed.
    pub client_certificates: usize,
}

/// A connection, or a session over one.
pub(crate) enum Layers {
    Plain(Arc<Socket>),
    Secure(Box<StreamOwned<ServerConnection, Self>>),
}

impl Layers {
    pub(crate) fn socket(&self) -> &Arc<Socket> {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(stream) => stream.sock.socket(),
        }
    }

    /// Serves a handshake over what there is.
    pub(crate) fn accept(&mut self, acceptor: &Acceptor) -> io::Result<Session> {
        let mut session =
            ServerConnection::new(Arc::clone(&acceptor.config)).map_err(io::Error::other)?;
        let done = session.complete_io(self);
        // Tickets, or the alert that says why.
        while session.wants_write() {
            session.write_tls(self)?;
        }
        done?;
        let seen = Session {
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
            server_name: session.server_name().map(str::to_owned),
            client_certificates: session.peer_certificates().map_or(0, <[_]>::len),
        };
        let below = Self::Plain(Arc::clone(self.socket()));
        let below = std::mem::replace(self, below);
        *self = Self::Secure(Box::new(StreamOwned::new(session, below)));
        Ok(seen)
    }

    /// Ends the innermost session as it should be ended.
    pub(crate) fn close_notify(&mut self) -> io::Result<()> {
        if let Self::Secure(stream) = self {
            stream.conn.send_close_notify();
            while stream.conn.wants_write() {
                stream.conn.write_tls(&mut stream.sock)?;
            }
        }
        Ok(())
    }
}

impl Read for Layers {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => (&**socket).read(buf),
            Self::Secure(stream) => match stream.read(buf) {
                // The end of the connection without `close_notify`.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for Layers {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => (&**socket).write(buf),
            Self::Secure(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Secure(stream) => stream.flush(),
        }
    }
}
