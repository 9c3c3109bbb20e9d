//! `-w`: a text with curl's variables, printed after each transfer.

use std::time::Duration;

use super::exit::Exit;
use super::log::{CONNECT, FIRST_BYTE, NAME, Said, TLS};
use super::output::tell;

/// What is known about a transfer at its end.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) exit: Exit,
    pub(super) error: Option<String>,
    /// As typed, without user information.
    pub(super) url: String,
    /// 0 without an answer.
    pub(super) status: u16,
    pub(super) redirects: usize,
    /// Bytes of the body: as they were announced if they were decoded, and else as they were written.
    pub(super) size_download: u64,
    pub(super) said: Said,
    pub(super) total: Duration,
}

/// The format with the values in place of the variables. As in curl, an unknown variable is named on stderr.
pub(super) fn filled(format: &[u8], facts: &Facts) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some((&byte, tail)) = rest.split_first() {
        let mut escapes = ESCAPES.iter().filter(|(typed, _)| rest.starts_with(*typed));
        if let Some((_, meant)) = escapes.next() {
            out.push(*meant);
            rest = &rest[2..];
        } else if let Some(after) = rest.strip_prefix(b"%{")
            && let Some(end) = after.iter().position(|b| *b == b'}')
        {
            let name = String::from_utf8_lossy(&after[..end]);
            match value(&name, facts) {
                Some(value) => out.extend(value.into_bytes()),
                None => tell(&format!("Warning: unknown --write-out variable: '{name}'")),
            }
            rest = &after[end + 1..];
        } else {
            out.push(byte);
            rest = tail;
        }
    }
    out
}

const ESCAPES: [(&[u8; 2], u8); 4] = [
    (b"%%", b'%'),
    (b"\\n", b'\n'),
    (b"\\r", b'\r'),
    (b"\\t", b'\t'),
];

fn value(name: &str, facts: &Facts) -> Option<String> {
    let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
    let until = |step| seconds(facts.said.time(step));
    let text = match name {
        "errormsg" => facts.error.clone().unwrap_or_default(),
        "exitcode" => (facts.exit as u8).to_string(),
        "http_code" => format!("{:03}", facts.status),
        "num_connects" => facts.said.connects.to_string(),
        "num_redirects" => facts.redirects.to_string(),
        "size_download" => facts.size_download.to_string(),
        "time_appconnect" => until(TLS),
        "time_connect" => until(CONNECT),
        "time_namelookup" => until(NAME),
        "time_starttransfer" => until(FIRST_BYTE),
        "time_total" => seconds(facts.total),
        "url_effective" => match facts.said.trips.back() {
            Some(trip) => trip.url.clone(),
            None => facts.url.clone(),
        },
        _ => return None,
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_escapes_and_what_is_neither() {
        let facts = Facts {
            exit: Exit::Partial,
            status: 7,
            total: Duration::from_millis(1500),
            ..Facts::default()
        };
        for (format, expected) in [
            ("%{http_code} %{exitcode}[%{errormsg}]", "007 18[]"),
            ("%{time_total} %{time_connect}", "1.500000 0.000000"),
            ("\\n\\t\\r\\q\\\\", "\n\t\r\\q\\\\"),
            ("%% %{ %} %x a%{nothing}b%", "%  %x ab%"),
        ] {
            assert_eq!(
                filled(format.as_bytes(), &facts),
                expected.as_bytes(),
                "{format}"
            );
        }
    }
}
