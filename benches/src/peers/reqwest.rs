//! reqwest's async client: one client, whose pool keeps a connection for each worker.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use reqwest::{Client, Url};

use super::{SharedRun, on_tokio};
use crate::measure::{Plan, Record};
use crate::tls;

/// Measures reqwest.
///
/// # Errors
/// Nothing could be measured.
pub fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let client = client(plan.root.as_deref())?;
    let url: Url = plan.url.url.parse()?;
    on_tokio(plan, "reqwest", |run| {
        work(client.clone(), url.clone(), run)
    })
}

/// The client that is measured, which trusts the certificate in that file.
///
/// # Errors
/// reqwest cannot make one, or there is no certificate.
pub fn client(root: Option<&Path>) -> Result<Client, Box<dyn Error>> {
    let client = Client::builder().no_proxy();
    let client = client.tls_backend_preconfigured(tls::trusting(root)?);
    Ok(client.build()?)
}

/// One request; the status, once the body has been read.
///
/// # Errors
/// As reqwest says.
pub async fn exchange(client: &Client, url: &Url) -> Result<u16, reqwest::Error> {
    let response = client.get(url.clone()).send().await?;
    let status = response.status();
    response.bytes().await?;
    Ok(status.as_u16())
}

async fn work(client: Client, url: Url, run: SharedRun) {
    let mut now = Instant::now();
    while run.lock().admit(now) {
        let sent = now;
        let outcome = exchange(&client, &url).await;
        now = Instant::now();
        match outcome {
            Ok(status) => run.lock().answered(status, sent, now),
            Err(error) => run.lock().failed(&error),
        }
    }
}
