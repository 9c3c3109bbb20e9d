//! TLS for the measurements: a certificate made for the occasion, the server's side of it, and the peers'.

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

/// What a server needs, and its certificate in PEM. No session is remembered, so each handshake is a whole one.
///
/// # Errors
/// No certificate can be made.
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

/// For a peer: trusts the certificate in that file alone, and resumes nothing.
///
/// # Errors
/// There is no certificate in the file.
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
