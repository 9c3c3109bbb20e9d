//! Connection settings: the options of a group that decide how servers and proxies are reached.

use std::borrow::Cow;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use courser::proto::{Credentials, Url};
use courser::{
    ConnectTo, Family, HostConfig, Limits, Override, Proxies, Proxy, ProxyKind, Rate,
    SocketOptions, Timeouts,
};
use rustix::io::Errno;

use super::args::{ConnectArgs, ProxyArgs};
use super::auth::Schemes;
use super::exit::{Exit, Failure};
use super::interface;
use super::plan::text;
use super::request::DEFAULT_USER_AGENT;
use super::target::Target;
use super::tls::TlsSettings;

/// Transfers with equal settings share connections.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Settings {
    pub(super) unix_socket: Option<PathBuf>,
    pub(super) name_servers: Option<Vec<SocketAddr>>,
    attempt_delay: Option<Duration>,
    socket: SocketOptions,
    connect_timeout: Option<Duration>,
    /// Also sent to proxies in CONNECT.
    user_agent: Option<String>,
    pub(super) tls: TlsSettings,
    pub(super) proxy_tls: TlsSettings,
    pub(super) resolve: Vec<Override>,
    pub(super) connect_to: Vec<ConnectTo>,
    pub(super) family: Option<Family>,
    /// As typed; `None`: the environment variables decide.
    proxy: Option<String>,
    proxy_user: Option<Vec<u8>>,
    noproxy: Option<String>,
    proxy_headers: Vec<(String, Vec<u8>)>,
    pub(super) proxy_tunnel: bool,
    proxy_schemes: Schemes,
    /// `--limit-rate`
    rate: Option<Rate>,
}

impl Settings {
    /// # Errors
    /// A `--resolve` or `--connect-to` that cannot be parsed, or text that is not UTF-8.
    pub(super) fn new(
        connect: ConnectArgs,
        tls: TlsSettings,
        proxy: ProxyArgs,
        user_agent: Option<OsString>,
        proxy_headers: Vec<(String, Vec<u8>)>,
    ) -> Result<Self, Failure> {
        let agent = user_agent.unwrap_or(DEFAULT_USER_AGENT.into());
        let agent = agent.to_string_lossy().into_owned();
        let mut resolve = Vec::new();
        for typed in &connect.resolve {
            read_resolve(typed, &mut resolve)?;
        }
        let connect_to = connect.connect_to.iter();
        let connect_to = connect_to.map(|typed| read_connect_to(typed));
        Ok(Self {
            socket: read_socket(&connect)?,
            unix_socket: match connect.abstract_socket {
                Some(name) => Some(abstract_path(&name)),
                None => connect.unix_socket.map(PathBuf::from),
            },
            name_servers: connect.name_servers,
            attempt_delay: connect.attempt_delay,
            connect_timeout: connect.timeout,
            user_agent: (!agent.is_empty()).then_some(agent),
            tls: tls.with_environment(),
            // As in curl, the TLS options for servers do not hold for proxies.
            proxy_tls: proxy.tls,
            resolve,
            connect_to: connect_to.collect::<Result<_, _>>()?,
            family: connect.family,
            proxy: proxy.proxy.map(|typed| text(typed, "proxy")).transpose()?,
            proxy_user: proxy.user.map(OsString::into_vec),
            noproxy: proxy
                .noproxy
                .map(|typed| text(typed, "list of hosts"))
                .transpose()?,
            proxy_headers,
            proxy_tunnel: proxy.tunnel,
            proxy_schemes: proxy.auth.schemes(),
            rate: connect.rate.map(Rate::per_second),
        })
    }

