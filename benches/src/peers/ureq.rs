//! ureq, a blocking client: one thread for each connection, each with its own agent.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use hyper::http::Request;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::SharedRun;
use crate::measure::{Plan, Record};

/// Measures ureq.
///
/// # Errors
/// Nothing could be measured.
pub fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let run = SharedRun::new(plan)?;
    let request = request(&plan.method, &plan.url.url, plan.body().map(Vec::from))?;
    let agents = (0..plan.connections).map(|_| agent(plan.root.as_deref()));
    let agents = agents.collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        for agent in &agents {
            scope.spawn(|| run.work(|| exchange(agent, &request)));
        }
    });
    run.finish()
}

/// The request that [`exchange`] sends.
///
/// # Errors
/// The method or the URL is not valid.
pub fn request(
    method: &str,
    url: &str,
    body: Option<Vec<u8>>,
) -> Result<Request<Option<Vec<u8>>>, Box<dyn Error>> {
    Ok(Request::builder().method(method).uri(url).body(body)?)
}

/// The measured client. It trusts only the certificate in the file `root`.
///
/// # Errors
/// The file has no certificate.
pub fn agent(root: Option<&Path>) -> Result<Agent, Box<dyn Error>> {
    let mut config = Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false);
    if let Some(root) = root {
        let root = CertificateDer::from_pem_file(root)?;
        let root = Certificate::from_der(&root).to_owned();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[root]))
            .unversioned_rustls_crypto_provider(Arc::new(default_provider()));
        config = config.tls_config(tls.build());
    }
    Ok(config.build().new_agent())
}

/// Sends one request. Returns the status after reading the body.
///
/// # Errors
/// ureq reports an error.
pub fn exchange(agent: &Agent, request: &Request<Option<Vec<u8>>>) -> Result<u16, ureq::Error> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let head = Request::builder().method(method).uri(uri);
    let mut response = match request.body() {
        Some(body) => agent.run(head.body(&body[..])?)?,
        None => agent.run(head.body(())?)?,
    };
    response.body_mut().read_to_vec()?;
    Ok(response.status().as_u16())
}
