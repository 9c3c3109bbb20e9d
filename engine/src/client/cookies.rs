//! A cookie jar (RFC 6265) that clients and threads can share.
//!
//! The `cookie_store` crate parses `Set-Cookie` and decides whether a cookie is sent to a URL. The store of that crate
//! examines every domain for each request; the store here examines only the host and its parent domains, and has
//! limits.
//!
//! Some rules come from the revision of RFC 6265 (draft-ietf-httpbis-rfc6265bis) and from curl. `Secure` cookies are
//! neither accepted, replaced nor shadowed over plain http, except from `localhost` and loopback addresses. The prefixes
//! `__Secure-` and `__Host-` are enforced. Control characters are refused. `SameSite` is ignored, because a request
//! here belongs to no site. Cookies that are not UTF-8 are refused, because they could not be sent back unchanged.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cookie_store::{Cookie as ParsedCookie, CookieDomain, CookieExpiration};
use httpdate::fmt_http_date;

use crate::proto::Url;
use crate::sync::{Mutex, lock};

/// A cookie jar. Clones are handles to the same jar.
///
/// Public suffixes: a `Domain` of one label (`com`) is refused. The list of longer suffixes (`co.uk`, `github.io`)
/// changes too often to be part of this crate. Use [`with_public_suffixes`](Self::with_public_suffixes) if servers that
/// do not trust each other share such a suffix.
///
/// ```
/// use courser::CookieJar;
/// use courser::proto::Url;
///
/// let jar = CookieJar::new();
/// jar.store(&Url::parse("https://www.example.com/")?, [&b"id=7; Domain=example.com; Secure"[..]]);
/// let mut header = Vec::new();
/// assert!(jar.push_header(&Url::parse("https://example.com/a")?, &mut header));
/// assert_eq!(header, b"id=7");
/// # Ok::<(), courser::proto::UrlError>(())
/// ```
#[derive(Clone, Default)]
pub struct CookieJar {
    jar: Arc<Mutex<Jar>>,
    limits: CookieLimits,
    public_suffix: Option<SuffixCheck>,
}

type SuffixCheck = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The limits of a [`CookieJar`].
///
/// ```
/// use courser::{CookieJar, CookieLimits};
///
/// let jar = CookieJar::new().with_limits(CookieLimits { header_bytes: 4096, ..CookieLimits::default() });
/// ```
#[derive(Clone, Debug)]
pub struct CookieLimits {
    /// The most cookies of one domain; the oldest cookie is removed to make room. Default 180 (as Chrome; RFC 6265 asks
    /// for 50).
    pub per_domain: NonZeroUsize,
    /// The most cookies of all domains; the oldest cookies are removed to make room. Default 10,000 (RFC 6265 asks for
    /// 3,000).
    pub total: NonZeroUsize,
    /// The most bytes of a `Set-Cookie` value; a longer value is ignored. Default 5,000 (as curl).
    pub cookie_bytes: usize,
    /// The most bytes of a `Cookie` value; cookies that do not fit are left out. Default 8,190 (as curl).
    pub header_bytes: usize,
}

impl Default for CookieLimits {
    fn default() -> Self {
        let or_one = |n| NonZeroUsize::new(n).unwrap_or(NonZeroUsize::MIN);
        Self {
            per_domain: or_one(180),
            total: or_one(10_000),
            cookie_bytes: 5_000,
            header_bytes: 8_190,
        }
    }
}

/// A cookie of a [`CookieJar`] as a value, for programs that keep cookies elsewhere: in a file, for example.
#[derive(Clone, Eq, PartialEq)]
pub struct Cookie {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The host that the cookie is sent to, in lower case and without a leading dot.
    pub domain: String,
    /// Whether the cookie is also sent to subdomains of `domain`.
    pub subdomains: bool,
    /// The cookie is sent to this path and to the paths below.
    pub path: String,
    /// Whether the cookie is sent only over TLS and to this machine.
    pub secure: bool,
    /// Whether the cookie is hidden from scripts.
    pub http_only: bool,
    /// When the cookie expires, in whole seconds; `None` means at the end of the session.
    pub expires: Option<SystemTime>,
}

