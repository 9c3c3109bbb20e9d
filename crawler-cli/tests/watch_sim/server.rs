//! The servers of a run. Each answers by the truth of its URLs at the virtual time, and watches how politely it is asked.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use courser::Answer;
use courser::error::DnsError;
use courser::net::sim::{Peer, ScriptedAnswer, SimServer};
use plain::random::Random;

use crate::draw::Draw;
use crate::plan::{Head, Plan, Reaction};

/// What all servers know, and what they have seen.
pub(crate) struct Site {
    pub(crate) plan: Rc<Plan>,
    began: Instant,
    /// The last time that is known.
    now: i64,
    pub(crate) rules: Manners,
    /// By URL.
    pub(crate) served: Vec<Served>,
    pub(crate) requests: u64,
    pub(crate) faults: Vec<String>,
    /// Counts starts of the service: a new process does not know when the one before sent its last request.
    pub(crate) process: u64,
    /// Until when the service has hardly any descriptor.
    shortage: Option<Instant>,
}

/// How the hosts want to be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// Requests at a time.
    pub(crate) connections: usize,
    /// Requests a second; zero: no limit.
    pub(crate) rate: f64,
}

impl Manners {
    /// What the default settings keep to.
    pub(crate) const USUAL: Self = Self {
        connections: 2,
        rate: 1.0,
    };
}

/// What a URL was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Served {
    /// Requests, those for the page that it is redirected to apart.
    pub(crate) requests: u32,
    /// Negative answers to GET.
    pub(crate) negatives: u32,
    /// When the first of them came after the last good answer.
    pub(crate) negative_since: Option<i64>,
}

impl Site {
    pub(crate) fn new(plan: &Rc<Plan>, began: Instant, rules: Manners) -> Self {
        Self {
            plan: Rc::clone(plan),
            began,
            now: 0,
            rules,
            served: vec![Served::default(); plan.urls.len()],
            requests: 0,
            faults: Vec::new(),
            process: 0,
            shortage: None,
        }
    }

    /// Seconds since the beginning.
    pub(crate) fn seconds(&self, now: Instant) -> i64 {
        now.saturating_duration_since(self.began).as_secs() as i64
    }

    pub(crate) fn note_time(&mut self, now: Instant) {
        self.now = self.now.max(self.seconds(now));
    }

    /// The service has hardly any descriptor, or enough again.
    pub(crate) fn set_shortage(&mut self, now: Instant, is_short: bool) {
        self.shortage = Some(if is_short { now + FAR } else { now });
    }

    /// Whether requests may have waited for a descriptor: for longer than it takes to send one, but not for longer than a
    /// request may take.
    fn may_have_waited(&self, now: Instant) -> bool {
        self.shortage.is_some_and(|end| now < end + TIME_LIMIT)
    }

    /// Looks up the name of a host.
    pub(crate) fn look_up(&mut self, name: &str) -> ScriptedAnswer {
        let now = self.now;
        let answer = |answer| ScriptedAnswer::After(LOOK_UP, answer);
        if self.plan.is_cut(now) {
            return ScriptedAnswer::After(LOST_LOOK_UP, Answer::failed(DnsError::Timeout));
        }
        let number = name
            .strip_prefix('h')
            .and_then(|name| name.strip_suffix(".sim"));
        let host = number.and_then(|number| number.parse::<usize>().ok());
        let plan = Rc::clone(&self.plan);
        let Some(host) = host.filter(|host| *host < plan.hosts.len()) else {
            return answer(Answer::failed(DnsError::NotFound));
        };
        if plan.hosts[host].name_ends.is_some_and(|end| now >= end) {
            return answer(Answer::failed(DnsError::NotFound));
        }
        answer(Answer::found([address_of(host).into()], TIME_TO_LIVE))
    }
}

impl Served {
    fn note(&mut self, now: i64, at_target: bool, method: &str, reaction: Reaction) {
        self.requests += u32::from(!at_target);
        match reaction {
            Reaction::Status(404 | 410) if method == "GET" => {
                self.negatives += 1;
                self.negative_since.get_or_insert(now);
            }
            Reaction::Status(200) => self.negative_since = None,
            _ => {}
        }
    }
}

/// The server of one host.
pub(crate) struct HostServer {
    site: Rc<RefCell<Site>>,
    host: usize,
    draw: Draw,
    connections: HashMap<u64, Connection>,
    /// The last requests. One on a connection that is reset is sent again at once (RFC 9112 section 9.3.1), and counts
    /// once.
    times: VecDeque<Instant>,
    /// From when to when the host is not to be asked.
    parked: Option<(Instant, Instant)>,
    process: u64,
}

#[derive(Default)]
struct Connection {
    unread: Vec<u8>,
    /// Until when the last request is being answered.
    busy_until: Option<Instant>,
}

impl HostServer {
    pub(crate) fn new(site: Rc<RefCell<Site>>, host: usize, seed: u64) -> Self {
        Self {
            site,
            host,
            draw: Draw(Random::new(seed ^ (host as u64) << 20)),
            connections: HashMap::new(),
            times: VecDeque::new(),
            parked: None,
            process: 0,
        }
    }

