//! What happens in a run: drawn from a seed, before anything is asked. Times are seconds since the beginning.

use std::ops::Range;

use plain::random::Random;

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
    /// 410 for 10 days, then good again.
    Returns,
    /// For ever: 410, 404, or no such name.
    Gone410,
    Gone404,
    GoneName,
}

impl Truth {
    pub(crate) const ALL: [Self; 8] = [
        Self::Good,
        Self::Purged,
        Self::HostDown,
        Self::NineDays,
        Self::Returns,
        Self::Gone410,
        Self::Gone404,
        Self::GoneName,
    ];

    pub(crate) fn is_gone(self) -> bool {
        matches!(self, Self::Gone410 | Self::Gone404 | Self::GoneName)
    }
}

/// A time in which something is different.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Span {
    pub(crate) fn contains(self, now: i64) -> bool {
        (self.from..self.to).contains(&now)
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.from < other.to && other.from < self.to
    }

    /// The span with this time before and after it.
    pub(crate) fn with_margin(self, margin: i64) -> Self {
        Self {
            from: self.from - margin,
            to: self.to.saturating_add(margin),
        }
    }

    fn of(from: i64, lasts: i64) -> Self {
        Self {
            from,
            to: from.saturating_add(lasts),
        }
    }
}

/// How a host treats HEAD.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Head {
    Fine,
    /// This status, whatever GET finds.
    Status(u16),
    Resets,
}

#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) urls: Range<usize>,
    /// When all of the host answers 404.
    pub(crate) down: Option<Span>,
    /// When the name of the host ends.
    pub(crate) name_ends: Option<i64>,
    /// When a share of the requests is answered by 429, with this Retry-After in seconds.
    pub(crate) throttles: Option<(Span, i64)>,
    pub(crate) head: Head,
    /// From a request to its answer, in milliseconds.
    pub(crate) latency: Range<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Url {
    pub(crate) host: usize,
    pub(crate) truth: Truth,
    /// When the status is another one.
    outage: Option<(Span, u16)>,
    /// The status of the redirect, and the host that it leads to.
    pub(crate) redirect: Option<(u16, usize)>,
}

/// Something that happens to the service or its machine, or that an operator does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Deed {
    /// Everything is due.
    RecheckAll,
    /// The own network ends, or is back.
    Cut(bool),
    /// The process is killed at an operation of the store with this distance, and starts again after so many seconds.
    Kill { operations: u64, down_for: i64 },
    /// The wall clock jumps by so many seconds.
    ClockStep(i64),
    /// Both clocks jump: the process was stopped.
    Stopped(i64),
    /// No further descriptor, or enough again.
    Descriptors(bool),
    /// The disk is full, or has room again.
    Full(bool),
    /// The settings are read again.
    Reload,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) hosts: Vec<Host>,
    pub(crate) urls: Vec<Url>,
    /// When the own network is cut.
    pub(crate) cut: Span,
    /// The share of requests that fail at random.
    pub(crate) failing: f64,
    /// The host of which a whole section was removed.
    pub(crate) removed: Option<usize>,
    /// In the order of their times.
    pub(crate) deeds: Vec<(i64, Deed)>,
}

/// What a server does with a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reaction {
    Status(u16),
    /// 429 with this Retry-After.
    Throttle(i64),
    /// A redirect with this status to this host.
    Redirect(u16, usize),
    Reset,
    Silence,
}

impl Plan {
    /// With bad days, the service and its machine have trouble, too.
    pub(crate) fn draw(seed: u64, count: usize, has_bad_days: bool) -> Self {
        let mut draw = Draw(Random::new(seed));
        let purge = draw.time(2 * DAY, 4 * DAY);
        let down_at = draw.time(DAY, 6 * DAY);
        let cut_at = draw.time(DAY, 6 * DAY);
        let cut = Span::of(cut_at, draw.time(10 * MINUTE, 60 * MINUTE));
        let mut plan = Self {
            hosts: Vec::new(),
            urls: Vec::with_capacity(count),
            cut,
            failing: [0.0, 0.02, 0.12][draw.below(3)],
            removed: None,
            deeds: Vec::new(),
        };
        while plan.urls.len() < count {
            // One URL in 2,000, and at least one, has a host whose name ends.
            let ends = plan.hosts.len().is_multiple_of(100);
            let most = if ends { 3 } else { 60 };
            let from = plan.urls.len();
            let to = (from + 1 + draw.below(most)).min(count);
            let host = Host {
                down: (!ends && draw.chance(0.1)).then_some(Span::of(down_at, 2 * HOUR)),
                ..draw_host(&mut draw, from..to, ends)
            };
            for _ in from..to {
                let index = plan.hosts.len();
                plan.urls.push(draw_url(&mut draw, index, &host, purge));
            }
            plan.hosts.push(host);
        }
        plan.redirect_elsewhere(&mut draw);
        if draw.chance(0.5) {
            plan.remove_section(&mut draw);
        }
        let mut deeds = vec![
            (cut.from, Deed::Cut(true)),
            (cut.to, Deed::Cut(false)),
            (cut.from + 2 * MINUTE, Deed::RecheckAll),
        ];
        for at in [purge + 15 * MINUTE, down_at + 10 * MINUTE] {
            deeds.extend(draw.chance(0.5).then_some((at, Deed::RecheckAll)));
        }
        if has_bad_days {
            draw_bad_days(&mut draw, cut, &mut deeds);
        }
        deeds.sort_by_key(|(at, _)| *at);
        plan.deeds = deeds;
        plan
    }

