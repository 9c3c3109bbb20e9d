//! The options of clients.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

#[cfg(feature = "cookies")]
use super::CookieJar;
use super::route::Route;
use super::{Observer, Proxies, SendHook};
use crate::error::Misuse;
use crate::net::SocketOptions;
use crate::net::tls::TlsConfig;
use crate::policy::{
    AdaptiveTimeout, AddressPolicy, BalanceConfig, BreakerConfig, DnsConfig, LatePolicy, Overflow,
    Pipelined, PoolConfig, Rate, Rates, Redirects, Retry, RetryBudget, ReuseOrder, Timeouts,
    WaitPolicy,
};
use crate::proto::{Codings, Limits};
use crate::reactor::ByteRates;

/// The options of a [`HostClient`](crate::HostClient).
///
/// | group | options |
/// |---|---|
/// | pool | [`max_connections`](Self::max_connections), [`max_waiting`](Self::max_waiting), [`wait`](Self::wait), [`reuse`](Self::reuse), [`min_idle`](Self::min_idle) |
/// | life of a connection | [`idle_timeout`](Self::idle_timeout), [`max_age`](Self::max_age), [`max_requests`](Self::max_requests) |
/// | opening of a connection | [`dns`](Self::dns), [`addresses`](Self::addresses), [`attempt_delay`](Self::attempt_delay), [`random_start`](Self::random_start), [`avoid_failed`](Self::avoid_failed), [`socket`](Self::socket), [`tls`](Self::tls) |
/// | time | [`timeouts`](Self::timeouts), [`adaptive`](Self::adaptive), [`late`](Self::late) |
/// | strictness | [`ignore_invalid_headers`](Self::ignore_invalid_headers) |
/// | memory | [`limits`](Self::limits), [`held_bytes`](Self::held_bytes), [`stream_buffer`](Self::stream_buffer) |
/// | requests | [`user_agent`](Self::user_agent), [`codings`](Self::codings), [`send_hook`](Self::send_hook) |
/// | failures | [`retry`](Self::retry), [`retry_budget`](Self::retry_budget), [`breaker`](Self::breaker), [`balance`](Self::balance) |
/// | rates | [`rate`](Self::rate), [`min_delay`](Self::min_delay), [`bytes_in`](Self::bytes_in), [`bytes_out`](Self::bytes_out) |
/// | observing | [`observer`](Self::observer), [`stats`](Self::stats) |
///
/// ```
/// use std::num::NonZeroUsize;
/// use courser::policy::WaitPolicy;
/// use courser::HostConfig;
///
/// let config = HostConfig {
///     max_connections: NonZeroUsize::new(8).unwrap(),
///     wait: WaitPolicy::FailFast,
///     ..HostConfig::default()
/// };
/// ```
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The most connections: connecting, busy, draining and idle, over all addresses. Default 512.
    pub max_connections: NonZeroUsize,
    /// The most calls that wait while all connections are in use; one more call fails at once. Default 65,536.
    pub max_waiting: usize,
    /// What a call does while all connections are in use. Default: the call waits.
    pub wait: WaitPolicy,
    /// Which idle connection is used first. Default: the one used last.
    pub reuse: ReuseOrder,
    /// How long a connection stays idle before it is closed. Default 4 s, below the keep-alive time of common servers
    /// (Node.js, Apache httpd and lighttpd 5 s, nginx 75 s). If the server gives a shorter time in `Keep-Alive:
    /// timeout=N`, that time counts.
    pub idle_timeout: Duration,
    /// The greatest age of a connection. Each connection ends at a random time in the last tenth of this. Default: no
    /// limit.
    pub max_age: Option<Duration>,
    /// The most calls that a connection serves. Default: no limit.
    pub max_requests: Option<NonZeroU64>,
    /// The number of idle connections that are kept open, and opened again when the server closes them, while the
    /// client is driven. More than [`max_connections`](Self::max_connections) mean as many as those. Default 0. Not
    /// for a [`Client`](crate::Client), which drops hosts that it no longer uses.
    pub min_idle: usize,
    /// How long an address is tried before the next address is tried at the same time. The first connection that
    /// succeeds is used. The delay is shorter if [`Timeouts::connect`] would not leave time for all addresses. Default
    /// 250 ms (RFC 8305 §8).
    pub attempt_delay: Duration,
    /// Whether a host starts with a random one of its addresses, so that many programs do not all start with the same
    /// one. Each further connection starts with the next address. If there are addresses of both families, the families
    /// are first in turn, and alternate within one connection attempt. Addresses that have failed lately come last.
    /// Default: yes. If not, the first connection starts with the first IPv6 address (RFC 8305 §4), or without any,
    /// with the first address.
    pub random_start: bool,
    /// For how long a failed address is tried after the other addresses. Default 30 s.
    pub avoid_failed: Duration,
    /// Time limits.
    pub timeouts: Timeouts,
    /// What happens to the connection of a call that reached a time limit. Default: the connection is closed.
    pub late: LatePolicy,
    /// Limits on responses.
    pub limits: Limits,
    /// Whether responses are read that are wrong by the grammar in a way that is harmless for their framing, as browsers
    /// read them. Lines of heads and trailers are dropped and [counted](crate::Response::dropped_lines) if they have no
    /// colon, a blank or a byte outside ASCII in the name, an empty name, a control character in the value, or more than
    /// [`Limits::header_line`] bytes. Several blanks before the status code, control characters in the reason phrase,
    /// blanks after the size of a chunk, and `Transfer-Encoding: identity` alone are taken. NUL, a bare CR, and such lines that may be meant as
    /// `Content-Length` or `Transfer-Encoding` stay errors. After a dropped line, and after `identity`, the connection
    /// closes. Default: no.
    pub ignore_invalid_headers: bool,
    /// The most bytes of response bodies that the client holds for all calls together, after decoding; `None` for no
    /// limit. A body counts while it is larger than 64 KiB and the completion of its call was not taken. At the limit, a
    /// call whose body grows further fails with [`LimitExceeded::HeldBytes`](crate::error::LimitExceeded::HeldBytes),
    /// and streamed bodies are read only as fast as their consumers take them. Decoding may go beyond the limit by one body,
    /// up to [`Limits::decoded_bytes`]. Each thread of a [`Shared`](crate::Shared) client has this limit alone. Default
    /// 1 GiB.
    pub held_bytes: Option<u64>,
    /// `User-Agent` of requests that do not have their own; `None` sends none. Default `courser/` and the version.
    pub user_agent: Option<String>,
    /// The content codings that requests offer and that responses are decoded from, for requests that do not have their
    /// own (see [`Request::decode`](crate::Request::decode)). Default none.
    pub codings: Codings,
    /// What the program does before each request is sent: sign it, for example. Default: nothing.
    pub send_hook: Option<SendHook>,
    /// When a failed call is tried again.
    pub retry: Retry,
    /// How many retries are allowed in proportion to the requests of a host. Retries that are safe by themselves do not
    /// count. Default [`RetryBudget::default`]; `None` is no limit.
    pub retry_budget: Option<RetryBudget>,
    /// The circuit breaker. While a host fails too often, its calls fail at once with
    /// [`ErrorKind::BreakerOpen`](crate::ErrorKind::BreakerOpen). Default: none.
    pub breaker: Option<BreakerConfig>,
    /// The rate of requests to a host. Each attempt and each redirect counts when it gets its connection. A call that
    /// waits for the rate holds no connection. It waits as calls do while all connections are in use: in order, until
    /// its deadline, and at most [`max_waiting`](Self::max_waiting) calls. The addresses of a
    /// [`HostClient`](crate::HostClient) share one rate. Default: no limit.
    pub rate: Option<Rate>,
    /// The least time between two requests to a host, in addition to `rate`. Default none.
    pub min_delay: Option<Duration>,
    /// The rate of bytes read from a host, heads, TLS and handshakes included. Back-pressure slows the server down.
    /// While bytes are held back, time limits do not run, except the deadline of the call. A burst of less than 16 KiB
    /// counts as 16 KiB. After a pause, the bytes of 80 ms may come at once, even if the burst is less. Default: no limit.
    pub bytes_in: Option<Rate>,
    /// The rate of bytes written to a host, counted in the same way. Default: no limit.
    pub bytes_out: Option<Rate>,
    /// How calls are spread over the addresses of the upstream. Each address then has a pool and a breaker of its own.
    /// [`max_connections`](Self::max_connections) and the rates are for all addresses together;
    /// [`max_waiting`](Self::max_waiting) is for each address. A connection that takes longer than
    /// [`attempt_delay`](Self::attempt_delay) to open counts as a failure, and the calls that wait for it go to another
    /// address.
    ///
    /// The addresses of a name come and go with the answers to its lookups: a new address gets calls within about a
    /// second after the answer; one that has vanished gets no more calls, and its connections are closed when their
    /// calls have ended. While lookups fail, the last known addresses stay.
    ///
    /// Only for [`HostClient`](crate::HostClient). Default: calls are not spread; new connections go to the addresses in
    /// rotation, and failed addresses are tried last.
    pub balance: Option<BalanceConfig>,
    /// An adaptive limit of the wait for the first byte of a response, which follows the usual wait for the host, in
    /// addition to [`Timeouts::first_byte`]. Calls with a `first_byte` limit of their own have that limit instead.
    /// Default: none.
    pub adaptive: Option<AdaptiveTimeout>,
    /// The observer, which gets events of calls and connections. Default: none.
    pub observer: Option<Observer>,
    /// Whether [`Engine::stats`](crate::Engine::stats) counts calls. Default: no; a [`Shared`](crate::Shared) client
    /// always counts them.
    pub stats: bool,
    /// TLS with `https` servers.
    pub tls: TlsConfig,
    /// Names: the cache in front of the resolver, and fixed addresses. A client has one cache for all hosts.
    pub dns: DnsConfig,
    /// Which addresses of servers may be connected to, directly or by a proxy. Default: all. Names that a proxy looks up
    /// cannot be checked: see [`AddressPolicy`].
    pub addresses: AddressPolicy,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// The most bytes of a streamed body that wait for the consumer before reading stops. Default 64 KiB; one read (up
    /// to 96 KiB) can go beyond that. Not 0.
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
    /// The options of each host, and of each call.
    pub host: HostConfig,
    /// The most connections of all hosts together: connecting, busy, draining and idle. At the cap, the connection that
    /// has been idle for longest is closed to make room. If no connection is idle, hosts without any connection get the
    /// next free place first. While the name of a host is being looked up, its connection takes no place, unless
    /// other hosts waited for that place; so slow name servers do not hold other hosts (up to 2,048 such connections). The threads of a [`Shared`](crate::Shared) client
    /// share this limit. Default 900, within the 1,024 descriptors that a process usually has.
    ///
    /// If the machine has no descriptor left for a connection, the client waits as it does at the cap (see
    /// [`Shortage`](crate::error::Shortage)).
    pub max_connections: NonZeroUsize,
    /// The rate of requests to all hosts together, in addition to [`HostConfig::rate`] for each host. Waiting hosts
    /// send one request each in rotation. Default: no limit.
    pub rate: Option<Rate>,
    /// The rate of bytes read from all hosts together, in addition to [`HostConfig::bytes_in`] for each host. Default:
    /// no limit.
    pub bytes_in: Option<Rate>,
    /// The rate of bytes written to all hosts together, in addition to [`HostConfig::bytes_out`] for each host.
    /// Default: no limit.
    pub bytes_out: Option<Rate>,
    /// Whether redirects are followed. Default: no.
    pub redirects: Redirects,
    /// Refuse every URL that is not `https`, of calls and of redirects, with
    /// [`UrlError::NotHttps`](crate::proto::UrlError::NotHttps). Default: no.
    pub https_only: bool,
    /// TLS for `https` proxies. Default: as [`HostConfig::tls`], without the client certificate, the server name and
    /// the pinned keys, which are for servers.
    pub proxy_tls: Option<TlsConfig>,
    /// Which addresses of proxies may be connected to. Default: all, because the user chooses the proxies.
    pub proxy_addresses: AddressPolicy,
    /// Hosts that are reached at another host and port, or at a Unix socket. Default: none.
    pub routes: Vec<Route>,
    /// Proxies, and which URLs go through them. Default: none; [`Proxies::from_env`] reads the usual variables.
    pub proxies: Proxies,
    /// The jar that cookies are stored in and sent from. Default: none.
    #[cfg(feature = "cookies")]
    pub cookies: Option<CookieJar>,
}

