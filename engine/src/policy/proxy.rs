//! Which URLs go through which proxy, as the caller sets it or as the environment says, read like curl does.
//!
//! Differences from curl: SOCKS4 is not supported; a block `/0` in the list of exceptions holds all addresses of its
//! family; an exception may name a port (`host:8080`) or be an IPv6 address in brackets.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use super::Network;
use crate::error::{Error, Misuse};
use crate::proto::{
    Credentials, Defaults, PROXY_AUTHORIZATION, Parts, Request, Scheme, Url, UrlError, parse_port,
    split_any_scheme,
};

/// A proxy, parsed from `[scheme://][user[:password]@]host[:port]`.
///
/// Without a scheme, `http` is used. The default port is 1080, or 443 with `https`, as in curl. User and password are
/// percent-decoded. `Display` and `Debug` show neither of them, nor headers.
///
/// ```
/// use courser::policy::ProxyKind;
/// use courser::Proxy;
///
/// let proxy: Proxy = "socks5h://user:secret@localhost".parse()?;
/// assert_eq!((proxy.kind(), proxy.host(), proxy.port()), (ProxyKind::Socks5h, "localhost", 1080));
/// assert_eq!(proxy.to_string(), "socks5h://localhost:1080");
/// # Ok::<(), courser::Error>(())
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Proxy {
    kind: ProxyKind,
    /// In lower case, IPv6 in brackets.
    host: Box<str>,
    ip: Option<IpAddr>,
    port: u16,
    credentials: Option<Credentials>,
    headers: Vec<(Box<str>, Box<[u8]>)>,
    tunnels: bool,
}

/// The protocol of a [`Proxy`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ProxyKind {
    /// HTTP: the proxy forwards requests for http URLs; https URLs go through a tunnel.
    Http,
    /// Like HTTP, over TLS to the proxy.
    Https,
    /// SOCKS5; the client looks up names.
    Socks5,
    /// SOCKS5; the proxy looks up names.
    Socks5h,
}

impl ProxyKind {
    /// The scheme of such proxies in URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            _ => 1080,
        }
    }
}

impl Proxy {
    /// The protocol of the proxy.
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    /// The host in lower case, IPv6 addresses in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host, if it is an IP address.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// User and password for the proxy.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Replaces user and password.
    pub fn with_credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Removes user and password.
    pub fn without_credentials(mut self) -> Self {
        self.credentials = None;
        self
    }

    /// Adds a header for an HTTP proxy itself: to its CONNECT requests, and to the requests that it is asked to pass on.
    /// Servers behind a tunnel never see it. `Proxy-Authorization` goes before
    /// [the credentials](Self::with_credentials), `Host` and `User-Agent` count for CONNECT alone. SOCKS has no headers.
    ///
    /// # Errors
    /// What no request can have: a name that is no token, a byte that would end a line, a header that frames a body.
    ///
    /// ```
    /// let proxy: courser::Proxy = "proxy.internal:3128".parse()?;
    /// let proxy = proxy.with_header("X-Team", "crawl")?;
    /// assert!(proxy.with_header("X-Team", "a\r\nb").is_err());
    /// # Ok::<(), courser::Error>(())
    /// ```
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Self, Error> {
        let value = value.as_ref();
        let mut request = Request::new("CONNECT", "h:1");
        request.add_header(name, value);
        request
            .encode(&Defaults::new("h:1", None))
            .map_err(Error::unsent)?;
        self.headers.push((name.into(), value.into()));
        Ok(self)
    }

    /// Asks an HTTP proxy for a tunnel for `http` URLs too, as curl's `--proxytunnel`.
    pub fn with_tunnels(mut self) -> Self {
        self.tunnels = true;
        self
    }

    pub(crate) fn tunnels(&self) -> bool {
        self.tunnels
    }

    pub(crate) fn headers(&self) -> &[(Box<str>, Box<[u8]>)] {
        &self.headers
    }

