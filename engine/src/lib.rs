//! Courser, an HTTP/1.1 client engine for programs that send very many requests.
//!
//! A [`HostClient`] talks to one upstream over a bounded pool of connections, on the thread that drives it: no thread
//! of its own, no lock and, once its buffers have grown, no allocation on the path of a request.
//!
//! ```
//! use courser::{Call, HostClient, HostConfig, Request, Response};
//! # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let address = server.local_addr()?.to_string();
//! # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
//! #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
//! #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
//!
//! // One call at a time: `response` keeps its buffers for the next one.
//! let mut client = HostClient::new(address.parse()?, HostConfig::default())?;
//! let mut response = Response::new();
//! client.get("/", &mut response)?;
//! assert_eq!(response.body(), b"hi");
//!
//! // Many in flight on the same thread: buffers move in with the call and come back with its completion.
//! for number in 0..100 {
//!     client.submit(Call::new(Request::get(format!("/{number}")), Response::new()).tag(number));
//! }
//! while let Some(done) = client.wait(None)? {
//!     done.outcome?;
//!     assert_eq!(done.response.status(), 200);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # In scope
//! HTTP/1.1 and 1.0 over TCP and Unix sockets; pooling with exact bounds; one deadline over a whole call with limits for
//! its phases; retry by how far a request got; content codings; streamed bodies in both directions with back-pressure; the protocol core
//! by itself ([`proto`]); a network of one's own ([`net::Net`]), a simulated one included (feature `sim`).
//!
//! # Out of scope so far
//! TLS, names other than `localhost`, redirects, proxies, pipelining, HTTP/2. Unix systems only.
//!
//! # Layers
//! Each knows only those below it.
//!
//! | layer | what it is |
//! |---|---|
//! | client | [`HostClient`], [`Call`], [`Completion`]: what a user holds |
//! | reactor | the event loop: connections, timers and calls, over any [`net::Net`]; decides nothing |
//! | policy | pool and queue, deadlines, retry, dial order: pure, time is an argument |
//! | [`proto`] | requests, responses, framing, the exchange: bytes in, bytes out |
//! | [`net`] | the only door to the operating system, or to the simulation |
#![warn(missing_docs)]

mod client;
pub mod error;
pub mod net;
mod policy;
pub mod proto;
mod reactor;

#[cfg(feature = "http")]
pub use client::Unfit;
pub use client::{
    Body, Call, CallId, Client, Completion, CompletionSender, Completions, Config, ConnectTo,
    Drive, Engine, Failures, Histogram, Hop, HostClient, HostConfig, Moment, Observer, Proxies,
    Proxy, ProxyKind, Read, Refused, Report, Sending, Shared, SharedBody, SharedConfig, Stats,
    Streaming, Ticket, Timings, Upstream, completions,
};
#[cfg(feature = "cookies")]
pub use client::{CookieJar, CookieLimits};
#[cfg(feature = "tower")]
pub use client::{HttpService, ServiceError, ServiceFuture};
pub use error::{
    DnsError, Error, ErrorKind, LimitExceeded, Misuse, Part, PeerFault, Phase, Sent, Stopped,
    TimeLimit,
};
pub use net::resolve::{Answer, HickoryResolver, NameServers, Reply, Resolver, SystemResolver};
pub use net::tls::{
    ClientCertificate, PemOrDer, TlsAlert, TlsConfig, TlsConfigError, TlsFault, TlsIdentity,
    TlsInfo, TlsPart, TlsRoots, TlsVersion,
};
pub use net::{Address, SocketOptions};
pub use policy::{
    AddressHook, AddressPolicy, BadNetwork, Counters, DnsConfig, DnsCounters, FailedAttempt,
    Family, LatePolicy, Network, Override, Redirects, Retry, RetryHook, ReuseOrder, Timeouts,
    WaitPolicy,
};
pub use proto::{Codings, Limits, Request, Response, Version};
