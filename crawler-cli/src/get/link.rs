//! The engine's clients, one for each group of settings, and what they report about their connections.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use courser::proto::{Scheme, Url};
use courser::{
    Address, Call, CallId, Client, Completion, Config, DnsConfig, HostClient, Observer,
    ObserverEvent, Proxies, Read, TlsConfig, Upstream,
};

use super::exit::{Exit, Failure};
use super::settings::Settings;
use super::show;
use super::target::Target;

/// A client of the engine. Each group of settings has its own.
pub(super) enum Link {
    /// For any URL, with the proxies.
    Any(Box<Client>, Proxies),
    /// For the server at a Unix socket.
    Unix(Box<HostClient>),
}

/// Does the same with either client.
macro_rules! either {
    ($link:expr, $client:ident => $do:expr) => {
        match $link {
            Link::Any($client, _) => $do,
            Link::Unix($client) => $do,
        }
    };
}

impl Link {
    fn open(settings: &Settings, secure: bool, observer: Observer) -> Result<Self, Failure> {
        let failed = |error| Failure::from(&error);
        let mut host = settings.host_config();
        host.observer = Some(observer);
        if let Some(path) = &settings.unix_socket {
            let client = HostClient::new(Upstream::unix(path), host).map_err(failed)?;
            return Ok(Self::Unix(Box::new(client)));
        }
        let (proxies, secure_proxy) = settings.proxies()?;
        let mut tls = TlsConfig::default();
        if secure {
            tls = settings.tls.config();
        }
        let proxy_tls = secure_proxy.then(|| settings.proxy_tls.config());
        let config = Config {
            host,
            tls,
            proxy_tls,
            dns: DnsConfig {
                overrides: settings.resolve.clone(),
                family: settings.family,
                ..DnsConfig::default()
            },
            connect_to: settings.connect_to.clone(),
            proxies: proxies.clone(),
            ..Config::default()
        };
        let client = Client::new(config).map_err(failed)?;
        Ok(Self::Any(Box::new(client), proxies))
    }

    /// The request target for `target`.
    pub(super) fn request_target(&self, target: &Target) -> String {
        match self {
            Self::Any(..) => target.url(),
            Self::Unix(_) => target.path_and_query.clone(),
        }
    }

    /// Whether a request to `target` goes through a proxy.
    pub(super) fn is_proxied(&self, target: &Target) -> bool {
        match self {
            Self::Any(_, proxies) => {
                let url = target.url();
                Url::parse(&url).is_ok_and(|url| proxies.pick(&url).is_some())
            }
            Self::Unix(_) => false,
        }
    }

    /// Runs one call until it completes. A streaming call completes when its head has arrived.
    pub(super) fn complete(&mut self, call: Call) -> Result<Completion, Failure> {
        either!(self, client => client.submit(call));
        loop {
            // There is only this call.
            if let Some(done) = self.wait()? {
                return Ok(done);
            }
        }
    }

    fn wait(&mut self) -> Result<Option<Completion>, Failure> {
        either!(self, client => client.wait(None))
            .map_err(|error: io::Error| Failure::new(Exit::Receive, "waiting for events", error))
    }

    /// The next piece of a body: bytes or its end.
    pub(super) fn read_body(&mut self, id: CallId, buffer: &mut [u8]) -> Result<Read, Failure> {
        loop {
            match either!(self, client => client.read_body(id, buffer)) {
                Ok(Read::Pending) => {
                    self.wait()?;
                    // There is only this body.
                    either!(self, client => client.readable_body());
                }
                Ok(read) => return Ok(read),
                Err(error) => return Err(Failure::from(&error)),
            }
        }
    }

    /// Drops the rest of a body, and its connection if the body is not at its end.
    pub(super) fn cancel(&mut self, id: CallId) {
        either!(self, client => client.cancel(id));
    }
}

/// The clients, each with its settings.
pub(super) struct Links {
    open: Vec<(Settings, bool, Link)>,
    verbose: bool,
    seen: Arc<Mutex<Seen>>,
}

/// What the engine reported about connections since [`Links::forget`].
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) resolved: Option<Instant>,
    pub(super) connected: Option<Instant>,
    pub(super) remote: Option<Address>,
    pub(super) local: Option<Address>,
    /// A proxy was asked for a tunnel.
    pub(super) asked_proxy: bool,
    /// The answer of the proxy.
    pub(super) proxy_head: Option<Vec<u8>>,
}

impl Links {
    /// No clients yet. `verbose` is `-v`.
    pub(super) fn new(verbose: bool) -> Self {
        Self {
            open: Vec::new(),
            verbose,
            seen: Arc::default(),
        }
    }

    /// The client for that target.
    pub(super) fn link(
        &mut self,
        settings: &Settings,
        target: &Target,
    ) -> Result<&mut Link, Failure> {
        // The files of TLS are read only if a URL needs TLS, as in curl.
        let secure = target.scheme == Scheme::Https;
        if secure && settings.unix_socket.is_some() {
            let cause = "https over a Unix socket is not supported";
            return Err(Failure::new(Exit::UnsupportedProtocol, "URL", cause));
        }
        let fits = |(own, tls, _): &(Settings, bool, Link)| own == settings && *tls == secure;
        let at = match self.open.iter().position(fits) {
            Some(at) => at,
            None => {
                let link = Link::open(settings, secure, self.observer())?;
                self.open.push((settings.clone(), secure, link));
                self.open.len() - 1
            }
        };
        Ok(&mut self.open[at].2)
    }

    /// What was seen of connections.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// Forgets all reports.
    pub(super) fn forget(&self) {
        *self.seen() = Seen::default();
    }

    fn observer(&self) -> Observer {
        let (verbose, seen) = (self.verbose, Arc::clone(&self.seen));
        Observer::new(move |event| {
            if verbose {
                show::event(event);
            }
            let mut seen = lock(&seen);
            match event {
                ObserverEvent::Resolved { .. } => seen.resolved = Some(Instant::now()),
                ObserverEvent::Connected { remote, local, .. } => {
                    seen.connected = Some(Instant::now());
                    seen.remote = Some((*remote).clone());
                    seen.local = local.cloned();
                }
                ObserverEvent::Tunnelling { .. } => seen.asked_proxy = true,
                ObserverEvent::TunnelAnswered { head, .. } => seen.proxy_head = Some(head.to_vec()),
                _ => {}
            }
        })
    }
}

/// The fields are independent: after a panic of another user, they are still valid.
fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