    /// The header lines that a forwarded request has for an HTTP proxy: `Proxy-Authorization`, and the others.
    pub(crate) fn header_lines(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut authorization, mut lines) = (Vec::new(), Vec::new());
        for (name, value) in &self.headers {
            let line = [name.as_bytes(), b": ", value, b"\r\n"].concat();
            let is = |header: &str| name.eq_ignore_ascii_case(header);
            if is(PROXY_AUTHORIZATION) {
                authorization.extend(line);
            } else if !is("Host") && !is("User-Agent") {
                lines.extend(line);
            }
        }
        if let Some(credentials) = &self.credentials
            && authorization.is_empty()
        {
            authorization.extend_from_slice(format!("{PROXY_AUTHORIZATION}: ").as_bytes());
            credentials.push_basic(&mut authorization);
            authorization.extend_from_slice(b"\r\n");
        }
        (authorization, lines)
    }

    fn parse(text: &str) -> Result<Self, UrlError> {
        let (kind, rest) = match split_any_scheme(text) {
            None => (ProxyKind::Http, text),
            Some((scheme, rest)) => (kind(scheme)?, rest),
        };
        let parts = Parts::parse(rest)?;
        let userinfo = parts.userinfo.filter(|userinfo| !userinfo.is_empty());
        // curl ignores the path of an HTTP proxy. For SOCKS, a path would name a Unix socket, which is not supported.
        let socks = matches!(kind, ProxyKind::Socks5 | ProxyKind::Socks5h);
        if socks && !matches!(parts.behind, "" | "/") {
            return Err(UrlError::ProxyPath);
        }
        Ok(Self {
            kind,
            host: match parts.ip {
                Some(IpAddr::V6(ip)) => format!("[{ip}]").into(),
                _ => parts.host.to_ascii_lowercase().into(),
            },
            ip: parts.ip,
            port: parts.port.unwrap_or(kind.default_port()),
            credentials: userinfo.map(Credentials::from_userinfo),
            headers: Vec::new(),
            tunnels: false,
        })
    }
}

fn kind(scheme: &str) -> Result<ProxyKind, UrlError> {
    match &*scheme.to_ascii_lowercase() {
        "http" => Ok(ProxyKind::Http),
        "https" if cfg!(feature = "tls") => Ok(ProxyKind::Https),
        "socks5" => Ok(ProxyKind::Socks5),
        "socks5h" => Ok(ProxyKind::Socks5h),
        other => Err(UrlError::Scheme(other.into())),
    }
}

impl FromStr for Proxy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).map_err(|error| Error::unsent(Misuse::proxy(text, error)))
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.kind.as_str(), self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = self.credentials.as_ref().map_or("", |_| "***@");
        let kind = self.kind.as_str();
        write!(f, "Proxy({kind}://{secret}{}:{})", self.host, self.port)
    }
}

/// Which URLs go through which proxy. By default, none do.
///
/// ```
/// use courser::Proxies;
/// use courser::proto::Url;
///
/// let proxies = Proxies::all("proxy.internal:3128".parse()?).except("localhost, .internal, 10.0.0.0/8");
/// assert!(proxies.pick(&Url::parse("https://example.com/")?).is_some());
/// assert!(proxies.pick(&Url::parse("http://db.internal:8080/")?).is_none());
/// assert!(proxies.pick(&Url::parse("http://10.1.2.3/")?).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Arc<Proxy>>,
    https: Option<Arc<Proxy>>,
    exceptions: Exceptions,
}

impl Proxies {
    /// No proxy.
    pub fn none() -> Self {
        Self::default()
    }

    /// One proxy for all URLs.
    pub fn all(proxy: Proxy) -> Self {
        let proxy = Arc::new(proxy);
        Self {
            http: Some(Arc::clone(&proxy)),
            https: Some(proxy),
            exceptions: Exceptions::default(),
        }
    }

    /// Sends http URLs through this proxy.
    pub fn http(mut self, proxy: Proxy) -> Self {
        self.http = Some(Arc::new(proxy));
        self
    }

    /// Sends https URLs through this proxy.
    pub fn https(mut self, proxy: Proxy) -> Self {
        self.https = Some(Arc::new(proxy));
        self
    }

