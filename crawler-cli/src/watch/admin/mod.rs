//! HTTP for operators, on a thread of its own: `/metrics`, `/healthz`, `/readyz` and `/version`.
//!
//! No request waits on that thread for the store or for the loop of the service: [`Site`] has other threads for that. The
//! store is read by a connection of its own, never by that of the writer.
//!
//! The number of connections, the size of requests and the time of a request are limited: a client that is slow is cut
//! off. The `Host` of a request must be a name of the service, so that no page in a browser reaches the service by a name
//! that it lets point here (DNS rebinding), and no page of another site has something done. With a token in the store,
//! almost everything needs a token.

mod access;
pub(in crate::watch) mod answer;
mod basics;
pub(in crate::watch) mod body;
mod listener;
mod login;
pub(in crate::watch) mod once;
mod site;
mod slot;
mod under_way;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use tokio::sync::oneshot;
use tokio::task::yield_now;

pub use access::Visitor;
use answer::{Answer, Refused, see_other};
use listener::Limited;
use login::login_for;
pub use site::{Site, Trouble};
use slot::Slot;

use super::api;

/// How much clients may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AdminLimits {
    /// The most connections at once; for a further one, that is closed whose client has been waited for longest.
    /// Default: 64.
    pub connections: usize,
    /// How long a client may take for the head of a request, and for each part of a body. Default: 10 s.
    pub head: Duration,
    /// How long a client may take for a whole request. Default: 60 s.
    pub whole: Duration,
    /// How long a client may take for a part of an answer, and for the wait until its next request. Default: 30 s.
    pub patience: Duration,
}

impl Default for AdminLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            head: Duration::from_secs(10),
            whole: Duration::from_secs(60),
            patience: Duration::from_secs(30),
        }
    }
}

/// The server. It ends when this is dropped.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{SocketAddr, TcpStream};
/// use std::path::Path;
/// use std::sync::Arc;
/// use std::time::Instant;
///
/// use crawler_cli::store::sqlite::Sqlite;
/// use crawler_cli::store::{Writer, WriterSettings};
/// use crawler_cli::watch::admin::{Admin, AdminLimits, Site};
/// use crawler_cli::watch::config::{Current, Loaded};
/// use crawler_cli::watch::control::{Operator, core_channel};
/// use crawler_cli::watch::hands::Reader;
/// use crawler_cli::watch::metrics::Sources;
/// use crawler_cli::watch::vitals::Vitals;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("watch.db");
/// let engine = Sqlite::open(&file)?;
/// let rejected = engine.rejected_figures();
/// let store = Writer::start(engine, WriterSettings::default())?;
/// let vitals = Arc::new(Vitals::new(Instant::now()));
/// let sources = Sources {
///     checks: Arc::default(),
///     store: store.figures(),
///     rejected,
///     vitals: Arc::clone(&vitals),
///     hooks: Arc::default(),
/// };
/// let (core, _inbox) = core_channel();
/// let operator = Operator { store, core, vitals, schedules: Arc::default(),
///     tokens: Arc::default(), hooks: Arc::default(), is_public: false };
/// let config = Loaded::parse("", Path::new("watch.toml")).expect("valid");
/// let site = Site::new(operator, sources, Reader::open(&file)?, Arc::new(Current::new(config)))?;
/// let any = SocketAddr::from(([127, 0, 0, 1], 0));
/// let admin = Admin::start(any, AdminLimits::default(), site)?;
///
/// let mut client = TcpStream::connect(admin.address())?;
/// client.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer)?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Listens at an address: beyond this machine only if there is a token.
    ///
    /// # Errors
    /// The address is taken or not of this machine, a token is needed, or the system has no thread.
    pub fn start(address: SocketAddr, limits: AdminLimits, site: Site) -> io::Result<Self> {
        if !address.ip().is_loopback() && !site.access.has_tokens() {
            let why = format!("{address} is no loopback address, and there are no tokens");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(BLOCKING)
            .thread_name("admin")
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let router = router(Arc::new(site));
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let listener = Limited::new(listener, limits);
            let service = router.into_make_service_with_connect_info::<Slot>();
            tokio::spawn(async move { axum::serve(listener, service).await });
            // The other end is dropped with the server.
            let _ = stopped.await;
            Ok::<(), io::Error>(())
        };
        let thread = thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(serve) {
                    tracing::error!("nothing can be served over HTTP: {error}");
                }
                // A command that waits for the writer is left to the writer, which performs or refuses it at its end.
                runtime.shutdown_timeout(LEFT);
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

/// All routes. Whatever the answer is, the request was let in, and the answer has the fields that all have.
fn router(site: Arc<Site>) -> Router {
    Router::new()
        .merge(basics::routes())
        .merge(login::routes())
        .merge(api::routes())
        .merge(crate::watch::page::routes())
        .fallback(nothing)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(Arc::clone(&site), let_in))
        .with_state(site)
}

async fn let_in(
    State(site): State<Arc<Site>>,
    ConnectInfo(slot): ConnectInfo<Slot>,
    request: Request,
    next: Next,
) -> Answer {
    let _answering = slot.answers();
    // Others have their turn first: a client that sends request after request without a pause delays them by one.
    yield_now().await;
    let (mut parts, body) = request.into_parts();
    let is_api = access::is_api(parts.uri.path());
    let loaded = site.current.get();
    let answer = match site.access.admit(&loaded.config.http, &parts) {
        Ok(visitor) => {
            parts.extensions.insert(visitor);
            parts.extensions.insert(slot);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refused) if refused.status == StatusCode::UNAUTHORIZED && wants_page(&parts) => {
            let path = parts.uri.path_and_query();
            see_other(&login_for(path.map_or("/", |path| path.as_str())))
        }
        Err(refused) => refused.answer(is_api),
    };
    answer::finish(answer, is_api)
}

/// Whether a browser shows the answer to a person.
fn wants_page(request: &Parts) -> bool {
    let accept = request.headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    request.method == Method::GET
        && !access::is_api(request.uri.path())
        && accept.is_some_and(|accept| accept.contains("text/html"))
}

async fn nothing(uri: Uri) -> Answer {
    let is_api = access::is_api(uri.path());
    Refused::new(StatusCode::NOT_FOUND, "there is nothing here").answer(is_api)
}

async fn not_so(uri: Uri) -> Answer {
    let is_api = access::is_api(uri.path());
    let why = "the method is not allowed here";
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, why).answer(is_api)
}

/// Threads beside the one that serves: for a reading, a command, and a question to the service.
const BLOCKING: usize = 3;
/// How long a reading may take at the end.
const LEFT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod served;
#[cfg(test)]
mod tests;
