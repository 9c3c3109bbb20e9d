//! Parses a typed URL: where to connect, and the request target to send.
//!
//! The `url` crate parses the authority. Path and query are sent as typed, with these changes, as in curl: `/./` and
//! `/../` are resolved unless `--path-as-is` is given (encoded dots stay), a missing path becomes `/`, the fragment is
//! removed, and bytes outside ASCII are percent-encoded. Spaces and control characters are refused: a request line
//! cannot contain them.

use std::borrow::Cow;
use std::fmt::Write as _;

use courser::proto::Scheme;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode, percent_encode};
use url::{Host, Url};

use super::exit::{Exit, Failure};
use super::interface;

/// A parsed URL. Its `Debug` form shows no credentials.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Target {
    pub(super) scheme: Scheme,
    /// In lower case; an address literal in its canonical form.
    pub(super) host: Host<String>,
    pub(super) port: u16,
    /// The value of `Host`: without the port if it is the scheme's default port.
    pub(super) authority: String,
    /// Visible ASCII only; begins with `/`.
    pub(super) path_and_query: String,
    /// With its `#`; shown in messages, never sent.
    fragment: String,
    /// `user:password` from the URL, decoded.
    pub(super) user: Option<Vec<u8>>,
    /// The zone of an IPv6 address (RFC 6874): a network interface, by name or number. Never sent.
    zone: Option<String>,
}

impl Target {
    /// Parses `typed`. The default scheme is `http`.
    ///
    /// # Errors
    /// [`Exit::MalformedUrl`] or [`Exit::UnsupportedProtocol`].
    pub(super) fn parse(typed: &[u8], path_as_is: bool) -> Result<Self, Failure> {
        if let Some(byte) = typed.iter().find(|b| b.is_ascii_control() || **b == b' ') {
            return Err(malformed(format_args!(
                "byte 0x{byte:02x} has to be percent-encoded"
            )));
        }
        let parts = Parts::split(typed);
        let scheme = known_scheme(parts.scheme)?;
        let (host, port, user, zone) = parse_authority(scheme, parts.authority)?;
        let authority = if port == scheme.default_port() {
            host.to_string()
        } else {
            format!("{host}:{port}")
        };
        Ok(Self {
            scheme,
            host,
            port,
            authority,
            path_and_query: path_and_query(parts.path, parts.query, path_as_is),
            fragment: String::from_utf8_lossy(parts.fragment).into_owned(),
            user,
            zone,
        })
    }

    /// The URL to show: without credentials.
    pub(super) fn effective(&self) -> String {
        self.url() + &self.fragment
    }

    /// The URL to fetch: without credentials and fragment.
    pub(super) fn url(&self) -> String {
        let (scheme, authority) = (self.scheme, &self.authority);
        format!("{scheme}://{authority}{}", self.path_and_query)
    }

    /// Appends a file name if the path ends in `/`.
    pub(super) fn push_file_name(&mut self, name: &[u8]) {
        let path = self
            .path_and_query
            .find('?')
            .unwrap_or(self.path_and_query.len());
        if self.path_and_query[..path].ends_with('/') {
            let name = percent_encode(name, UNRESERVED).to_string();
            self.path_and_query.insert_str(path, &name);
        }
    }

    /// Adds to the query. Bytes that a request line cannot contain are percent-encoded.
    pub(super) fn push_query(&mut self, query: &[u8]) {
        if !self.path_and_query.contains('?') {
            self.path_and_query.push('?');
        } else if !self.path_and_query.ends_with(['?', '&']) {
            self.path_and_query.push('&');
        }
        self.path_and_query
            .extend(percent_encode(query, NOT_IN_QUERY));
    }

    /// Sets the fragment, given with its `#`.
    pub(super) fn set_fragment(&mut self, fragment: &[u8]) {
        self.fragment = String::from_utf8_lossy(fragment).into_owned();
    }

    /// Whether both have the same scheme, host and port.
    pub(super) fn same_origin(&self, other: &Self) -> bool {
        (self.scheme, self.port, &self.host) == (other.scheme, other.port, &other.host)
    }

    /// Takes the zone of `base`, whose redirect leads here, if both have the same address: zones are not sent, so a
    /// server cannot name it.
    pub(super) fn inherit_zone(&mut self, base: &Self) {
        if self.zone.is_none() && self.host == base.host {
            self.zone.clone_from(&base.zone);
        }
    }

    /// The number of the zone's network interface.
    ///
    /// # Errors
    /// [`Exit::NotConnected`] if there is no such interface.
    pub(super) fn zone_index(&self) -> Result<Option<u32>, Failure> {
        let Some(zone) = &self.zone else {
            return Ok(None);
        };
        let index = zone.parse().ok().or_else(|| interface::index(zone));
        let missing = || {
            let cause = format!("there is no network interface {zone:?}");
            Failure::new(Exit::NotConnected, "URL", cause)
        };
        index.ok_or_else(missing).map(Some)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.effective())
    }
}

