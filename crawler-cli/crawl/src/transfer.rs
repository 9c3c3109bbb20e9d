//! How a crawl uses the network: its settings, and the client made from them.

use std::num::NonZeroUsize;
use std::time::Duration;

use courser::net::Net;
use courser::policy::{AdaptiveTimeout, BreakerConfig};
use courser::{
    AddressPolicy, Client, Codings, Config, CookieJar, HickoryResolver, HostConfig, Proxies, Rate,
    Resolver, Timeouts, TlsConfig,
};
use url::Url;

use super::addresses::Guard;
use super::identity::Identities;
use jobs::Ceilings;

/// The network settings of a crawl.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The largest number of connections to one host, and of requests in flight to the host. Default 8.
    pub connections: NonZeroUsize,
    /// The largest number of connections to all hosts, if not the engine's default.
    pub most: Option<NonZeroUsize>,
    /// The number of file descriptors that connections leave free. Default 0.
    pub reserved: usize,
    /// The limit for one request in all. Default 30 s.
    pub timeout: Duration,
    /// The limit for connecting. Default 10 s.
    pub connect: Duration,
    /// The limit for the TLS handshake. Default 10 s.
    pub handshake: Duration,
    /// How long an idle connection is kept; `None`: the engine's default.
    pub idle: Option<Duration>,
    /// The interval of TCP keep-alive probes; `None`: the engine's default.
    pub keep_alive: Option<Duration>,
    /// The largest body in bytes, before and after decoding. Default 64 MiB.
    pub max_body: u64,
    /// The `User-Agent` of requests.
    pub user_agent: String,
    /// Whether the private addresses of any host may be connected to.
    pub allow_private: bool,
    /// The limit of the wait for an answer that follows the usual wait for the host. Default: none.
    pub adaptive: Option<AdaptiveTimeout>,
    /// When a host that fails gets no requests for a while. Default: never.
    pub breaker: Option<BreakerConfig>,
    /// Whether answers are read as browsers read them: header lines that are wrong and harmless are dropped. Default: no.
    pub lenient: bool,
    /// The largest rate of bytes received from all hosts together. Default: no limit.
    pub bytes_in: Option<Rate>,
    /// What hosts may be asked together with other schedulers and pools. Default: nothing.
    pub ceilings: Ceilings,
    /// The TLS settings, such as trusted authorities. Default: the authorities that are compiled in.
    pub tls: TlsConfig,
    /// The proxies. Default: none.
    pub proxies: Proxies,
    /// What only certain hosts get.
    pub identities: Identities,
    /// Cookies of servers are kept in this jar and sent back. Default: none.
    pub cookies: Option<CookieJar>,
}

impl Default for Transfer {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN),
            most: None,
            reserved: 0,
            timeout: Duration::from_secs(30),
            connect: LONGEST_OPENING,
            handshake: LONGEST_OPENING,
            idle: None,
            keep_alive: None,
            max_body: 64 << 20,
            user_agent: USER_AGENT.to_owned(),
            allow_private: false,
            adaptive: None,
            breaker: None,
            lenient: false,
            bytes_in: None,
            ceilings: Ceilings::default(),
            tls: TlsConfig::default(),
            proxies: Proxies::none(),
            identities: Identities::default(),
            cookies: None,
        }
    }
}

impl Transfer {
    /// Creates the client. Unless all are allowed, private addresses are limited to those of the given URLs. Proxies may
    /// have any address.
    pub fn client(&self, given: &[Url]) -> Result<Client, courser::Error> {
        let mut config = self.config();
        if self.allow_private {
            return Client::new(config);
        }
        let guard = Guard::new(given.iter().filter_map(Url::host));
        config.host.addresses = guard.policy();
        Client::with_resolver(config, guard.resolver(HickoryResolver::system()))
    }

    /// Why TLS cannot be used, if it cannot: a file of authorities cannot be read, for example.
    pub fn tls_fault(&self) -> Option<String> {
        self.tls.build().err().map(|error| error.to_string())
    }

    /// Creates a client on this network, with this resolver. Unless all are allowed, only public addresses are.
    pub fn client_on<N: Net>(
        &self,
        net: N,
        resolver: impl Resolver + 'static,
    ) -> Result<Client<N>, courser::Error> {
        let mut config = self.config();
        if !self.allow_private {
            config.host.addresses = AddressPolicy::deny_private();
        }
        Client::with_net(config, net, resolver)
    }

    /// The settings of the client, but for the addresses.
    fn config(&self) -> Config {
        let within = |phase: Duration| Some(phase.min(self.timeout));
        let mut config = Config {
            max_connections: self.all_connections(),
            host: HostConfig {
                max_connections: self.connections,
                timeouts: Timeouts {
                    total: Some(self.timeout),
                    total_streamed: Some(self.timeout),
                    resolve: within(LONGEST_OPENING),
                    connect: within(self.connect),
                    handshake: within(self.handshake),
                    ..Timeouts::none()
                },
                codings: Codings::all(),
                user_agent: Some(self.user_agent.clone()),
                tls: self.tls.clone(),
                adaptive: self.adaptive,
                breaker: self.breaker.clone(),
                ignore_invalid_headers: self.lenient,
                ..HostConfig::default()
            },
            proxies: self.proxies.clone(),
            cookies: self.cookies.clone(),
            bytes_in: self.bytes_in,
            ..Config::default()
        };
        if let Some(idle) = self.idle {
            config.host.idle_timeout = idle;
        }
        if let Some(interval) = self.keep_alive {
            config.host.socket.keepalive = Some(interval);
        }
        if self.lenient {
            config.host.limits.head_bytes = LENIENT_HEAD;
        }
        config.host.limits.body_bytes = Some(self.max_body);
        config.host.limits.decoded_bytes = Some(self.max_body);
        config
    }

    /// Without a limit for all, the engine's default, which most systems allow, without the reserved descriptors; at
    /// least the limit of one host.
    pub(crate) fn all_connections(&self) -> NonZeroUsize {
        self.most.unwrap_or_else(|| {
            let most = Config::default().max_connections.get();
            let most = NonZeroUsize::new(most.saturating_sub(self.reserved));
            most.map_or(self.connections, |most| most.max(self.connections))
        })
    }
}

/// The name of the crawler and a URL about it.
pub const USER_AGENT: &str = concat!(
    "Courser/",
    env!("CARGO_PKG_VERSION"),
    " (+",
    env!("CARGO_PKG_HOMEPAGE"),
    ")"
);

/// The largest head of an answer that is read leniently: as curl's. A line beyond the engine's limit is dropped.
const LENIENT_HEAD: usize = 300 * 1024;

/// The limit for each phase of opening a connection: leaves time for another attempt.
const LONGEST_OPENING: Duration = Duration::from_secs(10);
