//! Where URLs come from: hosts with something due, their rows, and the works that get them.

use std::collections::HashSet;

use jiff::Timestamp;

use super::asking::Given;
use super::keeping::{Failed, HostRead, Reply};
use super::queue::{Kind, QueueId};
use super::{Reason, Watcher};
use check::task::{Outcome, UrlId as TaskId};
use courser::net::Net;
use crawl::clock::Clock;
use crawl::fleet::Take;
use plain::random::seed_of_host;
use std::time::Duration;
use store::{DueId, DueUrl, Guarded, HostId, Lanes, Nature, Ready, StoreError, StoreHandle};
use verdict::life::State;
use verdict::life::time::after;
use verdict::{Cause, Verdict};

/// Hosts.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Looks for hosts with something due, if it is time.
    pub(super) fn look(&mut self, now: Timestamp) {
        let is_time = self.looking.at.is_some_and(|at| at <= now);
        let may_look = !self.gate.is_draining && !self.gate.is_starting;
        if !is_time || self.looking.is_under_way || !may_look || !self.asking.fleet().has_room() {
            return;
        }
        self.looking.is_under_way = true;
        let except = self.away(now, Kind::Schedule);
        self.ask_hosts(Lanes::Schedule, now, except);
    }

    pub(super) fn ask_hosts(&mut self, lanes: Lanes, until: Timestamp, except: HashSet<HostId>) {
        let reply = move |(ready, next): (Vec<Ready>, _)| {
            Some(Reply::Looked {
                lanes,
                has_more: ready.len() >= HOSTS_AT_ONCE,
                ready,
                next,
            })
        };
        self.keeping.ask(
            Nature::Read,
            Failed::Look(lanes),
            move |engine| {
                let ready = engine.ready(lanes, until, &except, HOSTS_AT_ONCE)?;
                Ok((ready, engine.next_due(lanes)?))
            },
            reply,
        );
    }

    /// The hosts that need not be looked for, or may not be asked.
    pub(super) fn away(&mut self, now: Timestamp, kind: Kind) -> HashSet<HostId> {
        let mut away = HashSet::new();
        for (host, page) in self.book.iter() {
            let is_paused = self.gate.paused_hosts.contains(&page.root);
            let queue = QueueId { host, kind };
            if is_paused || self.book.is_away(host, now) || self.asking.fleet().knows(queue) {
                away.insert(host);
            }
        }
        away
    }

    pub(super) fn handle_looked(
        &mut self,
        now: Timestamp,
        lanes: Lanes,
        ready: Vec<Ready>,
        has_more: bool,
        next: Option<Timestamp>,
    ) {
        let kind = match lanes {
            Lanes::Schedule => Kind::Schedule,
            Lanes::Doubt => Kind::Doubt,
        };
        let mut hosts = Vec::with_capacity(ready.len());
        for ready in ready {
            let (host, has_answered) = (ready.host.id, ready.host.facts.answered_at.is_some());
            let Some(is_new) = self.book.open(ready) else {
                continue;
            };
            if is_new && has_answered {
                self.network.note_answering();
            }
            if let Some(page) = self.book.get_mut(host)
                && kind == Kind::Schedule
            {
                page.pass = now;
            }
            self.asking.fleet().handle_queued(QueueId { host, kind });
            hosts.push(host);
        }
        match kind {
            Kind::Doubt => self.handle_doubtful(now, hosts, has_more, next),
            _ => self.look_next(now, has_more, next),
        }
        self.activate();
    }

    fn look_next(&mut self, now: Timestamp, has_more: bool, next: Option<Timestamp>) {
        self.looking.is_under_way = false;
        self.looking.at = match next {
            _ if has_more => Some(now),
            Some(next) if next > now => Some(next.min(after(now, LONGEST_LOOK))),
            // Of hosts that are asked now, or may not be asked.
            Some(_) => Some(after(now, LOOK_AGAIN)),
            None => Some(after(now, LONGEST_LOOK)),
        };
    }

    /// Begins to work on further queues.
    pub(super) fn activate(&mut self) {
        while let Some(take) = self.asking.activate() {
            self.take(take);
        }
    }
}