/// Whether `typed` begins with a scheme.
pub(super) fn has_scheme(typed: &[u8]) -> bool {
    Parts::split(typed).scheme.is_some()
}

/// `typed` without its credentials: the URL in messages and in `%{url}`.
pub(super) fn without_credentials(typed: &[u8]) -> String {
    let parts = Parts::split(typed);
    // A bare `/` in a password ends the authority too early and leaves an invalid one. Then the last `@` of the whole
    // URL counts.
    let searched = match parse_authority(Scheme::Http, parts.authority) {
        Ok(_) => parts.authority,
        Err(_) => parts.after_scheme,
    };
    let Some(at) = searched.iter().rposition(|b| *b == b'@') else {
        return String::from_utf8_lossy(typed).into_owned();
    };
    let scheme = &typed[..typed.len() - parts.after_scheme.len()];
    let shown = [scheme, &parts.after_scheme[at + 1..]].concat();
    String::from_utf8_lossy(&shown).into_owned()
}

/// The parts of a URL, each as typed.
struct Parts<'a> {
    scheme: Option<&'a [u8]>,
    /// Everything after `://`.
    after_scheme: &'a [u8],
    authority: &'a [u8],
    path: &'a [u8],
    /// With its `?`.
    query: &'a [u8],
    /// With its `#`.
    fragment: &'a [u8],
}

impl<'a> Parts<'a> {
    fn split(typed: &'a [u8]) -> Self {
        // A `://` further right belongs to the path or the query.
        let authority_end = |from: &[u8]| {
            let end = from.iter().position(|b| matches!(b, b'/' | b'?' | b'#'));
            end.unwrap_or(from.len())
        };
        let first = authority_end(typed);
        let (scheme, after_scheme) = match (typed[..first].split_last(), &typed[first..]) {
            // As in curl: one to three slashes.
            (
                Some((b':', scheme)),
                [b'/', b'/', b'/', rest @ ..] | [b'/', b'/', rest @ ..] | [b'/', rest @ ..],
            ) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, typed),
        };
        let (authority, rest) = after_scheme.split_at(authority_end(after_scheme));
        let end = rest.iter().position(|b| *b == b'#').unwrap_or(rest.len());
        let (rest, fragment) = rest.split_at(end);
        let query = rest.iter().position(|b| *b == b'?').unwrap_or(rest.len());
        let (path, query) = rest.split_at(query);
        Self {
            scheme,
            after_scheme,
            authority,
            path,
            query,
            fragment,
        }
    }
}

/// RFC 3986 §3.1.
fn is_scheme(text: &[u8]) -> bool {
    let rest = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
    text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(rest)
}

fn known_scheme(typed: Option<&[u8]>) -> Result<Scheme, Failure> {
    let typed = typed.unwrap_or(b"http");
    let is = |scheme: &Scheme| typed.eq_ignore_ascii_case(scheme.as_str().as_bytes());
    let known = [Scheme::Http, Scheme::Https].into_iter().find(is);
    known.ok_or_else(|| {
        let cause = format!("protocol \"{}\" is not supported", typed.escape_ascii());
        Failure::new(Exit::UnsupportedProtocol, "URL", cause)
    })
}

/// Host, port, `user:password` and zone.
type Authority = (Host<String>, u16, Option<Vec<u8>>, Option<String>);

fn parse_authority(scheme: Scheme, authority: &[u8]) -> Result<Authority, Failure> {
    let (user, host) = match authority.iter().rposition(|b| *b == b'@') {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (&[][..], authority),
    };
    let host = std::str::from_utf8(host).map_err(|_| malformed("the host is not UTF-8"))?;
    if host.is_empty() {
        return Err(malformed("no host"));
    }
    // The URL standard treats a backslash as a slash, but a host contains neither.
    if host.contains('\\') {
        return Err(malformed("backslash in the host"));
    }
    let (host, zone) = split_zone(host);
    let url = Url::parse(&format!("{scheme}://{host}/")).map_err(malformed)?;
    let Some(host) = url.host() else {
        return Err(malformed("no host"));
    };
    let port = url.port().unwrap_or(scheme.default_port());
    Ok((host.to_owned(), port, decode_user(user), zone))
}

/// Whether a URL has user information, an empty one included.
pub(super) fn has_user(typed: &[u8]) -> bool {
    Parts::split(typed).authority.contains(&b'@')
}

