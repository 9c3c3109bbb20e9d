//! The options of a host client.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

#[cfg(feature = "cookies")]
use super::CookieJar;
use super::{ConnectTo, Observer, Proxies};
use crate::net::SocketOptions;
use crate::net::tls::TlsConfig;
use crate::policy::{
    AdaptiveTimeout, AddressPolicy, AimdConfig, BalanceConfig, BreakerConfig, DnsConfig,
    LatePolicy, PoolConfig, Rate, Redirects, Retry, RetryBudget, ReuseOrder, ThrottleConfig,
    Timeouts, WaitPolicy,
};
use crate::proto::{Codings, Limits};
use crate::reactor::ByteRates;

/// The options of a [`HostClient`](crate::HostClient).
///
/// ```
/// use std::num::NonZeroUsize;
/// use courser::{HostConfig, WaitPolicy};
///
/// let config = HostConfig {
///     max_connections: NonZeroUsize::new(8).unwrap(),
///     wait: WaitPolicy::FailFast,
///     ..HostConfig::default()
/// };
/// ```
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Connections in all: connecting, busy, draining and idle, over all addresses. Default 512.
    pub max_connections: NonZeroUsize,
    /// Calls that may wait while all connections are in use; one more fails at once. Default 65,536.
    pub max_waiting: usize,
    /// What a call does while all connections are in use. Default: it waits.
    pub wait: WaitPolicy,
    /// Which idle connection is used first. Default: the one used last.
    pub reuse: ReuseOrder,
    /// How long a connection stays idle before it is closed. Default 4 s, below the keep-alive time of common servers
    /// (Node.js, Apache httpd and lighttpd 5 s, nginx 75 s). A shorter time that the server gives in `Keep-Alive:
    /// timeout=N` goes before.
    pub idle_timeout: Duration,
    /// How long a connection is used at all; each ends at a random time in the last tenth. Default: without limit.
    pub max_age: Option<Duration>,
    /// Calls that a connection serves at the most. Default: without limit.
    pub max_requests: Option<NonZeroU64>,
    /// Idle connections that are kept open, and opened anew when the server closes them. Default 0. They are opened
    /// and kept while the client is driven. Only for [`HostClient`](crate::HostClient): hosts that a
    /// [`Client`](crate::Client) does not use any more are let go.
    pub min_idle: usize,
    /// How long an address is tried before another one is tried beside it; the first that is reached is used. Shorter
    /// where [`Timeouts::connect`] would not leave time for all addresses. Default 250 ms (RFC 8305 §8).
    pub attempt_delay: Duration,
    /// For how long an address that failed is tried last. Default 30 s.
    pub avoid_failed: Duration,
    /// Limits in time.
    pub timeouts: Timeouts,
    /// What happens to the connection of a call that ran out of time. Default: it is closed.
    pub late: LatePolicy,
    /// Limits on responses.
    pub limits: Limits,
    /// `User-Agent` of requests that do not say their own; `None` sends none. Default `courser/` and the version.
    pub user_agent: Option<String>,
    /// The content codings that are taken off responses, and offered, by requests that do not say their own (see
    /// [`Request::decode`](crate::Request::decode)). Default none.
    pub codings: Codings,
    /// When a failed call is tried again.
    pub retry: Retry,
    /// How many retries there may be beside the requests of a host, those excepted that are safe by themselves. Default
    /// [`RetryBudget::default`]; `None` is no limit.
    pub retry_budget: Option<RetryBudget>,
    /// Whether a host that fails is left alone for a while: calls fail at once then, with
    /// [`ErrorKind::BreakerOpen`](crate::ErrorKind::BreakerOpen). Default: no.
    pub breaker: Option<BreakerConfig>,
    /// How many requests are sent to a host in a time, each attempt and each redirect counted when it gets its connection. A
    /// call that must wait for it has none, and waits as one does while all connections are in use: in its turn, until its
    /// deadline, [`max_waiting`](Self::max_waiting) of them at the most. The addresses of a
    /// [`HostClient`](crate::HostClient) have one rate together. Default: without limit.
    pub rate: Option<Rate>,
    /// The least time between two requests to a host, which holds beside `rate`. Default none.
    pub min_delay: Option<Duration>,
    /// How many bytes are read from a host in a time, heads, TLS and handshakes included. The server is slowed down by what it
    /// cannot send; limits in time do not count while bytes are held back, but for the call's deadline. A burst of less
    /// than 16 KiB counts as one of 16 KiB. Default: without limit.
    pub bytes_in: Option<Rate>,
    /// How many bytes are written to a host in a time, likewise.
    pub bytes_out: Option<Rate>,
    /// How many requests a host may have at a time, by how it copes with them; beside `max_connections`. Default: any
    /// number.
    pub concurrency: Option<AimdConfig>,
    /// How calls are spread over the addresses of the upstream, each of which has a pool and a breaker of its own then.
    /// [`max_connections`](Self::max_connections) is for all of them together, [`max_waiting`](Self::max_waiting) for
    /// each; rates are for all together, `concurrency` for each. A connection that takes longer than [`attempt_delay`](Self::attempt_delay) to come up counts as a failure,
    /// and those who wait for it go to another address. Only for [`HostClient`](crate::HostClient). Default: they are
    /// not; new connections go to the addresses in turn, and those that failed are tried last.
    pub balance: Option<BalanceConfig>,
    /// Whether the wait for the first byte of a response is limited to what is usual for the host, beside
    /// [`Timeouts::first_byte`]. Calls with a `first_byte` limit of their own have that instead. Default: no.
    pub adaptive: Option<AdaptiveTimeout>,
    /// Gets events of calls and connections. Default: none.
    pub observer: Option<Observer>,
    /// Whether [`Engine::stats`](crate::Engine::stats) counts what becomes of calls. Default: no; a
    /// [`Shared`](crate::Shared) client always does.
    pub stats: bool,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Bytes of a streamed body that may wait for its consumer before reading stops. Default 64 KiB; one read (96 KiB)
    /// can go beyond.
    pub stream_buffer: usize,
}

