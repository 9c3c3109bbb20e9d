//! Which responses redirect, and the URL that a redirect leads to: the parser of the WHATWG URL standard, for `http` and
//! `https`.
//!
//! Servers test their redirects with browsers, so a reference is read as browsers read it. [`Url::parse`] is strict, and
//! it checks the result: this file decides only what a tolerated spelling means. Port 0, names with an empty label or
//! with signs that no name has are refused, although the standard takes them. The tests compare it with the `url`
//! crate.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Url;
use super::auth::percent_decoded;
use super::url::{Scheme, is_number, is_scheme, parse_port, split_port, to_ascii};
use crate::error::UrlError;

/// Whether a response with this status redirects to its [`location`](super::Response::location). 300 leaves the choice
/// to the user, 304 is about a cached response, 305 and 306 are withdrawn (RFC 9110 §15.4).
///
/// ```
/// use courser::proto::is_redirect;
///
/// assert!(is_redirect(308) && !is_redirect(304));
/// ```
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Resolves `reference`, the value of `Location` in a response from `base` (RFC 9110 §10.2.2, RFC 3986 §5), as browsers
/// do: blanks and bytes outside ASCII are percent-encoded, `\` is read as `/`. The fragment is that of the reference, or
/// else that of `base`. A relative reference keeps the user information of `base`.
///
/// ```
/// use courser::proto::{UrlError, resolve};
///
/// assert_eq!(resolve("http://h/a/b?c", b"../d e#f")?, "http://h/d%20e#f");
/// assert_eq!(resolve("http://h/", b"ftp://h/"), Err(UrlError::Scheme("ftp".into())));
/// # Ok::<(), UrlError>(())
/// ```
///
/// # Errors
/// The result is not a valid http or https URL.
pub fn resolve(base: &str, reference: &[u8]) -> Result<String, UrlError> {
    let text = cleaned(reference);
    let (text, fragment) = split(&text, '#');
    let fragment = fragment.or(split(base, '#').1);
    let base = Url::parse(base)?;
    // `http:x` is relative to an http URL.
    let (scheme, rest) = split_scheme(text)?.unwrap_or((base.scheme(), text));
    // Any number of slashes comes before a host.
    let behind_slashes = rest.trim_start_matches(is_slash);
    let slashes = rest.len() - behind_slashes.len();
    let has_host = slashes > 1 || scheme != base.scheme();

    let mut url = String::with_capacity(text.len() + 64);
    url.push_str(scheme.as_str());
    url.push_str("://");
    let rest = if has_host {
        let end = behind_slashes.find(|char| is_slash(char) || char == '?');
        let (authority, rest) = behind_slashes.split_at(end.unwrap_or(behind_slashes.len()));
        let (userinfo, host_port) = authority.rsplit_once('@').unwrap_or(("", authority));
        push_userinfo(&mut url, userinfo);
        push_host_port(&mut url, scheme, host_port)?;
        rest
    } else {
        push_userinfo(&mut url, base.userinfo().unwrap_or_default());
        let mut authority = Vec::new();
        base.push_authority(&mut authority);
        push_encoded(&mut url, &authority, |_| false);
        rest
    };

    // The path begins behind this byte.
    let root = url.len();
    let (path, mut query) = split(rest, '?');
    let target = base.target_parts().concat();
    if !has_host && slashes == 0 {
        let (base_path, base_query) = split(&target, '?');
        push_path(&mut url, root, base_path);
        match path {
            "" => query = query.or(base_query),
            _ => pop(&mut url, root),
        }
    }
    if has_host || !path.is_empty() {
        push_path(&mut url, root, path);
    }
    for (sign, part, set) in [('?', query, IN_QUERY), ('#', fragment, IN_FRAGMENT)] {
        if let Some(part) = part {
            url.push(sign);
            push_encoded(&mut url, part.as_bytes(), outside(set));
        }
    }
    Url::parse(&url)?;
    Ok(url)
}