impl Cookie {
    fn of(cookie: &ParsedCookie<'_>) -> Option<Self> {
        let (domain, subdomains) = match &cookie.domain {
            CookieDomain::Suffix(domain) => (domain, true),
            CookieDomain::HostOnly(domain) => (domain, false),
            CookieDomain::NotPresent | CookieDomain::Empty => return None,
        };
        let (name, value) = cookie.name_value();
        Some(Self {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: domain.clone(),
            subdomains,
            path: String::from(cookie.path.clone()),
            secure: cookie.secure() == Some(true),
            http_only: cookie.http_only() == Some(true),
            expires: match &cookie.expires {
                CookieExpiration::AtUtc(at) => {
                    let seconds = u64::try_from(at.unix_timestamp()).unwrap_or_default();
                    Some(UNIX_EPOCH + Duration::from_secs(seconds))
                }
                CookieExpiration::SessionEnd => None,
            },
        })
    }

    /// A `Set-Cookie` value that sets this cookie, and a URL that may set it. `None` if there is no such value.
    fn to_set_cookie(&self) -> Option<(String, url::Url)> {
        let (name, value, path) = (&self.name, &self.value, &self.path);
        let has_semicolon = [path, name, value].iter().any(|part| part.contains(';'));
        if has_semicolon || !path.starts_with('/') || name.contains('=') {
            return None;
        }
        let url = url::Url::parse(&format!("https://{}/", self.domain)).ok()?;
        let mut text = format!("{name}={value}; Path={path}");
        if self.http_only {
            text.push_str("; HttpOnly");
        }
        if self.subdomains {
            text.push_str("; Domain=");
            text.push_str(&self.domain);
        }
        if self.secure {
            text.push_str("; Secure");
        }
        if let Some(expires) = self.expires {
            let expires = expires.clamp(UNIX_EPOCH, UNIX_EPOCH + LATEST);
            text.push_str(&format!("; Expires={}", fmt_http_date(expires)));
        }
        Some((text, url))
    }
}

impl fmt::Debug for Cookie {
    /// Without the value, which is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookie")
            .field("name", &self.name)
            .field("domain", &self.domain)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl CookieJar {
    /// An empty jar.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same jar, with other limits for this handle and its clones.
    pub fn with_limits(mut self, limits: CookieLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same jar, which refuses cookies for whole public suffixes, for this handle and its clones.
    /// `is_public_suffix` gets names in lower case, as Punycode.
    pub fn with_public_suffixes(
        mut self,
        is_public_suffix: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.public_suffix = Some(Arc::new(is_public_suffix));
        self
    }

    /// Stores the cookies of `Set-Cookie` values of a response from `url`. Malformed values, and cookies that the
    /// server may not set, are ignored.
    pub fn store<'v>(&self, url: &Url<'_>, values: impl IntoIterator<Item = &'v [u8]>) {
        // Only responses that set cookies need the URL parsed by the `url` crate.
        let Ok(url) = url::Url::parse(&url.to_string()) else {
            return;
        };
        for value in values {
            if let Some(cookie) = self.check(value, &url) {
                lock(&self.jar).insert(cookie, &url, &self.limits);
            }
        }
    }

    /// Appends the value of `Cookie` for a request to `url`. Returns false, and appends nothing, if there is no cookie.
    /// Cookies with longer paths come first, then older cookies (RFC 6265 §5.4).
    pub fn push_header(&self, url: &Url<'_>, out: &mut Vec<u8>) -> bool {
        let host = host_key(url);
        let jar = lock(&self.jar);
        if jar.with_parents(&host).next().is_none() {
            return false;
        }
        let Ok(parsed) = url::Url::parse(&url.to_string()) else {
            return false;
        };
        let mut matching: Vec<_> = jar
            .with_parents(&host)
            .flatten()
            .filter(|stored| !stored.cookie.is_expired() && stored.cookie.matches(&parsed))
            .collect();
        matching.sort_by_key(|stored| (usize::MAX - stored.cookie.path.len(), stored.number));
        let start = out.len();
        for stored in matching {
            let (name, value) = stored.cookie.name_value();
            let separator = if out.len() > start { "; " } else { "" };
            let parts = [separator, name, "=", value];
            let more: usize = parts.iter().map(|part| part.len()).sum();
            if out.len() - start + more <= self.limits.header_bytes {
                out.extend(parts.iter().flat_map(|part| part.bytes()));
            }
        }
        out.len() > start
    }

    /// All cookies that have not expired, the oldest first. Session cookies are included.
    ///
    /// ```
    /// use courser::CookieJar;
    /// use courser::proto::Url;
    ///
    /// let jar = CookieJar::new();
    /// jar.store(&Url::parse("https://www.example.com/")?, [&b"id=7; Domain=example.com; Secure"[..]]);
    /// let copy = CookieJar::new();
    /// for cookie in jar.cookies() {
    ///     assert_eq!((&*cookie.domain, cookie.subdomains), ("example.com", true));
    ///     assert!(copy.insert(&cookie));
    /// }
    /// assert_eq!(copy.len(), 1);
    /// # Ok::<(), courser::proto::UrlError>(())
    /// ```
    pub fn cookies(&self) -> impl Iterator<Item = Cookie> + use<> {
        let jar = lock(&self.jar);
        let mut all: Vec<_> = jar.domains.values().flatten().collect();
        all.sort_by_key(|stored| stored.number);
        let current = all.iter().filter(|stored| !stored.cookie.is_expired());
        let values: Vec<_> = current
            .filter_map(|stored| Cookie::of(&stored.cookie))
            .collect();
        values.into_iter()
    }

    /// Stores a cookie as if its own domain had set it over TLS. Returns false if the domain may not set the cookie, if
    /// the cookie has expired, or if no server could set it: the path does not begin with `/`, the name contains `=`,
    /// or a part contains `;`.
    pub fn insert(&self, cookie: &Cookie) -> bool {
        let Some((value, url)) = cookie.to_set_cookie() else {
            return false;
        };
        match self.check(value.as_bytes(), &url) {
            Some(parsed) if !parsed.is_expired() => {
                lock(&self.jar).insert(parsed, &url, &self.limits);
                true
            }
            _ => false,
        }
    }

    /// The number of cookies, expired cookies that are not removed yet included.
    pub fn len(&self) -> usize {
        lock(&self.jar).count
    }

    /// Whether the jar has no cookies.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all cookies.
    pub fn clear(&self) {
        let mut jar = lock(&self.jar);
        jar.domains.clear();
        jar.count = 0;
    }

    /// The cookie, if this URL may set it.
    fn check(&self, value: &[u8], url: &url::Url) -> Option<ParsedCookie<'static>> {
        if value.len() > self.limits.cookie_bytes {
            return None;
        }
        let text = std::str::from_utf8(value).ok()?;
        let mut cookie = ParsedCookie::parse(text, url).ok()?.into_owned();
        let (name, value) = cookie.name_value();
        let mut bytes = name.bytes().chain(value.bytes());
        if bytes.any(|byte| byte.is_ascii_control()) {
            return None;
        }
        let secure = cookie.secure() == Some(true);
        if (secure && !is_trustworthy(url)) || !keeps_its_prefix(&cookie, secure, url) {
            return None;
        }
        if let CookieDomain::Suffix(domain) = &cookie.domain
            && self.is_public_suffix(domain)
        {
            // If the server itself is the suffix, the cookie is for this server alone (RFC 6265 §5.3, step 5).
            if url.host_str() != Some(domain) {
                return None;
            }
            cookie.domain = CookieDomain::host_only(url).ok()?;
        }
        Some(cookie)
    }