/// The options of a [`Client`](crate::Client).
///
/// ```
/// use courser::{Config, Redirects};
///
/// let config = Config {
///     redirects: Redirects::limit(10),
///     ..Config::default()
/// };
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// What holds for each host, and for each call.
    pub host: HostConfig,
    /// Connections of all hosts together: connecting, busy, draining and idle. At the cap, the connection that has
    /// been idle for longest makes room; without one, hosts that have no connection come first. Default 900, within
    /// the 1,024 descriptors that a process usually has.
    pub max_connections: NonZeroUsize,
    /// How many requests are sent to all hosts together in a time, beside [`HostConfig::rate`] for each of them. Hosts
    /// take turns under it. Default: without limit.
    pub rate: Option<Rate>,
    /// How many bytes are read from all hosts together in a time, beside [`HostConfig::bytes_in`] for each of them.
    /// Default: without limit.
    pub bytes_in: Option<Rate>,
    /// How many bytes are written to all hosts together in a time, likewise.
    pub bytes_out: Option<Rate>,
    /// Whether redirects are followed. Default: they are not.
    pub redirects: Redirects,
    /// TLS for `https` URLs and proxies.
    pub tls: TlsConfig,
    /// TLS for `https` proxies. Default: as `tls`, without its client certificate and its server name, which are for
    /// servers.
    pub proxy_tls: Option<TlsConfig>,
    /// Names: the cache in front of the resolver, and fixed addresses.
    pub dns: DnsConfig,
    /// Which addresses may be connected to. Default: all.
    pub addresses: AddressPolicy,
    /// Hosts that are reached at another host and port. Default: none.
    pub connect_to: Vec<ConnectTo>,
    /// Proxies, and which URLs go through them. Default: none; [`Proxies::from_env`] reads the usual variables.
    pub proxies: Proxies,
    /// Where cookies are kept, and taken from. Default: nowhere.
    #[cfg(feature = "cookies")]
    pub cookies: Option<CookieJar>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            host: HostConfig::default(),
            max_connections: NonZeroUsize::new(900).unwrap_or(NonZeroUsize::MIN),
            rate: None,
            bytes_in: None,
            bytes_out: None,
            redirects: Redirects::none(),
            tls: TlsConfig::default(),
            proxy_tls: None,
            dns: DnsConfig::default(),
            addresses: AddressPolicy::allow_all(),
            connect_to: Vec::new(),
            proxies: Proxies::none(),
            #[cfg(feature = "cookies")]
            cookies: None,
        }
    }
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            max_connections: NonZeroUsize::new(512).unwrap_or(NonZeroUsize::MIN),
            max_waiting: 65_536,
            wait: WaitPolicy::default(),
            reuse: ReuseOrder::default(),
            idle_timeout: Duration::from_secs(4),
            max_age: None,
            max_requests: None,
            min_idle: 0,
            attempt_delay: Duration::from_millis(250),
            avoid_failed: Duration::from_secs(30),
            timeouts: Timeouts::default(),
            late: LatePolicy::default(),
            limits: Limits::default(),
            user_agent: Some(concat!("courser/", env!("CARGO_PKG_VERSION")).to_owned()),
            codings: Codings::none(),
            retry: Retry::default(),
            retry_budget: Some(RetryBudget::default()),
            breaker: None,
            rate: None,
            min_delay: None,
            bytes_in: None,
            bytes_out: None,
            concurrency: None,
            balance: None,
            adaptive: None,
            observer: None,
            stats: false,
            socket: SocketOptions::default(),
            stream_buffer: 64 * 1024,
        }
    }
}

impl HostConfig {
    pub(super) fn pool(&self) -> PoolConfig {
        PoolConfig {
            max_connections: self.max_connections,
            max_waiting: self.max_waiting,
            wait: self.wait,
            reuse: self.reuse,
            idle_timeout: self.idle_timeout,
            max_age: self.max_age,
            max_requests: self.max_requests,
            min_idle: self.min_idle,
            shared: false,
            throttled: false,
        }
    }

    /// The rates of bytes of a client of one host.
    pub(super) fn bytes(&self) -> ByteRates {
        ByteRates {
            host: [None; 2],
            total: [self.bytes_in, self.bytes_out],
        }
    }

    pub(super) fn throttle(&self) -> ThrottleConfig {
        ThrottleConfig {
            rate: self.rate,
            min_delay: self.min_delay,
            concurrency: self.concurrency.clone(),
            counts_bytes: false,
        }
    }
}