/// Cuts the zone out of `[fe80::1%25eth0]:80`. The `%` need not be encoded, as in curl.
fn split_zone(host: &str) -> (Cow<'_, str>, Option<String>) {
    let literal = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let Some((address, zone)) = literal.and_then(|(literal, _)| literal.split_once('%')) else {
        return (host.into(), None);
    };
    let name = zone.strip_prefix("25").filter(|name| !name.is_empty());
    let bare = host.replacen(&format!("{address}%{zone}"), address, 1);
    (bare.into(), Some(name.unwrap_or(zone).to_owned()))
}

/// The credentials of a URL as `user:password`; `None` without any.
fn decode_user(typed: &[u8]) -> Option<Vec<u8>> {
    if typed.is_empty() {
        return None;
    }
    let colon = typed.iter().position(|b| *b == b':');
    let (user, password) = match colon {
        Some(at) => (&typed[..at], &typed[at + 1..]),
        None => (typed, &[][..]),
    };
    let mut decoded: Vec<u8> = percent_decode(user).collect();
    decoded.push(b':');
    decoded.extend(percent_decode(password));
    Some(decoded)
}

fn path_and_query(path: &[u8], query: &[u8], as_is: bool) -> String {
    let path = match path {
        [] => b"/".to_vec(),
        path if as_is => path.to_vec(),
        path => remove_dot_segments(path),
    };
    let mut target = String::with_capacity(path.len() + query.len());
    for byte in path.iter().chain(query) {
        if byte.is_ascii() {
            target.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(target, "%{byte:02X}");
        }
    }
    target
}

/// RFC 3986 §5.2.4 for a path that begins with `/`.
fn remove_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut typed = path[1..].split(|b| *b == b'/').peekable();
    while let Some(segment) = typed.next() {
        match segment {
            b"." => {}
            b".." => drop(segments.pop()),
            segment => {
                segments.push(segment);
                continue;
            }
        }
        // A dot segment at the end names a directory.
        if typed.peek().is_none() {
            segments.push(b"");
        }
    }
    let mut clean = Vec::with_capacity(path.len());
    for segment in segments {
        clean.push(b'/');
        clean.extend_from_slice(segment);
    }
    clean
}

fn malformed(cause: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::MalformedUrl, "URL", cause)
}