    /// Leaves out hosts, given as in `no_proxy`: separated by commas or blanks, `example.com` (and all names below
    /// it, with or without a dot in front), `10.0.0.1`, `10.0.0.0/8`, `fd00::/8`; or `*` alone for all. Replaces the
    /// exceptions there were. With an entry that is none of these, no client can be made, and no call
    /// ([`Misuse::ProxyException`]).
    pub fn except(mut self, list: &str) -> Self {
        self.exceptions = Exceptions::parse(list);
        self
    }

    /// What the environment says: `http_proxy`, `https_proxy`, `all_proxy` for those that are not set, and `no_proxy`.
    /// Each is looked for in lower case, then in upper case; an empty one counts as not set. `HTTP_PROXY` is ignored
    /// if there is a `REQUEST_METHOD`: in a CGI program, it is the client's `Proxy` header. An entry of `no_proxy` that is
    /// none is ignored, because other programs may read it in another way.
    ///
    /// # Errors
    /// A variable holds no proxy.
    pub fn from_env() -> Result<Self, Error> {
        Self::from_vars(|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    /// [`from_env`](Self::from_env) with variables from elsewhere.
    ///
    /// # Errors
    /// A variable holds no proxy.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let either = |lower: &str| set(lower).or_else(|| set(&lower.to_ascii_uppercase()));
        let http = match var("REQUEST_METHOD") {
            None => either("http_proxy"),
            Some(_) => set("http_proxy"),
        };
        let all = either("all_proxy");
        let parse = |specific: Option<String>| {
            let text = specific.as_ref().or(all.as_ref());
            text.map(|text| text.parse().map(Arc::new)).transpose()
        };
        Ok(Self {
            http: parse(http)?,
            https: parse(either("https_proxy"))?,
            exceptions: Exceptions {
                fault: None,
                ..Exceptions::parse(&either("no_proxy").unwrap_or_default())
            },
        })
    }

    /// Refuses exceptions that have no meaning.
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        match &self.exceptions.fault {
            Some(entry) => Err(Misuse::ProxyException((&**entry).into())),
            None => Ok(()),
        }
    }

    /// Whether there is any proxy.
    pub(crate) fn any(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    /// The proxy for a URL.
    pub fn pick(&self, url: &Url<'_>) -> Option<&Arc<Proxy>> {
        let proxy = match url.scheme() {
            Scheme::Http => &self.http,
            Scheme::Https => &self.https,
        };
        let is_exception = || self.exceptions.contain(url.host(), url.ip(), url.port());
        proxy.as_ref().filter(|_| !is_exception())
    }
}

/// Hosts that are reached without a proxy.
#[derive(Clone, Debug, Default)]
struct Exceptions {
    all: bool,
    rules: Arc<[Rule]>,
    /// The first entry that is no rule.
    fault: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
struct Rule {
    hosts: Hosts,
    /// `None` matches any port.
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum Hosts {
    /// The name and all names below it.
    Domain(Box<str>),
    /// The addresses of this network.
    Block(Network),
}

impl Exceptions {
    fn parse(list: &str) -> Self {
        // As in curl, `*` is special only if it stands alone.
        let all = list == "*";
        let entries = list.split(|c: char| c == ',' || c.is_ascii_whitespace());
        let mut entries = entries.filter(|entry| !all && !entry.is_empty());
        Self {
            all,
            rules: entries.clone().filter_map(Rule::parse).collect(),
            fault: entries
                .find(|entry| Rule::parse(entry).is_none())
                .map(Into::into),
        }
    }