/// The options of a [`PipelineClient`](crate::PipelineClient).
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

impl Default for Config {
    fn default() -> Self {
        Self {
            host: HostConfig::default(),
            max_connections: NonZeroUsize::new(900).unwrap_or(NonZeroUsize::MIN),
            rate: None,
            bytes_in: None,
            bytes_out: None,
            redirects: Redirects::none(),
            https_only: false,
            proxy_tls: None,
            proxy_addresses: AddressPolicy::allow_all(),
            routes: Vec::new(),
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
            random_start: true,
            avoid_failed: Duration::from_secs(30),
            timeouts: Timeouts::default(),
            late: LatePolicy::default(),
            limits: Limits::default(),
            ignore_invalid_headers: false,
            held_bytes: Some(1 << 30),
            user_agent: Some(concat!("courser/", env!("CARGO_PKG_VERSION")).to_owned()),
            codings: Codings::none(),
            send_hook: None,
            retry: Retry::default(),
            retry_budget: Some(RetryBudget::default()),
            breaker: None,
            rate: None,
            min_delay: None,
            bytes_in: None,
            bytes_out: None,
            balance: None,
            adaptive: None,
            observer: None,
            stats: false,
            tls: TlsConfig::default(),
            dns: DnsConfig::default(),
            addresses: AddressPolicy::allow_all(),
            socket: SocketOptions::default(),
            stream_buffer: 64 * 1024,
        }
    }
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

