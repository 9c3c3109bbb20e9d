//! Rules to connect elsewhere than a URL says.

use std::path::PathBuf;

use crate::address::bare;
use crate::proto::Url;

/// A rule to connect elsewhere for a URL, while `Host` and TLS keep the name of the URL: as curl's `--connect-to` and
/// `--unix-socket`. [`Config::routes`](crate::Config::routes) has the rules, of which the first for the URL counts.
///
/// ```
/// use courser::{Config, Destination, Route};
///
/// let to_the_new_server = Route {
///     host: "www.example.com".into(),
///     port: Some(443),
///     to: Destination::Host { host: "127.0.0.1".into(), port: Some(8443) },
/// };
/// // http://docker/containers/json
/// let to_the_daemon = Route {
///     host: "docker".into(),
///     ..Route::all(Destination::Unix("/var/run/docker.sock".into()))
/// };
/// let config = Config { routes: vec![to_the_new_server, to_the_daemon], ..Config::default() };
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Route {
    /// The host in URLs, in upper or lower case; empty means every host.
    pub host: String,
    /// The port in URLs; `None` means every port.
    pub port: Option<u16>,
    /// Where to connect to.
    pub to: Destination,
}

impl Route {
    /// The rule for every URL.
    pub fn all(to: Destination) -> Self {
        Self {
            host: String::new(),
            port: None,
            to,
        }
    }

    /// Whether the rule is for this URL.
    pub(super) fn is_for(&self, url: &Url<'_>) -> bool {
        let host = bare(&self.host);
        let is_host = host.is_empty() || host.eq_ignore_ascii_case(bare(url.host()));
        is_host && self.port.is_none_or(|port| port == url.port())
    }
}

/// Where a [`Route`] leads.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Destination {
    /// Another host and port, which a proxy may connect to.
    Host {
        /// The host or address; empty means the host of the URL. Without a proxy, an IPv6 address may have the number of a
        /// zone, `[fe80::1%2]` (RFC 4007 §11), which a URL cannot have.
        host: String,
        /// The port; `None` means the port of the URL.
        port: Option<u16>,
    },
    /// A Unix socket with this path. No name is looked up, and no proxy is used. On Linux, a path whose first byte is NUL is
    /// a name in the abstract namespace.
    Unix(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_hosts_with_brackets_or_without() {
        let url = Url::parse("http://[::1]:81/").unwrap();
        let mut route = Route::all(Destination::Unix(PathBuf::new()));
        let hosts = [("", true), ("::1", true), ("[::1]", true), ("::2", false)];
        for ((host, is_host), port) in hosts.into_iter().zip([81; 4]).chain([(hosts[1], 80)]) {
            (route.host, route.port) = (host.to_owned(), Some(port));
            assert_eq!(route.is_for(&url), is_host && port == 81, "{host}");
        }
    }
}
