//! The client of any URL.

use std::collections::HashMap;
use std::net::SocketAddrV6;
use std::sync::Arc;

use super::Config;
#[cfg(feature = "cookies")]
use super::CookieJar;
use super::engine::{Engine, Parts};
use super::hosts::{Addresses, HostRoute, Hosts};
use super::progress::ActiveCall;
use super::route::Destination;
use super::router::{Reroute, Router};
use super::sharing::OneAtATime;
use super::throttle::Throttling;
use crate::address::bare;
use crate::error::{Error, ErrorKind, Misuse, RedirectFault, UrlError, redacted};
use crate::net::os::OsNet;
use crate::net::resolve::{Resolver, default_resolver};
use crate::net::tls::{TlsConfig, TlsIdentity};
use crate::net::{Address, Net};
use crate::policy::{
    AddressPolicy, Follow, Proxies, Proxy, ProxyKind, Redirect, RedirectAction, literal,
};
use crate::proto::{
    Defaults, Request, Scheme, TargetForm, Url, check_user_agent, is_redirect, resolve,
};
#[cfg(feature = "cookies")]
use crate::reactor::Overrides;
use crate::reactor::{ByteRates, HostKey, Step};

/// A client of any `http` or `https` URL.
///
/// The target of a request is a URL. Each scheme, host and port has a pool of its own, and all pools together have a
/// cap on connections. Hosts that are no longer used cost nothing. Names are looked up and cached, and the addresses
/// of a name are raced.
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
    hosts: HashMap<Box<[u8]>, HostKey>,
    /// Buffer for the name of a host.
    name: Vec<u8>,
    recent: Recent,
    config: Config,
    tls: TlsIdentity,
    /// For proxies: without the client certificate and the server name, which are for servers.
    proxy_tls: TlsIdentity,
    /// Buffer for the value of `Cookie`.
    #[cfg(feature = "cookies")]
    cookie: Vec<u8>,
}

impl Client {
    /// A client on the operating system's network, with the resolver of `HickoryResolver::system`, or
    /// [`SystemResolver`](crate::SystemResolver) in a build without the feature `hickory`.
    ///
    /// # Errors
    /// An invalid TLS configuration; [`HostConfig::balance`](crate::HostConfig::balance) or
    /// [`HostConfig::min_idle`](crate::HostConfig::min_idle), which this client does not support; the system's error, when it has no descriptor left for a readiness queue.
    pub fn new(config: Config) -> Result<Self, Error> {
        Self::with_resolver(config, default_resolver())
    }

    /// A client on the operating system's network, with this resolver.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_resolver(config: Config, resolver: impl Resolver + 'static) -> Result<Self, Error> {
        let net = OsNet::new().map_err(Error::unsent)?;
        Self::with_net(config, net, resolver)
    }
}

impl<N: Net> Client<N> {
    /// A client on this network, with this resolver.
    ///
    /// # Errors
    /// An invalid TLS configuration; [`HostConfig::balance`](crate::HostConfig::balance) or
    /// [`HostConfig::min_idle`](crate::HostConfig::min_idle), which this client does not support; the network's error, when it cannot make a waker.
    pub fn with_net(
        config: Config,
        net: N,
        resolver: impl Resolver + 'static,
    ) -> Result<Self, Error> {
        let host = config.host.clone();
        if host.balance.is_some() {
            let what = "calls that are spread over addresses";
            return Err(Error::unsent(Misuse::Unsupported(what)));
        }
        if host.min_idle > 0 {
            let what = "idle connections that are kept open";
            return Err(Error::unsent(Misuse::Unsupported(what)));
        }
        config.proxies.check().map_err(Error::unsent)?;
        check_user_agent(host.user_agent.as_deref()).map_err(Error::unsent)?;
        let build = |own: TlsConfig| {
            own.build()
                .map_err(|error| Error::unsent(Misuse::TlsConfig(error)))
        };
        let tls = build(host.tls.clone())?;
        let of_proxies = config.proxy_tls.clone();
        let proxy_tls = match of_proxies.or_else(|| host.tls.for_proxies()) {
            Some(own) => build(own)?,
            None => tls.clone(),
        };
        let mut hosts = Hosts::new(host.pool(), config.max_connections.get());
        let throttle = Throttling::new(host.rates(), [config.rate, None], &mut hosts);
        if host.bytes_in.or(host.bytes_out).is_some() {
            // These rates keep no call back, but the host must be kept for them.
            hosts.set_throttle(host.rates());
        }
        let bytes = ByteRates {
            host: [host.bytes_in, host.bytes_out],
            total: [config.bytes_in, config.bytes_out],
        };
        let proxy_addresses = config.proxy_addresses.clone();
        let router = AnyHost {
            hosts: HashMap::new(),
            name: Vec::new(),
            recent: Recent([None; 64]),
            config,
            tls,
            proxy_tls,
            #[cfg(feature = "cookies")]
            cookie: Vec::new(),
        };
        let parts = Parts {
            router,
            sharing: OneAtATime,
            hosts,
            throttle,
            resolver: Some(Box::new(resolver)),
        };
        let mut client = Self::assemble(parts, host, bytes, net)?;
        client.calls.dispatch.connector.allowed_proxies = proxy_addresses;
        Ok(client)
    }

