//! What the core says about itself, and what it reads at the start.

use courser::net::Net;
use jiff::Timestamp;
use url::Url;

use super::keeping::{Beginning, Counted, Failed, HoldChange, Reply};
use super::orders::Orders;
use super::queue::{Kind, QueueId};
use super::{Reason, Waiting, Watcher};
use crate::control::{CoreStatus, GuardOn, HostWaits};
use crawl::clock::Clock;
use crawl::stats;
use plain::origin::root_of;
use std::time::Duration;
use store::{Guarded, HostId, Lane, Lanes, Nature, Ready, StoreHandle};
use verdict::guard::HostFlip;
use verdict::life::State;
use verdict::life::time::{after, before, between};

/// When URLs are counted.
#[derive(Debug, Default)]
pub(super) struct Counting {
    is_under_way: bool,
    at: Option<Timestamp>,
    /// Something has changed since the count that is under way began.
    is_old: bool,
}

impl Counting {
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.at.filter(|_| !self.is_under_way)
    }

    /// Somebody has changed something in the store: it is counted soon.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.is_old = self.is_under_way;
        self.at = self.at.map(|at| at.min(after(now, COUNT)));
    }
}

/// The start.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Reads what guards have left.
    pub(super) fn begin(&mut self, now: Timestamp) {
        let pruned_since = before(now, self.settings.guards.budget.per);
        self.keeping.ask(
            Nature::Read,
            Failed::Beginning,
            move |engine| {
                let mut holds = Vec::new();
                for hold in engine.holds()? {
                    let stops = engine.stops(Guarded::Host(hold.host))?;
                    if let Some(detail) = engine.host(&hold.root)? {
                        holds.push((hold, stops, detail.host.facts, detail.urls));
                    }
                }
                Ok(Beginning {
                    holds,
                    stops: engine.stops(Guarded::OwnNetwork)?,
                    pruned: engine.pruned(pruned_since, MOST_PRUNED)?,
                    counts: engine.watch_counts()?,
                    orders: Orders::read(engine)?,
                })
            },
            |beginning| Some(Reply::Began(Box::new(beginning))),
        );
    }

    pub(super) fn handle_beginning(&mut self, now: Timestamp, beginning: Beginning) {
        self.network = super::Network::new(&self.settings.guards, now, beginning.stops);
        for (at, host) in beginning.pruned {
            self.judge.note_pruned(at, host);
        }
        self.judge.set_urls(beginning.counts.urls());
        for (hold, stops, facts, urls) in beginning.holds {
            let host = store::Host {
                id: hold.host,
                root: hold.root,
                facts,
            };
            let flip = self.settings.guards.flip;
            let ready = Ready {
                host,
                next: now,
                urls,
            };
            if self.book.open(ready).is_none() {
                continue;
            }
            if let Some(page) = self.book.get_mut(hold.host) {
                let held = HostFlip::with_hold(flip, hold.ending.is_none().then_some(hold.hold));
                page.flip = Some(Box::new(held.with_stops(stops)));
                page.ending = hold.ending.map(Into::into);
            }
            self.gate.held.insert(hold.host);
            // What the last process did not get to is held now, or released.
            let change = hold.ending.map_or(HoldChange::Hold, Into::into);
            self.change(hold.host, change, None);
        }
        self.figures.guards.hosts.set(self.gate.held.len() as u64);
        self.handle_orders(now, beginning.orders);
        self.gate.is_starting = false;
        self.looking.at = Some(now);
        self.counting.at = Some(now);
    }
}

/// Counts.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Counts the URLs, if it is time.
    pub(super) fn count(&mut self, now: Timestamp) {
        if self.counting.is_under_way || self.counting.at.is_none_or(|at| at > now) {
            return;
        }
        self.counting.is_under_way = true;
        let late = before(now, FINE_LAG);
        self.keeping.ask(
            Nature::Read,
            Failed::Count,
            move |engine| {
                let counts = engine.watch_counts()?;
                let oldest = [Lanes::Schedule, Lanes::Doubt].map(|lanes| engine.next_due(lanes));
                let [schedule, doubt] = oldest;
                // More than that need not be told apart.
                let limit = counts.urls() / 10 + 1;
                let mut overdue = 0;
                for lanes in [Lanes::Schedule, Lanes::Doubt] {
                    overdue += engine.overdue(lanes, late, limit.saturating_sub(overdue))?;
                }
                Ok(Counted {
                    oldest: schedule?.into_iter().chain(doubt?).min(),
                    overdue,
                    orders: Orders::read(engine)?,
                    counts,
                })
            },
            |counted| Some(Reply::Counted(Box::new(counted))),
        );
    }

    /// The URLs could not be counted.
    pub(super) fn count_later(&mut self, now: Timestamp) {
        self.counting.is_under_way = false;
        self.counting.at = Some(after(now, COUNT));
    }

    pub(super) fn handle_counted(&mut self, now: Timestamp, counted: Counted) {
        let Counted {
            counts,
            oldest,
            overdue,
            orders,
        } = counted;
        self.handle_orders(now, orders);
        // Before something is due, nothing changes but by other processes.
        let quiet = oldest.map_or(COUNT_IDLE, |oldest| between(now, oldest));
        let pause = match std::mem::take(&mut self.counting.is_old) {
            true => COUNT,
            false => quiet.clamp(COUNT, COUNT_IDLE),
        };
        self.counting.is_under_way = false;
        self.counting.at = Some(after(now, pause));
        self.judge.set_urls(counts.urls());
        let backlog = &self.figures.backlog;
        for state in State::ALL {
            let count = counts.states.get(&state).copied().unwrap_or_default();
            backlog.urls(state).set(count);
        }
        backlog.private.set(counts.private);
        let lag = oldest.map_or(Duration::ZERO, |oldest| between(oldest, now));
        backlog
            .lag
            .set(u64::try_from(lag.as_millis()).unwrap_or(u64::MAX));
        backlog
            .staleness
            .set(overdue as f64 / counts.urls().max(1) as f64);
        let held = counts.due.get(&Lane::Held).copied().unwrap_or_default();
        self.figures.guards.quarantined.set(held);
        self.figures
            .backlog
            .hosts_held
            .set(self.gate.held.len() as u64);
    }
}

