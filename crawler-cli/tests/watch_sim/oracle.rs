//! What must hold after every event of the store, and at the end.

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use store::sqlite::Sqlite;
use store::{
    Cursor, Cycle, CycleId, Event, Guarded, Lane, Lanes, Notice, NoticeId, Store, StoreError,
    WatchStore, Which,
};
use verdict::life::{Negative, Rules, State};

use crate::alerts::Alerts;
use crate::draw::{DAY, HOUR};
use crate::plan::{Deed, Plan, Truth};
use crate::server::{Site, name_of};

/// Follows the store and compares it with the truth.
pub(crate) struct Oracle {
    rules: Rules,
    states: Vec<State>,
    /// How many URLs have each state.
    by_state: [u64; State::ALL.len()],
    was_gone: Vec<bool>,
    /// When each URL was good last.
    doubted_since: Vec<Option<i64>>,
    cursor: Cursor,
    notice: NoticeId,
    cycle: CycleId,
    /// The first time of a cycle that may begin, by the cycle before.
    cycle_may_begin: Option<Timestamp>,
    /// Cycles in a row that asked nothing.
    idle_cycles: u32,
    alerts: Alerts,
    pub(crate) matrix: Matrix,
    pub(crate) faults: Vec<String>,
}

impl Oracle {
    pub(crate) fn new(plan: &Plan, rules: Rules) -> Self {
        let mut by_state = [0; State::ALL.len()];
        by_state[usize::from(State::New.code())] = plan.urls.len() as u64;
        Self {
            rules,
            states: vec![State::New; plan.urls.len()],
            by_state,
            was_gone: vec![false; plan.urls.len()],
            doubted_since: vec![None; plan.urls.len()],
            cursor: Cursor::START,
            notice: NoticeId::START,
            cycle: CycleId(0),
            cycle_may_begin: None,
            idle_cycles: 0,
            alerts: Alerts::default(),
            matrix: Matrix::default(),
            faults: Vec::new(),
        }
    }

    /// Looks at what is new in the store at this time of the run.
    pub(crate) fn observe(
        &mut self,
        now: i64,
        site: &Site,
        store: &mut Sqlite,
    ) -> Result<(), StoreError> {
        let mut events = Vec::new();
        store.events(self.cursor, &mut |event| {
            events.push(event);
            ControlFlow::Continue(())
        })?;
        for event in &events {
            self.handle_event(now, event, site, store)?;
        }
        for (id, notice) in store.notices(self.notice, 1_000)? {
            self.notice = id;
            self.handle_notice(now, &notice, &site.plan);
        }
        if events.is_empty() {
            return Ok(());
        }
        self.matrix.events += events.len() as u64;
        self.count(now, store)
    }

    fn handle_event(
        &mut self,
        now: i64,
        event: &Event,
        site: &Site,
        store: &mut Sqlite,
    ) -> Result<(), StoreError> {
        if event.cursor <= self.cursor {
            self.fault(now, "a cursor that is not larger than the one before");
        }
        self.cursor = event.cursor;
        let Some(url) = number_of(&event.url).filter(|url| *url < self.states.len()) else {
            self.fault(now, &format!("an event of {}", event.url));
            return Ok(());
        };
        if event.from != self.states[url] || event.from == event.to {
            let (from, to, before) = (event.from, event.to, self.states[url]);
            let text = format!("from {from:?} to {to:?}, and the event before led to {before:?}");
            self.fault_of(now, url, &text);
        }
        if event.why.is_empty() {
            self.fault_of(now, url, "a change without a cause");
        }
        self.by_state[usize::from(self.states[url].code())] -= 1;
        self.by_state[usize::from(event.to.code())] += 1;
        self.states[url] = event.to;
        if matches!(event.from, State::New | State::Alive) {
            self.doubted_since[url] = Some(now);
        }
        let truth = site.plan.urls[url].truth;
        match event.to {
            State::Gone => {
                self.was_gone[url] = true;
                match truth {
                    Truth::NineDays | Truth::Returns => {}
                    truth if truth.is_gone() => self.check_time(now, url, event, site, store)?,
                    truth => self.fault_of(now, url, &format!("{truth:?} is gone")),
                }
            }
            State::Pruned => match truth {
                Truth::Gone410 | Truth::Returns => self.matrix.pruned += 1,
                truth => {
                    self.matrix.false_prunes += 1;
                    self.fault_of(now, url, &format!("{truth:?} is pruned"));
                }
            },
            State::Alive if matches!(event.from, State::Gone | State::Pruned) => match truth {
                truth if truth.is_gone() => self.fault_of(now, url, "gone and resurrected"),
                _ => self.matrix.resurrected += 1,
            },
            _ => {}
        }
        Ok(())
    }

