//! What a verdict does to a URL: its next state, and when it is asked again.

use std::time::Duration;

use jiff::Timestamp;

use super::evidence::{Evidence, Negative, Negatives};
use super::record::{Answer, Record};
use super::rules::Rules;
use super::schedule::{SHARE_OF_INTERVALS, SHARE_OF_STEPS, around, within};
use super::states::{Flag, PruneWait, State, Transition, Why};
use super::time::{after, between, to_millis};
use crate::guard::Guard;
use crate::{Cause, Class, Verdict};
use plain::random::Random;

/// What else is known at the time of a verdict.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Context {
    /// Whether the host is in order: its control request was answered with anything below 500 but 429. Without,
    /// 404 and 410 do not count towards "gone".
    pub is_control_fine: bool,
    /// The guard that is on for this URL, and when it ends at the latest.
    pub guard: Option<Held>,
    /// For how long a guard was on for this URL since it was asked last: evidence does not age in that time.
    pub stopped: Duration,
    /// The longest negative episode on the host that was cleared: [`Cleared::longest`](super::Cleared::longest).
    pub longest_cleared: Duration,
}

/// A guard that is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Held {
    /// Which guard.
    pub by: Guard,
    /// When a URL that is held is due. The URLs are due earlier if the guard ends earlier.
    pub until: Timestamp,
}

/// What was decided about a URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// The change of state, if there is one.
    pub transition: Option<Transition>,
    /// When the URL is to be asked again.
    pub due: Timestamp,
    /// Whether the URL is to be pruned, if the budget allows: ask the budget, then call [`Rules::prune`].
    pub is_to_prune: bool,
    /// The length of the negative episode that this verdict ended, for [`Cleared::note`](super::Cleared::note).
    pub cleared: Option<Duration>,
}

impl Rules {
    /// Takes a verdict, with the status of the answer if there was one.
    ///
    /// A verdict that was taken while a guard was on counts nothing. If its URL is suspect or broken, or if the verdict
    /// is negative or soft and the guard is [`Guard::HostFlip`], the URL is quarantined.
    pub fn decide(
        &self,
        now: Timestamp,
        record: &mut Record,
        (verdict, status): (Verdict, Option<u16>),
        context: &Context,
        random: &mut Random,
    ) -> Decision {
        let now = to_millis(now);
        let from = record.state;
        record.skip(context.stopped);
        let verdict = self.counted(verdict);
        let mut step = Step {
            rules: self,
            now,
            from,
            record,
            context,
            random,
            cleared: None,
        };
        let due = step.take(verdict, status);
        let cleared = step.cleared;
        record.last_at = Some(now);
        let why = record.held_by.map_or(Why::Verdict(verdict), Why::Held);
        Decision {
            transition: self.transition(now, record, from, why),
            due,
            is_to_prune: context.guard.is_none() && self.is_to_prune(now, record, verdict),
            cleared,
        }
    }

    /// Stops the clock of a URL whose guard went on: what is suspect or broken is quarantined. The URL is due when the
    /// guard ends.
    pub fn hold(&self, now: Timestamp, record: &mut Record, guard: Guard) -> Option<Transition> {
        let (now, from) = (to_millis(now), record.state);
        if matches!(from, State::Suspect | State::Broken) {
            record.quarantine(guard);
        }
        self.transition(now, record, from, Why::Held(guard))
    }

    /// Ends the quarantine of a URL: it is suspect, and due now. What the evidence is worth depends on the guard: after
    /// a flip of the host, the URL counts as bad from now on; after a failure of the own network, the evidence goes on.
    pub fn release(&self, now: Timestamp, record: &mut Record) -> Option<Transition> {
        let (now, from) = (to_millis(now), record.state);
        record.release(now);
        self.transition(now, record, from, Why::Released)
    }

    /// Ends the quarantine of a URL because an operator says that the negative answers are true: it is suspect, due now,
    /// and its evidence goes on as if there had been no guard.
    pub fn confirm(&self, now: Timestamp, record: &mut Record) -> Option<Transition> {
        let (now, from) = (to_millis(now), record.state);
        record.held_by = record.held_by.map(|_| Guard::OwnNetwork);
        record.release(now);
        self.transition(now, record, from, Why::Released)
    }

