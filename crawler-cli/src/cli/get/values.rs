//! Values of curl's options. An error says what is wrong with the value without naming it.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use courser::TlsVersion;

use crate::get::rate::Rate;
use crate::values::bytes_as_curl;

pub(super) fn set<T: From<OsString>>(to: &mut Option<T>, value: OsString) -> Result<(), String> {
    *to = Some(value.into());
    Ok(())
}

pub(super) fn push<T>(to: &mut Vec<T>, value: T) -> Result<(), String> {
    to.push(value);
    Ok(())
}

pub(super) fn rate(to: &mut Option<Rate>, value: &OsStr) -> Result<(), String> {
    *to = Some(value.to_str().unwrap_or_default().parse()?);
    Ok(())
}

/// A range of bytes. A single number means all bytes from there on, as in curl.
pub(super) fn range(mut value: OsString) -> OsString {
    let bytes = value.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit) {
        value.push("-");
    }
    value
}

/// A proxy given without its scheme.
pub(super) fn scheme(to: &mut Option<OsString>, scheme: &str, value: &OsStr) -> Result<(), String> {
    let mut proxy = OsString::from(scheme);
    proxy.push(value);
    set(to, proxy)
}

pub(super) fn tls_version(to: &mut Option<TlsVersion>, value: &OsStr) -> Result<(), String> {
    *to = match value.to_str() {
        Some("default") => None,
        Some("1.2") => Some(TlsVersion::V1_2),
        Some("1.3") => Some(TlsVersion::V1_3),
        _ => return Err("expected 1.2 or 1.3".into()),
    };
    Ok(())
}

pub(super) fn integer(value: &OsStr) -> Result<i64, String> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| NOT_A_NUMBER.into())
}

pub(super) fn count(value: &OsStr) -> Result<u32, String> {
    let number = integer(value)?;
    if number < 0 {
        return Err("expected a positive number".into());
    }
    u32::try_from(number).map_err(|_| "the number is too large".into())
}

/// Seconds with an optional fraction. 0 means no limit, as in curl.
pub(super) fn duration(to: &mut Option<Duration>, value: &OsStr) -> Result<(), String> {
    let text = value.to_str().ok_or(NOT_A_NUMBER)?;
    if text.starts_with('-') {
        return Err("expected a positive number".into());
    }
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = text.parse().map_err(|_| NOT_A_NUMBER)?;
    if !plain {
        return Err(NOT_A_NUMBER.into());
    }
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| "the number is too large")?;
    *to = (!duration.is_zero()).then_some(duration);
    Ok(())
}

/// Whole seconds.
pub(super) fn seconds(value: &OsStr) -> Result<Duration, String> {
    Ok(Duration::from_secs(count(value)?.into()))
}

/// As [`size`], with what is needed for a rate.
pub(super) fn bytes_or_none(to: &mut Option<NonZeroU64>, value: &OsStr) -> Result<(), String> {
    let mut bytes = None;
    size(&mut bytes, value)?;
    *to = bytes.and_then(NonZeroU64::new);
    Ok(())
}

/// Bytes with an optional unit. 0 means no limit, as in curl.
pub(super) fn size(to: &mut Option<u64>, value: &OsStr) -> Result<(), String> {
    let bytes = bytes_as_curl(value.to_str().unwrap_or_default())?;
    *to = (bytes > 0).then_some(bytes);
    Ok(())
}

/// A port, or a range `N-M`.
pub(super) fn local_ports(
    to: &mut Option<RangeInclusive<u16>>,
    value: &OsStr,
) -> Result<(), String> {
    let text = value.to_str().unwrap_or_default();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        text.trim().parse().ok().filter(|port| plain && *port > 0)
    };
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => {
            *to = Some(first..=last);
            Ok(())
        }
        _ => Err("expected a port from 1 to 65535, or two like 4000-4100".into()),
    }
}

/// Addresses with or without a port, separated by commas.
pub(super) fn name_servers(to: &mut Option<Vec<SocketAddr>>, value: &OsStr) -> Result<(), String> {
    let text = value.to_str().unwrap_or_default();
    let server = |text: &str| {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let ip: Option<IpAddr> = bare.parse().ok();
        ip.map(|ip| SocketAddr::new(ip, DNS))
            .or_else(|| text.parse().ok())
    };
    let servers: Option<Vec<_>> = text.split(',').map(|text| server(text.trim())).collect();
    *to = Some(servers.ok_or("expected addresses like 10.0.0.1,[::1]:5353")?);
    Ok(())
}

/// The port of name servers (RFC 1035 §4.2).
const DNS: u16 = 53;

const NOT_A_NUMBER: &str = "expected a number";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_a_fraction() {
        let read = |text: &str| {
            let mut time = Some(Duration::MAX);
            duration(&mut time, text.as_ref()).map(|()| time)
        };
        for (text, milliseconds) in [("1", 1000), ("1.5", 1500), (".5", 500), ("007", 7000)] {
            assert_eq!(read(text), Ok(Some(Duration::from_millis(milliseconds))));
        }
        assert_eq!(read("0"), Ok(None));
        for (text, error) in [
            ("-1", "expected a positive number"),
            ("", "expected a number"),
            ("1e300", "expected a number"),
            ("99999999999999999999999", "the number is too large"),
        ] {
            assert_eq!(read(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_range_of_one_number_ends_with_the_file() {
        for (value, expected) in [
            ("5", "5-"),
            ("-5", "-5"),
            ("0-4", "0-4"),
            ("", ""),
            ("x", "x"),
        ] {
            assert_eq!(range(value.into()), expected);
        }
    }

    #[test]
    fn sizes_have_units() {
        let read = |text: &str| {
            let mut bytes = Some(1);
            size(&mut bytes, text.as_ref()).map(|()| bytes)
        };
        for (text, expected) in [
            ("0", None),
            ("7", Some(7)),
            ("2k", Some(2048)),
            ("1B", Some(1)),
            ("1G", Some(1 << 30)),
        ] {
            assert_eq!(read(text), Ok(expected));
        }
        for (text, error) in [
            ("1z", "unsupported unit, use B, k, M, G, T or P"),
            ("-1", "expected a number"),
            ("9999999P", "the number is too large"),
        ] {
            assert_eq!(read(text), Err(error.to_owned()), "{text}");
        }
    }
}
