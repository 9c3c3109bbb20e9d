//! Asks the URLs that are due, judges what is answered, and hands both to the store.
//!
//! [`Watcher`] is driven by [`step`](Watcher::step) on one thread. It never waits for the disk: what it wants from the
//! store is an operation, whose result comes back as a reply. A URL stays due in the store until its judgement is stored;
//! so nothing is lost, whenever the process ends.
//!
//! Each part owns its state: `asking` the works at the hosts and what waits for them, `book` what is known about
//! hosts, `network` the guard of the own network, `cycles` reconciling, `judge` lives and the budget of pruning,
//! `keeping` the way to the store. The other files are the Watcher's own story: where
//! URLs come from (`flow`), what becomes of outcomes (`outcome`), what happens when guards go on (`outage`,
//! `holds`), what operators want (`orders`), and what it says about itself (`status`, `telling`).
//!
//! A published pipeline that does the same has known flaws. Here each is a test:
//!
//! | Flaw | Test |
//! |---|---|
//! | the re-check asks the filter of rejected URLs, so that nothing revives | `tests::bad_days::a_410_leads_to_pruned_and_back` |
//! | the jitter of cycles is computed and dropped; a long cycle overlaps the next | `life::tests::cycles_of_reconciling_follow_each_other` |
//! | what is unknown or timed out counts as reconciled; the cause is lost | `life::tests::what_says_nothing_keeps_the_state_and_sets_a_flag`; `watch_sim`: each URL has a due row, each change a cause |
//! | "since the last cycle" skips late commits | `store::suite::watch::what_is_written_late_is_due_nevertheless` |
//! | slow hosts are dead; CPUs bound the requests in flight | `tests::bad_days::hosts_that_are_slow_are_alive_and_all_are_asked_at_a_time` |
//! | a batch waits in memory as a whole | `tests::bad_days::what_is_due_does_not_wait_in_memory_as_a_whole` |
//! | the filter has no stated error rate and no deletion | the tests of `store::rejected` |
//! | no guard against a mass of 410s | `guard::flip::tests`, `tests::flips`; `watch_sim`: nothing is pruned that was purged |
//! | 404 counts as alive to avoid pruning | `life::tests::a_404_needs_four_negatives_over_six_days_and_two_long_gaps` |

mod asking;
mod book;
mod cycles;
mod failing;
mod flow;
mod holds;
mod judge;
mod keeping;
mod network;
mod observer;
mod orders;
mod outage;
mod outcome;
mod policies;
mod queue;
mod reconcile;
mod settings;
mod status;
mod steady;
mod telling;
mod tenure;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::Client;
use courser::net::Net;
use jiff::Timestamp;
use url::Url;

use self::asking::Asking;
use self::book::Book;
use self::cycles::Cycles;
use self::failing::Failing;
use self::judge::Judge;
use self::keeping::{Batch, Keeping, Reply};
use self::network::Network;
use self::status::Counting;
pub(crate) use self::steady::Steady;
use self::tenure::Holding;
use super::control::{CoreInbox, CoreMessage};
use super::figures::Figures;
use crawl::clock::Clock;
use store::{HostId, StoreHandle};
use verdict::guard::{LocalSign, Stops};
use verdict::life::time::{after, between};

pub use settings::{GuardRules, HostRule, Limit, Limits, Settings};
pub use waiting::{Reason, Waiting};

/// Asks the URLs that are due, for as long as it is told to.
pub struct Watcher<N: Net, H: StoreHandle, C: Clock> {
    settings: Settings,
    asking: Asking<N>,
    keeping: Keeping<H>,
    book: Book,
    network: Network,
    cycles: Cycles,
    judge: Judge,
    failing: Failing,
    time: Time<C>,
    /// Judgements that are to be sent to the store, and since when.
    batch: Batch,
    looking: Looking,
    holding: Holding,
    counting: Counting,
    gate: Gate,
    inbox: Option<CoreInbox>,
    figures: Arc<Figures>,
}

/// The clocks.
struct Time<C> {
    wall: C,
    steady: Steady,
    /// When the clock was to be looked at next, at the latest.
    expected: Option<Instant>,
    /// Whether the process did not run for so long that requests in flight have failed by that.
    has_stalled: bool,
}

/// When hosts with something due are looked for.
#[derive(Debug, Default)]
struct Looking {
    is_under_way: bool,
    /// `None`: when something happens.
    at: Option<Timestamp>,
}