    fn is_public_suffix(&self, domain: &str) -> bool {
        let own = self.public_suffix.as_ref();
        !domain.contains('.') || own.is_some_and(|check| check(domain))
    }
}

impl fmt::Debug for CookieJar {
    /// Without the cookies, which are credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieJar")
            .field("len", &self.len())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Jar {
    /// The cookies by domain. No list is empty.
    domains: BTreeMap<Domain<'static>, Vec<Stored>>,
    /// The number of all cookies.
    count: usize,
    /// The number of the next new cookie.
    next: u64,
}

struct Stored {
    cookie: ParsedCookie<'static>,
    /// The order in which the cookies were first set.
    number: u64,
}

/// A domain in lower case, without a leading dot. The order is that of the bytes from the end, so that the subdomains of
/// a domain are neighbours.
#[derive(Eq, PartialEq)]
struct Domain<'d>(Cow<'d, str>);

impl Ord for Domain<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.bytes().rev().cmp(other.0.bytes().rev())
    }
}

impl PartialOrd for Domain<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Jar {
    /// The cookies of a host and of its parent domains.
    fn with_parents<'j>(&'j self, host: &'j str) -> impl Iterator<Item = &'j Vec<Stored>> {
        let parents = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
        let domains: &BTreeMap<Domain<'j>, _> = &self.domains;
        std::iter::once(host)
            .chain(parents)
            .filter_map(|domain| domains.get(&Domain(domain.into())))
    }

    /// The cookies of all subdomains of a domain.
    fn with_subdomains(&self, domain: &str) -> impl Iterator<Item = &Vec<Stored>> {
        let end = format!(".{domain}");
        let from = Domain(end.clone().into());
        let next = self.domains.range(from..);
        next.take_while(move |(domain, _)| domain.0.ends_with(&end))
            .map(|(_, stored)| stored)
    }

