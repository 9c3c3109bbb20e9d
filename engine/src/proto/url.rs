//! URLs of http and https (RFC 3986 §3, RFC 9110 §4.2): splitting without allocation. Name lookup and percent-decoding are
//! done elsewhere.
//!
//! The path and the query stay as given: nothing is decoded, normalised or encoded. The host is read strictly, because
//! an address check can be bypassed where two programs read one URL differently. No percent-encoding and no zone id are
//! accepted, and a name that ends in a number must be a plain dotted quad (`127.1`, `0x7f.1` and `2130706433` are
//! 127.0.0.1 to other programs, and an error here). [`resolve`](super::resolve) accepts such spellings in a redirect, as
//! browsers do, and its result is read by the strict rules.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use memchr::{memchr, memchr3, memrchr};

use crate::error::UrlError;

/// An http or https URL, split into its parts.
///
/// ```
/// use courser::proto::{Scheme, Url};
///
/// let url = Url::parse("HTTP://user:secret@Example.com:8080?q=1#top")?;
/// assert_eq!((url.scheme(), url.host(), url.port()), (Scheme::Http, "Example.com", 8080));
/// assert_eq!(url.target_parts().concat(), "/?q=1");
/// assert_eq!(url.origin(), "http://example.com:8080");
/// # Ok::<(), courser::proto::UrlError>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct Url<'a> {
    scheme: Scheme,
    /// With a port; behind it only path and query: nothing, or what begins with `/` or `?`.
    parts: Parts<'a>,
}

/// The scheme of a [`Url`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// The schemes of this build.
    const SUPPORTED: &[Self] = match cfg!(feature = "tls") {
        true => &[Self::Http, Self::Https],
        false => &[Self::Http],
    };

    /// The name of the scheme, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of URLs without a port.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'a> Url<'a> {
    /// Splits and checks an absolute URL.
    ///
    /// # Errors
    /// The part that is invalid.
    pub fn parse(text: &'a str) -> Result<Self, UrlError> {
        let (scheme, rest) = split_scheme(text)?;
        let mut parts = Parts::parse(rest)?;
        let offset = text.len() - parts.behind.len();
        if let Some(at) = memchr(b'#', parts.behind.as_bytes()) {
            parts.behind = &parts.behind[..at];
        }
        check_target(parts.behind, offset)?;
        parts.port.get_or_insert(scheme.default_port());
        Ok(Self { scheme, parts })
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The user information, the part before `@`, as given: `user` or `user:password`, percent-encoded.
    pub fn userinfo(&self) -> Option<&'a str> {
        self.parts.userinfo
    }

    /// The host as given, IPv6 addresses in brackets. A name with other characters than ASCII is in Punycode (RFC
    /// 5891).
    pub fn host(&self) -> &str {
        &self.parts.host
    }

    /// The host, if it is an address.
    pub fn ip(&self) -> Option<IpAddr> {
        self.parts.ip
    }

    /// The port. Without a port in the URL, the default of the scheme.
    pub fn port(&self) -> u16 {
        self.parts.port.unwrap_or_default()
    }

    /// Path and query in two pieces. Together they are the origin-form (RFC 9112 §3.2.1): the first is `/` if the URL
    /// has no path, otherwise empty.
    pub fn target_parts(&self) -> [&'a str; 2] {
        match self.parts.behind.starts_with('/') {
            true => ["", self.parts.behind],
            false => ["/", self.parts.behind],
        }
    }

    /// Appends path and query, beginning with `/`.
    pub fn push_target(&self, out: &mut Vec<u8>) {
        for part in self.target_parts() {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// Appends the value of `Host`: the host, and the port unless it is the default of the scheme (RFC 9110 §7.2).
    /// Names are in lower case and addresses in their usual form, so that all spellings of one host give the same
    /// value. A dot at the end of a name is kept: it makes a different name.
    pub fn push_authority(&self, out: &mut Vec<u8>) {
        self.push_host(out);
        if self.port() != self.scheme.default_port() {
            push_port(self.port(), out);
        }
    }

    /// Appends `host:port`, the authority-form of CONNECT (RFC 9112 §3.2.3).
    pub fn push_host_port(&self, out: &mut Vec<u8>) {
        self.push_host(out);
        push_port(self.port(), out);
    }

    fn push_host(&self, out: &mut Vec<u8>) {
        match self.parts.ip {
            // Only IPv6 addresses have several spellings.
            Some(IpAddr::V6(ip)) => {
                use std::io::Write;
                // Writing to a vector does not fail.
                let _ = write!(out, "[{ip}]");
            }
            _ => out.extend(self.host().bytes().map(|byte| byte.to_ascii_lowercase())),
        }
    }

    /// Appends `scheme://host`, with the port unless it is the default of the scheme: equal for all URLs of the [same
    /// origin](Self::same_origin), different for others.
    pub fn push_origin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.scheme.as_str().as_bytes());
        out.extend_from_slice(b"://");
        self.push_authority(out);
    }

    /// [`push_origin`](Self::push_origin) as a new string.
    pub fn origin(&self) -> String {
        let mut out = Vec::with_capacity(self.host().len() + 16);
        self.push_origin(&mut out);
        // All bytes of an origin are ASCII.
        String::from_utf8(out).unwrap_or_default()
    }

    /// Whether both have the same scheme, host and port. Names are compared ignoring case, addresses by value. No name
    /// is looked up: `localhost` is not `127.0.0.1`.
    pub fn same_origin(&self, other: &Url<'_>) -> bool {
        let same_host = match (self.ip(), other.ip()) {
            (None, None) => self.host().eq_ignore_ascii_case(other.host()),
            (one, two) => one == two,
        };
        same_host && self.scheme == other.scheme && self.port() == other.port()
    }
}

