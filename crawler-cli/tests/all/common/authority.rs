//! A certificate authority for tests.

use std::io::Write as _;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tempfile::NamedTempFile;

/// A certificate authority that is trusted only with `--cacert`.
pub(crate) struct Authority(pub(crate) CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// The certificate of the authority, for `--cacert`.
    pub(crate) fn file(&self) -> NamedTempFile {
        let mut file = NamedTempFile::new().expect("a file");
        file.write_all(self.0.pem().as_bytes()).expect("written");
        file
    }

    /// The TLS configuration of a server with a certificate for this host.
    pub(crate) fn server(&self, host: &str) -> Arc<ServerConfig> {
        let params = CertificateParams::new(vec![host.to_owned()]).expect("a host");
        self.server_with(params, Arc::new(NoClientAuth))
    }

    /// The same, with a certificate that ends on this day.
    pub(crate) fn server_until(
        &self,
        host: &str,
        (year, month, day): (i32, u8, u8),
    ) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a host");
        params.not_after = date_time_ymd(year, month, day);
        self.server_with(params, Arc::new(NoClientAuth))
    }

    /// The same, for a server that asks for client certificates of this authority.
    pub(crate) fn asking_server(&self, host: &str) -> Arc<ServerConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a certificate");
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let params = CertificateParams::new(vec![host.to_owned()]).expect("a host");
        self.server_with(params, verifier.build().expect("a verifier"))
    }

    fn server_with(
        &self,
        params: CertificateParams,
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate.der().clone()], key.into());
        Arc::new(config.expect("they fit"))
    }
}

pub(crate) fn path_of(file: &NamedTempFile) -> &str {
    file.path().to_str().expect("UTF-8")
}
