//! What the user sends to certain hosts alone: header fields, credentials, cookies and a client certificate.
//!
//! Each request goes to one host and gets the identity of that host, also after redirects, because redirects to another
//! host are requests of that host. So nothing here ever leaves the hosts that the user named.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use courser::{Call, Request, TlsIdentity};
use url::Url;

use super::origin::root_of;

/// The identities of all hosts of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    rules: Vec<Rule>,
    /// The roots of the hosts that the user named by URLs.
    given: HashSet<Url>,
}

#[derive(Clone, Debug)]
struct Rule {
    hosts: IdentityHosts,
    identity: Identity,
}

/// Which hosts get an identity.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum IdentityHosts {
    /// The hosts of the URLs that the user gave one by one.
    Given,
    /// The hosts that match.
    Matching(HostPattern),
}

/// What requests to a host carry.
#[derive(Clone, Default)]
pub struct Identity {
    headers: Vec<(String, Vec<u8>)>,
    certificate: Option<TlsIdentity>,
}

impl Identities {
    /// Adds an identity. Where several fit a host, a later one replaces headers of the same name and the certificate of
    /// an earlier one.
    pub fn add(&mut self, hosts: IdentityHosts, identity: Identity) {
        self.rules.push(Rule { hosts, identity });
    }

    /// Notes a URL that the user gave.
    pub fn give(&mut self, url: &Url) {
        self.given.insert(root_of(url));
    }

    /// Whether an identity is for given hosts.
    pub fn has_given(&self) -> bool {
        let mut hosts = self.rules.iter().map(|rule| &rule.hosts);
        hosts.any(|hosts| *hosts == IdentityHosts::Given)
    }

    /// The identity for the host with this root URL.
    pub fn of(&self, root: &Url) -> Identity {
        let mut identity = Identity::default();
        for rule in &self.rules {
            let fits = match &rule.hosts {
                IdentityHosts::Given => self.given.contains(root),
                IdentityHosts::Matching(pattern) => pattern.matches(root),
            };
            if fits {
                identity.add(&rule.identity);
            }
        }
        identity
    }
}

impl Identity {
    /// Adds a header field.
    ///
    /// # Errors
    /// The field cannot be sent: its name or value has characters that are not allowed, or the engine writes it.
    pub fn header(&mut self, name: &str, value: &[u8]) -> Result<(), BadHeader> {
        let is = |header: &&str| name.eq_ignore_ascii_case(header);
        if OF_THE_ENGINE.iter().any(is) {
            return Err(BadHeader::OfTheEngine(name.to_owned()));
        }
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(BadHeader::Name);
        }
        let is_text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        if !value.iter().all(is_text) {
            return Err(BadHeader::Value(name.to_owned()));
        }
        self.headers.push((name.to_owned(), value.to_vec()));
        Ok(())
    }

    /// Uses a client certificate.
    pub fn certificate(&mut self, certificate: TlsIdentity) {
        self.certificate = Some(certificate);
    }

    /// Whether requests carry nothing of their own.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.certificate.is_none()
    }

    /// Writes the header fields. They replace fields of the same name; cookies join those of the request.
    pub(crate) fn write(&self, request: &mut Request) {
        let cookies = request.header_value("Cookie").map(<[u8]>::to_vec);
        for (name, _) in &self.headers {
            request.remove_header(name);
        }
        for (name, value) in &self.headers {
            match cookies
                .as_ref()
                .filter(|_| name.eq_ignore_ascii_case("Cookie"))
            {
                Some(cookies) => request.header(name, [value, &b"; "[..], cookies].concat()),
                None => request.header(name, value),
            };
        }
    }

    /// Uses the client certificate for the call.
    pub(crate) fn sign(&self, call: Call) -> Call {
        match &self.certificate {
            Some(certificate) => call.tls(certificate.clone()),
            None => call,
        }
    }

    /// Adds what `other` has, in place of what has the same name.
    fn add(&mut self, other: &Self) {
        let is_replaced = |name: &str| {
            let mut names = other.headers.iter().map(|(name, _)| name);
            names.any(|other| other.eq_ignore_ascii_case(name))
        };
        self.headers.retain(|(name, _)| !is_replaced(name));
        self.headers.extend(other.headers.iter().cloned());
        if other.certificate.is_some() {
            self.certificate.clone_from(&other.certificate);
        }
    }
}

/// Without the values, which may be secret.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.headers.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

/// A pattern for hosts: `example.org`, `*.example.org` (all names below), `*` (all hosts); perhaps with a port, as in
/// `example.org:8080`, and with a scheme, as in `https://example.org`. Without a scheme, it fits both; without a port, it
/// fits the default port of the scheme.
///
/// ```
/// use crawler_cli::crawl::identity::HostPattern;
///
/// let pattern: HostPattern = "*.example.org".parse()?;
/// assert!(pattern.matches(&url::Url::parse("https://a.example.org/").unwrap()));
/// assert!(!pattern.matches(&url::Url::parse("https://example.org/").unwrap()));
/// # Ok::<(), crawler_cli::crawl::identity::BadPattern>(())
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

