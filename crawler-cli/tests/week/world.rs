//! A week: URLs are asked when they are due, and the guards see every verdict.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::time::Duration;

use crawler_cli::check::guard::{
    FlipStep, Guard, HostFlip, OwnNetwork, PruneBudget, Reach, Round, Switch,
};
use crawler_cli::check::life::{
    Cleared, Context, Decision, Negative, Profile, Record, Rules, State, Transition,
};
use crawler_cli::check::{Class, Verdict};
use crawler_cli::crawl::random::Random;
use jiff::Timestamp;

use crate::draw::{DAY, Draw, MINUTE};
use crate::plan::{Plan, Truth};

/// Everything that runs.
pub(crate) struct World<'a> {
    plan: &'a Plan,
    rules: Rules,
    now: i64,
    draw: Draw,
    random: Random,
    /// When, a number that makes the order definite, and what.
    jobs: BinaryHeap<Reverse<(i64, u64, Job)>>,
    number: u64,
    urls: Vec<Url>,
    hosts: Vec<Host>,
    own: OwnNetwork<usize>,
    budget: PruneBudget<usize>,
    /// Failures of the last minute, with the records before them: void if the own network turns out to fail.
    look_back: VecDeque<(i64, usize, Record, Late)>,
    matrix: Matrix,
    faults: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Job {
    /// A URL is due, unless it has got another due time since.
    Ask(usize, u32),
    Sample(usize),
    EndHold(usize),
    Round,
    AskAll,
}

#[derive(Default)]
struct Url {
    record: Record,
    /// Counts due times.
    version: u32,
    was_gone: bool,
    late: Late,
}

/// When a URL that is gone must have been found.
#[derive(Clone, Default)]
struct Late {
    /// When the evidence that counts began: the first negative verdict, or the end of the last hold.
    from: Option<i64>,
    /// Time that was lost to random failures.
    lost: i64,
    /// The longest span that the host's history asked for.
    span: Duration,
}

