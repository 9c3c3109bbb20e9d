//! The TLS options that a user sets, and the identity that is built from them once for many connections.

pub(super) mod pins;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::{
    CryptoProvider, SupportedKxGroup, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, KeyLogFile, RootCertStore,
    SignatureScheme, SupportedCipherSuite, SupportedProtocolVersion, version,
};

use super::{ALPN, parse_name};
use crate::error::{TlsConfigCause, TlsConfigError, TlsPart};

/// What a TLS client trusts, offers and sends.
///
/// ```
/// use courser::{TlsConfig, TlsVersion};
///
/// let config = TlsConfig {
///     min_version: TlsVersion::V1_3,
///     ..TlsConfig::default()
/// };
/// let identity = config.build()?;
/// assert_eq!(identity, identity.clone());
/// assert_ne!(identity, config.build()?);
/// # Ok::<(), courser::error::TlsConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Which certificate authorities are trusted, in addition to `extra_roots`. Default: Mozilla's, compiled in.
    pub roots: TlsRoots,
    /// Further trusted certificates: of authorities, or of servers themselves, also self-signed ones. Default: none.
    pub extra_roots: Vec<PemOrDer>,
    /// The client's certificate, for servers that ask for one. Default: none.
    pub client: Option<ClientCertificate>,
    /// Certificate revocation lists. If there are any, every certificate of a chain must be covered by a list that is
    /// up to date, unless `allow_unknown_revocation` is set. Self-signed certificates of authorities are then not
    /// accepted. Default: none.
    pub crls: Vec<PemOrDer>,
    /// Accept certificates that no list in `crls` covers. Default: no.
    pub allow_unknown_revocation: bool,
    /// The name that is sent as SNI and that the certificate must be for, instead of the name of the host. Default:
    /// none.
    pub server_name: Option<String>,
    /// Accept any certificate. Anyone between client and server can then read and change everything. Default: no.
    pub insecure: bool,
    /// The public keys that a server may have, of which one must match: as in curl's `--pinnedpubkey`, `sha256//` and the
    /// base64 of the SHA-256 of the whole `SubjectPublicKeyInfo` in DER (RFC 7469 §2.4). They are checked in addition to
    /// the certificate, and also if `insecure` is set. Default: none, every key is accepted.
    pub pinned_keys: Vec<String>,
    /// The cipher suites offered, by their names in the IANA registry, like `TLS13_AES_128_GCM_SHA256` or
    /// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`, the preferred ones first. [`tls_cipher_suites`] lists those that exist; other
    /// names are errors. Default: none named, which offers all.
    pub cipher_suites: Vec<String>,
    /// The groups of the key exchange offered, by their names in the IANA registry: `X25519`, `secp256r1`, `secp384r1`.
    /// Default: none named, which offers all.
    pub key_exchange: Vec<String>,
    /// Offer the protocol `http/1.1` (ALPN, RFC 7301). Default: yes.
    pub alpn: bool,
    /// The lowest version offered. Default: TLS 1.2.
    pub min_version: TlsVersion,
    /// The highest version offered. Default: TLS 1.3.
    pub max_version: TlsVersion,
    /// How many sessions are remembered for shorter handshakes with the same name later: up to eight for one name; the
    /// oldest name is dropped first. 0 remembers none. A session holds the server's ticket and certificates: some
    /// kilobytes, at most 128 KiB. At most 65,536; default 1024.
    pub resumption: usize,
    /// Write the keys of all sessions to the file that the environment variable `SSLKEYLOGFILE` names, if it is set.
    /// Default: no.
    pub key_log: bool,
    /// A configuration of rustls in place of all the options above but `server_name`, which must have their defaults:
    /// with a verifier, a cryptography provider or a session store of the caller. It may not offer HTTP/2 (ALPN). The
    /// type is that of [`rustls`](crate::rustls) in this crate. Default: none.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use courser::{TlsConfig, rustls};
    ///
    /// let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    /// let provider = Arc::new(rustls::crypto::ring::default_provider());
    /// let own = rustls::ClientConfig::builder_with_provider(provider)
    ///     .with_protocol_versions(&[&rustls::version::TLS13])?
    ///     .with_root_certificates(roots)
    ///     .with_no_client_auth();
    /// let config = TlsConfig { rustls: Some(Arc::new(own)), ..TlsConfig::default() };
    /// let identity = config.build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub rustls: Option<Arc<ClientConfig>>,
}

