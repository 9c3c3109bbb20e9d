//! The client of one upstream.

use std::sync::Arc;

use super::admission::Balance;
use super::engine::{Engine, Parts};
use super::hosts::{Addresses, HostRoute, Hosts};
use super::router::OneHost;
use super::sharing::{OneAtATime, Sharing};
use super::throttle::Throttling;
use super::{HostConfig, Upstream};
use crate::error::{Error, Misuse};
use crate::net::os::OsNet;
use crate::net::resolve::{Resolver, default_resolver};
use crate::net::{Address, Net};
use crate::proto::{Defaults, Scheme, check_user_agent};
use crate::reactor::{HostKey, Step};

/// A client of one upstream, with a bounded pool of connections.
///
/// The upstream is given by addresses, by a Unix socket, or by a URL, with or without TLS. The addresses of a name are
/// looked up for each new connection, through a cache, and raced, or calls are spread over them
/// ([`HostConfig::balance`]).
///
/// A client has no thread of its own. The caller's thread does the work inside [`call`](Engine::call), which blocks, or
/// inside [`wait`](Engine::wait), for the calls that [`submit`](Engine::submit) took. Calls make no progress between
/// these methods, so a program with calls in flight should call `wait` often.
///
/// ```
/// use courser::{HostClient, HostConfig, Response};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let address = server.local_addr()?.to_string();
/// # std::thread::spawn(move || { use std::io::*; let mut s = server.accept().unwrap().0; let mut b = [0; 999];
/// #     let _ = s.read(&mut b); s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap(); });
///
/// let mut client = HostClient::new(address.parse()?, HostConfig::default())?;
/// let mut response = Response::new();
/// client.get("/", &mut response)?;
/// assert_eq!((response.status(), response.body()), (200, &b"hi"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type HostClient<N = OsNet> = Engine<OneHost, N>;

impl HostClient {
    /// A client on the operating system's network. The name of an upstream is looked up by
    /// `HickoryResolver::system` (see [`Client::new`](crate::Client::new)); without a name, no resolver runs.
    ///
    /// # Errors
    /// An upstream without addresses; an invalid TLS configuration of an `https` upstream; a setting that this client
    /// does not support; the system's error, when it has no descriptor left for a readiness queue.
    pub fn new(upstream: Upstream, config: HostConfig) -> Result<Self, Error> {
        Self::with_resolver(upstream, config, default_resolver())
    }

    /// A client on the operating system's network, with this resolver for the name of the upstream.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_resolver(
        upstream: Upstream,
        config: HostConfig,
        resolver: impl Resolver + 'static,
    ) -> Result<Self, Error> {
        let net = OsNet::new().map_err(Error::unsent)?;
        Self::with_net_and_resolver(upstream, config, net, resolver)
    }
}

impl<N: Net> HostClient<N> {
    /// A client on this network, without a resolver.
    ///
    /// # Errors
    /// As [`with_net_and_resolver`](Self::with_net_and_resolver); [`Misuse::NoResolver`] for an upstream with a name.
    pub fn with_net(upstream: Upstream, config: HostConfig, net: N) -> Result<Self, Error> {
        Self::build(&upstream, config, net, None)
    }

    /// A client on this network, with this resolver for the name of the upstream.
    ///
    /// # Errors
    /// An upstream without addresses; an invalid TLS configuration of an `https` upstream; a setting that this client
    /// does not support; the network's error, when it cannot make a waker.
    pub fn with_net_and_resolver(
        upstream: Upstream,
        config: HostConfig,
        net: N,
        resolver: impl Resolver + 'static,
    ) -> Result<Self, Error> {
        Self::build(&upstream, config, net, Some(Box::new(resolver)))
    }