    /// The number of hosts that the client keeps, where a host is a scheme, host name, port, proxy, TLS identity and
    /// address policy. The client keeps hosts with calls or connections, and for 10 s more up to 1,024 unused hosts; a
    /// host with an open breaker is kept until 10 s after the breaker may close.
    pub fn hosts(&self) -> usize {
        self.calls.dispatch.hosts.len()
    }
}

impl Router for AnyHost {
    const KEEPS_HOSTS: bool = false;
    type Sharing = OneAtATime;

    fn route(&mut self, call: &mut ActiveCall, hosts: &mut Hosts) -> Result<HostKey, ErrorKind> {
        let (request, own) = (&mut call.request, call.overrides.as_deref());
        let usual = own.is_none_or(|own| {
            own.proxies.is_none() && own.tls.is_none() && own.addresses.is_none()
        });
        #[cfg(feature = "cookies")]
        let has_cookies = jar(&self.config, own).is_some_and(|jar| !jar.is_empty());
        #[cfg(not(feature = "cookies"))]
        let has_cookies = false;
        if usual && !has_cookies {
            // The request may have cookies from another client's jar.
            #[cfg(feature = "cookies")]
            request.no_cookies();
            if let Some(host) = self.recent.get(request.encoded_for())
                && hosts.get(host).is_some()
            {
                return Ok(host);
            }
        }
        let text = request.url();
        let url = Url::parse(text).map_err(|error| Misuse::url(text, error))?;
        if self.config.https_only && url.scheme() != Scheme::Https {
            return Err(Misuse::url(text, UrlError::NotHttps).into());
        }
        #[cfg(feature = "cookies")]
        self.cookie.clear();
        #[cfg(feature = "cookies")]
        if let Some(jar) = jar(&self.config, own) {
            jar.push_header(&url, &mut self.cookie);
        }
        self.name.clear();
        url.push_origin(&mut self.name);
        let proxies = own.and_then(|own| own.proxies.as_ref());
        proxies.map_or(Ok(()), Proxies::check)?;
        let proxy = match self.destination(&url) {
            Some(Destination::Unix(_)) => None,
            _ => proxies.unwrap_or(&self.config.proxies).pick(&url),
        };
        let withholds = self.config.proxies.any() || proxies.is_some_and(Proxies::any);
        let tls = own.and_then(|own| own.tls.as_ref());
        let tls = match (url.scheme(), request.is_other_origin()) {
            (Scheme::Http, _) => None,
            (Scheme::Https, true) => tls.unwrap_or(&self.tls).for_other_origins().or(tls),
            (Scheme::Https, false) => tls,
        };
        let allowed = own.and_then(|own| own.addresses.as_ref());
        // The host keeps the proxy, the identity and the policy, so no other value can have these addresses in memory.
        let parts = [
            (b'p', proxy.map(|proxy| Arc::as_ptr(proxy) as usize)),
            (b'w', withholds.then_some(0)),
            (b't', tls.map(TlsIdentity::address)),
            (b'a', allowed.map(|allowed| Arc::as_ptr(allowed) as usize)),
        ];
        for (part, address) in parts {
            if let Some(address) = address {
                self.name.push(part);
                self.name.extend_from_slice(&address.to_ne_bytes());
            }
        }
        let host = match self.hosts.get(&*self.name) {
            Some(&host) => host,
            None => {
                let tls = tls.unwrap_or(&self.tls);
                let host = self.insert_host(&url, proxy, withholds, tls, allowed, hosts)?;
                self.hosts.insert(self.name.as_slice().into(), host);
                host
            }
        };
        #[cfg(feature = "cookies")]
        request.set_cookies(&self.cookie);
        if usual && let Some(entry) = hosts.get(host) {
            self.recent.put(entry.defaults.id, host);
        }
        Ok(host)
    }