/// The most sessions of [`TlsConfig::resumption`].
const MOST_SESSIONS: usize = 65_536;

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            roots: TlsRoots::default(),
            extra_roots: Vec::new(),
            client: None,
            crls: Vec::new(),
            allow_unknown_revocation: false,
            server_name: None,
            insecure: false,
            pinned_keys: Vec::new(),
            cipher_suites: Vec::new(),
            key_exchange: Vec::new(),
            alpn: true,
            min_version: TlsVersion::V1_2,
            max_version: TlsVersion::V1_3,
            resumption: 1024,
            key_log: false,
            rustls: None,
        }
    }
}

impl TlsConfig {
    /// The same without the client's certificate, the server's name and its keys, which are for servers; `None` if there
    /// is nothing to leave out.
    pub(crate) fn for_proxies(&self) -> Option<Self> {
        let gives_certificates =
            |own: &Arc<ClientConfig>| own.client_auth_cert_resolver.has_certs();
        let rustls = self.rustls.as_ref().filter(|own| gives_certificates(own));
        let has_own = self.client.is_some()
            || self.server_name.is_some()
            || self.has_pins()
            || rustls.is_some();
        has_own.then(|| Self {
            client: None,
            server_name: None,
            pinned_keys: Vec::new(),
            rustls: rustls.map_or_else(
                || self.rustls.clone(),
                |own| Some(Arc::new(client_without_certificates(own))),
            ),
            ..self.clone()
        })
    }

    pub(crate) fn has_pins(&self) -> bool {
        !self.pinned_keys.is_empty()
    }

    /// Reads all files, checks the options, and builds the identity that connections share.
    ///
    /// # Errors
    /// The first file that cannot be read or has other content than expected, or versions and names that are not valid.
    /// The error has the part of the configuration and the file.
    pub fn build(&self) -> Result<TlsIdentity, TlsConfigError> {
        let client = match &self.rustls {
            Some(own) => {
                self.check_own(own)?;
                Arc::clone(own)
            }
            None => Arc::new(self.client_config()?),
        };
        let server_name = match &self.server_name {
            None => None,
            Some(name) => Some(parse_name(name).map_err(|fault| {
                TlsConfigError::new(
                    TlsPart::ServerName,
                    None,
                    TlsConfigCause::Invalid(fault.to_string()),
                )
            })?),
        };
        Ok(TlsIdentity(Arc::new(Identity {
            client,
            server_name,
            for_other_origins: OnceLock::new(),
        })))
    }

    /// Checks a configuration of the caller.
    fn check_own(&self, own: &ClientConfig) -> Result<(), TlsConfigError> {
        let invalid = |what| Err(TlsConfigError::invalid(TlsPart::Rustls, None, what));
        let is_http1 = |protocol: &Vec<u8>| protocol == ALPN || protocol == b"http/1.0";
        if !own.alpn_protocols.iter().all(is_http1) {
            return invalid("it offers another protocol than HTTP/1.1");
        }
        match self.has_defaults() {
            true => Ok(()),
            false => invalid("other options are set, too"),
        }
    }

