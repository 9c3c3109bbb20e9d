//! What happens in a week: drawn from a seed, before anything is asked.

use crawler_cli::check::{Cause, Verdict};
use crawler_cli::crawl::random::Random;

use crate::draw::{DAY, Draw, HOUR, MINUTE};

/// What is true about a URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Truth {
    Good,
    /// 410 for 5 minutes to 24 hours.
    Purged,
    /// 404 for 2 hours, with all of its host.
    HostDown,
    /// 404 for 9 days.
    NineDays,
    /// For ever: 410, 404, or no such name.
    Gone410,
    Gone404,
    GoneName,
}

impl Truth {
    pub(crate) const ALL: [Self; 7] = [
        Self::Good,
        Self::Purged,
        Self::HostDown,
        Self::NineDays,
        Self::Gone410,
        Self::Gone404,
        Self::GoneName,
    ];

    pub(crate) fn is_gone(self) -> bool {
        matches!(self, Self::Gone410 | Self::Gone404 | Self::GoneName)
    }
}

/// A time in which a URL answers something else. In seconds from the beginning.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: i64,
    to: i64,
    cause: Cause,
}

#[derive(Clone, Debug)]
pub(crate) struct Url {
    pub(crate) host: usize,
    pub(crate) truth: Truth,
    outage: Option<Outage>,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) urls: Vec<Url>,
    /// The URLs of each host, one after the other.
    pub(crate) hosts: Vec<std::ops::Range<usize>>,
    /// When each host that is down answers 404 to everything.
    down: Vec<Option<(i64, i64)>>,
    /// When the own network is cut.
    cut: (i64, i64),
    /// When all URLs are asked, whether they are due or not.
    pub(crate) rechecks: Vec<i64>,
    /// The share of requests that fail at random.
    failing: f64,
}

impl Plan {
    pub(crate) fn draw(seed: u64, count: usize) -> Self {
        let mut draw = Draw(Random::new(seed));
        let hosts = draw_hosts(&mut draw, count);
        let purge = draw.time(2 * DAY, 4 * DAY);
        let down_at = draw.time(DAY, 6 * DAY);
        let cut_at = draw.time(DAY, 6 * DAY);
        let cut = (cut_at, cut_at + draw.time(10 * MINUTE, 60 * MINUTE));
        let down = hosts
            .iter()
            .map(|_| draw.chance(0.1).then_some((down_at, down_at + 2 * HOUR)))
            .collect::<Vec<_>>();
        let mut urls = Vec::with_capacity(count);
        for (host, range) in hosts.iter().enumerate() {
            for _ in range.clone() {
                urls.push(draw_url(&mut draw, host, purge, down[host].is_some()));
            }
        }
        let mut rechecks = vec![cut.0 + 2 * MINUTE];
        rechecks.extend(draw.chance(0.5).then_some(purge + 15 * MINUTE));
        rechecks.extend(draw.chance(0.5).then_some(down_at + 10 * MINUTE));
        Self {
            urls,
            hosts,
            down,
            cut,
            rechecks,
            failing: [0.0, 0.02, 0.12][draw.below(3)],
        }
    }

    pub(crate) fn is_cut(&self, now: i64) -> bool {
        (self.cut.0..self.cut.1).contains(&now)
    }

    pub(crate) fn was_down(&self, host: usize) -> bool {
        self.down[host].is_some()
    }

    /// What is answered; `luck` is a number from 0 to 1.
    pub(crate) fn answer(&self, url: usize, now: i64, luck: f64) -> (Verdict, Option<u16>) {
        let Url { host, outage, .. } = &self.urls[url];
        let is_within = |&(from, to): &(i64, i64)| (from..to).contains(&now);
        if self.is_cut(now) {
            return (Verdict::Failed(Cause::ConnectTimeout), None);
        }
        if luck < self.failing {
            return (Verdict::Failed(Cause::Reset), None);
        }
        match outage.filter(|outage| is_within(&(outage.from, outage.to))) {
            Some(Outage {
                cause: Cause::Status410,
                ..
            }) => (Verdict::Failed(Cause::Status410), Some(410)),
            Some(Outage {
                cause: Cause::DnsNxdomain,
                ..
            }) => (Verdict::Failed(Cause::DnsNxdomain), None),
            Some(_) => (Verdict::Failed(Cause::Status404), Some(404)),
            None if self.down[*host].as_ref().is_some_and(is_within) => {
                (Verdict::Failed(Cause::Status404), Some(404))
            }
            None => (Verdict::Ok, Some(200)),
        }
    }
}

/// Hosts of 1 to 100 URLs.
fn draw_hosts(draw: &mut Draw, count: usize) -> Vec<std::ops::Range<usize>> {
    let (mut hosts, mut from) = (Vec::new(), 0);
    while from < count {
        let to = (from + 1 + draw.below(100)).min(count);
        hosts.push(from..to);
        from = to;
    }
    hosts
}

fn draw_url(draw: &mut Draw, host: usize, purge: i64, is_down: bool) -> Url {
    let truth = match draw.luck() {
        ..0.007 => Truth::Gone410,
        ..0.0095 => Truth::Gone404,
        ..0.01 => Truth::GoneName,
        ..0.012 => Truth::NineDays,
        ..0.132 => Truth::Purged,
        _ if is_down => Truth::HostDown,
        _ => Truth::Good,
    };
    let (cause, from, lasts) = match truth {
        Truth::Good | Truth::HostDown => {
            return Url {
                host,
                truth,
                outage: None,
            };
        }
        Truth::Purged => {
            let lasts = 300.0 * (288.0f64.ln() * draw.luck()).exp();
            (
                Cause::Status410,
                purge + draw.time(0, 10 * MINUTE),
                lasts as i64,
            )
        }
        Truth::NineDays => (Cause::Status404, draw.time(12 * HOUR, 2 * DAY), 9 * DAY),
        Truth::Gone410 => (Cause::Status410, draw.time(HOUR, 6 * DAY), EVER),
        Truth::Gone404 => (Cause::Status404, draw.time(HOUR, 6 * DAY), EVER),
        Truth::GoneName => (Cause::DnsNxdomain, draw.time(HOUR, 6 * DAY), EVER),
    };
    let outage = Some(Outage {
        from,
        to: from + lasts,
        cause,
    });
    Url {
        host,
        truth,
        outage,
    }
}
const EVER: i64 = 100_000 * DAY;
