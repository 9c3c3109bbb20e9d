//! The upstream of a host client: its addresses, and the value of `Host`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

use crate::error::{Error, Misuse, Phase, Sent};
use crate::net::Address;

/// An upstream: one or several addresses that serve the same content.
///
/// Parsed from `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:/run/app.sock`. The default port is 80.
/// `localhost` means `127.0.0.1` and `::1`; other names are errors, because an upstream looks up no names.
///
/// ```
/// use courser::Upstream;
///
/// let one: Upstream = "localhost:8080".parse()?;
/// assert_eq!(one.host(), "localhost:8080");
/// let three = Upstream::tcp(["10.0.0.1:80".parse()?, "10.0.0.2:80".parse()?, "10.0.0.3:80".parse()?]).with_host("app.internal");
/// assert_eq!(three.addresses().len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Upstream {
    addresses: Vec<Address>,
    weights: Vec<u32>,
    host: String,
}

impl Upstream {
    /// TCP addresses that serve the same content. `Host` is the first address.
    pub fn tcp(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let addresses: Vec<_> = addresses.into_iter().map(Address::Tcp).collect();
        let host = match addresses.first() {
            Some(Address::Tcp(address)) => authority(address),
            _ => String::new(),
        };
        Self {
            addresses,
            weights: Vec::new(),
            host,
        }
    }

    /// A Unix socket. `Host` is `localhost`.
    pub fn unix(path: impl AsRef<Path>) -> Self {
        Self {
            addresses: vec![Address::Unix(path.as_ref().into())],
            weights: Vec::new(),
            host: "localhost".into(),
        }
    }

    /// Sends this value in `Host`.
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }

    /// The weights of the addresses, in the order of the addresses, for
    /// [`HostConfig::balance`](crate::HostConfig::balance): an address gets calls in proportion to its weight. The
    /// default weight is 1. An address with weight 0 gets calls only when no other address is left.
    pub fn with_weights(mut self, weights: impl IntoIterator<Item = u32>) -> Self {
        self.weights = weights.into_iter().take(self.addresses.len()).collect();
        self
    }

    /// The weights of the addresses.
    pub(crate) fn weights(&self) -> Vec<u32> {
        let given = self.weights.iter().copied();
        given
            .chain(std::iter::repeat(1))
            .take(self.addresses.len())
            .collect()
    }

    /// The addresses, in the order in which they are tried.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The value of `Host`.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl FromStr for Upstream {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || {
            Error::new(
                Misuse::Upstream(text.to_owned()),
                Phase::Queue,
                Sent::Nothing,
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(invalid())
            } else {
                Ok(Self::unix(path))
            };
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self::tcp([address]));
        }
        let ip = match text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            Some(bracketed) => bracketed.parse().ok().map(IpAddr::V6),
            None => text.parse().ok(),
        };
        if let Some(ip) = ip {
            return Ok(Self::tcp([SocketAddr::new(ip, HTTP_PORT)]));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, parse_port(port).ok_or_else(invalid)?),
            None => (text, HTTP_PORT),
        };
        if !name.eq_ignore_ascii_case("localhost") {
            return Err(invalid());
        }
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let host = match port {
            HTTP_PORT => name,
            _ => text,
        };
        Ok(Self::tcp(loopback.map(|ip| SocketAddr::new(ip, port))).with_host(host))
    }
}

/// Accepts digits only; the standard library would also accept a sign.
fn parse_port(text: &str) -> Option<u16> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)
    }
}

/// The value of `Host`: with the port only if that is not the default (RFC 9110 §7.2), and without the zone of a
/// link-local address.
fn authority(address: &SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    match address.port() {
        HTTP_PORT => ip,
        port => format!("{ip}:{port}"),
    }
}

const HTTP_PORT: u16 = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_hosts() {
        let parse = |text: &str| text.parse::<Upstream>().ok();
        let shown = |text: &str| {
            let upstream = parse(text)?;
            let all: Vec<_> = upstream.addresses().iter().map(|a| a.to_string()).collect();
            Some(format!("{} | {}", all.join(" "), upstream.host()))
        };
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080 | 127.0.0.1:8080"),
            ("127.0.0.1", "127.0.0.1:80 | 127.0.0.1"),
            ("[::1]:80", "[::1]:80 | [::1]"),
            ("::1", "[::1]:80 | [::1]"),
            ("[::1]", "[::1]:80 | [::1]"),
            ("localhost:99", "127.0.0.1:99 [::1]:99 | localhost:99"),
            ("localhost:80", "127.0.0.1:80 [::1]:80 | localhost"),
            ("LOCALHOST", "127.0.0.1:80 [::1]:80 | LOCALHOST"),
            ("unix:/run/x y.sock", "unix:/run/x y.sock | localhost"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "unix:",
            "example.com",
            "localhost:http",
            "localhost:99999",
            "[::1",
            "1.2.3:4",
            "localhost:+80",
            "localhost:",
            "[127.0.0.1]",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
