//! What becomes of outcomes.

use std::time::Duration;

use courser::net::Net;
use jiff::Timestamp;
use url::Url;

use super::Watcher;
use super::asking::Asked;
use super::holds::Counted;
use super::keeping::{Batch, Stored};
use super::network::Sight;
use check::task::Outcome;
use crawl::clock::Clock;
use plain::origin::same_host;
use store::{Control, DueUrl, HostId, Judgement, Lane, StoreHandle};
use verdict::guard::{FlipStep, LocalSign, Reach};
use verdict::life::time::after;
use verdict::life::{Context, State};
use verdict::{Cause, Class, Verdict};

/// From the works.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Takes what was answered.
    pub(super) fn collect(&mut self, now: Timestamp) {
        let (outcomes, signs) = self.asking.collect(now);
        for sign in signs {
            self.handle_sign(now, sign);
        }
        let mut hosts: Vec<HostId> = Vec::new();
        for (asked, outcome) in outcomes {
            match asked {
                Asked::Canary => self.network.handle_canary(&outcome),
                Asked::Control(host) => self.handle_control(now, host, &outcome),
                Asked::Url(due) => {
                    let host = due.id.host;
                    if hosts.last() != Some(&host) {
                        hosts.push(host);
                    }
                    self.handle_outcome(now, due, outcome);
                }
            }
        }
        for believed in self.network.believe(now) {
            let (due, outcome) = believed;
            let host = due.id.host;
            if hosts.last() != Some(&host) {
                hosts.push(host);
            }
            self.weigh(now, due, outcome);
        }
        for host in hosts {
            self.fill_host(now, host);
        }
        self.activate();
    }

    fn handle_sign(&mut self, now: Timestamp, sign: LocalSign) {
        if sign == LocalSign::TooManyFiles {
            let share = self.gate.shortage.map_or(1.0, |(_, share)| share);
            let share = (share / 2.0).max(LEAST_SHARE);
            self.asking.set_share(share);
            self.gate.shortage = Some((after(now, AFTER_SHORTAGE), share));
        }
        if let Some(again) = self.network.handle_sign(now, sign) {
            self.network_went_on(now, again);
        }
    }

    fn handle_outcome(&mut self, now: Timestamp, due: DueUrl, outcome: Outcome) {
        let host = due.id.host;
        let verdict = outcome.answer.verdict;
        let has_failed = Reach::of(verdict) == Some(Reach::Failed);
        let is_asked = outcome.answer.attempts > 0;
        self.network.note_round(due.id.url, &outcome);
        if verdict == Verdict::Failed(Cause::Throttled) {
            self.handle_throttled(now, host, &outcome);
            if !is_asked {
                // Not asked: the URL stays due as it is.
                return self.asking.release(due.id.url);
            }
        }
        let reach = Reach::of(verdict);
        if self.time.has_stalled && has_failed {
            // The process did not run: its own time limits say nothing.
            return self.asking.put_back(due);
        }
        let answered_at = self.book.get(host).and_then(|page| page.facts.answered_at);
        if answered_at.is_none() && reach == Some(Reach::Answered) {
            self.network.note_answering();
        }
        match self
            .network
            .handle(now, due, outcome, answered_at.is_some())
        {
            Sight::Believed(due, outcome) => self.weigh(now, due, outcome),
            Sight::Held => {}
            Sight::Again(due) => {
                self.figures.guards.void.inc();
                self.asking.put_back(due);
            }
            Sight::WentOn(again) => self.network_went_on(now, again),
        }
    }

    /// The host wants no requests for a while, or a host does to which a redirect leads.
    fn handle_throttled(&mut self, now: Timestamp, host: HostId, outcome: &Outcome) {
        let Some(page) = self.book.get(host) else {
            return;
        };
        let last = outcome.answer.final_url.as_deref().map(Url::parse);
        let is_own = last.is_none_or(|url| url.is_ok_and(|url| same_host(&url, &page.root)));
        if !is_own {
            return;
        }
        match outcome.retry_after {
            Some(wait) => self.park(now, host, wait.min(LONGEST_PARK)),
            // The host was given up, and says nothing.
            None if outcome.answer.attempts == 0 => self.park(now, host, PARK),
            None => {}
        }
    }

    /// A failure or a negative answer about a URL may need more than itself to count.
    pub(super) fn weigh(&mut self, now: Timestamp, due: DueUrl, outcome: Outcome) {
        match outcome.answer.verdict {
            Verdict::Failed(Cause::Status404 | Cause::Status410) => {
                self.weigh_negative(now, due, outcome);
            }
            _ => self.decide(now, due, outcome),
        }
    }

    /// A negative answer counts only if the host works.
    fn weigh_negative(&mut self, now: Timestamp, due: DueUrl, outcome: Outcome) {
        let Some(page) = self.book.get_mut(due.id.host) else {
            return self.decide(now, due, outcome);
        };
        if Url::parse(&due.url).is_ok_and(|url| url == page.root) {
            // The URL is the control. A home page of 404 is no fault of the host.
            page.note_control(now, outcome.answer.status);
        }
        if page.control(now).is_some() || page.awaiting_control.len() >= MOST_AWAITING {
            return self.decide(now, due, outcome);
        }
        page.awaiting_control.push((due, outcome));
        if page.awaiting_control.len() == 1 {
            let (host, root) = (page.awaiting_control[0].0.id.host, page.root.clone());
            self.asking.ask_control(host, root);
        }
    }

    fn handle_control(&mut self, now: Timestamp, host: HostId, outcome: &Outcome) {
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        page.note_control(now, outcome.answer.status);
        for (due, outcome) in std::mem::take(&mut page.awaiting_control) {
            self.decide(now, due, outcome);
        }
        self.fill_host(now, host);
    }
}

