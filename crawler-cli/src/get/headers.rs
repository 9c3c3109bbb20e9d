//! `-H` and `--proxy-header`: headers to send and default headers to omit.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use super::data::read_file;
use super::exit::Failure;
use super::plan::{text, usage};

/// One `-H`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum HeaderRule {
    Send(String, Vec<u8>),
    /// `Name:` omits the default header with this name.
    Remove(String),
}

/// Reads the `-H` values: each is a header, or `@file` with one header per line.
pub(super) fn read_headers(typed: &[OsString]) -> Result<Vec<HeaderRule>, Failure> {
    let mut rules = Vec::new();
    for typed in typed {
        read_header(typed, &mut rules)?;
    }
    Ok(rules)
}

fn read_header(typed: &OsStr, rules: &mut Vec<HeaderRule>) -> Result<(), Failure> {
    let Some(file) = typed.as_bytes().strip_prefix(b"@") else {
        rules.push(header_rule(typed.as_bytes())?);
        return Ok(());
    };
    for line in read_file(OsStr::from_bytes(file))?.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            rules.push(header_rule(line)?);
        }
    }
    Ok(())
}

/// The headers for a proxy: all of `--proxy-header`, and a `Proxy-Authorization` of `-H`, which is never sent to a
/// server.
pub(super) fn for_proxy(headers: &[HeaderRule], own: Vec<HeaderRule>) -> Vec<(String, Vec<u8>)> {
    let sent = |rule| match rule {
        HeaderRule::Send(name, value) => Some((name, value)),
        // Requests to proxies have no default headers that a rule could omit.
        HeaderRule::Remove(_) => None,
    };
    let is_secret = |(name, _): &(String, Vec<u8>)| name.eq_ignore_ascii_case(PROXY_AUTHORIZATION);
    let mut own: Vec<_> = own.into_iter().filter_map(sent).collect();
    if !own.iter().any(is_secret) {
        let given = headers.iter().cloned().filter_map(sent);
        own.extend(given.filter(is_secret).take(1));
    }
    own
}

fn header_rule(line: &[u8]) -> Result<HeaderRule, Failure> {
    let name = |bytes: &[u8]| text(OsStr::from_bytes(bytes).to_owned(), "header name");
    if let Some(colon) = line.iter().position(|b| *b == b':') {
        let value = line[colon + 1..].trim_ascii();
        let name = name(&line[..colon])?;
        return match value {
            // As in curl: only `Host:` without any space removes that header.
            [] if name.eq_ignore_ascii_case("Host") && colon + 1 < line.len() => {
                Ok(HeaderRule::Send(name, Vec::new()))
            }
            [] => Ok(HeaderRule::Remove(name)),
            value => Ok(HeaderRule::Send(name, value.to_vec())),
        };
    }
    match line.trim_ascii_end() {
        [empty @ .., b';'] => Ok(HeaderRule::Send(name(empty)?, Vec::new())),
        // The message does not repeat the line: it may be a secret whose header name was forgotten.
        _ => Err(usage("a header needs a colon after its name")),
    }
}

const PROXY_AUTHORIZATION: &str = "Proxy-Authorization";
