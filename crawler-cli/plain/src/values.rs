//! Values of options and configurations: numbers, times and sizes. An error says what is wrong with the value without naming it.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use url::Host;

/// A number without a sign.
pub fn number<T: FromStr>(value: &str) -> Result<T, String> {
    // `parse` would take a sign.
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    let parsed = value.parse().ok().filter(|_| digits);
    parsed.ok_or_else(|| "not a number that fits here".to_owned())
}

/// A time with an optional unit, more than 0 and at most a day; see [`span`].
pub fn seconds(value: &str) -> Result<Duration, String> {
    let sensible = parsed_span(value).filter(|span| !span.is_zero() && *span <= DAY);
    sensible.ok_or_else(|| "not a sensible time".to_owned())
}

/// A time, perhaps 0, at most 100 years: a number with an optional fraction and an optional unit, `ms`, `s`, `m`, `h` or
/// `d`. Without a unit: seconds.
pub fn span(value: &str) -> Result<Duration, String> {
    let span = parsed_span(value).filter(|span| *span <= DAY * 36_525);
    span.ok_or_else(|| "not a time such as 90, 500ms, 12h or 3d".to_owned())
}

fn parsed_span(value: &str) -> Option<Duration> {
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &value[number.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

/// A point in time: a time, a date (its first moment, in UTC), or a span to or from now, which `by` counts.
fn moment(
    value: &str,
    by: impl Fn(SignedDuration) -> Option<Timestamp>,
) -> Result<Timestamp, String> {
    let read = || {
        if let Ok(span) = span(value) {
            return by(SignedDuration::try_from(span).ok()?);
        }
        if let Ok(at) = value.parse::<Timestamp>() {
            return Some(at);
        }
        let date = value.parse::<Date>().ok()?;
        Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    read().ok_or_else(|| "not a time such as 2026-11-22 or 3d".to_owned())
}

/// A time, a date (its first moment, in UTC), or a span back from now.
pub fn since(value: &str) -> Result<Timestamp, String> {
    moment(value, |span| Timestamp::now().checked_sub(span).ok())
}

/// The name of a host, or its address, as it is written in URLs.
pub fn host_name(value: &str) -> Result<String, String> {
    let host = Host::parse(value).map(|host| host.to_string());
    host.map_err(|_| "not the name of a host, such as example.com".to_owned())
}

/// What the name of a set or a schedule may be.
pub const NAME: &str = "1 to 100 letters, digits and . _ -";

/// The name of a set or a schedule.
pub fn name(value: &str) -> Result<String, String> {
    let fits = |c: char| c.is_alphanumeric() || "._-".contains(c);
    match !value.is_empty() && value.chars().count() <= 100 && value.chars().all(fits) {
        true => Ok(value.to_owned()),
        false => Err(format!("not a name: {NAME}")),
    }
}

/// A number with an optional K, M or G (powers of 1024).
pub fn bytes(value: &str) -> Result<u64, String> {
    let (digits, shift) = match value.as_bytes() {
        [digits @ .., b'K' | b'k'] => (digits.len(), 10),
        [digits @ .., b'M' | b'm'] => (digits.len(), 20),
        [digits @ .., b'G' | b'g'] => (digits.len(), 30),
        all => (all.len(), 0),
    };
    let size = number::<u64>(&value[..digits])?.checked_mul(1 << shift);
    size.ok_or_else(|| "too large".to_owned())
}

/// A number with an optional unit of curl, B, k, M, G, T or P (powers of 1024), in upper or lower case.
pub fn bytes_as_curl(value: &str) -> Result<u64, String> {
    let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &value[digits.len()..] {
        "" | "b" | "B" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        "p" | "P" => 50,
        _ => return Err("unsupported unit, use B, k, M, G, T or P".to_owned()),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("expected a number".to_owned());
    }
    let number = digits.parse::<u64>().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "the number is too large".to_owned())
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (value, millis) in [
            ("0", 0),
            ("1.5", 1500),
            ("500ms", 500),
            ("0.25s", 250),
            ("2m", 120_000),
            ("12h", 43_200_000),
            ("3d", 259_200_000),
        ] {
            assert_eq!(span(value), Ok(Duration::from_millis(millis)), "{value}");
        }
        for value in [
            "", "d", "-1", "1w", "1 s", "1h30m", "inf", "nan", "40000d", "\u{b5}s",
        ] {
            assert!(span(value).is_err(), "{value}");
        }
        assert_eq!(seconds("90s"), Ok(Duration::from_secs(90)));
        assert!(seconds("0").is_err() && seconds("0ms").is_err() && seconds("25h").is_err());
    }

    #[test]
    fn moments_are_times_dates_and_spans() {
        let zero = |span| Timestamp::UNIX_EPOCH.checked_add(span).ok();
        for (value, second) in [
            ("12h", 43_200),
            ("3d", 259_200),
            ("1970-01-02", 86_400),
            ("1970-01-01T00:00:07Z", 7),
        ] {
            let read = moment(value, zero).map(Timestamp::as_second);
            assert_eq!(read, Ok(second), "{value}");
        }
        for value in ["", "yesterday", "-3d", "3 d", "2026-13-01", "40000d"] {
            assert!(moment(value, zero).is_err(), "{value}");
        }
        let now = Timestamp::now();
        assert!(since("1h").is_ok_and(|at| at < now));
    }

    #[test]
    fn names_have_few_signs() {
        for value in ["a", "Docs-2.0_x", "Bücher", &"x".repeat(100)] {
            assert_eq!(name(value).as_deref(), Ok(value));
        }
        for value in ["", "a b", "../x", "<x>", "a\n", "a\0", &"x".repeat(101)] {
            assert!(name(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn hosts_have_names() {
        for (value, name) in [
            ("Example.COM", "example.com"),
            ("a", "a"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(host_name(value).as_deref(), Ok(name));
        }
        for value in ["", "http://[", "a b", "http://a/", "a:80", "a/b", "[", "a#"] {
            assert!(host_name(value).is_err(), "{value}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (value, expected) in [
            ("0", 0),
            ("10", 10),
            ("2K", 2048),
            ("3m", 3 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(bytes(value), Ok(expected));
        }
    }
}