    /// Whether the options for which a configuration of the caller stands have their defaults.
    fn has_defaults(&self) -> bool {
        let Self {
            roots,
            extra_roots,
            client,
            crls,
            allow_unknown_revocation,
            server_name: _,
            insecure,
            pinned_keys,
            cipher_suites,
            key_exchange,
            alpn,
            min_version,
            max_version,
            resumption,
            key_log,
            rustls: _,
        } = self;
        let default = Self::default();
        let is_set = *allow_unknown_revocation || *insecure || *key_log || client.is_some();
        let has_any = !extra_roots.is_empty()
            || !crls.is_empty()
            || !pinned_keys.is_empty()
            || !cipher_suites.is_empty()
            || !key_exchange.is_empty();
        let values = (*roots, *alpn, *min_version, *max_version, *resumption);
        let defaults = (
            default.roots,
            default.alpn,
            default.min_version,
            default.max_version,
            default.resumption,
        );
        !is_set && !has_any && values == defaults
    }

    fn client_config(&self) -> Result<ClientConfig, TlsConfigError> {
        let provider = Arc::new(self.provider()?);
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(self.versions()?)
            .map_err(|error| TlsConfigError::invalid(TlsPart::Versions, None, error))?;
        let (chains, given): (Arc<dyn ServerCertVerifier>, _) = if self.insecure {
            (Arc::new(AcceptAny(provider)), Vec::new())
        } else {
            self.chains(provider)?
        };
        let keys = self.pinned_keys.iter().map(|pin| pins::hash(pin));
        let verifier = pins::verifier(chains, given, keys.collect::<Result<_, _>>()?);
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut client = match &self.client {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = own.chain.certificates(TlsPart::ClientCertificate)?;
                let key = own.key.private_key()?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    let path = own.chain.path();
                    TlsConfigError::invalid(TlsPart::ClientCertificate, path, error)
                })?
            }
        };
        if self.alpn {
            client.alpn_protocols = vec![ALPN.to_vec()];
        }
        client.resumption = match self.resumption {
            0 => Resumption::disabled(),
            // Their places are made at once.
            sessions if sessions > MOST_SESSIONS => {
                let why = format!("{sessions} are more than {MOST_SESSIONS}");
                return Err(TlsConfigError::invalid(TlsPart::Resumption, None, why));
            }
            sessions => Resumption::in_memory_sessions(sessions),
        };
        if self.key_log {
            client.key_log = open_key_log()?;
        }
        Ok(client)
    }

    /// The cryptography with the chosen suites and groups.
    fn provider(&self) -> Result<CryptoProvider, TlsConfigError> {
        let mut provider = ring::default_provider();
        if !self.cipher_suites.is_empty() {
            let named = |suite: &SupportedCipherSuite, name: &str| {
                suite
                    .suite()
                    .as_str()
                    .is_some_and(|own| own.eq_ignore_ascii_case(name))
            };
            let all = &provider.cipher_suites;
            let part = TlsPart::CipherSuites;
            provider.cipher_suites = chosen(all, &self.cipher_suites, named, part)?;
        }
        if !self.key_exchange.is_empty() {
            let named = |group: &&dyn SupportedKxGroup, name: &str| {
                let own = group.name();
                own.as_str()
                    .is_some_and(|own| own.eq_ignore_ascii_case(name))
            };
            let all = &provider.kx_groups;
            let part = TlsPart::KeyExchange;
            provider.kx_groups = chosen(all, &self.key_exchange, named, part)?;
        }
        Ok(provider)
    }

    fn versions(&self) -> Result<&'static [&'static SupportedProtocolVersion], TlsConfigError> {
        match (self.min_version, self.max_version) {
            (TlsVersion::V1_2, TlsVersion::V1_2) => Ok(ONLY_1_2),
            (TlsVersion::V1_2, TlsVersion::V1_3) => Ok(BOTH),
            (TlsVersion::V1_3, TlsVersion::V1_3) => Ok(ONLY_1_3),
            (TlsVersion::V1_3, TlsVersion::V1_2) => Err(TlsConfigError::new(
                TlsPart::Versions,
                None,
                TlsConfigCause::Invalid("the lowest is above the highest".to_owned()),
            )),
        }
    }

    /// What checks chains of certificates, and the certificates that are trusted without one.
    fn chains(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<(Arc<dyn ServerCertVerifier>, Vec<CertificateDer<'static>>), TlsConfigError> {
        let mut given = Vec::new();
        for source in &self.extra_roots {
            for certificate in source.certificates(TlsPart::Roots)? {
                given.push((certificate, source.path()));
            }
        }
        let roots = Arc::new(self.root_store(&given)?);
        let mut builder = WebPkiServerVerifier::builder_with_provider(roots, provider);
        for source in &self.crls {
            builder = builder.with_crls(source.crls()?);
        }
        // An outdated list does not have what was revoked since.
        builder = builder.enforce_revocation_expiration();
        if self.allow_unknown_revocation {
            builder = builder.allow_unknown_revocation_status();
        }
        let chains = builder.build().map_err(|error| {
            let part = match error {
                rustls::client::VerifierBuilderError::NoRootAnchors => TlsPart::Roots,
                _ => TlsPart::Crl,
            };
            TlsConfigError::invalid(part, None, error)
        })?;
        if !self.crls.is_empty() {
            given.clear();
        }
        let given = given.into_iter().map(|(certificate, _)| certificate);
        Ok((chains, given.collect()))
    }

    fn root_store(
        &self,
        given: &[(CertificateDer<'static>, Option<&Path>)],
    ) -> Result<RootCertStore, TlsConfigError> {
        let mut store = RootCertStore::empty();
        match self.roots {
            TlsRoots::WebPki => store
                .roots
                .extend_from_slice(webpki_roots::TLS_SERVER_ROOTS),
            #[cfg(feature = "native-roots")]
            TlsRoots::Native => add_native_roots(&mut store)?,
            TlsRoots::None => {}
        }
        for (certificate, path) in given {
            store
                .add(certificate.clone())
                .map_err(|error| TlsConfigError::invalid(TlsPart::Roots, *path, error))?;
        }
        Ok(store)
    }
}

/// The same configuration, which gives no certificate of the client.
fn client_without_certificates(own: &ClientConfig) -> ClientConfig {
    let mut own = own.clone();
    own.client_auth_cert_resolver = Arc::new(NoCertificate);
    own
}

#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// The cipher suites that [`TlsConfig::cipher_suites`] can name, the preferred ones first.
///
/// ```
/// assert!(courser::tls_cipher_suites().any(|name| name == "TLS13_AES_256_GCM_SHA384"));
/// ```
pub fn tls_cipher_suites() -> impl Iterator<Item = &'static str> {
    let names = ring::ALL_CIPHER_SUITES.iter();
    names.filter_map(|suite| suite.suite().as_str())
}

/// What the names stand for, in their order.
fn chosen<T: Copy>(
    all: &[T],
    names: &[String],
    is_named: impl Fn(&T, &str) -> bool,
    part: TlsPart,
) -> Result<Vec<T>, TlsConfigError> {
    let find = |name: &String| {
        let found = all.iter().copied().find(|one| is_named(one, name));
        found
            .ok_or_else(|| TlsConfigError::invalid(part, None, format_args!("{name:?} is unknown")))
    };
    names.iter().map(find).collect()
}

/// A set of certificate authorities to trust.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum TlsRoots {
    /// Mozilla's list, as it was when the crate `webpki-roots` was released.
    #[default]
    WebPki,
    /// The authorities of the operating system, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    #[cfg(feature = "native-roots")]
    Native,
    /// No authorities but [`TlsConfig::extra_roots`].
    None,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    V1_2,
    /// TLS 1.3 (RFC 8446).
    V1_3,
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_2 => "TLSv1.2",
            Self::V1_3 => "TLSv1.3",
        })
    }
}