/// The parts of a URL after `://`.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Parts<'a> {
    pub(crate) userinfo: Option<&'a str>,
    /// As given, IPv6 in brackets. A name with other characters than ASCII is in Punycode.
    pub(crate) host: Cow<'a, str>,
    pub(crate) ip: Option<IpAddr>,
    pub(crate) port: Option<u16>,
    /// Path, query and fragment, unchecked.
    pub(crate) behind: &'a str,
}

impl<'a> Parts<'a> {
    #[inline]
    pub(crate) fn parse(text: &'a str) -> Result<Self, UrlError> {
        let end = memchr3(b'/', b'?', b'#', text.as_bytes()).unwrap_or(text.len());
        let (authority, behind) = text.split_at(end);
        let (userinfo, host_port) = match memrchr(b'@', authority.as_bytes()) {
            Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
            None => (None, authority),
        };
        if let Some(userinfo) = userinfo {
            check_userinfo(userinfo)?;
        }
        let (host, port) = split_port(host_port)?;
        let port = match port {
            "" => None,
            digits => Some(parse_port(digits).ok_or(UrlError::Port)?),
        };
        let (host, ip) = parse_host(host)?;
        Ok(Self {
            userinfo,
            host,
            ip,
            port,
            behind,
        })
    }
}

impl fmt::Display for Url<'_> {
    /// Without user information.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [slash, target] = self.target_parts();
        f.write_str(&self.origin())?;
        f.write_str(slash)?;
        f.write_str(target)
    }
}

impl fmt::Debug for Url<'_> {
    /// Without user information.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

/// The scheme, and the text after `://`.
#[inline]
fn split_scheme(text: &str) -> Result<(Scheme, &str), UrlError> {
    for &scheme in Scheme::SUPPORTED {
        let name = scheme.as_str();
        // Compares bytes, since the text may have no character boundary at this offset.
        if let Some((start, rest)) = text.as_bytes().split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name.as_bytes())
            && rest.starts_with(b"://")
        {
            return Ok((scheme, &text[name.len() + 3..]));
        }
    }
    Err(scheme_error(text))
}

#[cold]
fn scheme_error(text: &str) -> UrlError {
    let Some((name, rest)) = text.split_once(':') else {
        return UrlError::NoScheme;
    };
    let is_scheme = is_scheme(name) && name.len() <= 32;
    // `localhost:8080` and `example.com:x` lack a scheme.
    if !is_scheme || rest.starts_with(|c: char| c.is_ascii_digit()) || name.contains('.') {
        return UrlError::NoScheme;
    }
    match name.to_ascii_lowercase() {
        name if name == "http" || (name == "https" && cfg!(feature = "tls")) => UrlError::NoHost,
        name => UrlError::Scheme(name.into()),
    }
}

/// Whether this is the name of a scheme (RFC 3986 §3.1).
pub(super) fn is_scheme(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(is_of_scheme)
}

fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// The name of any scheme, and the text after `://`; `None` if the text has no scheme.
pub(crate) fn split_any_scheme(text: &str) -> Option<(&str, &str)> {
    let parts = text.split_once("://");
    parts.filter(|(name, _)| name.bytes().all(is_of_scheme))
}

#[inline]
fn check_userinfo(userinfo: &str) -> Result<(), UrlError> {
    let is_bad = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'@' | b'\\');
    match userinfo.bytes().any(is_bad) {
        true => Err(UrlError::UserInfo),
        false => Ok(()),
    }
}

/// Splits `host:port`. The port is empty if there is none.
#[inline]
pub(super) fn split_port(text: &str) -> Result<(&str, &str), UrlError> {
    if text.starts_with('[') {
        let end = memchr(b']', text.as_bytes()).ok_or(UrlError::Ipv6)? + 1;
        return match text.as_bytes().get(end) {
            None => Ok((text, "")),
            Some(b':') => Ok((&text[..end], &text[end + 1..])),
            Some(_) => Err(UrlError::Ipv6),
        };
    }
    Ok(match memchr(b':', text.as_bytes()) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    })
}

/// Parses digits only: the standard library would accept a sign.
pub(crate) fn parse_port(digits: &str) -> Option<u16> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&port| is_number && port != 0)
}

#[inline]
fn parse_host(text: &str) -> Result<(Cow<'_, str>, Option<IpAddr>), UrlError> {
    if text.is_empty() {
        return Err(UrlError::NoHost);
    }
    if let Some(inner) = text.strip_prefix('[') {
        let ip = parse_ipv6(inner.trim_end_matches(']'))?;
        return Ok((text.into(), Some(ip.into())));
    }
    if !text.is_ascii() {
        return parse_unicode_host(text);
    }
    Ok((text.into(), check_name(text)?))
}

fn parse_ipv6(text: &str) -> Result<Ipv6Addr, UrlError> {
    if text.contains('%') {
        return Err(UrlError::ZoneId);
    }
    text.parse().map_err(|_| UrlError::Ipv6)
}

#[cold]
fn parse_unicode_host(text: &str) -> Result<(Cow<'_, str>, Option<IpAddr>), UrlError> {
    if text.contains('%') {
        return Err(UrlError::HostByte(b'%'));
    }
    let name = to_ascii(text)?;
    match check_name(&name)? {
        None => Ok((name.into(), None)),
        // Digits in another script.
        Some(_) => Err(UrlError::HostNumber),
    }
}

/// A host name in ASCII and lower case (RFC 5891, UTS 46). Names in ASCII with an invalid `xn--` label are errors, too.
#[cfg(feature = "idna")]
pub(super) fn to_ascii(name: &str) -> Result<String, UrlError> {
    idna::domain_to_ascii(name).map_err(|_| UrlError::Idna)
}

#[cfg(not(feature = "idna"))]
pub(super) fn to_ascii(name: &str) -> Result<String, UrlError> {
    match name.is_ascii() {
        true => Ok(name.to_ascii_lowercase()),
        false => Err(UrlError::Idna),
    }
}

/// Checks a host name in ASCII, and parses it if it is an IPv4 address.
#[inline]
fn check_name(name: &str) -> Result<Option<IpAddr>, UrlError> {
    // A dot at the end stands for the root.
    let labels = name.strip_suffix('.').unwrap_or(name);
    let (mut label, mut last) = (0, 0);
    for (at, byte) in labels.bytes().enumerate() {
        match byte {
            b'.' if label == 0 => return Err(UrlError::HostName),
            b'.' => (label, last) = (0, at + 1),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => label += 1,
            _ => return Err(UrlError::HostByte(byte)),
        }
        if label > 63 {
            return Err(UrlError::HostName);
        }
    }
    if label == 0 || labels.len() > 253 {
        return Err(UrlError::HostName);
    }
    if is_number(&labels.as_bytes()[last..]) {
        let ip: Ipv4Addr = name.parse().map_err(|_| UrlError::HostNumber)?;
        return Ok(Some(ip.into()));
    }
    Ok(None)
}

