//! Patterns for hosts.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// A pattern for hosts: `example.org`, `*.example.org` (all names below), `*` (all hosts); perhaps with a port, as in
/// `example.org:8080`, and with a scheme, as in `https://example.org`. Without a scheme, it fits both; without a port, it
/// fits the default port of the scheme.
///
/// ```
/// use plain::host_pattern::HostPattern;
///
/// let pattern: HostPattern = "*.example.org".parse()?;
/// assert!(pattern.matches(&url::Url::parse("https://a.example.org/").unwrap()));
/// assert!(!pattern.matches(&url::Url::parse("https://example.org/").unwrap()));
/// # Ok::<(), plain::host_pattern::BadPattern>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostPattern {
    scheme: Option<String>,
    name: NamePattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum NamePattern {
    Any,
    /// The name itself.
    Name(String),
    /// The names that end with this text, which begins with a dot.
    Below(String),
}

impl HostPattern {
    /// The pattern for all hosts.
    pub fn any() -> Self {
        Self {
            scheme: None,
            name: NamePattern::Any,
            port: None,
        }
    }

    /// Whether the host of this URL fits.
    pub fn matches(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else {
            return false;
        };
        let name = match &self.name {
            NamePattern::Any => true,
            NamePattern::Name(name) => name == host,
            NamePattern::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        };
        let port = match self.port {
            Some(port) => url.port_or_known_default() == Some(port),
            None => url.port().is_none() || self.name == NamePattern::Any,
        };
        let scheme = self.scheme.as_deref();
        name && port && scheme.is_none_or(|scheme| scheme == url.scheme())
    }
}

impl FromStr for HostPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let bad = || BadPattern(text.to_owned());
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest),
            Some(_) => return Err(bad()),
            None => (None, text),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest == "*" {
            return Ok(Self {
                scheme: scheme.map(str::to_owned),
                name: NamePattern::Any,
                port: None,
            });
        }
        let (is_below, rest) = match rest.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        // The parser brings names to the form that URLs have. Its default port is 80, so the other scheme is parsed too.
        let parse = |scheme: &str| Url::parse(&format!("{scheme}://{rest}/")).map_err(|_| bad());
        let (http, https) = (parse("http")?, parse("https")?);
        let host = http.host_str().ok_or_else(bad)?;
        let is_bare = http.path() == "/" && http.query().is_none() && http.fragment().is_none();
        if !is_bare
            || host.contains('*')
            || !http.username().is_empty()
            || http.password().is_some()
        {
            return Err(bad());
        }
        let port = match scheme {
            Some("https") => https.port(),
            Some(_) => http.port(),
            None => http.port().or(https.port()),
        };
        Ok(Self {
            scheme: scheme.map(str::to_owned),
            name: match is_below {
                true => NamePattern::Below(format!(".{host}")),
                false => NamePattern::Name(host.to_owned()),
            },
            port,
        })
    }
}

/// A text that is no pattern for hosts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadPattern(String);

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "{text:?} is no pattern for hosts, such as example.org, *.example.org or https://example.org:8443"
        )
    }
}

impl std::error::Error for BadPattern {}
