//! Values of options and configurations: numbers, times and sizes. An error says what is wrong with the value without naming it.

use std::str::FromStr;
use std::time::Duration;

/// A number without a sign.
pub(crate) fn number<T: FromStr>(value: &str) -> Result<T, String> {
    // `parse` would take a sign.
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    let parsed = value.parse().ok().filter(|_| digits);
    parsed.ok_or_else(|| "not a number that fits here".to_owned())
}

/// A time with an optional unit, more than 0 and at most a day; see [`span`].
pub(crate) fn seconds(value: &str) -> Result<Duration, String> {
    let sensible = parsed_span(value).filter(|span| !span.is_zero() && *span <= DAY);
    sensible.ok_or_else(|| "not a sensible time".to_owned())
}

/// A time, perhaps 0, at most 100 years: a number with an optional fraction and an optional unit, `ms`, `s`, `m`, `h` or
/// `d`. Without a unit: seconds.
pub(crate) fn span(value: &str) -> Result<Duration, String> {
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

/// A number with an optional K, M or G (powers of 1024).
pub(crate) fn bytes(value: &str) -> Result<u64, String> {
    let (digits, shift) = match value.as_bytes() {
        [digits @ .., b'K' | b'k'] => (digits.len(), 10),
        [digits @ .., b'M' | b'm'] => (digits.len(), 20),
        [digits @ .., b'G' | b'g'] => (digits.len(), 30),
        all => (all.len(), 0),
    };
    let size = number::<u64>(&value[..digits])?.checked_mul(1 << shift);
    size.ok_or_else(|| "too large".to_owned())
}

/// `on` or `off`.
pub(crate) fn on_or_off(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("neither on nor off".to_owned()),
    }
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