    /// What is gone is found within its span and one more check, but for time that was lost.
    fn check_time(
        &mut self,
        now: i64,
        url: usize,
        event: &Event,
        site: &Site,
        store: &mut Sqlite,
    ) -> Result<(), StoreError> {
        let (plan, truth) = (&site.plan, site.plan.urls[url].truth);
        let since = match truth {
            // A look at a name that does not exist any more is no answer of a server.
            Truth::GoneName => self.doubted_since[url],
            _ => site.served[url].negative_since,
        };
        let Some(since) = since.or(plan.gone_at(url)) else {
            return Ok(());
        };
        let took = now - since;
        let limit = self.time_to_find(url, took, event.at, site, store)?;
        self.matrix.slowest = self.matrix.slowest.max(took);
        if took > limit {
            let text = format!(
                "{truth:?} found after {:.1} days, limit {:.1}: {}",
                took as f64 / DAY as f64,
                limit as f64 / DAY as f64,
                history(&event.url, store)?
            );
            self.fault_of(now, url, &text);
        }
        Ok(())
    }

    /// How long it may take until a URL that has gone is GONE: its span and one more check, and the time that was lost.
    /// It was first negative this long before `at`.
    fn time_to_find(
        &self,
        url: usize,
        took: i64,
        at: Timestamp,
        site: &Site,
        store: &mut Sqlite,
    ) -> Result<i64, StoreError> {
        let (plan, host) = (&site.plan, site.plan.urls[url].host);
        let kind = match plan.urls[url].truth {
            Truth::Gone410 => Negative::Gone,
            Truth::Gone404 => Negative::NotFound,
            _ => Negative::Nxdomain,
        };
        // A host that was down may have added another kind of evidence.
        let is_mixed = plan.hosts[host].down.is_some();
        let kinds = [Some(kind), is_mixed.then_some(Negative::NotFound)];
        let (mut span, mut cycle) = (Duration::ZERO, Duration::ZERO);
        for kind in kinds.into_iter().flatten() {
            let steps = self.rules.recheck(kind).steps();
            span = span.max(self.rules.gone(kind).span);
            cycle = cycle.max(steps.iter().copied().max().unwrap_or_default());
        }
        let span = (span.as_secs() as i64).max(2 * plan.longest_episode(host));
        let cycle = cycle.mul_f64(1.25).as_secs() as i64;
        let first = at - Duration::from_secs(took.unsigned_abs());
        let (mut from, mut stopped) = (first, Duration::ZERO);
        if let Some(detail) = store.host(&format!("http://{}/", name_of(host)))? {
            let stops = store.stops(Guarded::Host(detail.host.id))?;
            // What was negative before a hold is first negative when the hold ends.
            let ends = stops.iter().filter_map(|(_, end)| end);
            from = ends.filter(|end| *end <= at).fold(first, Timestamp::max);
            stopped += stops.within(Some(from), at);
        }
        stopped += store.stops(Guarded::OwnNetwork)?.within(Some(from), at);
        let held = from.duration_since(first).as_secs();
        let stopped = stopped.as_secs() as i64;
        Ok(span + cycle + held + stopped + lost(plan))
    }

