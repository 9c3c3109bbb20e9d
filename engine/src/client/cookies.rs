//! A cookie jar (RFC 6265) that clients and threads can share, and the file format that curl reads and writes.
//!
//! The `cookie_store` crate parses `Set-Cookie` and decides whether a cookie goes to a URL. Its own store looks at every
//! domain for each request; the one here looks at the host and its parents only, and has limits.
//!
//! Beyond RFC 6265, as its revision (draft-ietf-httpbis-rfc6265bis) and curl have it: `Secure` cookies are not taken
//! over plain http, except from `localhost` and loopback addresses, nor replaced over it; the prefixes `__Secure-` and
//! `__Host-` are held to; control characters are refused. `SameSite` is not regarded: there is no site around a request.
//! Cookies with bytes that are no UTF-8 are refused, because they could not be sent back as they came.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cookie_store::{Cookie, CookieDomain, CookieExpiration};

use crate::proto::Url;

/// A cookie jar. Clones are handles to the same jar.
///
/// Public suffixes: a `Domain` of one label (`com`) is refused. The list of the others (`co.uk`, `github.io`) changes
/// too often to be part of this crate; give one to [`with_public_suffixes`](Self::with_public_suffixes) if servers that
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

/// What servers may make a [`CookieJar`] hold, and send.
///
/// ```
/// use courser::{CookieJar, CookieLimits};
///
/// let jar = CookieJar::new().with_limits(CookieLimits { header_bytes: 4096, ..CookieLimits::default() });
/// ```
#[derive(Clone, Debug)]
pub struct CookieLimits {
    /// Cookies of one domain; the oldest makes room. Default 180 (as Chrome; RFC 6265 asks for 50).
    pub per_domain: NonZeroUsize,
    /// Cookies in all; the oldest make room. Default 10,000 (RFC 6265 asks for 3,000).
    pub total: NonZeroUsize,
    /// Bytes of one `Set-Cookie` value; a longer one is ignored. Default 5,000 (as curl).
    pub cookie_bytes: usize,
    /// Bytes of one `Cookie` value; cookies that do not fit are left out. Default 8,190 (as curl).
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

impl CookieJar {
    /// An empty jar.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same jar, held to other limits through this handle and its clones.
    pub fn with_limits(mut self, limits: CookieLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same jar, which refuses cookies for whole public suffixes through this handle and its clones.
    /// `is_public_suffix` is asked about names in lower case, as Punycode.
    pub fn with_public_suffixes(
        mut self,
        is_public_suffix: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.public_suffix = Some(Arc::new(is_public_suffix));
        self
    }

    /// Takes in the values of `Set-Cookie` of a response from `url`. Those that are malformed, or that the server may
    /// not set, are ignored.
    pub fn store<'v>(&self, url: &Url<'_>, values: impl IntoIterator<Item = &'v [u8]>) {
        // Only responses that set cookies pay for the second reading of the URL.
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        let Ok(url) = url::Url::parse(&url.to_string()) else {
            return;
        };
        for value in values {
            if let Some(cookie) = self.check(value, &url) {
                self.lock().insert(cookie, &url, &self.limits);
            }
        }
    }

