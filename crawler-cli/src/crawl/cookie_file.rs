//! Cookie files in Netscape's format, as curl reads and writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser::{Cookie, CookieJar};

/// Adds the cookies of a cookie file to `jar` and returns how many were added. Malformed lines and expired cookies are
/// skipped.
pub(crate) fn load(jar: &CookieJar, text: &[u8]) -> usize {
    let cookies = text.split(|&byte| byte == b'\n').filter_map(parse_line);
    cookies.filter(|cookie| jar.insert(cookie)).count()
}

/// The cookies of a jar as the text of a cookie file, the oldest cookie first.
pub(crate) fn saved(jar: &CookieJar) -> String {
    let mut out = String::from("# Netscape HTTP Cookie File\n\n");
    for cookie in jar.cookies() {
        push_line(&cookie, &mut out);
    }
    out
}

/// Parses one line of a cookie file. Its fields, separated by tabs: domain, whether subdomains match, path, whether
/// secure, expiry in Unix seconds (0: a session cookie), name, value.
fn parse_line(line: &[u8]) -> Option<Cookie> {
    let line = std::str::from_utf8(line).ok()?.trim_end_matches('\r');
    let (line, http_only) = match line.strip_prefix("#HttpOnly_") {
        Some(line) => (line, true),
        None => (line, false),
    };
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (domain, subdomains, path) = (next()?, next()?, next()?);
    let (secure, expiry, name) = (next()?, next()?, next()?);
    // curl omits an empty value together with its tab.
    let value = next().unwrap_or("");
    if next().is_some() {
        return None;
    }
    Some(Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: domain.strip_prefix('.').unwrap_or(domain).to_owned(),
        subdomains: subdomains == "TRUE",
        path: path.to_owned(),
        secure: secure == "TRUE",
        http_only,
        expires: match expiry.parse().ok()? {
            0 => None,
            seconds => Some(UNIX_EPOCH + Duration::from_secs(LAST_SECOND.min(seconds))),
        },
    })
}

fn push_line(cookie: &Cookie, out: &mut String) {
    // A tab in the path would end its field. Names and values contain no tabs.
    if cookie.path.contains('\t') {
        return;
    }
    let http_only = if cookie.http_only { "#HttpOnly_" } else { "" };
    let dot = if cookie.subdomains { "." } else { "" };
    let or = |yes| if yes { "TRUE" } else { "FALSE" };
    out.extend([
        http_only,
        dot,
        &cookie.domain,
        "\t",
        or(cookie.subdomains),
        "\t",
        &cookie.path,
        "\t",
        or(cookie.secure),
        "\t",
        &expiry(cookie.expires).to_string(),
        "\t",
        &cookie.name,
        "\t",
        &cookie.value,
        "\n",
    ]);
}

fn expiry(expires: Option<SystemTime>) -> u64 {
    let since = expires.and_then(|expires| expires.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_secs())
}

/// The last second of the year 9999: later expiries are cut to this one.
const LAST_SECOND: u64 = 253_402_300_799;