/// The client's certificate with its private key.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate of the client, followed by those that lead to its authority.
    pub chain: PemOrDer,
    /// The private key: PKCS#8, PKCS#1 or SEC1, not encrypted. It may be in the same file as the chain.
    pub key: PemOrDer,
}

/// Certificates, a key or revocation lists: one or more items in PEM, or one item in DER. The content shows which.
///
/// ```
/// use courser::{PemOrDer, TlsConfig, TlsRoots};
///
/// let config = TlsConfig {
///     roots: TlsRoots::None,
///     extra_roots: vec![PemOrDer::File("/no/such/file.pem".into())],
///     ..TlsConfig::default()
/// };
/// let error = config.build().unwrap_err();
/// assert!(error.to_string().starts_with("roots in /no/such/file.pem: "));
/// ```
#[derive(Clone)]
pub enum PemOrDer {
    /// A file, which [`TlsConfig::build`] reads.
    File(PathBuf),
    /// The content itself.
    Bytes(Vec<u8>),
}

impl PemOrDer {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Bytes(_) => None,
        }
    }

    fn load(&self, part: TlsPart) -> Result<Content, TlsConfigError> {
        let bytes = match self {
            Self::File(path) => fs::read(path).map_err(|error| {
                TlsConfigError::new(part, Some(path), TlsConfigCause::Io(error))
            })?,
            Self::Bytes(bytes) => bytes.clone(),
        };
        let is_pem = memchr::memmem::find(&bytes, b"-----BEGIN ").is_some();
        match (is_pem, bytes.first()) {
            (true, _) => Ok(Content::Pem(bytes)),
            // Every item in DER that is read here is a SEQUENCE.
            (false, Some(0x30)) => Ok(Content::Der(bytes)),
            (false, _) => Err(TlsConfigError::new(
                part,
                self.path(),
                TlsConfigCause::Missing,
            )),
        }
    }

    fn items<T: PemObject + From<Vec<u8>>>(&self, part: TlsPart) -> Result<Vec<T>, TlsConfigError> {
        match self.load(part)? {
            Content::Der(bytes) => Ok(vec![T::from(bytes)]),
            Content::Pem(bytes) => {
                let items: Result<Vec<T>, pem::Error> = T::pem_slice_iter(&bytes).collect();
                match items {
                    Ok(items) if items.is_empty() => Err(TlsConfigError::new(
                        part,
                        self.path(),
                        TlsConfigCause::Missing,
                    )),
                    Ok(items) => Ok(items),
                    Err(error) => Err(TlsConfigError::invalid(part, self.path(), error)),
                }
            }
        }
    }

    fn certificates(&self, part: TlsPart) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
        self.items(part)
    }

    fn crls(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsConfigError> {
        self.items(TlsPart::Crl)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
        let part = TlsPart::ClientKey;
        match self.load(part)? {
            Content::Der(bytes) => PrivateKeyDer::try_from(bytes)
                .map_err(|error| TlsConfigError::invalid(part, self.path(), error)),
            Content::Pem(bytes) => match PrivateKeyDer::from_pem_slice(&bytes) {
                Ok(key) => Ok(key),
                Err(error) => {
                    let encrypted = memchr::memmem::find(&bytes, b"ENCRYPTED").is_some();
                    let cause = match error {
                        _ if encrypted => TlsConfigCause::Encrypted,
                        pem::Error::NoItemsFound => TlsConfigCause::Missing,
                        error => TlsConfigCause::Invalid(error.to_string()),
                    };
                    Err(TlsConfigError::new(part, self.path(), cause))
                }
            },
        }
    }
}

