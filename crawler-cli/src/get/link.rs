//! The engine's clients, one for each group of connection settings, and what their observers reported about
//! connections.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use courser::proto::{Scheme, Url};
use courser::{
    Address, Call, CallId, Client, Completion, Config, DnsConfig, HickoryResolver, NameServers,
    Observer, ObserverEvent, Proxies, ProxyKind, Read, UnixSocket,
};

use super::auth::ProxyKey;
use super::exit::{Exit, Failure};
use super::settings::{ForProxies, Settings};
use super::show;
use super::target::Target;

/// A client of the engine with the settings of one group. The proxies are kept to answer [`Link::is_proxied`].
pub(super) struct Link {
    client: Box<Client>,
    proxies: Proxies,
}

impl Link {
    /// `authorization`: the value of `Proxy-Authorization` for CONNECT, if it was negotiated.
    fn open(
        settings: &Settings,
        secure: bool,
        authorization: Option<&[u8]>,
        observer: Observer,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::from(&error);
        let mut host = settings.host_config();
        host.observer = Some(observer);
        let (mut proxies, secure_proxy) = settings.proxies(ForProxies::Given)?;
        let mut sent_to = proxies.clone();
        if settings.negotiates_with_proxies() {
            (sent_to, _) = settings.proxies(ForProxies::Negotiated(authorization))?;
        }
        let unix_socket = settings.unix_socket.as_ref().map(UnixSocket::for_all);
        if unix_socket.is_some() {
            proxies = Proxies::none();
            sent_to = Proxies::none();
        }
        if secure {
            host.tls = settings.tls.config()?;
        }
        host.dns = DnsConfig {
            overrides: settings.resolve.clone(),
            family: settings.family,
            ..DnsConfig::default()
        };
        let proxy_tls = secure_proxy.then(|| settings.proxy_tls.config());
        let proxy_tls = proxy_tls.transpose()?;
        let config = Config {
            host,
            proxy_tls,
            connect_to: settings.connect_to.clone(),
            unix_sockets: unix_socket.into_iter().collect(),
            proxies: sent_to,
            ..Config::default()
        };
        let client = match &settings.name_servers {
            None => Client::new(config),
            Some(servers) => {
                let servers = NameServers::new(servers.iter().copied());
                Client::with_resolver(config, HickoryResolver::with_servers(servers))
            }
        };
        let client = client.map_err(failed)?;
        Ok(Self {
            client: Box::new(client),
            proxies,
        })
    }

    /// Whether a request to `target` goes through a proxy.
    pub(super) fn is_proxied(&self, target: &Target) -> bool {
        let url = target.url();
        Url::parse(&url).is_ok_and(|url| self.proxies.pick(&url).is_some())
    }

    /// The credentials for the proxy of `target`, if their scheme is negotiated.
    pub(super) fn proxy_key(&self, target: &Target, settings: &Settings) -> Option<ProxyKey> {
        let url = target.url();
        let proxy = self.proxies.pick(&Url::parse(&url).ok()?)?;
        let is_http = matches!(proxy.kind(), ProxyKind::Http | ProxyKind::Https);
        let credentials = proxy.credentials()?;
        (is_http && settings.negotiates_with_proxies()).then(|| ProxyKey {
            user: [credentials.user(), b":", credentials.password()].concat(),
            tunnels: target.scheme == Scheme::Https || settings.proxy_tunnel,
        })
    }

    /// Runs one call until it completes. A streaming call completes when the head of its response has arrived.
    pub(super) fn complete(&mut self, call: Call) -> Result<Completion, Failure> {
        self.client.submit(call);
        loop {
            // This call is the only one, so the completion is its own.
            if let Some(done) = self.wait(None)? {
                return Ok(done);
            }
        }
    }

    fn wait(&mut self, limit: Option<Duration>) -> Result<Option<Completion>, Failure> {
        self.client
            .wait(limit)
            .map_err(|error: io::Error| Failure::new(Exit::Receive, "waiting for events", error))
    }

    /// Reads the next piece of a body: bytes or the end. Waits until there is one, or until this time:
    /// [`Read::Pending`].
    pub(super) fn read_body(
        &mut self,
        id: CallId,
        buffer: &mut [u8],
        until: Option<Instant>,
    ) -> Result<Read, Failure> {
        loop {
            match self.client.read_body(id, buffer) {
                Ok(Read::Pending) => {
                    let left = until.map(|at| at.saturating_duration_since(Instant::now()));
                    if left.is_some_and(|left| left.is_zero()) {
                        return Ok(Read::Pending);
                    }
                    self.wait(left)?;
                    // Takes the notification: this body is the only one.
                    self.client.readable_body();
                }
                Ok(read) => return Ok(read),
                Err(error) => return Err(Failure::from(&error)),
            }
        }
    }

