//! The client that sends requests without waiting for the answers to earlier requests.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::engine::Engine;
use super::one_host::{needed, one_host, unsent};
use super::router::OneHost;
use super::sharing::Pipelines;
use super::{HostConfig, Upstream};
use crate::error::{Error, Misuse};
use crate::net::Net;
use crate::net::os::OsNet;
use crate::net::resolve::{Resolver, default_resolver};
use crate::policy::{Overflow, Pipelined, PoolConfig, WaitPolicy};

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

/// The options of a [`PipelineClient`].
///
/// ```
/// use std::num::NonZeroUsize;
/// use courser::policy::Overflow;
/// use courser::PipelineConfig;
///
/// let config = PipelineConfig {
///     max_pending: NonZeroUsize::new(16).unwrap(),
///     overflow: Overflow::RefuseNewest,
///     ..PipelineConfig::default()
/// };
/// assert_eq!(config.host.max_connections.get(), 4);
/// ```
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// The settings of the host and of its calls. [`max_connections`](HostConfig::max_connections) is 4 by default here:
    /// while all connections are busy, another one is opened, up to this number; after that, calls share them.
    /// [`max_waiting`](HostConfig::max_waiting) limits the calls that have no place on a connection.
    /// [`wait`](HostConfig::wait) has to stay as it is: `overflow` decides instead. When the answer of a call that gave up is
    /// the next one on its connection, the client waits for it as long as
    /// [`LatePolicy::Drain`](crate::policy::LatePolicy::Drain) allows, or 5 s without that policy.
    pub host: HostConfig,
    /// The most calls on one connection. Default 64.
    pub max_pending: NonZeroUsize,
    /// The most pending calls: on all connections, and waiting for one. At this limit, `overflow` decides. Default
    /// 65,536.
    pub max_pending_total: NonZeroUsize,
    /// What happens at `max_pending_total`. Default: calls wait.
    pub overflow: Overflow,
    /// Which requests share a connection. Default: those with idempotent methods.
    pub methods: Pipelined,
    /// The longest time that a request waits for other requests, to be sent in the same write. Default 0: until the end
    /// of the iteration in which the request was submitted.
    pub max_batch_delay: Duration,
    /// For how long a server that does not support pipelining correctly gets one request at a time. Default 60 s. A server
    /// that may only have been slow gets a twelfth of this at first.
    pub distrust: Duration,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            host: HostConfig {
                max_connections: NonZeroUsize::MIN.saturating_add(3),
                ..HostConfig::default()
            },
            max_pending: NonZeroUsize::MIN.saturating_add(63),
            max_pending_total: NonZeroUsize::MIN.saturating_add(65_535),
            overflow: Overflow::default(),
            methods: Pipelined::default(),
            max_batch_delay: Duration::ZERO,
            distrust: Duration::from_secs(60),
        }
    }
}

/// The current load of a [`PipelineClient`], and counters since its beginning.
///
/// ```
/// # fn example(client: &courser::PipelineClient) {
/// let counters = client.pipeline_counters();
/// println!("{} on the way, {} lost", counters.pending, counters.unanswered);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PipelineCounters {
    /// The number of calls on connections.
    pub pending: usize,
    /// Whether the server gets one request at a time.
    pub serial: bool,
    /// How often the server turned out not to support pipelining correctly.
    pub broken: u64,
    /// Calls whose connection ended while the answer to an earlier call was still awaited.
    pub unanswered: u64,
}

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
        let net = OsNet::new().map_err(unsent)?;
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
    /// An upstream without addresses; an invalid TLS configuration of an `https` upstream; [`HostConfig::balance`] or
    /// [`HostConfig::wait`], which this client does not support; the network's error, when it cannot make a waker.
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
            return Err(unsent(Misuse::NotPipelined(what)));
        }
        if config.host.wait != WaitPolicy::default() {
            let what = "a policy on waiting other than PipelineConfig::overflow";
            return Err(unsent(Misuse::Unsupported(what)));
        }
        let pool = PoolConfig {
            shared: true,
            ..config.host.pool()
        };
        let pipelines = Pipelines::new(&config);
        let resolver = needed(upstream, resolver)?;
        let parts = one_host(upstream, &config.host, pool, pipelines, resolver)?;
        let bytes = config.host.bytes();
        Self::assemble(parts, config.host, bytes, net)
    }

    /// The current load, and counters since the beginning.
    pub fn pipeline_counters(&self) -> PipelineCounters {
        self.sharing.counters(self.reactor.now())
    }
}

impl PipelineConfig {
    /// How long the client waits for the answer of an abandoned call, if the policy on late answers sets no time.
    pub(super) const DRAIN: Duration = Duration::from_secs(5);
}