#[derive(Default)]
struct Host {
    flip: HostFlip,
    cleared: Cleared,
    has_answered: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, seed: u64) -> Self {
        let mut world = Self {
            plan,
            rules: Profile::Default.rules(),
            now: 0,
            draw: Draw(Random::new(!seed)),
            random: Random::new(seed ^ 0xFACE),
            jobs: BinaryHeap::new(),
            number: 0,
            urls: plan.urls.iter().map(|_| Url::default()).collect(),
            hosts: plan.hosts.iter().map(|_| Host::default()).collect(),
            own: OwnNetwork::default(),
            budget: PruneBudget::default(),
            look_back: VecDeque::new(),
            matrix: Matrix::default(),
            faults: Vec::new(),
        };
        for url in 0..plan.urls.len() {
            let at = world.draw.time(0, 10 * MINUTE);
            world.ask_at(at, url);
        }
        for &at in &plan.rechecks {
            world.push(at, Job::AskAll);
        }
        world
    }

    pub(crate) fn run(mut self) -> (Matrix, Vec<String>) {
        while let Some(Reverse((at, _, job))) = self.jobs.pop()
            && at < END
        {
            self.now = at;
            match job {
                Job::Ask(url, version) if version == self.urls[url].version => self.ask(url),
                Job::Ask(..) => {}
                Job::Sample(host) => self.sample(host),
                Job::EndHold(host) => {
                    let step = self.hosts[host].flip.handle_time(moment(at));
                    self.take_step(host, step);
                }
                Job::Round => self.ask_round(),
                Job::AskAll => self.ask_all(),
            }
        }
        self.judge();
        (self.matrix, self.faults)
    }

    fn push(&mut self, at: i64, job: Job) {
        self.number += 1;
        self.jobs.push(Reverse((at, self.number, job)));
    }

    fn ask_at(&mut self, at: i64, url: usize) {
        self.urls[url].version += 1;
        self.push(at, Job::Ask(url, self.urls[url].version));
    }

    fn ask_all(&mut self) {
        for url in 0..self.urls.len() {
            let at = self.now + self.draw.time(0, 5 * MINUTE);
            self.ask_at(at, url);
        }
    }

    fn ask(&mut self, url: usize) {
        if self.own.is_on() {
            return self.ask_at(self.now + MINUTE, url);
        }
        let (now, host) = (moment(self.now), self.plan.urls[url].host);
        let answered = self.plan.answer(url, self.now, self.draw.luck());
        let class = answered.0.class();
        if class != Class::Ok {
            let Url { record, late, .. } = &self.urls[url];
            let kept = (self.now, url, record.clone(), late.clone());
            self.look_back.push_back(kept);
            while self
                .look_back
                .front()
                .is_some_and(|(at, ..)| *at < self.now - 2 * MINUTE)
            {
                self.look_back.pop_front();
            }
        }
        if let Some(reach) = Reach::of(answered.0) {
            let has_answered = self.hosts[host].has_answered;
            self.hosts[host].has_answered |= reach == Reach::Answered;
            if let Some(Switch::On(_)) = self.own.handle_host(now, &host, reach, has_answered) {
                return self.void();
            }
        }
        let before = self.urls[url].record.state();
        let step = self.hosts[host].flip.handle_verdict(now, before, class);
        self.take_step(host, step);
        let due = self.decide(url, answered, before);
        self.ask_at(due, url);
    }

    /// A verdict goes into the record; returns when the URL is due.
    fn decide(&mut self, url: usize, answered: (Verdict, Option<u16>), before: State) -> i64 {
        let now = moment(self.now);
        let host = &self.hosts[self.plan.urls[url].host];
        let last_at = self.urls[url].record.last_at();
        let context = Context {
            is_control_fine: true,
            do_resolvers_agree: true,
            guard: host.flip.held(),
            stopped: self.own.stops().within(last_at, now) + host.flip.stops().within(last_at, now),
            longest_cleared: host.cleared.longest(now),
        };
        let Url { record, late, .. } = &mut self.urls[url];
        let decision = self
            .rules
            .decide(now, record, answered, &context, &mut self.random);
        late.span = late.span.max(2 * context.longest_cleared);
        match answered.0.class() {
            Class::Negative if context.guard.is_none() && before != State::Quarantined => {
                late.from.get_or_insert(self.now);
            }
            Class::Negative if context.guard.is_none() => late.from = Some(self.now),
            Class::Network => late.lost += seconds(decision.due) - self.now,
            _ => {}
        }
        self.note(url, &decision);
        match decision.is_to_prune {
            true => self.prune(url),
            false => seconds(decision.due),
        }
    }

    fn note(&mut self, url: usize, decision: &Decision) {
        let host = self.plan.urls[url].host;
        if let Some(episode) = decision.cleared {
            self.hosts[host].cleared.note(moment(self.now), episode);
        }
        let Some(Transition { from, to, .. }) = decision.transition else {
            return;
        };
        let truth = self.plan.urls[url].truth;
        if to == State::Alive {
            self.urls[url].late = Late::default();
        }
        match to {
            State::Gone => {
                self.urls[url].was_gone = true;
                match truth {
                    Truth::NineDays => {}
                    truth if truth.is_gone() => self.check_time(url, truth),
                    truth => self.fault(url, &format!("{truth:?} is gone")),
                }
            }
            State::Pruned if truth != Truth::Gone410 => {
                self.fault(url, &format!("{truth:?} is pruned"));
            }
            State::Alive if truth.is_gone() && matches!(from, State::Gone | State::Pruned) => {
                self.fault(url, "gone and resurrected");
            }
            _ => {}
        }
    }

    /// Found within its span and one more check.
    fn check_time(&mut self, url: usize, truth: Truth) {
        let kind = match truth {
            Truth::Gone410 => Negative::Gone,
            Truth::Gone404 => Negative::NotFound,
            _ => Negative::Nxdomain,
        };
        // A host that was down may have added another kind of evidence.
        let is_mixed = self.plan.was_down(self.plan.urls[url].host);
        let (mut span, mut cycle) = (self.urls[url].late.span, Duration::ZERO);
        for kind in [kind]
            .into_iter()
            .chain(is_mixed.then_some(Negative::NotFound))
        {
            let steps = self.rules.recheck(kind).steps();
            span = span.max(self.rules.gone(kind).span);
            cycle = cycle.max(steps.iter().copied().max().unwrap_or_default());
        }
        let host = &self.hosts[self.plan.urls[url].host];
        let late = &self.urls[url].late;
        let from = late.from.unwrap_or(self.now);
        let stopped = self
            .own
            .stops()
            .within(Some(moment(from)), moment(self.now))
            + host
                .flip
                .stops()
                .within(Some(moment(from)), moment(self.now));
        let limit = (span + cycle.mul_f64(1.2) + stopped).as_secs() as i64 + late.lost + MINUTE;
        if self.now - from > limit {
            let days = (self.now - from) as f64 / DAY as f64;
            let limit = limit as f64 / DAY as f64;
            self.fault(
                url,
                &format!("{truth:?} found after {days:.1} days, limit {limit:.1}"),
            );
        }
    }

    fn prune(&mut self, url: usize) -> i64 {
        let (now, host) = (moment(self.now), self.plan.urls[url].host);
        let urls = self.plan.urls.len() as u64;
        let permitted = self
            .budget
            .take(now, &host, self.plan.hosts[host].len() as u64, urls);
        let record = &mut self.urls[url].record;
        let decision = self.rules.prune(now, record, permitted, &mut self.random);
        self.matrix.waited += u64::from(permitted.is_err());
        self.note(url, &decision);
        seconds(decision.due)
    }

    /// The own network fails: what was taken lately never was.
    fn void(&mut self) {
        self.matrix.cuts += 1;
        let since = self.own.void_since().map_or(self.now, seconds);
        for (at, url, record, late) in std::mem::take(&mut self.look_back).into_iter().rev() {
            if at >= since {
                self.urls[url].record = record;
                self.urls[url].late = late;
                self.ask_at(self.now + MINUTE, url);
            }
        }
        self.push(self.now + 1, Job::Round);
    }

    fn ask_round(&mut self) {
        let now = moment(self.now);
        if let Some(at) = self.own.round_at(now).filter(|&at| at > now) {
            return self.push(seconds(at).max(self.now + 1), Job::Round);
        }
        let Round::Hosts(hosts) = self.own.round() else {
            return;
        };
        let answered = if self.plan.is_cut(self.now) {
            0
        } else {
            hosts.len()
        };
        if self.own.handle_round(now, answered, hosts.len()).is_none() {
            self.push(self.now + 1, Job::Round);
        }
    }

    fn take_step(&mut self, host: usize, step: Option<FlipStep>) {
        let now = moment(self.now);
        match step {
            None => {}
            Some(FlipStep::AskSiblings(count)) => {
                let alive = |&url: &usize| self.urls[url].record.state().is_alive();
                let siblings: Vec<_> = self.plan.hosts[host].clone().filter(alive).collect();
                for url in self.some_of(siblings, count as usize) {
                    let at = self.now + 1 + self.draw.time(0, MINUTE);
                    self.ask_at(at, url);
                }
            }
            Some(FlipStep::Hold) => {
                self.matrix.holds += 1;
                let ends_at = self.hosts[host].flip.ends_at().map_or(END, seconds);
                for url in self.plan.hosts[host].clone() {
                    if self
                        .rules
                        .hold(now, &mut self.urls[url].record, Guard::HostFlip)
                        .is_some()
                    {
                        self.ask_at(ends_at, url);
                    }
                }
                self.push(ends_at, Job::EndHold(host));
                self.push_sample(host);
            }
            Some(FlipStep::Release) => {
                for url in self.quarantined(host) {
                    self.rules.release(now, &mut self.urls[url].record);
                    self.urls[url].late.from = Some(self.now);
                    self.ask_at(self.now, url);
                }
            }
        }
    }

    fn push_sample(&mut self, host: usize) {
        if let Some(at) = self.hosts[host].flip.sample_at() {
            self.push(seconds(at), Job::Sample(host));
        }
    }

    fn sample(&mut self, host: usize) {
        let now = moment(self.now);
        let is_due = self.hosts[host]
            .flip
            .sample_at()
            .is_some_and(|at| at <= now);
        if !is_due {
            return;
        }
        if self.own.is_on() || self.plan.is_cut(self.now) {
            return self.push(self.now + MINUTE, Job::Sample(host));
        }
        let held = self.quarantined(host);
        let size = self.hosts[host].flip.sample_size(held.len() as u64) as usize;
        let sample = self.some_of(held, size);
        let (mut alive, asked) = (0, sample.len() as u64);
        for url in sample {
            let answered = self.plan.answer(url, self.now, self.draw.luck());
            alive += u64::from(answered.0 == Verdict::Ok);
            let due = self.decide(url, answered, State::Quarantined);
            self.ask_at(due, url);
        }
        let step = self.hosts[host].flip.handle_sample(now, alive, asked);
        self.take_step(host, step);
        self.push_sample(host);
    }

    fn quarantined(&self, host: usize) -> Vec<usize> {
        let is_held = |&url: &usize| self.urls[url].record.state() == State::Quarantined;
        self.plan.hosts[host].clone().filter(is_held).collect()
    }

    fn some_of(&mut self, mut all: Vec<usize>, count: usize) -> Vec<usize> {
        let count = count.min(all.len());
        for place in 0..count {
            let other = place + self.draw.below(all.len() - place);
            all.swap(place, other);
        }
        all.truncate(count);
        all
    }

    /// The end: every URL is what it should be.
    fn judge(&mut self) {
        for url in 0..self.urls.len() {
            let truth = self.plan.urls[url].truth;
            let Url {
                record, was_gone, ..
            } = &self.urls[url];
            let (state, was_gone) = (record.state(), *was_gone);
            self.matrix.counts[truth as usize][usize::from(state.code())] += 1;
            self.matrix.were_gone[truth as usize] += u64::from(was_gone);
            let is_right = match truth {
                Truth::Gone410 => state == State::Pruned,
                Truth::Gone404 | Truth::GoneName => state == State::Gone,
                _ => matches!(state, State::Alive | State::Unreachable),
            };
            if !is_right {
                self.fault(url, &format!("{truth:?} ends as {}", state.name()));
            }
        }
    }

    fn fault(&mut self, url: usize, what: &str) {
        let day = self.now as f64 / DAY as f64;
        self.faults.push(format!("day {day:.2}, URL {url}: {what}"));
    }
}

