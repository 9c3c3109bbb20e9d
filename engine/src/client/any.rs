//! The client of any URL.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Config;
use super::engine::Engine;
use super::hosts::{Addresses, Hosts};
use super::router::{Reroute, Router};
use crate::error::{Error, ErrorKind, Misuse, Phase, Sent};
use crate::net::os::OsNet;
use crate::net::{Address, Net};
use crate::policy::{Follow, PoolConfig, Redirects};
use crate::proto::{Defaults, Request, Response, TargetForm, Url, resolve};
use crate::reactor::Key;

/// A client of any `http` URL.
///
/// Requests have a URL as their target. Each scheme, host and port has a pool of its own, and all of them together
/// have a cap; hosts that are not used any more cost nothing.
///
/// ```
/// use courser::{Client, Config, Response};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let url = format!("http://{}/", server.local_addr()?);
/// # std::thread::spawn(move || { use std::io::*; let mut s = server.accept().unwrap().0; let mut b = [0; 999];
/// #     let _ = s.read(&mut b); s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap(); });
///
/// let mut client = Client::new(Config::default())?;
/// let mut response = Response::new();
/// client.get(&url, &mut response)?;
/// assert_eq!((response.status(), response.body()), (200, &b"hi"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Client<N = OsNet> = Engine<AnyHost, N>;

/// The router of [`Client`]: each scheme, host and port of a URL is a host of its own.
#[derive(Debug)]
pub struct AnyHost {
    hosts: HashMap<Box<[u8]>, Key>,
    /// For building the name of a host.
    name: Vec<u8>,
    user_agent: Option<String>,
    redirects: Redirects,
}

impl Client {
    /// A client on the operating system's network.
    ///
    /// # Errors
    /// The system's, when it has no descriptor left for a readiness queue.
    pub fn new(config: Config) -> Result<Self, Error> {
        let net = OsNet::new().map_err(|error| Error::new(error, Phase::Queue, Sent::Nothing))?;
        Self::with_net(config, net)
    }
}

impl<N: Net> Client<N> {
    /// A client on that network.
    ///
    /// # Errors
    /// None so far.
    pub fn with_net(config: Config, net: N) -> Result<Self, Error> {
        let router = AnyHost {
            hosts: HashMap::new(),
            name: Vec::new(),
            user_agent: config.host.user_agent.clone(),
            redirects: config.redirects,
        };
        let hosts = Hosts::new(config.max_connections.get());
        Ok(Self::assemble(router, hosts, config.host, net))
    }
}

impl Router for AnyHost {
    const KEEPS_HOSTS: bool = false;

    fn route(
        &mut self,
        request: &mut Request,
        hosts: &mut Hosts,
        pool: &PoolConfig,
    ) -> Result<Key, ErrorKind> {
        let text = request.url();
        let url = Url::parse(text).map_err(|error| Misuse::url(text, error))?;
        self.name.clear();
        url.push_origin(&mut self.name);
        if let Some(&host) = self.hosts.get(&*self.name) {
            return Ok(host);
        }
        let mut authority = Vec::new();
        url.push_authority(&mut authority);
        let defaults =
            Defaults::new(authority, self.user_agent.as_deref()).with_form(TargetForm::OfUrl);
        let host = hosts.insert(
            self.name.as_slice().into(),
            pool.clone(),
            defaults,
            addresses_of(&url)?,
        );
        self.hosts.insert(self.name.as_slice().into(), host);
        Ok(host)
    }

    fn reroute(
        &mut self,
        request: &mut Request,
        response: &Response,
        followed: u32,
        redirects: Option<Redirects>,
    ) -> Result<Reroute, ErrorKind> {
        let redirects = redirects.unwrap_or(self.redirects);
        if !(300..400).contains(&response.status()) {
            return Ok(Reroute::Stay);
        }
        let Some(location) = response.header("location") else {
            return Ok(Reroute::Stay);
        };
        let decided = redirects.decide(
            response.status(),
            request.method_now(),
            request.is_replayable(),
            followed,
        );
        let method = match decided? {
            Follow::No => return Ok(Reroute::Stay),
            Follow::Same => None,
            Follow::WithoutBody(method) => Some(method),
            Follow::NotReplayable => return Err(Misuse::BodyNotReplayable.into()),
        };
        let from = request.url();
        let invalid =
            |error| ErrorKind::from(Misuse::url(&String::from_utf8_lossy(location), error));
        let to = resolve(from, location).map_err(invalid)?;
        let elsewhere = match (Url::parse(from), Url::parse(&to)) {
            (Ok(from), Ok(to)) => !from.same_origin(&to),
            _ => true,
        };
        request.redirect(to, method, elsewhere);
        Ok(Reroute::To)
    }

    fn forget(&mut self, name: &[u8]) {
        self.hosts.remove(name);
    }
}

fn addresses_of(url: &Url<'_>) -> Result<Addresses, ErrorKind> {
    let at = |ip: IpAddr| Address::Tcp(SocketAddr::new(ip, url.port()));
    if let Some(ip) = url.ip() {
        return Ok(Addresses::Known(vec![at(ip)]));
    }
    let name = url.host();
    if name.eq_ignore_ascii_case("localhost") {
        let loopback: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
        return Ok(Addresses::Known(loopback.map(at).into()));
    }
    Err(Misuse::Upstream(name.to_owned()).into())
}
