//! The upstream of a host client: its servers, whether they speak TLS, and the value of `Host`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

use crate::error::{Error, Misuse, UrlError};
use crate::net::Address;
use crate::proto::{Scheme, Url};

/// An upstream: one or several addresses that serve the same content, given as they are or by a name.
///
/// Parsed from a URL of a scheme, a host and a port (`https://api.example`, `http://[::1]:8080`), from a host and a
/// port without a scheme, which then is `http` (`127.0.0.1:8080`, `[::1]:8080`, `app.internal:8080`), or from
/// `unix:/run/app.sock`. The default port is 80, and 443 with `https`. Names are looked up while the client runs;
/// `localhost` always means `127.0.0.1` and `::1` (RFC 6761 §6.3).
///
/// ```
/// use courser::Upstream;
/// use courser::proto::Scheme;
///
/// let api: Upstream = "https://api.example".parse()?;
/// assert_eq!((api.scheme(), api.host(), api.name()), (Scheme::Https, "api.example", Some(("api.example", 443))));
/// let one: Upstream = "localhost:8080".parse()?;
/// assert_eq!(one.host(), "localhost:8080");
/// let three = Upstream::tcp(["10.0.0.1:443".parse()?, "10.0.0.2:443".parse()?, "10.0.0.3:443".parse()?]).with_tls("api.example");
/// assert_eq!((three.addresses().len(), three.host()), (3, "api.example"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Upstream {
    scheme: Scheme,
    addresses: Vec<Address>,
    /// The name whose addresses the servers have, and the port. Then no address is known.
    name: Option<(String, u16)>,
    host: String,
    /// The caller has chosen `host`.
    has_own_host: bool,
    /// What the certificate must be for.
    server_name: String,
}

impl Upstream {
    /// TCP addresses that serve the same content. `Host` is the first address.
    pub fn tcp(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let addresses: Vec<_> = addresses.into_iter().map(Address::Tcp).collect();
        let host = match addresses.first() {
            Some(Address::Tcp(address)) => {
                authority(&url_host(address.ip()), address.port(), Scheme::Http)
            }
            _ => String::new(),
        };
        Self::new(addresses, host)
    }

    /// A Unix socket. `Host` is `localhost`.
    pub fn unix(path: impl AsRef<Path>) -> Self {
        let address = Address::Unix(path.as_ref().into());
        Self::new(vec![address], "localhost".into())
    }

    fn new(addresses: Vec<Address>, host: String) -> Self {
        Self {
            scheme: Scheme::Http,
            addresses,
            name: None,
            host,
            has_own_host: false,
            server_name: String::new(),
        }
    }

    /// Sends this value in `Host`.
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self.has_own_host = true;
        self
    }

    /// Speaks TLS with the servers. `name`, a DNS name or an IP address, is sent as SNI, and the certificate must be for
    /// this name, unless `TlsConfig::server_name` gives another one. `Host` is `name` with the port of the first address,
    /// unless [`with_host`](Self::with_host) chooses another value.
    #[cfg(feature = "tls")]
    pub fn with_tls(mut self, name: impl Into<String>) -> Self {
        self.scheme = Scheme::Https;
        self.server_name = name.into();
        if !self.has_own_host {
            let port = match (&self.name, self.addresses.first()) {
                (Some((_, port)), _) => *port,
                (None, Some(Address::Tcp(address))) => address.port(),
                (None, _) => Scheme::Https.default_port(),
            };
            let host = match self.server_name.parse() {
                Ok(ip) => url_host(ip),
                Err(_) => self.server_name.clone(),
            };
            self.host = authority(&host, port, Scheme::Https);
        }
        self
    }

    /// Whether the upstream speaks TLS.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The addresses, in the order in which they are tried. Empty if the upstream has a name.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The name whose addresses are the servers, and their port. `None` if the addresses are known.
    pub fn name(&self) -> Option<(&str, u16)> {
        let (name, port) = self.name.as_ref()?;
        Some((name, *port))
    }

    /// The value of `Host`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The name that the certificate must be for. Empty without TLS.
    pub(crate) fn server_name(&self) -> &str {
        &self.server_name
    }

    fn parse(text: &str) -> Result<Self, UrlError> {
        if text.contains("://") {
            return Self::of_url(text);
        }
        match text.strip_prefix("unix:") {
            Some("") => return Err(UrlError::NoHost),
            Some(path) => return Ok(Self::unix(path)),
            None => {}
        }
        // With the zone of a link-local address, which a URL cannot have.
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self::tcp([address]));
        }
        if let Ok(ip) = text.parse::<Ipv6Addr>() {
            return Ok(Self::tcp([(ip, Scheme::Http.default_port()).into()]));
        }
        // A URL may end in a colon. Here it is more likely that the port was forgotten.
        match text.ends_with(':') {
            true => Err(UrlError::Port),
            false => Self::of_url(&format!("http://{text}")),
        }
    }

    /// The servers of a URL.
    fn of_url(text: &str) -> Result<Self, UrlError> {
        let url = Url::parse(text)?;
        let has_path = !matches!(url.target_parts(), ["/", ""] | ["", "/"]);
        if url.userinfo().is_some() || has_path || text.contains('#') {
            return Err(UrlError::NotOrigin);
        }
        let mut host = Vec::new();
        url.push_authority(&mut host);
        let host = String::from_utf8(host).unwrap_or_default(); // an authority is ASCII
        let port = url.port();
        let at = |ip: IpAddr| Address::Tcp(SocketAddr::new(ip, port));
        let mut upstream = Self::new(Vec::new(), host);
        match url.ip() {
            Some(ip) => upstream.addresses = vec![at(ip)],
            None if url.host().eq_ignore_ascii_case("localhost") => {
                let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                upstream.addresses = loopback.map(at).into();
            }
            None => upstream.name = Some((url.host().to_owned(), port)),
        }
        if url.scheme() == Scheme::Https {
            upstream.scheme = Scheme::Https;
            upstream.server_name = url.host().to_owned();
        }
        Ok(upstream)
    }
}