/// Whether a label is all digits, or `0x` and hexadecimal digits or nothing (the "ends in a number" rule of WHATWG).
#[inline]
pub(super) fn is_number(label: &[u8]) -> bool {
    match label {
        [b'0', b'x' | b'X', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        [b'0'..=b'9', ..] => label.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[inline]
fn check_target(target: &str, offset: usize) -> Result<(), UrlError> {
    // Without an early exit, the compiler vectorises this loop.
    let bad = |byte: u8| !byte.is_ascii_graphic();
    if target.bytes().fold(false, |any, byte| any | bad(byte)) {
        let at = target.bytes().position(bad).unwrap_or_default();
        let byte = target.as_bytes()[at];
        return Err(UrlError::TargetByte {
            at: offset + at,
            byte,
        });
    }
    Ok(())
}

fn push_port(port: u16, out: &mut Vec<u8>) {
    out.push(b':');
    out.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `scheme userinfo host port target`, or the error.
    fn shown(text: &str) -> Result<String, UrlError> {
        let url = Url::parse(text)?;
        let (scheme, host, port) = (url.scheme(), url.host(), url.port());
        let user = url.userinfo().unwrap_or("-");
        let target = url.target_parts().concat();
        Ok(format!("{scheme} {user} {host} {port} {target}"))
    }

    #[test]
    fn valid_urls_are_split() {
        for (text, expected) in [
            ("http://h", "http - h 80 /"),
            ("https://h", "https - h 443 /"),
            ("http://h:", "http - h 80 /"),
            ("http://h:00081/", "http - h 81 /"),
            ("http://h:65535/", "http - h 65535 /"),
            ("http://h#f", "http - h 80 /"),
            ("http://h?q#f?g", "http - h 80 /?q"),
            ("http://h/#\r\n", "http - h 80 /"),
            (
                "http://h/a/../b;x=%2f//c?d=/?e",
                "http - h 80 /a/../b;x=%2f//c?d=/?e",
            ),
            ("http://h/a@b:c", "http - h 80 /a@b:c"),
            ("http://h/\\|{}^`\"<>", "http - h 80 /\\|{}^`\"<>"),
            ("http://u@h/", "http u h 80 /"),
            ("http://u:p:q@h:1/", "http u:p:q h 1 /"),
            ("http://:p@h/", "http :p h 80 /"),
            ("http://@h/", "http  h 80 /"),
            ("http://u%40x:p%2F@h/", "http u%40x:p%2F h 80 /"),
            ("http://Ex-A_m.ple~.COM./", "http - Ex-A_m.ple~.COM. 80 /"),
            ("http://127.0.0.1:8080/x", "http - 127.0.0.1 8080 /x"),
            ("http://1.2.3.4.example", "http - 1.2.3.4.example 80 /"),
            ("http://0xg/", "http - 0xg 80 /"),
            ("http://[::1]:81/", "http - [::1] 81 /"),
            ("http://[DB8::1.2.3.4]", "http - [DB8::1.2.3.4] 80 /"),
            ("http://bücher.x/", "http - xn--bcher-kva.x 80 /"),
            (
                "http://例え.テスト:99",
                "http - xn--r8jz45g.xn--zckzah 99 /",
            ),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_urls_are_refused() {
        use UrlError::*;
        let long_label = format!("http://{}.x/", "a".repeat(64));
        let long_name = format!("http://{}x/", "abcdefg.".repeat(32));
        for (text, expected) in [
            ("", NoScheme),
            ("/path", NoScheme),
            ("localhost:8080/", NoScheme),
            (" http://h/", NoScheme),
            ("1http://h/", NoScheme),
            ("%%:\u{e4}x", NoScheme),
            ("ftp://h/", Scheme("ftp".into())),
            ("JavaScript:alert(1)", Scheme("javascript".into())),
            ("http:h", NoHost),
            ("http://", NoHost),
            ("http://:80/", NoHost),
            ("http://u:p@ss@h/", UserInfo),
            ("http://u\\@h/", UserInfo),
            ("http://ü@h/", UserInfo),
            ("http://a b/", HostByte(b' ')),
            ("http://a%41/", HostByte(b'%')),
            ("http://ä%41/", HostByte(b'%')),
            ("http://a\\b/", HostByte(b'\\')),
            ("http://a\0/", HostByte(0)),
            ("http://a\r\nb/", HostByte(b'\r')),
            ("http://*/", HostByte(b'*')),
            ("http://./", HostName),
            ("http://.a/", HostName),
            ("http://a..b/", HostName),
            ("http://a../", HostName),
            (&long_label, HostName),
            (&long_name, HostName),
            ("http://127.1/", HostNumber),
            ("http://0x7f.1/", HostNumber),
            ("http://0x7f.0.0.0x1/", HostNumber),
            ("http://0x7F000001/", HostNumber),
            ("http://017700000001/", HostNumber),
            ("http://127.0.0.01/", HostNumber),
            ("http://127.0.0.1./", HostNumber),
            ("http://127.0.0.256/", HostNumber),
            ("http://1.2.3.4.5/", HostNumber),
            ("http://１２７.0.0.1/", HostNumber),
            ("http://[::1/", Ipv6),
            ("http://[]/", Ipv6),
            ("http://[::1]x/", Ipv6),
            ("http://[1.2.3.4]/", Ipv6),
            ("http://[v1.a]/", Ipv6),
            ("http://[fe80::1%25eth0]/", ZoneId),
            ("http://[fe80::1%eth0]/", ZoneId),
            ("http://::1/", Port),
            ("http://h:0/", Port),
            ("http://h:65536/", Port),
            ("http://h:99999999999999999999/", Port),
            ("http://h:+80/", Port),
            ("http://h:80:81/", Port),
            ("http://u:pa/ss@h/", Port),
            ("http://xn--\u{e4}/", Idna),
            ("http://h/a b", TargetByte { at: 10, byte: b' ' }),
            ("http://h/\r\n", TargetByte { at: 9, byte: b'\r' }),
            ("http://h?\0", TargetByte { at: 9, byte: 0 }),
            ("http://h/ä", TargetByte { at: 9, byte: 0xc3 }),
            ("http://h/\x7f#f", TargetByte { at: 9, byte: 0x7f }),
        ] {
            assert_eq!(shown(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn origins() {
        let same = |one: &str, two: &str| {
            let (one, two) = (Url::parse(one).unwrap(), Url::parse(two).unwrap());
            assert_eq!(one.same_origin(&two), two.same_origin(&one));
            assert_eq!(one.same_origin(&two), one.origin() == two.origin());
            one.same_origin(&two)
        };
        assert!(same("http://h/a", "HTTP://u:p@H:80?x"));
        assert!(same("https://h:443", "https://h"));
        assert!(same("http://[::1]/", "http://[0:0::1]/"));
        assert!(same(
            "http://Bücher.example",
            "http://xn--bcher-kva.example"
        ));
        for other in ["https://h:80", "http://h:81", "http://g", "http://h."] {
            assert!(!same("http://h:80", other), "{other}");
        }
        assert!(!same("http://[::ffff:127.0.0.1]", "http://127.0.0.1"));
        fn text(push: impl Fn(&Url<'_>, &mut Vec<u8>), url: &str) -> String {
            let mut out = Vec::new();
            push(&Url::parse(url).unwrap(), &mut out);
            String::from_utf8(out).unwrap()
        }
        for (url, expected) in [
            ("https://u:p@EXAMPLE.com:443/", "example.com"),
            ("http://h:443", "h:443"),
        ] {
            assert_eq!(text(|u, out| u.push_authority(out), url), expected);
        }
        for (url, expected) in [("https://h", "h:443"), ("http://[0::1]", "[::1]:80")] {
            assert_eq!(text(|u, out| u.push_host_port(out), url), expected);
        }
        assert_eq!(text(|u, out| u.push_target(out), "http://h?x"), "/?x");
    }

    #[test]
    fn display_shows_no_password() {
        let url = Url::parse("http://user:secret@h/x?y").unwrap();
        assert_eq!(format!("{url} {url:?}"), "http://h/x?y Url(http://h/x?y)");
    }

    proptest! {
        #[test]
        fn accepted_urls_agree_with_the_url_crate(text in "(https?://)?[a-c.0x@:/?#\\[\\]\\\\%ä -]{0,24}") {
            let Ok(url) = Url::parse(&text) else { return Ok(()) };
            // The URL crate reads an accepted URL the same way, except for its normalisation of the path.
            let other = url::Url::parse(&text).unwrap();
            prop_assert_eq!(other.scheme(), url.scheme().as_str());
            prop_assert_eq!(other.host_str().unwrap(), url.host().to_ascii_lowercase());
            prop_assert_eq!(other.port_or_known_default(), Some(url.port()));
            let target = url.target_parts().concat();
            prop_assert!(target.starts_with('/'));
            prop_assert_eq!(other.query(), target.split_once('?').map(|(_, query)| query));
        }
    }
}