    /// Prunes a URL that is gone, after a decision with `is_to_prune`. Without the budget's permission, the URL waits, and
    /// is asked again when the budget has its next day, which is `wait` from now.
    pub fn prune(
        &self,
        now: Timestamp,
        record: &mut Record,
        permitted: Result<(), Duration>,
        random: &mut Random,
    ) -> Decision {
        let now = to_millis(now);
        let from = record.state;
        let due = match permitted {
            Ok(()) => {
                record.state = State::Pruned;
                record.prune_waits = None;
                record.step = 0;
                let interval = self.gone_interval.of_gone(0);
                around(now, interval, SHARE_OF_INTERVALS, random)
            }
            Err(wait) => {
                record.prune_waits = Some(PruneWait::Budget);
                within(now, wait, wait.saturating_add(wait / 5), random)
            }
        };
        Decision {
            transition: self.transition(now, record, from, Why::GraceOver),
            due,
            is_to_prune: false,
            cleared: None,
        }
    }

    /// The verdict as the profile sees it.
    fn counted(&self, verdict: Verdict) -> Verdict {
        let is_alive = |cause| Negative::of(cause).is_some_and(|kind| self.alive_on.contains(kind));
        match verdict {
            Verdict::Failed(cause) if is_alive(cause) => Verdict::Ok,
            Verdict::Void(Some(cause)) if is_alive(cause) => Verdict::Void(None),
            verdict => verdict,
        }
    }

    /// Gone, its grace over, and negative again in a way that prunes.
    fn is_to_prune(&self, now: Timestamp, record: &Record, verdict: Verdict) -> bool {
        let Verdict::Failed(cause) = verdict else {
            return false;
        };
        let prunes = Negative::of(cause).is_some_and(|kind| self.prune_on.contains(kind));
        let is_over = |gone_at| between(gone_at, now) >= self.grace;
        record.state == State::Gone
            && record.prune_waits.is_some()
            && prunes
            && record.gone_at.is_some_and(is_over)
    }

    fn transition(
        &self,
        at: Timestamp,
        record: &Record,
        from: State,
        why: Why,
    ) -> Option<Transition> {
        (record.state != from).then(|| Transition {
            at,
            from,
            to: record.state,
            why,
            is_damped: record.is_flapping(at, self),
        })
    }
}

/// One verdict on its way into a record. The methods return when the URL is due.
struct Step<'a> {
    rules: &'a Rules,
    now: Timestamp,
    from: State,
    record: &'a mut Record,
    context: &'a Context,
    random: &'a mut Random,
    cleared: Option<Duration>,
}