/// Questions.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Why a host is not asked right now, given by the URL of its root: all reasons, the strongest first. Empty: the host
    /// is being asked, or nothing is due.
    pub fn why(&mut self, root: &Url) -> Vec<Waiting> {
        let now = self.now();
        let host = self.book.at(root);
        let mut reasons = Vec::new();
        // No page: what holds for a host that nothing is known of.
        if let Some(reason) = self.held_up(now, host.unwrap_or(HostId(-1))) {
            let parked = host.and_then(|host| self.book.get(host)?.parked_until);
            reasons.push(Waiting {
                reason,
                until: parked.filter(|_| reason == Reason::BackOff),
            });
        }
        let page = host.and_then(|host| self.book.get(host));
        if let Some(flip) = page.and_then(|page| page.flip.as_ref())
            && flip.is_held()
        {
            reasons.push(Waiting {
                reason: Reason::Held,
                until: flip.ends_at(),
            });
        }
        if let Some(waiting) = self.asking.waiting(root) {
            let wait = waiting.until.saturating_duration_since(self.asking.now());
            let reason = match waiting.reason {
                stats::Reason::BackOff => Reason::BackOff,
                stats::Reason::Rate => Reason::Rate,
                stats::Reason::Robots => Reason::Robots,
            };
            reasons.push(Waiting {
                reason,
                until: Some(after(now, wait)),
            });
        }
        if host.is_none() && !self.asking.fleet().has_room() {
            reasons.push(Waiting {
                reason: Reason::Others,
                until: None,
            });
        }
        reasons
    }

    fn host_waits(&mut self, root: Url) -> HostWaits {
        let host = self.book.at(&root);
        let queues = host.map(|host| Kind::ALL.map(|kind| QueueId { host, kind }));
        let (mut under_way, mut waiting) = (0, 0);
        for queue in queues.into_iter().flatten() {
            let (asked, read) = self.asking.fleet().counts(queue);
            under_way += asked as u64;
            waiting += read as u64;
        }
        HostWaits {
            waits: self.why(&root),
            root: root.into(),
            under_way,
            waiting,
        }
    }

    /// What an operator is told.
    pub(super) fn status(&mut self, host: Option<&str>) -> CoreStatus {
        let root = host.and_then(|host| Url::parse(host).ok());
        let parked: Vec<HostId> = self
            .gate
            .parked
            .iter()
            .rev()
            .map(|(_, host)| *host)
            .collect();
        let longest = parked.iter().take(CoreStatus::MOST_HOSTS);
        let roots: Vec<Url> = longest
            .filter_map(|host| Some(self.book.get(*host)?.root.clone()))
            .collect();
        let guard = self.network.on();
        let own_network = guard.map(|on| GuardOn {
            since: on.since,
            why: on.why.clone(),
        });
        let now = self.now();
        CoreStatus {
            pruned: Some(self.judge.budget(now)),
            is_draining: self.gate.is_draining,
            under_way: self.asking.under_way() as u64,
            waiting: self.asking.fleet().buffered() as u64,
            own_network,
            failing: self.failing.count(),
            fails: self.failing.named(),
            parked: parked.len() as u64,
            longest: roots
                .into_iter()
                .map(|root| self.host_waits(root))
                .collect(),
            host: root.map(|root| self.host_waits(root_of(&root))),
        }
    }
}

/// Beyond this, pruned URLs of the last day say no more about the budget.
const MOST_PRUNED: usize = 1_000_000;

/// A URL may be past due by this time (the staleness of the published pipeline).
const FINE_LAG: Duration = Duration::from_secs(144);

/// URLs are counted this often.
const COUNT: Duration = Duration::from_secs(10);

/// And this often while nothing is due.
const COUNT_IDLE: Duration = Duration::from_secs(60);