    /// The settings for one target: with the zone of its address, which no URL of the engine has. A proxy gets no zone:
    /// it would be one of this machine.
    pub(super) fn for_target(&self, target: &Target) -> Result<Cow<'_, Self>, Failure> {
        let Some(zone) = target.zone_index()? else {
            return Ok(Cow::Borrowed(self));
        };
        let url = target.url();
        let (proxies, _) = self.proxies(ForProxies::Given)?;
        if Url::parse(&url).is_ok_and(|url| proxies.pick(&url).is_some()) {
            return Ok(Cow::Borrowed(self));
        }
        let mut settings = self.clone();
        let host = target.host.to_string();
        let address = host.trim_matches(['[', ']']);
        settings.connect_to.push(ConnectTo {
            to_host: format!("[{address}%{zone}]"),
            host,
            port: Some(target.port),
            to_port: None,
        });
        Ok(Cow::Owned(settings))
    }

    /// Whether this error of a new connection is that of `--interface` or `--local-port`.
    pub(super) fn fails_to_bind(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{AddrInUse, AddrNotAvailable, InvalidInput, PermissionDenied};
        let SocketOptions {
            bind,
            local_ports,
            device,
            ..
        } = &self.socket;
        let kinds = [AddrInUse, AddrNotAvailable, InvalidInput, PermissionDenied];
        let no_device = error.raw_os_error() == Some(Errno::NODEV.raw_os_error());
        (bind.is_some() || local_ports.is_some() || device.is_some())
            && (no_device || kinds.contains(&error.kind()))
    }

    /// Whether the configured proxy is a SOCKS proxy.
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

    /// The wanted schemes of authentication with a proxy.
    pub(super) fn proxy_schemes(&self) -> Schemes {
        self.proxy_schemes
    }

    /// Whether the scheme is agreed upon with HTTP proxies. Otherwise each request to them has the credentials at once,
    /// or the user's own header.
    pub(super) fn negotiates_with_proxies(&self) -> bool {
        let mut headers = self.proxy_headers.iter();
        self.proxy_schemes.digest
            && !headers.any(|(name, _)| name.eq_ignore_ascii_case(PROXY_AUTHORIZATION))
    }

    /// The rules that choose a proxy for a URL, and whether one of the proxies is an https proxy. The
    /// proxies have these credentials.
    pub(super) fn proxies(&self, credentials: ForProxies<'_>) -> Result<(Proxies, bool), Failure> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let either = |name: &str| set(name).or_else(|| set(&name.to_ascii_uppercase()));
        let (http, https) = match &self.proxy {
            Some(typed) => (Some(typed.clone()), Some(typed.clone())),
            None => {
                let all = either("all_proxy");
                // `HTTP_PROXY` is not read: in a CGI program its value is the `Proxy` header of a client.
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
            let mut own = None;
            if let ForProxies::Negotiated(value) = credentials
                && matches!(proxy.kind(), ProxyKind::Http | ProxyKind::Https)
            {
                proxy = proxy.without_credentials();
                own = value.map(|value| (PROXY_AUTHORIZATION.to_owned(), value.to_vec()));
            }
            for (name, value) in self.proxy_headers.iter().chain(&own) {
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

    /// Sets only the limits that the user asked for, and the engine's limits against a hostile head or framing.
    pub(super) fn host_config(&self) -> HostConfig {
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
                // curl's own limits.
                head_bytes: 300 * 1024,
                header_line: 100 * 1024 - 1,
                ..Limits::default()
            },
            user_agent: self.user_agent.clone(),
            bytes_in: self.rate,
            bytes_out: self.rate,
            // In the order in which curl tries addresses.
            random_start: false,
            attempt_delay: self.attempt_delay.unwrap_or(ATTEMPT_DELAY),
            socket: self.socket.clone(),
            ..HostConfig::default()
        }
    }
}

/// How long curl waits for a connection before it tries another address at the same time.
const ATTEMPT_DELAY: Duration = Duration::from_millis(200);
/// curl's time of keep-alive probes.
const KEEPALIVE: Duration = Duration::from_secs(60);

fn read_socket(connect: &ConnectArgs) -> Result<SocketOptions, Failure> {
    let (device, bind) = match &connect.interface {
        Some(typed) => read_interface(typed, connect.family)?,
        None => (None, None),
    };
    let keepalive = connect.keepalive.unwrap_or(KEEPALIVE);
    Ok(SocketOptions {
        nodelay: !connect.delay,
        keepalive: (!connect.no_keepalive).then_some(keepalive),
        bind,
        local_ports: connect.local_ports.clone(),
        device,
        ..SocketOptions::default()
    })
}

/// A device or a local address: `if!DEVICE`, `host!NAME`, or either without a mark. As in curl, a device comes first.
fn read_interface(
    typed: &OsStr,
    family: Option<Family>,
) -> Result<(Option<String>, Option<IpAddr>), Failure> {
    let shown = typed.display();
    let none = || {
        let cause =
            format!("--interface {shown}: neither an interface nor an address of this machine");
        Failure::new(Exit::Interface, "options", cause)
    };
    let text = typed.to_str().ok_or_else(none)?;
    let (device, host) = match (text.strip_prefix("if!"), text.strip_prefix("host!")) {
        (Some(device), _) => (Some(device), None),
        (_, Some(host)) => (None, Some(host)),
        (None, None) => (Some(text), Some(text)),
    };
    if let Some(device) = device.filter(|device| interface::index(device).is_some()) {
        return Ok((Some(device.to_owned()), None));
    }
    let host = host.filter(|host| !host.is_empty()).ok_or_else(none)?;
    let found = (host, 0).to_socket_addrs().map_err(|_| none())?;
    let mut found = found.map(|address| address.ip());
    let address = found.find(|ip| family.is_none_or(|family| family.has(*ip)));
    Ok((None, Some(address.ok_or_else(none)?)))
}

/// The engine's path for a name in the abstract namespace.
fn abstract_path(name: &OsStr) -> PathBuf {
    let mut path = OsString::from("\0");
    path.push(name);
    path.into()
}

/// The credentials that the engine sends to HTTP proxies.
#[derive(Clone, Copy)]
pub(super) enum ForProxies<'a> {
    /// Those of the options and URLs.
    Given,
    /// None but this value of `Proxy-Authorization`, which CONNECT has.
    Negotiated(Option<&'a [u8]>),
}

const PROXY_AUTHORIZATION: &str = "Proxy-Authorization";

/// Parses `host:port:address[,address...]` as curl does. A leading `+` has no effect; `-host:port` removes earlier
/// rules.
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

/// Parses `host:port:host:port`. Each part may be empty; IPv6 addresses are in brackets.
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
}