/// Reads a URL as people type it, and as browsers do: blanks at both ends are dropped, `http://` is added where no scheme
/// is, and the rest is read as [`resolve`] reads a reference.
///
/// ```
/// use courser::proto::from_typed;
///
/// assert_eq!(from_typed(" Example.com:8080/a b ")?, "http://example.com:8080/a%20b");
/// assert_eq!(from_typed("https://example.com")?, "https://example.com/");
/// # Ok::<(), courser::proto::UrlError>(())
/// ```
///
/// # Errors
/// The result is not a valid http or https URL.
pub fn from_typed(text: &str) -> Result<String, UrlError> {
    let text = text.trim();
    let (scheme, rest) = match text.split_once(':') {
        Some((name, rest)) if name.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
        Some((name, rest)) if name.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
        // A port would not begin so.
        Some((name, rest)) if rest.starts_with("//") && !name.contains(['/', '?', '#']) => {
            split_scheme(text)?;
            return Err(UrlError::NoScheme);
        }
        _ if text.starts_with(is_slash) => return Err(UrlError::NoHost),
        _ => (Scheme::Http, text),
    };
    let rest = rest.trim_start_matches(is_slash);
    let url = format!("{}://{rest}", scheme.as_str());
    // Absolute, so that nothing of the base is left.
    resolve("http://base.invalid/", url.as_bytes())
}

/// The text without the bytes that the standard drops: controls and blanks at both ends, and each tab or line end. If
/// the text is not UTF-8, each byte outside ASCII is percent-encoded.
fn cleaned(reference: &[u8]) -> String {
    let mut text = match std::str::from_utf8(reference) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let mut text = String::with_capacity(reference.len() + 16);
            push_encoded(&mut text, reference, |byte| !byte.is_ascii());
            text
        }
    };
    text.retain(|char| !matches!(char, '\t' | '\n' | '\r'));
    text.trim_matches(|char| char <= ' ').to_owned()
}

/// The scheme of an absolute reference, and the text after its colon.
fn split_scheme(text: &str) -> Result<Option<(Scheme, &str)>, UrlError> {
    let Some((name, rest)) = text.split_once(':') else {
        return Ok(None);
    };
    if !is_scheme(name) {
        return Ok(None);
    }
    match &*name.to_ascii_lowercase() {
        "http" => Ok(Some((Scheme::Http, rest))),
        "https" => Ok(Some((Scheme::Https, rest))),
        other => Err(UrlError::Scheme(other.into())),
    }
}

fn push_userinfo(out: &mut String, userinfo: &str) {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    if user.is_empty() && password.is_empty() {
        return;
    }
    push_encoded(out, user.as_bytes(), outside(IN_USERINFO));
    if !password.is_empty() {
        out.push(':');
        push_encoded(out, password.as_bytes(), outside(IN_USERINFO));
    }
    out.push('@');
}

fn push_host_port(out: &mut String, scheme: Scheme, host_port: &str) -> Result<(), UrlError> {
    let (host, port) = split_port(host_port)?;
    match host.strip_prefix('[') {
        Some(ip) => {
            let ip = ip.trim_end_matches(']').parse::<Ipv6Addr>();
            out.push_str(&format!("[{}]", ip.map_err(|_| UrlError::Ipv6)?));
        }
        None => out.push_str(&name_or_ipv4(host)?),
    }
    if !port.is_empty() {
        let port = parse_port(port).ok_or(UrlError::Port)?;
        if port != scheme.default_port() {
            out.push_str(&format!(":{port}"));
        }
    }
    Ok(())
}

fn name_or_ipv4(host: &str) -> Result<String, UrlError> {
    let decoded = String::from_utf8(percent_decoded(host).collect());
    let name = to_ascii(&decoded.map_err(|_| UrlError::Idna)?)?;
    // What was decoded or mapped may be a byte at which the URL would be split, such as `:` and `/`.
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_~.".contains(byte);
    if let Some(byte) = name.bytes().find(|byte| !is_of_name(byte)) {
        return Err(UrlError::HostByte(byte));
    }
    let labels = name.strip_suffix('.').unwrap_or(&name);
    let last = labels.rsplit('.').next().unwrap_or_default();
    if !is_number(last.as_bytes()) {
        return Ok(name);
    }
    let ip = ipv4(labels).ok_or(UrlError::HostNumber)?;
    Ok(ip.to_string())
}