/// Rows.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Reads due rows of a queue, lane by lane.
    fn take(&mut self, take: Take<QueueId, DueId>) {
        let (queue, limit) = (take.queue, take.limit);
        let QueueId { host, kind } = queue;
        let cycle_began = self.cycle_began();
        let page = self.book.get(host);
        let until = match kind {
            Kind::Schedule => page.map_or(self.now(), |page| page.pass),
            Kind::Doubt => cycle_began,
            Kind::Sample => Timestamp::MIN,
        };
        let after = take.after;
        let root = page.map(|page| page.root.as_str().to_owned());
        let knows_stops = page.is_some_and(|page| page.knows_stops);
        let least = self.book.least_to_flip();
        let read = move |engine: &mut dyn store::Engine| {
            let mut due: Vec<DueUrl> = Vec::new();
            let mut from = after;
            for lane in kind.lanes() {
                let start = match from {
                    Some(id) if id.lane != *lane => continue,
                    Some(id) => {
                        from = None;
                        Some((id.due, id.url))
                    }
                    None => None,
                };
                due.extend(engine.due(host, *lane, start, until, limit - due.len())?);
                if due.len() >= limit {
                    break;
                }
            }
            let Some(root) = &root else {
                return Ok((due, None));
            };
            let urls = engine.host(root)?.map_or(0, |detail| detail.urls);
            let wants_stops = urls >= least && !knows_stops;
            let stops = wants_stops.then(|| engine.stops(Guarded::Host(host)));
            let stops = stops.transpose()?;
            Ok((due, Some(HostRead { urls, stops })))
        };
        self.keeping.ask(
            Nature::Read,
            Failed::Take(queue, limit),
            read,
            move |(due, read)| {
                Some(Reply::Taken {
                    queue,
                    limit,
                    due,
                    read,
                })
            },
        );
    }

    pub(super) fn handle_taken(
        &mut self,
        now: Timestamp,
        queue: QueueId,
        limit: usize,
        due: Vec<DueUrl>,
        read: Option<HostRead>,
    ) {
        if let Some(read) = read {
            self.book.refresh(queue.host, read);
        }
        self.asking
            .fleet()
            .handle_taken(queue, limit, due, |due| due.id);
        let page = self.book.get(queue.host);
        if page.is_some_and(|page| page.is_parked(now)) {
            self.asking.fleet().abandon(queue);
        }
        self.fill(now, queue);
        self.activate();
    }
}

