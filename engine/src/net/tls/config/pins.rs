//! What is checked of a server besides its chain of certificates: a certificate may itself be trusted, and keys may be
//! pinned: then the public key of the server's certificate must have one of the given hashes.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::hash::Hash;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme,
    SupportedCipherSuite,
};

use crate::error::{TlsConfigError, TlsFault, TlsPart};
use crate::net::tls::fault::is_authority_as_server;

/// The hash in a pin.
pub(super) fn hash(pin: &str) -> Result<[u8; 32], TlsConfigError> {
    let decoded = pin
        .strip_prefix("sha256//")
        .and_then(|base64| STANDARD.decode(base64).ok());
    decoded
        .and_then(|hash| hash.try_into().ok())
        .ok_or_else(|| {
            let what = format!("{pin:?} is not sha256// and the base64 of 32 bytes");
            TlsConfigError::new(TlsPart::PinnedKeys, None, what)
        })
}

/// Checks that the peer has the key of its certificate, so that a broken peer is detected; and more of the certificate, as
/// the fields say.
#[derive(Debug)]
pub(super) struct Verifier {
    /// `None`: any certificate.
    pub(super) chains: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates in `extra_roots`. WebPKI alone refuses one of these as that of a server if it is marked as that of
    /// an authority, as self-signed certificates usually are.
    pub(super) given: Vec<CertificateDer<'static>>,
    /// Empty: any key.
    pub(super) keys: Box<[[u8; 32]]>,
    pub(super) provider: Arc<CryptoProvider>,
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
        let by_chain = match &self.chains {
            None => Ok(ServerCertVerified::assertion()),
            Some(chains) => chains.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
        };
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
            false => Err(CertificateError::Other(OtherError(Arc::new(TlsFault::PinnedKey))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.verified(verify_tls12_signature(message, cert, signed, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.verified(verify_tls13_signature(message, cert, signed, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

impl Verifier {
    /// A wrong signature is an error. If any certificate is accepted, then also one whose key cannot be read (an old X.509
    /// version).
    fn verified(
        &self,
        verified: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match verified {
            Err(Error::InvalidCertificate(
                CertificateError::BadEncoding
                | CertificateError::UnhandledCriticalExtension
                | CertificateError::Other(_),
            )) if self.chains.is_none() => Ok(HandshakeSignatureValid::assertion()),
            verified => verified,
        }
    }
}

/// The hash of a cipher suite that has SHA-256.
fn sha256() -> Option<&'static dyn Hash> {
    match TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => Some(suite.common.hash_provider),
        SupportedCipherSuite::Tls12(_) => None,
    }
}