/// An IPv4 address of one to four numbers, which may be octal or hexadecimal. The last number fills all bytes that are
/// left.
fn ipv4(labels: &str) -> Option<Ipv4Addr> {
    let numbers = labels.split('.').map(|label| {
        let (digits, radix) = match label.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&label[2..], 16),
            [b'0', _, ..] => (&label[1..], 8),
            [] => return None,
            _ => (label, 10),
        };
        match digits {
            "" => Some(0),
            digits if digits.starts_with('+') => None,
            digits => u32::from_str_radix(digits, radix).ok(),
        }
    });
    let numbers = numbers.collect::<Option<Vec<u32>>>()?;
    let (&last, first) = numbers.split_last()?;
    let bytes_left = 4u32.checked_sub(first.len() as u32).filter(|&n| n > 0)?;
    if u64::from(last) >= 1 << (8 * bytes_left) || first.iter().any(|&number| number > 255) {
        return None;
    }
    let first = first
        .iter()
        .zip([24, 16, 8])
        .map(|(number, shift)| number << shift);
    Some(Ipv4Addr::from(first.sum::<u32>() + last))
}

/// Appends the segments of a path, without its dot segments (RFC 3986 §5.2.4). The path begins behind the byte `root` of
/// `out`.
fn push_path(out: &mut String, root: usize, path: &str) {
    let path = path.strip_prefix(is_slash).unwrap_or(path);
    let mut segments = path.split(is_slash).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        let goes_up = percent_decoded(segment).eq(*b"..");
        if !goes_up && !percent_decoded(segment).eq(*b".") {
            out.push('/');
            push_encoded(out, segment.as_bytes(), outside(IN_PATH));
            continue;
        }
        if goes_up {
            pop(out, root);
        }
        if is_last {
            out.push('/');
        }
    }
}

/// Removes the last segment of the path.
fn pop(out: &mut String, root: usize) {
    if let Some(slash) = out[root..].rfind('/') {
        out.truncate(root + slash);
    }
}

