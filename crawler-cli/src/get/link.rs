//! The way to a server: the engine's client for the settings of a group, and what it told about its connections.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use courser::proto::{Credentials, Scheme, Url};
use courser::{
    Address, Call, CallId, Client, Completion, Config, ConnectTo, DnsConfig, Family, HostClient,
    HostConfig, Limits, Observer, ObserverEvent, Override, Proxies, Proxy, ProxyKind, Read,
    Timeouts, TlsConfig, Upstream,
};

use super::args::Group;
use super::exit::{Exit, Failure};
use super::plan::{DEFAULT_USER_AGENT, text};
use super::show;
use super::target::Target;
use super::tls::TlsSettings;

/// What two transfers must have in common to share connections.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Settings {
    unix_socket: Option<PathBuf>,
    connect_timeout: Option<Duration>,
    /// Told to proxies too.
    user_agent: Option<String>,
    tls: TlsSettings,
    proxy_tls: TlsSettings,
    resolve: Vec<Override>,
    connect_to: Vec<ConnectTo>,
    family: Option<Family>,
    /// As typed; nothing is what the environment says.
    proxy: Option<String>,
    proxy_user: Option<Vec<u8>>,
    noproxy: Option<String>,
    proxy_headers: Vec<(String, Vec<u8>)>,
    proxy_tunnel: bool,
}

impl Settings {
    /// # Errors
    /// A `--resolve` or `--connect-to` that cannot be understood, or text that is no UTF-8.
    pub(super) fn new(
        group: &Group,
        proxy_headers: Vec<(String, Vec<u8>)>,
    ) -> Result<Self, Failure> {
        let own_text = |typed: &Option<OsString>, what| {
            typed.clone().map(|typed| text(typed, what)).transpose()
        };
        let agent = group
            .request
            .user_agent
            .clone()
            .unwrap_or(DEFAULT_USER_AGENT.into());
        let agent = agent.to_string_lossy().into_owned();
        let path = |typed: &Option<OsString>| typed.clone().map(PathBuf::from);
        // As curl, which looks there if there is no --cacert.
        let bundle = || {
            let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
            let bundle = set("CURL_CA_BUNDLE").or_else(|| set("SSL_CERT_FILE"));
            bundle.map(PathBuf::from)
        };
        let mut resolve = Vec::new();
        for typed in &group.connect.resolve {
            read_resolve(typed, &mut resolve)?;
        }
        let connect_to = group
            .connect
            .connect_to
            .iter()
            .map(|typed| read_connect_to(typed));
        Ok(Self {
            unix_socket: path(&group.connect.unix_socket),
            connect_timeout: group.connect.timeout,
            user_agent: (!agent.is_empty()).then_some(agent),
            tls: TlsSettings {
                roots: group.tls.roots.clone().or_else(bundle),
                ..group.tls.clone()
            },
            // As curl does: nothing that is said about servers holds for proxies.
            proxy_tls: group.proxy.tls.clone(),
            resolve,
            connect_to: connect_to.collect::<Result<_, _>>()?,
            family: group.connect.family,
            proxy: own_text(&group.proxy.proxy, "proxy")?,
            proxy_user: group
                .proxy
                .user
                .clone()
                .map(|user| user.as_bytes().to_vec()),
            noproxy: own_text(&group.proxy.noproxy, "list of hosts")?,
            proxy_headers,
            proxy_tunnel: group.proxy.tunnel,
        })
    }

    #[cfg(test)]
    pub(super) fn proxy_headers(&self) -> &[(String, Vec<u8>)] {
        &self.proxy_headers
    }

    /// Whether a proxy that was asked for speaks SOCKS.
    pub(super) fn speaks_socks(&self) -> bool {
        let from_environment = || {
            let names = [
                "http_proxy",
                "https_proxy",
                "all_proxy",
                "HTTPS_PROXY",
                "ALL_PROXY",
            ];
            names.into_iter().find_map(|name| env::var(name).ok())
        };
        let proxy = self.proxy.clone().or_else(from_environment);
        proxy.is_some_and(|proxy| proxy.starts_with("socks"))
    }

