//! HTTP for operators: `/metrics`, `/healthz`, `/readyz` and the page at `/`. Nothing that is asked changes anything.
//!
//! It has a thread of its own, on which no request waits for the store or for the loop of the service: pages are made on
//! another one. The number of connections, the size of a head and the time of a connection are limited, and each connection
//! has one request. The `Host` of a request must be a name of the service, so that no page in a browser reads the service
//! by a name that it lets point here (DNS rebinding).

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use tokio::runtime::{self, Runtime};
use tokio::sync::{Mutex as Turn, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::config::HttpConfig;
use super::control::Operator;
use super::hands::{Live, Reader};
use super::hour::Hour;
use super::metrics::{Metrics, Sources};
use super::page::{self, Seen};
use super::sets::Readings;
use super::vitals::{Health, Readiness};
use store::{StoreError, Writer};

/// What is served.
pub struct Site {
    /// What metrics are made of.
    pub sources: Sources,
    /// The last hour.
    pub hour: Arc<Hour>,
    /// The last readings of sets.
    pub readings: Readings,
    /// Asks the service how it is.
    pub operator: Operator<Writer>,
    /// Reads the store, by a connection of its own.
    pub reader: Mutex<Reader>,
    /// Where the service listens, and for whom.
    pub http: HttpConfig,
}

/// The server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    /// `None` at the end.
    runtime: Option<Runtime>,
}

impl Server {
    /// Serves those who connect to this listener.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(listener: TcpListener, site: Site) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(1)
            .thread_name("http")
            .enable_io()
            .enable_time()
            .build()?;
        let served = Arc::new(Served {
            metrics: Metrics::new(site.sources.clone()),
            policy: page::policy()?,
            turn: Arc::default(),
            site,
        });
        let listener = runtime.block_on(async { tokio::net::TcpListener::from_std(listener) })?;
        runtime.spawn(accept(listener, served));
        Ok(Self {
            address,
            runtime: Some(runtime),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Connections that are open are closed.
            runtime.shutdown_timeout(LEFT);
        }
    }
}

/// Takes connections, as many at once as the configuration says; others wait for their turn.
async fn accept(listener: tokio::net::TcpListener, served: Arc<Served>) {
    let places = Arc::new(Semaphore::new(served.site.http.connections.get()));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // The client has gone, or the system has no descriptor left.
                tracing::debug!("a connection was not taken: {error}");
                sleep(AGAIN).await;
                continue;
            }
        };
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            let answer = service_fn(|request| served.answer(request));
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_header_size(LARGEST_HEAD)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // A client that is slow or goes away is cut off.
            let _ = timeout(WHOLE, serving).await;
            drop(place);
        });
    }
}

/// What is served, with what is made of it once.
struct Served {
    site: Site,
    metrics: Metrics,
    /// The Content-Security-Policy.
    policy: HeaderValue,
    /// One page is made at a time. A client that goes away while it waits leaves nothing behind.
    turn: Arc<Turn<()>>,
}

impl Served {
    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<String>, Infallible> {
        let (status, kind, text) = match self.found(&request).await {
            Ok((kind, text)) => (StatusCode::OK, kind, text),
            Err((status, why)) => (status, TEXT, format!("{why}\n")),
        };
        let mut answer = Response::new(text);
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        for (name, value) in FIELDS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Ok(answer)
    }

    /// The content type and the text of what is asked for, or the status and why there is none.
    async fn found(
        self: &Arc<Self>,
        request: &Request<Incoming>,
    ) -> Result<(&'static str, String), (StatusCode, String)> {
        judge(request, &self.site.http).map_err(|(status, why)| (status, why.to_owned()))?;
        let unwell = |why: String| Err((StatusCode::SERVICE_UNAVAILABLE, why));
        let well = Ok((TEXT, "ok\n".to_owned()));
        let vitals = &self.site.sources.vitals;
        match request.uri().path() {
            "/metrics" => Ok((Metrics::CONTENT_TYPE, self.metrics.text())),
            "/healthz" => match vitals.health(Instant::now()) {
                Health::Fine => well,
                Health::Stuck(ago) => {
                    let seconds = ago.as_secs();
                    unwell(format!("the last turn of the loop was {seconds} s ago"))
                }
            },
            "/readyz" => match vitals.readiness() {
                Readiness::Ready => well,
                Readiness::Draining => unwell("the service is about to end".to_owned()),
                Readiness::Store(why) => unwell(format!("the store cannot be written: {why}")),
            },
            "/" => {
                let served = Arc::clone(self);
                let turn = Arc::clone(&self.turn).lock_owned().await;
                let make = move || {
                    let _turn = turn;
                    served.site.page()
                };
                match spawn_blocking(make).await {
                    Ok(Ok(page)) => Ok(("text/html; charset=utf-8", page)),
                    Ok(Err(error)) => unwell(format!("the store cannot be read: {error}")),
                    Err(_) => unwell("the page cannot be made".to_owned()),
                }
            }
            _ => Err((StatusCode::NOT_FOUND, "there is nothing here".to_owned())),
        }
    }
}

impl Site {
    fn page(&self) -> Result<String, StoreError> {
        let live = Live::Running(Box::new(self.operator.status(None)));
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = reader.at_once(|reader| Seen::read(reader, live, Timestamp::now()))?;
        let (minutes, readings) = (self.hour.minutes(), self.readings.all());
        Ok(seen.page(&self.sources.checks, &minutes, &readings))
    }
}

/// Checks that a request is meant for this service, and only reads.
fn judge<B>(request: &Request<B>, http: &HttpConfig) -> Result<(), (StatusCode, &'static str)> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err((StatusCode::BAD_REQUEST, "there is not one Host"));
    };
    let host = host.to_str().unwrap_or_default();
    let target = request.uri().authority();
    let is_meant = target.is_none_or(|target| target.as_str().eq_ignore_ascii_case(host));
    if !is_meant || !is_own(host, http) {
        let why = "the Host is no name of this service: localhost, or with http.allow_remote its address or one of http.names";
        return Err((StatusCode::MISDIRECTED_REQUEST, why));
    }
    match *request.method() {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err((
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are allowed",
        )),
    }
}

/// Whether a Host means this service. A name that somebody else owns may point here, an address does not.
fn is_own(host: &str, http: &HttpConfig) -> bool {
    let (name, rest) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or_default(),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    if !rest.is_empty() && !rest.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    let own = http.listen.ip();
    match name.parse::<IpAddr>() {
        Ok(address) if http.allow_remote && (address == own || own.is_unspecified()) => true,
        Ok(address) => address.is_loopback(),
        Err(_) if name.eq_ignore_ascii_case("localhost") => true,
        Err(_) => http.allow_remote && http.names.iter().any(|own| name.eq_ignore_ascii_case(own)),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const FIELDS: [(&str, &str); 4] = [
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
];
/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 16 << 10;
/// How long a client may take for the head of its request.
const HEAD: Duration = Duration::from_secs(10);
/// How long a connection may last.
const WHOLE: Duration = Duration::from_secs(30);
/// The wait after a connection that could not be taken.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a page may take at the end.
const LEFT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