    /// The counters of the store agree with its events, and every URL has a due row.
    fn count(&mut self, now: i64, store: &mut Sqlite) -> Result<(), StoreError> {
        let counts = store.watch_counts()?;
        for state in State::ALL {
            let own = self.by_state[usize::from(state.code())];
            let stored = counts.states.get(&state).copied().unwrap_or(0);
            if own != stored {
                let name = state.name();
                self.fault(
                    now,
                    &format!("{stored} URLs are {name}, by their events {own}"),
                );
            }
        }
        let (urls, due) = (counts.urls(), counts.due.values().sum::<u64>());
        if urls != self.states.len() as u64 || due != urls {
            let text = format!("{urls} URLs, {due} of them due, of {}", self.states.len());
            self.fault(now, &text);
        }
        Ok(())
    }

    /// Looks at every URL, and at the cycles.
    pub(crate) fn verify(
        &mut self,
        now: i64,
        site: &Site,
        store: &mut Sqlite,
    ) -> Result<(), StoreError> {
        let mut seen = 0;
        store.export(&Which::Everything, None, &mut |watched| {
            seen += 1;
            let Some(url) = number_of(&watched.url).filter(|url| *url < self.states.len()) else {
                self.fault(now, &format!("{} is not of this run", watched.url));
                return ControlFlow::Continue(());
            };
            if watched.due.is_none() {
                self.fault_of(now, url, "is lost: it has no due row");
            }
            if watched.life.state() != self.states[url] {
                let (state, known) = (watched.life.state(), self.states[url]);
                self.fault_of(now, url, &format!("is {state:?}, by its events {known:?}"));
            }
            // The name of a host that ends is no answer of a server.
            let served = site.served[url];
            let is_named = site.plan.hosts[site.plan.urls[url].host]
                .name_ends
                .is_none();
            if is_named && watched.life.negatives() > served.negatives {
                let (counted, served) = (watched.life.negatives(), served.negatives);
                let text = format!("{counted} negative answers count, {served} were given");
                self.fault_of(now, url, &text);
            }
            ControlFlow::Continue(())
        })?;
        if seen != self.states.len() {
            let text = format!("{seen} URLs of {} are there", self.states.len());
            self.fault(now, &text);
        }
        Ok(())
    }

    /// Cycles never overlap, and begin an interval and its jitter apart. `is_followed`: the process and its clocks were
    /// fine since the last call.
    pub(crate) fn check_cycles(
        &mut self,
        now: i64,
        is_followed: bool,
        earliest: Duration,
        store: &mut Sqlite,
    ) -> Result<(), StoreError> {
        let mut cycles: Vec<Cycle> = store.cycles(10_000)?;
        cycles.reverse();
        for cycle in cycles {
            if cycle.id <= self.cycle {
                continue;
            }
            self.cycle = cycle.id;
            self.matrix.cycles += 1;
            self.matrix.reconciled += cycle.counts.asked;
            self.idle_cycles = match cycle.ended.is_some() && cycle.counts.asked == 0 {
                true => self.idle_cycles + 1,
                false => 0,
            };
            if self.idle_cycles == MOST_IDLE_CYCLES {
                let waiting = waiting(cycle.began, store)?;
                let text = format!("cycle after cycle finds URLs that it does not ask: {waiting}");
                self.fault(now, &text);
            }
            let is_early = self.cycle_may_begin.is_some_and(|at| cycle.began < at);
            if is_early && is_followed {
                self.fault(now, &format!("a cycle began too early, at {}", cycle.began));
            }
            let after_interval = cycle.began + earliest;
            let may_begin = after_interval.max(cycle.ended.unwrap_or(after_interval));
            self.cycle_may_begin = Some(may_begin);
        }
        if !is_followed {
            self.cycle_may_begin = None;
        }
        Ok(())
    }

    /// An alert that is due, or not.
    fn handle_notice(&mut self, now: i64, notice: &Notice, plan: &Plan) {
        self.matrix.notices += 1;
        self.alerts.note(now, notice);
        match &*notice.kind {
            "guard" => {
                self.matrix.guards += 1;
                if !plan.is_trouble(now) {
                    self.fault(now, &format!("no reason for this notice: {}", notice.text));
                }
            }
            "hold" => self.matrix.holds += 1,
            "budget" => self.matrix.budgets += 1,
            _ => {}
        }
    }