    /// Which URLs go through which proxy, and whether one of these is spoken to over TLS.
    fn proxies(&self) -> Result<(Proxies, bool), Failure> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let either = |name: &str| set(name).or_else(|| set(&name.to_ascii_uppercase()));
        let (http, https) = match &self.proxy {
            Some(typed) => (Some(typed.clone()), Some(typed.clone())),
            None => {
                let all = either("all_proxy");
                // Not HTTP_PROXY: in a CGI program, it is the client's `Proxy` header.
                let http = set("http_proxy").or_else(|| all.clone());
                (http, either("https_proxy").or(all))
            }
        };
        let parse = |typed: Option<String>| {
            let Some(typed) = typed.filter(|typed| !typed.is_empty()) else {
                return Ok::<_, Failure>(None);
            };
            let mut proxy: Proxy = typed.parse().map_err(|error| Failure::from(&error))?;
            if let Some(user) = &self.proxy_user {
                let colon = user.iter().position(|b| *b == b':').unwrap_or(user.len());
                let password = user.get(colon + 1..).unwrap_or_default();
                proxy = proxy.with_credentials(Credentials::new(&user[..colon], password));
            }
            for (name, value) in &self.proxy_headers {
                proxy = proxy
                    .with_header(name, value)
                    .map_err(|error| Failure::from(&error))?;
            }
            if self.proxy_tunnel {
                proxy = proxy.with_tunnels();
            }
            Ok(Some(proxy))
        };
        let mut proxies = Proxies::none();
        let mut secure = false;
        if let Some(proxy) = parse(http)? {
            secure |= proxy.kind() == ProxyKind::Https;
            proxies = proxies.http(proxy);
        }
        if let Some(proxy) = parse(https)? {
            secure |= proxy.kind() == ProxyKind::Https;
            proxies = proxies.https(proxy);
        }
        let except = self.noproxy.clone().or_else(|| either("no_proxy"));
        Ok((proxies.except(&except.unwrap_or_default()), secure))
    }

    /// No limits but those that were asked for, and the engine's against a hostile head or framing.
    fn host_config(&self) -> HostConfig {
        HostConfig {
            timeouts: Timeouts {
                resolve: self.connect_timeout,
                connect: self.connect_timeout,
                handshake: self.connect_timeout,
                ..Timeouts::none()
            },
            limits: Limits {
                body_bytes: None,
                decoded_bytes: None,
                decode_ratio: None,
                // curl's own limit.
                head_bytes: 300 * 1024,
                ..Limits::default()
            },
            user_agent: self.user_agent.clone(),
            ..HostConfig::default()
        }
    }
}

/// `host:port:address[,address...]`, as curl has it: a `+` in front changes nothing here, and `-host:port` takes back
/// what came before.
fn read_resolve(typed: &OsStr, rules: &mut Vec<Override>) -> Result<(), Failure> {
    let bad = || {
        bad_option(format_args!(
            "--resolve {}: not understood",
            typed.display()
        ))
    };
    let text = typed.to_str().ok_or_else(bad)?;
    let (removes, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut fields = text.splitn(3, ':');
    let host = fields
        .next()
        .filter(|host| !host.is_empty())
        .ok_or_else(bad)?;
    let port = fields
        .next()
        .and_then(|port| port.parse().ok())
        .ok_or_else(bad)?;
    if removes {
        rules.retain(|rule| !(rule.host.eq_ignore_ascii_case(host) && rule.port == Some(port)));
        return Ok(());
    }
    let addresses = fields.next().ok_or_else(bad)?.split(',').map(|address| {
        let bare = address.strip_prefix('[').and_then(|a| a.strip_suffix(']'));
        bare.unwrap_or(address).parse::<IpAddr>().map_err(|_| bad())
    });
    rules.push(Override {
        host: host.into(),
        port: Some(port),
        addresses: addresses.collect::<Result<_, _>>()?,
    });
    Ok(())
}

/// `host:port:host:port`, each of which may be empty; IPv6 addresses are in brackets.
fn read_connect_to(typed: &OsStr) -> Result<ConnectTo, Failure> {
    let bad = || {
        bad_option(format_args!(
            "--connect-to {}: not understood",
            typed.display()
        ))
    };
    let mut rest = typed.to_str().ok_or_else(bad)?;
    let mut fields: [&str; 4] = [""; 4];
    for field in &mut fields {
        let from = if rest.starts_with('[') {
            rest.find(']').ok_or_else(bad)?
        } else {
            0
        };
        let end = rest[from..].find(':').map_or(rest.len(), |at| from + at);
        *field = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    let port = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| bad()),
    };
    if !typed.as_bytes().contains(&b':') {
        return Err(bad());
    }
    Ok(ConnectTo {
        host: fields[0].into(),
        port: port(fields[1])?,
        to_host: fields[2].into(),
        to_port: port(fields[3])?,
    })
}