/// What is true, and what was found.
#[derive(Default)]
pub(crate) struct Matrix {
    counts: [[u64; State::ALL.len()]; Truth::ALL.len()],
    were_gone: [u64; Truth::ALL.len()],
    holds: u64,
    cuts: u64,
    waited: u64,
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
        self.holds += other.holds;
        self.cuts += other.cuts;
        self.waited += other.waited;
    }

    /// A week in which no guard went on would prove nothing.
    pub(crate) fn expect_everything_happened(&self, seeds: u64) -> Result<(), String> {
        let is_quiet = self.holds == 0 || self.cuts == 0;
        match seeds >= 10 && is_quiet {
            true => Err(format!(
                "{} holds, {} cuts were found",
                self.holds, self.cuts
            )),
            false => Ok(()),
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
        let is_false = |truth: &&Truth| **truth != Truth::Gone410;
        let pruned =
            |truth: &Truth| self.counts[*truth as usize][usize::from(State::Pruned.code())];
        let false_prunes: u64 = Truth::ALL.iter().filter(is_false).map(pruned).sum();
        write!(
            f,
            "{false_prunes} false prunes, {} holds, {} cuts, {} waits for the budget",
            self.holds, self.cuts, self.waited
        )
    }
}

fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(BEGIN + seconds).unwrap()
}

fn seconds(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(1000) + i64::from(at.as_millisecond() % 1000 != 0) - BEGIN
}

/// 2026-01-01.
const BEGIN: i64 = 1_767_225_600;

const END: i64 = 120 * DAY;
