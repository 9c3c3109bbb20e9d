//! The engine's clients, one for each group of connection settings, and what their observers reported about
//! connections.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use courser::proto::{Scheme, Url};
use courser::{
    Address, Call, CallId, Client, Completion, Config, DnsConfig, HickoryResolver, NameServers,
    Observer, ObserverEvent, Proxies, ProxyKind, Read, Shared, SharedBody, UnixSocket,
};

use super::auth::ProxyKey;
use super::exit::{Exit, Failure};
use super::pool::Pool;
use super::progress::Progress;
use super::settings::{ForProxies, Settings};
use super::show::Trace;
use super::target::Target;

/// A client of the engine with the settings of one group. The proxies are kept to answer [`Link::is_proxied`].
pub(super) struct Link {
    engine: Engine,
    proxies: Proxies,
    observed: Arc<Mutex<Observed>>,
}

enum Engine {
    /// Of this session alone.
    Own(Box<Client>),
    /// Of all sessions, with the body of the call of this session.
    Shared(Shared<Client>, Option<SharedBody>),
}

/// The next piece of a body.
pub(super) enum Piece {
    Data(usize),
    /// There is none until the time given.
    Pending,
    /// The end, with the trailers.
    End(Vec<(String, Vec<u8>)>),
}

/// The configuration of a client, and the proxies that were asked for. `authorization`: the value of `Proxy-Authorization`
/// for CONNECT, if it was negotiated.
pub(super) fn config(
    settings: &Settings,
    secure: bool,
    authorization: Option<&[u8]>,
    observer: Observer,
) -> Result<(Config, Proxies), Failure> {
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
    let config = Config {
        host,
        proxy_tls: proxy_tls.transpose()?,
        connect_to: settings.connect_to.clone(),
        unix_sockets: unix_socket.into_iter().collect(),
        proxies: sent_to,
        ..Config::default()
    };
    Ok((config, proxies))
}

/// A client that asks these name servers; without any, those of the system.
pub(super) fn client(
    config: Config,
    name_servers: Option<&[SocketAddr]>,
) -> Result<Client, courser::Error> {
    match name_servers {
        None => Client::new(config),
        Some(servers) => {
            let servers = NameServers::new(servers.iter().copied());
            Client::with_resolver(config, HickoryResolver::with_servers(servers))
        }
    }
}

impl Link {
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
    pub(super) fn complete(
        &mut self,
        call: Call,
        progress: &mut Progress,
    ) -> Result<Completion, Failure> {
        let (client, body) = match &mut self.engine {
            Engine::Own(client) => return complete(client, call, progress, &self.observed),
            Engine::Shared(client, body) => (client, body),
        };
        let mut streaming = client.send_streaming(call);
        let (done, own_body) = loop {
            let until = progress.until_tick(Instant::now());
            let poll = |context: &mut Context<'_>| Pin::new(&mut streaming).poll(context);
            match block_on(poll, until) {
                Some(done) => break done,
                // Dropping the future cancels the call.
                None => progress.tick(Instant::now())?,
            }
        };
        *body = own_body;
        let mut observed = lock(&self.observed);
        if !done.report.reused() && done.report.timings().connect.is_some() {
            observed.connected = Some(Instant::now());
        }
        observed.proxy_head = done.report.proxy_head().map(<[u8]>::to_vec);
        observed.tunnel = observed.proxy_head.is_some().then(String::new);
        drop(observed);
        Ok(done)
    }

    /// Reads the next piece of a body. Waits until there is one, or until this time: [`Piece::Pending`].
    ///
    /// # Errors
    /// The body has failed, or the transfer is too slow.
    pub(super) fn read_body(
        &mut self,
        id: CallId,
        buffer: &mut [u8],
        until: Option<Instant>,
        progress: &mut Progress,
    ) -> Result<Piece, Failure> {
        loop {
            progress.tick(Instant::now())?;
            let now = Instant::now();
            let left = until.map(|at| at.saturating_duration_since(now));
            let limit = match (left, progress.until_tick(now)) {
                (Some(left), Some(tick)) => Some(left.min(tick)),
                (left, tick) => left.or(tick),
            };
            let piece = match &mut self.engine {
                Engine::Own(client) => read_own(client, id, buffer, limit)?,
                Engine::Shared(_, body) => read_shared(body, buffer, limit)?,
            };
            match piece {
                Piece::Pending if left.is_none_or(|left| !left.is_zero()) => {}
                piece => return Ok(piece),
            }
        }
    }

    /// Drops the rest of a body. The connection is closed if the body has not been read to its end.
    pub(super) fn cancel(&mut self, id: CallId) {
        match &mut self.engine {
            Engine::Own(client) => drop(client.cancel(id)),
            Engine::Shared(_, body) => *body = None,
        }
    }
}

