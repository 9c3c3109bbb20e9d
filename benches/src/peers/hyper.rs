//! hyper without a pool: each worker has one connection (`client::conn::http1`) and opens another when it ends.

use std::error::Error;
use std::time::Instant;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{SharedRun, on_tokio};
use crate::measure::{Plan, Record, Target};

/// Measures hyper.
///
/// # Errors
/// Nothing could be measured.
pub fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let exchange = Exchange::new(&plan.url)?;
    on_tokio(plan, "hyper", |run| work(exchange.clone(), run))
}

async fn work(exchange: Exchange, run: SharedRun) {
    let mut connection = None;
    let mut now = Instant::now();
    while run.lock().admit(now) {
        let sent = now;
        if connection.is_none() {
            run.lock().opened(1);
        }
        let outcome = exchange.run(&mut connection).await;
        now = Instant::now();
        match outcome {
            Ok(status) => run.lock().answered(status, sent, now),
            Err(error) => {
                connection = None;
                run.lock().failed(&error);
            }
        }
    }
}

/// A connection that requests can be sent on.
pub type Connection = SendRequest<Empty<Bytes>>;

/// The parts of a request, made once.
#[derive(Clone, Debug)]
pub struct Exchange {
    target: Target,
    path: Uri,
    host: HeaderValue,
}

impl Exchange {
    /// For `GET` of `target`.
    ///
    /// # Errors
    /// hyper does not take the path or the host.
    pub fn new(target: &Target) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            target: target.clone(),
            path: target.path.parse()?,
            host: target.authority.parse()?,
        })
    }

    /// One request, on a new connection where there is none; the status, once the body has been read.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn run(
        &self,
        connection: &mut Option<Connection>,
    ) -> Result<u16, Box<dyn Error + Send + Sync>> {
        let sender = match connection {
            Some(sender) if !sender.is_closed() => sender,
            _ => connection.insert(self.connect().await?),
        };
        sender.ready().await?;
        let mut request = Request::new(Empty::new());
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
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
