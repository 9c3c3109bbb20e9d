//! Checks the order and the times of a client's actions, from the events of its observer and from the trace of the
//! network. Everything is counted here independently, without the engine's policies.
//!
//! The checks know less than the engine: for example, when exactly an attempt after a pause was admitted, or whether an
//! immediate retry was one of the safe ones. Where this matters, they accept both.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use courser::error::{DnsError, PeerFault};
use courser::net::Net as _;
use courser::net::sim::{Entry, SimNet, Trace};
use courser::policy::{BalanceConfig, BreakerConfig, BreakerState, RetryBudget};
use courser::proto::ProxyFault;
use courser::{
    Address, CallId, Error, ErrorKind, Observer, ObserverEvent, Phase, Rate, Retry, RetryCause,
    Sent,
};

use crate::plan::{Act, NOT_IDEMPOTENT, Plan, most_attempts};

/// The observer of the clients of this thread.
pub(crate) fn observer() -> Observer {
    Observer::new(|event| with(|watch| watch.see(event)))
}

/// Begins to watch a run on this thread.
pub(crate) fn begin(plan: &Plan, net: &SimNet) {
    let specs = plan.acts.iter().filter_map(|(_, act)| match act {
        Act::Submit(spec) | Act::Block(spec) => Some(spec),
        _ => None,
    });
    let rules = specs.map(|spec| {
        let idempotent = !NOT_IDEMPOTENT.contains(&spec.method);
        (spec.id, (plan.retry(spec).clone(), idempotent))
    });
    let watch = Watch {
        net: net.clone(),
        clock: None,
        order: 0,
        piped: plan.pipeline.is_some(),
        balance: plan.config.balance.clone(),
        addresses: plan.places.len(),
        ejected: BTreeMap::new(),
        rates: plan
            .config
            .rate
            .into_iter()
            .chain(plan.config.min_delay.map(Rate::every))
            .collect(),
        rate_of_all: plan.web.as_ref().and_then(|web| web.rate),
        sends: Vec::new(),
        rules: rules.collect(),
        breaker: plan.config.breaker.clone(),
        budget: plan.config.retry_budget,
        hosts: BTreeMap::new(),
        calls: BTreeMap::new(),
        told: TELLS.get().then_some(0),
        starts: Vec::new(),
    };
    WATCH.set(Some(watch));
}

/// Sets whether the client is driven and reads the clock, or uses the time that it read last.
pub(crate) fn drives(drives: bool) {
    with(|watch| watch.clock = (!drives).then(|| watch.net.now()));
}

/// Checks what has happened since the last call.
pub(crate) fn tell_rest() {
    with(|watch| {
        if let Some(told) = watch.told.take() {
            let news = watch.net.trace_since(told);
            news.iter().for_each(|entry| println!("{entry}"));
        }
    });
}

/// Checks the whole run.
pub(crate) fn finish() {
    tell_rest();
    with(|watch| watch.check_connections());
    WATCH.set(None);
}

fn with(look: impl FnOnce(&mut Watch)) {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map(look));
}

/// Prints everything that happens from now on in the runs of this thread.
pub(crate) fn tell() {
    TELLS.set(true);
}

