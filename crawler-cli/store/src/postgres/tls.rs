//! TLS to a server: whom to trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use postgres::config::SslMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Which servers are trusted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Trust {
    /// All, without TLS: `disable`.
    Off,
    /// All, with TLS if the server offers it: `prefer`.
    IfOffered,
    /// All, with TLS: `require`.
    Anyone,
    /// Those with a certificate of an authority in this PEM file for their name: `verify-full`.
    Name(PathBuf),
}

impl Trust {
    /// What the client library's modes mean.
    pub(super) fn of_mode(mode: SslMode) -> Self {
        match mode {
            SslMode::Disable => Self::Off,
            SslMode::Prefer => Self::IfOffered,
            _ => Self::Anyone,
        }
    }

    /// What connects by TLS; `None` if TLS is not used.
    ///
    /// # Errors
    /// The file of the authorities cannot be used: its name and why.
    pub(super) fn connector(&self) -> Result<Option<MakeRustlsConnect>, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match self {
            Self::Off => return Ok(None),
            Self::IfOffered | Self::Anyone => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyServer(provider))),
            Self::Name(path) => builder.with_root_certificates(roots(path)?),
        };
        let config = builder.with_no_client_auth();
        Ok(Some(MakeRustlsConnect::new(config)))
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(path).map_err(|error| at(&error))? {
        let added = roots.add(root.map_err(|error| at(&error))?);
        added.map_err(|error| at(&error))?;
    }
    match roots.is_empty() {
        true => Err(at(&"no certificate")),
        false => Ok(roots),
    }
}

/// Trusts any certificate, if the server has its key.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
