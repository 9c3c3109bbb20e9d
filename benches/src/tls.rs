//! TLS for the measurements: a new certificate, and the configurations of the server and the peers.

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The configuration of a server, and its certificate in PEM. Sessions are not resumed: each handshake is a full one.
///
/// # Errors
/// The certificate cannot be created.
pub fn server() -> Result<(Arc<ServerConfig>, String), Box<dyn Error>> {
    let names = [Ipv4Addr::LOCALHOST.to_string(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let mut config = ServerConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok((Arc::new(config), made.cert.pem()))
}

/// The configuration of a peer: trusts only the certificate in the file `root`, and resumes no sessions.
///
/// # Errors
/// The file has no certificate.
pub fn trusting(root: Option<&Path>) -> Result<ClientConfig, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    if let Some(root) = root {
        roots.add(CertificateDer::from_pem_file(root)?)?;
    }
    let mut config = ClientConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}