impl FromStr for Upstream {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).map_err(|error| Error::unsent(Misuse::upstream(text, error)))
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme {
            Scheme::Http => f.write_str(&self.host),
            Scheme::Https => write!(f, "https://{}", self.host),
        }
    }
}

/// The value of `Host`: with the port only if that is not the default of the scheme (RFC 9110 §7.2).
fn authority(host: &str, port: u16, scheme: Scheme) -> String {
    match port == scheme.default_port() {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    }
}

/// An address as the host of a URL: IPv6 in brackets, without the zone of a link-local address.
fn url_host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Upstream, String> {
        text.parse().map_err(|error: Error| error.to_string())
    }

    /// The servers, the value of `Host`, and the name for TLS.
    fn shown(upstream: &Upstream) -> String {
        let mut servers: Vec<_> = upstream
            .addresses()
            .iter()
            .map(Address::to_string)
            .collect();
        servers.extend(upstream.name().map(|(name, port)| format!("{name} {port}")));
        format!(
            "{} | {} | {}",
            servers.join(" "),
            upstream.host(),
            upstream.server_name()
        )
    }

    #[test]
    fn servers_and_hosts() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080 | 127.0.0.1:8080 | "),
            ("127.0.0.1", "127.0.0.1:80 | 127.0.0.1 | "),
            ("::1", "[::1]:80 | [::1] | "),
            ("[::1]", "[::1]:80 | [::1] | "),
            ("[fe80::1%2]:80", "[fe80::1%2]:80 | [fe80::1] | "),
            ("localhost:99", "127.0.0.1:99 [::1]:99 | localhost:99 | "),
            ("localhost:80", "127.0.0.1:80 [::1]:80 | localhost | "),
            ("unix:/run/x y.sock", "unix:/run/x y.sock | localhost | "),
            ("e.com", "e.com 80 | e.com | "),
            ("E.com:8080", "E.com 8080 | e.com:8080 | "),
            ("http://e.com", "e.com 80 | e.com | "),
            ("https://e.com", "e.com 443 | e.com | e.com"),
            ("HTTPS://e.com:80", "e.com 80 | e.com:80 | e.com"),
            ("https://10.0.0.1", "10.0.0.1:443 | 10.0.0.1 | 10.0.0.1"),
            ("https://[::1]:444", "[::1]:444 | [::1]:444 | [::1]"),
            (
                "https://localhost",
                "127.0.0.1:443 [::1]:443 | localhost | localhost",
            ),
            (
                "https://b\u{fc}cher.example",
                "xn--bcher-kva.example 443 | xn--bcher-kva.example | xn--bcher-kva.example",
            ),
        ] {
            let shown = parse(text).map(|upstream| shown(&upstream));
            assert_eq!(shown.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_upstream() {
        let too_much = "it has more than a scheme, a host and a port";
        let (no_host, port) = ("it has no host", "the port is not a number from 1 to 65535");
        for (text, expected) in [
            ("", no_host),
            ("unix:", no_host),
            ("localhost:http", port),
            ("localhost:", port),
            ("[::1", "invalid IPv6 address"),
            (
                "1.2.3:4",
                "the host ends in a number and is no address like 127.0.0.1",
            ),
            ("example.com/path", too_much),
            ("https://example.com/path", too_much),
            ("https://user:secret@example.com", too_much),
            ("https://", no_host),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.ends_with(&format!(" is not an upstream: {expected}")),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn tls_for_given_addresses() {
        let addresses = || ["10.0.0.1:443", "10.0.0.2:443"].map(|text| text.parse().unwrap());
        let upstream = Upstream::tcp(addresses()).with_tls("api.example");
        assert_eq!(
            shown(&upstream),
            "10.0.0.1:443 10.0.0.2:443 | api.example | api.example"
        );
        let upstream = upstream.with_host("other").with_tls("api.example");
        assert_eq!(
            shown(&upstream),
            "10.0.0.1:443 10.0.0.2:443 | other | api.example"
        );
        let upstream = Upstream::tcp(["10.0.0.1:80".parse().unwrap()]).with_tls("::1");
        assert_eq!(shown(&upstream), "10.0.0.1:80 | [::1]:80 | ::1");
        let upstream = Upstream::unix("/s").with_tls("api.example");
        assert_eq!(shown(&upstream), "unix:/s | api.example | api.example");
        assert_eq!(upstream.to_string(), "https://api.example");
        let upstream = parse("api.example:8443").unwrap().with_tls("api.example");
        assert_eq!(
            shown(&upstream),
            "api.example 8443 | api.example:8443 | api.example"
        );
    }
}
