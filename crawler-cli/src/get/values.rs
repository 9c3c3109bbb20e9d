//! Values of curl's options. An error says what is wrong with the value without naming it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use courser::policy::Override;

/// `None`: no limit.
pub(super) type Time = Option<Duration>;

/// Seconds with an optional fraction. 0 means no limit, as in curl.
pub(super) fn duration(value: &str) -> Result<Time, String> {
    let seconds = value.parse().map_err(|_| "expected a number")?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    Ok((!duration.is_zero()).then_some(duration))
}

/// A range of bytes. A single number means all bytes from there on, as in curl.
pub(super) fn range(value: &str) -> Result<String, Infallible> {
    let is_number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let end = if is_number { "-" } else { "" };
    Ok(format!("{value}{end}"))
}

/// How many redirects are followed; `-1` is no limit.
pub(super) fn redirects(value: &str) -> Result<u32, String> {
    match value {
        "-1" => Ok(u32::MAX),
        value => plain::values::number(value),
    }
}

/// The name of a file, which may be empty, as for curl.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

pub(super) fn user(value: &str) -> Result<String, &'static str> {
    let is_pair = value.contains(':');
    is_pair
        .then(|| value.to_owned())
        .ok_or("expected USER:PASSWORD")
}

pub(super) fn cookie(value: &str) -> Result<String, &'static str> {
    let is_pair = value.contains('=');
    is_pair
        .then(|| value.to_owned())
        .ok_or("expected NAME=VALUE")
}

/// The shortest time between two starts: `N/s`, `N/m`, `N/h` or `N/d`. Only the first letter of the unit counts; without
/// a unit, `N` is per hour.
pub(super) fn interval(value: &str) -> Result<Duration, String> {
    let (number, unit) = value.split_once('/').unwrap_or((value, "h"));
    let seconds = match unit.bytes().next() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 60 * 60,
        Some(b'd') => 24 * 60 * 60,
        _ => return Err("unsupported unit, use s, m, h or d".to_owned()),
    };
    match plain::values::number::<u32>(number)? {
        0 => Err("at least 1 is needed".to_owned()),
        count => Ok(Duration::from_secs(seconds) / count),
    }
}

/// `HOST:PORT:ADDRESS[,ADDRESS...]`, perhaps with a `+` before, which has no effect.
pub(super) fn fixed_addresses(value: &str) -> Result<Override, String> {
    let read = || {
        let (host, rest) = value.strip_prefix('+').unwrap_or(value).split_once(':')?;
        let (port, addresses) = rest.split_once(':')?;
        let bare = |address: &str| address.trim_matches(['[', ']']).parse::<IpAddr>();
        let addresses = addresses.split(',').map(bare).collect::<Result<_, _>>();
        (!host.is_empty()).then_some(Override {
            host: host.to_owned(),
            port: Some(port.parse().ok()?),
            addresses: addresses.ok()?,
        })
    };
    read().ok_or_else(|| "expected HOST:PORT:ADDRESS[,ADDRESS...]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_a_fraction() {
        for (text, milliseconds) in [("1", 1000), ("1.5", 1500), (".5", 500), ("007", 7000)] {
            let time = Duration::from_millis(milliseconds);
            assert_eq!(duration(text), Ok(Some(time)));
        }
        assert_eq!(duration("0"), Ok(None));
        for text in ["-1", "", "x", "1e300", "nan", "inf"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_of_one_number_ends_with_the_file() {
        for (value, expected) in [("5", "5-"), ("-5", "-5"), ("x", "x")] {
            assert_eq!(range(value).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn rates() {
        for (text, nanoseconds) in [
            ("1/s", 1_000_000_000),
            ("4/s", 250_000_000),
            ("2/m", 30_000_000_000),
            ("3600", 1_000_000_000),
            ("2/d", 43_200_000_000_000),
            ("1/sec", 1_000_000_000),
        ] {
            assert_eq!(
                interval(text),
                Ok(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
        for text in ["3/x", "3/"] {
            let error = "unsupported unit, use s, m, h or d";
            assert_eq!(interval(text), Err(error.to_owned()), "{text}");
        }
        assert_eq!(interval("0/s"), Err("at least 1 is needed".to_owned()));
        for text in ["", "1.5/s", "+1/s", "-1/s", "99999999999/s"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_fixed_for_a_host_and_a_port() {
        let rule = |host: &str, addresses: &[&str]| Override {
            host: host.into(),
            port: Some(8),
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        };
        for (text, expected) in [
            ("h:8:10.0.0.1,[::1]", rule("h", &["10.0.0.1", "::1"])),
            ("+*:8:::2", rule("*", &["::2"])),
        ] {
            assert_eq!(fixed_addresses(text), Ok(expected));
        }
        for bad in ["h", "h:8", "h:x:::1", ":8:::1", "h:8:", "h:8:x"] {
            assert!(fixed_addresses(bad).is_err(), "{bad}");
        }
    }
}
