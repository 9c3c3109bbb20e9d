//! Metrics and health over HTTP, on a thread of its own: `/metrics`, `/healthz`, `/readyz` and `/version`. Nothing here
//! touches the store or waits for the loop of the service.
//!
//! Only GET and HEAD are taken. The number of connections, the size of requests and the time of a request are limited: a
//! client that is slow is cut off. The `Host` of a request must be a loopback address or `localhost`, so that no page in
//! a browser reaches the service by a name that it lets point here (DNS rebinding).

mod answer;
mod listener;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use tokio::sync::oneshot;

use super::metrics::Metrics;
use super::vitals::Vitals;
use listener::Limited;

/// How much clients may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AdminLimits {
    /// The most connections at once; further ones wait. Default: 64.
    pub connections: usize,
    /// How long a client may take for a request, and for the wait until the next one. Default: 30 s.
    pub patience: Duration,
}

impl Default for AdminLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            patience: Duration::from_secs(30),
        }
    }
}

/// The server. It ends when this is dropped.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{SocketAddr, TcpStream};
/// use std::sync::Arc;
/// use std::time::Instant;
///
/// use crawler_cli::watch::admin::{Admin, AdminLimits};
/// use crawler_cli::watch::metrics::{Metrics, Sources};
/// use crawler_cli::watch::vitals::Vitals;
///
/// let vitals = Arc::new(Vitals::new(Instant::now()));
/// let sources = Sources {
///     checks: Arc::default(),
///     store: Arc::default(),
///     rejected: Arc::default(),
///     vitals: Arc::clone(&vitals),
/// };
/// let any = SocketAddr::from(([127, 0, 0, 1], 0));
/// let admin = Admin::start(any, AdminLimits::default(), Metrics::new(sources), vitals)?;
///
/// let mut client = TcpStream::connect(admin.address())?;
/// client.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer)?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What answers are made of.
#[derive(Debug)]
struct Content {
    metrics: Metrics,
    vitals: Arc<Vitals>,
}

impl Admin {
    /// Listens at a loopback address.
    ///
    /// # Errors
    /// The address is taken or not of this machine, is not a loopback address, or the system has no thread.
    pub fn start(
        address: SocketAddr,
        limits: AdminLimits,
        metrics: Metrics,
        vitals: Arc<Vitals>,
    ) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let why = format!("{address} is no loopback address, and there are no tokens");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let content = Arc::new(Content { metrics, vitals });
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let listener = Limited::new(listener, limits);
            let router = Router::new().fallback(handle).with_state(content);
            tokio::spawn(async move { axum::serve(listener, router).await });
            // The other end is dropped with the server.
            let _ = stopped.await;
            Ok::<(), io::Error>(())
        };
        let thread = thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(serve) {
                    tracing::error!("metrics cannot be served: {error}");
                }
            })?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The address that it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Connections that are open are closed with the thread.
            let _ = thread.join();
        }
    }
}

async fn handle(State(content): State<Arc<Content>>, request: Request) -> answer::Answer {
    answer::answer(&content, &request)
}

#[cfg(test)]
mod tests;
