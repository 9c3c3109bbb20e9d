//! The TLS options that a user sets, and the identity that is built from them once for many connections.

mod pins;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, KeyLogFile, RootCertStore, SignatureScheme, SupportedCipherSuite,
    SupportedProtocolVersion, version,
};

use self::pins::Verifier;
use super::{ALPN, parse_name};
use crate::error::{TlsConfigError, TlsPart};

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
        let rustls = self.rustls.as_deref().and_then(without_certificates);
        let has_own = self.client.is_some()
            || self.server_name.is_some()
            || self.has_pins()
            || rustls.is_some();
        has_own.then(|| Self {
            client: None,
            server_name: None,
            pinned_keys: Vec::new(),
            rustls: rustls.map(Arc::new).or_else(|| self.rustls.clone()),
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
        let server_name = self.server_name.as_deref().map(parse_name).transpose();
        let server_name =
            server_name.map_err(|fault| TlsConfigError::new(TlsPart::ServerName, None, fault))?;
        Ok(TlsIdentity(Arc::new(Identity {
            client,
            server_name,
            for_other_origins: OnceLock::new(),
        })))
    }

    /// Checks a configuration of the caller.
    fn check_own(&self, own: &ClientConfig) -> Result<(), TlsConfigError> {
        let invalid = |what| Err(TlsConfigError::new(TlsPart::Rustls, None, what));
        let is_http1 = |protocol: &Vec<u8>| protocol == ALPN || protocol == b"http/1.0";
        if !own.alpn_protocols.iter().all(is_http1) {
            return invalid("it offers another protocol than HTTP/1.1");
        }
        let others = Self {
            server_name: None,
            rustls: None,
            ..self.clone()
        };
        // `Debug` shows each option, also those that cannot be compared.
        match format!("{others:?}") == format!("{:?}", Self::default()) {
            true => Ok(()),
            false => invalid("other options are set, too"),
        }
    }

    fn client_config(&self) -> Result<ClientConfig, TlsConfigError> {
        let provider = Arc::new(self.provider()?);
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&self.versions()?)
            .map_err(|error| TlsConfigError::new(TlsPart::Versions, None, error))?;
        let keys = self.pinned_keys.iter().map(|pin| pins::hash(pin));
        let mut verifier = Verifier {
            keys: keys.collect::<Result<_, _>>()?,
            chains: None,
            given: Vec::new(),
            provider,
        };
        if !self.insecure {
            self.trust(&mut verifier)?;
        }
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut client = match &self.client {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = own
                    .chain
                    .items(TlsPart::ClientCertificate, |der| Ok(der.into()))?;
                let mut keys = own.key.items(TlsPart::ClientKey, PrivateKeyDer::try_from)?;
                let key = keys.swap_remove(0);
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    let path = own.chain.path();
                    TlsConfigError::new(TlsPart::ClientCertificate, path, error)
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
                return Err(TlsConfigError::new(TlsPart::Resumption, None, why));
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
        let (suites, groups) = (provider.cipher_suites, provider.kx_groups);
        let (suite_names, group_names) = (&self.cipher_suites, &self.key_exchange);
        let name_of_suite = |suite: &SupportedCipherSuite| suite.suite().as_str();
        let name_of_group = |group: &&dyn SupportedKxGroup| group.name().as_str();
        provider.cipher_suites = chosen(suites, suite_names, name_of_suite, TlsPart::CipherSuites)?;
        provider.kx_groups = chosen(groups, group_names, name_of_group, TlsPart::KeyExchange)?;
        Ok(provider)
    }

    fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsConfigError> {
        let mut versions = Vec::new();
        if self.max_version == TlsVersion::V1_3 {
            versions.push(&version::TLS13);
        }
        if self.min_version == TlsVersion::V1_2 {
            versions.push(&version::TLS12);
        }
        if versions.is_empty() {
            let why = "the lowest is above the highest";
            return Err(TlsConfigError::new(TlsPart::Versions, None, why));
        }
        Ok(versions)
    }

    /// Adds what checks chains of certificates, and the certificates that are trusted without one.
    fn trust(&self, verifier: &mut Verifier) -> Result<(), TlsConfigError> {
        let mut roots = RootCertStore::empty();
        match self.roots {
            TlsRoots::WebPki => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            #[cfg(feature = "native-roots")]
            TlsRoots::Native => add_native_roots(&mut roots)?,
            TlsRoots::None => {}
        }
        for source in &self.extra_roots {
            for certificate in source.items(TlsPart::Roots, |der| Ok(CertificateDer::from(der)))? {
                let path = source.path();
                roots
                    .add(certificate.clone())
                    .map_err(|error| TlsConfigError::new(TlsPart::Roots, path, error))?;
                verifier.given.push(certificate);
            }
        }
        let provider = verifier.provider.clone();
        let mut builder = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        for source in &self.crls {
            builder = builder.with_crls(source.items(TlsPart::Crl, |der| Ok(der.into()))?);
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
            TlsConfigError::new(part, None, error)
        })?;
        verifier.chains = Some(chains);
        if !self.crls.is_empty() {
            verifier.given.clear();
        }
        Ok(())
    }
}