    fn build(
        upstream: &Upstream,
        config: HostConfig,
        net: N,
        resolver: Option<Box<dyn Resolver>>,
    ) -> Result<Self, Error> {
        let (keys, parts) = one_upstream(upstream, &config, OneAtATime, resolver)?;
        let (balance, bytes) = (config.balance.clone(), config.bytes());
        let (min_idle, random_start) = (config.pool().min_idle, config.random_start);
        let mut client = Self::assemble(parts, config, bytes, net)?;
        if let Some(balance) = balance {
            let (now, first) = (client.calls.dispatch.reactor.now(), keys[0]);
            let mut balance = match upstream.name() {
                Some(_) => Balance::of_name(now, balance, first, min_idle),
                None => Balance::new(balance, first, min_idle, keys),
            };
            if random_start {
                balance.start_at(client.calls.dispatch.reactor.common.net.random());
            }
            let dispatch = &mut client.calls.dispatch;
            dispatch.admission.set_balance(balance);
            dispatch.admission.share_min_idle(&mut dispatch.hosts);
            dispatch.connector.fails_over = true;
        }
        Ok(client)
    }
}

/// The only host of a client. If calls are spread: a host for each address, or one that waits for the addresses of the
/// name. These hosts share the cap on connections and the defaults of requests. At least one host is returned.
pub(super) fn one_upstream<S: Sharing>(
    upstream: &Upstream,
    config: &HostConfig,
    sharing: S,
    resolver: Option<Box<dyn Resolver>>,
) -> Result<(Vec<HostKey>, Parts<OneHost<S>>), Error> {
    let name = upstream.name();
    // An upstream without a name needs no resolver.
    let resolver = resolver.filter(|_| name.is_some());
    if name.is_some() && resolver.is_none() {
        return Err(Error::unsent(Misuse::NoResolver));
    }
    if name.is_none() && upstream.addresses().is_empty() {
        return Err(Error::unsent(Misuse::NoAddress));
    }
    check_user_agent(config.user_agent.as_deref()).map_err(Error::unsent)?;
    let handshakes: Arc<[Step]> = match upstream.scheme() {
        Scheme::Http if config.tls.has_pins() => {
            return Err(Error::unsent(Misuse::Unsupported(
                "pinned keys without TLS",
            )));
        }
        Scheme::Http => [].into(),
        Scheme::Https => {
            let identity = config.tls.build();
            let identity = identity.map_err(|error| Error::unsent(Misuse::TlsConfig(error)))?;
            [Step::Tls(identity, upstream.server_name().into())].into()
        }
    };
    let defaults = Defaults::new(upstream.host(), config.user_agent.as_deref());
    let defaults = defaults.with_codings(config.codings);
    let spreads = config.balance.is_some();
    let addresses = match name {
        Some((name, port)) if spreads => vec![Addresses::Spread(name.into(), port)],
        Some((name, port)) => vec![Addresses::Named(name.into(), port)],
        None if spreads => {
            let only = |address: &Address| Addresses::Known(vec![address.clone()]);
            upstream.addresses().iter().map(only).collect()
        }
        None => vec![Addresses::Known(upstream.addresses().to_vec())],
    };
    let mut pool = config.pool();
    pool.shared = S::IS_ON;
    let (mut most, mut rates) = (usize::MAX, [config.rates(), [None; 2]]);
    if spreads {
        // Without a call, connections to keep are why a name is looked up. The addresses get their shares.
        pool.min_idle = pool.min_idle.min(1);
        most = config.max_connections.get();
        rates.reverse(); // they are for the whole upstream
    }
    let mut hosts = Hosts::new(pool, most);
    let [each, total] = rates;
    let throttle = Throttling::new(each, total, &mut hosts);
    let insert = |addresses| {
        let route = HostRoute::new(addresses, handshakes.clone());
        hosts.insert([].into(), defaults.clone(), route)
    };
    let keys: Vec<HostKey> = addresses.into_iter().map(insert).collect();
    let parts = Parts {
        router: OneHost::new(keys[0]),
        sharing,
        hosts,
        throttle,
        resolver,
    };
    Ok((keys, parts))
}
