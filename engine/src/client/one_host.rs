//! The client of one upstream.

use super::engine::{Engine, Parts};
use super::hosts::{Addresses, Hosts, Route};
use super::router::OneHost;
use super::sharing::{OneAtATime, Sharing};
use super::throttle::Throttling;
use super::{HostConfig, Upstream};
use crate::error::{Error, Misuse, Phase, Sent};
use crate::net::os::OsNet;
use crate::net::{Address, Net};
use crate::policy::{Balancer, PoolConfig, ThrottleConfig};
use crate::proto::Defaults;
use crate::reactor::HostKey;

/// A client of one upstream, with a bounded pool of connections.
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
    /// A client on the operating system's network.
    ///
    /// # Errors
    /// An upstream without addresses; the system's error, when it has no descriptor left for a readiness queue.
    pub fn new(upstream: Upstream, config: HostConfig) -> Result<Self, Error> {
        let net = OsNet::new().map_err(|error| Error::new(error, Phase::Queue, Sent::Nothing))?;
        Self::with_net(upstream, config, net)
    }
}

impl<N: Net> HostClient<N> {
    /// A client on this network.
    ///
    /// # Errors
    /// An upstream without addresses.
    pub fn with_net(upstream: Upstream, config: HostConfig, net: N) -> Result<Self, Error> {
        let bytes = config.bytes();
        let Some(balance) = config.balance.clone() else {
            let parts = one_host(&upstream, &config, config.pool(), OneAtATime)?;
            return Ok(Self::assemble(parts, config, bytes, net));
        };
        let (keys, parts) = each_address(&upstream, &config)?;
        let balancer = Balancer::new(balance, &upstream.weights());
        let mut client = Self::assemble(parts, config, bytes, net);
        client.set_balance(balancer, keys);
        Ok(client)
    }
}

/// Makes a host for each address. The hosts share the cap on connections and the defaults of requests.
fn each_address(
    upstream: &Upstream,
    config: &HostConfig,
) -> Result<(Vec<HostKey>, Parts<OneHost>), Error> {
    check_addresses(upstream)?;
    let defaults = defaults(upstream, config);
    let pool = PoolConfig {
        min_idle: config.min_idle.div_ceil(upstream.addresses().len()),
        ..config.pool()
    };
    let mut hosts = Hosts::new(pool, config.max_connections.get());
    // The rates are for the whole upstream; the limit of calls in flight is for each address.
    let throttle = config.throttle();
    let each = ThrottleConfig {
        concurrency: throttle.concurrency.clone(),
        ..ThrottleConfig::default()
    };
    let all = ThrottleConfig {
        concurrency: None,
        ..throttle
    };
    let throttle = Throttling::new(each, &all, &mut hosts);
    let insert = |address: &Address| {
        let only = Addresses::Known(vec![address.clone()]);
        hosts.insert([].into(), defaults.clone(), Route::new(only, [].into()))
    };
    let keys: Vec<HostKey> = upstream.addresses().iter().map(insert).collect();
    let first = *keys.first().ok_or_else(no_address)?;
    let parts = Parts {
        router: OneHost::new(first),
        sharing: OneAtATime,
        hosts,
        throttle,
    };
    Ok((keys, parts))
}

/// The only host of a client.
pub(super) fn one_host<S: Sharing>(
    upstream: &Upstream,
    config: &HostConfig,
    pool: PoolConfig,
    sharing: S,
) -> Result<Parts<OneHost<S>>, Error> {
    check_addresses(upstream)?;
    let defaults = defaults(upstream, config);
    let addresses = Addresses::Known(upstream.addresses().to_vec());
    let mut hosts = Hosts::new(pool, usize::MAX);
    let throttle = Throttling::new(config.throttle(), &ThrottleConfig::default(), &mut hosts);
    let host = hosts.insert([].into(), defaults, Route::new(addresses, [].into()));
    Ok(Parts {
        router: OneHost::new(host),
        sharing,
        hosts,
        throttle,
    })
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