    /// Redirects lead to the same host, or to one that keeps its name.
    fn redirect_elsewhere(&mut self, draw: &mut Draw) {
        for url in 0..self.urls.len() {
            let own = self.urls[url].host;
            if draw.chance(0.97) {
                continue;
            }
            let other = draw.below(self.hosts.len());
            let is_steady = self.hosts[other].name_ends.is_none() && draw.chance(0.5);
            let to = if is_steady { other } else { own };
            let status = [301, 302, 307, 308][draw.below(4)];
            self.urls[url].redirect = Some((status, to));
        }
    }

    /// A host removes what it has but for what has trouble of its own: more than the budget lets be pruned in a day.
    fn remove_section(&mut self, draw: &mut Draw) {
        let is_large = |host: &Host| host.urls.len() >= 40 && host.down.is_none();
        self.removed = self.hosts.iter().position(is_large);
        let at = draw.time(DAY, 6 * DAY);
        if let Some(host) = self.removed {
            for url in &mut self.urls[self.hosts[host].urls.clone()] {
                if url.truth == Truth::Good {
                    url.truth = Truth::Gone410;
                    url.outage = Some((Span::of(at, i64::MAX), 410));
                }
            }
        }
    }

    /// How many URLs will be pruned.
    pub(crate) fn most_prunes(&self) -> usize {
        let is_pruned = |url: &&Url| matches!(url.truth, Truth::Gone410 | Truth::Returns);
        self.urls.iter().filter(is_pruned).count()
    }

    /// How many URLs of a host answer negatively at some time of the span.
    pub(crate) fn negatives(&self, host: usize, when: Span) -> usize {
        let host = &self.hosts[host];
        if host.down.is_some_and(|down| down.overlaps(when)) {
            return host.urls.len();
        }
        let is_negative = |url: &&Url| url.outage.is_some_and(|(span, _)| span.overlaps(when));
        self.urls[host.urls.clone()]
            .iter()
            .filter(is_negative)
            .count()
    }

    /// Whether nothing happens to the process and its machine in the span, or has happened shortly before.
    pub(crate) fn is_calm(&self, when: Span) -> bool {
        !self.deeds.iter().any(|&(at, deed)| {
            let is_harmless = matches!(deed, Deed::RecheckAll | Deed::Cut(_) | Deed::Reload);
            !is_harmless && Span::of(at, AFTER_DEED).overlaps(when)
        })
    }

    pub(crate) fn is_cut(&self, now: i64) -> bool {
        self.cut.contains(now)
    }

    /// Whether the own network, the machine or its clock has or had trouble lately, so that a guard may be on.
    pub(crate) fn is_trouble(&self, now: i64) -> bool {
        let lately = |from: i64, to: i64| (from..to + HOUR).contains(&now);
        let by_deed = self.deeds.iter().any(|&(at, deed)| match deed {
            Deed::ClockStep(_) | Deed::Stopped(_) => lately(at, at + HOUR),
            Deed::Descriptors(false) => lately(at, at + 30 * MINUTE),
            _ => false,
        });
        by_deed || lately(self.cut.from, self.cut.to)
    }

    /// The answer for a URL, or for the page that it is redirected to.
    pub(crate) fn react(&self, url: usize, at_target: bool, now: i64, draw: &mut Draw) -> Reaction {
        let Url {
            host,
            outage,
            redirect,
            ..
        } = self.urls[url];
        if draw.luck() < self.failing {
            return [
                Reaction::Reset,
                Reaction::Status(500),
                Reaction::Status(502),
                Reaction::Silence,
            ][draw.below(4)];
        }
        if let Some((status, to)) = redirect.filter(|_| !at_target) {
            return Reaction::Redirect(status, to);
        }
        match outage {
            Some((span, status)) if span.contains(now) => Reaction::Status(status),
            _ if self.hosts[host].down.is_some_and(|down| down.contains(now)) => {
                Reaction::Status(404)
            }
            _ => Reaction::Status(200),
        }
    }

    /// When the URL has gone for ever.
    pub(crate) fn gone_at(&self, url: usize) -> Option<i64> {
        let Url {
            host,
            outage,
            truth,
            ..
        } = &self.urls[url];
        let from = outage.map(|(span, _)| span.from);
        let from = from.or(self.hosts[*host].name_ends);
        from.filter(|_| truth.is_gone())
    }

