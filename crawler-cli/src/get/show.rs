//! `-v`: connections and heads on stderr in curl's format, without credentials.

use std::borrow::Cow;
use std::net::IpAddr;

use courser::{ObserverEvent, Response};

use super::certificate;
use super::output::say;
use crate::terminal::{Keep, neutralise_bytes};

/// Shows an event of a connection. Responses are shown later by [`response`]. `insecure` is `-k`.
pub(super) fn event(event: &ObserverEvent<'_>, insecure: bool) {
    match event {
        // The lookup of a literal address is not worth a line.
        ObserverEvent::Resolved { name, .. }
            if name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() => {}
        ObserverEvent::Resolved { name, addresses } => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            say(&format!(
                "* {name} has the addresses {}",
                addresses.join(", ")
            ));
        }
        ObserverEvent::Connecting { remote } => say(&format!("*   Trying {remote}...")),
        ObserverEvent::ConnectFailed { error } => say(&format!("* {error}")),
        ObserverEvent::Connected { remote, .. } => say(&format!("* Connected to {remote}")),
        ObserverEvent::Tunnelling { head: bytes, .. } => {
            let target = bytes.split(|b| *b == b' ').nth(1).unwrap_or_default();
            let target = String::from_utf8_lossy(target);
            say(&format!("* Establish HTTP proxy tunnel to {target}"));
            head('>', bytes);
        }
        ObserverEvent::TunnelAnswered {
            status,
            head: bytes,
            ..
        } => {
            head('<', bytes);
            let opened = (200..300).contains(status);
            let outcome = if opened { "established" } else { "failed" };
            say(&format!("* CONNECT tunnel {outcome}, response {status}"));
        }
        ObserverEvent::Ready { tls: Some(tls), .. } => {
            for line in certificate::lines(tls, insecure) {
                say(&format!("* {line}"));
            }
        }
        ObserverEvent::Sending {
            remote,
            reused,
            head: bytes,
            ..
        } => {
            if *reused {
                say(&format!("* Re-using the connection to {remote}"));
            }
            head('>', bytes);
        }
        ObserverEvent::Retrying { cause, .. } => say(&format!("* {cause}; once more")),
        _ => {}
    }
}

/// Shows the heads of a response.
pub(super) fn response(response: &Response) {
    for interim in response.interim() {
        head('<', interim.bytes());
    }
    head('<', response.head());
}

fn head(mark: char, head: &[u8]) {
    for line in head.split_inclusive(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = String::from_utf8_lossy(&neutralise_bytes(line, Keep::Nothing)).into_owned();
        say(&format!("{mark} {}", without_secret(&line)));
    }
}

/// A header line that is safe to show: credentials become `***`, their scheme stays.
fn without_secret(line: &str) -> Cow<'_, str> {
    let Some((name, value)) = line.split_once(':') else {
        return line.into();
    };
    let secret = ["authorization", "proxy-authorization"];
    if !secret.iter().any(|s| name.trim().eq_ignore_ascii_case(s)) {
        return line.into();
    }
    match value.trim().split_once(' ') {
        Some((scheme, _)) => format!("{name}: {scheme} ***").into(),
        None => format!("{name}: ***").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let cases = [
            ("GET / HTTP/1.1", "GET / HTTP/1.1"),
            ("Host: a:80", "Host: a:80"),
            ("Authorization: Basic dTpw", "Authorization: Basic ***"),
            ("AUTHORIZATION:Bearer x y", "AUTHORIZATION: Bearer ***"),
            ("Proxy-Authorization: token", "Proxy-Authorization: ***"),
            ("X-Authorization: a b", "X-Authorization: a b"),
        ];
        for (line, shown) in cases {
            assert_eq!(without_secret(line), shown);
        }
    }
}