    /// Whether a cookie that was set over a safe connection forbids this cookie, which was not: both have one name, and
    /// may be sent to the same URL (draft-ietf-httpbis-rfc6265bis §5.7, step 11).
    fn forbids(&self, domain: &str, cookie: &ParsedCookie<'_>) -> bool {
        self.with_parents(domain)
            .chain(self.with_subdomains(domain))
            .flatten()
            .any(|Stored { cookie: old, .. }| {
                old.secure() == Some(true)
                    && old.name() == cookie.name()
                    && !old.is_expired()
                    && is_at_or_below(&cookie.path, &old.path)
            })
    }

    fn insert(&mut self, cookie: ParsedCookie<'static>, url: &url::Url, limits: &CookieLimits) {
        let domain = match &cookie.domain {
            CookieDomain::HostOnly(domain) | CookieDomain::Suffix(domain) => domain.clone(),
            CookieDomain::NotPresent | CookieDomain::Empty => return,
        };
        if !is_trustworthy(url) && self.forbids(&domain, &cookie) {
            return;
        }
        let domain = Domain(domain.into());
        let mut stored = self.domains.remove(&domain).unwrap_or_default();
        self.count -= stored.len();
        let place = stored
            .iter()
            .position(|old| old.cookie.name() == cookie.name() && *old.cookie.path == *cookie.path);
        match place {
            // An expired cookie deletes the old one. Another cookie replaces it and keeps its number (RFC 6265 §5.3,
            // step 11).
            Some(at) if cookie.is_expired() => drop(stored.remove(at)),
            Some(at) => stored[at].cookie = cookie,
            None if cookie.is_expired() => {}
            None => {
                stored.retain(|old| !old.cookie.is_expired());
                if stored.len() >= limits.per_domain.get()
                    && let Some(oldest) = (0..stored.len()).min_by_key(|&at| stored[at].number)
                {
                    stored.remove(oldest);
                }
                let number = self.next;
                self.next += 1;
                stored.push(Stored { cookie, number });
            }
        }
        if !stored.is_empty() {
            self.count += stored.len();
            self.domains.insert(domain, stored);
        }
        if self.count > limits.total.get() {
            self.make_room(limits.total.get());
        }
    }

    /// Removes expired cookies, and then the oldest ones: a tenth at once, so that a full jar is not searched for each
    /// new cookie.
    fn make_room(&mut self, total: usize) {
        self.retain(|stored| !stored.cookie.is_expired());
        if self.count <= total {
            return;
        }
        let kept = (total - total / 10).max(1);
        let mut numbers: Vec<_> = self.domains.values().flatten().map(|s| s.number).collect();
        let surplus = numbers.len() - kept;
        let (_, &mut first_kept, _) = numbers.select_nth_unstable(surplus);
        self.retain(|stored| stored.number >= first_kept);
    }

    fn retain(&mut self, keep: impl Fn(&Stored) -> bool) {
        self.domains.retain(|_, stored| {
            stored.retain(&keep);
            !stored.is_empty()
        });
        self.count = self.domains.values().map(Vec::len).sum();
    }
}

/// The host as the key of [`Jar::domains`].
fn host_key<'u>(url: &'u Url<'_>) -> Cow<'u, str> {
    match url.ip() {
        Some(std::net::IpAddr::V6(ip)) => format!("[{ip}]").into(),
        _ if url.host().bytes().any(|b| b.is_ascii_uppercase()) => {
            url.host().to_ascii_lowercase().into()
        }
        _ => url.host().into(),
    }
}

/// Whether the connection is safe: no third party can read or change the data.
fn is_trustworthy(url: &url::Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
}

/// Whether a path is `above`, or below it (RFC 6265 §5.1.4: the path-match).
fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || above.ends_with('/'))
}

/// Whether the cookie meets the conditions of the prefix of its name.
fn keeps_its_prefix(cookie: &ParsedCookie<'_>, secure: bool, url: &url::Url) -> bool {
    let has = |prefix: &str| {
        let start = cookie.name().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let safe = secure && is_trustworthy(url);
    let of_host = matches!(cookie.domain, CookieDomain::HostOnly(_)) && cookie.path() == Some("/");
    (!has("__Secure-") || safe) && (!has("__Host-") || (safe && of_host))
}

/// The last second that a date in HTTP can name: the end of the year 9999.
const LATEST: Duration = Duration::from_secs(253_402_300_799);