    /// The end: every URL is what it should be, and every alert that was due was given.
    pub(crate) fn judge(
        &mut self,
        now: i64,
        wall: Timestamp,
        site: &Site,
        store: &mut Sqlite,
    ) -> Result<(), StoreError> {
        let plan = &site.plan;
        for url in 0..self.states.len() {
            let (truth, state) = (plan.urls[url].truth, self.states[url]);
            self.matrix.counts[truth as usize][usize::from(state.code())] += 1;
            self.matrix.were_gone[truth as usize] += u64::from(self.was_gone[url]);
            let is_right = match truth {
                Truth::Gone410 => state == State::Pruned,
                Truth::Gone404 | Truth::GoneName => state == State::Gone,
                _ => matches!(state, State::Alive | State::Unreachable),
            };
            if !is_right && !self.has_time_left(now, wall, url, site, store)? {
                self.fault_of(now, url, &format!("{truth:?} ends as {}", state.name()));
            }
        }
        let mut hosts = Vec::with_capacity(plan.hosts.len());
        for host in 0..plan.hosts.len() {
            let detail = store.host(&format!("http://{}/", name_of(host)))?;
            hosts.push(detail.map(|detail| detail.host.id));
        }
        for fault in self.alerts.judge(plan, &hosts) {
            self.fault(now, &fault);
        }
        Ok(())
    }

    /// Whether the time in which a URL that has gone must be found, and pruned, is not over yet: a host whose URLs were
    /// negative for long and came back has long spans.
    fn has_time_left(
        &self,
        now: i64,
        wall: Timestamp,
        url: usize,
        site: &Site,
        store: &mut Sqlite,
    ) -> Result<bool, StoreError> {
        let plan = &site.plan;
        let gone_at = plan.gone_at(url);
        let Some(since) = site.served[url].negative_since.or(gone_at) else {
            return Ok(false);
        };
        // Until it is asked the first time, and until the budget lets it be pruned.
        let interval = self.rules.alive_interval.longest.mul_f64(1.1).as_secs() as i64;
        let took = now - since.min(gone_at.map_or(since, |at| at + interval));
        let grace = self.rules.grace.as_secs() as i64;
        let budget = DAY * (1 + plan.most_prunes() as i64 / LEAST_BUDGET);
        let limit = self.time_to_find(url, took, wall, site, store)?;
        Ok(plan.urls[url].truth.is_gone() && took <= limit + grace + budget)
    }

    pub(crate) fn fault(&mut self, now: i64, what: &str) {
        if self.faults.len() < MOST_FAULTS {
            let day = now as f64 / DAY as f64;
            self.faults.push(format!("day {day:.2}: {what}"));
        }
    }

    fn fault_of(&mut self, now: i64, url: usize, what: &str) {
        self.fault(now, &format!("URL {url}: {what}"));
    }
}

/// Time that deeds cost.
fn lost(plan: &Plan) -> i64 {
    let of_deed = |(_, deed): &(i64, Deed)| match *deed {
        Deed::Kill { down_for, .. } => down_for,
        Deed::ClockStep(by) => by.abs(),
        Deed::Stopped(time) => time,
        Deed::Full(true) => 3 * HOUR,
        _ => 0,
    };
    plan.deeds.iter().map(of_deed).sum::<i64>() + HOUR
}

fn number_of(url: &str) -> Option<usize> {
    url.rsplit('/').next()?.parse().ok()
}

/// What is true, what was found, and what happened.
#[derive(Default)]
pub(crate) struct Matrix {
    counts: [[u64; State::ALL.len()]; Truth::ALL.len()],
    were_gone: [u64; Truth::ALL.len()],
    pub(crate) events: u64,
    pub(crate) requests: u64,
    pub(crate) kills: u64,
    pub(crate) refused: u64,
    pub(crate) guards: u64,
    pub(crate) holds: u64,
    pub(crate) budgets: u64,
    notices: u64,
    cycles: u64,
    reconciled: u64,
    pruned: u64,
    resurrected: u64,
    pub(crate) false_prunes: u64,
    /// The longest time to find what is gone, in seconds.
    slowest: i64,
}