    fn reroute(&mut self, call: &mut ActiveCall) -> Result<Reroute, ErrorKind> {
        self.note_head(call);
        let followed = call.timestamps.hops().len() as u32;
        let (request, response) = (&mut call.request, &mut call.response);
        let redirects = call
            .overrides
            .as_ref()
            .and_then(|own| own.redirects.as_ref());
        let redirects = redirects.unwrap_or(&self.config.redirects);
        if !is_redirect(response.status()) {
            return Ok(Reroute::Stay);
        }
        response.set_url(request.url());
        let location = response.location();
        if location == Ok(None) {
            return Ok(Reroute::Stay);
        }
        let decided = redirects.decide(response.status(), request.method_now(), followed);
        let method = match decided? {
            Follow::No => return Ok(Reroute::Stay),
            Follow::Same => None,
            Follow::WithoutBody(method) => Some(method),
        };
        let location = location?.unwrap_or_default();
        let refused = |fault| ErrorKind::Redirect {
            location: redacted(&String::from_utf8_lossy(location)),
            fault,
        };
        let from = request.url();
        let to = resolve(from, location).map_err(|error| refused(RedirectFault::Url(error)))?;
        let is_tls = |url: &Url<'_>| url.scheme() == Scheme::Https;
        let (elsewhere, leaves_tls) = match (Url::parse(from), Url::parse(&to)) {
            (Ok(from), Ok(to)) => (!from.same_origin(&to), is_tls(&from) && !is_tls(&to)),
            _ => (true, true),
        };
        let mut redirect = Redirect {
            response,
            from,
            to: &to,
            method: method.unwrap_or(request.method_now()),
            followed,
            changes_origin: elsewhere,
            leaves_tls,
            keep_method: false,
            keep_credentials: false,
        };
        match redirects.steer(&mut redirect) {
            RedirectAction::Follow if leaves_tls && self.config.https_only => {
                return Err(refused(RedirectFault::Url(UrlError::NotHttps)));
            }
            RedirectAction::Follow => {}
            RedirectAction::Stop => return Ok(Reroute::Stay),
            RedirectAction::Refuse => return Err(refused(RedirectFault::Refused)),
        }
        let (keep_method, trusted) = (redirect.keep_method, redirect.keep_credentials);
        let method = method.filter(|_| !keep_method);
        if method.is_none() && !request.is_replayable() {
            return Err(refused(RedirectFault::BodyNotReplayable));
        }
        request.redirect(to, method, elsewhere, trusted);
        Ok(Reroute::To)
    }

    /// Keeps the cookies of a response.
    #[cfg(feature = "cookies")]
    fn note_head(&mut self, call: &ActiveCall) {
        if let Some(jar) = jar(&self.config, call.overrides.as_deref())
            && call.response.header("set-cookie").is_some()
            && let Ok(url) = Url::parse(call.request.url())
        {
            jar.store(&url, call.response.header_all("set-cookie"));
        }
    }

    #[cold]
    fn place(&self, request: &Request, _: &Hosts) -> String {
        // What is wrong with a URL that cannot be parsed is told with the URL.
        Url::parse(request.url()).map_or_else(|_| String::new(), |url| url.to_string())
    }

    fn forget(&mut self, name: &[u8]) {
        self.hosts.remove(name);
    }
}