impl super::book::HostPage {
    fn note_control(&mut self, now: Timestamp, status: Option<u16>) {
        self.facts.control = Some(Control { at: now, status });
        self.is_changed = true;
    }
}

/// Into the store.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// What an outcome makes of its URL.
    pub(super) fn decide(&mut self, now: Timestamp, due: DueUrl, mut outcome: Outcome) {
        let (id, before) = (due.id, due.life.state());
        if outcome.answer.verdict == Verdict::Failed(Cause::InvalidUrl)
            && !outcome.answer.redirects.is_empty()
        {
            // The URL is one. Where the server leads is the fault of the server, who may mend it.
            outcome.answer.verdict = Verdict::Failed(Cause::Protocol);
        }
        let class = outcome.answer.verdict.class();
        let Some(page) = self.book.get_mut(id.host) else {
            // The page of a host is kept while its URLs are asked.
            return self.asking.release(id.url);
        };
        let news =
            (self.failing).handle_verdict(now, (id.host, &page.root), outcome.answer.verdict);
        if let Some(news) = news {
            self.judge.tell_host(now, &page.root, &news);
        }
        let mut step = None;
        let is_sample = id.lane == Lane::Held && page.is_held();
        if let Some(flip) = &mut page.flip {
            // While a hold ends, none begins: its end would remove it.
            if !is_sample && page.ending.is_none() {
                step = flip.handle_verdict(now, before, class);
            }
            if flip.is_held() && matches!(class, Class::Negative | Class::Soft) {
                outcome.answer.verdict = Verdict::Void(outcome.answer.verdict.cause());
            }
        }
        let own_stops = self.network.stops();
        let last_at = due.life.last_at();
        let flip = page.flip.as_ref();
        let held_for = flip.map_or(Duration::ZERO, |flip| flip.stops().within(last_at, now));
        let context = Context {
            is_control_fine: page.control(now).is_some_and(Control::is_fine),
            guard: flip.and_then(|flip| flip.held()),
            stopped: own_stops.within(last_at, now).saturating_add(held_for),
            longest_cleared: page.facts.cleared().longest(now),
        };
        let judgement = self.judge.judge(now, due, outcome, &context, page);
        if std::mem::take(&mut page.is_changed) {
            self.batch.facts.push((id.host, page.facts.clone()));
        }
        let state = judgement.life.state();
        if let Some((Lane::Doubt, at)) = judgement.next {
            self.cycles.note_due(at);
        }
        self.keep(judgement);
        self.note_judged(id.lane, class, state);
        if self.judge.take_spent_news() {
            let text = "URLs wait to be pruned: the budget is spent";
            self.note(now, "budget", Some(id.host), text.to_owned());
        }
        match step {
            Some(FlipStep::AskSiblings(count)) => self.ask_siblings(id.host, id.url, count),
            Some(FlipStep::Hold) => self.hold(now, id.host),
            Some(FlipStep::Release) | None => {}
        }
        if is_sample {
            let counted = match class {
                Class::Ok => Counted::Alive,
                _ => Counted::Other,
            };
            self.count_sample(now, id.host, counted);
        }
        if self.batch.judgements.len() >= BATCH {
            self.send_batch();
        }
    }

    /// The judgement goes to the store with the next batch.
    pub(super) fn keep(&mut self, judgement: Judgement) {
        if let Some(page) = self.book.get_mut(judgement.id.host) {
            page.unstored += 1;
        }
        self.batch.judgements.push(judgement);
        self.gate.unstored += 1;
        let since = self.asking.now();
        self.gate.batch_since.get_or_insert(since);
    }

    fn note_judged(&mut self, lane: Lane, class: Class, state: State) {
        if lane == Lane::Doubt
            && let Some(current) = self.cycles.current()
        {
            current.note(class, state);
            self.figures.cycles.asked.inc();
        }
    }

    /// Sends judgements to the store, if they have waited long enough for others, or no other can come.
    pub(super) fn flush(&mut self) {
        let Some(since) = self.gate.batch_since else {
            return;
        };
        let age = self.asking.now().saturating_duration_since(since);
        if age >= super::LONGEST_BATCH || self.asking.in_flight() == 0 {
            self.send_batch();
        }
    }

    pub(super) fn send_batch(&mut self) {
        self.gate.batch_since = None;
        let batch: Batch = std::mem::take(&mut self.batch);
        if !batch.judgements.is_empty() || !batch.facts.is_empty() {
            let worker = self.holding.number();
            self.keeping.judge(batch, worker, self.asking.now());
        }
        self.figures.keeping.unstored.set(self.gate.unstored as u64);
    }

    pub(super) fn handle_stored(&mut self, batch: Stored, is_stored: bool) {
        let count = batch.urls.len();
        for (host, url) in batch.urls {
            // What was not stored is still due, and is asked again.
            self.asking.release(url);
            if let Some(page) = self.book.get_mut(host) {
                page.unstored = page.unstored.saturating_sub(1);
            }
        }
        let was_full = self.gate.unstored >= super::flow::MOST_UNSTORED;
        self.gate.unstored = self.gate.unstored.saturating_sub(count);
        self.gate.is_refill_due |= was_full;
        let keeping = &self.figures.keeping;
        keeping.unstored.set(self.gate.unstored as u64);
        if is_stored {
            let stored = (count as u64).saturating_sub(batch.stale);
            keeping.stored.inc_by(stored);
            keeping.stale.inc_by(batch.stale);
        }
        let took = self.asking.now().saturating_duration_since(batch.sent_at);
        keeping.commit.note(took);
    }
}

/// Judgements that are sent to the store together.
const BATCH: usize = 256;

/// Negative outcomes of one host that wait for its control. Further ones do not count towards "gone".
const MOST_AWAITING: usize = 1_000;

/// The pause of a host that refuses everything and does not say for how long.
const PARK: Duration = Duration::from_secs(300);

/// The longest pause that a host can ask for.
const LONGEST_PARK: Duration = Duration::from_secs(86_400);

/// After too many files were open, fewer connections are used for this time at least.
const AFTER_SHORTAGE: Duration = Duration::from_secs(60);

/// The smallest share of the connections that are used then.
const LEAST_SHARE: f64 = 1.0 / 64.0;