/// Does not show the bytes, which may be a private key.
impl fmt::Debug for PemOrDer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

impl From<PathBuf> for PemOrDer {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<Vec<u8>> for PemOrDer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

enum Content {
    Pem(Vec<u8>),
    Der(Vec<u8>),
}

/// A [`TlsConfig`] that was read and checked, with the sessions that it remembers. Cheap to clone. Two identities are
/// equal only if one is a clone of the other: a connection of one identity is never used for another.
///
/// ```
/// let identity = courser::TlsConfig::default().build()?;
/// let for_another_thread = identity.clone();
/// assert_eq!(identity, for_another_thread);
/// # Ok::<(), courser::error::TlsConfigError>(())
/// ```
#[derive(Clone)]
pub struct TlsIdentity(Arc<Identity>);

struct Identity {
    client: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
    /// See [`TlsIdentity::for_other_origins`]. Made when it is first needed.
    for_other_origins: OnceLock<Option<TlsIdentity>>,
}

impl TlsIdentity {
    pub(super) fn client(&self) -> Arc<ClientConfig> {
        self.0.client.clone()
    }

    /// The same without the client's certificate, for the origins that redirects lead to; `None` if it has none. It
    /// resumes no session: one may have begun with the certificate.
    pub(crate) fn for_other_origins(&self) -> Option<&Self> {
        let without = || {
            let client = &self.0.client;
            client.client_auth_cert_resolver.has_certs().then(|| {
                let mut client = client_without_certificates(client);
                client.resumption = Resumption::disabled();
                Self(Arc::new(Identity {
                    client: Arc::new(client),
                    server_name: self.0.server_name.clone(),
                    for_other_origins: OnceLock::new(),
                }))
            })
        };
        self.0.for_other_origins.get_or_init(without).as_ref()
    }

