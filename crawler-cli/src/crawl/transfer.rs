//! How a crawl uses the network, and the client that does so.

use std::num::NonZeroUsize;
use std::time::Duration;

use courser::{
    Client, Codings, Config, HickoryResolver, HostConfig, Proxies, Timeouts, TlsConfig, proto,
};
use url::Url;

use super::addresses::Guard;

/// How a crawl uses the network: connections, times, who asks, proxies.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// Connections to one host, and requests to the host under way at a time.
    pub(crate) connections: NonZeroUsize,
    /// For one request in all.
    pub(crate) timeout: Duration,
    /// For connecting.
    pub(crate) connect: Duration,
    /// For the TLS handshake.
    pub(crate) handshake: Duration,
    /// How long a connection that is not in use is kept; `None`: as the engine has it.
    pub(crate) idle: Option<Duration>,
    /// Between TCP keep-alive probes; `None`: as the engine has it.
    pub(crate) keep_alive: Option<Duration>,
    /// Largest body in bytes, as sent and without its content codings.
    pub(crate) max_body: u64,
    pub(crate) user_agent: String,
    /// Private addresses that no given host has may be connected to.
    pub(crate) allow_private: bool,
    /// Hosts of one address are taken for one.
    pub(crate) per_address: bool,
    pub(crate) tls: TlsConfig,
    pub(crate) proxies: Proxies,
}

impl Default for Transfer {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN),
            timeout: Duration::from_secs(30),
            connect: LONGEST_OPENING,
            handshake: LONGEST_OPENING,
            idle: None,
            keep_alive: None,
            max_body: 64 << 20,
            user_agent: USER_AGENT.to_owned(),
            allow_private: false,
            per_address: false,
            tls: TlsConfig::default(),
            proxies: Proxies::none(),
        }
    }
}

impl Transfer {
    /// Connects to public addresses and, unless all are allowed, of the others only to those of the given URLs.
    pub(crate) fn client(&self, given: &[Url]) -> Result<Client, courser::Error> {
        let within = |phase: Duration| Some(phase.min(self.timeout));
        let mut config = Config {
            max_connections: self.all_connections(),
            host: HostConfig {
                max_connections: self.connections,
                timeouts: Timeouts {
                    total: Some(self.timeout),
                    resolve: within(LONGEST_OPENING),
                    connect: within(self.connect),
                    handshake: within(self.handshake),
                    ..Timeouts::none()
                },
                codings: Codings::all(),
                user_agent: Some(self.user_agent.clone()),
                ..HostConfig::default()
            },
            tls: self.tls.clone(),
            proxies: self.proxies.clone(),
            ..Config::default()
        };
        if let Some(idle) = self.idle {
            config.host.idle_timeout = idle;
        }
        if let Some(interval) = self.keep_alive {
            config.host.socket.keepalive = Some(interval);
        }
        config.host.limits.body_bytes = Some(self.max_body);
        config.host.limits.decoded_bytes = Some(self.max_body);
        if self.allow_private {
            return Client::new(config);
        }
        let guard = guard(given, &self.proxies);
        config.addresses = guard.policy();
        Client::with_resolver(config, guard.resolver(HickoryResolver::system()))
    }

    /// As many as the engine has by default, which most systems allow, unless more are asked for one host.
    pub(crate) fn all_connections(&self) -> NonZeroUsize {
        Config::default().max_connections.max(self.connections)
    }
}

/// For the hosts of these URLs, and the proxies that lead to them.
fn guard(given: &[Url], proxies: &Proxies) -> Guard {
    let proxies = given.iter().filter_map(|url| {
        let url = proto::Url::parse(url.as_str()).ok()?;
        let proxy = proxies.pick(&url)?;
        url::Host::parse(proxy.host()).ok()
    });
    let proxies: Vec<url::Host> = proxies.collect();
    let proxies = proxies.iter().map(|host| match host {
        url::Host::Domain(name) => url::Host::Domain(name.as_str()),
        url::Host::Ipv4(ip) => url::Host::Ipv4(*ip),
        url::Host::Ipv6(ip) => url::Host::Ipv6(*ip),
    });
    Guard::new(given.iter().filter_map(Url::host).chain(proxies))
}

/// Who asks, and where more is told about that.
pub const USER_AGENT: &str = concat!(
    "Courser/",
    env!("CARGO_PKG_VERSION"),
    " (+",
    env!("CARGO_PKG_HOMEPAGE"),
    ")"
);

/// A host that has not got one step further towards a connection by then is away; this leaves time to try again.
const LONGEST_OPENING: Duration = Duration::from_secs(10);