/// The text before this sign, and the text behind it, if there is one.
fn split(text: &str, sign: char) -> (&str, Option<&str>) {
    match text.split_once(sign) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

fn is_slash(char: char) -> bool {
    matches!(char, '/' | '\\')
}

/// Appends the bytes, those of a set percent-encoded. All bytes outside ASCII must be in the set.
fn push_encoded(out: &mut String, bytes: &[u8], is_in_set: impl Fn(u8) -> bool) {
    for &byte in bytes {
        match is_in_set(byte) {
            true => out.push_str(&format!("%{byte:02X}")),
            false => out.push(char::from(byte)),
        }
    }
}

/// All but printable signs of ASCII, and these signs.
fn outside(signs: &[u8]) -> impl Fn(u8) -> bool {
    move |byte| !byte.is_ascii_graphic() || signs.contains(&byte)
}

/// The percent-encode sets of the standard for URLs with a special scheme.
const IN_QUERY: &[u8] = b"\"#<>'";
const IN_FRAGMENT: &[u8] = b"\"<>`";
const IN_PATH: &[u8] = b"\"#<>?`{}";
const IN_USERINFO: &[u8] = b"\"#<>?`{}/:;=@[\\]^|";

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_as_people_type_them() {
        for (typed, url) in [
            ("a.example", Ok("http://a.example/")),
            (" A.g:81/x y?q#f ", Ok("http://a.g:81/x%20y?q#f")),
            ("HTTPS://u:p@a.example", Ok("https://u:p@a.example/")),
            ("[::1]:8080", Ok("http://[::1]:8080/")),
            ("a.g/?to=http://b/", Ok("http://a.g/?to=http://b/")),
            ("ftp://h", Err(UrlError::Scheme("ftp".into()))),
            ("mailto:me@a.example", Ok("http://mailto:me@a.example/")),
            ("http:/a.example/x", Ok("http://a.example/x")),
            ("https:\\\\a.example\\x", Ok("https://a.example/x")),
            ("\u{feff}http://a.example", Err(UrlError::NoScheme)),
            ("x@http://a.example", Err(UrlError::NoScheme)),
            ("://a.example", Err(UrlError::NoScheme)),
            ("/etc/passwd", Err(UrlError::NoHost)),
            ("", Err(UrlError::NoHost)),
        ] {
            assert_eq!(from_typed(typed), url.map(str::to_owned), "{typed}");
        }
    }

    /// What leads somewhere is compared with the `url` crate below, but for bytes that are no UTF-8.
    #[test]
    fn locations_that_lead_nowhere_are_told_apart() {
        let base = "http://u:p@h:81/a/b?c";
        assert_eq!(
            resolve(base, b"/\xe4?\xff").as_deref(),
            Ok("http://u:p@h:81/%E4?%FF")
        );
        for (location, error) in [
            ("ftp://h/", UrlError::Scheme("ftp".into())),
            ("file:///etc/passwd", UrlError::Scheme("file".into())),
            ("http://", UrlError::NoHost),
            ("http://a b/", UrlError::HostByte(b' ')),
            ("http://[::1", UrlError::Ipv6),
            ("http://h%3A8080%2F.g/", UrlError::HostByte(b':')),
            ("http://x%40h/", UrlError::HostByte(b'@')),
            ("http://h%23.g/", UrlError::HostByte(b'#')),
            // Stricter than the standard, as its tests (`urltestdata.json`) show: these six of them are no URLs here.
            ("http://f:0/c", UrlError::Port),
            ("http://f:00000000000000/c", UrlError::Port),
            ("http://./", UrlError::HostName),
            ("http://../", UrlError::HostName),
            ("http://foo.09..", UrlError::HostName),
            ("http://!\"$&'()*+,-.;=_`{}~/", UrlError::HostByte(b'!')),
        ] {
            assert_eq!(resolve(base, location.as_bytes()), Err(error), "{location}");
        }
    }

    /// Signs that the mapping of names turns into others, at which a URL is split.
    #[test]
    #[cfg(feature = "idna")]
    fn no_host_is_split_by_its_mapping() {
        for sign in ['＠', '／', '：', '＃', '？', '℀'] {
            let location = format!("http://h{sign}80.g/");
            let resolved = resolve("http://b/", location.as_bytes());
            assert!(resolved.is_err(), "{location} {resolved:?}");
        }
    }

    #[test]
    fn fragments_are_inherited() {
        let base = "http://h/a?b#c";
        for (location, expected) in [
            ("/x", "http://h/x#c"),
            ("/x#d", "http://h/x#d"),
            ("#", "http://h/a?b#"),
            ("/x?y#d e/?#<ä", "http://h/x?y#d%20e/?#%3C%C3%A4"),
        ] {
            let resolved = resolve(base, location.as_bytes());
            assert_eq!(resolved.as_deref(), Ok(expected), "{location}");
        }
        let bare = resolve("http://h/", b"x");
        assert_eq!(bare.as_deref(), Ok("http://h/x"));
    }

    /// The result of the `url` crate, by the same strict rules for the host.
    fn by_url_crate(base: &str, reference: &str) -> Option<String> {
        let mut url = url::Url::parse(base).ok()?.join(reference).ok()?;
        url.set_fragment(None);
        let url = String::from(url);
        Url::parse(&url).ok()?;
        Some(url)
    }

    /// Pieces that mean something in URLs, and others.
    fn reference() -> impl Strategy<Value = String> {
        const PIECES: &str = r#"/ \ ? # : @ . .. %2e %2E. % %41 %3A %2F %40 ／ %zz http: https: HTTP:// ftp: // a B 0 80
            443 0x7f 0377 256 1.2 [ ] [::1] [::ffff:1.2.3.4] ä ß ｅ xn-- xn--bcher-kva " ' < ^ ` { | ;
            = - _ ~ + & * 。"#;
        const SIGNS: [&str; 6] = [" ", "\t", "\n", "\u{1}", "\u{7f}", "\u{ad}"];
        let pieces: Vec<&str> = PIECES.split_whitespace().chain(SIGNS).collect();
        let piece = prop_oneof![4 => proptest::sample::select(pieces).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
        proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn agrees_with_the_url_crate(
            base in proptest::sample::select(&["http://h/a/b?c", "https://u:p@h:81/a/../%2e/b/c#d", "http://[::1]:80", "https://H?x/y"][..]),
            reference in reference(),
        ) {
            let ours = resolve(base, reference.as_bytes()).ok();
            let ours = ours.map(|url| split(&url, '#').0.to_owned());
            // Browsers ignore a third slash before the host; the crate does not.
            prop_assume!(!cleaned(reference.as_bytes()).replace('\\', "/").starts_with("///"));
            let theirs = by_url_crate(base, &reference);
            // The crate writes mapped IPv4 addresses in hexadecimal.
            match (ours.as_deref().map(Url::parse), theirs.as_deref().map(Url::parse)) {
                (Some(Ok(one)), Some(Ok(two))) if matches!(one.ip(), Some(IpAddr::V6(_))) => {
                    prop_assert!(one.same_origin(&two), "{one} {two}");
                    prop_assert_eq!(one.userinfo(), two.userinfo());
                    prop_assert_eq!(one.target_parts(), two.target_parts());
                }
                _ => prop_assert_eq!(ours, theirs),
            }
        }
    }
}