/// Works.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Gives URLs of all queues to their works, if something has changed for all of them.
    pub(super) fn refill(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.gate.is_refill_due) {
            for queue in self.asking.fleet().active() {
                self.fill(now, queue);
            }
            self.activate();
        }
    }

    /// Gives URLs of the queues of a host to its work.
    pub(super) fn fill_host(&mut self, now: Timestamp, host: HostId) {
        for kind in Kind::ALL {
            self.fill(now, QueueId { host, kind });
        }
    }

    /// Gives URLs of a queue to its work, as many as it has room for.
    pub(super) fn fill(&mut self, now: Timestamp, queue: QueueId) {
        if self.held_up(now, queue.host).is_none() {
            while self.give(now, queue) {}
        }
        if let Some(take) = self.asking.fleet().take(queue) {
            self.take(take);
        }
        let Some(fault) = self.asking.rest(queue) else {
            return;
        };
        if let Some(fault) = fault
            && let Some(page) = self.book.get_mut(queue.host)
            && page.facts.head_fault(now) != Some(fault)
        {
            page.facts.note_head_fault(now, fault);
            page.is_changed = true;
        }
        match queue.kind {
            Kind::Doubt => {
                if let Some(current) = self.cycles.current() {
                    current.handle_rest(queue.host);
                }
            }
            Kind::Schedule => {
                // The next hosts may have their turn.
                let at = self.looking.at.get_or_insert(now);
                *at = (*at).min(after(now, LOOK_AGAIN));
            }
            Kind::Sample => {}
        }
    }

    pub(super) fn give(&mut self, now: Timestamp, queue: QueueId) -> bool {
        let page = self.book.get(queue.host);
        let is_held = page.is_some_and(|page| page.is_held());
        // What is suspect is held as soon as the hold is written.
        let is_wanted = |due: &DueUrl| {
            let state = due.life.state();
            let is_in_question = matches!(state, State::Suspect | State::Broken);
            !is_held || queue.kind == Kind::Sample || !is_in_question
        };
        let fault = page.and_then(|page| page.facts.head_fault(now));
        match self.asking.give(queue, is_wanted, fault) {
            Given::Nothing => false,
            Given::Yes => true,
            Given::Invalid(due) => {
                let outcome = invalid(&due);
                self.decide(now, *due, outcome);
                true
            }
        }
    }

    /// What keeps a host from being asked, apart from its own limits.
    pub(super) fn held_up(&self, now: Timestamp, host: HostId) -> Option<Reason> {
        let gate = &self.gate;
        if gate.is_draining || gate.is_starting {
            return Some(Reason::Draining);
        }
        let may_ask = self.holding.may_ask(self.asking.now());
        if gate.is_store_stopped || gate.unstored >= MOST_UNSTORED || !may_ask {
            return Some(Reason::StoreStopped);
        }
        if self.network.on().is_some() {
            return Some(Reason::OwnNetwork);
        }
        if let Some(reason) = self.left_alone(now, host) {
            return Some(reason);
        }
        let failed = self.network.held(host);
        if failed >= MOST_FAILED || failed > 0 && self.network.is_full() {
            return Some(Reason::BackOff);
        }
        let share = self.network.share(now);
        // The same hosts first each time, and each at its usual rate.
        let place = seed_of_host(0, "") ^ (host.0 as u64).wrapping_mul(SCATTER);
        let place = (place >> 11) as f64 / (1u64 << 53) as f64;
        (share < 1.0 && place >= share).then_some(Reason::Ramp)
    }

    /// Why a host is not even asked whether it answers.
    pub(super) fn left_alone(&self, now: Timestamp, host: HostId) -> Option<Reason> {
        let page = self.book.get(host);
        let is_paused = page.is_some_and(|page| self.gate.paused_hosts.contains(&page.root));
        if self.gate.is_paused || is_paused {
            return Some(Reason::Paused);
        }
        let is_parked = page.is_some_and(|page| page.is_parked(now));
        is_parked.then_some(Reason::BackOff)
    }

    /// A host wants no requests for this time. What was read of it stays due.
    pub(super) fn park(&mut self, now: Timestamp, host: HostId, wait: Duration) {
        let until = after(now, wait);
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        if page.parked_until.is_some_and(|before| before >= until) {
            return;
        }
        if let Some(before) = page.parked_until.replace(until) {
            self.gate.parked.remove(&(before, host));
        }
        page.sample = None;
        self.gate.parked.insert((until, host));
        self.tell_rests(vec![(host, until)]);
        self.asking.abandon(host);
    }

    /// Hosts that asked to wait may be asked again.
    pub(super) fn unpark(&mut self, now: Timestamp) {
        while let Some((until, host)) = self.gate.parked.first().copied()
            && until <= now
        {
            self.gate.parked.pop_first();
            if let Some(page) = self.book.get_mut(host) {
                page.parked_until = None;
            }
            self.looking.at = Some(now);
        }
    }
}

/// The outcome of what is no URL.
pub(super) fn invalid(due: &DueUrl) -> Outcome {
    let id = TaskId(due.id.url.0.unsigned_abs());
    Outcome::not_asked(id, Verdict::Failed(Cause::InvalidUrl), "not a URL")
}

/// What was asked of the store could not be done.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    pub(super) fn handle_failed(&mut self, now: Timestamp, what: Failed, error: &StoreError) {
        tracing::warn!("the store: {error}");
        match what {
            Failed::Beginning => self.begin(now),
            Failed::Look(Lanes::Schedule) => self.look_next(now, false, Some(now)),
            Failed::Look(Lanes::Doubt) => {
                if let Some(current) = self.cycles.current() {
                    current.handle_looked([].into_iter(), false);
                }
            }
            Failed::Take(queue, limit) => {
                self.handle_taken(now, queue, limit, Vec::new(), None);
            }
            Failed::Piece(host) => self.stop_changing(host),
            Failed::Sample(host) => self.handle_sample(now, host, Vec::new()),
            Failed::Count => self.count_later(now),
            Failed::Siblings(_) | Failed::Other => {}
        }
    }
}

/// Hosts that are read at a time.
const HOSTS_AT_ONCE: usize = 256;

/// Judgements that are not stored yet; with more, nothing further is asked.
pub(super) const MOST_UNSTORED: usize = 8_192;

/// Failures of one host that are held back; with more, the host has to wait.
const MOST_FAILED: usize = 256;

/// While hosts are asked, others are looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Other processes, such as commands without a service, may have made something due.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Makes numbers that follow one another differ in all bits.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;