    /// A number that no other identity has while this one exists.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(super) fn server_name(&self) -> Option<&ServerName<'static>> {
        self.0.server_name.as_ref()
    }
}

impl PartialEq for TlsIdentity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TlsIdentity {}

impl Hash for TlsIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsIdentity")
            .field(&Arc::as_ptr(&self.0))
            .finish()
    }
}

/// Checks no certificate, only that the peer has the key of its certificate, so that a broken peer is detected.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        accept_unreadable_key(verify_tls12_signature(message, cert, signed, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        accept_unreadable_key(verify_tls13_signature(message, cert, signed, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Makes a wrong signature an error, and accepts a certificate whose key cannot be read (an old X.509 version).
fn accept_unreadable_key(
    verified: Result<HandshakeSignatureValid, rustls::Error>,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    match verified {
        Err(rustls::Error::InvalidCertificate(
            CertificateError::BadEncoding
            | CertificateError::UnhandledCriticalExtension
            | CertificateError::Other(_),
        )) => Ok(HandshakeSignatureValid::assertion()),
        verified => verified,
    }
}

/// Unusable roots of the system are ignored; a file that cannot be read is an error.
#[cfg(feature = "native-roots")]
fn add_native_roots(store: &mut RootCertStore) -> Result<(), TlsConfigError> {
    let loaded = rustls_native_certs::load_native_certs();
    if let Some(error) = loaded.errors.first() {
        return Err(TlsConfigError::invalid(TlsPart::Roots, None, error));
    }
    match store.add_parsable_certificates(loaded.certs) {
        (0, _) => Err(TlsConfigError::invalid(
            TlsPart::Roots,
            None,
            "the system has no certificate authorities",
        )),
        _ => Ok(()),
    }
}

/// rustls continues without a log if it cannot open the file. Here this is an error.
fn open_key_log() -> Result<Arc<KeyLogFile>, TlsConfigError> {
    if let Some(path) = std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from) {
        use std::os::unix::fs::OpenOptionsExt;
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| {
                TlsConfigError::new(TlsPart::KeyLog, Some(&path), TlsConfigCause::Io(error))
            })?;
    }
    Ok(Arc::new(KeyLogFile::new()))
}

static ONLY_1_2: &[&SupportedProtocolVersion] = &[&version::TLS12];
static ONLY_1_3: &[&SupportedProtocolVersion] = &[&version::TLS13];
static BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