    /// Drops the rest of a body. The connection is closed if the body has not been read to its end.
    pub(super) fn cancel(&mut self, id: CallId) {
        self.client.cancel(id);
    }
}

/// The open clients.
pub(super) struct Links {
    open: Vec<OpenLink>,
    verbose: bool,
    observed: Arc<Mutex<Observed>>,
}

/// A client, keyed by its settings, whether it speaks TLS, and the tunnel that a proxy allowed.
struct OpenLink {
    settings: Settings,
    secure: bool,
    /// The authority for which the CONNECT of this client is authorized.
    tunnel: Option<String>,
    link: Link,
}

/// What the observer reported about connections since [`Links::reset_observed`].
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) resolved: Option<Instant>,
    pub(super) connected: Option<Instant>,
    pub(super) remote: Option<Address>,
    pub(super) local: Option<Address>,
    /// Where a proxy was asked to lead, by CONNECT.
    pub(super) tunnel: Option<String>,
    /// The head of the proxy's response to CONNECT.
    pub(super) proxy_head: Option<Vec<u8>>,
}

impl Links {
    /// No client is open yet. `verbose` is `-v`.
    pub(super) fn new(verbose: bool) -> Self {
        Self {
            open: Vec::new(),
            verbose,
            observed: Arc::default(),
        }
    }

    /// The client for this target; opened if no open client fits.
    pub(super) fn link(
        &mut self,
        settings: &Settings,
        target: &Target,
    ) -> Result<&mut Link, Failure> {
        // TLS files are read only for https, as in curl.
        let secure = target.scheme == Scheme::Https;
        let fits = |open: &&OpenLink| open.secure == secure && open.settings == *settings;
        let host = tunnel_to(target);
        let authorized = |open: &OpenLink| open.tunnel.as_ref() == Some(&host);
        let any = |open: &OpenLink| open.tunnel.is_none();
        let position = |is: &dyn Fn(&OpenLink) -> bool| {
            self.open.iter().position(|open| fits(&open) && is(open))
        };
        let at = match position(&authorized).or_else(|| position(&any)) {
            Some(at) => at,
            None => {
                let link = Link::open(settings, secure, None, self.observer())?;
                self.open.push(OpenLink {
                    settings: settings.clone(),
                    secure,
                    tunnel: None,
                    link,
                });
                self.open.len() - 1
            }
        };
        Ok(&mut self.open[at].link)
    }

    /// From now on, the tunnel to this target is asked for with this value of `Proxy-Authorization`. A connection of
    /// another value is not used again.
    pub(super) fn authorize_tunnel(
        &mut self,
        settings: &Settings,
        target: &Target,
        value: &[u8],
    ) -> Result<(), Failure> {
        let secure = target.scheme == Scheme::Https;
        let host = tunnel_to(target);
        self.open
            .retain(|open| open.settings != *settings || open.tunnel.as_ref() != Some(&host));
        if let Some(oldest) = self.open.iter().position(|open| open.tunnel.is_some())
            && self.open.len() >= MOST_LINKS
        {
            self.open.remove(oldest);
        }
        self.open.push(OpenLink {
            link: Link::open(settings, secure, Some(value), self.observer())?,
            settings: settings.clone(),
            secure,
            tunnel: Some(host),
        });
        Ok(())
    }

    /// What was observed of connections.
    pub(super) fn observed(&self) -> MutexGuard<'_, Observed> {
        lock(&self.observed)
    }

    /// Clears what was observed, before a new request.
    pub(super) fn reset_observed(&self) {
        *self.observed() = Observed::default();
    }

    fn observer(&self) -> Observer {
        let (verbose, observed) = (self.verbose, Arc::clone(&self.observed));
        Observer::new(move |event| {
            if verbose {
                show::event(event);
            }
            let mut observed = lock(&observed);
            match event {
                ObserverEvent::Resolved { .. } => observed.resolved = Some(Instant::now()),
                ObserverEvent::Connected { remote, local, .. } => {
                    observed.connected = Some(Instant::now());
                    observed.remote = Some((*remote).clone());
                    observed.local = local.cloned();
                }
                ObserverEvent::Tunnelling { head, .. } => {
                    let target = head.split(|b| *b == b' ').nth(1).unwrap_or_default();
                    observed.tunnel = Some(String::from_utf8_lossy(target).into_owned());
                }
                ObserverEvent::TunnelAnswered { head, .. } => {
                    observed.proxy_head = Some(head.to_vec());
                }
                _ => {}
            }
        })
    }
}

/// Names the tunnel to a target.
fn tunnel_to(target: &Target) -> String {
    format!("{}:{}", target.host, target.port)
}

/// Above this many clients, one with an authorized tunnel is closed before the next one is opened.
const MOST_LINKS: usize = 64;

/// The fields are independent of each other, so a panic of another thread leaves nothing inconsistent.
fn lock(observed: &Mutex<Observed>) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}
