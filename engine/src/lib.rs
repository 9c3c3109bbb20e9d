//! Courser, an HTTP/1.1 client engine for programs that send very many requests.
//!
//! A [`Client`] requests any `http` or `https` URL; a [`HostClient`] speaks to one upstream. Both have bounded pools of
//! connections and no thread of their own. The caller's thread drives them, without locks and, once the buffers have
//! grown, without allocations on the path of a request. [`Shared`] runs either client on threads of its own, for
//! programs with many threads and for async programs.
//!
//! # Three ways of use
//! One call at a time. The response keeps its buffers for the next call:
//!
//! ```
//! use courser::{Client, Config, Redirects, Response};
//! # fn doc_server() -> String {
//! #     let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! #     let url = format!("http://{}/", server.local_addr().unwrap());
//! #     std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
//! #         let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
//! #             if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
//! #     url
//! # }
//! # let url = doc_server();
//!
//! let mut client = Client::new(Config { redirects: Redirects::limit(10), ..Config::default() })?;
//! let mut response = Response::new();
//! client.get(&url, &mut response)?;
//! assert_eq!((response.status(), response.body()), (200, &b"hi"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Thousands of calls in flight on one thread. A call owns its buffers, and its completion returns them:
//!
//! ```
//! use courser::{Call, Client, Config, Request, Response};
//! # fn doc_server() -> String {
//! #     let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! #     let url = format!("http://{}/", server.local_addr().unwrap());
//! #     std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
//! #         let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
//! #             if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
//! #     url
//! # }
//! # let url = doc_server();
//!
//! let mut client = Client::new(Config::default())?;
//! for number in 0..100 {
//!     client.submit(Call::new(Request::get(format!("{url}?{number}")), Response::new()).tag(number));
//! }
//! while let Some(done) = client.wait(None)?.done() {
//!     done.outcome?;
//!     println!("{}: {} in {:?}", done.tag, done.response.status(), done.report.timings().total);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Shared between threads, or awaited on any executor:
//!
//! ```
//! use courser::{Call, Client, Config, Request, Response, Shared, SharedConfig};
//! # fn doc_server() -> String {
//! #     let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! #     let url = format!("http://{}/", server.local_addr().unwrap());
//! #     std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
//! #         let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
//! #             if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
//! #     url
//! # }
//! # let url = doc_server();
//!
//! let client = Shared::spawn(SharedConfig::default(), |_| Client::new(Config::default()))?;
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| client.get(&url, &mut Response::new()).unwrap());
//!     }
//! });
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let response = client.send(Call::new(Request::get(&url), Response::new())).await.into_result()?;
//! assert_eq!(response.body(), b"hi");
//! # Ok::<(), courser::Error>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When servers fail
//! These policies are off by default, or have mild defaults. A client combines the policies in its [`HostConfig`];
//! programs can also use each policy without a client.
//!
//! ```
//! use std::time::Duration;
//! use courser::policy::{AdaptiveTimeout, BalanceConfig, BreakerConfig, FailureClass, RetryBudget, RetryOn};
//! use courser::policy::{RetryRule, Spread, Statuses};
//! use courser::{Backoff, HostClient, HostConfig, Retry, Upstream};
//!
//! // Temporary failures are tried again, after random pauses of up to 100, 200, 400, ... ms, or after the time in
//! // `Retry-After`, up to 30 s.
//! let rule = |on| RetryRule {
//!     attempts: 4.try_into().unwrap(),
//!     backoff: Backoff { initial: Duration::from_millis(100), ..Backoff::default() },
//!     ..RetryRule::new(on)
//! };
//! let retry = Retry {
//!     rules: vec![
//!         rule(RetryOn::Failure(FailureClass::Refused)),
//!         rule(RetryOn::Failure(FailureClass::FirstByteTimeout)),
//!         rule(RetryOn::Status(Statuses::none().and(429..=429).and(502..=504))),
//!     ],
//!     max_retry_after: Duration::from_secs(30),
//!     max_elapsed: Some(Duration::from_secs(60)),
//!     ..Retry::default()
//! };
//! let config = HostConfig {
//!     retry,
//!     // One retry for each ten requests, and a few more when there are few requests.
//!     retry_budget: Some(RetryBudget { ratio: 0.1, ..RetryBudget::default() }),
//!     // When more than half of the calls to a host fail, its calls fail at once for a while.
//!     breaker: Some(BreakerConfig::default()),
//!     // The limit of the wait for the first byte is three times the usual wait.
//!     adaptive: Some(AdaptiveTimeout { factor: 3.0, ..AdaptiveTimeout::default() }),
//!     // Calls go to the less busy of two addresses, and to none that keeps failing. Failed calls are tried at another
//!     // address.
//!     balance: Some(BalanceConfig { spread: Spread::LeastInFlight, ..BalanceConfig::default() }),
//!     ..HostConfig::default()
//! };
//! let backends = [([10, 0, 0, 1], 8080).into(), ([10, 0, 0, 2], 8080).into()];
//! let client = HostClient::new(Upstream::tcp(backends), config)?;
//! # Ok::<(), courser::Error>(())
//! ```
//!
//! # Which client does what
//! What a client does not do is an error when it is asked for: when the client is made, or as the outcome of the call
//! ([`Misuse`]).
//!
//! | | [`Client`] | [`HostClient`] | [`PipelineClient`] |
//! |---|---|---|---|
//! | configured by | [`Config`] | [`HostConfig`], [`Upstream`] | [`PipelineConfig`], [`Upstream`] |
//! | hosts | any `http` or `https` URL | one upstream | one upstream |
//! | TLS, names, Unix sockets | yes | yes | yes |
//! | TLS settings, address policy of a call | yes | – | – |
//! | proxies ([`Config::proxies`]) | yes | – | – |
//! | redirects, cookies | yes | – | – |
//! | calls spread over addresses ([`HostConfig::balance`]) | – | yes | – |
//! | idle connections kept open ([`HostConfig::min_idle`]) | – | yes | yes |
//! | streamed bodies, `Expect`, upgrades | yes | yes | – |
//! | CONNECT of the caller's own | – | yes | – |
//! | several requests on a connection at a time | – | – | yes |
//! | full pool: [`HostConfig::wait`] | yes | yes | [`PipelineConfig::overflow`] |
//! | rates, retries, breaker, deadlines, codings | yes | yes | yes |
//! | several threads ([`Shared::spawn`] with more than one) | yes | – | – |
//!
//! # In scope
//! - HTTP/1.1 and 1.0 over TCP and Unix sockets; `http` and `https` URLs by name or address; optional redirects.
//! - Pools with exact bounds, for each host and over all hosts; one deadline for the whole call, with time limits for
//!   its phases; retries that depend on how much of the request was sent.
//! - TLS ([`TlsConfig`]), with errors that say what is wrong with a certificate.
//! - Names: a cache with stale answers ([`DnsConfig`]) in front of a [`Resolver`], a race over the addresses, and a
//!   policy on allowed addresses ([`AddressPolicy`]).
//! - Proxies: HTTP, HTTPS and SOCKS5 ([`Proxies`]).
//! - Content codings ([`Codings`]), streamed bodies in both directions with back-pressure, upgrades and tunnels.
//! - Hooks, by which a program takes part: before each send ([`SendHook`]), at redirects
//!   ([`RedirectHook`](policy::RedirectHook)), at retries ([`RetryHook`](policy::RetryHook)), at addresses
//!   ([`AddressHook`](policy::AddressHook)), and where sockets are opened ([`SocketHook`]).
//! - Timings of each call ([`Report`]), statistics ([`Stats`]), and events as they happen ([`Observer`]).
//! - The protocol core without a client ([`proto`], with the feature `steps`), and custom networks ([`net::Net`]).
//!
//! | feature | what it adds |
//! |---|---|
//! | `gzip`, `brotli`, `zstd` (default) | these content codings; `gzip` is also deflate |
//! | `tls` (default) | https, by rustls; without it, a URL or proxy with https is an error |
//! | `hickory` (default) | the resolver that asks name servers; else the system's `getaddrinfo` looks names up |
//! | `idna` (default) | host names with other characters than ASCII |
//! | `cookies` | a cookie jar for [`Client`] |
//! | `form` (default) | queries and forms from pairs of texts |
//! | `json` | bodies of requests and responses as JSON, by serde |
//! | `charset` | texts of responses in other encodings than UTF-8 |
//! | `native-roots` | the certificate authorities of the system, for [`TlsRoots`] |
//! | `http` | conversions from and to the types of the `http` crate |
//! | `http-body` | bodies of requests and responses as `http_body::Body` |
//! | `futures` | bodies of requests from a `Stream`; bodies of responses as a `Stream` and an `AsyncRead` |
//! | `tokio` | [`Shared::driven`] on tokio; bodies of responses as tokio's `AsyncRead` |
//! | `tracing` | a span for each call, with events |
//! | `steps` | the protocol core without a client, in `proto::steps`: exchanges step by step, handshakes with proxies |
//! | `sim` | a simulated network, for tests of programs that embed the engine |
//!
//! # Out of scope so far
//! HTTP/2. Unix systems only.
//!
//! # Layers
//! Each layer uses only the layers below it; [`manual`] says more, and has a glossary. `net` is on one level with
//! `proto` and `policy`: they do not use `net`, and `net` does not use them. The reactor combines them.
//!
//! | layer | what it is | what it uses |
//! |---|---|---|
//! | shared | [`Shared`]: clients on threads of their own, and the calls that move to and between these threads | client |
//! | client | [`Client`], [`HostClient`], [`PipelineClient`], [`Call`], [`Completion`] | reactor |
//! | reactor | the event loop: connections, timers and calls, over any [`net::Net`]; no decisions | policy, proto, net |
//! | policy | pool and queue, deadlines, retry, redirects, proxies, names and addresses: pure, time is an argument | proto |
//! | [`proto`] | URLs, requests, responses, framing, the exchange, handshakes with proxies: bytes in, bytes out | |
//! | [`net`] | the only access to the operating system, or to the simulation | |
//!
//! Below all of them are plain values: [`error`], addresses, points in time.
#![warn(missing_docs)]

