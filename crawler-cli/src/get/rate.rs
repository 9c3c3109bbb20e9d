//! `--rate N/unit`: the shortest time between the starts of two transfers, as in curl.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// At most one start per interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Rate {
    interval: Duration,
}

impl FromStr for Rate {
    type Err = &'static str;

    /// Parses `N/s`, `N/m`, `N/h` or `N/d`. Only the first letter of the unit counts; without a unit, `N` is per hour.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (count, unit) = text.split_once('/').unwrap_or((text, "h"));
        let seconds = match unit.bytes().next() {
            Some(b's') => 1,
            Some(b'm') => 60,
            Some(b'h') => 60 * 60,
            Some(b'd') => 24 * 60 * 60,
            _ => return Err("unsupported unit, use s, m, h or d"),
        };
        if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
            return Err("expected a number");
        }
        match count.parse::<u32>() {
            Ok(0) => Err("at least 1 is needed"),
            Ok(count) => Ok(Self {
                interval: Duration::from_secs(seconds) / count,
            }),
            Err(_) => Err("the number is too large"),
        }
    }
}

/// Spaces the starts of transfers by a [`Rate`].
#[derive(Debug, Default)]
pub(super) struct Pacer {
    last_start: Option<Instant>,
}

impl Pacer {
    /// How long the next transfer has to wait from `now`. Its start is counted as `now` plus the wait.
    pub(super) fn delay(&mut self, rate: Rate, now: Instant) -> Duration {
        let delay = match self.last_start {
            Some(last) => rate.interval.saturating_sub(now.duration_since(last)),
            None => Duration::ZERO,
        };
        self.last_start = Some(now + delay);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        let cases = [
            ("1/s", Ok(1_000_000_000)),
            ("4/s", Ok(250_000_000)),
            ("3/s", Ok(333_333_333)),
            ("2/m", Ok(30_000_000_000)),
            ("1/h", Ok(3_600_000_000_000)),
            ("3600", Ok(1_000_000_000)),
            ("2/d", Ok(43_200_000_000_000)),
            ("1/sec", Ok(1_000_000_000)),
            ("3/x", Err("unsupported unit, use s, m, h or d")),
            ("3/", Err("unsupported unit, use s, m, h or d")),
            ("0/s", Err("at least 1 is needed")),
            ("", Err("expected a number")),
            ("1.5/s", Err("expected a number")),
            ("+1/s", Err("expected a number")),
            ("-1/s", Err("expected a number")),
            ("99999999999/s", Err("the number is too large")),
        ];
        for (text, expected) in cases {
            let rate = text.parse::<Rate>().map(|r| r.interval.as_nanos());
            assert_eq!(rate, expected, "{text}");
        }
    }

    #[test]
    fn the_pacer_counts_from_start_to_start() {
        let rate: Rate = "2/s".parse().unwrap();
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut pacer = Pacer::default();
        assert_eq!(pacer.delay(rate, start), ms(0));
        assert_eq!(pacer.delay(rate, start + ms(100)), ms(400), "starts at 500");
        assert_eq!(
            pacer.delay(rate, start + ms(900)),
            ms(100),
            "starts at 1000"
        );
        assert_eq!(
            pacer.delay(rate, start + ms(5000)),
            ms(0),
            "no credit for a slow one"
        );
        assert_eq!(pacer.delay(rate, start + ms(5000)), ms(500));
    }
}