/// The same configuration, which gives no certificate of the client; `None` if there is none to give.
fn without_certificates(own: &ClientConfig) -> Option<ClientConfig> {
    let mut without = own.clone();
    without.client_auth_cert_resolver = Arc::new(NoCertificate);
    own.client_auth_cert_resolver.has_certs().then_some(without)
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

/// What the names stand for, in their order; all without a name.
fn chosen<T: Copy>(
    all: Vec<T>,
    names: &[String],
    name_of: impl Fn(&T) -> Option<&'static str>,
    part: TlsPart,
) -> Result<Vec<T>, TlsConfigError> {
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        let is_named = |one: &&T| name_of(one).is_some_and(|own| own.eq_ignore_ascii_case(name));
        let found = all.iter().find(is_named).copied();
        found.ok_or_else(|| TlsConfigError::new(part, None, format!("{name:?} is unknown")))
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

    /// The items, at least one. `of_der` makes one of its bytes.
    fn items<T: PemObject>(
        &self,
        part: TlsPart,
        of_der: impl FnOnce(Vec<u8>) -> Result<T, &'static str>,
    ) -> Result<Vec<T>, TlsConfigError> {
        let wrong = |why: &str| Err(TlsConfigError::new(part, self.path(), why));
        let bytes = match self {
            Self::File(path) => fs::read(path),
            Self::Bytes(bytes) => Ok(bytes.clone()),
        };
        let bytes = bytes.map_err(|error| TlsConfigError::new(part, self.path(), error))?;
        let has = |mark: &str| memchr::memmem::find(&bytes, mark.as_bytes()).is_some();
        if has("-----BEGIN ") {
            let items: Result<Vec<T>, pem::Error> = T::pem_slice_iter(&bytes).collect();
            return match items {
                Ok(items) if !items.is_empty() => Ok(items),
                _ if has("ENCRYPTED") => wrong("encrypted keys cannot be read"),
                Ok(_) => wrong(MISSING),
                Err(error) => wrong(&error.to_string()),
            };
        }
        // Every item in DER that is read here is a SEQUENCE.
        match bytes.first() {
            Some(0x30) => of_der(bytes).map(|item| vec![item]).or_else(wrong),
            _ => wrong(MISSING),
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
pub struct TlsIdentity(pub(super) Arc<Identity>);

pub(super) struct Identity {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server_name: Option<ServerName<'static>>,
    /// See [`TlsIdentity::for_other_origins`]. Made when it is first needed.
    for_other_origins: OnceLock<Option<TlsIdentity>>,
}

impl TlsIdentity {
    /// The same without the client's certificate, for the origins that redirects lead to; `None` if it has none. It
    /// resumes no session: one may have begun with the certificate.
    pub(crate) fn for_other_origins(&self) -> Option<&Self> {
        let without = || {
            let mut client = without_certificates(&self.0.client)?;
            client.resumption = Resumption::disabled();
            Some(Self(Arc::new(Identity {
                client: Arc::new(client),
                server_name: self.0.server_name.clone(),
                for_other_origins: OnceLock::new(),
            })))
        };
        self.0.for_other_origins.get_or_init(without).as_ref()
    }

    /// A number that no other identity has while this one exists.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
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
        write!(f, "TlsIdentity({:?})", Arc::as_ptr(&self.0))
    }
}

#[cfg(feature = "native-roots")]
fn add_native_roots(store: &mut RootCertStore) -> Result<(), TlsConfigError> {
    let loaded = rustls_native_certs::load_native_certs();
    if let Some(error) = loaded.errors.first() {
        return Err(TlsConfigError::new(TlsPart::Roots, None, error.to_string()));
    }
    match store.add_parsable_certificates(loaded.certs) {
        (0, _) => {
            let why = "the system has no certificate authorities";
            Err(TlsConfigError::new(TlsPart::Roots, None, why))
        }
        _ => Ok(()),
    }
}

/// rustls continues without a log if it cannot open the file. Here this is an error.
fn open_key_log() -> Result<Arc<KeyLogFile>, TlsConfigError> {
    if let Some(path) = std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from) {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = fs::OpenOptions::new();
        let opened = options.append(true).create(true).mode(0o600).open(&path);
        opened.map_err(|error| TlsConfigError::new(TlsPart::KeyLog, Some(&path), error))?;
    }
    Ok(Arc::new(KeyLogFile::new()))
}

const MISSING: &str = "nothing found";
