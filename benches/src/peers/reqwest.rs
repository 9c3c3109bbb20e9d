//! reqwest's async client: one client, whose pool has a connection for each worker.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use hyper::body::Bytes;
use reqwest::{Client, Method, Url};

use super::on_tokio;
use crate::measure::{Plan, Record};
use crate::tls;

/// Measures reqwest.
///
/// # Errors
/// Nothing could be measured.
pub fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let client = client(plan.root.as_deref())?;
    let asked = Asked {
        method: plan.method.parse()?,
        url: plan.url.url.parse()?,
        body: plan.body(),
    };
    on_tokio(plan, |run| {
        let (client, asked) = (client.clone(), asked.clone());
        async move {
            let mut now = Instant::now();
            while let Some(since) = run.begin(now).await {
                let outcome = exchange(&client, &asked).await;
                now = run.ended(since, outcome.map_err(reason));
            }
        }
    })
}

/// The measured client. It trusts the certificate in the file `root`.
///
/// # Errors
/// reqwest cannot create the client, or the file has no certificate.
pub fn client(root: Option<&Path>) -> Result<Client, Box<dyn Error>> {
    let client = Client::builder().no_proxy();
    let client = client.tls_backend_preconfigured(tls::trusting(root)?);
    Ok(client.build()?)
}

/// The parts of a request, made once.
#[derive(Clone, Debug)]
pub struct Asked {
    method: Method,
    url: Url,
    body: Option<Bytes>,
}

impl Asked {
    /// `GET` of this URL.
    ///
    /// # Errors
    /// The text is not a URL.
    pub fn get(url: &str) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            method: Method::GET,
            url: url.parse()?,
            body: None,
        })
    }
}

/// Sends one request. Returns the status after reading the body.
///
/// # Errors
/// reqwest reports an error.
pub async fn exchange(client: &Client, asked: &Asked) -> Result<u16, reqwest::Error> {
    let mut request = client.request(asked.method.clone(), asked.url.clone());
    if let Some(body) = &asked.body {
        request = request.body(body.clone());
    }
    let response = request.send().await?;
    let status = response.status();
    response.bytes().await?;
    Ok(status.as_u16())
}

/// The innermost cause of an error of reqwest, whose own text says little.
fn reason(error: reqwest::Error) -> String {
    let mut reason: &dyn Error = &error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