    fn contain(&self, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
        // A dot at the end makes no difference.
        let name = host.strip_suffix('.').unwrap_or(host);
        self.all
            || self.rules.iter().any(|rule| {
                let same_port = rule.port.is_none_or(|only| only == port);
                same_port
                    && match (&rule.hosts, ip) {
                        (Hosts::Domain(domain), None) => is_within(name, domain),
                        (Hosts::Block(network), Some(ip)) => network.contains(ip),
                        _ => false,
                    }
            })
    }
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        if let Some(hosts) = Hosts::parse(text) {
            return Some(Self { hosts, port: None });
        }
        let (host, port) = text.rsplit_once(':')?;
        Some(Self {
            port: Some(parse_port(port)?),
            hosts: Hosts::parse(host)?,
        })
    }
}

impl Hosts {
    fn parse(text: &str) -> Option<Self> {
        let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let bracketed = bracketed.filter(|(_, bits)| matches!(bits.get(..1), None | Some("/")));
        let plain = bracketed.map(|(ip, bits)| [ip, bits].concat());
        if let Ok(network) = plain.as_deref().unwrap_or(text).parse() {
            return Some(Self::Block(network));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let name = name.strip_prefix('.').unwrap_or(name);
        let is_name = !name.is_empty() && !name.contains([':', '/', '*']);
        is_name.then(|| Self::Domain(name.into()))
    }
}

fn is_within(name: &str, domain: &str) -> bool {
    let Some(at) = name.len().checked_sub(domain.len()) else {
        return false;
    };
    let (above, tail) = name.as_bytes().split_at(at);
    tail.eq_ignore_ascii_case(domain.as_bytes()) && (above.is_empty() || above.ends_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_from_text() {
        for (text, expected) in [
            ("h", "Proxy(http://h:1080)"),
            ("h:3128", "Proxy(http://h:3128)"),
            ("localhost:80/ignored?x", "Proxy(http://localhost:80)"),
            ("http://h", "Proxy(http://h:1080)"),
            ("HTTPS://h", "Proxy(https://h:443)"),
            ("https://h:80", "Proxy(https://h:80)"),
            ("socks5://h", "Proxy(socks5://h:1080)"),
            ("socks5h://[0::1]:9/", "Proxy(socks5h://[::1]:9)"),
            ("127.0.0.1", "Proxy(http://127.0.0.1:1080)"),
            ("u:secret@h", "Proxy(http://***@h:1080)"),
            ("socks5://u:secret^|@h:1", "Proxy(socks5://***@h:1)"),
            ("bücher.example:1", "Proxy(http://xn--bcher-kva.example:1)"),
        ] {
            let proxy: Proxy = text.parse().unwrap();
            assert_eq!(format!("{proxy:?}"), expected, "{text}");
        }
        let proxy: Proxy = "http://us%3Aer:p%40ss:x@h".parse().unwrap();
        let credentials = proxy.credentials().unwrap();
        assert_eq!(credentials.user(), b"us:er");
        assert_eq!(credentials.password(), b"p@ss:x");
        assert_eq!(proxy.to_string(), "http://h:1080");
    }

    #[test]
    fn no_proxies() {
        let port = "the port is not a number from 1 to 65535";
        for (text, why) in [
            ("", "it has no host"),
            ("http://", "it has no host"),
            ("ftp://h", "the scheme ftp is not supported"),
            ("socks4://h", "the scheme socks4 is not supported"),
            ("socks5h://localhost/run/x.sock", "it has a path"),
            ("h:0", port),
            ("u:secret@h:x", port),
            ("u:se@cret@h", "its user information needs percent-encoding"),
        ] {
            let shown = text.replace("u:secret@", "***@");
            let shown = shown.replace("u:se@cret@", "***@");
            let error = text.parse::<Proxy>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{shown:?} is not a proxy: {why}")
            );
            assert!(!format!("{error:?}").contains("secret"));
        }
    }

    fn proxy(text: &str) -> Proxy {
        text.parse().unwrap()
    }

    fn picked(proxies: &Proxies, url: &str) -> String {
        let url = Url::parse(url).unwrap();
        proxies.pick(&url).map_or("-".into(), |p| p.host().into())
    }

    #[test]
    fn one_for_each_scheme() {
        let both = Proxies::none().http(proxy("a")).https(proxy("b"));
        assert_eq!(picked(&both, "http://h"), "a");
        assert_eq!(picked(&both, "https://h"), "b");
        let one = Proxies::none().https(proxy("b"));
        assert_eq!(picked(&one, "http://h"), "-");
        assert_eq!(picked(&Proxies::all(proxy("c")), "http://h"), "c");
        assert_eq!(picked(&Proxies::none(), "https://h"), "-");
    }

    /// The rows with a `c` were also run with curl 7.88, with the same outcome.
    #[test]
    fn exceptions() {
        for (list, url, direct) in [
            ("example.com", "http://example.com", true),      // c
            ("example.com", "http://www.Example.com", true),  // c
            (".example.com", "http://example.com", true),     // c
            (".example.com", "http://www.example.com", true), // c
            ("example.com", "http://nexample.com", false),    // c
            ("EXAMPLE.com.", "http://example.com", true),     // c
            ("example.com", "http://example.com.", true),     // c
            ("www.example.com", "http://example.com", false),
            ("*", "http://example.com", true), // c
            ("*", "http://127.0.0.1", true),
            ("a,*", "http://example.com", false), // c
            (" *", "http://example.com", false),  // c
            ("*.example.com", "http://www.example.com", false),
            ("a b,example.com", "http://example.com", true), // c
            ("a example.com", "http://example.com", true),   // c
            ("a , ,,example.com", "http://example.com", true), // c
            ("", "http://example.com", false),
            (".", "http://example.com", false),
            (",", "http://example.com", false),
            ("127.0.0.1", "http://127.0.0.1", true),   // c
            ("0.0.1", "http://127.0.0.1", false),      // c
            ("127.0.0.0/8", "http://127.0.0.1", true), // c
            ("10.0.0.0/9", "http://10.128.0.1", false),
            ("127.0.0.0/33", "http://127.0.0.1", false), // c
            ("127.0.0.0/x", "http://127.0.0.1", false),  // c
            ("127.0.0.1/32", "http://127.0.0.2", false),
            ("0.0.0.0/0", "http://127.0.0.1", true),
            ("0.0.0.0/0", "http://[::1]", false),
            ("::1", "http://[::1]", true), // c
            ("[::1]", "http://[::1]", true),
            ("0::0/64", "http://[::1]", true),
            ("fd00::/8", "http://[fe00::1]", false),
            ("127.0.0.1", "http://[::ffff:127.0.0.1]", false), // c
            ("example.com:81", "http://example.com:81", true),
            ("example.com:81", "http://www.example.com", false),
            ("[::1]:81", "http://[::1]:81", true),
            ("[::1]:81", "http://[::1]:82", false),
            ("example.com:x", "http://example.com", false),
        ] {
            let proxies = Proxies::all(proxy("p")).except(list);
            assert_eq!(picked(&proxies, url) == "-", direct, "[{list}] {url}");
        }
    }

    #[test]
    fn the_environment() {
        let from = |vars: &[(&str, &str)]| {
            let owned = |name: &str| {
                let var = vars.iter().find(|(key, _)| *key == name);
                var.map(|(_, value)| value.to_string())
            };
            let proxies = Proxies::from_vars(owned).map_err(|error| error.to_string())?;
            let (http, https) = (picked(&proxies, "http://h"), picked(&proxies, "https://h"));
            Ok::<_, String>(format!("{http} {https}"))
        };
        for (vars, expected) in [
            (&[][..], "- -"),
            (&[("http_proxy", "a")], "a -"),
            (&[("https_proxy", "a")], "- a"),
            (&[("HTTPS_PROXY", "a")], "- a"),
            (&[("HTTP_PROXY", "a"), ("REQUEST_METHOD", "GET")], "- -"),
            (&[("HTTP_PROXY", "a"), ("REQUEST_METHOD", "")], "- -"),
            (&[("http_proxy", "a"), ("REQUEST_METHOD", "GET")], "a -"),
            (&[("http_proxy", "a"), ("HTTP_PROXY", "b")], "a -"),
            (&[("http_proxy", ""), ("HTTP_PROXY", "b")], "b -"),
            (&[("all_proxy", "a")], "a a"),
            (&[("ALL_PROXY", "a"), ("https_proxy", "b")], "a b"),
            (&[("ALL_PROXY", "a"), ("https_proxy", "")], "a a"),
            (&[("all_proxy", "a"), ("ALL_PROXY", "b")], "a a"),
            (&[("all_proxy", "a"), ("no_proxy", "h")], "- -"),
            (&[("all_proxy", "a"), ("NO_PROXY", "*")], "- -"),
            (
                &[("all_proxy", "a"), ("no_proxy", "g"), ("NO_PROXY", "*")],
                "a a",
            ),
        ] {
            assert_eq!(from(vars).as_deref(), Ok(expected), "{vars:?}");
        }
        let error = from(&[("http_proxy", "u:secret@foo:x")]).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
}