impl AnyHost {
    /// Makes the host of a URL. The server gets no `Proxy-Authorization` if `withholds`. The calls may say in `allowed`
    /// which addresses may be connected to.
    fn insert_host(
        &self,
        url: &Url<'_>,
        proxy: Option<&Arc<Proxy>>,
        withholds: bool,
        tls: &TlsIdentity,
        allowed: Option<&Arc<AddressPolicy>>,
        hosts: &mut Hosts,
    ) -> Result<HostKey, ErrorKind> {
        let mut authority = Vec::new();
        url.push_authority(&mut authority);
        let user_agent = self.config.host.user_agent.as_deref();
        let mut defaults = Defaults::new(authority, user_agent).with_form(TargetForm::OfUrl);
        defaults = defaults.with_codings(self.config.host.codings);
        let destination = self.destination(url);
        let (to_host, to_port) = match destination {
            Some(Destination::Host { host, port }) => {
                let host = Some(&**host).filter(|host| !host.is_empty());
                (host.unwrap_or(url.host()), port.unwrap_or(url.port()))
            }
            Some(Destination::Unix(_)) | None => (url.host(), url.port()),
        };
        let leads_elsewhere =
            to_port != url.port() || !bare(to_host).eq_ignore_ascii_case(bare(url.host()));
        let addresses = match (proxy, destination) {
            (_, Some(Destination::Unix(path))) => {
                Addresses::Known(vec![Address::Unix(path.as_path().into())])
            }
            (None, _) => match zoned(to_host, to_port) {
                Some(address) => Addresses::Known(vec![address]),
                None => Addresses::Named(to_host.into(), to_port),
            },
            (Some(proxy), _) => Addresses::Named(proxy.host().into(), proxy.port()),
        };
        let mut steps = Vec::new();
        let mut socks_target = None;
        let mut asks_proxy = false;
        if let Some(proxy) = proxy {
            let allowed = allowed.map_or(&self.config.host.addresses, |own| &**own);
            check_behind(allowed, proxy, to_host)?;
            if proxy.kind() == ProxyKind::Https {
                steps.push(Step::ProxyTls(self.proxy_tls.clone(), proxy.host().into()));
            }
            let credentials = proxy.credentials().cloned();
            match (proxy.kind(), url.scheme()) {
                (ProxyKind::Socks5 | ProxyKind::Socks5h, _) => {
                    if proxy.kind() == ProxyKind::Socks5 {
                        socks_target = Some((to_host.into(), to_port));
                    }
                    steps.push(Step::Socks {
                        host: to_host.into(),
                        port: to_port,
                        credentials,
                    });
                }
                // A proxy that gets a whole URL can only connect to the host of that URL.
                (ProxyKind::Http | ProxyKind::Https, scheme)
                    if scheme == Scheme::Https || proxy.tunnels() || leads_elsewhere =>
                {
                    steps.push(Step::Tunnel {
                        host_port: host_port(to_host, to_port).into(),
                        user_agent: user_agent.map(Into::into),
                        credentials,
                        headers: proxy.headers().into(),
                    });
                }
                (ProxyKind::Http | ProxyKind::Https, _) => {
                    defaults = defaults.with_form(TargetForm::WholeUrl);
                    (defaults.proxy_authorization, defaults.lines) = proxy.header_lines();
                    asks_proxy = true;
                }
            }
        }
        defaults.omits_proxy_authorization = withholds && !asks_proxy;
        if url.scheme() == Scheme::Https {
            steps.push(Step::Tls(tls.clone(), url.host().into()));
        }
        let name = self.name.as_slice().into();
        let route = HostRoute {
            socks_target,
            proxy: proxy.cloned(),
            allowed: allowed.cloned(),
            ..HostRoute::new(addresses, steps.into())
        };
        Ok(hosts.insert(name, defaults, route))
    }

    /// Where a rule sends the connections for a URL.
    fn destination(&self, url: &Url<'_>) -> Option<&Destination> {
        let mut routes = self.config.routes.iter();
        let route = routes.find(|route| route.is_for(url))?;
        Some(&route.to)
    }
}

/// The jar for calls with these settings.
#[cfg(feature = "cookies")]
fn jar<'c>(config: &'c Config, own: Option<&Overrides>) -> Option<&'c CookieJar> {
    let jar = config.cookies.as_ref();
    jar.filter(|_| own.is_none_or(|own| !own.without_cookies))
}

/// Refuses a server that the proxy would connect to, if the policy denies the server's address or its name. The
/// addresses of names that are looked up here are checked when they are known.
fn check_behind(allowed: &AddressPolicy, proxy: &Proxy, host: &str) -> Result<(), ErrorKind> {
    match literal(host) {
        Some(ips) => match ips.iter().find(|ip| !allowed.allows(**ip)) {
            Some(&denied) => Err(ErrorKind::Denied(denied)),
            None => Ok(()),
        },
        None if proxy.kind() == ProxyKind::Socks5 || allowed.allows_unresolved() => Ok(()),
        None => Err(ErrorKind::DeniedName(host.into())),
    }
}

/// The hosts of recent requests without settings of their own, by the number of the defaults that the request was
/// encoded with. An unchanged request goes to the same host again, and its URL is not parsed.
#[derive(Debug)]
struct Recent([Option<(u64, HostKey)>; 64]);

impl Recent {
    #[inline]
    fn get(&self, defaults: u64) -> Option<HostKey> {
        let (known, host) = self.0[defaults as usize % self.0.len()]?;
        (known == defaults).then_some(host)
    }

    #[inline]
    fn put(&mut self, defaults: u64, host: HostKey) {
        self.0[defaults as usize % self.0.len()] = Some((defaults, host));
    }
}

/// The address of a host like `[fe80::1%2]`, if it has a zone.
fn zoned(host: &str, port: u16) -> Option<Address> {
    let (ip, zone) = bare(host).split_once('%')?;
    let (ip, zone) = (ip.parse().ok()?, zone.parse().ok()?);
    Some(Address::Tcp(SocketAddrV6::new(ip, port, 0, zone).into()))
}

fn host_port(host: &str, port: u16) -> String {
    match bare(host) {
        v6 if v6.contains(':') => format!("[{v6}]:{port}"),
        host => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_numbers_after_addresses() {
        let address = zoned("[fe80::1%2]", 80).unwrap();
        assert_eq!(address, Address::Tcp("[fe80::1%2]:80".parse().unwrap()));
        for host in ["[fe80::1]", "[fe80::1%lo]", "a.example", "a%2", "[::1%]"] {
            assert_eq!(zoned(host, 80), None, "{host}");
        }
    }
}
