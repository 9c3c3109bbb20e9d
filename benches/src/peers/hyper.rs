//! hyper without a pool: each worker has one connection (`client::conn::http1`), and opens another one when the first
//! ends.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{SharedRun, on_tokio};
use crate::measure::{Plan, Record, Target};
use crate::tls;

/// Measures hyper.
///
/// # Errors
/// Nothing could be measured.
pub fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let mut exchange = Exchange::new(&plan.url, plan.root.as_deref())?;
    exchange.method = plan.method.parse()?;
    exchange.body = plan.body().unwrap_or_default();
    on_tokio(plan, |run| work(exchange.clone(), run))
}

async fn work(exchange: Exchange, run: SharedRun) {
    let mut connection = None;
    let mut now = Instant::now();
    while let Some(since) = run.begin(now).await {
        now = run.ended(since, exchange.run(&mut connection).await);
    }
}

/// A connection that can send requests.
pub type Connection = SendRequest<Full<Bytes>>;

/// The parts of a request, made once.
#[derive(Clone)]
pub struct Exchange {
    target: Target,
    method: Method,
    path: Uri,
    host: HeaderValue,
    body: Bytes,
    /// Only for https URLs.
    tls: Option<TlsConnector>,
}

impl Exchange {
    /// The parts of `GET` for `target`. With TLS, the server must have the certificate in the file `root`.
    ///
    /// # Errors
    /// hyper rejects the path or the host, or the file has no certificate.
    pub fn new(target: &Target, root: Option<&Path>) -> Result<Self, Box<dyn Error>> {
        let tls = root.map(|root| tls::trusting(Some(root))).transpose()?;
        Ok(Self {
            tls: tls.map(|config| Arc::new(config).into()),
            target: target.clone(),
            method: Method::GET,
            path: target.path.parse()?,
            host: target.authority.parse()?,
            body: Bytes::new(),
        })
    }

    /// Sends one request, on a new connection if there is none. Returns the status after reading the body.
    ///
    /// # Errors
    /// The request failed, and its connection cannot be used any more.
    pub async fn run(
        &self,
        connection: &mut Option<Connection>,
    ) -> Result<u16, Box<dyn Error + Send + Sync>> {
        let sender = match connection {
            Some(sender) if !sender.is_closed() => sender,
            _ => connection.insert(self.connect().await?),
        };
        sender.ready().await?;
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.clone();
        request.headers_mut().insert(HOST, self.host.clone());
        let mut response = sender.send_request(request).await?;
        while let Some(frame) = response.frame().await {
            frame?;
        }
        Ok(response.status().as_u16())
    }

    async fn connect(&self) -> Result<Connection, Box<dyn Error + Send + Sync>> {
        let stream = TcpStream::connect(self.target.address).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return speak(stream).await;
        };
        let name = ServerName::from(self.target.address.ip());
        speak(tls.connect(name, stream).await?).await
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Connection, Box<dyn Error + Send + Sync>> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
