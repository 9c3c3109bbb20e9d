//! Pinned keys: the public key of the server's certificate must have one of the given hashes.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::hash::Hash;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme,
    SupportedCipherSuite,
};

/// Checks what `verifier` checks, and then the key; only the former if no key is pinned.
pub(super) fn pinned(
    verifier: Arc<dyn ServerCertVerifier>,
    keys: &[[u8; 32]],
) -> Arc<dyn ServerCertVerifier> {
    match keys {
        [] => verifier,
        keys => Arc::new(Pinned {
            verifier,
            keys: keys.into(),
        }),
    }
}

/// The error of the check, which tells it from the errors of a verifier of the caller.
#[derive(Debug)]
pub(in crate::net::tls) struct NotPinned;

impl fmt::Display for NotPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key is not pinned")
    }
}

impl std::error::Error for NotPinned {}

#[derive(Debug)]
struct Pinned {
    verifier: Arc<dyn ServerCertVerifier>,
    keys: Box<[[u8; 32]]>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )?;
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
        self.verifier.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// The hash of a cipher suite that has SHA-256.
fn sha256() -> Option<&'static dyn Hash> {
    match TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => Some(suite.common.hash_provider),
        SupportedCipherSuite::Tls12(_) => None,
    }
}