    /// Notes a request, and whether it should have come.
    fn note(&mut self, connection: u64, now: Instant, until: Option<Instant>) {
        let site = &mut *self.site.borrow_mut();
        let Manners { connections, rate } = site.rules;
        site.requests += 1;
        site.note_time(now);
        let at = now - site.began;
        if self.process != site.process {
            self.process = site.process;
            self.times.clear();
            self.parked = None;
        }
        if let Some((from, to)) = self.parked {
            // Requests that were under way when the answer was sent are fine.
            if now > from + UNDER_WAY && now + UNDER_WAY < to {
                let text = format!(
                    "{at:?}: host {} was asked before its Retry-After",
                    self.host
                );
                site.faults.push(text);
            }
        }
        self.times.push_back(now);
        while self.times.front().is_some_and(|time| now - *time > WINDOW) {
            self.times.pop_front();
        }
        let late = match site.may_have_waited(now) {
            true => connections as f64,
            false => 0.0,
        };
        let most = rate * WINDOW.as_secs_f64() + 2.0 + late;
        if rate > 0.0 && self.times.len() as f64 > most {
            let count = self.times.len();
            let text = format!("{at:?}: host {} got {count} requests in 10 s", self.host);
            site.faults.push(text);
        }
        let state = self.connections.entry(connection).or_default();
        state.busy_until = Some(until.unwrap_or(now + FAR));
        let is_busy = |state: &&Connection| state.busy_until.is_some_and(|until| until > now);
        let busy = self.connections.values().filter(is_busy).count();
        if busy > connections {
            let text = format!("{at:?}: host {} had {busy} requests at a time", self.host);
            site.faults.push(text);
        }
    }

    fn answer(&mut self, peer: &mut Peer<'_>, head: &str) {
        let mut words = head.split_ascii_whitespace();
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return peer.reset();
        };
        let (now, connection) = (peer.now(), peer.connection());
        let plan = Rc::clone(&self.site.borrow().plan);
        let seconds = self.site.borrow().seconds(now);
        let host = &plan.hosts[self.host];
        let latency = self.draw.time(host.latency.start, host.latency.end);
        let latency = Duration::from_millis(latency.unsigned_abs());
        if plan.is_cut(seconds) {
            // The network is down: nothing comes, and nothing goes.
            return self.note(connection, now, None);
        }
        let reaction = self.react(&plan, method, path, seconds);
        let until = (reaction != Reaction::Silence).then_some(now + latency);
        self.note(connection, now, until);
        if reaction == Reaction::Reset {
            self.times.pop_back();
        }
        peer.wait(latency);
        match reaction {
            Reaction::Silence => {}
            Reaction::Reset => peer.reset(),
            Reaction::Status(status) => peer.send(response(status, "", method)),
            Reaction::Redirect(status, to) => {
                let number = path.rsplit('/').next().unwrap_or_default();
                let location = format!("Location: http://{}/to/{number}\r\n", name_of(to));
                peer.send(response(status, &location, method));
            }
            Reaction::Throttle(seconds) => {
                let received = now + latency;
                let wait = Duration::from_secs(seconds.unsigned_abs());
                let end = self.parked.map_or(received, |(_, end)| end);
                // A request that waits for a descriptor is under way, too.
                let from = match self.site.borrow().may_have_waited(now) {
                    true => received + TIME_LIMIT,
                    false => received,
                };
                self.parked = Some((from, end.max(received + wait)));
                peer.send(response(
                    429,
                    &format!("Retry-After: {seconds}\r\n"),
                    method,
                ));
            }
        }
    }

    fn react(&mut self, plan: &Plan, method: &str, path: &str, now: i64) -> Reaction {
        let host = &plan.hosts[self.host];
        if let Some((span, wait)) = host.throttles
            && span.contains(now)
            && self.draw.chance(0.3)
        {
            return Reaction::Throttle(wait);
        }
        let (at_target, number) = match path.split_once("/u/").or(path.split_once("/to/")) {
            Some((_, number)) => (path.starts_with("/to/"), number.parse::<usize>().ok()),
            None if path == "/" => return Reaction::Status(200),
            None => return Reaction::Status(404),
        };
        let Some(url) = number.filter(|url| *url < plan.urls.len()) else {
            return Reaction::Status(404);
        };
        let reaction = plan.react(url, at_target, now, &mut self.draw);
        let reaction = match host.head {
            Head::Status(status) if method == "HEAD" => Reaction::Status(status),
            Head::Resets if method == "HEAD" => Reaction::Reset,
            _ => reaction,
        };
        self.site.borrow_mut().served[url].note(now, at_target, method, reaction);
        reaction
    }
}

impl SimServer for HostServer {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let state = self.connections.entry(peer.connection()).or_default();
        state.unread.extend_from_slice(data);
        let Some(end) = state.unread.windows(4).position(|end| end == b"\r\n\r\n") else {
            return;
        };
        let head: Vec<u8> = state.unread.drain(..end + 4).collect();
        self.answer(peer, &String::from_utf8_lossy(&head));
    }

    fn on_close(&mut self, peer: &mut Peer<'_>) {
        self.connections.remove(&peer.connection());
    }
}

/// The address of a host: a public one.
pub(crate) fn address_of(host: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(20, 0, 0, 1)) + host as u32)
}

/// The name of a host.
pub(crate) fn name_of(host: usize) -> String {
    format!("h{host}.sim")
}

fn response(status: u16, lines: &str, method: &str) -> String {
    let body = if method == "HEAD" { "" } else { "ok" };
    format!("HTTP/1.1 {status} X\r\n{lines}Content-Length: 2\r\n\r\n{body}")
}

/// In this time, rates are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// The longest way of a request.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// How long a request may take in all, by the default settings.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Longer than any run.
const FAR: Duration = Duration::from_secs(1_000_000_000);

const LOOK_UP: Duration = Duration::from_millis(20);
const LOST_LOOK_UP: Duration = Duration::from_secs(5);
const TIME_TO_LIVE: Duration = Duration::from_secs(300);