    /// The longest time that a URL of a host was negative and came back, with the wait for the check that found it.
    pub(crate) fn longest_episode(&self, host: usize) -> i64 {
        let urls = &self.urls[self.hosts[host].urls.clone()];
        let of_url = |url: &Url| match url.truth {
            Truth::NineDays => 9 * DAY + 4 * DAY,
            Truth::Returns => 10 * DAY + 18 * DAY,
            Truth::Purged => DAY + 3 * DAY,
            Truth::HostDown => 2 * HOUR + DAY,
            Truth::Good | Truth::Gone410 | Truth::Gone404 | Truth::GoneName => 0,
        };
        urls.iter().map(of_url).max().unwrap_or(0)
    }
}

fn draw_host(draw: &mut Draw, urls: Range<usize>, ends: bool) -> Host {
    let head = match draw.luck() {
        ..0.05 => Head::Status(405),
        ..0.1 => Head::Status(404),
        ..0.15 => Head::Status(403),
        ..0.2 => Head::Resets,
        _ => Head::Fine,
    };
    let is_slow = draw.chance(0.1);
    let throttles = (!ends && draw.chance(0.1)).then(|| {
        let from = draw.time(0, 8 * DAY);
        (Span::of(from, draw.time(HOUR, 6 * HOUR)), draw.time(5, 600))
    });
    Host {
        urls,
        down: None,
        name_ends: ends.then(|| draw.time(HOUR, 6 * DAY)),
        throttles,
        head,
        latency: if is_slow { 1_000..4_000 } else { 2..200 },
    }
}

fn draw_url(draw: &mut Draw, index: usize, host: &Host, purge: i64) -> Url {
    let truth = match draw.luck() {
        _ if host.name_ends.is_some() => Truth::GoneName,
        ..0.007 => Truth::Gone410,
        ..0.01 => Truth::Gone404,
        ..0.012 => Truth::NineDays,
        ..0.014 => Truth::Returns,
        ..0.134 => Truth::Purged,
        _ if host.down.is_some() => Truth::HostDown,
        _ => Truth::Good,
    };
    let outage = match truth {
        Truth::Good | Truth::HostDown | Truth::GoneName => None,
        Truth::Purged => {
            let lasts = 300.0 * (288.0f64.ln() * draw.luck()).exp();
            let from = purge + draw.time(0, 10 * MINUTE);
            Some((Span::of(from, lasts as i64), 410))
        }
        Truth::NineDays => Some((Span::of(draw.time(12 * HOUR, 2 * DAY), 9 * DAY), 404)),
        Truth::Returns => Some((Span::of(draw.time(12 * HOUR, 2 * DAY), 10 * DAY), 410)),
        Truth::Gone410 => Some((Span::of(draw.time(HOUR, 6 * DAY), i64::MAX), 410)),
        Truth::Gone404 => Some((Span::of(draw.time(HOUR, 6 * DAY), i64::MAX), 404)),
    };
    Url {
        host: index,
        truth,
        outage,
        redirect: None,
    }
}

fn draw_bad_days(draw: &mut Draw, cut: Span, deeds: &mut Vec<(i64, Deed)>) {
    for _ in 0..draw.below(12) {
        let kill = Deed::Kill {
            operations: 1 + draw.below(200) as u64,
            down_for: draw.time(0, 2 * HOUR),
        };
        deeds.push((draw.time(0, 9 * DAY), kill));
    }
    // One jump there, one back, in any order.
    if draw.chance(0.3) {
        let by = if draw.chance(0.5) { DAY } else { -DAY };
        let at = draw.time(HOUR, 8 * DAY);
        deeds.push((at, Deed::ClockStep(by)));
        deeds.push((at + draw.time(HOUR, 2 * DAY), Deed::ClockStep(-by)));
    }
    if draw.chance(0.5) {
        deeds.push((draw.time(0, 9 * DAY), Deed::Stopped(HOUR)));
    }
    if draw.chance(0.4) {
        // Not while the network is cut, too: one of them at a time says what is to be seen.
        let at = cut.to + draw.time(HOUR, 2 * DAY);
        deeds.push((at, Deed::Descriptors(false)));
        deeds.push((at + 30, Deed::RecheckAll));
        deeds.push((at + draw.time(MINUTE, 20 * MINUTE), Deed::Descriptors(true)));
    }
    if draw.chance(0.4) {
        let at = draw.time(0, 8 * DAY);
        deeds.push((at, Deed::Full(true)));
        deeds.push((at + draw.time(MINUTE, 3 * HOUR), Deed::Full(false)));
    }
    for _ in 0..draw.below(3) {
        deeds.push((draw.time(0, 9 * DAY), Deed::Reload));
    }
}

/// A kill waits for its operation of the store; the process stays away, and a full disk stays full, for hours.
const AFTER_DEED: i64 = 10 * HOUR;