fn complete(
    client: &mut Client,
    call: Call,
    progress: &mut Progress,
    observed: &Mutex<Observed>,
) -> Result<Completion, Failure> {
    let id = client.submit(call);
    loop {
        let limit = progress.until_tick(Instant::now());
        // This call is the only one, so the completion is its own.
        if let Some(done) = wait(client, limit)? {
            return Ok(done);
        }
        // As in curl, connecting is not slow: it has a limit of its own.
        let ticked = match lock(observed).sending {
            true => progress.tick(Instant::now()),
            false => progress.tick_before_sending(Instant::now()),
        };
        if let Err(failure) = ticked {
            client.cancel(id);
            while wait(client, None)?.is_none() {}
            return Err(failure);
        }
    }
}

fn wait(client: &mut Client, limit: Option<Duration>) -> Result<Option<Completion>, Failure> {
    client
        .wait(limit)
        .map_err(|error: io::Error| Failure::new(Exit::Receive, "waiting for events", error))
}

fn read_own(
    client: &mut Client,
    id: CallId,
    buffer: &mut [u8],
    limit: Option<Duration>,
) -> Result<Piece, Failure> {
    match client.read_body(id, buffer) {
        Ok(Read::Data(n)) => Ok(Piece::Data(n)),
        Ok(Read::End { trailers, .. }) => Ok(Piece::End(owned(trailers.trailers()))),
        Ok(Read::Pending) => {
            if limit.is_none_or(|limit| !limit.is_zero()) {
                wait(client, limit)?;
                // Takes the notification: this body is the only one.
                client.readable_body();
            }
            Ok(Piece::Pending)
        }
        Err(error) => Err(Failure::from(&error)),
    }
}

fn read_shared(
    body: &mut Option<SharedBody>,
    buffer: &mut [u8],
    limit: Option<Duration>,
) -> Result<Piece, Failure> {
    let Some(own) = body else {
        return Ok(Piece::End(Vec::new()));
    };
    match block_on(|context| own.poll_read(context, buffer), limit) {
        None => Ok(Piece::Pending),
        Some(Ok(0)) => Ok(Piece::End(owned(own.trailers()))),
        Some(Ok(n)) => Ok(Piece::Data(n)),
        Some(Err(error)) => Err(Failure::from(&error)),
    }
}

fn owned<'t>(trailers: impl Iterator<Item = (&'t str, &'t [u8])>) -> Vec<(String, Vec<u8>)> {
    trailers
        .map(|(name, value)| (name.to_owned(), value.to_vec()))
        .collect()
}

/// Polls until there is a result, for `limit` at most. The thread sleeps in between.
fn block_on<T>(
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    limit: Option<Duration>,
) -> Option<T> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        if let Poll::Ready(result) = poll(&mut context) {
            return Some(result);
        }
        match end.map(|end| end.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(left) if left.is_zero() => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}

/// The open clients.
pub(super) struct Links {
    open: Vec<OpenLink>,
    trace: Trace,
    pool: Option<Arc<Pool>>,
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
    /// The request is being sent.
    sending: bool,
    /// Where a proxy was asked to lead, by CONNECT.
    pub(super) tunnel: Option<String>,
    /// The head of the proxy's response to CONNECT.
    pub(super) proxy_head: Option<Vec<u8>>,
}

impl Links {
    /// No client is open yet. The clients are those of the pool, if there is one.
    pub(super) fn new(trace: Trace, pool: Option<Arc<Pool>>) -> Self {
        Self {
            open: Vec::new(),
            trace,
            pool,
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
                let link = self.open(settings, secure, None)?;
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
            link: self.open(settings, secure, Some(value))?,
            settings: settings.clone(),
            secure,
            tunnel: Some(host),
        });
        Ok(())
    }

    fn open(
        &self,
        settings: &Settings,
        secure: bool,
        authorization: Option<&[u8]>,
    ) -> Result<Link, Failure> {
        // What a proxy has refused is told to this session alone.
        let pool = self
            .pool
            .as_ref()
            .filter(|_| !settings.negotiates_with_proxies());
        let (engine, proxies) = match pool {
            Some(pool) => {
                let (client, proxies) = pool.client(settings, secure)?;
                (Engine::Shared(client, None), proxies)
            }
            None => {
                let observer = self.observer(settings.tls.insecure);
                let (config, proxies) = config(settings, secure, authorization, observer)?;
                let client = client(config, settings.name_servers.as_deref());
                let client = client.map_err(|error| Failure::from(&error))?;
                (Engine::Own(Box::new(client)), proxies)
            }
        };
        Ok(Link {
            engine,
            proxies,
            observed: Arc::clone(&self.observed),
        })
    }

    /// What was observed of connections.
    pub(super) fn observed(&self) -> MutexGuard<'_, Observed> {
        lock(&self.observed)
    }

    /// Clears what was observed, before a new request.
    pub(super) fn reset_observed(&self) {
        *self.observed() = Observed::default();
    }

    fn observer(&self, insecure: bool) -> Observer {
        let (trace, observed) = (self.trace.clone(), Arc::clone(&self.observed));
        Observer::new(move |event| {
            trace.event(event, insecure);
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
                ObserverEvent::Sending { .. } => observed.sending = true,
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