impl Step<'_> {
    /// A good answer of a host that is held is a good answer. While the own network fails, nobody knows who answers.
    fn take(&mut self, verdict: Verdict, status: Option<u16>) -> Timestamp {
        let unknown = Held {
            by: Guard::OwnNetwork,
            until: self.now,
        };
        match (verdict, self.context.guard) {
            (Verdict::Void(cause), guard) => self.take_held(cause, guard.unwrap_or(unknown)),
            (Verdict::Failed(cause), Some(held)) => self.take_held(Some(cause), held),
            (Verdict::Ok, Some(held)) if held.by == Guard::OwnNetwork => self.take_held(None, held),
            (Verdict::Ok, _) => {
                self.count(verdict, status);
                self.take_ok()
            }
            (Verdict::Failed(cause), None) => {
                self.count(verdict, status);
                self.take_failure(cause)
            }
        }
    }

    fn take_held(&mut self, cause: Option<Cause>, held: Held) -> Timestamp {
        let is_claim = cause.is_some_and(is_claim) && held.by == Guard::HostFlip;
        let is_held = match self.record.state {
            State::Suspect | State::Broken | State::Quarantined => true,
            State::New | State::Alive | State::Unreachable => is_claim,
            State::Gone | State::Pruned => false,
        };
        let until = held.until.max(self.now);
        if is_held {
            self.record.quarantine(held.by);
            return until;
        }
        // Only what is held is asked when the guard ends. A hold can last for days.
        let own = match self.record.state {
            State::Gone | State::Pruned => self.rules.recheck_410.step(u32::MAX),
            _ => self.rules.recheck_net.step(0),
        };
        around(self.now, own, SHARE_OF_STEPS, self.random).min(until)
    }

    /// A verdict that counts ends the quarantine.
    fn count(&mut self, verdict: Verdict, status: Option<u16>) {
        self.record.release(self.now);
        self.record.answers.push(Answer::new(verdict, status));
    }

    fn take_ok(&mut self) -> Timestamp {
        self.record.last_ok = Some(self.now);
        self.record.flag = None;
        self.record.failures = 0;
        let intervals = &self.rules.alive_interval;
        match self.record.state {
            State::New => {
                self.record.state = State::Alive;
                self.record.interval = intervals.first;
                // The URLs of a host, all asked for the first time at once, are spread over the interval.
                let (shortest, longest) = (intervals.after_recovery(), intervals.first);
                within(self.now, shortest, longest, self.random)
            }
            State::Alive => {
                self.record.interval = intervals.grown(self.record.interval);
                self.after_interval()
            }
            State::Gone | State::Pruned => self.take_ok_of_gone(),
            State::Suspect | State::Broken | State::Unreachable | State::Quarantined => {
                self.recover()
            }
        }
    }

    fn take_ok_of_gone(&mut self) -> Timestamp {
        let needed = self.rules.resurrect;
        let record = &mut *self.record;
        let counts = record
            .ok_at
            .is_none_or(|at| between(at, self.now) >= needed.gap);
        if counts {
            record.oks = record.oks.saturating_add(1);
            record.ok_at = Some(self.now);
        }
        if record.oks >= needed.count {
            return self.recover();
        }
        let earliest = record.ok_at.map_or(self.now, |at| after(at, needed.gap));
        within(earliest, Duration::ZERO, needed.gap / 5, self.random)
    }

    /// Everything that spoke against the URL is forgotten.
    fn recover(&mut self) -> Timestamp {
        let record = &mut *self.record;
        let negatives = &record.evidence.negatives;
        self.cleared = negatives.first.map(|first| between(first, self.now));
        record.evidence = Evidence::default();
        (record.gone_at, record.prune_waits) = (None, None);
        (record.oks, record.ok_at) = (0, None);
        (record.step, record.state) = (0, State::Alive);
        record.interval = self.rules.alive_interval.after_recovery();
        // What a guard held was not the fault of the URL.
        if self.from != State::Quarantined {
            record.note_return(self.now);
        }
        self.after_interval()
    }

    fn take_failure(&mut self, cause: Cause) -> Timestamp {
        match (Negative::of(cause), cause.class()) {
            (Some(kind), _) => self.take_claim(Some(kind)),
            (None, Class::Soft) => self.take_claim(None),
            (None, Class::Network) => self.take_network_failure(),
            (None, _) => self.take_unknown(cause),
        }
    }

    /// A negative verdict, or a soft one.
    fn take_claim(&mut self, kind: Option<Negative>) -> Timestamp {
        let record = &mut *self.record;
        (record.flag, record.failures) = (None, 0);
        record.evidence.note_claim(self.now);
        let counted = kind.filter(|kind| match kind {
            // The name servers of the domain say so.
            Negative::Nxdomain => true,
            Negative::Gone | Negative::NotFound => self.context.is_control_fine,
        });
        if let Some(kind) = counted {
            record
                .evidence
                .note_negative(self.now, kind, self.rules.gap());
        }
        let state = self.state_after_claim(counted.is_some());
        let record = &mut *self.record;
        let goes_on =
            (state == record.state || state == State::Broken) && record.evidence.claims.count > 1;
        record.step = if goes_on {
            record.step.saturating_add(1)
        } else {
            0
        };
        if state == State::Gone && (record.state != State::Gone || record.oks > 0) {
            record.gone_at = Some(self.now);
        }
        (record.oks, record.ok_at) = (0, None);
        record.state = state;
        match state {
            State::Gone => self.after_gone(kind),
            State::Pruned => self.after_gone_interval(),
            _ => self.after_claim(kind),
        }
    }

    fn state_after_claim(&self, is_counted: bool) -> State {
        let evidence = &self.record.evidence;
        let longest_cleared = self.context.longest_cleared;
        match self.record.state {
            State::Gone => State::Gone,
            State::Pruned => State::Pruned,
            _ if is_counted && self.rules.is_gone(evidence, self.now, longest_cleared) => {
                State::Gone
            }
            State::Broken => State::Broken,
            _ if self.rules.is_broken(evidence, self.now) => State::Broken,
            _ => State::Suspect,
        }
    }

    fn take_network_failure(&mut self) -> Timestamp {
        let record = &mut *self.record;
        record.flag = None;
        match record.state {
            State::Pruned => return self.after_gone_interval(),
            State::Gone => {}
            State::Broken => record.evidence.note_bad(self.now),
            State::Suspect if record.evidence.claims.count > 0 => {
                record.evidence.note_bad(self.now);
            }
            _ => {
                record.evidence.note_bad(self.now);
                record.state = State::Unreachable;
            }
        }
        self.after_failure()
    }

    fn take_unknown(&mut self, cause: Cause) -> Timestamp {
        let flag = match cause {
            Cause::Throttled => Flag::Throttled,
            _ => Flag::Blocked,
        };
        let since = match self.record.flag {
            Some((same, since)) if same == flag => since,
            _ => self.now,
        };
        self.record.flag = Some((flag, since));
        match (flag, self.record.state) {
            (Flag::Throttled, _) | (Flag::Blocked, State::Unreachable) => self.after_failure(),
            (_, State::New | State::Alive) => self.after_interval(),
            (_, State::Gone | State::Pruned) => self.after_gone_interval(),
            (_, State::Suspect | State::Broken | State::Quarantined) => self.after_claim(None),
        }
    }

    fn after_interval(&mut self) -> Timestamp {
        let interval = match self.record.interval {
            Duration::ZERO => self.rules.alive_interval.first,
            interval => interval,
        };
        around(self.now, interval, SHARE_OF_INTERVALS, self.random)
    }

    fn after_gone_interval(&mut self) -> Timestamp {
        let interval = self.rules.gone_interval.of_gone(self.record.step);
        around(self.now, interval, SHARE_OF_INTERVALS, self.random)
    }

    /// The end of the grace, if that comes first.
    fn after_gone(&mut self, kind: Option<Negative>) -> Timestamp {
        let due = self.after_gone_interval();
        let prunes = kind.is_some_and(|kind| self.rules.prune_on.contains(kind));
        let record = &mut *self.record;
        if !prunes {
            record.prune_waits = None;
            return due;
        }
        record.prune_waits = record.prune_waits.or(Some(PruneWait::Grace));
        let over = after(record.gone_at.unwrap_or(self.now), self.rules.grace);
        if over <= self.now {
            return due;
        }
        due.min(within(
            over,
            Duration::ZERO,
            self.rules.grace / 10,
            self.random,
        ))
    }

    /// The slowest of the ladders of all kinds of evidence.
    fn after_claim(&mut self, kind: Option<Negative>) -> Timestamp {
        let (rules, record) = (self.rules, &*self.record);
        let kinds = kind
            .into_iter()
            .fold(record.evidence.kinds, Negatives::with);
        let step = kinds
            .iter()
            .map(|kind| rules.recheck(kind).step(record.step))
            .max()
            .unwrap_or_else(|| rules.recheck_404.step(record.step));
        let due = around(self.now, step, SHARE_OF_STEPS, self.random);
        match kinds.contains(Negative::NotFound) {
            true => self.in_time_for_gaps(due, after(self.now, step.saturating_add(step / 5))),
            false => due,
        }
    }

    /// A check that comes a little too early to be independent waits until it is. The second independent verdict comes
    /// within the span, so that the third comes one check later at most.
    fn in_time_for_gaps(&self, due: Timestamp, latest: Timestamp) -> Timestamp {
        let (rules, evidence) = (self.rules, &self.record.evidence);
        let (Some(from), Some(first)) = (evidence.gap_from, evidence.negatives.first) else {
            return due;
        };
        let independent = after(from, rules.gap());
        let due = if independent <= latest {
            due.max(independent)
        } else {
            due
        };
        let in_span = after(first, rules.gone_404.span);
        match evidence.gaps == 0 && in_span > self.now {
            true => due.min(in_span),
            false => due,
        }
    }

    fn after_failure(&mut self) -> Timestamp {
        let step = self.rules.recheck_net.step_of_failure(self.record.failures);
        self.record.failures = self.record.failures.saturating_add(1);
        around(self.now, step, SHARE_OF_STEPS, self.random)
    }
}

impl Record {
    fn quarantine(&mut self, guard: Guard) {
        // The stricter of two guards decides what the evidence is worth afterwards.
        self.held_by = match self.held_by {
            Some(Guard::HostFlip) => Some(Guard::HostFlip),
            _ => Some(guard),
        };
        self.state = State::Quarantined;
    }

    fn release(&mut self, now: Timestamp) {
        if self.state != State::Quarantined {
            return;
        }
        self.state = State::Suspect;
        if self.held_by.take() == Some(Guard::HostFlip) {
            self.evidence = Evidence::from_now(now);
            self.step = 0;
        }
    }

    /// Takes out a time in which a guard was on.
    fn skip(&mut self, time: Duration) {
        self.evidence.skip(time);
        self.gone_at = self.gone_at.map(|at| after(at, time));
    }
}

/// Whether the cause is negative or soft.
fn is_claim(cause: Cause) -> bool {
    matches!(cause.class(), Class::Negative | Class::Soft)
}