    /// Refuses numbers that have no meaning, for all kinds of clients.
    pub(super) fn check(&self) -> Result<(), Misuse> {
        let rules = self.retry.rules.iter();
        let backoff = rules
            .map(|rule| rule.backoff.factor)
            .find(|factor| !(0.0..=MOST_FACTOR).contains(factor));
        let (buffer, min_idle) = (Some(self.stream_buffer as f64), Some(self.min_idle as f64));
        let budget = self.retry_budget.map(|budget| budget.ratio);
        let breaker = self.breaker.as_ref().map(|breaker| breaker.failure_ratio);
        let balance = self.balance.as_ref();
        let panic = balance.map(|balance| balance.panic_below);
        let slow = balance.and_then(|balance| balance.slow_factor);
        let adaptive = self.adaptive.map(|adaptive| adaptive.factor);
        let numbers = [
            ("stream_buffer", buffer, 1.0, u32::MAX.into()),
            ("min_idle", min_idle, 0.0, u32::MAX.into()),
            ("RetryBudget::ratio", budget, 0.0, 1.0),
            ("BreakerConfig::failure_ratio", breaker, 0.0, 1.0),
            ("BalanceConfig::panic_below", panic, 0.0, 1.0),
            ("BalanceConfig::slow_factor", slow, 0.0, MOST_FACTOR),
            ("AdaptiveTimeout::factor", adaptive, 0.0, MOST_FACTOR),
            ("Backoff::factor", backoff, 0.0, MOST_FACTOR),
        ];
        for (setting, value, least, most) in numbers {
            // Not-a-number is in no range.
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                return Err(Misuse::OutOfRange {
                    setting,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }

    /// The rates of bytes of a client of one host.
    pub(super) fn bytes(&self) -> ByteRates {
        ByteRates {
            host: [None; 2],
            total: [self.bytes_in, self.bytes_out],
        }
    }

    pub(super) fn rates(&self) -> Rates {
        [self.rate, self.min_delay.map(Rate::every)]
    }
}

/// Greater factors make no difference.
const MOST_FACTOR: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::error::ErrorKind;
    use crate::policy::{FailureClass, RetryOn, RetryRule};

    #[test]
    fn an_exception_of_proxies_without_a_meaning_is_refused() {
        let config = |list: &str| Config {
            proxies: Proxies::none().except(list),
            ..Config::default()
        };
        for list in ["", "*", "localhost,, .a 10.0.0.0/8 b:81 [::1]:82"] {
            assert!(Client::new(config(list)).is_ok(), "{list}");
        }
        for (list, entry) in [
            ("a, *.b", "*.b"),
            ("10.0.0.0/33", "10.0.0.0/33"),
            ("a:x", "a:x"),
        ] {
            let error = Client::new(config(list)).map(|_| ()).expect_err(list);
            let ErrorKind::Misuse(Misuse::ProxyException(refused)) = error.kind() else {
                panic!("{error:?}");
            };
            assert_eq!(&**refused, entry);
        }
        let from_env = Proxies::from_vars(|name| (name == "no_proxy").then(|| "*.b".to_owned()));
        assert!(from_env.expect("no proxy").check().is_ok());
    }

    #[test]
    fn numbers_without_a_meaning_are_refused() {
        type Edit = fn(&mut HostConfig);
        let refused = |change: Edit| {
            let mut config = HostConfig::default();
            change(&mut config);
            let Err(Misuse::OutOfRange { setting, .. }) = config.check() else {
                panic!("not refused");
            };
            setting
        };
        assert!(HostConfig::default().check().is_ok());
        let empty: Edit = |config| config.stream_buffer = 0;
        for (change, setting) in [
            (empty, "stream_buffer"),
            (|config| config.stream_buffer = usize::MAX, "stream_buffer"),
            (|config| config.min_idle = usize::MAX, "min_idle"),
            (
                |config| config.retry_budget.as_mut().expect("a default").ratio = f64::NAN,
                "RetryBudget::ratio",
            ),
            (
                |config| {
                    config.breaker = Some(BreakerConfig {
                        failure_ratio: 1.1,
                        ..BreakerConfig::default()
                    });
                },
                "BreakerConfig::failure_ratio",
            ),
            (
                |config| {
                    let rules = [1.0, -1.0].map(|factor| {
                        let mut rule = RetryRule::new(RetryOn::Failure(FailureClass::Refused));
                        rule.backoff.factor = factor;
                        rule
                    });
                    config.retry.rules = rules.to_vec();
                },
                "Backoff::factor",
            ),
            (
                |config| {
                    config.balance = Some(BalanceConfig {
                        slow_factor: Some(f64::INFINITY),
                        ..BalanceConfig::default()
                    });
                },
                "BalanceConfig::slow_factor",
            ),
        ] {
            assert_eq!(refused(change), setting);
        }
    }
}