impl Matrix {
    pub(crate) fn add(&mut self, other: &Self) {
        for (row, others) in self.counts.iter_mut().zip(&other.counts) {
            for (count, other) in row.iter_mut().zip(others) {
                *count += other;
            }
        }
        for (count, other) in self.were_gone.iter_mut().zip(&other.were_gone) {
            *count += other;
        }
        self.events += other.events;
        self.requests += other.requests;
        self.kills += other.kills;
        self.refused += other.refused;
        self.guards += other.guards;
        self.holds += other.holds;
        self.budgets += other.budgets;
        self.notices += other.notices;
        self.cycles += other.cycles;
        self.reconciled += other.reconciled;
        self.pruned += other.pruned;
        self.resurrected += other.resurrected;
        self.false_prunes += other.false_prunes;
        self.slowest = self.slowest.max(other.slowest);
    }

    /// Runs in which nothing happened would prove nothing.
    pub(crate) fn expect_everything_happened(&self, runs: u64) -> Result<(), String> {
        let happened = [
            ("guards", self.guards),
            ("holds", self.holds),
            ("alerts of the budget", self.budgets),
            ("kills", self.kills),
            ("refused operations", self.refused),
            ("cycles", self.cycles),
            ("prunes", self.pruned),
            ("resurrections", self.resurrected),
        ];
        match happened.iter().find(|(_, count)| *count == 0) {
            Some((name, _)) if runs >= 20 => Err(format!("there were no {name}")),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10}", "truth")?;
        for state in State::ALL {
            write!(f, "{:>12}", state.name())?;
        }
        writeln!(f, "{:>12}", "were GONE")?;
        for truth in Truth::ALL {
            write!(f, "{:<10}", format!("{truth:?}"))?;
            for count in self.counts[truth as usize] {
                write!(f, "{count:>12}")?;
            }
            writeln!(f, "{:>12}", self.were_gone[truth as usize])?;
        }
        writeln!(
            f,
            "{} false prunes, {} prunes, {} resurrected; found after {:.1} days at most",
            self.false_prunes,
            self.pruned,
            self.resurrected,
            self.slowest as f64 / DAY as f64
        )?;
        write!(
            f,
            "{} requests, {} changes, {} cycles with {} URLs; {} notices: {} of the own network, {} holds, {} of the budget; {} kills, {} \
             operations refused by a full disk",
            self.requests,
            self.events,
            self.cycles,
            self.reconciled,
            self.notices,
            self.guards,
            self.holds,
            self.budgets,
            self.kills,
            self.refused
        )
    }
}

/// The last changes of a URL, in words.
fn history(url: &str, store: &mut Sqlite) -> Result<String, StoreError> {
    let detail = store.show(url)?;
    let events = detail.map(|detail| detail.events).unwrap_or_default();
    let texts = events.iter().map(|event| {
        let (at, from, to) = (event.at, event.from.name(), event.to.name());
        format!("{at:.0} {from} -> {to} ({})", event.why)
    });
    Ok(texts.collect::<Vec<_>>().join(", "))
}

/// Some URLs in doubt that were due at this time.
fn waiting(at: Timestamp, store: &mut Sqlite) -> Result<String, StoreError> {
    let mut text = String::new();
    for ready in store.ready(Lanes::Doubt, at, &HashSet::new(), 3)? {
        let root = ready.host.root;
        for due in store.due(ready.host.id, Lane::Doubt, None, at, 2)? {
            let (state, since) = (due.life.state(), due.id.due);
            text.push_str(&format!("{root} {} {state:?} since {since}; ", due.url));
        }
    }
    Ok(text)
}

const MOST_FAULTS: usize = 20;

/// So many URLs a day may be pruned at least.
pub(crate) const LEAST_BUDGET: i64 = 10;

/// As many cycles as there are in half an hour can wait for hosts that are parked or cannot be reached.
const MOST_IDLE_CYCLES: u32 = 60;
