//! Values of options: numbers, times and sizes. An error says what is wrong with the value without naming it.

use std::str::FromStr;
use std::time::Duration;

/// A number without a sign.
pub(crate) fn number<T: FromStr>(value: &str) -> Result<T, String> {
    // `parse` would take a sign.
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    let parsed = value.parse().ok().filter(|_| digits);
    parsed.ok_or_else(|| "not a number that fits here".to_owned())
}

/// Seconds with an optional fraction, more than 0 and at most a day.
pub(crate) fn seconds(value: &str) -> Result<Duration, String> {
    let span = value
        .parse()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok());
    let sensible = span.filter(|span| !span.is_zero() && *span <= LONGEST_TIME);
    sensible.ok_or_else(|| "not a sensible number of seconds".to_owned())
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

const LONGEST_TIME: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

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
