//! The client that sends requests without waiting for the answers to earlier requests.

use super::engine::Engine;
use super::one_host::one_upstream;
use super::router::OneHost;
use super::sharing::{PipelineCounters, Pipelines};
use super::{PipelineConfig, Upstream};
use crate::error::{Error, Misuse};
use crate::net::Net;
use crate::net::os::OsNet;
use crate::net::resolve::{Resolver, default_resolver};
use crate::policy::WaitPolicy;

/// A client of one upstream with few connections, and many requests on each at a time (RFC 9112 §9.3.2).
///
/// All calls that are submitted between two iterations go out in one write. The answers on a connection arrive in the
/// order of the requests, so a slow answer delays the answers behind it:
/// [`Timings::in_front`](crate::Timings::in_front) shows for how long. If a call times out or is cancelled after its
/// request was sent, the answer keeps its place in this order and is dropped.
///
/// When a connection ends, unsent calls move to another connection. Idempotent calls without an answer are sent again, on
/// another connection: once after a failure, and each time when the server has announced the end with an answer to an
/// earlier call. Other calls fail with [`Sent::NoReplyByte`](crate::Sent::NoReplyByte). A server that does not support
/// pipelining correctly gets one request at a time for a while.
///
/// A request that is not idempotent, such as a POST, goes alone: it is sent when all requests before it on its connection
/// are answered, and no request is sent after it until it is answered itself (RFC 9112 §9.3.2). So no other call can make
/// it fail, and many of them take as long as with a [`HostClient`](crate::HostClient).
/// [`Pipelined::All`](crate::policy::Pipelined::All) lets them share connections as well.
///
/// Bodies are in memory. Body streams, `Expect`, `Upgrade`, CONNECT and streamed responses are refused
/// ([`Misuse::NotPipelined`](crate::Misuse::NotPipelined)), because they would delay the other calls.
///
/// ```
/// use courser::{Call, PipelineClient, PipelineConfig, Request, Response};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let address = server.local_addr()?.to_string();
/// # std::thread::spawn(move || { use std::io::*; let s = server.accept().unwrap().0; let mut w = s.try_clone().unwrap();
/// #     for line in BufReader::new(s).lines() { if line.unwrap().is_empty() {
/// #         w.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap(); } } });
///
/// let mut config = PipelineConfig::default();
/// config.host.max_connections = std::num::NonZeroUsize::MIN;
/// let mut client = PipelineClient::new(address.parse()?, config)?;
/// for number in 0..100 {
///     client.submit(Call::new(Request::get(format!("/{number}")), Response::new()).tag(number));
/// }
/// let mut expected = 0;
/// while let Some(done) = client.wait(None)?.done() {
///     done.outcome?;
///     assert_eq!(done.tag, expected);
///     expected += 1;
/// }
/// assert_eq!(expected, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PipelineClient<N = OsNet> = Engine<OneHost<Pipelines>, N>;

impl PipelineClient {
    /// A client on the operating system's network. The name of an upstream is looked up by
    /// `HickoryResolver::system` (see [`Client::new`](crate::Client::new)); without a name, no resolver runs.
    ///
    /// # Errors
    /// An upstream without addresses; an invalid TLS configuration of an `https` upstream; a setting that this client
    /// does not support; the system's error, when it has no descriptor left for a readiness queue.
    pub fn new(upstream: Upstream, config: PipelineConfig) -> Result<Self, Error> {
        Self::with_resolver(upstream, config, default_resolver())
    }

    /// A client on the operating system's network, with this resolver for the name of the upstream.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_resolver(
        upstream: Upstream,
        config: PipelineConfig,
        resolver: impl Resolver + 'static,
    ) -> Result<Self, Error> {
        let net = OsNet::new().map_err(Error::unsent)?;
        Self::with_net_and_resolver(upstream, config, net, resolver)
    }
}

impl<N: Net> PipelineClient<N> {
    /// A client on this network, without a resolver.
    ///
    /// # Errors
    /// As [`with_net_and_resolver`](Self::with_net_and_resolver); [`Misuse::NoResolver`] for an upstream with a name.
    pub fn with_net(upstream: Upstream, config: PipelineConfig, net: N) -> Result<Self, Error> {
        Self::build(&upstream, config, net, None)
    }

    /// A client on this network, with this resolver for the name of the upstream.
    ///
    /// # Errors
    /// An upstream without addresses; an invalid TLS configuration of an `https` upstream;
    /// [`balance`](crate::HostConfig::balance) or [`wait`](crate::HostConfig::wait), which this client does not support; the
    /// network's error, when it cannot make a waker.
    pub fn with_net_and_resolver(
        upstream: Upstream,
        config: PipelineConfig,
        net: N,
        resolver: impl Resolver + 'static,
    ) -> Result<Self, Error> {
        Self::build(&upstream, config, net, Some(Box::new(resolver)))
    }

    fn build(
        upstream: &Upstream,
        config: PipelineConfig,
        net: N,
        resolver: Option<Box<dyn Resolver>>,
    ) -> Result<Self, Error> {
        if config.host.balance.is_some() {
            let what = "calls that are spread over addresses";
            return Err(Error::unsent(Misuse::NotPipelined(what)));
        }
        if config.host.wait != WaitPolicy::default() {
            let what = "a policy on waiting other than PipelineConfig::overflow";
            return Err(Error::unsent(Misuse::Unsupported(what)));
        }
        let pipelines = Pipelines::new(&config);
        let (_, parts) = one_upstream(upstream, &config.host, pipelines, resolver)?;
        let bytes = config.host.bytes();
        Self::assemble(parts, config.host, bytes, net)
    }

    /// The current load, and counters since the beginning.
    pub fn pipeline_counters(&self) -> PipelineCounters {
        self.calls
            .dispatch
            .sharing
            .counters(self.calls.dispatch.reactor.now())
    }
}