    /// Appends the value of `Cookie` for a request to `url`; false, and nothing, if there is none. Cookies of longer
    /// paths come first, then older ones (RFC 6265 §5.4).
    pub fn push_header(&self, url: &Url<'_>, out: &mut Vec<u8>) -> bool {
        let host = host_key(url);
        let jar = self.lock();
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

    /// Takes in cookies from the text of a cookie file in Netscape's format, as curl's `-b` reads and `-c` writes it,
    /// and returns how many. Lines that are no cookies, and cookies that have expired, are skipped.
    pub fn load(&self, text: &[u8]) -> usize {
        let now = unix_now();
        let lines = text.split(|&byte| byte == b'\n');
        let taken = lines.filter_map(|line| {
            let (value, url, expiry) = netscape_line(line, now)?;
            let mut cookie = self.check(value.as_bytes(), &url)?;
            set_expiry(&mut cookie.expires, expiry);
            self.lock().insert(cookie, &url, &self.limits);
            Some(())
        });
        taken.count()
    }

    /// All cookies that have not expired, as a file in Netscape's format, the oldest first. Those that end with the
    /// session are included.
    pub fn save(&self) -> String {
        let jar = self.lock();
        let mut all: Vec<_> = jar.domains.values().flatten().collect();
        all.sort_by_key(|stored| stored.number);
        let mut out = String::from("# Netscape HTTP Cookie File\n\n");
        for stored in all.iter().filter(|stored| !stored.cookie.is_expired()) {
            push_netscape_line(&stored.cookie, &mut out);
        }
        out
    }

    /// How many cookies there are, expired ones that nobody came across included.
    pub fn len(&self) -> usize {
        self.lock().count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all.
    pub fn clear(&self) {
        let mut jar = self.lock();
        jar.domains.clear();
        jar.count = 0;
    }

    /// The cookie, if that URL may set it.
    fn check(&self, value: &[u8], url: &url::Url) -> Option<Cookie<'static>> {
        if value.len() > self.limits.cookie_bytes {
            return None;
        }
        let text = std::str::from_utf8(value).ok()?;
        let mut cookie = Cookie::parse(text, url).ok()?.into_owned();
        let (name, value) = cookie.name_value();
        if name
            .bytes()
            .chain(value.bytes())
            .any(|b| b.is_ascii_control())
        {
            return None;
        }
        let secure = cookie.secure() == Some(true);
        if (secure && !is_trustworthy(url)) || !keeps_its_prefix(&cookie, secure, url) {
            return None;
        }
        if let CookieDomain::Suffix(domain) = &cookie.domain
            && self.is_public_suffix(domain)
        {
            // A server that is the suffix itself keeps it for itself (RFC 6265 §5.3, step 5).
            if url.host_str() != Some(domain) {
                return None;
            }
            cookie.domain = CookieDomain::host_only(url).ok()?;
        }
        Some(cookie)
    }

    fn is_public_suffix(&self, domain: &str) -> bool {
        !domain.contains('.')
            || self
                .public_suffix
                .as_ref()
                .is_some_and(|check| check(domain))
    }

    fn lock(&self) -> MutexGuard<'_, Jar> {
        // Each change is whole before anything can panic.
        self.jar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CookieJar {
    /// Without the cookies: they are credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieJar")
            .field("len", &self.len())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Jar {
    /// By domain in lower case, without a dot in front. None is empty.
    domains: HashMap<Box<str>, Vec<Stored>>,
    /// Cookies in all.
    count: usize,
    /// The number of the next one.
    next: u64,
}

struct Stored {
    cookie: Cookie<'static>,
    /// In the order in which they were first set.
    number: u64,
}

impl Jar {
    /// The cookies of that host and of the domains that it is in.
    fn with_parents<'j>(&'j self, host: &'j str) -> impl Iterator<Item = &'j Vec<Stored>> {
        let parents = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
        std::iter::once(host)
            .chain(parents)
            .filter_map(|domain| self.domains.get(domain))
    }

    fn insert(&mut self, cookie: Cookie<'static>, url: &url::Url, limits: &CookieLimits) {
        let domain: Box<str> = match &cookie.domain {
            CookieDomain::HostOnly(domain) | CookieDomain::Suffix(domain) => domain.as_str().into(),
            CookieDomain::NotPresent | CookieDomain::Empty => return,
        };
        let mut stored = self.domains.remove(&domain).unwrap_or_default();
        self.count -= stored.len();
        let place = stored
            .iter()
            .position(|old| old.cookie.name() == cookie.name() && *old.cookie.path == *cookie.path);
        match place {
            Some(at) if is_protected(&stored[at].cookie, url) => {}
            // A cookie from the past deletes; another one takes the old one's place and number (RFC 6265 §5.3, step 11).
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

    /// Drops expired cookies, and then the oldest: a tenth at once, so that a full jar is not searched each time.
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

/// Whether nobody on the way can read what is sent there, or change what comes from there.
fn is_trustworthy(url: &url::Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
}

/// Whether a cookie was set over a connection that is safer than this one.
fn is_protected(old: &Cookie<'_>, url: &url::Url) -> bool {
    old.secure() == Some(true) && !old.is_expired() && !is_trustworthy(url)
}

/// Whether the cookie is what its name promises.
fn keeps_its_prefix(cookie: &Cookie<'_>, secure: bool, url: &url::Url) -> bool {
    let has = |prefix: &str| {
        let start = cookie.name().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let safe = secure && is_trustworthy(url);
    let of_host = matches!(cookie.domain, CookieDomain::HostOnly(_)) && cookie.path() == Some("/");
    (!has("__Secure-") || safe) && (!has("__Host-") || (safe && of_host))
}

/// A line of a cookie file as a value of `Set-Cookie`, a URL that sets it, and when it expires (0: with the session):
/// `domain, whether for subdomains, path, whether secure, expiry, name, value`, with tabs between.
fn netscape_line(line: &[u8], now: u64) -> Option<(String, url::Url, u64)> {
    let line = std::str::from_utf8(line).ok()?.trim_end_matches('\r');
    let (line, http_only) = match line.strip_prefix("#HttpOnly_") {
        Some(line) => (line, "; HttpOnly"),
        None => (line, ""),
    };
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (domain, subdomains, path) = (next()?, next()?, next()?);
    let (secure, expiry, name) = (next()?, next()?, next()?);
    // Curl leaves an empty value out.
    let value = next().unwrap_or("");
    if next().is_some() || !path.starts_with('/') || name.contains('=') {
        return None;
    }
    // None of these can stand in a cookie that a server has set.
    if [path, name, value].iter().any(|field| field.contains(';')) {
        return None;
    }
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    let url = url::Url::parse(&format!("https://{domain}/")).ok()?;
    let mut cookie = format!("{name}={value}; Path={path}{http_only}");
    if subdomains == "TRUE" {
        cookie.push_str("; Domain=");
        cookie.push_str(domain);
    }
    if secure == "TRUE" {
        cookie.push_str("; Secure");
    }
    let expiry: u64 = expiry.parse().ok()?;
    if expiry != 0 {
        let left = expiry.checked_sub(now).filter(|&left| left > 0)?;
        cookie.push_str(&format!("; Max-Age={left}"));
    }
    Some((cookie, url, expiry))
}

/// Takes out the time that passed until `Max-Age` was added to the clock.
fn set_expiry(expires: &mut CookieExpiration, expiry: u64) {
    if let CookieExpiration::AtUtc(at) = expires
        && let Ok(stands) = u64::try_from(at.unix_timestamp())
    {
        *at -= Duration::from_secs(stands.saturating_sub(expiry));
    }
}

fn push_netscape_line(cookie: &Cookie<'_>, out: &mut String) {
    let (dot, domain, subdomains) = match &cookie.domain {
        CookieDomain::Suffix(domain) => (".", domain, "TRUE"),
        CookieDomain::HostOnly(domain) => ("", domain, "FALSE"),
        CookieDomain::NotPresent | CookieDomain::Empty => return,
    };
    let (name, value) = cookie.name_value();
    let path: &str = &cookie.path;
    // A tab would read as the end of its field; names and values hold none.
    if path.contains('\t') {
        return;
    }
    let http_only = match cookie.http_only() {
        Some(true) => "#HttpOnly_",
        _ => "",
    };
    let secure = match cookie.secure() {
        Some(true) => "TRUE",
        _ => "FALSE",
    };
    let expiry = match &cookie.expires {
        CookieExpiration::AtUtc(at) => at.unix_timestamp(),
        CookieExpiration::SessionEnd => 0,
    };
    let fields = format!("{subdomains}\t{path}\t{secure}\t{expiry}\t{name}\t{value}");
    out.extend([http_only, dot, domain, "\t", &fields, "\n"]);
}

fn unix_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url<'_> {
        Url::parse(text).unwrap()
    }

    fn set(jar: &CookieJar, from: &str, value: &str) {
        jar.store(&url(from), [value.as_bytes()]);
    }

    fn sent(jar: &CookieJar, to: &str) -> String {
        let mut out = b"x".to_vec();
        let any = jar.push_header(&url(to), &mut out);
        assert_eq!(any, out.len() > 1);
        String::from_utf8(out[1..].to_vec()).unwrap()
    }

    #[test]
    fn which_cookie_goes_where() {
        for (from, value, to, goes) in [
            ("http://h.x/", "a=b", "http://h.x/", true),
            ("http://H.x/", "a=b", "http://h.X:81/p?q", true),
            ("http://u:p@h.x?q", "a=b", "https://h.x/", true),
            ("http://h.x/", "a=b", "http://www.h.x/", false),
            ("http://h.x/", "a=b", "http://x/", false),
            ("http://h.x/", "a=b", "http://h.x./", false),
            ("http://h.x/", "a=b; Domain=h.x", "http://www.h.x/", true),
            ("http://h.x/", "a=b; Domain=.H.X", "http://a.www.h.x/", true),
            ("http://h.x/", "a=b; Domain=h.x", "http://nh.x/", false),
            ("http://www.h.x/", "a=b; Domain=h.x", "http://h.x/", true),
            ("http://www.h.x/", "a=b; Domain=g.x", "http://g.x/", false),
            (
                "http://www.h.x/",
                "a=b; Domain=www.h.x",
                "http://h.x/",
                false,
            ),
            // One label is a public suffix, unless it is the host.
            ("http://h.x/", "a=b; Domain=x", "http://h.x/", false),
            ("http://h.x/", "a=b; Domain=x", "http://g.x/", false),
            (
                "http://localhost/",
                "a=b; Domain=localhost",
                "http://localhost/",
                true,
            ),
            (
                "http://localhost/",
                "a=b; Domain=localhost",
                "http://a.localhost/",
                false,
            ),
            (
                "http://h.co.uk/",
                "a=b; Domain=co.uk",
                "http://g.co.uk/",
                false,
            ),
            // Addresses have no parents.
            ("http://127.0.0.1/", "a=b", "http://127.0.0.1:99/", true),
            (
                "http://127.0.0.1/",
                "a=b; Domain=0.0.1",
                "http://127.0.0.1/",
                false,
            ),
            ("http://[::1]/", "a=b", "http://[0::1]/", true),
            // Paths.
            ("http://h.x/a/b", "a=b", "http://h.x/a/c", true),
            ("http://h.x/a/b", "a=b", "http://h.x/ac", false),
            ("http://h.x/a/b", "a=b; Path=/", "http://h.x/", true),
            ("http://h.x/", "a=b; Path=/p", "http://h.x/p/q", true),
            ("http://h.x/", "a=b; Path=/p", "http://h.x/pq", false),
            ("http://h.x/", "a=b; Path=p", "http://h.x/q", true),
            // Secure.
            ("https://h.x/", "a=b; Secure", "https://h.x/", true),
            ("https://h.x/", "a=b; Secure", "http://h.x/", false),
            ("http://h.x/", "a=b; Secure", "https://h.x/", false),
            (
                "http://localhost/",
                "a=b; Secure",
                "http://localhost/",
                true,
            ),
            (
                "http://127.0.0.1/",
                "a=b; Secure",
                "http://127.0.0.1/",
                true,
            ),
            (
                "https://h.x/",
                "a=b; HttpOnly; SameSite=Strict",
                "http://h.x/",
                true,
            ),
            ("https://h.x/", "__Secure-a=b", "https://h.x/", false),
            ("https://h.x/", "__Secure-a=b; Secure", "https://h.x/", true),
            ("https://h.x/", "__host-a=b; Secure", "https://h.x/", false),
            (
                "https://h.x/",
                "__Host-a=b; Secure; Path=/",
                "https://h.x/",
                true,
            ),
            (
                "https://h.x/",
                "__Host-a=b; Secure; Path=/; Domain=h.x",
                "https://h.x/",
                false,
            ),
            // Time.
            ("http://h.x/", "a=b; Max-Age=100", "http://h.x/", true),
            (
                "http://h.x/",
                "a=b; Max-Age=99999999999999999999",
                "http://h.x/",
                true,
            ),
            ("http://h.x/", "a=b; Max-Age=0", "http://h.x/", false),
            ("http://h.x/", "a=b; Max-Age=-1", "http://h.x/", false),
            (
                "http://h.x/",
                "a=b; Expires=Wed, 21 Oct 2015 07:28:00 GMT",
                "http://h.x/",
                false,
            ),
            (
                "http://h.x/",
                "a=b; Expires=Fri, 01 Jan 2099 00:00:00 GMT",
                "http://h.x/",
                true,
            ),
            // Malformed.
            ("http://h.x/", "", "http://h.x/", false),
            ("http://h.x/", "a", "http://h.x/", false),
            ("http://h.x/", "=b", "http://h.x/", false),
            ("http://h.x/", "a=b\x01c", "http://h.x/", false),
            ("http://h.x/", "a=b\tc", "http://h.x/", false),
            ("http://h.x/", "a=\"b c\"", "http://h.x/", true),
        ] {
            let jar = CookieJar::new().with_public_suffixes(|name| name == "co.uk");
            set(&jar, from, value);
            assert_eq!(
                !sent(&jar, to).is_empty(),
                goes,
                "{value} from {from} to {to}"
            );
        }
        let jar = CookieJar::new();
        jar.store(
            &url("http://h.x"),
            [&b"a=\xff"[..], b"b=\xc3\xa4", b"c=\"d\""],
        );
        assert_eq!(sent(&jar, "http://h.x/"), "b=ä; c=\"d\"");
    }

    #[test]
    fn replaced_deleted_and_in_order() {
        let jar = CookieJar::new();
        let from = "http://www.h.x/p/";
        for value in [
            "a=1",
            "b=2; Path=/",
            "c=3; Domain=h.x; Path=/",
            "d=4",
            "a=5; Path=/",
        ] {
            set(&jar, from, value);
        }
        assert_eq!(sent(&jar, from), "a=1; d=4; b=2; c=3; a=5");
        set(&jar, from, "a=6");
        assert_eq!(sent(&jar, from), "a=6; d=4; b=2; c=3; a=5");
        set(&jar, from, "a=; Max-Age=0");
        assert_eq!(sent(&jar, from), "d=4; b=2; c=3; a=5");
        assert_eq!(sent(&jar, "http://h.x/"), "c=3");
        // Over plain http, a Secure cookie is neither replaced nor deleted.
        set(&jar, "https://h.x/", "s=1; Secure");
        set(&jar, "http://h.x/", "s=2");
        set(&jar, "http://h.x/", "s=2; Max-Age=0");
        assert_eq!(sent(&jar, "https://h.x/"), "c=3; s=1");
        assert_eq!(jar.len(), 5);
        let handle = jar.clone();
        handle.clear();
        assert!(jar.is_empty());
        assert_eq!(sent(&jar, from), "");
    }

    #[test]
    fn nothing_grows_without_end() {
        let limit = |n| NonZeroUsize::new(n).unwrap();
        let jar = CookieJar::new().with_limits(CookieLimits {
            per_domain: limit(3),
            total: limit(20),
            cookie_bytes: 50,
            header_bytes: 20,
        });
        for n in 0..10 {
            set(&jar, "http://h.x/", &format!("n{n}=v"));
        }
        assert_eq!(sent(&jar, "http://h.x/"), "n7=v; n8=v; n9=v");
        set(&jar, "http://h.x/", &format!("n7={}", "v".repeat(60)));
        assert_eq!(sent(&jar, "http://h.x/"), "n7=v; n8=v; n9=v");
        // What does not fit is left out, and a shorter one behind it is not.
        set(&jar, "http://h.x/", "n8=vvvvvvvvvvvvvvvvv");
        assert_eq!(sent(&jar, "http://h.x/"), "n7=v; n9=v");
        for n in 0..1000 {
            set(&jar, &format!("http://h{n}.y/"), "a=b");
            assert!(jar.len() <= 20);
        }
        assert!(jar.len() >= 18);
        assert_eq!(sent(&jar, "http://h.x/"), "");
        assert_eq!(sent(&jar, "http://h999.y/"), "a=b");
    }

    #[test]
    fn files_as_curl_writes_them() {
        let jar = CookieJar::new();
        let file = "# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n\n\
            .h.x\tTRUE\t/\tFALSE\t0\ta\t1\n\
            www.h.x\tFALSE\t/p\tTRUE\t4070908800\tb\t2\r\n\
            #HttpOnly_h.x\tFALSE\t/\tFALSE\t0\tc\t\n\
            h.x\tFALSE\t/\tFALSE\t0\td\n\
            h.x\tFALSE\t/\tFALSE\t1\texpired\t1\n\
            h.x\tFALSE\t/\tFALSE\t99999999999999999999\te\t1\n\
            h.x\tFALSE\t/\tFALSE\tsoon\te\t1\n\
            h.x\tFALSE\t/\tFALSE\t0\te=\t1\n\
            h.x\tFALSE\t/\tFALSE\t0\te\t1; Domain=g.x\n\
            h.x\tFALSE\tp\tFALSE\t0\te\t1\n\
            h.x\tFALSE\t/\tFALSE\t0\te\t1\textra\n\
            a b\tFALSE\t/\tFALSE\t0\te\t1\n\
            x\tTRUE\t/\tFALSE\t0\ttld\t1\n\
            h.x\tFALSE\t/\n\n";
        // The host `x` itself may have a cookie; it is not for those below it.
        assert_eq!(jar.load(file.as_bytes()), 5);
        assert_eq!(sent(&jar, "https://www.h.x/p"), "b=2; a=1");
        assert_eq!(sent(&jar, "http://h.x/"), "a=1; c=; d=");
        let saved = jar.save();
        assert_eq!(
            saved,
            "# Netscape HTTP Cookie File\n\n\
            .h.x\tTRUE\t/\tFALSE\t0\ta\t1\n\
            www.h.x\tFALSE\t/p\tTRUE\t4070908800\tb\t2\n\
            #HttpOnly_h.x\tFALSE\t/\tFALSE\t0\tc\t\n\
            h.x\tFALSE\t/\tFALSE\t0\td\t\n\
            x\tFALSE\t/\tFALSE\t0\ttld\t1\n"
        );
        let other = CookieJar::new();
        assert_eq!(other.load(saved.as_bytes()), 5);
        assert_eq!(other.save(), saved);
        assert_eq!(other.load(b"\xff\n\0\t\t\t\t\t\t"), 0);
    }

    #[test]
    fn no_value_is_shown() {
        let jar = CookieJar::new();
        set(&jar, "http://h.x/", "a=secret");
        assert!(!format!("{jar:?}").contains("secret"));
    }
}
