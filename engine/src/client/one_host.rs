//! The client of one upstream.

use super::admission::Balance;
use super::engine::Engine;
use super::hosts::{Addresses, Hosts};
use super::router::OneHost;
use super::{HostConfig, Upstream};
use crate::error::{Error, Misuse, Phase, Sent};
use crate::net::os::OsNet;
use crate::net::{Address, Net};
use crate::policy::{Balancer, PoolConfig, ThrottleConfig};
use crate::proto::Defaults;
use crate::reactor::HostKey;

/// A client of one upstream, with a bounded pool of connections.
///
/// It has no thread of its own: the caller's thread drives it, blocking in [`call`](Engine::call) or with many calls in
/// flight by [`submit`](Engine::submit) and [`wait`](Engine::wait). Between two of these nothing moves, so a program
/// that keeps calls in flight should come back often.
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
    /// A client on the operating system's network.
    ///
    /// # Errors
    /// An upstream without addresses; the system's, when it has no descriptor left for a readiness queue.
    pub fn new(upstream: Upstream, config: HostConfig) -> Result<Self, Error> {
        let net = OsNet::new().map_err(|error| Error::new(error, Phase::Queue, Sent::Nothing))?;
        Self::with_net(upstream, config, net)
    }
}

impl<N: Net> HostClient<N> {
    /// A client on that network.
    ///
    /// # Errors
    /// An upstream without addresses.
    pub fn with_net(upstream: Upstream, config: HostConfig, net: N) -> Result<Self, Error> {
        let Some(balance) = config.balance.clone() else {
            let (host, hosts) = one_host(&upstream, &config, config.pool())?;
            let bytes = config.bytes();
            return Ok(Self::assemble(OneHost(host), hosts, config, bytes, net));
        };
        let (keys, hosts) = each_address(&upstream, &config)?;
        let balancer = Balancer::new(balance, &upstream.weights());
        let Some(&first) = keys.first() else {
            return Err(no_address());
        };
        let bytes = config.bytes();
        let mut client = Self::assemble(OneHost(first), hosts, config, bytes, net);
        client.set_balance(Balance::new(client.iteration_time(), balancer, keys));
        Ok(client)
    }
}

/// A host for each address; they share the cap on connections, and what their requests say by default.
fn each_address(upstream: &Upstream, config: &HostConfig) -> Result<(Vec<HostKey>, Hosts), Error> {
    check_addresses(upstream)?;
    let defaults = defaults(upstream, config);
    let pool = PoolConfig {
        min_idle: config.min_idle.div_ceil(upstream.addresses().len()),
        ..config.pool()
    };
    let mut hosts = Hosts::new(config.max_connections.get());
    // The rates are the upstream's; how much it copes with is each address's own.
    let throttle = config.throttle();
    let each = ThrottleConfig {
        concurrency: throttle.concurrency.clone(),
        ..ThrottleConfig::default()
    };
    let all = ThrottleConfig {
        concurrency: None,
        ..throttle
    };
    hosts.set_throttles(each, &all);
    let insert = |address: &Address| {
        let only = Addresses::Known(vec![address.clone()]);
        hosts.insert([].into(), pool.clone(), defaults.clone(), only, [].into())
    };
    let keys = upstream.addresses().iter().map(insert).collect();
    Ok((keys, hosts))
}

/// The only host of a client.
pub(super) fn one_host(
    upstream: &Upstream,
    config: &HostConfig,
    pool: PoolConfig,
) -> Result<(HostKey, Hosts), Error> {
    check_addresses(upstream)?;
    let defaults = defaults(upstream, config);
    let addresses = Addresses::Known(upstream.addresses().to_vec());
    let mut hosts = Hosts::new(usize::MAX);
    hosts.set_throttles(config.throttle(), &ThrottleConfig::default());
    let host = hosts.insert([].into(), pool, defaults, addresses, [].into());
    Ok((host, hosts))
}

fn check_addresses(upstream: &Upstream) -> Result<(), Error> {
    match upstream.addresses() {
        [] => Err(no_address()),
        _ => Ok(()),
    }
}

fn no_address() -> Error {
    Error::new(Misuse::NoAddress, Phase::Queue, Sent::Nothing)
}

fn defaults(upstream: &Upstream, config: &HostConfig) -> Defaults {
    Defaults::new(upstream.host(), config.user_agent.as_deref()).with_codings(config.codings)
}
