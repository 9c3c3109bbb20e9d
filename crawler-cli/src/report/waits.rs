//! Lines about hosts: long waits, where there is no progress line, and hosts that were given up.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Zoned};

use crawl::stats::{Reason, Stats, Waiting};
use plain::text::{count, thousands};

/// Which long waits were told.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The hosts with the waits that were told last.
    told: HashMap<String, Waiting>,
    looked_at: Option<Instant>,
    /// The indices of the hosts that were given up, as far as was told.
    given_up: HashSet<usize>,
}

impl Waits {
    /// Lines about the hosts that were given up, and are to be asked for more.
    pub(super) fn given_up(&mut self, stats: &Stats) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, host) in stats.hosts().iter().enumerate() {
            if host.abandoned > 0 && self.given_up.insert(index) {
                let left = count(host.abandoned, "URL", "URLs");
                let why = host
                    .silence
                    .map(|(class, failures)| format!(" after {} × {class}", thousands(failures)));
                let why = why.unwrap_or_default();
                lines.push(format!("{}: given up{why}, with {left} left", host.name));
            }
        }
        lines
    }

    /// Lines about the waits that have begun. `clock` is the time of day.
    pub(super) fn begun(
        &mut self,
        stats: &Stats,
        now: Instant,
        clock: impl Fn() -> Zoned,
    ) -> Vec<String> {
        let recent = |at: Instant| now.saturating_duration_since(at) < BETWEEN_LOOKS;
        if self.looked_at.is_some_and(recent) {
            return Vec::new();
        }
        self.looked_at = Some(now);
        let mut lines = Vec::new();
        for host in stats.hosts() {
            let waiting = host.standing.waiting;
            let Some(waiting) = waiting.filter(|waiting| waiting.until >= now + LONG) else {
                continue;
            };
            let is_told = self.told.get(&host.name).is_some_and(|told| {
                // A rate holds back each request; one line says so.
                told.reason == waiting.reason
                    && (told.reason != Reason::BackOff || waiting.until <= told.until)
            });
            if is_told {
                continue;
            }
            let left = waiting.until.saturating_duration_since(now);
            lines.push(line(&host.name, waiting.reason, left, clock()));
            self.told.insert(host.name.clone(), waiting);
        }
        lines
    }
}

/// Whose wait, why, how long, and until when.
fn line(host: &str, reason: Reason, left: Duration, now: Zoned) -> String {
    let seconds = left.as_secs_f64().round();
    let why = match reason {
        Reason::Rate => "the rate that was asked for",
        Reason::Robots => "the delay that robots.txt asks for",
        Reason::BackOff => "back-off: the server asked for it, or failed",
    };
    let until = SignedDuration::try_from(left).map(|left| now.saturating_add(left));
    let until = until.map_or_else(
        |_| String::new(),
        |at| at.strftime(", until %H:%M:%S").to_string(),
    );
    format!("{host}: waits {seconds} s{until} ({why})")
}

/// A shorter wait needs no line.
const LONG: Duration = Duration::from_secs(10);

/// Waits are looked for so often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crawl::stats::{Class, Exchange, Standing};

    fn stats(waiting: Waiting) -> Stats {
        let mut stats = Stats::default();
        stats.add_host("http://h");
        let standing = Standing {
            waiting: Some(waiting),
            ..Standing::default()
        };
        stats.handle_standing(0, standing);
        stats
    }

    #[test]
    fn a_host_that_is_given_up_is_told_once() {
        let mut stats = Stats::default();
        let exchange = Exchange {
            took: Duration::from_secs(20),
            bytes: 0,
            connection: None,
            robots: false,
        };
        let mut waits = Waits::default();
        for name in ["http://h", "http://alone"] {
            let host = stats.add_host(name);
            let at_first = u64::from(name == "http://h") * 9_998;
            for (left, is_given_up) in [(at_first, false), (0, true), (0, true)] {
                stats.handle_failure(host, Class::Timeout, &exchange);
                let standing = Standing {
                    left,
                    is_given_up,
                    waiting: None,
                };
                stats.handle_standing(host, standing);
            }
        }
        let line = "http://h: given up after 3 × timeout, with 9,998 URLs left";
        assert_eq!(waits.given_up(&stats), [line]);
        assert_eq!(waits.given_up(&stats), [""; 0]);
    }

    #[test]
    fn each_long_wait_is_told_once() {
        let noon = || "2026-11-24T12:00:00[UTC]".parse::<Zoned>().unwrap();
        let begin = Instant::now();
        let mut waits = Waits::default();
        let mut told = |second: u64, reason, until: u64| {
            let at = |second| begin + Duration::from_secs(second);
            let waiting = Waiting {
                reason,
                until: at(until),
            };
            waits.begun(&stats(waiting), at(second), noon)
        };
        assert_eq!(told(0, Reason::BackOff, 9), [""; 0]);
        let line =
            "http://h: waits 59 s, until 12:00:59 (back-off: the server asked for it, or failed)";
        assert_eq!(told(1, Reason::BackOff, 60), [line]);
        assert_eq!(told(2, Reason::BackOff, 60), [""; 0]);
        assert_eq!(told(60, Reason::BackOff, 120).len(), 1);
        assert_eq!(told(120, Reason::Rate, 140).len(), 1);
        // The next request waits as well, for the same reason.
        assert_eq!(told(140, Reason::Rate, 160), [""; 0]);
    }
}