/// Why a header field cannot be sent. Values are never shown: they may be secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BadHeader {
    /// The name is empty or has characters that are not allowed.
    Name,
    /// The value of the field with this name has a control character.
    Value(String),
    /// The engine writes this field.
    OfTheEngine(String),
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("a header needs a name of letters, digits and -"),
            Self::Value(name) => write!(f, "the header {name}: its value has a control character"),
            Self::OfTheEngine(name) => write!(f, "the header {name} cannot be set"),
        }
    }
}

impl std::error::Error for BadHeader {}

/// The header fields that say how a message is framed, how long the connection lasts (RFC 9112), and which part of a file
/// is meant.
const OF_THE_ENGINE: [&str; 10] = [
    "Connection",
    "Content-Length",
    "Expect",
    "Host",
    "If-Range",
    "Keep-Alive",
    "Range",
    "TE",
    "Transfer-Encoding",
    "Upgrade",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("valid")
    }

    fn identity(fields: &[(&str, &str)]) -> Identity {
        let mut identity = Identity::default();
        for (name, value) in fields {
            identity.header(name, value.as_bytes()).expect("valid");
        }
        identity
    }

    #[test]
    fn fields_replace_those_of_the_request_and_cookies_join_them() {
        let mut request = Request::get("http://h/");
        request.header("Cookie", "seen=1").header("Accept", "*/*");
        identity(&[("cookie", "s=1"), ("Accept", "a/b")]).write(&mut request);
        let value = |name| request.header_value(name).map(<[u8]>::to_vec);
        assert_eq!(value("Cookie"), Some(b"s=1; seen=1".to_vec()));
        assert_eq!(value("Accept"), Some(b"a/b".to_vec()));
    }

    #[test]
    fn patterns_fit_hosts() {
        for (pattern, fits, others) in [
            (
                "example.org",
                &["http://example.org/a", "https://EXAMPLE.org/"][..],
                &[
                    "http://a.example.org/",
                    "http://example.org:8080/",
                    "http://xexample.org/",
                ][..],
            ),
            (
                "*.example.org",
                &["https://a.example.org/", "https://a.b.example.org/"],
                &[
                    "https://example.org/",
                    "https://aexample.org/",
                    "https://a.example.org:1/",
                ],
            ),
            (
                "example.org:443",
                &["https://example.org/"],
                &["http://example.org/"],
            ),
            (
                "example.org:80",
                &["http://example.org/"],
                &["https://example.org/"],
            ),
            (
                "https://[::1]:8443/",
                &["https://[::1]:8443/x"],
                &["http://[::1]:8443/x"],
            ),
            (
                "https://example.org",
                &["https://example.org/"],
                &["http://example.org/"],
            ),
            ("*", &["https://a/", "http://b:81/"], &[]),
            ("https://*", &["https://a:444/"], &["http://a/"]),
            ("bücher.example", &["http://xn--bcher-kva.example/"], &[]),
        ] {
            let pattern: HostPattern = pattern.parse().expect("valid");
            assert!(
                fits.iter().all(|fit| pattern.matches(&url(fit))),
                "{pattern:?}"
            );
            assert!(
                !others.iter().any(|other| pattern.matches(&url(other))),
                "{pattern:?}"
            );
        }
        for bad in [
            "", "a b", "ftp://a", "a/b", "a?b", "u@a", "a*b", "*.", "a:99999",
        ] {
            assert!(bad.parse::<HostPattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn each_host_gets_its_own() {
        let mut identities = Identities::default();
        let below = "*.example.org".parse().expect("valid");
        identities.add(
            IdentityHosts::Given,
            identity(&[("Authorization", "secret")]),
        );
        identities.add(
            IdentityHosts::Matching(below),
            identity(&[("accept", "a"), ("X", "1")]),
        );
        let one = "b.example.org".parse().expect("valid");
        identities.add(IdentityHosts::Matching(one), identity(&[("Accept", "b")]));
        assert!(identities.has_given());
        identities.give(&url("https://example.org/docs/"));
        let names = |root: &str| format!("{:?}", identities.of(&url(root)));
        assert_eq!(names("https://example.org/"), "[\"Authorization\"]");
        assert_eq!(names("http://example.org/"), "[]");
        assert_eq!(names("https://example.org:444/"), "[]");
        assert_eq!(names("https://a.example.org/"), "[\"accept\", \"X\"]");
        assert_eq!(names("https://b.example.org/"), "[\"X\", \"Accept\"]");
    }

    #[test]
    fn fields_that_would_break_a_request_are_refused() {
        let mut identity = Identity::default();
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("A", "x\r\nB: y"),
            ("host", "x"),
            ("Transfer-Encoding", "chunked"),
        ] {
            assert!(identity.header(name, value.as_bytes()).is_err(), "{name}");
        }
        assert!(identity.is_empty());
    }
}