fn bad_option(cause: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::BadOption, "options", cause)
}

/// A client of the engine. There is one for each group of settings.
pub(super) enum Link {
    /// Of every URL, with the proxies for some.
    Any(Box<Client>, Proxies),
    /// Of whoever listens at a Unix socket.
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

    /// What the request to `target` has as its target.
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

    /// Runs one call until it completes: for a streaming one, until the head is there.
    pub(super) fn complete(&mut self, call: Call) -> Result<Completion, Failure> {
        either!(self, client => client.submit(call));
        loop {
            // There is no other call that could complete.
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
                    // There is only one body that it can be.
                    either!(self, client => client.readable_body());
                }
                Ok(read) => return Ok(read),
                Err(error) => return Err(Failure::from(&error)),
            }
        }
    }

    /// Drops what is left of a body, and its connection if that is not at its end.
    pub(super) fn cancel(&mut self, id: CallId) {
        either!(self, client => client.cancel(id));
    }
}

/// The clients, each with the settings that it was opened for.
pub(super) struct Links {
    open: Vec<(Settings, bool, Link)>,
    verbose: bool,
    seen: Arc<Mutex<Seen>>,
}

/// What the engine told about connections since [`Links::forget`].
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) resolved: Option<Instant>,
    pub(super) connected: Option<Instant>,
    pub(super) remote: Option<Address>,
    pub(super) local: Option<Address>,
    /// A proxy has been asked for a tunnel.
    pub(super) asked_proxy: bool,
    /// The proxy's answer to that.
    pub(super) proxy_head: Option<Vec<u8>>,
}

impl Links {
    /// None yet. `verbose` is `-v`.
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
        // What TLS needs is not looked at before somebody needs TLS, as in curl.
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

    /// Begins to see anew.
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

/// Nothing that could be half done: whoever panicked, what is there is right.
fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_addresses() {
        let read = |typed: &[&str]| {
            let mut rules = Vec::new();
            let outcome = typed
                .iter()
                .try_for_each(|t| read_resolve(t.as_ref(), &mut rules));
            outcome
                .map(|()| rules)
                .map_err(|failure| failure.exit.code())
        };
        let rule = |host: &str, addresses: &[&str]| Override {
            host: host.into(),
            port: Some(8),
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        };
        assert_eq!(
            read(&["h:8:10.0.0.1,[::1]", "+*:8:::2"]),
            Ok(vec![rule("h", &["10.0.0.1", "::1"]), rule("*", &["::2"])])
        );
        assert_eq!(read(&["h:8:10.0.0.1", "-H:8"]), Ok(vec![]));
        for bad in ["h", "h:8", "h:x:::1", ":8:::1", "h:8:", "h:8:x"] {
            assert_eq!(read(&[bad]), Err(49), "{bad}");
        }
    }

    #[test]
    fn other_ways() {
        let read = |typed: &str| {
            let read = read_connect_to(typed.as_ref()).map_err(|failure| failure.exit.code())?;
            Ok((read.host, read.port, read.to_host, read.to_port))
        };
        let rule =
            |host: &str, port, to: &str, to_port| Ok((host.into(), port, to.into(), to_port));
        assert_eq!(read("a:1:b:2"), rule("a", Some(1), "b", Some(2)));
        assert_eq!(read("::b:"), rule("", None, "b", None));
        assert_eq!(
            read("[::1]:1:[::2]:"),
            rule("[::1]", Some(1), "[::2]", None)
        );
        assert_eq!(read("::"), rule("", None, "", None));
        for bad in ["a", "a:x:b:1", "[::1:1:b:2"] {
            assert_eq!(read(bad), Err(49), "{bad}");
        }
    }
}