thread_local! {
    static TELLS: Cell<bool> = const { Cell::new(false) };
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// How long a client of many hosts keeps an unused one.
const KEPT_UNUSED: Duration = Duration::from_secs(10);

struct Watch {
    net: SimNet,
    /// The client's time while the client is not driven.
    clock: Option<Instant>,
    /// Orders the events.
    order: u64,
    /// Several calls share a connection.
    piped: bool,
    /// The addresses are separate hosts with their own breakers, and events do not say which one a call waits for.
    balance: Option<BalanceConfig>,
    addresses: usize,
    /// From when and until when an address gets no calls.
    ejected: BTreeMap<Address, (Instant, Instant)>,
    /// The rates of each host, and of all of them.
    rates: Vec<Rate>,
    rate_of_all: Option<Rate>,
    /// When requests were sent.
    sends: Vec<Instant>,
    /// For each call: when it is tried again, and whether it may be repeated.
    rules: BTreeMap<u64, (Retry, bool)>,
    breaker: Option<BreakerConfig>,
    budget: Option<RetryBudget>,
    /// By scheme, host and port.
    hosts: BTreeMap<String, Host>,
    calls: BTreeMap<CallId, Call>,
    /// How many entries of the trace were printed, if all are to be.
    told: Option<usize>,
    /// Length of the trace when an attempt had begun on a connection that had been used before. The last entries are the
    /// first writes of the attempt.
    starts: Vec<usize>,
}

#[derive(Default)]
struct Host {
    /// Calls without a connection so far, in the order in which they came.
    waiting: BTreeSet<(u64, CallId)>,
    requests: u64,
    /// Retries that needed a budget, and when the first one was.
    retries: u64,
    first_retry: Option<Instant>,
    /// From when and until when the breaker is open, or was before it was half open.
    open: Option<(Instant, Instant)>,
    /// When that changed last.
    changed: u64,
    failures_in_a_row: u32,
    /// When requests were sent.
    sends: Vec<Instant>,
    /// When the host was used last.
    used: Option<Instant>,
    /// The client may have forgotten the host and begun anew.
    vague: bool,
    /// How often that may have happened.
    forgotten: u32,
}

struct Call {
    host: String,
    id: u64,
    /// The place of the call among the calls of its host.
    order: u64,
    /// The call has had a connection at this host.
    sent: bool,
    attempts: u32,
    /// An attempt has failed at this host.
    retried: bool,
    over: bool,
    /// The breaker has admitted it, unless it fails at once.
    under_way: bool,
    /// The earliest time at which the breaker was asked.
    since: Instant,
    /// What the breaker knew at that time; `None` if this is unknown.
    asked: Option<u64>,
    reused: bool,
    /// Perhaps with another method.
    redirected: bool,
    status: u16,
    /// The pause that the answer asked for.
    patience: Option<Duration>,
}

impl Watch {
    fn now(&self) -> Instant {
        self.clock.unwrap_or_else(|| self.net.now())
    }

    fn see(&mut self, event: &ObserverEvent<'_>) {
        self.order += 1;
        if let Some(told) = self.told {
            let news = self.net.trace_since(told);
            news.iter().for_each(|entry| println!("{entry}"));
            self.told = Some(told + news.len());
            println!("             {event:?}");
        }
        match *event {
            ObserverEvent::Begun { call, target, .. } => self.begun(call, target),
            ObserverEvent::Sending {
                call,
                reused,
                remote,
                ..
            } => {
                self.check_ejection(call, remote);
                self.sending(call, reused);
            }
            ObserverEvent::Ejected { remote, until } => {
                self.ejected.insert(remote.clone(), (self.now(), until));
            }
            ObserverEvent::Head { call, response, .. } => {
                let patience = response.header("X-Patience");
                let patience = patience.and_then(|text| std::str::from_utf8(text).ok());
                let seconds = patience.and_then(|text| text.parse().ok());
                let call = self.calls.get_mut(&call).expect("it has begun");
                call.status = response.status();
                call.patience = seconds.map(Duration::from_secs);
            }
            ObserverEvent::Redirected { call, url, .. } => {
                self.attempt_over(call, None);
                self.leave(call);
                self.begun(call, url);
                self.calls.get_mut(&call).expect("it has begun").redirected = true;
            }
            ObserverEvent::Retrying {
                call, cause, pause, ..
            } => self.retrying(call, cause, pause),
            ObserverEvent::Breaker { .. } if self.balance.is_some() => {}
            ObserverEvent::Breaker { call, state, .. } => {
                let (now, order) = (self.now(), self.order);
                let host = self.host_of(call);
                host.changed = order;
                host.vague = false;
                host.failures_in_a_row = 0;
                host.open = match state {
                    BreakerState::Open(until) => Some((now, until)),
                    BreakerState::HalfOpen => Some((now, now)),
                    _ => None,
                };
            }
            ObserverEvent::Ended { call, error, .. } => self.ended(call, error),
            _ => {}
        }
    }

    fn host_of(&mut self, call: CallId) -> &mut Host {
        let host = &self.calls[&call].host;
        self.hosts.get_mut(host).expect("it has had a call")
    }

    /// A call comes to a host.
    fn begun(&mut self, key: CallId, target: &str) {
        let (now, order) = (self.now(), self.order);
        let (origin, path) = match target.strip_prefix("http://") {
            Some(rest) => rest.split_at(rest.find('/').expect("all have a path")),
            None => ("", target),
        };
        let id = path.split('/').nth(1).and_then(|id| id.parse().ok());
        let host = origin.trim_end_matches(":80").to_ascii_lowercase();
        let entry = self.hosts.entry(host.clone()).or_default();
        let used = entry
            .used
            .into_iter()
            .chain(entry.open.map(|open| open.1))
            .max();
        if used.is_some_and(|used| now >= used + KEPT_UNUSED) && !origin.is_empty() {
            entry.vague = true;
            entry.forgotten += 1;
        }
        entry.used = Some(now);
        entry.requests += 1;
        entry.waiting.insert((order, key));
        let call = Call {
            host,
            id: id.expect("all have one"),
            order,
            sent: false,
            attempts: 0,
            retried: false,
            over: false,
            under_way: true,
            since: now,
            asked: Some(order),
            reused: false,
            redirected: false,
            status: 0,
            patience: None,
        };
        self.calls.insert(key, call);
    }

    /// A call no longer waits for its first connection.
    fn leave(&mut self, key: CallId) {
        let order = self.calls[&key].order;
        self.host_of(key).waiting.remove(&(order, key));
    }

    fn sending(&mut self, key: CallId, reused: bool) {
        let now = self.now();
        let call = &self.calls[&key];
        let host = &self.hosts[&call.host];
        assert!(!call.over, "a call that had ended is sent");
        if !call.retried && !call.sent && self.balance.is_none() {
            let first = host.waiting.first();
            assert_eq!(
                first.map(|(_, call)| *call),
                Some(key),
                "starved: a call that came later passes"
            );
        }
        assert!(now >= call.since, "a pause before an attempt is not kept");
        if let Some((from, until)) = host.open {
            let shut = call.since > from && now < until;
            assert!(!shut, "sent while the breaker is open");
        }
        let retry = &self.rules[&call.id].0;
        let attempts = call.attempts + 1;
        assert!(
            attempts <= most_attempts(retry) || self.piped,
            "attempt {attempts} of {} at most",
            most_attempts(retry)
        );
        if reused && !self.piped {
            self.starts.push(self.net.traced());
        }
        self.leave(key);
        self.check_rates(key);
        let call = self.calls.get_mut(&key).expect("it has begun");
        call.sent = true;
        call.attempts = attempts;
        call.under_way = true;
        call.reused = reused;
        call.status = 0;
        call.patience = None;
        let probes = self.breaker.as_ref().map(|breaker| breaker.probes.get());
        if let Some(probes) = probes.filter(|_| self.balance.is_none()) {
            let probing = self.probing(key, true);
            assert!(
                probing <= probes as usize,
                "{probing} probes at a time, of {probes} at most"
            );
        }
    }

    /// In no window do more requests begin than their rates allow.
    fn check_rates(&mut self, key: CallId) {
        // Rates are kept by the clock, even where the rest uses the time at which the iteration began.
        let now = self.net.now();
        self.sends.push(now);
        let (sends, rate_of_all) = (&self.sends, self.rate_of_all);
        let name = self.calls[&key].host.clone();
        let host = self.hosts.get_mut(&name).expect("it has had a call");
        host.sends.push(now);
        for rate in &self.rates {
            check_rate(&host.sends, rate);
        }
        if let Some(rate) = rate_of_all {
            check_rate(sends, &rate);
        }
    }

    /// A call that came while an address was out does not go to it, as long as enough others are left.
    fn check_ejection(&self, key: CallId, remote: &Address) {
        let (now, call) = (self.now(), &self.calls[&key]);
        let Some(balance) = &self.balance else {
            return;
        };
        let is_out = |ejected: &(Instant, Instant)| {
            let (from, until) = *ejected;
            call.since > from && now < until
        };
        // Addresses that were out for some of the time may have been out when this one was chosen.
        let perhaps = self
            .ejected
            .values()
            .filter(|(_, until)| call.since < *until);
        let left = (self.addresses - perhaps.count()) as f64;
        let enough = left > 0.0 && left >= balance.panic_below * self.addresses as f64;
        // What the other calls have done, or would not do, is unknown.
        let free = !call.retried && !call.sent && self.breaker.is_none();
        assert!(
            !(free && enough && self.ejected.get(remote).is_some_and(is_out)),
            "sent to {remote}, which is out"
        );
    }

    /// How many calls the half-open breaker of this host has admitted: certainly, or perhaps.
    fn probing(&self, key: CallId, for_sure: bool) -> usize {
        let (now, name) = (self.now(), &self.calls[&key].host);
        let host = &self.hosts[name];
        let open = host.open.filter(|(_, until)| *until <= now && !host.vague);
        let Some((_, until)) = open else {
            return 0;
        };
        let calls = self.calls.iter().filter(|(_, call)| call.host == *name);
        let probes = calls.filter(|(other, call)| {
            let asked = call.since >= until && call.asked.is_none_or(|at| at > host.changed);
            let perhaps = call.retried && !call.over && call.since <= now;
            match for_sure {
                true => call.under_way && asked && (call.sent || call.asked.is_some()),
                false => **other != key && (call.under_way && asked || perhaps),
            }
        });
        probes.count()
    }

    fn retrying(&mut self, key: CallId, cause: RetryCause<'_>, pause: Duration) {
        let now = self.now();
        let error = match cause {
            RetryCause::Failure(error) => Some(error),
            _ => None,
        };
        let call = &self.calls[&key];
        assert!(!call.over, "a call that had ended is tried again");
        let (retry, idempotent) = &self.rules[&call.id];
        if let (RetryCause::Status(status), Some(patience)) = (cause, call.patience) {
            assert_eq!(status, call.status);
            assert!(
                pause >= patience,
                "{pause:?} though the server asked for {patience:?}"
            );
            assert!(
                patience <= retry.max_retry_after,
                "a retry after a too long Retry-After"
            );
        }
        let safe = error.is_some_and(|error| {
            let died = matches!(
                error.kind(),
                ErrorKind::Io(_) | ErrorKind::Peer(PeerFault::Empty | PeerFault::Unsolicited)
            );
            let reused = call.reused || self.piped;
            retry.safe_cases && died && reused && error.sent() != Sent::ReplyBegun
        });
        // Nothing of it was sent, and it goes to another address.
        let safe = safe
            || self.balance.is_some()
                && error.is_some_and(|error| error.sent() == Sent::Nothing)
                && pause == Duration::ZERO;
        let harmless = error.is_some_and(|error| error.sent() == Sent::Nothing);
        let any_method = retry.rules.iter().any(|rule| rule.any_method);
        assert!(
            *idempotent || call.redirected || harmless || any_method,
            "repeats what must not be: {error:?}"
        );
        if !safe || pause > Duration::ZERO {
            self.withdraw(key);
        }
        // The cause of a safe immediate retry says nothing about the host.
        if !safe || pause > Duration::ZERO {
            self.attempt_over(key, error);
        }
        self.leave(key);
        let call = self.calls.get_mut(&key).expect("it has begun");
        call.retried = true;
        call.under_way = false;
        call.since = now + pause;
        call.asked = None;
    }

    /// A retry that takes from the budget.
    fn withdraw(&mut self, key: CallId) {
        let (now, Some(budget)) = (self.now(), self.budget) else {
            return;
        };
        let host = self.host_of(key);
        host.retries += 1;
        let time = now - *host.first_retry.get_or_insert(now);
        let floor = budget.floor.map_or(0, |floor| {
            let per = floor.per.as_nanos().max(1);
            u128::from(floor.burst.get()) + time.as_nanos() * u128::from(floor.count.get()) / per
        });
        let earned = (host.requests as f64 * budget.ratio).floor();
        let fresh = (f64::from(budget.reserve) + floor as f64) * f64::from(1 + host.forgotten);
        let most = fresh + earned;
        assert!(
            host.retries as f64 <= most,
            "{} retries, for which there was no budget: {most}",
            host.retries
        );
    }

    /// An attempt has ended; with an answer if there is no error.
    fn attempt_over(&mut self, key: CallId, error: Option<&Error>) {
        let now = self.now();
        let call = &self.calls[&key];
        let Some(config) = self.breaker.as_ref().filter(|_| call.under_way) else {
            return;
        };
        if self.balance.is_some() {
            return;
        }
        let failed = match error.map(Error::kind) {
            None => Some(config.statuses.contains(call.status)),
            Some(
                ErrorKind::Misuse(_)
                | ErrorKind::Redirect { .. }
                | ErrorKind::Limit(_)
                | ErrorKind::Shortage(_)
                | ErrorKind::Cancelled
                | ErrorKind::BreakerOpen(_),
            ) => None,
            // The resolver of the client is at fault, not the host, and not the proxy.
            Some(ErrorKind::Dns(error) | ErrorKind::Proxy(ProxyFault::Name(error)))
                if is_fault_of_resolver(error) =>
            {
                None
            }
            // No peer was asked.
            Some(_) if error.is_some_and(|error| error.phase() == Phase::Queue) => None,
            Some(_) => Some(true),
        };
        let consecutive = config.consecutive;
        let asked = call.asked;
        let host = self.host_of(key);
        let counts = asked.is_some_and(|at| at > host.changed);
        host.used = Some(now);
        match (failed, host.open) {
            _ if host.vague => {}
            (Some(false), _) => host.failures_in_a_row = 0,
            (Some(true), Some((_, until))) if counts && until <= now => {
                panic!("a probe has failed, and the breaker does not open: {error:?}");
            }
            (Some(true), None) if counts => {
                host.failures_in_a_row += 1;
                let row = host.failures_in_a_row;
                assert!(
                    consecutive.is_none_or(|most| row < most.get()),
                    "{row} failures in a row, and the breaker does not open: {error:?}"
                );
            }
            _ => {}
        }
    }

    fn ended(&mut self, key: CallId, error: Option<&Error>) {
        let now = self.now();
        if !self.calls.contains_key(&key) {
            let cancelled = error.map(Error::kind);
            return assert!(matches!(cancelled, Some(ErrorKind::Cancelled)), "not begun");
        }
        let refused = matches!(error.map(Error::kind), Some(ErrorKind::BreakerOpen(_)));
        if refused && self.balance.is_none() {
            let host = self.host_of(key);
            let vague = host.vague;
            let open = host.open.or(vague.then_some((now, now)));
            let (_, until) = open.expect("refused by a breaker that is closed");
            let probes = self
                .breaker
                .as_ref()
                .map_or(0, |breaker| breaker.probes.get());
            let probing = self.probing(key, false);
            assert!(
                vague || now < until || probing >= probes as usize,
                "refused though the breaker was open until {until:?}, with {probing} probes under way"
            );
        } else {
            self.attempt_over(key, error);
        }
        self.leave(key);
        let call = self.calls.get_mut(&key).expect("it has begun");
        assert!(!call.over, "a call ends twice");
        call.over = true;
        call.under_way = false;
    }

    /// A connection that the peer had closed, or on which it had sent unrequested bytes, is not used again.
    fn check_connections(&self) {
        let trace = self.net.trace();
        let starts = self.starts.iter().map(|end| first_write(&trace, *end));
        let mut starts = starts.peekable();
        let (mut ended, mut unread) = (BTreeSet::new(), BTreeSet::new());
        for (at, entry) in trace.iter().enumerate() {
            let connection = entry.connection;
            while starts.next_if(|start| *start == at).is_some() {
                assert!(
                    !ended.contains(&connection),
                    "connection {connection} had been ended by the peer"
                );
                assert!(
                    !unread.contains(&connection),
                    "connection {connection} had something to say"
                );
            }
            match entry.what {
                Trace::Event {
                    readable, closed, ..
                } => {
                    if closed {
                        ended.insert(connection);
                    }
                    if readable {
                        unread.insert(connection);
                    }
                }
                // Before the connection was established, there was nothing to read.
                Trace::Connected(Ok(true)) | Trace::Read(_) => {
                    unread.remove(&connection);
                }
                _ => {}
            }
        }
    }
}

/// The first of the writes to one connection that end before entry `end`.
fn first_write(trace: &[Entry], end: usize) -> usize {
    let connection = trace[end - 1].connection;
    let others = trace[..end].iter().rposition(|entry| {
        !matches!(entry.what, Trace::Write(_)) || entry.connection != connection
    });
    let first = others.map_or(0, |at| at + 1);
    assert!(first < end, "an attempt begins with a write");
    first
}

/// Whether the lookup failed in this program, and no name server has answered.
fn is_fault_of_resolver(error: &DnsError) -> bool {
    matches!(
        error,
        DnsError::Unanswered
            | DnsError::NotAsked
            | DnsError::QueueFull(_)
            | DnsError::Shortage(_)
            | DnsError::Config(_)
    )
}

/// No window that ends with the last of these times has more than the burst plus what the rate gives for its length.
fn check_rate(sends: &[Instant], rate: &Rate) {
    let Some((last, per)) = sends
        .last()
        .zip(Some(rate.per.as_nanos()).filter(|per| *per > 0))
    else {
        return;
    };
    for (before, first) in sends.iter().enumerate() {
        let count = (sends.len() - before) as u128;
        let time = (*last - *first).as_nanos();
        let most = u128::from(rate.burst.get()) + time * u128::from(rate.count.get()) / per;
        assert!(
            count <= most,
            "{count} requests in {time} ns, of {most} at most: {rate:?}"
        );
    }
}