/// Everything but the unreserved characters (RFC 3986 §2.3) is encoded.
pub(super) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What would end a request line or a query.
const NOT_IN_QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'#');

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(typed: &str) -> Result<Target, Failure> {
        Target::parse(typed.as_bytes(), false)
    }

    #[test]
    fn path_and_query_go_out_as_typed() {
        // Each as curl 7.88 sends it, except for the case of hexadecimal digits.
        let cases = [
            ("", "/"),
            ("/", "/"),
            ("?q#f", "/?q"),
            ("#f", "/"),
            ("/a#b?c", "/a"),
            ("/a/../b/./c", "/b/c"),
            ("/a/%2e%2e/b", "/a/%2e%2e/b"),
            ("/a/..?x=/../y", "/?x=/../y"),
            ("//a//b/..", "//a//"),
            ("/a|b\"c<>'{}[]^`\\", "/a|b\"c<>'{}[]^`\\"),
            ("/..%2f", "/..%2f"),
            ("/a/..", "/"),
            ("/a/.", "/a/"),
            ("/../x", "/x"),
            ("/a/..b/...", "/a/..b/..."),
            ("/.", "/"),
            ("/a%zz%", "/a%zz%"),
            ("/ä?ö", "/%C3%A4?%C3%B6"),
            ("/a?http://b/../c?d", "/a?http://b/../c?d"),
        ];
        for (typed, sent) in cases {
            let target = parse(&format!("http://h{typed}")).unwrap();
            assert_eq!(target.path_and_query, sent, "{typed}");
        }
        let target = Target::parse(b"http://h/a/../b/./\xff?", true).unwrap();
        assert_eq!(target.path_and_query, "/a/../b/./%FF?");
    }

    #[test]
    fn authorities() {
        let cases = [
            ("127.0.0.1", "127.0.0.1", 80),
            ("HTTP://LocalHost:8080/x", "localhost:8080", 8080),
            ("localhost:80", "localhost", 80),
            ("http://127.0.0.1:/", "127.0.0.1", 80),
            ("http://127.1:81", "127.0.0.1:81", 81),
            ("http://[::1]:8080/", "[::1]:8080", 8080),
            ("[0:0::1]", "[::1]", 80),
            ("example.org/http://x", "example.org", 80),
            ("a_b.example:8/", "a_b.example:8", 8),
            ("https://h/", "h", 443),
            ("HTTPS://h:443/", "h", 443),
            ("https://h:80/", "h:80", 80),
            ("http://h:443/", "h:443", 443),
        ];
        for (typed, authority, port) in cases {
            let target = parse(typed).unwrap();
            assert_eq!(target.authority, authority, "{typed}");
            assert_eq!(target.port, port, "{typed}");
            assert_eq!(target.user, None, "{typed}");
        }
    }

    #[test]
    fn credentials_are_decoded_and_never_shown() {
        let cases: &[(&str, &[u8])] = &[
            ("http://u:p@h/", b"u:p"),
            ("u:p@h/", b"u:p"),
            ("http://a:b:c@h/", b"a:b:c"),
            ("http://a:b@c@h/", b"a:b@c"),
            ("http://:@h/", b":"),
            ("http://a@h/", b"a:"),
            ("http://a%40%3a:%c3%a4%@h/", b"a@::\xc3\xa4%"),
        ];
        for (typed, user) in cases {
            let target = parse(typed).unwrap();
            assert_eq!(target.user.as_deref(), Some(*user), "{typed}");
            assert_eq!(target.effective(), "http://h/");
            assert_eq!(format!("{target:?}"), "http://h/");
            let shown = without_credentials(typed.as_bytes());
            assert!(shown == "http://h/" || shown == "h/", "{shown}");
        }
        assert_eq!(parse("http://@h/").unwrap().user, None);
        assert_eq!(without_credentials(b"h/@?@#@"), "h/@?@#@");
        assert_eq!(without_credentials(b"ftp://u:p@h"), "ftp://h");
        assert_eq!(without_credentials(b"http://u:p/?#q@h/"), "http://h/");
        assert_eq!(without_credentials(b"u:secret@h://x"), "h://x");
    }

    #[test]
    fn zones_and_slashes() {
        for (typed, url, zone) in [
            (
                "http://[fe80::1%25lo]:8/x",
                "http://[fe80::1]:8/x",
                Some("lo"),
            ),
            ("http://u:p@[FE80::1%2]/", "http://[fe80::1]/", Some("2")),
            ("http://[::1%252]/", "http://[::1]/", Some("2")),
            ("http://[::1%25]/", "http://[::1]/", Some("25")),
            ("http:///h/x", "http://h/x", None),
            ("HTTP:/h", "http://h/", None),
            ("[::1]/a%25b", "http://[::1]/a%25b", None),
        ] {
            let target = parse(typed).unwrap();
            assert_eq!((target.url(), target.zone.as_deref()), (url.into(), zone));
        }
        assert_eq!(parse("http:////h/").unwrap_err().exit.code(), 3);
        let zone = |typed| {
            parse(typed)
                .unwrap()
                .zone_index()
                .map_err(|f| f.exit.code())
        };
        assert_eq!(zone("http://[::1%25lo]/"), Ok(interface::index("lo")));
        assert_eq!(zone("http://[::1%257]/"), Ok(Some(7)));
        assert_eq!(zone("http://[::1]/"), Ok(None));
        assert_eq!(zone("http://[::1%25no-such]/"), Err(7));
        assert!(has_user(b"http://@h") && has_user(b"u@h") && !has_user(b"h/@"));
    }

    #[test]
    fn refused() {
        let cases = [
            ("", 3),
            ("http://", 3),
            ("http:////x", 3),
            ("http:///", 3),
            ("http://:80/", 3),
            ("http://u@/", 3),
            ("/x", 3),
            ("?", 3),
            ("://x", 3),
            ("http://h/a b", 3),
            ("http://h/a\tb", 3),
            ("http://h/\r\nX: y", 3),
            ("http://h\n", 3),
            ("http://a b/", 3),
            ("http://h:99999/", 3),
            ("http://h:x/", 3),
            ("mailto:me", 3),
            ("http://[::1/", 3),
            ("http://127.0.0.256/", 3),
            ("http://h\\x", 3),
            ("ftp://h/", 1),
            ("\u{1b}x://h/", 3),
        ];
        for (typed, code) in cases {
            assert_eq!(parse(typed).unwrap_err().exit.code(), code, "{typed:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_refused_or_become_a_sendable_target(
            typed in "(http://)?[a-z@:.\\[\\]/?#%é\\\\ -]{0,20}|.*",
            as_is in proptest::bool::ANY,
        ) {
            without_credentials(typed.as_bytes());
            if let Ok(target) = Target::parse(typed.as_bytes(), as_is) {
                assert!(target.path_and_query.starts_with('/'));
                assert!(target.path_and_query.bytes().all(|b| b.is_ascii_graphic() && b != b'#'));
                assert!(target.authority.bytes().all(|b| b.is_ascii_graphic()));
                let again = Target::parse(target.effective().as_bytes(), as_is).unwrap();
                assert_eq!(again, Target { user: None, ..target });
            }
        }
    }
}
