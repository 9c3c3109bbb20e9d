//! What the user sends to certain hosts alone: header fields, credentials, cookies and a client certificate.
//!
//! Each request goes to one host and gets the identity of that host, also after redirects, because redirects to another
//! host are requests of that host. So nothing here ever leaves the hosts that the user named.

use std::collections::HashSet;
use std::fmt;

use courser::{Call, Request, TlsIdentity};
use url::Url;

use plain::host_pattern::HostPattern;
use plain::origin::root_of;

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
    pub fn write(&self, request: &mut Request) {
        let cookies = request.header("Cookie").map(<[u8]>::to_vec);
        for (name, _) in &self.headers {
            request.remove_header(name);
        }
        for (name, value) in &self.headers {
            match cookies
                .as_ref()
                .filter(|_| name.eq_ignore_ascii_case("Cookie"))
            {
                Some(cookies) => request.add_header(name, [value, &b"; "[..], cookies].concat()),
                None => request.add_header(name, value),
            };
        }
    }

    /// Uses the client certificate for the call.
    pub fn sign(&self, call: Call) -> Call {
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
    fn patterns_fit_hosts() {
        for (pattern, of, fits) in [
            ("example.org", "http://example.org/a", true),
            ("example.org", "https://EXAMPLE.org/", true),
            ("example.org", "http://a.example.org/", false),
            ("example.org", "http://example.org:8080/", false),
            ("example.org", "http://xexample.org/", false),
            ("*.example.org", "https://a.example.org/", true),
            ("*.example.org", "https://a.b.example.org/", true),
            ("*.example.org", "https://example.org/", false),
            ("*.example.org", "https://aexample.org/", false),
            ("*.example.org", "https://a.example.org:1/", false),
            ("example.org:443", "https://example.org/", true),
            ("example.org:443", "http://example.org/", false),
            ("https://[::1]:8443/", "https://[::1]:8443/x", true),
            ("https://[::1]:8443/", "http://[::1]:8443/x", false),
            ("https://example.org", "https://example.org/", true),
            ("https://example.org", "http://example.org/", false),
            ("*", "http://b:81/", true),
            ("https://*", "https://a:444/", true),
            ("https://*", "http://a/", false),
            ("bücher.example", "http://xn--bcher-kva.example/", true),
        ] {
            let pattern: HostPattern = pattern.parse().expect("valid");
            assert_eq!(pattern.matches(&url(of)), fits, "{pattern:?} {of}");
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