/// What keeps everything from being asked.
#[derive(Debug, Default)]
struct Gate {
    /// What was there at the start is not known yet.
    is_starting: bool,
    is_draining: bool,
    is_paused: bool,
    paused_hosts: HashSet<Url>,
    /// Hosts that asked to wait, by the end of the wait.
    parked: BTreeSet<(Timestamp, HostId)>,
    is_store_stopped: bool,
    /// Judgements that are not stored yet.
    unstored: usize,
    /// All queues are to be looked through, because something has changed for all of them.
    is_refill_due: bool,
    /// When the share of requests that may be sent was looked at last.
    ramped_at: Option<Timestamp>,
    /// Hosts that are held.
    held: BTreeSet<HostId>,
    tidied_at: Option<Timestamp>,
    /// Until when too many open files make fewer connections be used, and the share.
    shortage: Option<(Timestamp, f64)>,
    batch_since: Option<Instant>,
}

impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Watches what is in the store. `client` was made by [`Settings::client`], or of the same settings.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(
        client: Client<N>,
        settings: Settings,
        store: H,
        clock: C,
        seed: u64,
    ) -> io::Result<Self> {
        let mut asking = Asking::new(client, &settings, seed);
        let keeping = Keeping::new(store, asking.waker()?);
        let figures = Arc::new(Figures::default());
        asking.set_observer(Box::new(observer::Observer(Arc::clone(&figures))));
        let now = clock.now();
        let mut watcher = Self {
            time: Time {
                steady: Steady::new(asking.now(), now),
                wall: clock,
                expected: None,
                has_stalled: false,
            },
            book: Book::new(settings.guards.flip),
            network: Network::new(&settings.guards, now, Stops::default()),
            cycles: Cycles::new(settings.reconcile, now, !seed),
            failing: Failing::default(),
            judge: Judge::new(
                settings.rules.clone(),
                settings.guards.budget,
                seed,
                Arc::clone(&figures),
            ),
            batch: Batch::default(),
            looking: Looking::default(),
            holding: Holding::default(),
            counting: Counting::default(),
            gate: Gate {
                is_starting: true,
                ..Gate::default()
            },
            inbox: None,
            asking,
            keeping,
            settings,
            figures,
        };
        watcher.begin(now);
        Ok(watcher)
    }

    /// Takes messages from other threads.
    #[must_use]
    pub fn with_inbox(mut self, inbox: CoreInbox) -> Self {
        // Without one, messages are found at the next turn.
        if let Ok(waker) = self.asking.waker() {
            inbox.set_waker(waker);
        }
        self.inbox = Some(inbox);
        self
    }

    /// What it counts.
    pub fn figures(&self) -> &Arc<Figures> {
        &self.figures
    }

    /// The time by which it decides: the wall clock without its jumps back.
    pub fn now(&self) -> Timestamp {
        self.time.steady.now()
    }

    /// Uses these rules, guards, limits of hosts and intervals from now on. What the client needs is as it was at the start: the
    /// limits of all connections, the timeout, the name of this program, and whether private addresses are allowed.
    pub fn set_settings(&mut self, mut settings: Settings) {
        settings.keep_ceilings(&self.settings);
        self.asking.set_settings(&settings);
        self.judge.set_rules(settings.rules.clone());
        self.judge.set_budget(settings.guards.budget);
        self.network.set_rules(&settings.guards);
        self.book.set_flip(settings.guards.flip);
        self.cycles.set_rules(settings.reconcile);
        self.settings = settings;
        self.gate.is_refill_due = true;
    }

    /// The settings, with the ceilings that jobs have to share.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Something may have become due in the store.
    pub fn look_again(&mut self) {
        let now = self.now();
        self.looking.at = Some(now);
        self.counting.hurry(now);
        self.cycles.wake();
    }

    /// One turn: does what is to be done, then waits for something to do, at most for `longest`.
    ///
    /// # Errors
    /// The network cannot be used any more.
    pub fn step(&mut self, longest: Duration) -> io::Result<()> {
        let began = self.asking.now();
        let now = self.tick();
        self.take_messages();
        while let Some(reply) = self.keeping.next() {
            self.handle(now, reply);
        }
        self.watch_store(now);
        self.watch_tenure();
        self.watch_network(now);
        self.watch_holds(now);
        self.unpark(now);
        self.reconcile(now);
        self.count(now);
        self.look(now);
        self.ramp(now);
        self.refill(now);
        self.tidy(now);
        let sends = self.network.on().is_none_or(|on| on.is_cleared)
            && self.holding.may_ask(self.asking.now());
        if sends {
            self.asking.submit();
        }
        self.collect(now);
        self.flush();
        let timeout = self.timeout(now, longest, sends);
        self.time.expected = self.asking.now().checked_add(timeout);
        let is_limited = self.is_limited_by_hosts();
        let idle = self.asking.wait(timeout, sends)?;
        let has_stalled = self.time.has_stalled;
        let now = self.tick();
        self.time.has_stalled |= has_stalled;
        self.collect(now);
        let ended = self.asking.now();
        self.time.expected = Some(ended);
        let backlog = &self.figures.backlog;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if is_limited {
            backlog.host_limited.inc_by(micros(idle));
        }
        let busy = ended.saturating_duration_since(began).saturating_sub(idle);
        backlog.cpu_limited.inc_by(micros(busy));
        self.figures
            .requests
            .in_flight
            .set(self.asking.in_flight() as u64);
        Ok(())
    }

    /// Whether URLs that could be asked wait for nothing but the limits of their hosts.
    fn is_limited_by_hosts(&self) -> bool {
        let in_flight = self.asking.in_flight();
        let most = self.settings.limits.connections.at();
        let has_room = most.is_none_or(|most| in_flight < most.get());
        has_room && self.asking.under_way() > in_flight
    }

    /// Ends: what is under way is finished and stored, until `until` at the latest. What is not answered by then stays
    /// due. Returns whether everything was finished.
    ///
    /// # Errors
    /// The network cannot be used any more. What was answered is stored nevertheless.
    pub fn drain(&mut self, until: Instant) -> io::Result<bool> {
        self.gate.is_draining = true;
        loop {
            let is_done = self.asking.under_way() == 0 && self.gate.unstored == 0;
            if is_done || self.asking.now() >= until {
                self.gate.batch_since = None;
                self.send_batch();
                return Ok(is_done);
            }
            self.step(LONGEST_WAIT_OF_DRAIN)?;
        }
    }

    fn tick(&mut self) -> Timestamp {
        let monotonic = self.asking.now();
        let expected = self.time.expected.take().unwrap_or(monotonic);
        let late = monotonic.saturating_duration_since(expected);
        self.time.has_stalled = late > LATEST;
        let jump = self.time.steady.advance(monotonic, self.time.wall.now());
        let now = self.now();
        let millis = u64::try_from(now.as_millisecond()).unwrap_or_default();
        self.figures.ticked_at.set(millis);
        if let Some(jump) = jump {
            self.handle_jump(now, jump.from, jump.to);
        }
        now
    }

    fn handle_jump(&mut self, now: Timestamp, from: Timestamp, to: Timestamp) {
        let text = format!("the clock was set from {from:.0} to {to:.0}");
        self.note(now, "clock", None, text);
        self.network.skip(from, to);
        if let Some(again) = self.network.handle_sign(now, LocalSign::ClockStep) {
            self.network_went_on(now, again);
        }
        self.looking.at = Some(now);
    }

    /// How long to wait if nothing happens.
    fn timeout(&mut self, now: Timestamp, longest: Duration, sends: bool) -> Duration {
        if self.asking.has_more() || self.gate.is_refill_due {
            return Duration::ZERO;
        }
        let monotonic = self.asking.now();
        let host = match sends {
            true => self.asking.poll_timeout(monotonic),
            false => None,
        };
        let mut timeout = longest;
        if let Some(at) = host {
            timeout = timeout.min(at.saturating_duration_since(monotonic));
        }
        if let Some(since) = self.gate.batch_since {
            let age = monotonic.saturating_duration_since(since);
            timeout = timeout.min(LONGEST_BATCH.saturating_sub(age));
        }
        let holds = self.next_of_holds(now);
        let may_look = !self.looking.is_under_way && self.asking.fleet().has_room();
        let may_look = may_look && !self.gate.is_draining && !self.gate.is_starting;
        let reconciles = self.may_reconcile();
        let begins = reconciles && self.network.on().is_none();
        let rounds = !self.gate.is_draining && !self.gate.is_starting;
        let times = [
            self.looking.at.filter(|_| may_look),
            self.cycles.next_at().filter(|_| begins),
            self.cycles.ends_at().filter(|_| reconciles),
            self.network.next_at(now).filter(|_| rounds),
            self.counting.next_at(),
            self.gate.parked.first().map(|(until, _)| *until),
            holds,
        ];
        for at in times.into_iter().flatten() {
            timeout = timeout.min(self.time.steady.time_until(at));
        }
        timeout
    }

    fn handle(&mut self, now: Timestamp, reply: Reply) {
        match reply {
            Reply::Began(beginning) => self.handle_beginning(now, *beginning),
            Reply::Looked {
                lanes,
                ready,
                has_more,
                next,
            } => self.handle_looked(now, lanes, ready, has_more, next),
            Reply::Taken {
                queue,
                limit,
                due,
                read,
            } => self.handle_taken(now, queue, limit, due, read),
            Reply::Siblings { host, due } => self.handle_siblings(now, host, due),
            Reply::Sample { host, due } => self.handle_sample(now, host, due),
            Reply::Stored { batch, is_stored } => self.handle_stored(batch, is_stored),
            Reply::Piece { host, change, next } => self.handle_piece(host, change, next),
            Reply::CycleBegan(id) => {
                if let Some(current) = self.cycles.current() {
                    current.id = Some(id);
                }
            }
            Reply::Counted(counted) => self.handle_counted(now, *counted),
            Reply::Orders(orders) => self.handle_orders(now, orders),
            Reply::Failed { what, error } => self.handle_failed(now, what, &error),
        }
    }

    fn take_messages(&mut self) {
        let Some(inbox) = self.inbox.take() else {
            return;
        };
        while let Some(message) = inbox.take() {
            match message {
                CoreMessage::Status { host, answer } => {
                    // Nobody may be waiting any more.
                    let _ = answer.try_send(self.status(host.as_deref()));
                }
                CoreMessage::LookAgain => {
                    self.look_again();
                    self.read_orders();
                }
            }
        }
        self.inbox = Some(inbox);
    }

    /// Whether the store takes changes. While it does not, nothing is asked.
    fn watch_store(&mut self, now: Timestamp) {
        let is_stopped = !self.keeping.is_open();
        if is_stopped == self.gate.is_store_stopped {
            return;
        }
        self.gate.is_store_stopped = is_stopped;
        self.figures.keeping.is_stopped.set(u64::from(is_stopped));
        let text = match is_stopped {
            true => "the store takes nothing: nothing is asked",
            false => "the store takes changes again",
        };
        self.note(now, "store", None, text.to_owned());
        self.gate.is_refill_due = true;
        self.looking.at = Some(now);
    }

    fn tidy(&mut self, now: Timestamp) {
        let is_soon = |at| between(at, now) < TIDY;
        if self.gate.is_draining || self.gate.tidied_at.is_some_and(is_soon) {
            return;
        }
        self.gate.tidied_at = Some(now);
        for (host, page) in self.book.iter_mut() {
            if std::mem::take(&mut page.is_changed) {
                self.batch.facts.push((host, page.facts.clone()));
            }
        }
        if !self.batch.facts.is_empty() {
            self.send_batch();
        }
        // A host whose delay is not over stays this worker's: another one would not know of the delay.
        let resting: HashSet<HostId> = match self.holding.is_shared() {
            true => self.rests().into_iter().map(|(host, _)| host).collect(),
            false => HashSet::new(),
        };
        let (network, paused) = (&self.network, &self.gate.paused_hosts);
        let is_needed = |host, page: &book::HostPage| {
            network.held(host) > 0 || resting.contains(&host) || paused.contains(&page.root)
        };
        self.book.tidy(now, self.asking.fleet(), is_needed);
        self.network.tidy(now);
        self.failing.tidy(now);
        let failing = &self.figures.backlog.hosts_failing;
        failing.set(self.failing.count());
        let throttled = self.book.iter();
        let throttled = throttled.filter(|(_, page)| page.is_parked(now)).count();
        self.figures.backlog.hosts_throttled.set(throttled as u64);
        let ready = self.asking.fleet().active().len();
        self.figures.backlog.hosts_ready.set(ready as u64);
        let is_spent = self.judge.is_budget_spent(now);
        self.figures.guards.budget.set(u64::from(is_spent));
    }

    /// The share of the connections that may be used: fewer after too many files were open.
    fn ramp(&mut self, now: Timestamp) {
        let share = self.network.share(now);
        if share < 1.0 && share > 0.0 {
            let is_soon = |at| between(at, now) < RAMP_STEP;
            if !self.gate.ramped_at.is_some_and(is_soon) {
                self.gate.ramped_at = Some(now);
                self.gate.is_refill_due = true;
            }
        } else if self.gate.ramped_at.take().is_some() {
            self.gate.is_refill_due = true;
        }
        if let Some((until, share)) = self.gate.shortage
            && now >= until
        {
            let share = (share * 1.25).min(1.0);
            self.asking.set_share(share);
            self.gate.shortage = (share < 1.0).then(|| (after(now, SHORTAGE_STEP), share));
        }
    }
}

/// Judgements wait at most this long for others before they are sent to the store.
const LONGEST_BATCH: Duration = Duration::from_millis(10);

/// The clock was looked at later than this after it was to be: the process was stopped.
const LATEST: Duration = Duration::from_secs(5);

const LONGEST_WAIT_OF_DRAIN: Duration = Duration::from_millis(100);

/// The pages of hosts are looked through this often.
const TIDY: Duration = Duration::from_secs(10);

/// While the requests grow again, queues are looked through this often.
const RAMP_STEP: Duration = Duration::from_secs(1);

/// After too many files were open, a quarter more connections are used after this time.
const SHORTAGE_STEP: Duration = Duration::from_secs(30);
