//! What is checked of a server besides its chain of certificates: a certificate may itself be trusted, and keys may be
//! pinned: then the public key of the server's certificate must have one of the given hashes.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::hash::Hash;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme,
    SupportedCipherSuite,
};

use crate::error::{TlsConfigError, TlsPart};
use crate::net::tls::fault::is_authority_as_server;

/// Checks what `chains` checks, but accepts the certificates `given`, and then the key if any is pinned.
pub(super) fn verifier(
    chains: Arc<dyn ServerCertVerifier>,
    given: Vec<CertificateDer<'static>>,
    keys: Box<[[u8; 32]]>,
) -> Arc<dyn ServerCertVerifier> {
    match given.is_empty() && keys.is_empty() {
        true => chains,
        false => Arc::new(Verifier {
            chains,
            given,
            keys,
        }),
    }
}

/// The hash in a pin.
pub(super) fn hash(pin: &str) -> Result<[u8; 32], TlsConfigError> {
    let decoded = pin
        .strip_prefix("sha256//")
        .and_then(|base64| STANDARD.decode(base64).ok());
    decoded
        .and_then(|hash| hash.try_into().ok())
        .ok_or_else(|| {
            let what = format!("{pin:?} is not sha256// and the base64 of 32 bytes");
            TlsConfigError::invalid(TlsPart::PinnedKeys, None, what)
        })
}

/// The error of the check of a key, which tells it from the errors of a verifier of the caller.
#[derive(Debug)]
pub(in crate::net::tls) struct NotPinned;

impl fmt::Display for NotPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key is not pinned")
    }
}

impl std::error::Error for NotPinned {}

#[derive(Debug)]
struct Verifier {
    chains: Arc<dyn ServerCertVerifier>,
    /// The certificates in `extra_roots`. WebPKI alone refuses one of these as that of a server if it is marked as that of
    /// an authority, as self-signed certificates usually are.
    given: Vec<CertificateDer<'static>>,
    /// Empty: any key.
    keys: Box<[[u8; 32]]>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let by_chain = self.chains.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let verified = match by_chain {
            // Before this error, the validity in time was checked; the name was not checked yet.
            Err(Error::InvalidCertificate(error))
                if is_authority_as_server(&error) && self.given.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                ServerCertVerified::assertion()
            }
            by_chain => by_chain?,
        };
        if self.keys.is_empty() {
            return Ok(verified);
        }
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        let hash = sha256().map(|sha256| sha256.hash(&key));
        let is_pinned = |hash: &[u8]| self.keys.iter().any(|key| key[..] == *hash);
        match hash.is_some_and(|hash| is_pinned(hash.as_ref())) {
            true => Ok(verified),
            false => Err(CertificateError::Other(OtherError(Arc::new(NotPinned))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// The hash of a cipher suite that has SHA-256.
fn sha256() -> Option<&'static dyn Hash> {
    match TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => Some(suite.common.hash_provider),
        SupportedCipherSuite::Tls12(_) => None,
    }
}