mod address;
mod client;
pub mod error;
mod hook;
pub mod manual;
pub mod net;
pub mod policy;
pub mod proto;
mod reactor;
pub mod shared;
mod sync;
mod time;

pub use address::{Address, Answer};
pub use bytes::Bytes;
#[cfg(feature = "http")]
pub use client::ConversionError;
pub use client::{
    AddressState, Batch, BatchConfig, BatchOrder, Body, BodyClosed, BodyRead, BodySender, Call,
    CallId, Client, Completion, Config, Destination, Engine, Failures, Histogram, Hop, HostClient,
    HostConfig, HttpClient, Observer, ObserverEvent, Outgoing, PipelineClient, PipelineConfig,
    PipelineCounters, Report, RetryCause, Route, SendHook, Stats, Timings, Upstream, Waited,
};
#[cfg(feature = "cookies")]
pub use client::{Cookie, CookieJar, CookieLimits};
pub use error::{Error, ErrorKind, Misuse, Phase, Sent};
#[cfg(feature = "hickory")]
pub use net::resolve::{HickoryResolver, NameServers};
pub use net::resolve::{Reply, Resolver, SystemResolver};
#[cfg(feature = "tls")]
pub use net::tls::{ClientCertificate, PemOrDer, TlsRoots, TlsVersion, tls_cipher_suites};
pub use net::tls::{TlsConfig, TlsIdentity, TlsInfo};
#[cfg(feature = "tokio")]
pub use net::upgraded::AsyncUpgraded;
pub use net::upgraded::Upgraded;
pub use net::{SocketHook, SocketOptions};
pub use policy::{
    AddressPolicy, Backoff, Caps, Counters, DnsConfig, Proxies, Proxy, Rate, Redirects, Retry,
    Timeouts,
};
pub use proto::{
    BodySource, Codings, FormPart, Limits, Multipart, Request, Response, StatusError, Version,
};
#[cfg(feature = "tls")]
pub use rustls;
pub use shared::{Shared, SharedBody, SharedConfig};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
