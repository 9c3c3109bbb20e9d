//! The engine's clients, one for each group of connection settings, and what their observers reported about
//! connections.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use courser::proto::{Scheme, Url};
use courser::{
    Address, Call, CallId, Client, Completion, Config, DnsConfig, Observer, ObserverEvent, Proxies,
    Read, UnixSocket,
};

use super::exit::{Exit, Failure};
use super::settings::Settings;
use super::show;
use super::target::Target;

/// A client of the engine with the settings of one group. The proxies are kept to answer [`Link::is_proxied`].
pub(super) struct Link {
    client: Box<Client>,
    proxies: Proxies,
}

impl Link {
    fn open(settings: &Settings, secure: bool, observer: Observer) -> Result<Self, Failure> {
        let failed = |error| Failure::from(&error);
        let mut host = settings.host_config();
        host.observer = Some(observer);
        let (mut proxies, secure_proxy) = settings.proxies()?;
        let unix_socket = settings.unix_socket.as_ref().map(UnixSocket::for_all);
        if unix_socket.is_some() {
            proxies = Proxies::none();
        }
        if secure {
            host.tls = settings.tls.config();
        }
        host.dns = DnsConfig {
            overrides: settings.resolve.clone(),
            family: settings.family,
            ..DnsConfig::default()
        };
        let proxy_tls = secure_proxy.then(|| settings.proxy_tls.config());
        let config = Config {
            host,
            proxy_tls,
            connect_to: settings.connect_to.clone(),
            unix_sockets: unix_socket.into_iter().collect(),
            proxies: proxies.clone(),
            ..Config::default()
        };
        let client = Client::new(config).map_err(failed)?;
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

/// The open clients. A client is keyed by its settings and whether it speaks TLS.
pub(super) struct Links {
    open: Vec<(Settings, bool, Link)>,
    verbose: bool,
    observed: Arc<Mutex<Observed>>,
}

/// What the observer reported about connections since [`Links::reset_observed`].
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) resolved: Option<Instant>,
    pub(super) connected: Option<Instant>,
    pub(super) remote: Option<Address>,
    pub(super) local: Option<Address>,
    /// A CONNECT was sent to a proxy.
    pub(super) asked_proxy: bool,
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
                ObserverEvent::Tunnelling { .. } => observed.asked_proxy = true,
                ObserverEvent::TunnelAnswered { head, .. } => {
                    observed.proxy_head = Some(head.to_vec());
                }
                _ => {}
            }
        })
    }
}

/// The fields are independent of each other, so a panic of another thread leaves nothing inconsistent.
fn lock(observed: &Mutex<Observed>) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}
